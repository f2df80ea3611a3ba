//! The examples for library users: each runs, and prints the figures of its jobs.

use std::path::Path;

#[expect(dead_code, reason = "the test calls what main prints")]
#[path = "../../examples/first_policy.rs"]
mod first_policy;

#[expect(dead_code, reason = "the test calls what main prints")]
#[path = "../../examples/simulate_log.rs"]
mod simulate_log;

/// On 10 processors, job 1 has all until 100. In order of arrival, and widest first, jobs 2 and 3 start then, with 6 and 4
/// processors, and job 4 starts at 150. Narrowest first, jobs 4 and 3 start then, and job 2 waits until 200.
#[test]
fn a_policy_of_a_library_user() {
    let table = first_policy::run().unwrap();
    let waits =
        table.lines().find_map(|line| line.strip_prefix("wait, mean (s)")).expect("a row of the table");
    // A star marks the best of the row.
    assert_eq!(waits.split_whitespace().collect::<Vec<_>>(), ["86.00*", "98.50", "86.00*"]);
}

/// Job 1 runs from 100 to 200, job 2 needs all processors and follows until 250, and job 3 runs until 1250.
#[test]
fn a_log_under_a_policy() {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/L1.swf");
    let expect = "jobs         3\nmean wait    82.3 s\nutilization  0.443\n";
    assert_eq!(simulate_log::run(&log, "easy").unwrap(), expect);
}
