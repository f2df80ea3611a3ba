//! Any text as a policy, a filter or a model of the estimates: it is refused with a message, or its written form
//! means the same.

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use miserly_core::{Machine, Span};
use miserly_policies::PolicySpec;
use miserly_workload::swf::Record;
use miserly_workload::{Estimates, Filter};

/// What the text means, if anything, once its written form has been seen to mean the same.
fn understood<T>(text: &str) -> Option<T>
where
    T: FromStr<Err: Display + Debug> + Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let written = value.to_string();
            assert_eq!(written.parse::<T>().expect(&written).to_string(), written);
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fuzz_target!(|text: &str| {
    if let Some(chosen) = understood::<PolicySpec>(text) {
        let again: PolicySpec = chosen.to_string().parse().unwrap();
        assert_eq!(chosen.promises(), again.promises());
        // A point of the family on hosts may have a plainer policy stand in for it, which has its own name.
        assert!(!chosen.build(&Machine::plain(8), 0).unwrap().name().is_empty());
    }
    if let Some(filter) = understood::<Filter>(text) {
        assert_eq!(filter.to_string().parse::<Filter>().as_ref(), Ok(&filter));
        filter.matches(&Record::unknown());
    }
    if let Some(model) = understood::<Estimates>(text) {
        assert_eq!(model.to_string().parse::<Estimates>(), Ok(model));
        for runtime in [0, 1, 1_000_000, i64::MAX] {
            let runtime = Span::from_ticks(runtime);
            assert!(model.estimate(runtime, runtime, 1, 1) >= Span::ZERO);
        }
    }
});
