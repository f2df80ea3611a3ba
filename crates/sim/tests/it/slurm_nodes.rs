//! The policy `slurm` on nodes: whole nodes in reservations, and times rounded to the clock.

use miserly_core::{EventOrder, Machine, Request, Resources, Span, Spread, Time};
use miserly_sim::Job;

use crate::support::{machine, run_on};

/// Runs jobs, each by its submission, processors, limit and runtime. Returns their starts.
fn starts(machine: &Machine, policy: &str, jobs: &[(i64, u64, i64, i64)]) -> Vec<i64> {
    let span = |seconds| Span::from_secs(seconds).unwrap();
    let job = |(number, &(submit, procs, limit, runtime)): (i64, &(i64, u64, i64, i64))| {
        let demand = Resources::cpus(procs);
        let request = Request::new(number, Time::from_secs(submit).unwrap(), span(limit), demand);
        Job::new(request, span(runtime))
    };
    let jobs: Vec<Job> = (1..).zip(jobs).map(job).collect();
    let schedule = run_on(machine, &jobs, policy, EventOrder::Batched);
    schedule.0.iter().map(|job| job.start.secs()).collect()
}

#[track_caller]
fn check(policy: &str, jobs: &[(i64, u64, i64, i64)], on_nodes: &[i64], counted: &[i64]) {
    let nodes = machine(&[(4, 0), (4, 0)]).with_spread(Spread::Any);
    assert_eq!(starts(&nodes, policy, jobs), on_nodes, "on nodes");
    assert_eq!(starts(&Machine::plain(8_u64), policy, jobs), counted, "counted");
}

const TO_THE_SECOND: &str = "slurm(bf_interval=10s, bf_resolution=1s)";

#[test]
fn a_reservation_holds_whole_nodes() {
    // The first job has half of a node, and the second all of the other one. The third waits for three processors of the first
    // node. The fourth has room beside all of them, but no node to the end of its limit.
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 200, 50)];
    check(TO_THE_SECOND, &jobs, &[0, 0, 100, 100], &[0, 0, 100, 10]);
    // It ends before the reservation.
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 80, 50)];
    check(TO_THE_SECOND, &jobs, &[0, 0, 100, 10], &[0, 0, 100, 10]);
}

#[test]
fn reservations_begin_at_a_minute_of_the_clock() {
    // The reservation for 100 begins at 60, so a limit of 80 s is too long on its node.
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 80, 50)];
    check("slurm(bf_interval=10s)", &jobs, &[0, 0, 100, 100], &[0, 0, 100, 10]);
    let jobs = [(0, 2, 100, 100), (0, 4, 300, 300), (1, 3, 100, 100), (2, 1, 45, 45)];
    check("slurm(bf_interval=10s)", &jobs, &[0, 0, 100, 10], &[0, 0, 100, 10]);
}
