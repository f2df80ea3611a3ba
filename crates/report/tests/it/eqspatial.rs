//! Spatial equipartitioning by hand.

use insta::assert_snapshot;

use crate::chart::{Asks, asks, chart_on, hosts};

#[test]
fn as_equal_as_the_requests_allow() {
    // Job 2 wants one processor and has it. From 4 on seven are left for jobs 1 and 3, and the odd
    // one goes to job 1, which came first. From 6 on they have four each, until job 3 has done its
    // 18 processor-seconds: 2 x 3 + 3 x 4. Job 1, of 64, has done 2 x 8 + 2 x 7 + 2 x 4 + 3 x 4 =
    // 50 by then, and needs 14 / 8 more.
    let jobs = [asks((0, 8, 8, 8)), asks((2, 4, 1, 4)), asks((4, 3, 6, 3))];
    assert_snapshot!(chart_on(&hosts(&[(8, 100)]), &jobs, "eqspatial", 1), @"
       7 |11222233311
       6 |11113333311
       5 |11113333311
       4 |11113333311
       3 |11111111111
       2 |11111111111
       1 |11111111111
       0 |11111111111
         +-----+----+
          0         10
    job  procs  submit  estimate  start    end  reason     promised
      1      8       0         8      0  10.75  immediate         -
      2      1       2         4      2      6  immediate         -
      3      6       4         3      4      9  immediate         -
    ");
}

#[test]
fn on_the_host_with_the_most_processors_for_those_that_are_asked_for() {
    // Job 1 fits only on a (the lower rows). Job 2 fits only on b, alone. For job 3 neither has 4
    // free: a would have 8 for 6 + 4, b 4 for 3 + 4. For job 4 a would have 8 for 12, b 4 for 5,
    // and it halves b with job 2.
    let jobs = [asks((0, 6, 6, 6)), asks((0, 6, 3, 6)), asks((1, 5, 4, 5)), asks((1, 4, 2, 4))];
    assert_snapshot!(chart_on(&hosts(&[(8, 100), (4, 100)]), &jobs, "eqspatial", 1), @"
      11 |.4444...
      10 |24444222
       9 |22222222
       8 |22222222
       7 |.33333..
       6 |.33333..
       5 |13333311
       4 |13333311
       3 |11111111
       2 |11111111
       1 |11111111
       0 |11111111
         +-----+--
          0
    job  procs  submit  estimate  start       end  reason     promised
      1      6       0         6      0  7.666667  immediate         -
      2      3       0         6      0  7.333334  immediate         -
      3      4       1         5      1         6  immediate         -
      4      2       1         4      1         5  immediate         -
    ");
}

#[test]
fn catching_up_after_waiting_for_memory() {
    // From 2 on job 2 waits for job 1's memory, and job 3 does not. With job 2 the three of them
    // would have 2, 1 and 1 of the four processors, so by 6 job 2 has missed 4 processor-seconds.
    // It asked for 4 processors and gets 3, because job 3 keeps one; that is one more than its
    // equal share, so it has caught up at 10.
    let jobs = [asks((0, 4, 4, 4)).memory(80), asks((2, 5, 4, 5)).memory(50), asks((2, 6, 4, 6)).memory(20)];
    assert_snapshot!(chart_on(&hosts(&[(4, 100)]), &jobs, "eqspatial(quantum=0)", 1), @"
       3 |113333222233333
       2 |113333222233333
       1 |111111222222223
       0 |111111333322223
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0         4      0    6  immediate          -
      2      4       2         5      6   14  reserved           -
      3      4       2         6      2   15  backfilled         -
    ");
}

#[test]
fn processors_for_catching_up_do_not_count_for_those_who_come() {
    // Job 2's memory fits only on b, and fills it. From 2 on job 4 waits for job 1's memory on a
    // (the lower rows). There it would have 2 of the 8 processors beside jobs 1 and 3: by 8 it has
    // missed 12. From 8 to 12 it has 7, three more than its share. Job 5 arrives at 9. Without
    // these three, a has 5 processors for requests of 8 + 8 + 4, and b 6 for 16 + 4: it goes to b.
    // With them, a would have had 8 for 20.
    let jobs = [
        asks((0, 4, 8, 4)).memory(80),
        asks((0, 5, 16, 5)).memory(30),
        asks((0, 5, 8, 5)).memory(20),
        asks((2, 5, 8, 5)).memory(50),
        asks((9, 3, 4, 3)),
    ];
    assert_snapshot!(chart_on(&hosts(&[(8, 100), (6, 30)]), &jobs, "eqspatial(quantum=0)", 1), @"
      13 |2222222225555222
      12 |2222222225555222
      11 |2222222225555222
      10 |2222222222222222
       9 |2222222222222222
       8 |2222222222222222
       7 |33333333444434..
       6 |33333333444434..
       5 |33333333444434..
       4 |33333333444434..
       3 |11111111444444..
       2 |11111111444444..
       1 |11111111444444..
       0 |11111111333344..
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start        end  reason     promised
      1      8       0         4      0          8  immediate         -
      2     16       0         5      0  15.333334  immediate         -
      3      8       0         5      0         13  immediate         -
      4      8       2         5      8         14  reserved          -
      5      4       9         3      9         13  immediate         -
    ");
}

#[test]
fn between_repartitionings() {
    // Job 2 comes to a host that has never been repartitioned: it is, at 1, and not again before
    // 11. Job 3 finds no processor, keeps its place, and starts on two of the four that job 2
    // vacates at 5. Job 4 asks for four and starts on the two that are left. At 11 job 3 has the
    // two that it wants, the others three each. What jobs 3 and 4 vacate then stays free: the next
    // repartitioning would be at 21.
    let jobs = [asks((0, 9, 8, 9)), asks((1, 2, 8, 2)), asks((2, 8, 2, 8)), asks((6, 7, 4, 7))];
    assert_snapshot!(chart_on(&hosts(&[(8, 100)]), &jobs, "eqspatial(min_interval=10)", 1), @"
       7 |12222.44444444444..
       6 |12222.44444444444..
       5 |1222233333333......
       4 |1222233333333......
       3 |11111111111444444..
       2 |1111111111111111111
       1 |1111111111111111111
       0 |1111111111111111111
         +-----+----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      8       0         9      0   19  immediate         -
      2      8       1         2      1    5  immediate         -
      3      2       2         8      5   13  reserved          -
      4      4       6         7      6   17  immediate         -
    ");
}

#[test]
fn who_runs_long_has_what_it_asked_for() {
    // Three, three and two processors from 6 on. At 10 job 1 has run for 10: it has all but one for
    // each of the others. At 16 it has done its 96 processor-seconds, 6 x 8 + 4 x 3 + 6 x 6. Jobs 2
    // and 3 have run long by then, both, and divide the host.
    let jobs = [asks((0, 12, 8, 12)), asks((6, 5, 6, 5)), asks((6, 3, 6, 3))];
    assert_snapshot!(chart_on(&hosts(&[(8, 100)]), &jobs, "eqspatial(long_job_after=10s)", 1), @"
       7 |11111133331111113..
       6 |11111133331111113..
       5 |1111112222111111322
       4 |1111112222111111322
       3 |1111112222111111222
       2 |1111111111111111222
       1 |1111111111333333222
       0 |1111111111222222222
         +-----+----+----+---
          0         10
    job  procs  submit  estimate  start        end  reason     promised
      1      8       0        12      0         16  immediate         -
      2      6       6         5      6  18.333334  immediate         -
      3      6       6         3      6         17  immediate         -
    ");
}

#[test]
fn a_quantum_while_memory_is_short() {
    // Job 1 leaves 10 kB. Jobs 2 and 3 request 30 and receive 10 and two processors for 4 s. That
    // is enough for job 2. Job 3 exceeds it: at 9 it is requeued and its work is lost. At 11 it has
    // the memory of its request.
    let jobs = [
        asks((0, 8, 4, 8)).memory(90),
        Asks { used: 10, ..asks((1, 2, 2, 9)).memory(30) },
        Asks { used: 11, ..asks((5, 2, 2, 9)).memory(30) },
    ];
    let policy = "eqspatial(quantum=4s, quantum_memory=10)";
    assert_snapshot!(chart_on(&hosts(&[(4, 100)]), &jobs, policy, 1), @"
       3 |12211333311..
       2 |12211333311..
       1 |1111111111133
       0 |1111111111133
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         8      0   11  immediate         -
      2      2       1         9      1    3  quantum           -
      3      2       5         9     11   13  reserved          -
    ");
}

#[test]
fn a_quantum_does_not_wait_for_the_interval() {
    // Job 2's arrival repartitions the host at 1, so that it may not be again before 101. Job 3 has
    // to wait for memory: for its quantum the host is repartitioned at 2 and, when that is over, at
    // 4. Kept, its work counts: 2 x 2 of 6.
    let jobs = [
        asks((0, 6, 4, 6)).memory(60),
        asks((1, 3, 4, 3)).memory(30),
        Asks { used: 10, ..asks((2, 3, 2, 9)).memory(50) },
    ];
    let policy = "eqspatial(min_interval=100, quantum=2, quantum_memory=10, keep_work=true)";
    assert_snapshot!(chart_on(&hosts(&[(4, 100)]), &jobs, policy, 1), @"
       3 |12332222.....
       2 |12332222.....
       1 |1122111111113
       0 |1111111111113
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         6      0   12  immediate         -
      2      4       1         3      1    8  immediate         -
      3      2       2         9     12   13  reserved          -
    ");
}
