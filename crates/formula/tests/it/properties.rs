//! Properties of all formulas and all texts.

use miserly_formula::{Formula, Fraction, Interval, Line, ordered_key};
use proptest::prelude::*;
use proptest::sample::select;

use crate::naive::{NAMES, tree};

/// Returns values of a name, including special ones.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..1e7,
        (-3i8..20).prop_map(f64::from),
        select(vec![-0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324]),
    ]
}

/// Returns whether two values are equal, ignoring the kind of NaN.
fn same(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
}

/// Returns pieces of formulas in any order.
fn soup() -> impl Strategy<Value = String> {
    const PIECES: [&str; 24] = [
        "wait", "procs", "(", ")", "+", "-", "*", "/", "^", "<", "==", "!", "=", ",", "min(", "if(", "log2(",
        "not", "and", "or", "1", "2.5e3", ".", "é",
    ];
    proptest::collection::vec(select(&PIECES[..]), 0..30).prop_map(|pieces| pieces.join(" "))
}

/// Checks that a text is either rejected with a message or displayed as an equal formula.
fn understood_or_refused(text: &str) {
    match Formula::parse(text, &NAMES) {
        Ok(formula) => {
            formula.eval(&[0.0, 1.0, -1.0]);
            assert_eq!(Formula::parse(&formula.to_string(), &NAMES), Ok(formula));
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.character()), "{error}");
        }
    }
}

proptest! {
    #[test]
    fn evaluation_is_that_of_the_naive_walk(tree in tree(), values in [value(), value(), value()]) {
        let formula = Formula::parse(&tree.text(), &NAMES).unwrap();
        let (value, expected) = (formula.eval(&values), tree.value(&values));
        prop_assert!(same(value, expected), "{formula} is {value}, not {expected}");
    }

    #[test]
    fn exact_evaluation_of_whole_numbers_is_that_of_floats(
        tree in tree(),
        values in [-3i8..20, -3i8..20, -3i8..20],
    ) {
        let text = tree.whole().text();
        prop_assume!(!text.contains(['/', '^']) && !text.contains("floor"));
        let formula = Formula::parse(&text, &NAMES).unwrap();
        let exact = formula.eval_exactly(&values.map(|value| Fraction::from(i64::from(value))));
        let exact = exact.map(Fraction::nearest);
        let value = formula.eval(&values.map(f64::from));
        if let Some(exact) = exact.filter(|exact| exact.abs() < 9e15) {
            prop_assert_eq!(ordered_key(exact), ordered_key(value), "{}", formula);
        }
    }

    #[test]
    fn integers_give_the_float_nearest_to_the_exact_value(
        tree in tree(),
        values in [any::<i32>(), any::<i32>(), any::<i32>()],
    ) {
        let common = ["wait / procs", "(wait + procs) / procs", "3 * wait - procs", "max(wait, procs) * procs"];
        for text in common.map(str::to_owned).into_iter().chain([tree.whole().text()]) {
            let formula = Formula::parse(&text, &NAMES).unwrap();
            let exact = formula.eval_exactly(&values.map(|value| Fraction::from(i64::from(value))));
            if let Some(value) = formula.eval_integers(&values.map(f64::from)) {
                prop_assert_eq!(exact.map(|exact| exact.nearest().to_bits()), Some(value.to_bits()), "{}", formula);
            }
        }
    }

    #[test]
    fn bounds_contain_every_value(
        tree in tree(),
        values in [value(), value(), value()],
        others in [value(), value(), value()],
    ) {
        let formula = Formula::parse(&tree.text(), &NAMES).unwrap();
        let intervals = [0, 1, 2].map(|name| Interval::between(values[name], others[name]));
        let bounds = formula.bounds(&intervals);
        let contains = |value: f64| bounds.is_any() || (bounds.least()..=bounds.most()).contains(&value);
        for name in 0..8 {
            let values = [0, 1, 2].map(|at| if name >> at & 1 == 0 { values[at] } else { others[at] });
            prop_assert!(contains(formula.eval(&values)), "{formula} of {values:?}: {bounds:?}");
            let exact: Vec<_> = values.into_iter().filter_map(Fraction::from_decimal).collect();
            let exact = if exact.len() == 3 { formula.eval_exactly(&exact) } else { None };
            let exact = exact.map(Fraction::nearest);
            prop_assert!(exact.is_none_or(contains), "{formula} of {values:?}: {exact:?} in {bounds:?}");
        }
    }

    #[test]
    fn no_value_is_above_the_line(
        tree in tree(),
        other in prop::option::of(tree()),
        values in [value(), value(), value()],
        waits in prop::collection::vec(prop_oneof![0.0..1e7, 0.0..1.0, Just(0.0)], 1..9),
    ) {
        let common = ["wait / procs", "3 * (wait - estimate) - procs * wait", "(wait + estimate) / (procs - 3)"];
        // A tree of its own is seldom linear.
        let product = other.map(|other| format!("({}) * ({})", tree.text(), other.text()));
        for text in common.map(str::to_owned).into_iter().chain([tree.text()]).chain(product) {
            let formula = Formula::parse(&text, &NAMES).unwrap();
            let line = formula.linear(0, &values.map(Interval::from_rounded)).most();
            for &wait in &waits {
                let values = [wait, values[1], values[2]];
                let below = |value: f64| value.is_nan() && line == Line::UNLIMITED || value <= line.at(wait);
                prop_assert!(below(formula.eval(&values)), "{formula} of {values:?}: {line:?}");
                let exact: Vec<_> = values.into_iter().filter_map(Fraction::from_decimal).collect();
                let exact = if exact.len() == 3 { formula.eval_exactly(&exact) } else { None };
                prop_assert!(exact.map(Fraction::nearest).is_none_or(below), "{formula} of {values:?}: {line:?}");
            }
        }
    }

    #[test]
    fn lines_are_tight(wait in 0.0..1e6, estimate in 1.0..1e5, procs in 1.0..1e4) {
        for text in ["(wait + estimate) / estimate", "wait + 5 * (wait + estimate) / estimate + 0.2 * procs"] {
            let formula = Formula::parse(text, &NAMES).unwrap();
            prop_assert!(formula.is_linear_in(0));
            let line = formula.linear(0, &[f64::NAN, estimate, procs].map(Interval::from_rounded)).most();
            let value = formula.eval(&[wait, estimate, procs]);
            prop_assert!((line.at(wait) - value) < 1e-11 * value, "{formula}: {line:?}");
        }
        for text in ["wait * wait", "1 / wait", "floor(wait)", "wait ^ 1", "if(wait, 1, 2)"] {
            let formula = Formula::parse(text, &NAMES).unwrap();
            prop_assert!(!formula.is_linear_in(0));
            let line = formula.linear(0, &[0.0, estimate, procs].map(Interval::from_rounded)).most();
            prop_assert_eq!(line, Line::UNLIMITED);
        }
    }

    #[test]
    fn bounds_of_a_single_value_are_tight(wait in 1.0..1e6, estimate in 1.0..1e5, procs in 1.0..1e4) {
        for text in ["(wait / estimate)^3 * procs", "wait + 5 * (wait + estimate) / estimate + 0.2 * procs"] {
            let formula = Formula::parse(text, &NAMES).unwrap();
            let bounds = formula.bounds(&[wait, estimate, procs].map(Interval::from_rounded));
            prop_assert!(bounds.most() - bounds.least() < 1e-13 * bounds.most(), "{formula}: {bounds:?}");
        }
    }

    #[test]
    fn what_is_displayed_parses_to_the_same(tree in tree()) {
        let formula = Formula::parse(&tree.text(), &NAMES).unwrap();
        let written = formula.to_string();
        prop_assert_eq!(&Formula::parse(&written, &NAMES).unwrap(), &formula);
        prop_assert!(written.matches('(').count() <= tree.text().matches('(').count());
    }

    #[test]
    fn any_text_is_understood_or_refused(text in any::<String>()) {
        understood_or_refused(&text);
    }

    #[test]
    fn any_soup_is_understood_or_refused(text in soup()) {
        understood_or_refused(&text);
    }

    #[test]
    fn keys_are_ordered_as_their_values(x in any::<f64>(), y in any::<f64>()) {
        prop_assert_eq!(x.partial_cmp(&y), Some(ordered_key(x).cmp(&ordered_key(y))));
    }
}
