//! Small workloads, and runs of them.

use std::convert::Infallible;
use std::io;

use miserly_core::{
    EventOrder, Form, Host, HostGroup, HostId, JobNumber, Kind, Machine, PeSet, Request, Resources, Sharing,
    Span, Spread, StartReason, Time, draw,
};
use miserly_policies::PolicySpec;
use miserly_sim::{Finished, Job, Observer, Simulation};
use proptest::prelude::*;

/// A job as (submit, runtime, processors, estimate), in the unit of the test.
pub(crate) type Quad = (i64, i64, u64, i64);

/// Jobs numbered from 1, their times in seconds.
pub(crate) fn jobs(quads: &[Quad]) -> Vec<Job> {
    jobs_in(1_000_000, quads)
}

/// The seed of every run.
pub(crate) const SEED: u64 = 11;

/// Jobs numbered from 1, their times in ticks, where whole seconds would only be larger numbers.
pub(crate) fn tick_jobs(quads: &[Quad]) -> Vec<Job> {
    jobs_in(1, quads)
}

/// Returns jobs numbered from 1, with times in units of `ticks`.
pub(crate) fn jobs_in(ticks: i64, quads: &[Quad]) -> Vec<Job> {
    let job = |(number, &(submit, runtime, procs, estimate)): (i64, &Quad)| {
        let request = Request {
            number,
            submit: Time::from_ticks(submit * ticks),
            estimate: Span::from_ticks(estimate * ticks),
            demand: Resources::cpus(procs).with(Kind::Memory, number.unsigned_abs() % 5),
            form: Form::ANY,
            user: u32::try_from(number % 4).ok().filter(|&user| user > 0),
            group: u32::try_from(number % 3).ok().filter(|&group| group > 0),
            queue: None,
            sizes: None,
            constraints: miserly_core::Constraints::NONE,
            devices: None,
            known_runtime: None,
        };
        Job::new(request, Span::from_ticks(runtime * ticks))
    };
    (1..).zip(quads).map(job).collect()
}

/// The outcome of the jobs, in the order of their numbers.
#[derive(Default)]
pub(crate) struct Schedule(pub(crate) Vec<Finished>);

impl Observer for Schedule {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.0.push(job.clone());
        Ok(())
    }
}

/// The job, its start, its start reason, its promise, and whether the promise was broken.
pub(crate) type Decision = (JobNumber, Time, Option<StartReason>, Option<Time>, bool);

impl Schedule {
    /// The starts in seconds, by job number.
    pub(crate) fn starts(&self) -> Vec<i64> {
        self.0.iter().map(|job| job.start.secs()).collect()
    }

    /// The exact starts and their reasons, by job number.
    pub(crate) fn decisions(&self) -> Vec<Decision> {
        let decision = |job: &Finished| (job.request.number, job.start, job.reason, job.promised, job.broken);
        self.0.iter().map(decision).collect()
    }
}

/// Submission order: by time, then as numbered.
pub(crate) fn in_order(jobs: &[Job]) -> impl Iterator<Item = Result<Job, Infallible>> {
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| job.request.submit);
    jobs.into_iter().map(Ok)
}

/// Runs a policy on a machine of `procs` processors.
#[track_caller]
pub(crate) fn run(procs: u64, jobs: &[Job], policy: &str, instants: EventOrder) -> Schedule {
    run_on(&Machine::plain(procs), jobs, policy, instants)
}

/// Discloses runtimes to a policy that needs them.
pub(crate) fn disclosing(simulation: Simulation, policy: &str) -> Simulation {
    let needs = policy.parse::<PolicySpec>().unwrap().needs();
    if needs.known_runtimes { simulation.with_known_runtimes() } else { simulation }
}

/// No run of a test needs as many.
const MOST_ROUNDS: usize = 10_000;

/// Runs a policy on any machine.
#[track_caller]
pub(crate) fn run_on(machine: &Machine, jobs: &[Job], name: &str, instants: EventOrder) -> Schedule {
    let policy = name.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut schedule = Schedule::default();
    let simulation = Simulation::new(machine.clone(), policy, instants).with_numbered_processors();
    let mut simulation = disclosing(simulation, name);
    let mut source = in_order(jobs).peekable();
    let mut rounds = 0;
    while simulation.step(&mut source, &mut [&mut schedule]).unwrap().is_some() {
        rounds += 1;
        assert!(rounds < MOST_ROUNDS, "{name} wakes up for ever");
    }
    let ledger = simulation.system().queues()[0].ledger();
    assert_eq!((ledger.waiting_count(), ledger.suspended_count()), (0, 0), "{name} leaves nobody behind");
    schedule.0.sort_by_key(|job| job.request.number);
    schedule
}

/// Every kind of order, as parameters of a policy.
pub(crate) const ORDERS: [&str; 45] = [
    "order=arrival",
    "order=shortest",
    "order=longest",
    "order=narrowest",
    "order=widest",
    "order=smallest",
    "order=largest",
    "order=random",
    "order=random, draw=pass",
    "order=random/length, seed=3",
    "order=random/length, draw=pass, seed=3",
    "order=shortest, weight=0.03",
    "order=longest, weight=2.5",
    "order=narrowest, weight=0.05",
    "order=largest, weight=20",
    "order=random, weight=0.04",
    "order=random, weight=0.04, draw=pass",
    "order=random/length, weight=0.02",
    "order=sjf",
    "order=sqf",
    "order=saf",
    "order=lxf",
    "order=wfp3",
    "order=unicep",
    "order=f1",
    "order=f2",
    "order=f3",
    "order=f4",
    "order='wait / estimate'",
    "order='wait / 180 + 5 * (wait + estimate) / estimate + 0.2 * procs'",
    "order='1 / estimate'",
    "order='procs - wait'",
    "order='if(wait > 5, wait, -estimate)'",
    "order='memory / (user + 1) - procs'",
    "order='0 / (procs - 2)'",
    "order='procs - wait', weight=0.5",
    "order=f1, weight=30",
    "order=unicep, weight=0.01",
    "order=fair-share",
    "order=fair-share, half_life=2s, weight=0.003",
    "order='wait / 3 - 2 * usage_share', half_life=1s",
    "order='procs * (1 - usage_share)', half_life=5s",
    "order='wait / 3 - 2 * usage_share', half_life=none",
    "order='-usage', half_life=none",
    "order='wait / 3 - 9 * group_usage', half_life=2s",
];

/// Policies that predict runtimes.
const PREDICTED: [&str; 24] = [
    "easy(predict=request)",
    "easy(predict=last2)",
    "easy(predict=last2, correct=increment)",
    "easy(predict=last2, correct=double, backfill=shortest)",
    "easy(predict=last2, backfill=lxf)",
    "easy(predict=last2, book=requested, backfill=shortest)",
    "easy(predict=exact, backfill=shortest)",
    "easy(predict=2, order=shortest)",
    "easy(predict=0, correct=double)",
    "conservative(predict=last2)",
    "conservative(predict=last2, correct=increment, order=shortest)",
    "conservative(predict=last2, correct=double, keep_reservations=false)",
    "conservative(predict=last2, book=requested, order=shortest)",
    "selective-backfill(predict=last2, correct=increment, threshold=1.3)",
    "easy(predict=similar, backfill=shortest)",
    "easy(predict=last2, book=both, backfill=shortest)",
    "easy(predict=similar, book=both, correct=increment)",
    "easy(predict=0, book=both)",
    "conservative(predict=last2, book=both, order=shortest)",
    "conservative(predict=similar, book=both, correct=increment, keep_reservations=false)",
    "easy(predict=similar, book=guarded, backfill=shortest)",
    "easy(predict=last2, book=guarded, backfill=lxf)",
    "easy(predict=0, book=guarded)",
    "easy(predict=exact, book=guarded, order=shortest, backfill=shortest)",
];

/// Policies with cycles.
const IN_CYCLES: [&str; 5] = [
    "slurm",
    "slurm(bf_interval=1s, bf_resolution=1s)",
    "slurm(bf_interval=2s, bf_first=1s, bf_resolution=1s, bf_window=3s)",
    "slurm(bf_interval=1s, bf_resolution=3s, bf_max_job_test=2, order=shortest)",
    "slurm(bf_interval=3s, bf_first=1000s, bf_resolution=2s, order=random)",
];

/// Limits of running jobs, with cycles. No job of up to four processors exceeds one by itself.
pub(crate) const LIMITED: [&str; 5] = [
    "slurm(bf_interval=1s, bf_resolution=1s, limits='all: user_jobs=2')",
    "slurm(bf_interval=1s, bf_resolution=1s, limits='all: user_procs=4', order=shortest)",
    "slurm(bf_interval=2s, bf_resolution=3s, limits='all: jobs=3; all: user_jobs=1', bf_max_job_test=2)",
    "slurm(bf_interval=2s, bf_resolution=1s, limits='all: procs=6; all: user_procs=5', order=widest)",
    "slurm(bf_interval=2s, bf_resolution=1s, limits='all: memory=3; all: user_memory=1')",
];

/// Preemption, for jobs of three queues.
pub(crate) const PREEMPTING: [&str; 13] = [
    "slurm(bf_interval=1s, bf_resolution=1s, preempt='0: by=1+2; 1: by=2, rank=1', requeue_delay=2s)",
    "slurm(bf_interval=3s, bf_resolution=1s, preempt='0: by=1+2, exempt=3s; 1: by=2', requeue_delay=1s, order=shortest)",
    "slurm(bf_interval=2s, bf_resolution=1s, preempt='0: by=2, grace=2s; 1: by=2, rank=3, grace=5s', requeue_delay=4s)",
    "slurm(bf_interval=2s, bf_resolution=2s, preempt='0: by=2; 1: by=2', preempt_youngest_first=true, requeue_delay=3s, order=widest)",
    "slurm(bf_interval=1s, bf_resolution=1s, preempt='1: by=0+2; 2: by=0', preempt_reorder_count=0, requeue_delay=1s)",
    "slurm(bf_interval=5s, bf_resolution=1s, preempt='0: by=1+2; 1: by=2', preempt_reorder_count=3, preempt_strict_order=true, requeue_delay=2s, limits='all: jobs=4')",
    "slurm(bf_interval=2s, bf_resolution=1s, preempt='0: by=2; 1: by=2', preempt_completing=3s, preempt_retry=5s, requeue_delay=2s, order=widest)",
    "slurm(bf_interval=2s, bf_resolution=1s, preempt='0: by_priority=0; 1: by=2, by_priority=1', requeue_delay=1s, order=shortest)",
    "slurm(bf_interval=3s, bf_resolution=1s, preempt='0: by_priority=0+1; 1: by_priority=0+1, grace=2s', preempt_retry=3s, order=widest)",
    "slurm(bf_interval=2s, bf_resolution=1s, preempt='0: by=1+2, mode=suspend; 1: by=2, mode=suspend')",
    "slurm(bf_interval=3s, bf_resolution=1s, preempt='0: by=1+2, mode=suspend; 1: by=2', requeue_delay=2s, order=widest)",
    "slurm(bf_interval=2s, bf_resolution=1s, preempt='0: by=1; 1: by=2, mode=suspend', requeue_delay=3s, order='wait / estimate')",
    "slurm(bf_interval=3s, bf_resolution=1s, preempt='0: by=2; 1: by=2', requeue_delay=2s, batch_sched_delay=5s)",
];

/// Returns jobs of three queues.
pub(crate) fn in_three_queues(jobs: Vec<Job>) -> Vec<Job> {
    let queue = |mut job: Job| {
        job.request.queue = u32::try_from(job.request.number % 3).ok();
        job
    };
    jobs.into_iter().map(queue).collect()
}

/// Every policy of the family with every order.
pub(crate) fn policies() -> Vec<String> {
    let mut all = Vec::new();
    for order in ORDERS {
        all.push(format!("fcfs({order})"));
        all.push(format!("conservative({order})"));
        all.push(format!("conservative({order}, keep_reservations=false)"));
        all.push(format!("easy({order})"));
        all.push(format!("easy({order}, hold_head=true)"));
        all.push(format!("easy({order}, backfill=shortest)"));
        all.push(format!("easy({order}, backfill=random)"));
        all.push(format!("easy({order}, backfill=lxf)"));
        all.push(format!("selective-backfill({order})"));
        all.push(format!("selective-backfill({order}, threshold=1.3)"));
    }
    for threshold in ["1", "1.05", "4", "20", "inf"] {
        all.push(format!("selective-backfill(threshold={threshold})"));
    }
    all.extend(PREDICTED.map(str::to_owned));
    all.extend(IN_CYCLES.map(str::to_owned));
    for guarantee in 1..=3 {
        let orders = ["shortest", "random, draw=pass", "shortest, weight=0.03", "arrival", "widest", "wfp3"];
        all.extend(orders.map(|order| format!("sorted(guarantee={guarantee}, order={order})")));
        all.extend(orders.map(|order| format!("sorted(guarantee={guarantee}, order={order}, late=head)")));
    }
    for backfill in &ORDERS[1..] {
        all.push(format!("easy({})", backfill.replace("order=", "backfill=")));
    }
    all
}

/// Into how many parts the policies are cut.
const TURNS: usize = 24;

/// A twenty-fourth of the policies: all of them, for every random case, would only be slow.
pub(crate) fn some_policies() -> impl Strategy<Value = Vec<String>> {
    let taken = |turn| policies().into_iter().skip(turn).step_by(TURNS).collect();
    (0..TURNS).prop_map(taken)
}

/// The parts of a written order that count in seconds.
const IN_SECONDS: [&str; 16] = [
    "slurm", "predict", "weight", "length", "'", "sjf", "sqf", "saf", "lxf", "wfp3", "unicep", "fair", "=f1",
    "=f2", "=f3", "=f4",
];

/// Returns jobs for a policy, with times in ticks, where the handling of overdue jobs matters most.
///
/// If estimates count in seconds and are divisors, the unit is three tenths of a second. Then some
/// estimates are above the least divisor and some below. An estimate of zero becomes three tenths.
/// Jobs behind overdue ones are planned again after each span of the shortest estimate, which must
/// not be a single tick.
pub(crate) fn jobs_for(policy: &str, quads: &[Quad]) -> Vec<Job> {
    let in_seconds = IN_SECONDS.iter().any(|word| policy.contains(word));
    if !in_seconds {
        return tick_jobs(quads);
    }
    let longer = |&(submit, runtime, procs, estimate): &Quad| (submit, runtime, procs, estimate.max(1));
    jobs_in(300_000, &quads.iter().map(longer).collect::<Vec<_>>())
}

/// A machine and some jobs on it, crowded enough for queues, with many equal instants.
///
/// `overruns`: whether jobs may run past their estimates.
pub(crate) fn workload(overruns: bool) -> impl Strategy<Value = (u64, Vec<Quad>)> {
    (1u64..12).prop_flat_map(move |procs| {
        let job = (0i64..60, 0i64..25, 1..=procs, 0i64..30);
        let fix = move |(submit, runtime, procs, estimate): Quad| {
            (submit, runtime, procs, if overruns { estimate } else { estimate.max(runtime) })
        };
        (Just(procs), prop::collection::vec(job.prop_map(fix), 1..40))
    })
}

/// Hundreds of jobs in the queue at once, so that every index holds several chunks.
pub(crate) fn crowd(seed: u64) -> (u64, Vec<Quad>) {
    let below = |number, which, limit| i64::try_from(draw(seed, number, which) % limit).unwrap();
    let job = |number| {
        (
            below(number, 0, 400),
            below(number, 1, 200),
            1 + draw(seed, number, 2) % 40,
            1 + below(number, 3, 300),
        )
    };
    (40, (0..200).map(job).collect())
}

/// Both conventions.
pub(crate) const BOTH: [EventOrder; 2] = [EventOrder::Batched, EventOrder::Sequential];

/// A machine of a few hosts, and jobs that could run there, crowded as in [`workload`]. Memory is
/// as tight as processors. Some estimates are for ever.
pub(crate) fn hosts_workload(
    overruns: bool,
    spread: Spread,
    sharing: Sharing,
) -> impl Strategy<Value = (Machine, Vec<Job>)> {
    let host = (1u64..8, 1u64..12);
    prop::collection::vec(host, 1..5).prop_flat_map(move |hosts| {
        let machine = machine(&hosts).with_spread(spread).with_sharing(sharing);
        let for_ever = prop_oneof![15 => Just(false), 1 => Just(true)];
        let job = (0i64..60, 0i64..25, 1u64..12, 0i64..30, for_ever, 0u64..14, any::<bool>());
        let jobs = prop::collection::vec(job, 1..40);
        (Just(machine), jobs).prop_map(move |(machine, asks)| {
            let mut all: Vec<Job> = Vec::new();
            for (submit, runtime, procs, estimate, for_ever, memory, outgrows) in asks {
                // Overdue jobs are waited for by the shortest estimate: of a second here, not of a
                // tick.
                let estimate = if overruns { estimate.max(1) } else { estimate.max(runtime) };
                let number = i64::try_from(all.len()).unwrap() + 1;
                let mut job = jobs_in(1_000_000, &[(submit, runtime, procs, estimate)]).remove(0);
                job.request.number = number;
                job.request.demand = Resources::cpus(procs).with(Kind::Memory, memory);
                if for_ever {
                    job.request.estimate = Span::MAX;
                }
                job.used_memory = outgrows.then_some(memory);
                if machine.could_hold(&job.request) {
                    all.push(job);
                }
            }
            (machine, all)
        })
    })
}

/// A machine of a few hosts over which jobs may span, and jobs as in [`hosts_workload`], most of them in a form of their
/// own.
pub(crate) fn forms_workload(overruns: bool, sharing: Sharing) -> impl Strategy<Value = (Machine, Vec<Job>)> {
    let form = (any::<bool>(), 0u32..5, any::<bool>(), 0u8..4, 0u16..6);
    let forms = prop::collection::vec(form, 40);
    let groups = prop::collection::vec(prop::collection::vec(0u32..5, 1..4), 2);
    let weights = prop_oneof![Just(vec![]), prop::collection::vec(1u64..3, 5)];
    let workload = hosts_workload(overruns, Spread::Any, sharing);
    (workload, forms, groups, weights).prop_map(|((machine, mut jobs), forms, groups, weights)| {
        let groups: Vec<Vec<HostId>> =
            groups.into_iter().map(|group| group.into_iter().map(HostId).collect()).collect();
        let machine = machine.with_groups(&groups).with_weights(weights);
        for (job, (has_form, parts, apart, alone, group)) in jobs.iter_mut().zip(forms) {
            if has_form {
                let group = Some(HostGroup(group)).filter(|group| usize::from(group.0) < groups.len());
                job.request.form = Form { apart, alone: alone == 0, group, ..Form::parts(parts) };
            }
        }
        jobs.retain(|job| machine.could_hold(&job.request));
        (machine, jobs)
    })
}

/// Returns hosts with these processors and this memory.
pub(crate) fn machine(hosts: &[(u64, u64)]) -> Machine {
    let host = |(name, &(cpus, memory)): (char, &(u64, u64))| Host {
        name: name.into(),
        capacity: Resources::cpus(cpus).with(Kind::Memory, memory),
    };
    Machine::new(('a'..).zip(hosts).map(host).collect())
}

/// How many of these processors are on which host: a host's are numbered behind those of the hosts
/// before it.
pub(crate) fn processors_on(machine: &Machine, pes: &PeSet) -> Vec<(usize, u64)> {
    let mut low = 0;
    let on = machine.hosts().iter().enumerate().map(|(place, host)| {
        let end = low + host.capacity.cpus_count().get();
        let here = pes.ranges().iter().flat_map(|&(first, last)| u64::from(first)..=u64::from(last));
        let count = here.filter(|pe| (low..end).contains(pe)).count() as u64;
        low = end;
        (place, count)
    });
    on.filter(|(_, count)| *count > 0).collect()
}

/// Policies that run on hosts that jobs share, each on one of them.
pub(crate) const ON_SHARED_HOSTS: [&str; 13] = [
    "immediate(policy=fcfs-backfill, quantum=3, after=2)",
    "immediate(policy='fcfs-backfill(depth=kept)', quantum=4, after=0, keep_promises=true)",
    "immediate(policy=fcfs-backfill, quantum=3, after=1, keep_promises=true, keep_work=true)",
    "immediate(quantum=2, after=4)",
    "immediate(policy=sjf-backfill, memory=3, quantum=5, after=1)",
    "immediate(policy='sjf-backfill(depth=kept)', quantum=2, after=0)",
    "immediate(policy='priority-backfill(w_bypass=3)', quantum=7, after=3)",
    "soon(quantum=3)",
    "soon(policy=fcfs-backfill, memory=3, quantum=2)",
    "soon(policy='fcfs-backfill(depth=kept)', keep_promises=true, quantum=3)",
    "soon(policy='conservative(keep_reservations=false)', keep_work=true, quantum=4)",
    "soon(policy=sjf-backfill, keep_promises=true, quantum=2)",
    "immediate(policy='selective-backfill(threshold=1.5)', quantum=3, after=1)",
];

/// Policies that run on any hosts.
pub(crate) const ON_HOSTS: [&str; 23] = [
    "fcfs",
    "fcfs(order=shortest)",
    "easy",
    "easy(backfill=shortest)",
    "easy(order=widest, hold_head=true)",
    "easy(order=lxf)",
    "conservative",
    "conservative(order=shortest)",
    "conservative(keep_reservations=false)",
    "conservative(order=widest, keep_reservations=false)",
    "priority-backfill",
    "priority-backfill(w_bypass=2, depth=2)",
    "priority-bf(depth=3)",
    "lxf&w-bf(depth=all)",
    "sjf-backfill",
    "fcfs-backfill(depth=0)",
    "sjf-backfill(depth=kept)",
    "selective-backfill",
    "selective-backfill(threshold=1.1)",
    "selective-backfill(threshold=4, order=widest)",
    "sorted",
    "sorted(guarantee=2, order=widest)",
    "sorted(guarantee=2, late=head)",
];

/// Policies that run on any hosts, of which there is a reference implementation on processors only.
pub(crate) const MORE_ON_HOSTS: [&str; 7] = [
    "miser(horizon=none)",
    "miser(horizon=40s)",
    "slurm(bf_interval=2s, bf_resolution=1s)",
    "slurm(bf_interval=1s, bf_resolution=1s, bf_window=3s, order=shortest)",
    "easy(predict=similar, book=guarded, backfill=shortest)",
    "easy(predict=0, book=guarded)",
    "conservative(predict=last2, book=both)",
];
