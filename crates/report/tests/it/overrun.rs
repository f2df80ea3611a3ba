//! Runtimes above the estimate, under each rule.

use insta::assert_snapshot;
use miserly_core::EventOrder;
use miserly_workload::Overrun::{self, Extend, Kill, Run};

use crate::chart::{Quad, chart_as};

#[track_caller]
fn chart(jobs: &[Quad], policy: &str, overrun: Overrun) -> String {
    chart_as(4, jobs, policy, EventOrder::Batched, overrun)
}

/// Job 1 has an estimate of 8 and runs for 12. Job 2 needs the whole machine; jobs 3 and 4 fit
/// beside job 1.
const JOBS: [Quad; 4] = [(0, 12, 3, 8), (1, 4, 4, 4), (2, 3, 1, 3), (9, 2, 1, 2)];

#[test]
fn kill() {
    // Job 1 is killed at 8, where job 2 starts as promised. Job 3 ran in between; job 4 comes after
    // 2.
    assert_snapshot!(chart(&JOBS, "easy", Kill), @"
       3 |..333...2222..
       2 |111111112222..
       1 |111111112222..
       0 |11111111222244
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         8      0    8  at_once            -  killed
      2      4       1         4      8   12  reserved           8
      3      1       2         3      2    5  backfilled         -
      4      1       9         2     12   14  reserved          12
    ");
}

#[test]
fn extend() {
    // Job 1's estimate becomes 12 before any scheduling: job 2 is promised 12, and job 4 fits
    // before that.
    assert_snapshot!(chart(&JOBS, "easy", Extend), @"
       3 |..333....44.2222
       2 |1111111111112222
       1 |1111111111112222
       0 |1111111111112222
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        12      0   12  at_once            -
      2      4       1         4     12   16  reserved          12
      3      1       2         3      2    5  backfilled         -
      4      1       9         2      9   11  backfilled         -
    ");
}

#[test]
fn run() {
    // Job 1 runs on, overdue from 8, expected to end at every next tick: job 2's promise of 8 is
    // broken, and job 4 may not pass it, since it would end after that tick. At 12 job 1 ends and
    // job 2 starts.
    assert_snapshot!(chart(&JOBS, "easy", Run), @"
       3 |..333.......2222..
       2 |1111111111112222..
       1 |1111111111112222..
       0 |111111111111222244
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         8      0   12  at_once            -
      2      4       1         4     12   16  reserved           8  promise broken
      3      1       2         3      2    5  backfilled         -
      4      1       9         2     16   18  reserved          16
    ");
}

#[test]
fn a_promise_broken_by_an_overdue_job() {
    // Job 1 has an estimate of 6 and runs for 10. Job 3 was promised 6 while its processors are
    // still held: that promise breaks, and job 3 starts at 10. Job 4 waits for job 2 in any case:
    // its promise of 20 is kept.
    let jobs = [(0, 10, 3, 6), (0, 20, 1, 20), (1, 4, 3, 4), (2, 5, 4, 5)];
    assert_snapshot!(chart(&jobs, "conservative", Run), @"
       3 |2222222222222222222244444
       2 |11111111113333......44444
       1 |11111111113333......44444
       0 |11111111113333......44444
         +-----+----+----+----+----
          0         10        20
    job  procs  submit  estimate  start  end  reason    promised
      1      3       0         6      0   10  at_once          0
      2      1       0        20      0   20  at_once          0
      3      3       1         4     10   14  reserved         6  promise broken
      4      4       2         5     20   25  reserved        20
    ");
}

#[test]
fn a_chain_of_broken_promises() {
    // Jobs 2 and 3 follow job 1 without a gap: both promises break, and both start as late as it
    // was.
    assert_snapshot!(chart(&[(0, 12, 3, 8), (1, 4, 4, 4), (2, 2, 4, 2)], "conservative", Run), @"
       3 |............222233
       2 |111111111111222233
       1 |111111111111222233
       0 |111111111111222233
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason    promised
      1      3       0         8      0   12  at_once          0
      2      4       1         4     12   16  reserved         8  promise broken
      3      4       2         2     16   18  reserved        12  promise broken
    ");
}
