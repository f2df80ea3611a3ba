//! Six workloads of three or four jobs that tell a right EASY from a wrong one.

use crate::support::{BOTH, Quad, jobs, run};

#[track_caller]
fn check(quads: &[Quad], starts: &[i64]) {
    for policy in ["easy", "conservative"] {
        for instants in BOTH {
            assert_eq!(run(10, &jobs(quads), policy, instants).starts(), starts, "{policy}, {instants}");
        }
    }
}

const A: Quad = (100, 100, 6, 100);
const B: Quad = (101, 50, 10, 50);

#[test]
fn l1_the_reservation_of_the_head_is_protected() {
    check(&[A, B, (102, 1000, 4, 1000)], &[100, 200, 250]);
}

#[test]
fn l2_the_extra_nodes_are_used() {
    check(&[A, (101, 50, 8, 50), (102, 1000, 2, 1000)], &[100, 200, 102]);
}

#[test]
fn l3_a_backfill_that_ends_exactly_at_the_shadow_time() {
    check(&[A, B, (102, 98, 4, 98)], &[100, 200, 102]);
}

#[test]
fn l4_no_peeking_at_the_true_end_of_a_running_job() {
    check(&[(100, 50, 6, 100), B, (102, 98, 4, 98)], &[100, 200, 102]);
}

#[test]
fn l5_planned_again_after_an_early_end() {
    check(&[A, B, (102, 20, 4, 98), (103, 1000, 4, 1000)], &[100, 200, 102, 250]);
}

#[test]
fn l6_no_peeking_at_the_true_runtime_of_a_waiting_job() {
    check(&[A, B, (102, 20, 4, 1000)], &[100, 200, 250]);
}
