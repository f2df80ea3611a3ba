//! Orders by formula: their agreement with the criteria, and one of the literature's worked by
//! hand.

use miserly_core::EventOrder;
use proptest::prelude::*;

use crate::support::{BOTH, Quad, jobs, run, workload};

/// A criterion, and a formula with the same order for jobs with estimates in whole seconds.
const SAME: [(&str, &str); 8] = [
    ("shortest", "'1 / estimate'"),
    ("shortest", "sjf"),
    ("longest", "'estimate'"),
    ("narrowest", "sqf"),
    ("widest", "'procs'"),
    ("smallest", "saf"),
    ("arrival", "'-submit'"),
    // It changes with time, and the order never does.
    ("arrival", "'wait'"),
];

proptest! {
    #[test]
    fn a_criterion_written_as_a_formula((procs, quads) in workload(false), which in 0..SAME.len()) {
        let least = |&(submit, run, procs, estimate): &Quad| (submit, run, procs, estimate.max(1));
        let jobs = jobs(&quads.iter().map(least).collect::<Vec<_>>());
        let (criterion, formula) = SAME[which];
        for instants in BOTH {
            for policy in ["fcfs", "easy", "conservative", "sorted"] {
                let by = |order| run(procs, &jobs, &format!("{policy}(order={order})"), instants).starts();
                prop_assert_eq!(by(criterion), by(formula), "{}, {}", policy, formula);
            }
        }
    }
}

#[test]
fn f1_by_hand() {
    // All wait for job 1, until 1200. The least of log10(estimate) * procs + 870 * log10(submit)
    // comes first: job 2 has 3 * 100 + 870 * 3 = 2910, job 3 has 1 * 10 + 870 * 3.0414 = 2656, job
    // 4 has 1 * 100 + 870 * 3.0755 = 2776.
    let quads = [(0, 1200, 100, 1200), (1000, 10, 100, 1000), (1100, 10, 10, 10), (1190, 10, 100, 10)];
    for instants in BOTH {
        assert_eq!(run(100, &jobs(&quads), "fcfs(order=f1)", instants).starts(), [0, 1220, 1200, 1210]);
        assert_eq!(run(100, &jobs(&quads), "fcfs", instants).starts(), [0, 1200, 1210, 1220]);
    }
}

#[test]
fn equal_values_tie_and_the_earlier_submission_comes_first() {
    // At 200 both waiting jobs have the value 413/60. In floating-point arithmetic job 3 would have
    // 6.883333333333334 and job 2, which came before it, 6.883333333333333.
    let quads = [(0, 200, 3, 200), (80, 10, 3, 480), (140, 10, 1, 180)];
    let formula = "'wait / 3600 + 5 * (wait + estimate) / estimate + 0.2 * procs'";
    for policy in ["priority-bf", "priority-backfill", &format!("fcfs(order={formula})")] {
        for instants in BOTH {
            assert_eq!(run(3, &jobs(&quads), policy, instants).starts(), [0, 200, 210], "{policy}");
        }
    }
}

#[test]
fn a_weight_adds_to_what_a_formula_gives() {
    // At 100 the narrow job 3 has waited for 1 second, the wide job 2 for 91: -8 + 0.1 * 91 is more
    // than -1 + 0.1 * 1.
    let quads = [(0, 100, 8, 100), (9, 10, 8, 10), (99, 10, 1, 10)];
    for (order, starts) in [("sqf", [0, 110, 100]), ("sqf, weight=0.1", [0, 100, 110])] {
        for instants in BOTH {
            let policy = format!("fcfs(order={order})");
            assert_eq!(run(8, &jobs(&quads), &policy, instants).starts(), starts, "{policy}");
        }
    }
}

#[test]
fn what_is_not_a_number_comes_last() {
    // unicep of a job on one processor is 0 / 0 as it comes, and infinite ever after. So at 10 job
    // 4 comes first and job 2 last, behind job 3, which does not fit; at 15 job 2 is before job 3.
    let quads = [(0, 10, 2, 10), (10, 5, 1, 5), (10, 5, 2, 5), (5, 5, 1, 5)];
    let schedule = run(2, &jobs(&quads), "fcfs(order=unicep)", EventOrder::Batched);
    assert_eq!(schedule.starts(), [0, 15, 20, 10]);
}
