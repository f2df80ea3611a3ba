//! Effects of a quantum on the starts of other jobs, and its limits with `keep_promises`.

use insta::assert_snapshot;
use miserly_core::Machine;

use super::{USUAL, host, immediate};
use crate::chart::{Asks, asks, chart_on_both, hosts};

const KEEPING: &str = "quantum=3, after=2, keep_promises=true";

/// Job 2 is the head, to start at 10. Job 3 comes while job 1 may be preempted.
fn before_a_head() -> [Asks; 3] {
    [asks((0, 10, 4, 10)), asks((1, 2, 4, 2)), asks((4, 1, 2, 5))]
}

#[test]
fn a_quantum_that_moves_a_start() {
    // Job 1 ends a second later, and job 2 starts as much later: nothing was promised.
    assert_snapshot!(immediate(&host(), &before_a_head(), USUAL), @"
       3 |1111.11111122
       2 |1111.11111122
       1 |1111311111122
       0 |1111311111122
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   11  immediate         -
      2      4       1         2     11   13  reserved          -
      3      2       4         5      4    5  quantum           -
    ");
}

#[test]
fn no_quantum_that_would_move_a_promised_start() {
    // With a quantum until 7 job 1 would have to be expected at 13, and job 2 was promised 10. Job
    // 3 waits.
    assert_snapshot!(immediate(&host(), &before_a_head(), KEEPING), @"
       3 |111111111122.
       2 |111111111122.
       1 |1111111111223
       0 |1111111111223
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   10  immediate         -
      2      4       1         2     10   12  reserved         10
      3      2       4         5     12   13  reserved         12
    ");
}

/// Host a, processors 0 to 2, has the memory for job 3, b has not.
fn two_hosts() -> (Machine, [Asks; 4]) {
    let jobs = [asks((0, 10, 3, 10)), asks((0, 5, 4, 5)), asks((1, 2, 3, 2)).memory(150), asks((3, 2, 2, 6))];
    (hosts(&[(3, 200), (4, 100)]), jobs)
}

#[test]
fn on_the_host_that_would_be_fuller() {
    // Job 4 leaves one processor idle on a, two on b: job 1 is preempted, and job 3 starts at 12.
    let (machine, jobs) = two_hosts();
    assert_snapshot!(immediate(&machine, &jobs, USUAL), @"
       6 |22222.........
       5 |22222.........
       4 |22222.........
       3 |22222.........
       2 |111..111111133
       1 |11144111111133
       0 |11144111111133
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      3       0        10      0   12  immediate         -
      2      4       0         5      0    5  immediate         -
      3      3       1         2     12   14  reserved          -
      4      2       3         6      3    5  quantum           -
    ");
}

#[test]
fn on_the_host_where_no_promised_start_moves() {
    // Job 3 was promised 10, on a. So job 2 is preempted, on b, until 6: promises count on what it
    // left, though job 4 ends at 5.
    let (machine, jobs) = two_hosts();
    assert_snapshot!(immediate(&machine, &jobs, KEEPING), @"
       6 |222...22....
       5 |222...22....
       4 |22244.22....
       3 |22244.22....
       2 |111111111133
       1 |111111111133
       0 |111111111133
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      3       0        10      0   10  immediate         -
      2      4       0         5      0    8  immediate         -
      3      3       1         2     10   12  reserved         10
      4      2       3         6      3    5  quantum           -
    ");
}

#[test]
fn a_quantum_that_moves_no_promised_start() {
    // Every job has a promise: job 3 is to start at 9, when job 2 ends, job 4 at 11. At 3 jobs 1
    // and 2 are alike, and job 1 goes until 6: it ends at 7 then, long before 9. Job 4 is done at
    // 5.
    let jobs = [asks((0, 4, 2, 4)), asks((0, 9, 2, 9)), asks((1, 2, 4, 2)), asks((3, 2, 2, 9))];
    let policy = "immediate(policy='fcfs-backfill(depth=kept)', quantum=3, after=2, keep_promises=true)";
    assert_snapshot!(chart_on_both(&host(), &jobs, policy), @"
       3 |22222222233
       2 |22222222233
       1 |11144.1..33
       0 |11144.1..33
         +-----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         4      0    7  immediate         0
      2      2       0         9      0    9  immediate         0
      3      4       1         2      9   11  reserved          9
      4      2       3         9      3    5  quantum          11
    ");
}

#[test]
fn no_quantum_that_would_miss_the_jobs_own_start() {
    // Job 2 is promised 4 when it comes; the quantum would be over at 5.
    let jobs = [asks((0, 4, 4, 4)), asks((2, 3, 4, 3))];
    assert_snapshot!(immediate(&host(), &jobs, KEEPING), @"
       3 |1111222
       2 |1111222
       1 |1111222
       0 |1111222
         +-----+-
          0
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      4       2         3      4    7  reserved          4
    ");
}
