//! Selective reservations: which jobs have one, and from when on.

use insta::assert_snapshot;

use crate::chart::{Quad, chart};

/// Job 2 needs all processors. Job 1 leaves one of them to narrow jobs, and ends when job 5 comes.
const WIDE: [Quad; 5] = [(0, 9, 3, 9), (1, 8, 4, 8), (2, 6, 1, 6), (4, 10, 1, 10), (9, 10, 1, 10)];

#[test]
fn a_job_has_a_reservation_once_its_factor_reaches_the_threshold() {
    // At 8 job 2 has the factor (7 + 8) / 8, so job 4 may start. At 9 it has 2 exactly, and a
    // reservation from 18. Job 5 would run until 19, so it waits for job 2.
    assert_snapshot!(chart(4, &WIDE, "selective-backfill"), @"
       3 |..333333444444444422222222..........
       2 |111111111.........22222222..........
       1 |111111111.........22222222..........
       0 |111111111.........222222225555555555
         +-----+----+----+----+----+----+----+
          0         10        20        30
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         9      0    9  immediate          -
      2      4       1         8     18   26  reserved           -
      3      1       2         6      2    8  backfilled         -
      4      1       4        10      8   18  backfilled         -
      5      1       9        10     26   36  reserved           -
    ");
}

#[test]
fn a_lower_threshold_is_reached_earlier() {
    // At 8 the factor is 15 / 8, above 1.5: job 4 would run past the reservation, from 9.
    assert_snapshot!(chart(4, &WIDE, "selective-backfill(threshold=1.5)"), @"
       3 |..333333.22222222..........
       2 |11111111122222222..........
       1 |111111111222222225555555555
       0 |111111111222222224444444444
         +-----+----+----+----+----+-
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         9      0    9  immediate          -
      2      4       1         8      9   17  reserved           -
      3      1       2         6      2    8  backfilled         -
      4      1       4        10     17   27  reserved           -
      5      1       9        10     17   27  reserved           -
    ");
}

#[test]
fn without_a_threshold_a_wide_job_waits_for_all_others() {
    // No job has a reservation, so job 5 starts at 9, and job 2 behind it.
    assert_snapshot!(chart(4, &WIDE, "selective-backfill(threshold=inf)"), @"
       3 |..3333334444444444.22222222
       2 |111111111..........22222222
       1 |111111111..........22222222
       0 |111111111555555555522222222
         +-----+----+----+----+----+-
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         9      0    9  immediate          -
      2      4       1         8     19   27  reserved           -
      3      1       2         6      2    8  backfilled         -
      4      1       4        10      8   18  backfilled         -
      5      1       9        10      9   19  backfilled         -
    ");
}

#[test]
fn entitled_jobs_come_before_all_others() {
    // At 10 jobs 2, 3 and 4 have the factors 21/12, 12/4 and 16/9. Job 3 starts first, because it is
    // entitled. There is no room for job 2, and it has no reservation, so job 4 starts too. At 14
    // job 2 has 25/12, and a reservation from 19: job 5 may not pass it.
    let jobs = [(0, 10, 4, 10), (1, 12, 3, 12), (2, 4, 2, 4), (3, 9, 2, 9), (14, 6, 2, 6)];
    assert_snapshot!(chart(4, &jobs, "selective-backfill"), @"
       3 |1111111111444444444..................
       2 |1111111111444444444222222222222......
       1 |11111111113333.....222222222222555555
       0 |11111111113333.....222222222222555555
         +-----+----+----+----+----+----+----+-
          0         10        20        30
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0        10      0   10  immediate          -
      2      3       1        12     19   31  reserved           -
      3      2       2         4     10   14  backfilled         -
      4      2       3         9     10   19  backfilled         -
      5      2      14         6     31   37  reserved           -
    ");
}
