//! The end of a quantum and the resources in it.

use insta::assert_snapshot;

use super::{USUAL, host, immediate};
use crate::chart::{Asks, asks, chart_on, chart_on_both, hosts};

/// Job 1 has the host; the estimate of job 2 is 8 s.
fn a_short_one(runtime: i64) -> [Asks; 2] {
    [asks((0, 10, 4, 10)), asks((4, runtime, 2, 8))]
}

#[test]
fn a_job_that_ends_in_its_quantum() {
    // Job 1 leaves its processors at 4, and has them back when job 2 ends, at 6, not only when the
    // quantum would, at 7. It has 6 s left then.
    assert_snapshot!(immediate(&host(), &a_short_one(2), USUAL), @"
       3 |1111..111111
       2 |1111..111111
       1 |111122111111
       0 |111122111111
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   12  immediate         -
      2      2       4         8      4    6  quantum           -
    ");
}

#[test]
fn a_job_that_does_not_end_in_its_quantum() {
    // At 7 job 2 is put back into the queue, and what it did is lost. It gets no second quantum,
    // though job 1 has run for long enough again at 9: it starts at 13, anew, for 5 s.
    assert_snapshot!(immediate(&host(), &a_short_one(5), USUAL), @"
       3 |1111...111111.....
       2 |1111...111111.....
       1 |111122211111122222
       0 |111122211111122222
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   13  immediate         -
      2      2       4         8     13   18  reserved          -
    ");
}

#[test]
fn a_job_that_keeps_its_work() {
    // As before, but of its 5 s job 2 has only 2 left at 13.
    assert_snapshot!(immediate(&host(), &a_short_one(5), "quantum=3, after=2, keep_work=true"), @"
       3 |1111...111111..
       2 |1111...111111..
       1 |111122211111122
       0 |111122211111122
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   13  immediate         -
      2      2       4         8     13   15  reserved          -
    ");
}

#[test]
fn a_job_as_long_as_the_quantum() {
    // Job 2 ends at 7, just when its quantum does: it is done. Job 3 comes at that instant, when
    // job 1 has its processors back and has run on for no time at all.
    let jobs = [&a_short_one(3)[..], &[asks((7, 1, 1, 1))]].concat();
    assert_snapshot!(immediate(&host(), &jobs, USUAL), @"
       3 |1111...111111.
       2 |1111...111111.
       1 |1111222111111.
       0 |11112221111113
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   13  immediate         -
      2      2       4         8      4    7  quantum           -
      3      1       7         1     13   14  reserved          -
    ");
}

#[test]
fn a_job_that_outgrows_its_memory() {
    // Job 2 asks for 60 kB, has 30 in the quantum, and uses 31. So it is put back at 7, though it
    // would have ended at 6, and has to wait for job 1's memory.
    let mut jobs = a_short_one(2);
    jobs[0] = jobs[0].memory(50);
    jobs[1] = Asks { used: 31, ..jobs[1].memory(60) };
    assert_snapshot!(immediate(&host(), &jobs, "quantum=3, after=2, memory=30"), @"
       3 |1111...111111..
       2 |1111...111111..
       1 |111122211111122
       0 |111122211111122
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   13  immediate         -
      2      2       4         8     13   15  reserved          -
    ");
}

#[test]
fn a_job_that_asks_for_more_memory_than_it_uses() {
    // As before, but job 2 uses 30 kB, and ends in its quantum.
    let mut jobs = a_short_one(2);
    jobs[0] = jobs[0].memory(50);
    jobs[1] = Asks { used: 30, ..jobs[1].memory(60) };
    assert_eq!(
        immediate(&host(), &jobs, "quantum=3, after=2, memory=30"),
        immediate(&host(), &a_short_one(2), USUAL)
    );
}

#[test]
fn a_quantum_for_want_of_memory() {
    // Two processors and 20 kB are idle. Job 2 requests 50 kB, has 20 in the quantum, and uses no
    // more. No job is preempted.
    let jobs = [asks((0, 10, 2, 10)).memory(80), Asks { used: 20, ..asks((1, 2, 2, 9)).memory(50) }];
    let chart = immediate(&host(), &jobs, "quantum=3, after=2, memory=20");
    assert_snapshot!(chart, @"
       3 |.22.......
       2 |.22.......
       1 |1111111111
       0 |1111111111
         +-----+----
          0
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        10      0   10  immediate         -
      2      2       1         9      1    3  quantum           -
    ");
    assert_eq!(chart_on_both(&host(), &jobs, "soon(policy=fcfs-backfill, quantum=3, memory=20)"), chart);
}

#[test]
fn two_at_one_time() {
    // Job 2 preempts job 1, and job 3 finds two processors idle. Job 1 has its own back when both
    // have ended.
    let jobs = [&a_short_one(2)[..], &[asks((4, 1, 2, 8))]].concat();
    assert_snapshot!(immediate(&host(), &jobs, USUAL), @"
       3 |11113.111111
       2 |11113.111111
       1 |111122111111
       0 |111122111111
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   12  immediate         -
      2      2       4         8      4    6  quantum           -
      3      2       4         8      4    5  quantum           -
    ");
}

#[test]
fn a_quantum_on_processors_that_a_victim_left_idle() {
    // Job 2 preempts job 1 at 4, until 7. Job 3 comes at 5 and needs two processors: they are idle,
    // but a quantum until 8 would keep job 1 from them at 7. So it waits for job 1, which has run
    // for 4 and runs for 6 more.
    let jobs = [asks((0, 10, 4, 10)), asks((4, 3, 2, 8)), asks((5, 3, 2, 8))];
    assert_snapshot!(immediate(&host(), &jobs, USUAL), @"
       3 |1111...111111...
       2 |1111...111111...
       1 |1111222111111333
       0 |1111222111111333
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   13  immediate         -
      2      2       4         8      4    7  quantum           -
      3      2       5         8     13   16  reserved          -
    ");
}

#[test]
fn soon_waits_for_a_hole() {
    // No job is preempted. Job 3 is the head with a start at 8, so job 4 with its estimate of 9
    // does not fit at 3, when job 2 ends. It has a quantum there and ends in it at 5. Then job 5, a
    // later arrival, has its quantum. At 8 it is requeued and job 3 has the whole host; there was
    // no hole before.
    let jobs =
        [asks((0, 8, 2, 8)), asks((0, 3, 2, 3)), asks((1, 5, 4, 5)), asks((1, 2, 2, 9)), asks((2, 5, 2, 9))];
    let policy = "soon(policy=fcfs-backfill, quantum=3)";
    assert_snapshot!(chart_on_both(&host(), &jobs, policy), @"
       3 |2224455533333.....
       2 |2224455533333.....
       1 |111111113333355555
       0 |111111113333355555
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         8      0    8  immediate         -
      2      2       0         3      0    3  immediate         -
      3      4       1         5      8   13  reserved          -
      4      2       1         9      3    5  quantum           -
      5      2       2         9     13   18  reserved          -
    ");
}

#[test]
fn ten_minutes_a_minute_and_a_gigabyte() {
    // A column is a minute. Job 2 comes a second before job 1 has run for ten minutes, job 3 just
    // then. Job 1 leaves one GB; job 3 asks for four and uses no more than that, for half a minute.
    // So job 1 ends half a minute late, and job 2 starts.
    const GB: u64 = 1 << 20;
    let jobs = [
        asks((0, 1800, 2, 1800)).memory(3 * GB),
        asks((599, 60, 2, 600)).memory(GB),
        Asks { used: GB, ..asks((600, 30, 2, 600)).memory(4 * GB) },
    ];
    assert_snapshot!(chart_on(&hosts(&[(2, 4 * GB)]), &jobs, "immediate", 60), @"
       1 |11111111113111111111111111111112
       0 |11111111113111111111111111111112
         +-----+----+----+----+----+----+-
          0         600       1200      1800
    job  procs  submit  estimate  start   end  reason     promised
      1      2       0      1800      0  1830  immediate         -
      2      2     599       600   1830  1890  reserved          -
      3      2     600       600    600   630  quantum           -
    ");
}
