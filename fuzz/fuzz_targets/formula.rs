//! Any text as a formula: it is refused with a message that points into it, or it has a value and its written form is the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use miserly_formula::{Direction, Formula};

const NAMES: [&str; 4] = ["wait", "estimate", "procs", "submit"];
const VALUES: [[f64; 4]; 3] =
    [[5400.0, 3600.0, 16.0, 1000.0], [0.0; 4], [f64::NAN, f64::INFINITY, -0.0, -1.5]];

fuzz_target!(|text: &str| {
    match Formula::parse(text, &NAMES) {
        Ok(formula) => {
            let written = formula.to_string();
            let again = Formula::parse(&written, &NAMES).expect(&written);
            assert_eq!(again, formula);
            for values in VALUES {
                let (one, other) = (formula.eval(&values), again.eval(&values));
                assert_eq!(Direction::Largest.rank(one), Direction::Largest.rank(other));
            }
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.character()));
            assert!(!error.to_string().contains('\n'));
        }
    }
});
