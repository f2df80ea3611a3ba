//! The choice of victims and hosts.

use insta::assert_snapshot;

use super::{USUAL, host, immediate};
use crate::chart::{asks, hosts};

#[test]
fn only_where_enough_memory_is_free() {
    // Job 1 leaves 20 kB. In a quantum a job has at most 30, and at most its request: jobs 2 and 4,
    // with 20, run. Job 3, with 25, waits although there is a victim for it at 9, as for job 4 at
    // 10.
    let jobs = [
        asks((0, 10, 4, 10)).memory(80),
        asks((4, 2, 2, 8)).memory(20),
        asks((9, 2, 2, 8)).memory(25),
        asks((10, 1, 2, 8)).memory(20),
    ];
    assert_snapshot!(immediate(&host(), &jobs, "quantum=3, after=2, memory=30"), @"
       3 |1111..1111.11..
       2 |1111..1111.11..
       1 |111122111141133
       0 |111122111141133
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   13  immediate         -
      2      2       4         8      4    6  quantum           -
      3      2       9         8     13   15  reserved          -
      4      2      10         8     10   11  quantum           -
    ");
}

#[test]
fn only_those_who_have_run_for_long_enough() {
    // A victim must have run for 4 s. At 3 job 1 has run for 3, and at 8 for 2 since it was
    // resumed: jobs 2 and 4 wait in the queue. At 5 it has run for 5, and at 10 for exactly 4. A
    // waiting job has no later quantum, even when job 1 may be preempted.
    let jobs = [
        asks((0, 10, 2, 10)),
        asks((3, 1, 2, 1)),
        asks((5, 1, 2, 1)),
        asks((8, 1, 2, 1)),
        asks((10, 1, 2, 1)),
    ];
    assert_snapshot!(immediate(&hosts(&[(2, 100)]), &jobs, "quantum=3, after=4"), @"
       1 |11111311115124
       0 |11111311115124
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        10      0   12  immediate         -
      2      2       3         1     12   13  reserved          -
      3      2       5         1      5    6  quantum           -
      4      2       8         1     13   14  reserved          -
      5      2      10         1     10   11  quantum           -
    ");
}

#[test]
fn nobody_in_a_quantum_is_preempted() {
    // Job 2 has run for 3 s at 7, in a quantum of 6: job 3 waits all the same.
    let jobs = [asks((0, 10, 2, 10)), asks((4, 5, 2, 9)), asks((7, 1, 2, 1))];
    assert_snapshot!(immediate(&hosts(&[(2, 100)]), &jobs, "quantum=6, after=2"), @"
       1 |1111222221111113
       0 |1111222221111113
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        10      0   15  immediate         -
      2      2       4         9      4    9  quantum           -
      3      2       7         1     15   16  reserved          -
    ");
}

#[test]
fn an_overdue_job_may_be_preempted() {
    // Job 1 has an estimate of 6 and runs for 10. At 8 it is preempted; at 10 it resumes for the
    // remaining 2 s.
    let jobs = [asks((0, 10, 4, 6)), asks((8, 2, 2, 2))];
    assert_snapshot!(immediate(&host(), &jobs, USUAL), @"
       3 |11111111..11
       2 |11111111..11
       1 |111111112211
       0 |111111112211
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         6      0   12  immediate         -
      2      2       8         2      8   10  quantum           -
    ");
}

#[test]
fn the_smallest_slowdown_first() {
    // After 4 s, so that jobs 2 and 3 have to wait for job 1. Both start at 4. At 10 job 2 has been
    // there for 9 s, job 3 for 7, and both have run for 6: job 3 goes.
    let jobs = [asks((0, 4, 4, 4)), asks((1, 10, 2, 10)), asks((3, 10, 2, 10)), asks((10, 2, 2, 2))];
    assert_snapshot!(immediate(&host(), &jobs, "quantum=3, after=4"), @"
       3 |1111333333443333
       2 |1111333333443333
       1 |11112222222222..
       0 |11112222222222..
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      2       1        10      4   14  reserved          -
      3      2       3        10      4   16  reserved          -
      4      2      10         2     10   12  quantum           -
    ");
}

#[test]
fn who_was_preempted_has_the_larger_slowdown() {
    // At 5 jobs 1 and 2 are alike, and job 1, which came first, goes. At 10 it has run for 8 s of
    // 10, job 2 for all of them, so it is job 2's turn.
    let jobs = [asks((0, 14, 2, 14)), asks((0, 14, 2, 14)), asks((5, 2, 2, 2)), asks((10, 2, 2, 2))];
    assert_snapshot!(immediate(&host(), &jobs, USUAL), @"
       3 |2222222222442222
       2 |2222222222442222
       1 |1111133111111111
       0 |1111133111111111
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        14      0   16  immediate         -
      2      2       0        14      0   16  immediate         -
      3      2       5         2      5    7  quantum           -
      4      2      10         2     10   12  quantum           -
    ");
}

#[test]
fn as_many_as_it_takes() {
    // After 4 s, as before. At 12 jobs 2, 3 and 4 have run for 8 s each, with residence times of
    // 11, 10 and 9. Jobs 4 and 3 yield the three processors for job 5, and job 2 runs on. One
    // processor is idle.
    let jobs = [
        asks((0, 4, 6, 4)),
        asks((1, 12, 2, 12)),
        asks((2, 12, 2, 12)),
        asks((3, 12, 2, 12)),
        asks((12, 2, 3, 2)),
    ];
    assert_snapshot!(immediate(&hosts(&[(6, 100)]), &jobs, "quantum=3, after=4"), @"
       5 |111144444444..4444
       4 |111144444444554444
       3 |111133333333553333
       2 |111133333333553333
       1 |1111222222222222..
       0 |1111222222222222..
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      6       0         4      0    4  immediate         -
      2      2       1        12      4   16  reserved          -
      3      2       2        12      4   18  reserved          -
      4      2       3        12      4   18  reserved          -
      5      3      12         2     12   14  quantum           -
    ");
}

#[test]
fn idle_processors_come_first() {
    // Job 3 needs two processors and one is idle: one victim of one processor is enough, and of the
    // two it is job 1, which came first.
    let jobs = [asks((0, 10, 1, 10)), asks((0, 10, 2, 10)), asks((4, 2, 2, 9))];
    assert_snapshot!(immediate(&host(), &jobs, USUAL), @"
       3 |....33......
       2 |2222222222..
       1 |2222222222..
       0 |111133111111
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      1       0        10      0   12  immediate         -
      2      2       0        10      0   10  immediate         -
      3      2       4         9      4    6  quantum           -
    ");
}

#[test]
fn the_host_with_the_fewest_idle_processors_afterwards() {
    // For job 3 a would have job 1 go, and two processors idle; b (processors 4 to 6) job 2, and
    // one idle.
    let jobs = [asks((0, 10, 4, 10)), asks((0, 10, 3, 10)), asks((4, 2, 2, 2))];
    assert_snapshot!(immediate(&hosts(&[(4, 100), (3, 100)]), &jobs, USUAL), @"
       6 |2222..222222
       5 |222233222222
       4 |222233222222
       3 |1111111111..
       2 |1111111111..
       1 |1111111111..
       0 |1111111111..
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   10  immediate         -
      2      3       0        10      0   12  immediate         -
      3      2       4         2      4    6  quantum           -
    ");
}

#[test]
fn not_on_a_host_without_memory() {
    // As before, but b has only 5 kB left of the 10 that job 3 asks for.
    let jobs = [asks((0, 10, 4, 10)), asks((0, 10, 3, 10)).memory(95), asks((4, 2, 2, 2)).memory(10)];
    assert_snapshot!(immediate(&hosts(&[(4, 100), (3, 100)]), &jobs, USUAL), @"
       6 |2222222222..
       5 |2222222222..
       4 |2222222222..
       3 |1111..111111
       2 |1111..111111
       1 |111133111111
       0 |111133111111
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   12  immediate         -
      2      3       0        10      0   10  immediate         -
      3      2       4         2      4    6  quantum           -
    ");
}

#[test]
fn a_victim_keeps_its_memory() {
    // After 4 s: when jobs 2 and 3 arrive, no job may be preempted, so they wait. At 4 job 4
    // preempts job 1 and leaves two processors idle. Job 3 takes them, because it ends at 7, when
    // job 1 is to resume. Job 2, which precedes it in the queue, needs 50 kB, and job 1 keeps its
    // 60. Job 4 ends at 6, but job 1 needs all four processors and resumes at 7.
    let jobs = [
        asks((0, 10, 4, 10)).memory(60),
        asks((3, 1, 2, 1)).memory(50),
        asks((3, 3, 2, 3)).memory(20),
        asks((4, 2, 2, 8)).memory(10),
    ];
    assert_snapshot!(immediate(&host(), &jobs, "quantum=3, after=4"), @"
       3 |1111333111111.
       2 |1111333111111.
       1 |111144.1111112
       0 |111144.1111112
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0        10      0   13  immediate          -
      2      2       3         1     13   14  reserved           -
      3      2       3         3      4    7  backfilled         -
      4      2       4         8      4    6  quantum            -
    ");
}
