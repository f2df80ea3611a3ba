//! A made-up workload for a machine of many hosts: whole numbers only, so that it is the same
//! everywhere.

use miserly_core::{Host, JobNumber, Kind, Machine, Request, Resources, Span, Time, draw};
use miserly_sim::Job;

/// Processors of a host.
const CPUS: u64 = 64;
/// Memory of a host, kB: 256 GB.
const MEMORY: u64 = 256 << 20;
/// A job has 1, 2, 4, ... 64 processors, all alike often.
const WIDTHS: u64 = 7;
/// A job runs between a minute and some four hours: a uniform doubling of this, and up to as much
/// again, ticks.
const RUNTIME: u64 = 60_000_000;
const RUNTIME_DOUBLINGS: u64 = 8;
/// A job has between 256 MB and 8 GB for each processor, by the same rule, kB.
const MEMORY_PER_CPU: u64 = 256 << 10;
const MEMORY_DOUBLINGS: u64 = 5;
/// The length of the dense and of the sparse periods of submissions, ticks: three hours.
const SWING: u64 = 3 * 3600 * 1_000_000;

/// A machine of hosts all alike, and jobs for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) hosts: u64,
    pub(crate) jobs: i64,
    /// The load: requested work over the capacity of the machine, per cent.
    pub(crate) load: u64,
    pub(crate) seed: u64,
}

impl Workload {
    pub(crate) fn machine(&self) -> Machine {
        let host = |number| Host {
            name: format!("n{number}"),
            capacity: Resources::cpus(CPUS).with(Kind::Memory, MEMORY),
        };
        Machine::new((1..=self.hosts).map(host).collect())
    }

    /// The jobs in the order of their submission.
    ///
    /// The queue grows in the dense hours, a quarter above the load, and shrinks in the sparse
    /// ones.
    pub(crate) fn jobs(self) -> impl Iterator<Item = Job> {
        let mut now = 0;
        (1..=self.jobs).map(move |number| {
            let mean = self.mean_gap();
            let mean = if (now / SWING).is_multiple_of(2) { mean * 4 / 5 } else { mean * 4 / 3 };
            now += self.below(number, 0, 2 * mean + 1);
            self.job(number, now)
        })
    }

    /// Between two submissions, ticks.
    fn mean_gap(&self) -> u64 {
        let width = ((1 << WIDTHS) - 1) / WIDTHS;
        let work = width * RUNTIME * 3 / 2 * ((1 << RUNTIME_DOUBLINGS) - 1) / RUNTIME_DOUBLINGS;
        work * 100 / (self.hosts * CPUS * self.load)
    }

    fn job(&self, number: JobNumber, submit: u64) -> Job {
        let procs = 1 << self.below(number, 1, WIDTHS);
        let runtime = self.doubled(number, 2, RUNTIME, RUNTIME_DOUBLINGS);
        let estimate = runtime + self.below(number, 4, 4 * runtime);
        let memory = procs * self.doubled(number, 5, MEMORY_PER_CPU, MEMORY_DOUBLINGS);
        let demand = Resources::cpus(procs).with(Kind::Memory, memory.min(MEMORY));
        let request = Request::new(number, Time::ZERO + span(submit), span(estimate), demand);
        Job::new(request, span(runtime))
    }

    /// `least` doubled fewer than `doublings` times, and up to as much again.
    fn doubled(&self, number: JobNumber, purpose: u64, least: u64, doublings: u64) -> u64 {
        let low = least << self.below(number, purpose, doublings);
        low + self.below(number, purpose + 1, low)
    }

    fn below(&self, number: JobNumber, purpose: u64, limit: u64) -> u64 {
        draw(self.seed, number, purpose) % limit
    }
}

fn span(ticks: u64) -> Span {
    Span::from_ticks(i64::try_from(ticks).unwrap_or(i64::MAX))
}
