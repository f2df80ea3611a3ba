//! Jobs that share processors in time slices. A processor has a line for each concurrent job.

use insta::assert_snapshot;
use miserly_core::Machine;

use crate::chart::{Asks, asks, chart_on};

#[track_caller]
fn draw(jobs: &[Asks], policy: &str) -> String {
    chart_on(&Machine::plain(4), jobs, policy, 1)
}

#[test]
fn two_jobs_share_a_processor() {
    // Each has half of the time from 2 to 10; job 3 runs in both slots, alone on its processor.
    let jobs = [asks((0, 8, 3, 8)), asks((2, 4, 2, 4)), asks((2, 6, 1, 6))];
    assert_snapshot!(draw(&jobs, "gang(packing=first-fit)"), @"
       3 |..333333....
       2 |111111111111
       1 |111111111111
         |..22222222..
       0 |111111111111
         |..22222222..
         +-----+----+-
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      3       0         8      0   12  immediate         -
      2      2       2         4      2   10  immediate         -
      3      1       2         6      2    8  immediate         -
    ");
}

#[test]
fn a_job_that_is_moved_goes_on_elsewhere() {
    // At 4 job 2 comes, which is wider and gets the first processors.
    let jobs = [asks((0, 8, 1, 8)), asks((4, 4, 3, 4))];
    assert_snapshot!(draw(&jobs, "gang(packing=migration)"), @"
       3 |....1111
       2 |....2222
       1 |....2222
       0 |11112222
         +-----+--
          0
    job  procs  submit  estimate  start  end  reason     promised
      1      1       0         8      0    8  immediate         -
      2      3       4         4      4    8  immediate         -
    ");
}
