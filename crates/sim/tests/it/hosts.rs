//! The backfill family on hosts with memory, against reference implementations: the same start on
//! the same hosts for every job.

use miserly_core::{ActualRuntime, Kind, Machine, Request, Sharing, Span, Spread, Time};
use miserly_oracle::{NaiveJob, NaiveOnHosts, NaiveStart, schedule_on_hosts};
use miserly_sim::{Finished, Job};
use proptest::prelude::*;

use crate::support::{
    BOTH, LIMITED, ON_HOSTS, PREEMPTING, SEED, forms_workload, hosts_workload, in_three_queues, jobs,
    machine as machine_of, processors_on, run_on,
};

/// More depths, more orders of the candidates, held heads, and orders that count bypasses.
const MORE: [&str; 29] = [
    "easy(order=shortest, backfill=widest)",
    "easy(order=shortest, backfill=widest, hold_head=true)",
    "easy(order=random, draw=pass)",
    "easy(order=lxf, backfill=lxf, hold_head=true)",
    "easy(order='2 * bypassed - procs', backfill=shortest)",
    "easy(order=widest, backfill='bypassed')",
    "conservative(order=lxf)",
    "conservative(order=random, draw=pass)",
    "fcfs-backfill(depth=2)",
    "fcfs-backfill(depth=all)",
    "fcfs-backfill(depth=kept)",
    "sjf-backfill(depth=0)",
    "sjf-backfill(depth=3)",
    "sjf-backfill(depth=all)",
    "lxf-backfill(depth=4)",
    "lxf&w-bf(depth=kept)",
    "priority-backfill(hold_head=true, depth=2)",
    "priority-backfill(w_bypass=2, hold_head=true)",
    "priority-backfill(w_bypass=2, depth=all)",
    "selective-backfill(threshold=1)",
    "selective-backfill(threshold=inf)",
    "selective-backfill(threshold=1.5, order=lxf)",
    "selective-backfill(threshold=2, order='2 * bypassed - procs')",
    "selective-backfill(threshold=1.25, order=random, draw=pass)",
    "sorted(guarantee=3)",
    "sorted(order=lxf, late=head)",
    "sorted(order=lxf, guarantee=2)",
    "sorted(order=arrival)",
    "sorted(order=random, draw=pass, guarantee=2)",
];

/// Into how many parts the policies are cut: all of them, for every random case, would only be
/// slow.
const TURNS: usize = 6;

/// Where and when the product started the job.
fn start(machine: &Machine, job: &Finished) -> NaiveStart {
    NaiveStart { at: job.start, on: processors_on(machine, job.pes.as_ref().unwrap()), devices: vec![] }
}

fn agree(machine: &Machine, jobs: &[Job], turn: usize) -> Result<(), TestCaseError> {
    let policies: Vec<&str> = ON_HOSTS.iter().chain(&MORE).skip(turn).step_by(TURNS).copied().collect();
    agree_on(machine, jobs, &policies)
}

fn agree_on(machine: &Machine, jobs: &[Job], policies: &[&str]) -> Result<(), TestCaseError> {
    let naive: Vec<NaiveJob> =
        jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    for policy in policies {
        let twin = NaiveOnHosts::written(policy, SEED).expect("a naive version");
        for instants in BOTH {
            let ours: Vec<NaiveStart> =
                run_on(machine, jobs, policy, instants).0.iter().map(|job| start(machine, job)).collect();
            let theirs = schedule_on_hosts(machine, &naive, twin, instants);
            prop_assert_eq!(ours, theirs, "{}, {}", policy, instants);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_same_start_on_the_same_host(
        (machine, jobs) in hosts_workload(false, Spread::One, Sharing::Shared),
        turn in 0..TURNS,
    ) {
        agree(&machine, &jobs, turn)?;
    }

    #[test]
    fn under_overruns_too(
        (machine, jobs) in hosts_workload(true, Spread::One, Sharing::Shared),
        turn in 0..TURNS,
    ) {
        agree(&machine, &jobs, turn)?;
    }

    #[test]
    fn on_the_same_hosts_where_jobs_lie_on_several(
        (machine, jobs) in hosts_workload(true, Spread::Any, Sharing::Shared),
        turn in 0..TURNS,
    ) {
        agree(&machine, &jobs, turn)?;
    }

    #[test]
    fn on_the_same_hosts_where_jobs_share_none(
        (machine, jobs) in prop_oneof![
            hosts_workload(true, Spread::One, Sharing::Whole),
            hosts_workload(true, Spread::Any, Sharing::Whole),
        ],
        turn in 0..TURNS,
    ) {
        agree(&machine, &jobs, turn)?;
    }

    #[test]
    fn on_the_same_hosts_in_every_form(
        (machine, jobs) in prop_oneof![
            2 => forms_workload(true, Sharing::Shared),
            1 => forms_workload(false, Sharing::Shared),
            1 => forms_workload(true, Sharing::Whole),
        ],
        turn in 0..TURNS,
    ) {
        agree(&machine, &jobs, turn)?;
    }
}

/// Slurm's cycles on hosts that jobs may span.
const CYCLES: [&str; 7] = [
    "slurm",
    "slurm(bf_interval=1s, bf_resolution=1s)",
    "slurm(bf_interval=2s, bf_resolution=3s)",
    "slurm(bf_interval=5s, bf_first=3s, bf_resolution=1s, bf_window=20s, order=shortest)",
    "slurm(bf_interval=3s, bf_first=100s, bf_resolution=2s, bf_max_job_test=2, order=widest)",
    "slurm(bf_interval=1s, bf_resolution=10s, order=random)",
    "slurm(bf_interval=4s, bf_resolution=1s, batch_sched_delay=3s, order=shortest)",
];

/// The same for jobs of minutes.
const LONG_CYCLES: [&str; 3] = [
    "slurm",
    "slurm(bf_interval=20s, bf_resolution=7s, order=shortest)",
    "slurm(bf_interval=60s, bf_resolution=1s, bf_window=400s, order=widest)",
];

proptest! {
    #[test]
    fn slurm_reserves_the_same_hosts(
        (machine, jobs) in prop_oneof![
            hosts_workload(true, Spread::Any, Sharing::Shared),
            hosts_workload(false, Spread::Any, Sharing::Whole),
            forms_workload(true, Sharing::Shared),
            forms_workload(true, Sharing::Whole),
        ],
    ) {
        agree_on(&machine, &jobs, &CYCLES)?;
    }

    #[test]
    fn slurm_takes_ends_in_windows(
        (machine, jobs) in hosts_workload(true, Spread::Any, Sharing::Shared),
        times in 5..60i64,
    ) {
        let longer = |span: Span| Span::from_ticks(span.ticks().saturating_mul(times));
        let jobs: Vec<Job> = jobs.into_iter().map(|job| {
            let submit = Time::ZERO + longer(job.request.submit - Time::ZERO);
            let request = Request { submit, estimate: longer(job.request.estimate), ..job.request };
            Job { request, runtime: ActualRuntime(longer(job.runtime.0)), ..job }
        }).collect();
        agree_on(&machine, &jobs, &LONG_CYCLES)?;
    }
}

proptest! {
    #[test]
    fn slurm_limits_running_jobs(
        (machine, jobs) in hosts_workload(true, Spread::Any, Sharing::Shared),
    ) {
        let jobs: Vec<Job> = jobs.into_iter().map(|mut job| {
            job.request.user = u32::try_from(job.request.number % 3).ok().filter(|user| *user > 0);
            let procs = job.request.procs().get().min(4);
            job.request.demand = job.request.demand.with(Kind::Cpus, procs);
            job
        }).filter(|job| machine.could_hold(&job.request)).collect();
        agree_on(&machine, &jobs, &LIMITED)?;
    }
}

proptest! {
    #[test]
    fn slurm_preempts_the_same_jobs(
        (machine, jobs) in prop_oneof![
            hosts_workload(true, Spread::Any, Sharing::Shared),
            hosts_workload(true, Spread::Any, Sharing::Whole),
            forms_workload(true, Sharing::Shared),
        ],
    ) {
        agree_on(&machine, &in_three_queues(jobs), &PREEMPTING)?;
    }
}

/// Miser's windows on hosts of any kind, for jobs with an earliest start too.
const WINDOWS: [&str; 1] = ["miser(horizon=none)"];

/// Returns the jobs, of which some must not begin before a later instant.
fn with_begins((machine, mut jobs): (Machine, Vec<Job>), waits: &[i64]) -> (Machine, Vec<Job>) {
    for (job, wait) in jobs.iter_mut().zip(waits).filter(|(_, wait)| **wait > 0) {
        job.request.constraints.begin = Some(job.request.submit + Span::from_secs(*wait).unwrap());
    }
    (machine, jobs)
}

proptest! {
    #[test]
    fn windows_on_hosts(
        workload in prop_oneof![
            hosts_workload(true, Spread::One, Sharing::Shared),
            hosts_workload(true, Spread::Any, Sharing::Shared),
            hosts_workload(false, Spread::Any, Sharing::Whole),
        ],
        waits in prop::collection::vec(prop_oneof![2 => Just(0), 1 => 1i64..60], 40),
    ) {
        let (machine, jobs) = with_begins(workload, &waits);
        agree_on(&machine, &jobs, &WINDOWS)?;
    }

    /// A window that would end beyond the horizon is refused, and all others are promised and kept.
    #[test]
    fn windows_on_hosts_end_within_the_horizon(
        (machine, jobs) in hosts_workload(false, Spread::Any, Sharing::Shared),
        horizon in 1i64..60,
    ) {
        let policy = format!("miser(horizon={horizon}s)");
        let limit = Span::from_secs(horizon).unwrap();
        let ended = run_on(&machine, &jobs, &policy, miserly_core::EventOrder::Batched).0;
        for job in &ended {
            let latest = job.promised.expect("each accepted job has a promise");
            prop_assert!(latest + job.request.estimate <= job.request.submit + limit, "{}", job.request.number);
            prop_assert!(job.start <= latest);
        }
        // Alone on the machine, a job has its window at once.
        let short = jobs.iter().min_by_key(|job| (job.request.submit, job.request.number));
        if let Some(job) = short.filter(|job| job.request.planned() <= limit) {
            prop_assert!(ended.iter().any(|one| one.request.number == job.request.number));
        }
    }
}

/// Job 1 has no expected end, and ends. Job 2 still has a reservation behind it, job 3 overtakes
/// it, and no job waits for ever.
#[test]
fn who_waits_for_a_job_without_end_starts_when_it_ends() {
    let mut jobs = jobs(&[(0, 20, 3, 20), (1, 5, 2, 5), (2, 30, 1, 30)]);
    jobs[0].request.estimate = Span::MAX;
    for (policy, promised) in [
        ("fcfs-backfill(depth=kept)", Some(Time::MAX)),
        ("fcfs-backfill", Some(Time::MAX)),
        ("fcfs-backfill(depth=all)", None),
    ] {
        for instants in BOTH {
            let ended = run_on(&machine_of(&[(4, 1 << 20)]), &jobs, policy, instants);
            assert_eq!(ended.starts(), [0, 20, 2], "{policy}, {instants}");
            assert_eq!(ended.0[1].promised, promised, "{policy}, {instants}");
        }
    }
}
