//! No backfilling: the queue stops at the first job that does not fit, whatever its order.

use insta::assert_snapshot;

use crate::chart::{Quad, chart};

/// Job 1 holds the machine of 4 until 4; the others come at 1, each with another width and length.
const JOBS: [Quad; 5] = [(0, 4, 4, 4), (1, 6, 1, 6), (1, 2, 3, 2), (1, 4, 2, 4), (1, 3, 4, 3)];

#[test]
fn arrival() {
    // 2 and 3 fill the machine at 4; 4 at 6; 5 needs all of it and waits for 10.
    assert_snapshot!(chart(4, &JOBS, "fcfs"), @"
       3 |111133....555
       2 |1111334444555
       1 |1111334444555
       0 |1111222222555
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      1       1         6      4   10  reserved          -
      3      3       1         2      4    6  reserved          -
      4      2       1         4      6   10  reserved          -
      5      4       1         3     10   13  reserved          -
    ");
}

#[test]
fn shortest() {
    // 3 (2 s) at 4 leaves one processor, and 5 (3 s) stops the queue although 2 would fit; then 4
    // and 2.
    assert_snapshot!(chart(4, &JOBS, "fcfs(order=shortest)"), @"
       3 |1111..555......
       2 |111133555222222
       1 |1111335554444..
       0 |1111335554444..
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      1       1         6      9   15  reserved          -
      3      3       1         2      4    6  reserved          -
      4      2       1         4      9   13  reserved          -
      5      4       1         3      6    9  reserved          -
    ");
}

#[test]
fn longest() {
    // 2 (6 s) and 4 (4 s) at 4; 5 (3 s) waits for the whole machine at 10, and 3 (2 s) behind it.
    assert_snapshot!(chart(4, &JOBS, "fcfs(order=longest)"), @"
       3 |1111......555..
       2 |11114444..55533
       1 |11114444..55533
       0 |111122222255533
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      1       1         6      4   10  reserved          -
      3      3       1         2     13   15  reserved          -
      4      2       1         4      4    8  reserved          -
      5      4       1         3     10   13  reserved          -
    ");
}

#[test]
fn narrowest() {
    // 2 (1) and 4 (2) at 4; one processor is left, 3 needs three and has them at 8; 5 needs all, at
    // 10.
    assert_snapshot!(chart(4, &JOBS, "fcfs(order=narrowest)"), @"
       3 |1111....33555
       2 |1111444433555
       1 |1111444433555
       0 |1111222222555
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      1       1         6      4   10  reserved          -
      3      3       1         2      8   10  reserved          -
      4      2       1         4      4    8  reserved          -
      5      4       1         3     10   13  reserved          -
    ");
}

#[test]
fn widest() {
    // 5 (4) at 4, 3 (3) at 7; one processor is left, and 4 (2) stops the queue before 2; both at 9.
    assert_snapshot!(chart(4, &JOBS, "fcfs(order=widest)"), @"
       3 |1111555........
       2 |111155533222222
       1 |1111555334444..
       0 |1111555334444..
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         4      0    4  immediate         -
      2      1       1         6      9   15  reserved          -
      3      3       1         2      7    9  reserved          -
      4      2       1         4      9   13  reserved          -
      5      4       1         3      4    7  reserved          -
    ");
}

#[test]
fn ties_go_by_submission_then_number() {
    // All are as long, and one fills the machine: jobs 2 and 3, both of second 1, go by number,
    // before job 4.
    let jobs = [(0, 2, 2, 2), (1, 2, 2, 2), (1, 2, 2, 2), (2, 2, 2, 2)];
    assert_snapshot!(chart(2, &jobs, "fcfs(order=shortest)"), @"
       1 |11223344
       0 |11223344
         +-----+--
          0
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         2      0    2  immediate         -
      2      2       1         2      2    4  reserved          -
      3      2       1         2      4    6  reserved          -
      4      2       2         2      6    8  reserved          -
    ");
}

#[test]
fn a_job_that_would_fit_is_not_let_past() {
    // Job 3 fits beside job 1 without delaying any job; without backfilling it waits behind job 2.
    assert_snapshot!(chart(4, &[(0, 5, 3, 5), (1, 5, 4, 5), (2, 2, 1, 2)], "fcfs"), @"
       3 |.....22222..
       2 |1111122222..
       1 |1111122222..
       0 |111112222233
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      3       0         5      0    5  immediate         -
      2      4       1         5      5   10  reserved          -
      3      1       2         2     10   12  reserved          -
    ");
}
