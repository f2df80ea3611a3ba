//! The meaning of each construct and its displayed form.

use miserly_formula::{Direction, Formula, ordered_key};

const NAMES: [&str; 5] = ["wait", "estimate", "procs", "easy.wait", "nan"];
const VALUES: [f64; 5] = [6.0, 4.0, 8.0, 0.5, f64::NAN];

#[track_caller]
fn check(text: &str, expected: f64) {
    let value = Formula::parse(text, &NAMES).unwrap().eval(&VALUES);
    assert_eq!(value.to_bits(), expected.to_bits(), "{text} is {value}, not {expected}");
}

#[track_caller]
fn check_nan(text: &str) {
    let value = Formula::parse(text, &NAMES).unwrap().eval(&VALUES);
    assert!(value.is_nan(), "{text} is {value}");
}

#[track_caller]
fn check_written(text: &str, expected: &str) {
    let formula = Formula::parse(text, &NAMES).unwrap();
    assert_eq!(formula.to_string(), expected);
    assert_eq!(Formula::parse(expected, &NAMES).unwrap(), formula);
}

#[test]
fn numbers() {
    check("870", 870.0);
    check(".5", 0.5);
    check("5.", 5.0);
    check("1e-6", 1e-6);
    check("2.56E+4", 25600.0);
    check("-0", -0.0);
}

#[test]
fn names_may_have_points() {
    check("easy.wait", 0.5);
    check("easy.wait < 0.9 * wait", 1.0);
}

#[test]
fn what_binds_tighter() {
    check("2 + 3 * 4", 14.0);
    check("(2 + 3) * 4", 20.0);
    check("10 - 4 - 3", 3.0);
    check("64 / 4 / 2", 8.0);
    check("2 ^ 3 ^ 2", 512.0);
    check("-2 ^ 2", -4.0);
    check("2 ^ -2", 0.25);
    check("2 * -3", -6.0);
    check("1 - -1", 2.0);
    check("1 + 1 < 3 and not 2 > 3 or 0", 1.0);
    check("not 0 and 0", 0.0);
    check("1 or 0 and 0", 1.0);
}

#[test]
fn conditions() {
    for (text, expected) in [
        ("1 < 2", 1.0),
        ("2 < 2", 0.0),
        ("2 <= 2", 1.0),
        ("2 > 2", 0.0),
        ("2 >= 2", 1.0),
        ("2 == 2", 1.0),
        ("2 != 2", 0.0),
        ("7 and 0", 0.0),
        ("7 and -1", 1.0),
        ("0 or 0.5", 1.0),
        ("not 3", 0.0),
        ("if(wait > estimate, 1, 2)", 1.0),
        ("if(wait < estimate, 1, 2)", 2.0),
    ] {
        check(text, expected);
    }
}

#[test]
fn functions() {
    check("min(wait, estimate)", 4.0);
    check("max(wait, min(estimate, procs))", 6.0);
    check("abs(-3) + floor(2.7) + ceil(2.1) + sqrt(16)", 12.0);
    check("log2(procs)", 3.0);
    check("log10(1000)", 3.0);
    check("ln(1) + exp(0)", 1.0);
}

#[test]
fn powers_are_multiplied_out_from_the_left() {
    check("1.1 ^ 3", 1.1 * 1.1 * 1.1);
    check("wait ^ 0", 1.0);
    check("wait ^ -2", 1.0 / 36.0);
    check("2 ^ 16", 65536.0);
    check("2 ^ 0.5", libm::pow(2.0, 0.5));
    check("1.1 ^ 17", libm::pow(1.1, 17.0));
}

#[test]
fn division_by_zero_and_nan() {
    check("1 / 0", f64::INFINITY);
    check("-1 / 0", f64::NEG_INFINITY);
    check("log10(0)", f64::NEG_INFINITY);
    check_nan("0 / 0");
    check_nan("sqrt(-1)");
    check_nan("min(nan, 1)");
    check_nan("max(1, nan)");
    check("nan == nan", 0.0);
    check("nan != nan", 1.0);
    check("not nan", 1.0);
    check("nan or 0", 0.0);
    check("if(nan, 1, 2)", 2.0);
    check("nan ^ 0", 1.0);
}

/// A new version of libm or another platform must not change a bit unnoticed: the order of a queue
/// could depend on it.
#[test]
fn the_bits_of_the_logarithms() {
    for (text, bits) in [
        ("ln(3)", 0x3ff1_93ea_7aad_030a_u64),
        ("ln(1234567)", 0x402c_0d6e_2195_8116_u64),
        ("log2(3)", 0x3ff9_5c01_a39f_bd68_u64),
        ("log2(1000)", 0x4023_ee7b_471b_3a95_u64),
        ("log10(3)", 0x3fde_8927_964f_d5fd_u64),
        ("log10(1234567)", 0x4018_5db6_0525_6b71_u64),
        ("exp(1)", 0x4005_bf0a_8b14_576a_u64),
        ("exp(-12.5)", 0x3ecf_42ed_3f68_e690_u64),
        ("2 ^ 0.3", 0x3ff3_b2c4_7bff_8329_u64),
        ("1.0001 ^ 1234.5", 0x3ff2_1a28_adba_df89_u64),
    ] {
        check(text, f64::from_bits(bits));
    }
}

#[test]
fn written_with_one_space_and_no_needless_parenthesis() {
    check_written("wait/estimate", "wait / estimate");
    check_written("((wait)) * (estimate*procs)", "wait * (estimate * procs)");
    check_written("(wait - estimate) - procs", "wait - estimate - procs");
    check_written("wait - (estimate - procs)", "wait - (estimate - procs)");
    check_written("(-2)^2", "(-2) ^ 2");
    check_written("-(2^2)", "-2 ^ 2");
    check_written("(2^3)^(2^-1)", "(2 ^ 3) ^ 2 ^ -1");
    check_written("- -wait", "--wait");
    check_written("(not wait) == 1", "(not wait) == 1");
    check_written("not (wait == 1)", "not wait == 1");
    check_written("not(wait or estimate)and(1<2)", "not (wait or estimate) and 1 < 2");
    check_written("min( wait,1+2 )", "min(wait, 1 + 2)");
    check_written("870.0 + 0.000001 + 1e300 + 6.86e6", "870 + 1e-6 + 1e300 + 6860000");
}

#[test]
fn says_what_it_uses() {
    let formula = Formula::parse("if(wait > 1, procs, 2)", &NAMES).unwrap();
    assert_eq!([0, 1, 2, 3, 9].map(|name| formula.uses(name)), [true, false, true, false, false]);
}

#[test]
#[should_panic(expected = "one value for each name")]
fn wants_a_value_for_each_name() {
    Formula::parse("wait", &NAMES).unwrap().eval(&[1.0]);
}

#[test]
fn ranks_are_ordered_with_nan_last() {
    let rising = [f64::NEG_INFINITY, -1.0, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY];
    let smallest = rising.map(|x| Direction::Smallest.rank(x));
    assert!(smallest.is_sorted_by(|a, b| a < b), "{smallest:?}");
    let largest = rising.map(|x| Direction::Largest.rank(x));
    assert!(largest.is_sorted_by(|a, b| a > b), "{largest:?}");
    for nan in [f64::NAN, -f64::NAN] {
        assert!(Direction::Smallest.rank(nan) > smallest[7]);
        assert!(Direction::Largest.rank(nan) > largest[0]);
        assert!(ordered_key(nan) < ordered_key(f64::NEG_INFINITY));
    }
    assert_eq!(ordered_key(-0.0), ordered_key(0.0));
}
