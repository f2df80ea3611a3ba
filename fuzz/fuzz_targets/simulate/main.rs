//! A small workload under any policy and convention: nothing goes wrong, the naive version of the policy makes
//! the same schedule, and so does the policy thrown away and rebuilt on the way.
//!
//! The ledger's own checks run too: cargo-fuzz builds with debug assertions.

#![no_main]

mod input;

mod schedule;

mod naive;

use libfuzzer_sys::fuzz_target;

use crate::input::Input;

fuzz_target!(|input: Input| {
    let case = input.case();
    let kept = schedule::run(&case, usize::MAX);
    schedule::check(&case, &kept);
    let decisions = schedule::decisions(&kept);
    assert_eq!(decisions, schedule::decisions(&schedule::run(&case, case.replace_every)), "rebuilt");
    if let Some(starts) = naive::starts(&case) {
        assert_eq!(kept.ended.iter().map(|job| job.start).collect::<Vec<_>>(), starts, "the naive version");
    }
});
