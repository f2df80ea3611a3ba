//! Errors for invalid texts.

use miserly_formula::Formula;

const NAMES: [&str; 3] = ["wait", "estimate", "procs"];

#[track_caller]
fn check(text: &str, expected: &str) {
    let error = Formula::parse(text, &NAMES).unwrap_err().to_string();
    assert_eq!(error.strip_prefix("formula, "), Some(expected));
}

#[test]
fn no_value() {
    let value = "expected a value: a number, a name, a function or a parenthesis";
    check("", &format!("at its end: {value}"));
    check("wait +", &format!("at its end: {value}"));
    check("* wait", &format!(r#"character 1, at "* wait": {value}"#));
    check("wait / / 2", &format!(r#"character 8, at "/ 2": {value}"#));
    check("()", &format!(r#"character 2, at ")": {value}"#));
    check("min(wait,)", &format!(r#"character 10, at ")": {value}"#));
}

#[test]
fn unexpected_tokens() {
    check("wait 2", r#"character 6, at "2": expected an operation or the end"#);
    check("2wait", r#"character 2, at "wait": expected an operation or the end"#);
    check("wait)", r#"character 5, at ")": expected an operation or the end"#);
    check("(wait", "at its end: expected an operation or `)`");
    check("min(wait", "at its end: expected an operation, `,` or `)`");
}

#[test]
fn unknown_names() {
    check(
        "estmate",
        r#"character 1, at "estmate": unknown name "estmate", did you mean "estimate"; known: wait, estimate, procs"#,
    );
    check("1 + xyz", r#"character 5, at "xyz": unknown name "xyz"; known: wait, estimate, procs"#);
    check(
        "logs(2)",
        r#"character 1, at "logs(2)": unknown function "logs", did you mean "log2"; known: min, max, abs, sqrt, ln, log2, log10, exp, floor, ceil, if"#,
    );
    check("1 + min", r#"character 5, at "min": min is a function: write min(...)"#);
    let none = Formula::parse("x", &[]).unwrap_err().to_string();
    assert_eq!(none, r#"formula, character 1, at "x": unknown name "x"; known: none"#);
}

#[test]
fn wrong_numbers_of_values() {
    check("1 + min(wait)", r#"character 5, at "min(wait)": min has 1 arguments and takes 2"#);
    check("abs()", r#"character 1, at "abs()": abs has 0 arguments and takes 1"#);
    check("if(1, 2)", r#"character 1, at "if(1, 2)": if has 2 arguments and takes 3"#);
}

#[test]
fn signs_of_other_languages() {
    check("wait ** 2", r#"character 6, at "** 2": unknown sign "**"; write ^"#);
    check("wait = 2", r#"character 6, at "= 2": unknown sign "="; write =="#);
    check("wait && 1", r#"character 6, at "&& 1": unknown sign "&&"; write and"#);
    check("!wait", r#"character 1, at "!wait": unknown sign "!"; write not"#);
    check("wait × 2", r#"character 6, at "× 2": unknown sign "×""#);
    check("1 + ×", r#"character 5, at "×": unknown sign "×""#);
}

#[test]
fn invalid_numbers() {
    check("1.2.3", r#"character 1, at "1.2.3": "1.2.3" is not a finite number"#);
    check(".", r#"character 1, at ".": "." is not a finite number"#);
    check("1e999", r#"character 1, at "1e999": "1e999" is not a finite number"#);
}

#[test]
fn missing_parentheses() {
    check(
        "1 < wait < 2",
        r#"character 10, at "< 2": a comparison has two sides: join two of them with `and`"#,
    );
    let inside = "`not` binds less tightly than the operator before it: put it in parentheses";
    check("1 + not wait", &format!(r#"character 5, at "not wait": {inside}"#));
}

#[test]
fn limits() {
    let error = |text: &str| Formula::parse(text, &NAMES).unwrap_err().to_string();
    for deep in ["(", "-", "not ", "2^", "1+(", "min(1,"] {
        let message = error(&deep.repeat(100_000));
        assert!(message.contains("nested too deeply"), "{message}");
    }
    assert!(error(&"1+".repeat(100_000)).contains("too long; a formula has at most 1000"));
    let sum = format!("1{}", "+wait".repeat(499));
    assert!((Formula::parse(&sum, &NAMES).unwrap().eval(&[1.0; 3]) - 500.0).abs() < 0.5);
    let nested =
        format!("{}1{}", "1+(".repeat(Formula::MAX_WAITING - 1), ")".repeat(Formula::MAX_WAITING - 1));
    assert!((Formula::parse(&nested, &NAMES).unwrap().eval(&[1.0; 3]) - 32.0).abs() < 0.5);
    assert!(error(&format!("1+({nested})")).contains("and 32 waiting values"));
    // Excess arguments of a function are counted before the call is rejected.
    assert!(error(&format!("min({}1)", "1,".repeat(50))).contains("and 32 waiting values"));
}
