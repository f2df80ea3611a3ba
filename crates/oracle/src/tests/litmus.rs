//! Six workloads that tell a right EASY from a wrong one; conservative starts them alike.

use super::{BOTH, CONSERVATIVE, EASY, Literal, check};

const A: Literal = (100, 100, 6, 100);
const B: Literal = (101, 50, 10, 50);

#[track_caller]
fn litmus(literals: &[Literal], starts: &[i64]) {
    for instants in BOTH {
        check(EASY, instants, 10, literals, starts);
        check(CONSERVATIVE, instants, 10, literals, starts);
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
