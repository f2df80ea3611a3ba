//! Conservative backfilling (spec: Zotkin et al. §2): a reservation for every job, never moved
//! later.

use insta::assert_snapshot;

use crate::chart::{Quad, chart};

#[test]
fn every_waiting_job_is_protected() {
    // As EASY's `only_the_head_is_protected`: here job 3 has its reservation at 20 and job 4 would
    // run into it; its first hole of 20 s is at 25. Each starts when promised.
    let jobs = [(0, 10, 3, 10), (1, 10, 2, 10), (2, 5, 4, 5), (3, 20, 1, 20)];
    assert_snapshot!(chart(4, &jobs, "conservative"), @"
       3 |....................33333....................
       2 |1111111111..........33333....................
       1 |1111111111222222222233333....................
       0 |111111111122222222223333344444444444444444444
         +-----+----+----+----+----+----+----+----+----
          0         10        20        30        40
    job  procs  submit  estimate  start  end  reason     promised
      1      3       0        10      0   10  immediate         0
      2      2       1        10     10   20  reserved         10
      3      4       2         5     20   25  reserved         20
      4      1       3        20     25   45  reserved         25
    ");
}

#[test]
fn a_hole_is_filled_where_it_fits_exactly() {
    // Job 4 (17 s) ends at 20, when job 3 starts: the hole from 3 to 20 is exactly its size.
    let jobs = [(0, 10, 3, 10), (1, 10, 2, 10), (2, 5, 4, 5), (3, 17, 1, 17)];
    assert_snapshot!(chart(4, &jobs, "conservative"), @"
       3 |...4444444444444444433333
       2 |1111111111..........33333
       1 |1111111111222222222233333
       0 |1111111111222222222233333
         +-----+----+----+----+----
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          0
      2      2       1        10     10   20  reserved          10
      3      4       2         5     20   25  reserved          20
      4      1       3        17      3   20  backfilled         3
    ");
}

#[test]
fn compression_after_an_early_end() {
    // Job 1 has an estimate of 10 and ends at 5: job 2 moves from 10 to 5, and job 3 from 15 to 10,
    // where job 2 now ends.
    let jobs = [(0, 5, 4, 10), (1, 5, 2, 5), (2, 5, 4, 5)];
    assert_snapshot!(chart(4, &jobs, "conservative"), @"
       3 |11111.....33333
       2 |11111.....33333
       1 |111112222233333
       0 |111112222233333
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0    5  immediate         0
      2      2       1         5      5   10  reserved         10
      3      4       2         5     10   15  reserved         15
    ");
}

/// Job 1 has an estimate of 10 and ends at 5, when jobs 2 (from 10 to 16) and 3 (from 16 to 20)
/// have reservations.
const TO_COMPRESS: [Quad; 3] = [(0, 5, 4, 10), (1, 6, 3, 6), (2, 4, 3, 4)];

#[test]
fn compression_in_arrival_order() {
    // Job 2 is lifted first and goes to 5; job 3 to its end, 11.
    assert_snapshot!(chart(4, &TO_COMPRESS, "conservative"), @"
       3 |11111..........
       2 |111112222223333
       1 |111112222223333
       0 |111112222223333
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0    5  immediate         0
      2      3       1         6      5   11  reserved         10
      3      3       2         4     11   15  reserved         16
    ");
}

#[test]
fn compression_shortest_first() {
    // Job 3 (4 s) is lifted first: it fits from 5 to 9, before job 2's reservation at 10. Then job
    // 2 moves to 9. The order decides about the free processors, and no job starts later than
    // promised.
    assert_snapshot!(chart(4, &TO_COMPRESS, "conservative(order=shortest)"), @"
       3 |11111..........
       2 |111113333222222
       1 |111113333222222
       0 |111113333222222
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0    5  immediate         0
      2      3       1         6      9   15  reserved         10
      3      3       2         4      5    9  reserved         16
    ");
}

#[test]
fn compression_does_not_undo_a_promise() {
    // Job 3 (6 s) is lifted first, but does not fit before job 2's place at 10, so it stays at 17;
    // job 2 moves to 5. When that ends, at 12, the next compression takes job 3 down: after
    // terminations on time there is one too.
    let jobs = [(0, 5, 4, 10), (1, 7, 3, 7), (2, 6, 3, 6)];
    assert_snapshot!(chart(4, &jobs, "conservative(order=shortest)"), @"
       3 |11111.............
       2 |111112222222333333
       1 |111112222222333333
       0 |111112222222333333
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0    5  immediate         0
      2      3       1         7      5   12  reserved         10
      3      3       2         6     12   18  reserved         17
    ");
}

#[test]
fn a_job_due_now_is_left_alone() {
    // At 10 job 1 ends on time and job 2 early. Widest first, job 4 (4 wide) is looked at before
    // job 3, whose reserved start is now: job 3 stays, and job 4 comes down from 20 to its end, 15.
    let jobs = [(0, 10, 2, 10), (0, 10, 2, 20), (1, 5, 2, 5), (2, 5, 4, 5)];
    assert_snapshot!(chart(4, &jobs, "conservative(order=widest)"), @"
       3 |2222222222.....44444
       2 |2222222222.....44444
       1 |11111111113333344444
       0 |11111111113333344444
         +-----+----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        10      0   10  immediate         0
      2      2       0        20      0   10  immediate         0
      3      2       1         5     10   15  reserved         10
      4      4       2         5     15   20  reserved         20
    ");
}

#[test]
fn a_job_as_wide_as_the_machine() {
    // Jobs 3 and 4 stand in the holes before and behind job 2, which has the whole machine from 5
    // to 10.
    let jobs = [(0, 5, 2, 5), (1, 5, 4, 5), (2, 4, 1, 4), (2, 3, 1, 3)];
    assert_snapshot!(chart(4, &jobs, "conservative"), @"
       3 |.....22222....
       2 |..44422222....
       1 |1111122222....
       0 |11111222223333
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0         5      0    5  immediate          0
      2      4       1         5      5   10  reserved           5
      3      1       2         4     10   14  reserved          10
      4      1       2         3      2    5  backfilled         2
    ");
}
