//! EASY backfilling (spec: Zotkin et al. §2): the head's shadow time and extra nodes, and the jobs
//! that may pass it.

use insta::assert_snapshot;

use crate::chart::{Quad, chart};

/// Holds 4 of 6 processors until 10.
const RUNS: Quad = (0, 10, 4, 10);
/// Needs 5: it waits for 10, and one processor will be left over then.
const HEAD: Quad = (1, 5, 5, 5);

#[test]
fn the_shadow_time_of_the_head() {
    // Job 2 needs 5 and 2 are free; all 6 are when job 1 ends, so the shadow time is 10, and there
    // it starts.
    assert_snapshot!(chart(6, &[RUNS, HEAD], "easy"), @"
       5 |...............
       4 |..........22222
       3 |111111111122222
       2 |111111111122222
       1 |111111111122222
       0 |111111111122222
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   10  immediate         -
      2      5       1         5     10   15  reserved         10
    ");
}

#[test]
fn a_backfill_that_ends_at_the_shadow_time() {
    // Job 3 takes the 2 free processors, of which only 1 is extra, but it ends at 10, when the head
    // needs them.
    assert_snapshot!(chart(6, &[RUNS, HEAD, (2, 8, 2, 8)], "easy"), @"
       5 |..33333333.....
       4 |..3333333322222
       3 |111111111122222
       2 |111111111122222
       1 |111111111122222
       0 |111111111122222
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0        10      0   10  immediate          -
      2      5       1         5     10   15  reserved          10
      3      2       2         8      2   10  backfilled         -
    ");
}

#[test]
fn a_backfill_on_an_extra_node() {
    // Job 3 runs past the shadow time, on the one processor that the head leaves over: 5 + 1 = 6.
    assert_snapshot!(chart(6, &[RUNS, HEAD, (2, 15, 1, 15)], "easy"), @"
       5 |..........22222..
       4 |..333333333333333
       3 |111111111122222..
       2 |111111111122222..
       1 |111111111122222..
       0 |111111111122222..
         +-----+----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0        10      0   10  immediate          -
      2      5       1         5     10   15  reserved          10
      3      1       2        15      2   17  backfilled         -
    ");
}

#[test]
fn refused_because_it_does_not_fit_now() {
    // Job 3 would end long before 10, but needs 3 where 2 are free; after the head it is the head
    // itself.
    assert_snapshot!(chart(6, &[RUNS, HEAD, (2, 1, 3, 1)], "easy"), @"
       5 |................
       4 |..........22222.
       3 |111111111122222.
       2 |1111111111222223
       1 |1111111111222223
       0 |1111111111222223
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   10  immediate         -
      2      5       1         5     10   15  reserved         10
      3      3       2         1     15   16  reserved         15
    ");
}

#[test]
fn refused_because_it_is_too_long_and_too_wide_for_the_extra_nodes() {
    // Job 3 fits now, but would end at 11, a second after the shadow time, and takes 2 where 1 is
    // extra.
    assert_snapshot!(chart(6, &[RUNS, HEAD, (2, 9, 2, 9)], "easy"), @"
       5 |........................
       4 |..........22222.........
       3 |111111111122222.........
       2 |111111111122222.........
       1 |111111111122222333333333
       0 |111111111122222333333333
         +-----+----+----+----+---
          0         10        20
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0   10  immediate         -
      2      5       1         5     10   15  reserved         10
      3      2       2         9     15   24  reserved         15
    ");
}

#[test]
fn the_first_backfill_consumes_the_extra_nodes() {
    // 3 are free, 1 is extra: job 3 takes it. Job 4 is the same but finds none left, and waits
    // until the head is done; job 5 ends by the shadow time and needs none. At 10 the head starts
    // on time beside job 3.
    let jobs = [(0, 10, 3, 10), HEAD, (2, 15, 1, 15), (2, 15, 1, 15), (2, 8, 1, 8)];
    assert_snapshot!(chart(6, &jobs, "easy"), @"
       5 |..........22222...............
       4 |..5555555522222...............
       3 |..333333333333333.............
       2 |111111111122222...............
       1 |111111111122222...............
       0 |111111111122222444444444444444
         +-----+----+----+----+----+----
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      5       1         5     10   15  reserved          10
      3      1       2        15      2   17  backfilled         -
      4      1       2        15     15   30  reserved          15
      5      1       2         8      2   10  backfilled         -
    ");
}

#[test]
fn a_backfill_that_ends_early_gives_its_extra_node_back() {
    // Job 3 takes the extra node and ends at 4 instead of 17; the next pass counts anew, so job 4
    // has it then.
    let jobs = [(0, 10, 3, 10), HEAD, (2, 2, 1, 15), (2, 9, 1, 9)];
    assert_snapshot!(chart(6, &jobs, "easy"), @"
       5 |..........22222
       4 |..........22222
       3 |..33444444444..
       2 |111111111122222
       1 |111111111122222
       0 |111111111122222
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      5       1         5     10   15  reserved          10
      3      1       2        15      2    4  backfilled         -
      4      1       2         9      4   13  backfilled         -
    ");
}

#[test]
fn the_head_starts_before_its_shadow_time_after_an_early_end() {
    // Job 1 has an estimate of 10 and ends at 6, as has job 3. The head was promised 10 and starts
    // at 6.
    assert_snapshot!(chart(6, &[(0, 6, 4, 10), HEAD, (2, 4, 2, 8)], "easy"), @"
       5 |..3333.....
       4 |..333322222
       3 |11111122222
       2 |11111122222
       1 |11111122222
       0 |11111122222
         +-----+----+
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0        10      0    6  immediate          -
      2      5       1         5      6   11  reserved          10
      3      2       2         8      2    6  backfilled         -
    ");
}

#[test]
fn a_job_as_wide_as_the_machine() {
    // Job 2 leaves nothing over: job 3 (to 6) would run past the shadow time 5 and there is no
    // extra node; job 4 (to 5) fits before it. Then job 2 has the whole machine.
    let jobs = [(0, 5, 2, 5), (1, 5, 4, 5), (2, 4, 1, 4), (2, 3, 1, 3)];
    assert_snapshot!(chart(4, &jobs, "easy"), @"
       3 |.....22222....
       2 |..44422222....
       1 |1111122222....
       0 |11111222223333
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0         5      0    5  immediate          -
      2      4       1         5      5   10  reserved           5
      3      1       2         4     10   14  reserved          10
      4      1       2         3      2    5  backfilled         -
    ");
}

#[test]
fn only_the_head_is_protected() {
    // Job 3 (the whole machine) could have started at 20; EASY lets job 4 pass on an extra node,
    // and job 3 pays: it waits until 23. It had no promise before it became the head at 10.
    let jobs = [(0, 10, 3, 10), (1, 10, 2, 10), (2, 5, 4, 5), (3, 20, 1, 20)];
    assert_snapshot!(chart(4, &jobs, "easy"), @"
       3 |...4444444444444444444433333
       2 |1111111111.............33333
       1 |11111111112222222222...33333
       0 |11111111112222222222...33333
         +-----+----+----+----+----+--
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      2       1        10     10   20  reserved          10
      3      4       2         5     23   28  reserved          23
      4      1       3        20      3   23  backfilled         -
    ");
}

/// Two can run beside job 1 until 10, when the whole machine is the head's.
const FOR_SJBF: [Quad; 5] = [(0, 10, 2, 10), (1, 5, 4, 5), (2, 8, 2, 8), (2, 3, 2, 3), (3, 5, 2, 5)];

#[test]
fn backfill_in_arrival_order() {
    // Job 3 comes first among the candidates and fills the hole until 10; jobs 4 and 5 follow the
    // head.
    assert_snapshot!(chart(4, &FOR_SJBF, "easy"), @"
       3 |..333333332222255555
       2 |..333333332222255555
       1 |111111111122222444..
       0 |111111111122222444..
         +-----+----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0        10      0   10  immediate          -
      2      4       1         5     10   15  reserved          10
      3      2       2         8      2   10  backfilled         -
      4      2       2         3     15   18  reserved          15
      5      2       3         5     15   20  reserved           -
    ");
}

#[test]
fn backfill_shortest_first() {
    // EASY-SJBF: job 4 (3 s) goes before job 3 (8 s), and then job 5 fits; job 3 would end at 13
    // and waits.
    assert_snapshot!(chart(4, &FOR_SJBF, "easy(backfill=shortest)"), @"
       3 |..4445555522222........
       2 |..4445555522222........
       1 |11111111112222233333333
       0 |11111111112222233333333
         +-----+----+----+----+--
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0        10      0   10  immediate          -
      2      4       1         5     10   15  reserved          10
      3      2       2         8     15   23  reserved          15
      4      2       2         3      2    5  backfilled         -
      5      2       3         5      5   10  backfilled         -
    ");
}

#[test]
fn the_queue_itself_shortest_first() {
    // Job 4 sorts before job 2 and starts at 2 as the head. Jobs 2 and 5 have equal lengths: job 2
    // arrived first and is the head at 5; job 5 passes it. There are no promises, because a shorter
    // job could always precede.
    assert_snapshot!(chart(4, &FOR_SJBF, "easy(order=shortest)"), @"
       3 |..4445555522222........
       2 |..4445555522222........
       1 |11111111112222233333333
       0 |11111111112222233333333
         +-----+----+----+----+--
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0        10      0   10  immediate          -
      2      4       1         5     10   15  reserved           -
      3      2       2         8     15   23  reserved           -
      4      2       2         3      2    5  immediate          -
      5      2       3         5      5   10  backfilled         -
    ");
}
