//! Miser's Figures 3 and 4 by hand: processors and memory move between interactive work and batch.

use insta::assert_snapshot;
use miserly_core::{Kind, Resources};

use crate::chart::{asks, chart_ahead, hosts};

/// Figure 3.
///
/// Batch has two of four processors. Interactive work uses the rest until 2, then one processor.
/// Job 2, promised 5, runs opportunistically and is parked at 4 for its own start. From 5 on it has
/// its two processors, although interactive work requests all four from 6 on.
#[test]
fn processors_go_from_interactive_work_to_batch_and_back() {
    let pool = hosts(&[(2, 0)]);
    let jobs = [asks((0, 5, 2, 5)), asks((0, 6, 2, 6))];
    let chart = chart_ahead(&pool, Resources::cpus(4), &[(0, 2), (2, 1), (6, 4)], &jobs);
    assert_snapshot!(chart, @"
       3 |..........
       2 |..22......
       1 |1111122222
       0 |1111122222
         +-----+----
          0
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         5      0    5  immediate         0
      2      2       0         6      5   10  promised          5
    ");
}

/// A job that ends before its promised start frees its window.
///
/// Job 2 is done at 4, so job 3, promised 20, starts at 10. From 4 to 9 job 3 runs
/// opportunistically on the processors of job 2.
#[test]
fn a_window_that_is_not_needed_is_the_next_ones() {
    let pool = hosts(&[(2, 0)]);
    let jobs = [asks((0, 10, 2, 10)), asks((0, 4, 2, 10)), asks((0, 8, 2, 10))];
    let chart = chart_ahead(&pool, Resources::cpus(4), &[], &jobs);
    assert_snapshot!(chart, @"
       3 |222233333....
       2 |222233333....
       1 |1111111111333
       0 |1111111111333
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason         promised
      1      2       0        10      0   10  immediate             0
      2      2       0        10      0    4  opportunistic        10
      3      2       0        10     10   13  promised             20
    ");
}

/// Figure 4.
///
/// The machine has 150 of memory, and batch 100, which job 1 holds. Job 2 requests 100 but 50 are
/// free: it waits for its start although processors are idle. Job 3 fits and runs before both
/// starts.
#[test]
fn who_finds_too_little_memory_waits_for_its_start() {
    let pool = hosts(&[(2, 100)]);
    let whole = Resources::cpus(4).with(Kind::Memory, 150);
    let jobs =
        [asks((0, 6, 1, 6)).memory(100), asks((0, 4, 2, 4)).memory(100), asks((0, 4, 2, 4)).memory(50)];
    let chart = chart_ahead(&pool, whole, &[], &jobs);
    assert_snapshot!(chart, @"
       3 |..........
       2 |3333......
       1 |3333..2222
       0 |1111112222
         +-----+----
          0
    job  procs  submit  estimate  start  end  reason         promised
      1      1       0         6      0    6  immediate             0
      2      2       0         4      6   10  promised              6
      3      2       0         4      0    4  opportunistic        10
    ");
}
