//! Six workloads of three or four jobs that separate a right EASY from a wrong one, and one for the
//! order of starts.

use miserly_core::EventOrder;

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

/// Jobs 6 and 15 start at 21 and end at 24. The start of 15 was decided at 17, that of 6 at 20: so
/// 15 ends first.
#[test]
fn l7_starts_in_the_order_of_their_decisions() {
    let quads = [
        (3, 5, 16, 15),
        (3, 4, 16, 20),
        (4, 1, 5, 6),
        (5, 3, 13, 6),
        (5, 1, 2, 4),
        (5, 3, 10, 8),
        (5, 2, 1, 4),
        (5, 3, 16, 15),
        (6, 2, 2, 3),
        (8, 3, 11, 3),
        (8, 2, 2, 2),
        (11, 2, 2, 2),
        (11, 5, 7, 5),
        (12, 1, 16, 1),
        (15, 3, 2, 9),
    ];
    let starts = [3, 8, 12, 14, 12, 21, 12, 24, 12, 17, 12, 12, 27, 20, 21];
    assert_eq!(run(16, &jobs(&quads), "conservative", EventOrder::Sequential).starts(), starts);
}
