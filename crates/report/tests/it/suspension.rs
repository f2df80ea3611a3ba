//! Suspension by hand.
//!
//! A gap of a job in the picture is the time in which it was suspended. A tilde is a processor held
//! during swapping.

use insta::assert_snapshot;
use miserly_core::Machine;

use crate::chart::{Asks, asks, chart_on_both, hosts};

/// The schedule on one host of four processors.
#[track_caller]
fn draw(jobs: &[Asks], policy: &str) -> String {
    chart_on_both(&Machine::plain(4), jobs, policy)
}

/// Polls every second.
const SS: &str = "ss(sf=2, period=1s)";

#[test]
fn a_job_suspends_one_of_twice_its_width() {
    // Job 2 has waited for as long as it will run at 4.
    assert_snapshot!(draw(&[asks((0, 8, 4, 8)), asks((1, 3, 2, 3))], SS), @"
       3 |1111...1111
       2 |1111...1111
       1 |11112221111
       0 |11112221111
         +-----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         8      0   11  immediate         -
      2      2       1         3      4    7  reserved          -
    ");
}

#[test]
fn no_job_suspends_one_that_is_wider_still() {
    assert_snapshot!(draw(&[asks((0, 8, 4, 8)), asks((1, 3, 1, 3))], SS), @"
       3 |11111111...
       2 |11111111...
       1 |11111111...
       0 |11111111222
         +-----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         8      0    8  immediate         -
      2      1       1         3      8   11  reserved          -
    ");
}

#[test]
fn whoever_comes_back_needs_its_own_processors() {
    // Job 3 suspends job 1 and runs past its estimate. Job 1 waits for 0 and 1, although 2 and 3
    // are free from 5 on.
    let jobs = [asks((0, 8, 2, 8)), asks((0, 5, 2, 20)), asks((2, 6, 2, 2))];
    assert_snapshot!(draw(&jobs, "ss(sf=1.5, period=1s)"), @"
       3 |22222.........
       2 |22222.........
       1 |11133333311111
       0 |11133333311111
         +-----+----+---
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         8      0   14  immediate         -
      2      2       0        20      0    5  immediate         -
      3      2       2         2      3    9  reserved          -
    ");
}

#[test]
fn a_job_that_migrates_needs_any() {
    let jobs = [asks((0, 8, 2, 8)), asks((0, 5, 2, 20)), asks((2, 6, 2, 2))];
    assert_snapshot!(draw(&jobs, "ss(sf=1.5, period=1s, migrate=true)"), @"
       3 |2222211111
       2 |2222211111
       1 |111333333.
       0 |111333333.
         +-----+----
          0
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         8      0   10  immediate         -
      2      2       0        20      0    5  immediate         -
      3      2       2         2      3    9  reserved          -
    ");
}

#[test]
fn nobody_is_suspended_for_a_job_that_would_not_fit_all_the_same() {
    // Job 4 may suspend job 1 from 6 on, but job 3, which has waited itself, from 10 on only.
    let jobs = [asks((0, 12, 2, 12)), asks((0, 4, 2, 4)), asks((0, 8, 2, 8)), asks((2, 4, 4, 4))];
    assert_snapshot!(draw(&jobs, SS), @"
       3 |2222333333444433
       2 |2222333333444433
       1 |1111111111444411
       0 |1111111111444411
         +-----+----+----+
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        12      0   16  immediate         -
      2      2       0         4      0    4  immediate         -
      3      2       0         8      4   16  reserved          -
      4      4       2         4     10   14  reserved          -
    ");
}

/// Job 2 waits for 6 s, so its xfactor is 1.6; the mean of its category is 1.
fn with_limit(limit: u32) -> String {
    let jobs = [asks((0, 6, 4, 6)), asks((0, 10, 4, 10)), asks((6, 2, 4, 2))];
    draw(&jobs, &format!("tss(sf=2, period=1s, limit={limit}, means='1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1')"))
}

#[test]
fn a_job_within_the_limit_of_its_category_is_suspended() {
    assert_snapshot!(with_limit(2), @"
       3 |111111222223322222
       2 |111111222223322222
       1 |111111222223322222
       0 |111111222223322222
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         6      0    6  immediate         -
      2      4       0        10      6   18  reserved          -
      3      4       6         2     11   13  reserved          -
    ");
}

#[test]
fn nobody_is_suspended_beyond_the_limit_of_its_category() {
    assert_snapshot!(with_limit(1), @"
       3 |111111222222222233
       2 |111111222222222233
       1 |111111222222222233
       0 |111111222222222233
         +-----+----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         6      0    6  immediate         -
      2      4       0        10      6   16  reserved          -
      3      4       6         2     16   18  reserved          -
    ");
}

/// Two jobs of 4000 kB, which take two seconds to write or to read.
fn with_overhead(overhead: &str) -> String {
    let jobs = [asks((0, 8, 4, 8)).memory(4000), asks((1, 3, 4, 3)).memory(4000)];
    chart_on_both(&hosts(&[(4, 4000)]), &jobs, &format!("ss(sf=2, period=1s, overhead={overhead})"))
}

#[test]
fn memory_is_written_out_before_anybody_else_can_run() {
    assert_snapshot!(with_overhead("write"), @"
       3 |1111~~2221111
       2 |1111~~2221111
       1 |1111~~2221111
       0 |1111~~2221111
         +-----+----+--
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         8      0   13  immediate         -
      2      4       1         3      6    9  reserved          -
    ");
}

#[test]
fn memory_is_read_back_before_a_job_runs_on() {
    assert_snapshot!(with_overhead("write+read"), @"
       3 |1111~~222~~1111
       2 |1111~~222~~1111
       1 |1111~~222~~1111
       0 |1111~~222~~1111
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      4       0         8      0   15  immediate         -
      2      4       1         3      6    9  reserved          -
    ");
}

#[test]
fn immediate_service_spares_who_is_in_its_slice() {
    // At 5 jobs 1 and 2 have had their slices and no waiting time: the first arrival is suspended.
    // At 6 job 3 is in its slice.
    let jobs = [asks((0, 9, 2, 9)), asks((2, 7, 2, 7)), asks((5, 6, 2, 6)), asks((6, 1, 2, 1))];
    assert_snapshot!(draw(&jobs, "is(slice=3s)"), @"
       3 |..22224222.....
       2 |..22224222.....
       1 |111113333331111
       0 |111113333331111
         +-----+----+----
          0         10
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0         9      0   15  immediate         -
      2      2       2         7      2   10  immediate         -
      3      2       5         6      5   11  quantum           -
      4      2       6         1      6    7  quantum           -
    ");
}
