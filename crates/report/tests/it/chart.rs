//! From a few jobs to the picture of their schedule, by way of a log, so that the rules of logs
//! apply.

use std::convert::Infallible;
use std::io;

use miserly_core::{
    Driver, EventOrder, Host, Kind, Ledger, Machine, OpportunisticConfig, Procs, Request, Resources, Span,
    System, Time,
};
use miserly_policies::PolicySpec;
use miserly_report::gantt;
use miserly_sim::{Finished, Job, Observer, Simulation};
use miserly_workload::{JobOptions, Jobs, Overrun, Trace};

/// A job as (submit, runtime, processors, estimate), in seconds.
pub(crate) type Quad = (i64, i64, u32, i64);

#[derive(Default)]
struct Schedule(Vec<Finished>);

impl Observer for Schedule {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.0.push(job.clone());
        Ok(())
    }
}

/// The schedule of the jobs, numbered from 1, with a second a column.
#[track_caller]
pub(crate) fn chart(procs: u32, jobs: &[Quad], policy: &str) -> String {
    chart_as(procs, jobs, policy, EventOrder::Batched, Overrun::Kill)
}

#[track_caller]
pub(crate) fn chart_as(
    procs: u32,
    jobs: &[Quad],
    policy: &str,
    instants: EventOrder,
    overrun: Overrun,
) -> String {
    let line = |(number, &(submit, runtime, procs, estimate)): (usize, &Quad)| {
        format!("{number} {submit} -1 {runtime} {procs} -1 -1 -1 {estimate} -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    };
    let log: String = (1..).zip(jobs).map(line).collect();
    let trace = Trace::memory("chart", log.into());
    let options = JobOptions { procs: Procs::new(procs.into()), overrun, ..JobOptions::default() };
    let logged = Jobs::new(&trace, true, options).expect("a log in memory can be read");
    let mut jobs =
        logged.map(|job| job.map(|job| Job { killed: job.killed, ..Job::new(job.request, job.runtime.0) }));
    let machine = Machine::plain(u64::from(procs));
    let spec: PolicySpec = policy.parse().expect("a policy");
    let policy = spec.build(&machine, 1).expect("one that runs on a plain machine");
    let mut schedule = Schedule::default();
    let mut simulation = Simulation::new(machine, policy, instants).with_numbered_processors();
    simulation.run(&mut jobs, &mut [&mut schedule]).expect("the run ends well");
    schedule.0.sort_by_key(|job| job.request.number);
    gantt(u64::from(procs), &schedule.0, 0, 1)
}

/// A job on hosts with memory: seconds, processors, and kB for all of them together.
#[derive(Clone, Copy)]
pub(crate) struct Asks {
    pub(crate) submit: i64,
    pub(crate) runtime: i64,
    pub(crate) procs: u64,
    pub(crate) estimate: i64,
    pub(crate) memory: u64,
    /// Memory that it really uses.
    pub(crate) used: u64,
}

/// A job that asks for no memory.
pub(crate) fn asks((submit, runtime, procs, estimate): Quad) -> Asks {
    Asks { submit, runtime, procs: procs.into(), estimate, memory: 0, used: 0 }
}

impl Asks {
    /// Requests `memory` and uses all of it.
    pub(crate) fn memory(self, memory: u64) -> Asks {
        Asks { memory, used: memory, ..self }
    }

    fn job(self, number: i64) -> Job {
        let secs = |secs| Span::from_secs(secs).expect("a few seconds");
        let demand = Resources::cpus(self.procs).with(Kind::Memory, self.memory);
        let request = Request::new(number, Time::ZERO + secs(self.submit), secs(self.estimate), demand);
        Job { used_memory: Some(self.used), ..Job::new(request, secs(self.runtime)) }
    }
}

/// Returns hosts with these processors and memory, named a, b, c...
pub(crate) fn hosts(each: &[(u64, u64)]) -> Machine {
    let host = |(name, &(cpus, memory)): (char, &(u64, u64))| Host {
        name: name.into(),
        capacity: Resources::cpus(cpus).with(Kind::Memory, memory),
    };
    Machine::new(('a'..).zip(each).map(host).collect())
}

/// Draws the schedule of the jobs, numbered from 1, with `unit` seconds a column.
///
/// The hosts' processors are stacked, the first host's at the bottom.
#[track_caller]
pub(crate) fn chart_on(machine: &Machine, jobs: &[Asks], policy: &str, unit: i64) -> String {
    chart_on_as(machine, jobs, policy, unit, EventOrder::Batched)
}

/// Draws with a second a column. The picture must be equal under both event orders.
#[track_caller]
pub(crate) fn chart_on_both(machine: &Machine, jobs: &[Asks], policy: &str) -> String {
    let chart = chart_on(machine, jobs, policy, 1);
    assert_eq!(chart_on_as(machine, jobs, policy, 1, EventOrder::Sequential), chart, "sequential, and batch");
    chart
}

#[track_caller]
fn chart_on_as(machine: &Machine, jobs: &[Asks], policy: &str, unit: i64, instants: EventOrder) -> String {
    let spec: PolicySpec = policy.parse().expect("a policy");
    let policy = spec.build(machine, 1).expect("one that runs on this machine");
    let mut schedule = Schedule::default();
    let mut simulation = Simulation::new(machine.clone(), policy, instants).with_numbered_processors();
    let mut jobs = (1..).zip(jobs).map(|(number, asks)| Ok::<_, Infallible>(asks.job(number)));
    simulation.run(&mut jobs, &mut [&mut schedule]).expect("the run ends well");
    schedule.0.sort_by_key(|job| job.request.number);
    gantt(machine.capacity().cpus_count(), &schedule.0, 0, unit)
}

/// Draws the schedule under `miser` in a pool of a larger machine.
///
/// Jobs run opportunistically and are parked a second before their starts. Interactive work uses
/// the processors of `load` from each second on. The picture must be equal under both event orders.
#[track_caller]
pub(crate) fn chart_ahead(pool: &Machine, whole: Resources, load: &[(i64, u64)], jobs: &[Asks]) -> String {
    let charts = [EventOrder::Batched, EventOrder::Sequential].map(|instants| {
        let miser =
            "miser".parse::<PolicySpec>().expect("a policy").build(pool, 1).expect("it runs in pools");
        let driver = Driver::new(Ledger::new(pool.clone()), miser, instants);
        let second = Span::from_secs(1).expect("a second");
        let system = System::new(vec![driver])
            .with_opportunistic(OpportunisticConfig { lead: second, machine: whole });
        let load: Vec<_> = load
            .iter()
            .map(|&(at, procs)| (Time::from_secs(at).expect("a few"), Procs::new(procs)))
            .collect();
        let mut simulation = Simulation::of_queues(system, whole.cpus_count())
            .with_numbered_processors()
            .with_interactive(Box::new(load.into_iter()));
        let mut schedule = Schedule::default();
        let mut jobs = (1..).zip(jobs).map(|(number, asks)| Ok::<_, Infallible>(asks.job(number)));
        simulation.run(&mut jobs, &mut [&mut schedule]).expect("the run ends well");
        schedule.0.sort_by_key(|job| job.request.number);
        gantt(whole.cpus_count(), &schedule.0, 0, 1)
    });
    assert_eq!(charts[0], charts[1], "sequential, and batch");
    charts[0].clone()
}
