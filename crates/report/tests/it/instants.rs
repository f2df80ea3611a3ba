//! Simultaneous events: both event orders, and jobs of zero length.

use insta::assert_snapshot;
use miserly_core::EventOrder::{self, Batched, Sequential};
use miserly_workload::Overrun;

use crate::chart::{Quad, chart_as};

#[track_caller]
fn chart(procs: u32, jobs: &[Quad], policy: &str, instants: EventOrder) -> String {
    chart_as(procs, jobs, policy, instants, Overrun::Kill)
}

/// Job 1 has an estimate of 10 and ends at 5; jobs 2 and 3 arrive at 5.
const EARLY_END: [Quad; 3] = [(0, 5, 3, 10), (5, 5, 4, 5), (5, 5, 1, 5)];

#[test]
fn an_early_end_and_two_submissions_batch() {
    // Terminations first, then one pass: the machine is free, job 2 takes all of it, job 3 follows.
    assert_snapshot!(chart(4, &EARLY_END, "easy", Batched), @"
       3 |.....22222.....
       2 |1111122222.....
       1 |1111122222.....
       0 |111112222233333
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason    promised
      1      3       0        10      0    5  at_once          -
      2      4       5         5      5   10  at_once          -
      3      1       5         5     10   15  reserved        10
    ");
}

#[test]
fn an_early_end_and_two_submissions_sequential() {
    // Submissions first, each with its pass: job 1 seems to run until 10, so job 2 waits for 10 and
    // job 3 passes it. The early end comes last, and job 2 no longer fits.
    assert_snapshot!(chart(4, &EARLY_END, "easy", Sequential), @"
       3 |..........22222
       2 |11111.....22222
       1 |11111.....22222
       0 |111113333322222
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0    5  at_once            -
      2      4       5         5     10   15  reserved          10
      3      1       5         5      5   10  backfilled         -
    ");
}

/// Job 1 ends at 5 as estimated; the same two jobs arrive at 5.
const END_ON_TIME: [Quad; 3] = [(0, 5, 3, 5), (5, 5, 4, 5), (5, 5, 1, 5)];

#[test]
fn an_end_on_time_counts_for_the_submissions_of_its_instant() {
    // Sequential too: a job whose estimate ends now is gone for them. The same schedule as batched.
    let sequential = chart(4, &END_ON_TIME, "easy", Sequential);
    assert_eq!(sequential, chart(4, &END_ON_TIME, "easy", Batched));
    assert_snapshot!(sequential, @"
       3 |.....22222.....
       2 |1111122222.....
       1 |1111122222.....
       0 |111112222233333
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason    promised
      1      3       0         5      0    5  at_once          -
      2      4       5         5      5   10  at_once          -
      3      1       5         5     10   15  reserved        10
    ");
}

/// Two jobs that come together, the longer one first.
const TOGETHER: [Quad; 2] = [(0, 5, 2, 5), (0, 2, 2, 2)];

#[test]
fn two_submissions_in_another_order_batch() {
    // One pass sees both: the shorter goes first.
    assert_snapshot!(chart(2, &TOGETHER, "fcfs(order=shortest)", Batched), @"
       1 |2211111
       0 |2211111
         +-----+-
          0
    job  procs  submit  estimate  start  end  reason    promised
      1      2       0         5      2    7  reserved         -
      2      2       0         2      0    2  at_once          -
    ");
}

#[test]
fn two_submissions_in_another_order_sequential() {
    // The pass for job 1 comes before job 2 is submitted.
    assert_snapshot!(chart(2, &TOGETHER, "fcfs(order=shortest)", Sequential), @"
       1 |1111122
       0 |1111122
         +-----+-
          0
    job  procs  submit  estimate  start  end  reason    promised
      1      2       0         5      0    5  at_once          -
      2      2       0         2      5    7  reserved         -
    ");
}

/// Jobs 1 and 2 run for no time, although job 1 requests 5 s. All three arrive at 0 and need the
/// machine.
const NO_LENGTH: [Quad; 3] = [(0, 0, 2, 5), (0, 0, 2, 0), (0, 3, 2, 3)];

#[test]
fn zero_runtimes_easy() {
    // Three rounds at 0: each job ends in the one after its start, and its end lets the next one
    // start.
    assert_snapshot!(chart(2, &NO_LENGTH, "easy", Batched), @"
       1 |333
       0 |333
         +---
          0
    job  procs  submit  estimate  start  end  reason   promised
      1      2       0         5      0    0  at_once         -
      2      2       0         0      0    0  at_once         5
      3      2       0         3      0    3  at_once  0.000001
    ");
}

#[test]
fn zero_runtimes_conservative() {
    // The plan keeps 5 s for job 1, and a tick for job 2, whose estimate is 0: job 3 is promised 5
    // s and a tick. Each end compresses the plan, at 0 again.
    let batch = chart(2, &NO_LENGTH, "conservative", Batched);
    assert_eq!(batch, chart(2, &NO_LENGTH, "conservative", Sequential));
    assert_snapshot!(batch, @"
       1 |333
       0 |333
         +---
          0
    job  procs  submit  estimate  start  end  reason   promised
      1      2       0         5      0    0  at_once         0
      2      2       0         0      0    0  at_once         5
      3      2       0         3      0    3  at_once  5.000001
    ");
}

/// All come at 0. Jobs 1, 2 and 5 end a second before their estimates, at 1 and at 2.
const DECIDED: [Quad; 6] =
    [(0, 1, 3, 2), (0, 1, 2, 2), (0, 1, 1, 1), (0, 1, 3, 1), (0, 1, 1, 2), (0, 1, 2, 1)];

#[test]
fn starts_of_an_instant_in_the_order_of_their_decisions() {
    // Jobs 2 and 5 start at 1. That of job 5 was decided at 0, that of job 2 at 1, when job 1 ended. So job 5 starts
    // and ends first: two processors are free then, for job 6. If job 2 ended first, job 4 would have its three.
    assert_snapshot!(chart(4, &DECIDED, "conservative", Sequential), @"
       3 |3...
       2 |12.4
       1 |1264
       0 |1564
         +----
          0
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         2      0    1  at_once            0
      2      2       0         2      1    2  reserved           2
      3      1       0         1      0    1  backfilled         0
      4      3       0         1      3    4  reserved           4
      5      1       0         2      1    2  reserved           1
      6      2       0         1      2    3  reserved           3
    ");
}
