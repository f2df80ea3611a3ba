//! Six workloads that distinguish a correct EASY from a wrong one. Conservative backfilling gives
//! the same starts.
//!
//! A seventh tests the order of starts.

use miserly_core::EventOrder;

use super::{BOTH, CONSERVATIVE, EASY, Literal, check};

const A: Literal = (100, 100, 6, 100);
const B: Literal = (101, 50, 10, 50);

#[track_caller]
fn litmus(literals: &[Literal], starts: &[i64]) {
    for event_order in BOTH {
        check(EASY, event_order, 10, literals, starts);
        check(CONSERVATIVE, event_order, 10, literals, starts);
    }
}

#[test]
fn l1_the_head_is_protected() {
    litmus(&[A, B, (102, 1000, 4, 1000)], &[100, 200, 250]);
}

#[test]
fn l2_extra_nodes_are_used() {
    litmus(&[A, (101, 50, 8, 50), (102, 1000, 2, 1000)], &[100, 200, 102]);
}

#[test]
fn l3_a_backfill_may_end_at_the_shadow_time() {
    litmus(&[A, B, (102, 98, 4, 98)], &[100, 200, 102]);
}

#[test]
fn l4_a_running_jobs_end_is_not_known() {
    litmus(&[(100, 50, 6, 100), B, (102, 98, 4, 98)], &[100, 200, 102]);
}

#[test]
fn l5_an_early_end_opens_no_hole_that_is_too_short() {
    litmus(&[A, B, (102, 20, 4, 98), (103, 1000, 4, 1000)], &[100, 200, 102, 250]);
}

#[test]
fn l6_a_queued_jobs_runtime_is_not_known() {
    litmus(&[A, B, (102, 20, 4, 1000)], &[100, 200, 250]);
}

/// Jobs 6 and 15 start at 21 and end at 24. The start of 15 was decided at 17, that of 6 at 20, so
/// 15 ends first.
#[test]
fn l7_starts_in_the_order_of_their_decisions() {
    let literals = [
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
    check(CONSERVATIVE, EventOrder::Sequential, 16, &literals, &starts);
}
