//! The examples for library users: each runs, and prints the figures of its jobs.

use std::path::Path;

#[expect(dead_code, reason = "the test calls what main prints")]
#[path = "../../examples/first_policy.rs"]
mod first_policy;

#[expect(dead_code, reason = "the test calls what main prints")]
#[path = "../../examples/simulate_log.rs"]
mod simulate_log;

/// On 10 processors, job 1 has 6 of them until 100. EASY starts 3 at 2, and 2 at 102; 4 waits behind it until 152. Narrowest
/// first starts 4 at 3 and 3 at 100, and widest first 2 as soon as all processors are free.
#[test]
fn a_policy_of_a_library_user() {
    let lines = first_policy::run().unwrap();
    assert_eq!(lines, "");
}

#[test]
fn a_log_under_a_policy() {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/L1.swf");
    assert_eq!(simulate_log::run(&log, "easy").unwrap(), "");
}
