//! Reservations on hosts, by hand: their number, their holders and their hosts.

use insta::assert_snapshot;

use crate::chart::{Asks, asks, chart_on_both, hosts};

const DEPTH_1: &str = "fcfs-backfill";
const DEPTH_2: &str = "fcfs-backfill(depth=2)";
const DEPTH_ALL: &str = "fcfs-backfill(depth=all)";

/// Job 2 is the first in the queue, job 3 the second; job 4 fits beside the reservation of job 2.
fn second_in_the_queue() -> [Asks; 4] {
    [asks((0, 4, 3, 4)), asks((1, 4, 2, 4)), asks((1, 2, 4, 2)), asks((1, 8, 1, 8))]
}

#[test]
fn one_reservation_does_not_protect_the_second() {
    // Beside job 1, and job 2 from 4 to 8, there is a processor for job 4 until 9. Job 3, the whole
    // host, could have started at 8.
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &second_in_the_queue(), DEPTH_1), @"
       3 |.4444444433
       2 |1111.....33
       1 |11112222.33
       0 |11112222.33
         +-----+----+
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         4      0    4  immediate          -
      2      2       1         4      4    8  reserved           4
      3      4       1         2      9   11  reserved           9
      4      1       1         8      1    9  backfilled         -
    ");
}

#[test]
fn two_reservations_protect_the_second() {
    // Job 3's reservation, from 8 to 10, blocks job 4, which would run until 9. Only the head has a
    // promise: job 3 is promised 8 as the head at 4, and job 4 is promised 10 at 8.
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &second_in_the_queue(), DEPTH_2), @"
       3 |........33........
       2 |1111....33........
       1 |1111222233........
       0 |111122223344444444
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      3       0         4      0    4  immediate         -
      2      2       1         4      4    8  reserved          4
      3      4       1         2      8   10  reserved          8
      4      1       1         8     10   18  reserved         10
    ");
}

/// Job 4 is third in the queue with a reservation from 4 to 7, beside job 2 and before job 3. Job 5
/// fits there too.
fn third_in_the_queue() -> [Asks; 5] {
    [asks((0, 4, 3, 4)), asks((1, 4, 2, 4)), asks((1, 2, 4, 2)), asks((1, 3, 2, 3)), asks((1, 6, 1, 6))]
}

#[test]
fn two_reservations_do_not_protect_the_third() {
    // Job 5 is gone at 7, before job 3 starts. At 4 one processor is left for job 4, at 7 two, but
    // until 8 only.
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &third_in_the_queue(), DEPTH_2), @"
       3 |.555555.33...
       2 |1111....33...
       1 |1111222233444
       0 |1111222233444
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         4      0    4  immediate          -
      2      2       1         4      4    8  reserved           4
      3      4       1         2      8   10  reserved           8
      4      2       1         3     10   13  reserved          10
      5      1       1         6      1    7  backfilled         -
    ");
}

#[test]
fn a_reservation_for_every_job_protects_the_third() {
    // Job 4's reservation leaves nothing for job 5 between 4 and 7. At 7 two processors are free,
    // but only until 8, so job 5 waits for job 3. There are no promises, because each pass
    // recomputes all reservations.
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &third_in_the_queue(), DEPTH_ALL), @"
       3 |....444.33......
       2 |1111444.33......
       1 |1111222233......
       0 |1111222233555555
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0         4      0    4  immediate          -
      2      2       1         4      4    8  reserved           -
      3      4       1         2      8   10  reserved           -
      4      2       1         3      4    7  backfilled         -
      5      1       1         6     10   16  reserved           -
    ");
}

/// Job 3 is shorter than job 2 and comes later.
fn a_shorter_one() -> [Asks; 4] {
    [asks((0, 10, 3, 10)), asks((1, 8, 4, 8)), asks((2, 2, 4, 2)), asks((3, 5, 1, 5))]
}

#[test]
fn shortest_first_with_a_held_head() {
    // Job 2 has a scheduled start, at 10, when job 3 comes, and keeps it. When job 2 starts, job 3
    // is the head.
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &a_shorter_one(), "sjf-backfill"), @"
       3 |...44444..2222222233
       2 |11111111112222222233
       1 |11111111112222222233
       0 |11111111112222222233
         +-----+----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      4       1         8     10   18  reserved          10
      3      4       2         2     18   20  reserved          18
      4      1       3         5      3    8  backfilled         -
    ");
}

#[test]
fn shortest_first_without_holding_the_head() {
    // The same order without the hold: job 3 takes the start at 10 away from job 2.
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &a_shorter_one(), "easy(order=shortest)"), @"
       3 |...44444..3322222222
       2 |11111111113322222222
       1 |11111111113322222222
       0 |11111111113322222222
         +-----+----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      4       1         8     12   20  reserved           -
      3      4       2         2     10   12  reserved           -
      4      1       3         5      3    8  backfilled         -
    ");
}

#[test]
fn a_reservation_moves_to_another_host() {
    // Job 3 is promised 7, on b (processors 4 to 7), where job 2 ends then; job 4 is promised 10,
    // on a, where job 1 should end then. Job 1 ends at 5: job 3 moves to a, and so job 4 can have b
    // at 7.
    let jobs = [asks((0, 5, 4, 10)), asks((0, 7, 3, 7)), asks((1, 5, 3, 5)), asks((2, 4, 4, 4))];
    let machine = hosts(&[(4, 100), (4, 100)]);
    let chart = chart_on_both(&machine, &jobs, "conservative");
    assert_snapshot!(chart, @"
       7 |.......4444
       6 |22222224444
       5 |22222224444
       4 |22222224444
       3 |11111......
       2 |1111133333.
       1 |1111133333.
       0 |1111133333.
         +-----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0        10      0    5  immediate         0
      2      3       0         7      0    7  immediate         0
      3      3       1         5      5   10  reserved          7
      4      4       2         4      7   11  reserved         10
    ");
    assert_eq!(chart_on_both(&machine, &jobs, "fcfs-backfill(depth=kept)"), chart);
}
