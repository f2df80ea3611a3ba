//! Backfilling on hosts with processors and memory, by hand: the choice of hosts, and waiting for
//! memory.
//!
//! The hosts' processors are stacked, host a's at the bottom.

use insta::assert_snapshot;
use miserly_core::{Sharing, Spread};

use crate::chart::{asks, chart_on_both, hosts};

const EASY: &str = "fcfs-backfill";

#[test]
fn the_fewest_processors_then_the_least_memory_then_the_first() {
    // Processors 0 to 3 are a's, 4 to 6 b's, 7 to 9 c's, 10 to 12 d's. Job 1: b, c and d have the
    // fewest processors, c and d of these the least memory, and c is the first. Job 2: c has
    // exactly two left. Job 3: of the hosts with three only b has its 60 kB. Job 4: d has three, a
    // four. Job 5: d's 40 kB are too few, so a.
    let machine = hosts(&[(4, 100), (3, 100), (3, 50), (3, 50)]);
    let jobs = [
        asks((0, 8, 1, 8)).memory(10),
        asks((1, 7, 2, 7)).memory(10),
        asks((2, 6, 3, 6)).memory(60),
        asks((3, 5, 1, 5)).memory(10),
        asks((4, 4, 1, 4)).memory(45),
    ];
    let chart = chart_on_both(&machine, &jobs, EASY);
    assert_snapshot!(chart, @"
      12 |........
      11 |........
      10 |...44444
       9 |.2222222
       8 |.2222222
       7 |11111111
       6 |..333333
       5 |..333333
       4 |..333333
       3 |........
       2 |........
       1 |........
       0 |....5555
         +-----+--
          0
    job  procs  submit  estimate  start  end  reason   promised
      1      1       0         8      0    8  at_once         -
      2      2       1         7      1    8  at_once         -
      3      3       2         6      2    8  at_once         -
      4      1       3         5      3    8  at_once         -
      5      1       4         4      4    8  at_once         -
    ");
    for policy in
        ["fcfs", "easy", "priority-backfill", "sjf-backfill", "conservative(keep_reservations=false)"]
    {
        assert_eq!(chart_on_both(&machine, &jobs, policy), chart, "{policy}");
    }
}

#[test]
fn at_a_later_time_too() {
    // Host a has processors 0 to 3. At 10 both hosts are idle: job 3 takes b, which it fills, and
    // leaves a to job 4.
    let jobs = [asks((0, 10, 4, 10)), asks((0, 10, 3, 10)), asks((1, 5, 3, 5)), asks((2, 5, 4, 5))];
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100), (3, 100)]), &jobs, "fcfs-backfill(depth=all)"), @"
       6 |222222222233333
       5 |222222222233333
       4 |222222222233333
       3 |111111111144444
       2 |111111111144444
       1 |111111111144444
       0 |111111111144444
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason    promised
      1      4       0        10      0   10  at_once          -
      2      3       0        10      0   10  at_once          -
      3      3       1         5     10   15  reserved         -
      4      4       2         5     10   15  reserved         -
    ");
}

#[test]
fn the_head_waits_for_memory() {
    // Four of six processors are free, but 20 kB only, and job 2 asks for 50: its shadow time is
    // 10. Job 3 asks for the 20 and is gone by 10.
    let jobs =
        [asks((0, 10, 2, 10)).memory(80), asks((1, 5, 2, 5)).memory(50), asks((2, 6, 2, 6)).memory(20)];
    let chart = chart_on_both(&hosts(&[(6, 100)]), &jobs, EASY);
    assert_snapshot!(chart, @"
       5 |...............
       4 |...............
       3 |..333333.......
       2 |..333333.......
       1 |111111111122222
       0 |111111111122222
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0        10      0   10  at_once            -
      2      2       1         5     10   15  reserved          10
      3      2       2         6      2    8  backfilled         -
    ");
    assert_eq!(chart_on_both(&hosts(&[(6, 100)]), &jobs, "easy"), chart);
}

#[test]
fn refused_for_the_memory_at_the_shadow_time() {
    // At 10 the head has 90 kB, and 10 are extra. Job 3 fits now and would still be there with 20;
    // processors are free all the time. Job 4 asks for the extra 10, and job 5, for the last 10
    // that are free now, is gone by 10. Job 3 is the head then, and waits for job 2's memory.
    let jobs = [
        asks((0, 10, 2, 10)).memory(80),
        asks((1, 5, 2, 5)).memory(90),
        asks((2, 15, 1, 15)).memory(20),
        asks((3, 15, 1, 15)).memory(10),
        asks((3, 7, 1, 7)).memory(10),
    ];
    assert_snapshot!(chart_on_both(&hosts(&[(6, 100)]), &jobs, EASY), @"
       5 |..............................
       4 |..............................
       3 |...5555555....................
       2 |...444444444444444............
       1 |111111111122222...............
       0 |111111111122222333333333333333
         +-----+----+----+----+----+----
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0        10      0   10  at_once            -
      2      2       1         5     10   15  reserved          10
      3      1       2        15     15   30  reserved          15
      4      1       3        15      3   18  backfilled         -
      5      1       3         7      3   10  backfilled         -
    ");
}

#[test]
fn a_host_that_is_not_the_heads_is_free_for_anybody() {
    // Only a, processors 0 to 3, is wide enough for job 2, at 10. On b job 3 may stay for as long
    // as it likes. On a's last processor job 4 would stay until 11, a second too long, and job 5 is
    // gone by 10.
    let jobs = [
        asks((0, 10, 3, 10)),
        asks((1, 5, 4, 5)),
        asks((2, 20, 2, 20)),
        asks((3, 8, 1, 8)),
        asks((3, 7, 1, 7)),
    ];
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100), (2, 100)]), &jobs, EASY), @"
       5 |..33333333333333333333.
       4 |..33333333333333333333.
       3 |...555555522222........
       2 |111111111122222........
       1 |111111111122222........
       0 |11111111112222244444444
         +-----+----+----+----+--
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  at_once            -
      2      4       1         5     10   15  reserved          10
      3      2       2        20      2   22  backfilled         -
      4      1       3         8     15   23  reserved          15
      5      1       3         7      3   10  backfilled         -
    ");
}

#[test]
fn a_job_over_several_hosts() {
    // Two processors each, a's below. Job 1 takes one of a's. Job 2 needs five: four on the
    // emptiest hosts, d and c, of which the later ones come first here, and the last one where it
    // fits best, on a. That leaves b to job 3.
    let machine = hosts(&[(2, 100); 4]).with_spread(Spread::Any);
    let jobs = [asks((0, 6, 1, 6)), asks((1, 5, 5, 5)), asks((2, 4, 2, 4))];
    assert_snapshot!(chart_on_both(&machine, &jobs, EASY), @"
       7 |.22222
       6 |.22222
       5 |.22222
       4 |.22222
       3 |..3333
       2 |..3333
       1 |.22222
       0 |111111
         +-----+
          0
    job  procs  submit  estimate  start  end  reason   promised
      1      1       0         6      0    6  at_once         -
      2      5       1         5      1    6  at_once         -
      3      2       2         4      2    6  at_once         -
    ");
}

#[test]
fn memory_decides_how_many_processors_of_a_job_a_host_has() {
    // Either host has four processors, but job 1 asks for 30 kB with each: three on a, with 100 kB,
    // and one on b, with 40. That leaves 10 kB on each: too few for job 2, until 5, and it takes b
    // then, which it fits better. Job 3 asks for no memory and has the processors that job 1 left.
    let machine = hosts(&[(4, 100), (4, 40)]).with_spread(Spread::Any);
    let jobs = [asks((0, 5, 4, 5)).memory(120), asks((1, 4, 1, 4)).memory(20), asks((1, 3, 4, 3))];
    assert_snapshot!(chart_on_both(&machine, &jobs, EASY), @"
       7 |.333.....
       6 |.333.....
       5 |.333.....
       4 |111112222
       3 |.333.....
       2 |11111....
       1 |11111....
       0 |11111....
         +-----+---
          0
    job  procs  submit  estimate  start  end  reason      promised
      1      4       0         5      0    5  at_once            -
      2      1       1         4      5    9  reserved           5
      3      4       1         3      1    4  backfilled         -
    ");
}

#[test]
fn a_host_for_each_job() {
    // Each job has its host to itself: job 1 the smaller one, b (processors 4 and 5), job 2 then a,
    // and jobs 3 and 4 wait for
    // 5. Job 3 goes to b then, which leaves a to job 4, whose three processors no other host has.
    let machine = hosts(&[(4, 100), (2, 100)]).with_sharing(Sharing::Whole);
    let jobs = [asks((0, 5, 1, 5)), asks((1, 4, 1, 4)), asks((2, 3, 1, 3)), asks((3, 2, 3, 2))];
    assert_snapshot!(chart_on_both(&machine, &jobs, EASY), @"
       5 |11111333
       4 |11111333
       3 |.222244.
       2 |.222244.
       1 |.222244.
       0 |.222244.
         +-----+--
          0
    job  procs  submit  estimate  start  end  reason    promised
      1      1       0         5      0    5  at_once          -
      2      1       1         4      1    5  at_once          -
      3      1       2         3      5    8  reserved         5
      4      3       3         2      5    7  reserved         -
    ");
}

#[test]
fn whole_hosts_for_a_wide_job() {
    // Job 1, of three processors, has two hosts of two: c, and for the last processor a, the first
    // of those that fit alike. Job 2 has b to itself, and job 3 waits for a host.
    let machine = hosts(&[(2, 100); 3]).with_sharing(Sharing::Whole).with_spread(Spread::Any);
    let jobs = [asks((0, 4, 3, 4)), asks((1, 3, 1, 3)), asks((2, 2, 1, 2))];
    assert_snapshot!(chart_on_both(&machine, &jobs, EASY), @"
       5 |1111..
       4 |1111..
       3 |.222..
       2 |.222..
       1 |111133
       0 |111133
         +-----+
          0
    job  procs  submit  estimate  start  end  reason    promised
      1      3       0         4      0    4  at_once          -
      2      1       1         3      1    4  at_once          -
      3      1       2         2      4    6  reserved         4
    ");
}
