//! LSF on hosts with memory. A column is an hour unless a test sets it; the list is in seconds.

use std::io;
use std::sync::Arc;

use insta::assert_snapshot;
use miserly_core::{Host, JobClasses, Kind, Machine, Resources, SizeTurn};
use miserly_machine_file::MachineSpec;

use crate::chart::{Asks, asks, chart_on};

const HOUR: i64 = 3600;

/// Memory that makes a job of few processors an sj, mj or lj one, in kB.
const SJ: u64 = 1 << 20;
const MJ: u64 = 3 << 20;
const LJ: u64 = 5 << 20;

/// Memory enough for all.
const MUCH: u64 = 64 << 20;

/// A job as (submit, runtime, processors, estimate), in hours, and its memory.
fn job(submit: i64, runtime: i64, procs: u32, estimate: i64, memory: u64) -> Asks {
    asks((submit * HOUR, runtime * HOUR, procs, estimate * HOUR)).memory(memory)
}

/// Hosts of Table 2, each with `cpus` processors.
fn named(each: &[(&str, u64)]) -> Machine {
    let host = |&(name, procs): &(&str, u64)| Host {
        name: name.into(),
        capacity: Resources::cpus(procs).with(Kind::Memory, MUCH),
    };
    in_classes(Machine::new(each.iter().map(host).collect()), |_| {})
}

/// Hosts that run every size, without limits, each with this many processors and memory.
fn hosts(each: &[(u64, u64)]) -> Machine {
    in_classes(crate::chart::hosts(each), |_| {})
}

/// Gives the classes of the paper to the machine, after a change. A host that is not in Table 2 runs every
/// size.
fn in_classes(machine: Machine, change: fn(&mut JobClasses)) -> Machine {
    let o2k = MachineSpec::named("o2k", |_| Err(io::ErrorKind::NotFound.into())).unwrap();
    let mut classes = Arc::unwrap_or_clone(o2k.classes.unwrap());
    let any = [2, 1, 0].map(|size| SizeTurn { size, most: None });
    for host in machine.hosts() {
        classes.hosts.entry(host.name.clone()).or_insert(any.to_vec());
    }
    change(&mut classes);
    machine.with_classes(Some(Arc::new(classes)))
}

#[track_caller]
fn chart(machine: &Machine, jobs: &[Asks], policy: &str) -> String {
    chart_on(machine, jobs, policy, HOUR)
}

#[test]
fn large_before_medium_before_small_and_very_short_before_short() {
    // All but job 1 come at 1, in the opposite order, and each takes the whole host for an hour:
    // vst-lj (7), st-lj (6), vst-mj (5), st-mj (4), vst-sj (3), st-sj (2).
    let waiting = [(10, SJ), (1, SJ), (10, MJ), (1, MJ), (10, LJ), (1, LJ)];
    let mut jobs = vec![job(0, 2, 2, 2, SJ)];
    jobs.extend(waiting.map(|(estimate, memory)| job(1, 1, 2, estimate, memory)));
    assert_snapshot!(chart(&named(&[("eir", 2)]), &jobs, "lsf"), @"
       1 |11765432
       0 |11765432
         +-----+--
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      2       0      7200      0   7200  immediate         -
      2      2    3600     36000  25200  28800  reserved          -
      3      2    3600      3600  21600  25200  reserved          -
      4      2    3600     36000  18000  21600  reserved          -
      5      2    3600      3600  14400  18000  reserved          -
      6      2    3600     36000  10800  14400  reserved          -
      7      2    3600      3600   7200  10800  reserved          -
    ");
}

#[test]
fn all_but_the_very_short_are_in_one_line() {
    // lt (2), mt (3), st (4) and vst (5) in the order of arrival: only the last one goes ahead.
    let mut jobs = vec![job(0, 5, 2, 5, SJ)];
    jobs.extend([(1, 300), (2, 100), (3, 10), (4, 1)].map(|(submit, hours)| job(submit, 1, 2, hours, SJ)));
    assert_snapshot!(chart(&named(&[("eir", 2)]), &jobs, "lsf"), @"
       1 |111115234
       0 |111115234
         +-----+---
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      2       0     18000      0  18000  immediate         -
      2      2    3600   1080000  21600  25200  reserved          -
      3      2    7200    360000  25200  28800  reserved          -
      4      2   10800     36000  28800  32400  reserved          -
      5      2   14400      3600  18000  21600  reserved          -
    ");
}

#[test]
fn a_job_passes_those_of_its_size_that_are_too_big() {
    // One processor is free beside job 1. Job 2, vst-sj, needs two; job 3, st-sj, fits. Job 4,
    // vst-sj, has to wait: the processor is taken.
    let jobs = [job(0, 4, 3, 4, SJ), job(1, 2, 2, 2, SJ), job(2, 3, 1, 10, SJ), job(3, 1, 1, 1, SJ)];
    assert_snapshot!(chart(&named(&[("eir", 4)]), &jobs, "lsf"), @"
       3 |..333.
       2 |11114.
       1 |111122
       0 |111122
         +-----+
          0
    job  procs  submit  estimate  start    end  reason      promised
      1      3       0     14400      0  14400  immediate          -
      2      2    3600      7200  14400  21600  reserved           -
      3      1    7200     36000   7200  18000  backfilled         -
      4      1   10800      3600  14400  18000  reserved           -
    ");
}

#[test]
fn a_job_does_not_pass_those_of_a_larger_size() {
    // As before, but job 2 is an lj one, and eir runs up to three of them: job 3 waits for it, on
    // an idle processor.
    let jobs = [job(0, 4, 3, 4, SJ), job(1, 2, 2, 2, LJ), job(2, 3, 1, 10, SJ)];
    assert_snapshot!(chart(&named(&[("eir", 4)]), &jobs, "lsf"), @"
       3 |.......
       2 |1111333
       1 |111122.
       0 |111122.
         +-----+-
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      3       0     14400      0  14400  immediate         -
      2      2    3600      7200  14400  21600  reserved          -
      3      1    7200     36000  14400  25200  reserved          -
    ");
}

#[test]
fn until_the_limit_of_the_larger_size_is_reached() {
    // Jobs 1 to 3 are the three lj jobs that eir runs at a time. Job 4 is the fourth and has to
    // wait for an end, at 4; so it is not in the way of job 5.
    let jobs = [4, 6, 6].map(|runtime| job(0, runtime, 1, 10, LJ));
    let jobs = [&jobs[..], &[job(1, 2, 1, 2, LJ), job(2, 3, 1, 3, SJ)]].concat();
    assert_snapshot!(chart(&named(&[("eir", 5)]), &jobs, "lsf"), @"
       4 |......
       3 |..555.
       2 |333333
       1 |222222
       0 |111144
         +-----+
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      1       0     36000      0  14400  immediate         -
      2      1       0     36000      0  21600  immediate         -
      3      1       0     36000      0  21600  immediate         -
      4      1    3600      7200  14400  21600  reserved          -
      5      1    7200     10800   7200  18000  immediate         -
    ");
}

#[test]
fn hosts_for_one_size() {
    // Processors 0 and 1 are mimir's, which runs sj jobs only; 2 and 3 are modi2's, which runs mj
    // jobs only. Job 2 waits for mimir while modi2 is idle.
    let jobs = [job(0, 3, 2, 3, SJ), job(1, 2, 2, 2, SJ), job(2, 2, 2, 2, MJ)];
    assert_snapshot!(chart(&named(&[("mimir", 2), ("modi2", 2)]), &jobs, "lsf"), @"
       3 |..33.
       2 |..33.
       1 |11122
       0 |11122
         +-----
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      2       0     10800      0  10800  immediate         -
      2      2    3600      7200  10800  18000  reserved          -
      3      2    7200      7200   7200  14400  immediate         -
    ");
}

/// Job 2 needs the whole host, and narrower jobs of its size keep passing it.
fn passed() -> [Asks; 5] {
    [
        job(0, 13, 2, 13, SJ),
        job(1, 2, 4, 2, SJ),
        job(2, 8, 2, 8, SJ),
        job(3, 6, 2, 6, SJ),
        job(4, 4, 2, 6, SJ),
    ]
}

#[test]
fn a_host_is_kept_idle_for_who_has_waited_too_long() {
    // At 10 job 3 ends, job 2 has waited for 9 hours, and job 4 passes it. At 13 job 1 ends, and
    // job 2 has waited for 12: the host is kept for it. Job 5 would fit and waits, until jobs 4 and
    // 2 have gone.
    assert_snapshot!(chart(&hosts(&[(4, MUCH)]), &passed(), "lsf"), @"
       3 |..3333333344444422....
       2 |..3333333344444422....
       1 |1111111111111...225555
       0 |1111111111111...225555
         +-----+----+----+----+-
          0         36000     72000
    job  procs  submit  estimate  start    end  reason      promised
      1      2       0     46800      0  46800  immediate          -
      2      4    3600      7200  57600  64800  reserved           -
      3      2    7200     28800   7200  36000  backfilled         -
      4      2   10800     21600  36000  57600  backfilled         -
      5      2   14400     21600  64800  79200  reserved           -
    ");
}

#[test]
fn a_host_is_not_kept_if_that_is_not_wanted() {
    // Job 5 starts at 13, and job 2 only when it has gone.
    assert_snapshot!(chart(&hosts(&[(4, MUCH)]), &passed(), "lsf(reserve=false)"), @"
       3 |..33333333444444.22
       2 |..33333333444444.22
       1 |1111111111111555522
       0 |1111111111111555522
         +-----+----+----+---
          0         36000
    job  procs  submit  estimate  start    end  reason      promised
      1      2       0     46800      0  46800  immediate          -
      2      4    3600      7200  61200  68400  reserved           -
      3      2    7200     28800   7200  36000  backfilled         -
      4      2   10800     21600  36000  57600  backfilled         -
      5      2   14400     21600  46800  61200  backfilled         -
    ");
}

#[test]
fn a_job_waits_for_the_host_that_is_kept_for_it() {
    // Host a has processors 0 to 3, host b the others. At 14 job 1 ends on a, which is then kept
    // for job 4, so job 5 does not start there at 15. At 16 either job fits on host b, and job 5
    // starts. Job 4 starts at 20, on a.
    let jobs = [
        job(0, 14, 2, 14, SJ),
        job(0, 20, 2, 20, SJ),
        job(0, 16, 4, 16, SJ),
        job(1, 2, 4, 2, SJ),
        job(15, 3, 2, 10, SJ),
    ];
    assert_snapshot!(chart(&hosts(&[(4, MUCH), (4, MUCH)]), &jobs, "lsf"), @"
       7 |3333333333333333......
       6 |3333333333333333......
       5 |3333333333333333555...
       4 |3333333333333333555...
       3 |2222222222222222222244
       2 |2222222222222222222244
       1 |11111111111111......44
       0 |11111111111111......44
         +-----+----+----+----+-
          0         36000     72000
    job  procs  submit  estimate  start    end  reason     promised
      1      2       0     50400      0  50400  immediate         -
      2      2       0     72000      0  72000  immediate         -
      3      4       0     57600      0  57600  immediate         -
      4      4    3600      7200  72000  79200  reserved          -
      5      2   54000     36000  57600  68400  reserved          -
    ");
}

#[test]
fn who_has_waited_too_long_starts_whoever_else_waits() {
    // A column is five hours. At 50 job 2, st-sj, has waited for more than 45 hours and starts,
    // before job 3, vst-lj.
    let jobs = [job(0, 50, 2, 50, LJ), job(5, 5, 2, 10, SJ), job(45, 5, 2, 5, LJ)];
    assert_snapshot!(chart_on(&named(&[("eir", 2)]), &jobs, "lsf", 5 * HOUR), @"
       1 |111111111123
       0 |111111111123
         +-----+----+-
          0         180000
    job  procs  submit  estimate   start     end  reason     promised
      1      2       0    180000       0  180000  immediate         -
      2      2   18000     36000  180000  198000  reserved          -
      3      2  162000     18000  198000  216000  reserved          -
    ");
}

#[test]
fn who_is_barred_on_all_hosts_is_in_nobodys_way() {
    // One mt job at a time: job 2, mt-lj, can start nowhere until job 1 ends at 4, so job 3,
    // vst-sj, does not wait for it.
    let jobs = [job(0, 4, 1, 100, LJ), job(1, 3, 1, 100, LJ), job(2, 4, 1, 4, SJ)];
    let machine = in_classes(hosts(&[(3, MUCH)]), |classes| classes.lengths[2].most = Some(1));
    assert_snapshot!(chart(&machine, &jobs, "lsf"), @"
       2 |.......
       1 |..3333.
       0 |1111222
         +-----+-
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      1       0    360000      0  14400  immediate         -
      2      1    3600    360000  14400  25200  reserved          -
      3      1    7200     14400   7200  21600  immediate         -
    ");
}

#[test]
fn the_host_with_the_fewest_processors_free() {
    // Processors 0 to 3 are a's, 4 to 6 b's, 7 to 9 c's. Job 1 goes to b, the first of the two with
    // 3 free; job 2 to c, since b has one left; job 3 takes that one, and job 4 has only a left.
    let jobs = [job(0, 8, 2, 8, SJ), job(1, 7, 2, 7, SJ), job(2, 6, 1, 6, SJ), job(3, 5, 2, 5, SJ)];
    assert_snapshot!(chart(&hosts(&[(4, MUCH), (3, MUCH), (3, MUCH)]), &jobs, "lsf"), @"
       9 |........
       8 |.2222222
       7 |.2222222
       6 |..333333
       5 |11111111
       4 |11111111
       3 |........
       2 |........
       1 |...44444
       0 |...44444
         +-----+--
          0
    job  procs  submit  estimate  start    end  reason     promised
      1      2       0     28800      0  28800  immediate         -
      2      2    3600     25200   3600  28800  immediate         -
      3      1    7200     21600   7200  28800  immediate         -
      4      2   10800     18000  10800  28800  immediate         -
    ");
}
