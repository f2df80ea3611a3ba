//! The weights of priority-backfill (Chiang and Vernon, Table 3) by hand.

use insta::assert_snapshot;

use crate::chart::{Asks, asks, chart_on_both, hosts};

/// Returns the row of processor 0 under priority-backfill with these weights.
#[track_caller]
fn lowest_row(jobs: &[Asks], weights: &str) -> String {
    let chart = chart_on_both(&hosts(&[(3, 4 << 20)]), jobs, &format!("priority-backfill({weights})"));
    chart.lines().find_map(|line| line.strip_prefix("   0 |")).expect("a row for processor 0").into()
}

#[test]
fn each_weight_puts_another_job_first() {
    // One job at a time fits. At 6 job 2 has waited longest. Job 3, of one second, has the largest
    // expansion factor, 5. Job 4 is the widest, with 3. Job 5 requests the memory of 5 processors.
    // Then the same weight continues. By expansion factor, job 2 has 9/3 at 7, job 4 8/3, job 5
    // 7/3. By memory all others are equal, by size jobs 2, 3 and 5, and these start in order of
    // arrival.
    let jobs = [
        asks((0, 6, 3, 6)),
        asks((1, 3, 2, 3)),
        asks((2, 1, 2, 1)),
        asks((2, 3, 3, 3)),
        asks((3, 3, 2, 3)).memory(5 * 3584 * 1024 / 10),
    ];
    assert_eq!(lowest_row(&jobs, "w_w=1, w_x=0, w_p=0"), "1111112223444555");
    assert_eq!(lowest_row(&jobs, "w_w=0, w_x=1, w_p=0"), "1111113222444555");
    assert_eq!(lowest_row(&jobs, "w_w=0, w_x=0, w_p=1"), "1111114442223555");
    assert_eq!(lowest_row(&jobs, "w_w=0, w_x=0, w_p=0, w_m=1"), "1111115552223444");
    assert_eq!(lowest_row(&jobs, "w_w=0, w_x=0, w_p=0, w_pe=1"), "1111115554442223");
}

/// The width, and 1.5 for each job that passed.
const BYPASS: &str = "priority-backfill(w_w=0, w_x=0, w_p=1, w_bypass=1.5)";

#[test]
fn who_was_passed_often_enough_is_first() {
    // A job's priority is its width, and 1.5 for each job that passed it. Job 2, of 2, does not fit
    // beside job 1; jobs 3 and 4, of 1, pass it at 2 and at 4. That makes 5 for job 2: more than
    // the 4 of job 5, which arrived after the last pass.
    let machine = hosts(&[(4, 100)]);
    let jobs = [
        asks((0, 10, 3, 10)),
        asks((1, 3, 2, 3)),
        asks((2, 2, 1, 2)),
        asks((4, 2, 1, 2)),
        asks((5, 3, 4, 3)),
    ];
    assert_snapshot!(chart_on_both(&machine, &jobs, BYPASS), @"
       3 |..3344.......555
       2 |1111111111...555
       1 |1111111111222555
       0 |1111111111222555
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      2       1         3     10   13  reserved           -
      3      1       2         2      2    4  backfilled         -
      4      1       4         2      4    6  backfilled         -
      5      4       5         3     13   16  reserved           -
    ");
}

#[test]
fn who_was_passed_less_often_is_not() {
    // As before, but job 3 alone passes job 2, which has 3.5 then: less than the 4 of job 4.
    let jobs = [asks((0, 10, 3, 10)), asks((1, 3, 2, 3)), asks((2, 2, 1, 2)), asks((5, 3, 4, 3))];
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &jobs, BYPASS), @"
       3 |..33......444...
       2 |1111111111444...
       1 |1111111111444222
       0 |1111111111444222
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason      promised
      1      3       0        10      0   10  immediate          -
      2      2       1         3     13   16  reserved           -
      3      1       2         2      2    4  backfilled         -
      4      4       5         3     10   13  reserved           -
    ");
}

#[test]
fn the_head_changes_while_they_wait() {
    // By expansion factor job 3 is the head at 4: 1 + 3/8, and 1 for jobs 4 and 5, which have just
    // come. It is to have the whole host at 12, so the idle processor is not for job 5, until 14.
    // At 6, when job 2 ends, it is job 4: 1 + 2/2, and 1 + 5/8 for job 3. It needs three at 12, and
    // job 5 may have the fourth.
    let jobs = [
        asks((0, 12, 2, 12)),
        asks((0, 6, 1, 6)),
        asks((1, 8, 4, 8)),
        asks((4, 2, 3, 2)),
        asks((4, 10, 1, 10)),
    ];
    assert_snapshot!(chart_on_both(&hosts(&[(4, 100)]), &jobs, "lxf-backfill"), @"
       3 |............44..33333333
       2 |222222555555555533333333
       1 |11111111111144..33333333
       0 |11111111111144..33333333
         +-----+----+----+----+---
          0         10        20
    job  procs  submit  estimate  start  end  reason      promised
      1      2       0        12      0   12  immediate          -
      2      1       0         6      0    6  immediate          -
      3      4       1         8     16   24  reserved           -
      4      3       4         2     12   14  reserved           -
      5      1       4        10      6   16  backfilled         -
    ");
}
