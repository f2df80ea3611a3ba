//! Miser's Figures 3 and 4 by hand: how processors and memory go from interactive work to batch and back.

use insta::assert_snapshot;
use miserly_core::{Kind, Resources};

use crate::chart::{asks, chart_ahead, hosts};

/// Figure 3. Two of four processors are batch's. Interactive work has all that is left until 2, then one: job 2, promised
/// 5, runs on what is idle then, and is parked at 4 for its own start. From 5 on its two processors are its own, though
/// interactive work wants all four from 6 on.
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
    job  procs  submit  estimate  start  end  reason    promised
      1      2       0         5      0    5  at_once          0
      2      2       0         6      5   10  promised         5
    ");
}

/// What ends ahead of its start leaves its window to the next: job 2 is done at 4, so job 3, which was promised 20, starts at
/// 10; and from 4 to 9 it runs where job 2 was.
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
    job  procs  submit  estimate  start  end  reason    promised
      1      2       0        10      0   10  at_once          0
      2      2       0        10      0    4  ahead           10
      3      2       0        10     10   13  promised        20
    ");
}

/// Figure 4. The machine has 150 of memory, and batch 100 of them, which job 1 holds. Job 2 needs 100 and finds 50: it
/// waits for its start, though processors are idle. Job 3 needs no more than there is, and runs ahead of both starts.
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
    job  procs  submit  estimate  start  end  reason    promised
      1      1       0         6      0    6  at_once          0
      2      2       0         4      6   10  promised         6
      3      2       0         4      0    4  ahead           10
    ");
}
