//! A policy beside a cluster, a cycle at a time: from the recorded state of each instant.
//!
//! A simulation of a whole log leaves the cluster at the first difference, and after that it decides on another state. Here the
//! state is that of the record at each instant, so each decision is compared by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use miserly_core::{
    Driver, Effect, Entry, EventOrder, Expected, Form, JobId, JobNumber, Ledger, LedgerState, Machine,
    Placement, Progress, Request, Span, State, System, Time, Usage, work,
};
use miserly_policies::PolicySpec;
use miserly_policies::shared::{Computations, ComputedRanks, ShareTree};
use miserly_sim::{Job, Observer, Simulation};
use serde::Serialize;

use crate::decay::Decay;

/// A job of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedJob {
    /// Its request, with a number of its own. The submission is the instant at which it could start.
    pub request: Request,
    /// The recorded start; none while it waits.
    pub start: Option<Time>,
    /// The recorded end; none while it runs.
    pub end: Option<Time>,
    /// Where it ran; none if it did not start, or nothing fits the record.
    pub placement: Option<Placement>,
    /// What a second of it costs, if the accounting has it. Without it, its processors count.
    pub billing: Option<u64>,
    /// Whether it ended because it was preempted.
    pub is_preempted: bool,
    /// The run before this one, which was preempted.
    pub rerun_of: Option<JobNumber>,
}

/// The decisions of a policy beside those of a cluster. They are of jobs that waited at the instant of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CycleAudit {
    /// The instants at which the recorded state was taken.
    pub states: u64,
    /// Those that are not compared: the processors in use are more than there are, as beside suspended jobs, or the place of a running job
    /// is not known.
    pub states_left_out: u64,
    /// Recorded starts within a cycle after a state.
    pub starts: u64,
    /// Those that the policy starts as well, within two cycles after the state.
    pub foreseen: u64,
    /// Starts by the policy within a cycle after a state.
    pub simulated: u64,
    /// Those that are recorded as well, within two cycles after the state.
    pub confirmed: u64,
}

/// A start of the record beside what the policy decides from the recorded states around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The policy starts the job as well.
    Foreseen,
    /// The policy does not start it yet.
    Earlier,
    /// The policy starts it before.
    Later,
}

/// A record, and the policy that is compared with it.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The jobs of the record. Those that the machine cannot hold are left out.
    pub jobs: &'a [RecordedJob],
    /// The machine.
    pub machine: &'a Machine,
    /// The policy.
    pub policy: &'a PolicySpec,
    /// The usage of groups before the instant 0, in decayed processor-seconds.
    pub past: &'a BTreeMap<u32, f64>,
    /// What a processor-second costs in the mean.
    pub processor_billing: f64,
    /// The tree of shares that the policy orders by, if it has one.
    pub shares: Option<&'a ShareTree>,
    /// The instants at which the cluster counts usage and computes priorities.
    pub computations: Option<Computations>,
    /// Whether usage counts to the end of a job, and not only to the last of these instants before it.
    pub counts_ends: bool,
}

impl RecordedJob {
    fn waits(&self, at: Time) -> bool {
        self.request.submit <= at && self.start.is_none_or(|start| start > at)
    }

    fn runs(&self, at: Time) -> bool {
        self.start.is_some_and(|start| start <= at) && self.end.is_none_or(|end| end > at)
    }

    /// Returns the runtime, as far as it is known. `preempts`: whether the policy preempts jobs itself.
    fn runtime(&self, preempts: bool) -> Span {
        if preempts && self.is_preempted {
            return self.request.estimate;
        }
        self.start.zip(self.end).map_or(Span::MAX, |(start, end)| end - start).max(Span::TICK)
    }
}

/// Returns the jobs of these runs, with the numbers of the runs of each one. The number of a job is that of its first run, and its runtime
/// that of the last one.
fn merged<'a>(
    runs: impl Iterator<Item = &'a RecordedJob>,
) -> (Vec<RecordedJob>, BTreeMap<JobNumber, Vec<JobNumber>>) {
    let mut firsts: BTreeMap<JobNumber, JobNumber> = BTreeMap::new();
    let mut numbers: BTreeMap<JobNumber, Vec<JobNumber>> = BTreeMap::new();
    let mut jobs: BTreeMap<JobNumber, RecordedJob> = BTreeMap::new();
    for run in runs {
        let number = run.request.number;
        let first = run.rerun_of.and_then(|earlier| firsts.get(&earlier).copied()).unwrap_or(number);
        firsts.insert(number, first);
        numbers.entry(first).or_default().push(number);
        let job = jobs.entry(first).or_insert_with(|| run.clone());
        let end = job.start.map(|start| start + run.runtime(true));
        *job = RecordedJob { end, is_preempted: run.is_preempted, ..job.clone() };
    }
    (jobs.into_values().collect(), numbers)
}

/// Returns the multiples of a cycle at which jobs wait.
fn instants(jobs: &[&RecordedJob], cycle: Span) -> Vec<Time> {
    let unit = cycle.ticks().max(1);
    let until = jobs.iter().flat_map(|job| [job.start, job.end]).flatten().max();
    let wait = |job: &&RecordedJob| {
        let end = job.start.or(until)?;
        let first = job.request.submit.ticks().div_euclid(unit) + 1;
        Some((first, (end.ticks() - 1).div_euclid(unit)))
    };
    let mut waits: Vec<(i64, i64)> = jobs.iter().filter_map(wait).collect();
    waits.sort_unstable();
    let mut all = vec![];
    let mut next = i64::MIN;
    for (first, last) in waits {
        all.extend((first.max(next)..=last).map(|nth| Time::from_ticks(nth * unit)));
        next = next.max(last + 1);
    }
    all
}

impl Comparison<'_> {
    /// Compares the decisions of the policy with the record, at some multiples of a cycle: those at which jobs wait and that have two
    /// cycles of the period ahead, at most `most` of them, evenly over the record. Other states are only
    /// counted if the place of a running job is not known, or more processors are in use than there are. Returns the sums, and how each start of the record was seen.
    ///
    /// O(jobs) for each instant, and two cycles of simulation. Under a policy that neither depends on usage nor preempts jobs, only those
    /// count that have not ended then.
    pub fn cycles(
        &self,
        cycle: Span,
        period: RangeInclusive<Time>,
        most: usize,
    ) -> (CycleAudit, BTreeMap<JobNumber, Seen>) {
        let (mut audit, mut seen) = (CycleAudit::default(), BTreeMap::new());
        let mut jobs: Vec<&RecordedJob> = self.jobs.iter().filter(|job| self.holds(job)).collect();
        let last = *period.end();
        let mut instants = instants(&jobs, cycle);
        instants.retain(|at| period.contains(at) && *at + cycle + cycle <= last);
        let step = instants.len().div_ceil(most.max(1)).max(1);
        let uses_usage =
            self.policy.build(self.machine, 0).is_ok_and(|policy| policy.usage_half_life().is_some());
        let needs_past = uses_usage || self.preempts();
        jobs.sort_by_key(|job| (job.request.submit, job.request.number));
        let mut later = jobs.into_iter().peekable();
        let mut present: Vec<RecordedJob> = vec![];
        for at in instants.into_iter().step_by(step) {
            present.retain(|job| needs_past || job.end.is_none_or(|end| end > at));
            let new = std::iter::from_fn(|| later.next_if(|job| job.request.submit <= at + cycle + cycle));
            present.extend(new.cloned());
            Comparison { jobs: &present, ..*self }.add_state(&mut audit, &mut seen, cycle, at);
        }
        (audit, seen)
    }

    /// Returns the starts by the policy of the recorded jobs that have ended, on the machine, which is idle at first. Jobs that the
    /// policy refuses are left out. Under a policy that preempts jobs, the runs of a job are one job, and its starts are compared in order.
    ///
    /// # Errors
    /// If the policy does not run on the machine, or makes a decision that the ledger refuses.
    pub fn starts_from_idle(&self) -> Result<BTreeMap<JobNumber, Time>, String> {
        let has_ended = |job: &RecordedJob| job.end.is_some() && self.holds(job);
        let ended = self.jobs.iter().filter(|job| has_ended(job));
        let Some(first) = ended.clone().map(|job| job.request.submit).min() else {
            return Ok(BTreeMap::new());
        };
        let (merged, runs) = if self.preempts() { merged(ended) } else { (vec![], BTreeMap::new()) };
        let jobs = if self.preempts() { &merged[..] } else { self.jobs };
        let simulated = Comparison { jobs, ..*self }.simulate(first - Span::TICK, Time::MAX, &has_ended);
        let (starts, outcome) =
            simulated.ok_or_else(|| format!("{} does not run on the cluster", self.policy))?;
        outcome?;
        let of_runs = starts.into_iter().flat_map(|(number, starts)| {
            let numbers = runs.get(&number).cloned().unwrap_or_else(|| vec![number]);
            numbers.into_iter().zip(starts)
        });
        Ok(of_runs.collect())
    }

    /// Returns whether the policy preempts jobs itself. If not, they end as in the record.
    fn preempts(&self) -> bool {
        self.policy.needs().requeue
    }

    fn holds(&self, job: &RecordedJob) -> bool {
        self.machine.could_hold(&job.request)
    }

    fn add_state(&self, audit: &mut CycleAudit, seen: &mut BTreeMap<JobNumber, Seen>, cycle: Span, at: Time) {
        // A run that ends for want of events has all starts.
        let Some((simulated, _)) = self.simulate(at, at + cycle + cycle, &|_| true) else {
            audit.states_left_out += 1;
            return;
        };
        audit.states += 1;
        let soon = |start: Option<Time>, cycles: Span| start.is_some_and(|start| start <= at + cycles);
        for job in self.jobs.iter().filter(|job| job.waits(at)) {
            let number = job.request.number;
            let ours = simulated.get(&number).and_then(|starts| starts.first()).copied();
            if soon(job.start, cycle) {
                let is_foreseen = soon(ours, cycle + cycle);
                audit.starts += 1;
                audit.foreseen += u64::from(is_foreseen);
                seen.entry(number).or_insert(if is_foreseen { Seen::Foreseen } else { Seen::Earlier });
            }
            if soon(ours, cycle) {
                let is_confirmed = soon(job.start, cycle + cycle);
                audit.simulated += 1;
                audit.confirmed += u64::from(is_confirmed);
                if !is_confirmed {
                    seen.insert(number, Seen::Later);
                }
            }
        }
    }

    /// Returns the starts by the policy from a recorded state until an instant, and whether the simulation came to its end. Ends and
    /// submissions are those of the record. `is_there`: whether a job is in the simulation.
    ///
    /// `None`: the policy does not run there, more processors were in use than there are, or the place of a running job is not known.
    fn simulate(
        &self,
        at: Time,
        until: Time,
        is_there: &dyn Fn(&RecordedJob) -> bool,
    ) -> Option<(Starts, Result<(), String>)> {
        let (mut entries, mut later, mut runtimes) = (vec![], vec![], BTreeMap::new());
        let preempts = self.preempts();
        let is_over = |run: &RecordedJob| run.end.is_some_and(|end| end <= at);
        let over: BTreeSet<JobNumber> = self
            .jobs
            .iter()
            .filter(|run| run.is_preempted && is_over(run))
            .map(|run| run.request.number)
            .collect();
        for (admitted, job) in (0_u64..).zip(self.jobs.iter().filter(|job| is_there(job))) {
            // The policy makes it anew.
            if preempts && job.rerun_of.is_some_and(|earlier| !over.contains(&earlier)) {
                continue;
            }
            let entry = || Entry::waiting(job.request.clone(), admitted);
            if job.waits(at) {
                entries.push(entry());
            } else if let Some(start) = job.start.filter(|_| job.runs(at)) {
                // It has its place, which may be another one than its form has in the plan.
                let mut entry = entry();
                entry.request.form = Form { parts: None, apart: false, ..entry.request.form };
                entries.push(running(entry, job.placement.clone()?, start, at));
            } else if job.request.submit > at && job.request.submit <= until {
                later.push(job);
                continue;
            } else {
                continue;
            }
            runtimes.insert(job.request.number, job.runtime(preempts));
        }
        later.sort_by_key(|job| (job.request.submit, job.request.number));
        let policy = self.policy.build(self.machine, 0).ok()?;
        let mut state = LedgerState::default();
        if let Some(half_life) = policy.usage_half_life() {
            state.policy.set(&self.usage_at(at, at, half_life));
            if let Some((shares, computations)) = self.shares.zip(self.computations) {
                let last = computations.last(at);
                let usage = self.usage_at(at, last, half_life);
                state.policy.set(&ComputedRanks::new(shares, &usage, at, last));
            }
        }
        let entries = (0..).map(JobId).zip(entries).collect();
        let ledger = Ledger::restored(self.machine.clone(), entries).ok()?.with_state(state);
        let mut driver = Driver::new(ledger, policy, EventOrder::Batched);
        driver.resume(at, Some(at + Span::TICK));
        let runtime =
            |entry: &Entry| runtimes.get(&entry.request.number).copied().unwrap_or(entry.request.estimate);
        let procs = self.machine.capacity().cpus_count();
        let mut simulation = Simulation::continuing(System::new(vec![driver]), procs, at, runtime).ok()?;
        let mut watch = Watch { until, now: at, starts: BTreeMap::new() };
        let job = |job: &RecordedJob| Job::new(job.request.clone(), job.runtime(preempts));
        let mut later = later.into_iter().map(job).map(Ok::<Job, std::convert::Infallible>);
        let outcome =
            simulation.run(&mut later, &mut [&mut watch]).map(drop).map_err(|error| error.to_string());
        Some((watch.starts, outcome))
    }

    /// Returns the processors that a job counts for in the usage.
    fn charge(&self, job: &RecordedJob) -> f64 {
        job.billing
            .map_or(job.request.procs().get() as f64, |billing| billing as f64 / self.processor_billing)
    }

    /// Returns the usage at an instant: that of the past, and that of the jobs since the instant 0. `counted`: the runs of jobs count until
    /// then.
    fn usage_at(&self, at: Time, counted: Time, half_life: Span) -> Usage {
        const SECOND: f64 = 1e6;
        let decay = Decay::new(half_life);
        let age = |instant: Time| (at - instant).as_secs_f64().max(0.0);
        let mut amounts: BTreeMap<[Option<u32>; 2], f64> = self
            .past
            .iter()
            .map(|(group, seconds)| ([None, Some(*group)], seconds * decay.over(age(Time::ZERO))))
            .collect();
        let last = |end: Time| match self.computations.filter(|_| !self.counts_ends) {
            Some(computations) => computations.last(end),
            None => end,
        };
        for job in self.jobs {
            let Some(start) = job.start else { continue };
            let until = job.end.filter(|end| *end <= at).map_or(counted, last).min(counted);
            let start = start.max(Time::ZERO);
            if start < until {
                let left = self.charge(job) * decay.of_run(age(start), age(until));
                *amounts.entry([job.request.user, job.request.group]).or_default() += left;
            }
        }
        Usage::until(
            at,
            half_life,
            amounts.into_iter().map(|([user, group], left)| (user, group, left * SECOND)),
        )
    }
}

/// Returns the entry of a job that runs in this place since `start`.
pub(crate) fn running(mut entry: Entry, placement: Placement, start: Time, now: Time) -> Entry {
    let procs = entry.request.procs();
    let end = (start + entry.request.estimate).max(now + Span::TICK);
    entry.progress = Progress { done: work(now - start, procs), at: now, procs, ..Progress::default() };
    entry.state = State::Running {
        start,
        since: start,
        expected: Expected::At(end),
        placement,
        released: false,
        quantum: None,
    };
    entry
}

/// The starts of jobs, each in order.
type Starts = BTreeMap<JobNumber, Vec<Time>>;

/// Notes starts until an instant.
struct Watch {
    until: Time,
    now: Time,
    starts: Starts,
}

impl Observer for Watch {
    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        self.now = now;
        if now <= self.until && matches!(effect, Effect::Started { .. }) {
            self.starts.entry(job).or_default().push(now);
        }
    }

    fn has_enough(&self) -> bool {
        self.now > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::Resources;

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds).unwrap()
    }

    fn job(number: JobNumber, procs: u64, times: [i64; 3], limit: i64) -> RecordedJob {
        let [submit, start, end] = times.map(at);
        let request = Request::new(number, submit, Span::from_secs(limit).unwrap(), Resources::cpus(procs));
        let placement = Some(Placement::on_plain(Resources::cpus(procs)));
        let (start, end) = (Some(start), Some(end));
        RecordedJob { request, start, end, placement, billing: None, is_preempted: false, rerun_of: None }
    }

    fn audit(jobs: &[RecordedJob]) -> CycleAudit {
        let policy = "slurm(bf_interval=10s, bf_resolution=1s)".parse().unwrap();
        let comparison = Comparison {
            jobs,
            machine: &Machine::plain(4),
            policy: &policy,
            past: &BTreeMap::new(),
            processor_billing: 1.0,
            shares: None,
            computations: None,
            counts_ends: true,
        };
        comparison.cycles(Span::from_secs(10).unwrap(), Time::ZERO..=at(300), 1000).0
    }

    /// Job 1 has the machine until 100. Job 2 waits for it, and job 3 can backfill only if its limit allows it.
    fn record(third: [i64; 3], limit: i64) -> Vec<RecordedJob> {
        vec![job(1, 3, [0, 0, 100], 100), job(2, 4, [1, 101, 200], 100), job(3, 1, third, limit)]
    }

    #[test]
    fn a_record_by_the_rules_is_foreseen() {
        // Job 3 is backfilled a second after a cycle, and job 2 starts at the end of job 1.
        let all = audit(&record([2, 11, 60], 50));
        // The start of job 2 is ahead of two states.
        assert_eq!((all.starts, all.foreseen, all.simulated, all.confirmed), (2, 2, 3, 3), "{all:?}");
    }

    #[test]
    fn a_record_against_the_rules_is_not() {
        // It could have started at 10, and started at 45.
        let late = audit(&record([2, 45, 60], 50));
        assert_eq!((late.starts, late.foreseen), (2, 2), "{late:?}");
        assert!(late.simulated - late.confirmed >= 2, "{late:?}");
        // Its limit is beyond the reservation of job 2, and it started nevertheless.
        let early = audit(&record([2, 20, 60], 500));
        assert_eq!((early.starts, early.foreseen), (2, 1), "{early:?}");
    }

    #[test]
    fn the_runs_of_a_preempted_job_are_one_job() {
        let of_queue = |queue, job: RecordedJob| RecordedJob {
            request: Request { queue: Some(queue), ..job.request },
            ..job
        };
        // Job 2 takes the place of job 1, which waits until 60, begins anew and ends after 90 s.
        let first = RecordedJob { is_preempted: true, ..of_queue(1, job(1, 3, [0, 0, 20], 100)) };
        let again = RecordedJob { rerun_of: Some(1), ..of_queue(1, job(3, 3, [30, 60, 150], 100)) };
        let jobs = [first, of_queue(2, job(2, 4, [20, 21, 61], 50)), again];
        let (machine, past) = (Machine::plain(4), BTreeMap::new());
        let starts = |policy: &str| {
            let policy = policy.parse().unwrap();
            let comparison = Comparison {
                jobs: &jobs,
                machine: &machine,
                policy: &policy,
                past: &past,
                processor_billing: 1.0,
                shares: None,
                computations: None,
                counts_ends: true,
            };
            let starts = comparison.starts_from_idle().unwrap();
            let cycle = Span::from_secs(10).unwrap();
            let (cycles, _) = comparison.cycles(cycle, Time::ZERO..=at(300), 1000);
            ([1, 2, 3].map(|run| starts.get(&run).map(|at| at.secs())), cycles)
        };
        let (preempting, cycles) =
            starts("slurm(bf_interval=10s, bf_resolution=1s, preempt='1: by=2', requeue_delay=10s)");
        assert_eq!(preempting, [Some(0), Some(21), Some(61)]);
        assert_eq!((cycles.starts, cycles.foreseen), (1, 1), "{cycles:?}");
        // Without preemption each run ends as it did.
        assert_eq!(starts("slurm(bf_interval=10s, bf_resolution=1s)").0, [Some(0), Some(20), Some(60)]);
        // With the exemption job 1 ends by itself, and there is no second run.
        let exempt = "slurm(bf_interval=10s, bf_resolution=1s, preempt='1: by=2, exempt=95s')";
        assert_eq!(starts(exempt).0, [Some(0), Some(90), None]);
    }

    #[test]
    fn usage_is_that_of_the_past_and_of_the_record() {
        let group = |job: RecordedJob, group| RecordedJob {
            request: Request { user: Some(1), group: Some(group), ..job.request },
            ..job
        };
        let jobs = [
            group(job(1, 2, [-30, -20, 20], 99), 1),
            group(job(2, 4, [-30, -10, 170], 999), 2),
            group(job(3, 1, [-30, 65, 69], 99), 1),
        ];
        let (machine, policy) = (Machine::plain(8), "slurm".parse().unwrap());
        let past = [(1, 1000.0), (3, 7.0)].into();
        let period = Span::from_secs(40).unwrap();
        let counted = Comparison {
            jobs: &jobs,
            machine: &machine,
            policy: &policy,
            past: &past,
            processor_billing: 1.0,
            shares: None,
            computations: Some(Computations { period, first: at(10) }),
            counts_ends: false,
        };
        let of = |comparison: &Comparison<'_>, now: i64, until: i64, half_life: Span| {
            let usage = comparison.usage_at(at(now), at(until), half_life);
            [1, 2, 3].map(|group| usage.group_processor_seconds(Some(group), at(now)))
        };
        // Job 1 counts to 10, job 2 to now, and job 3 not at all.
        assert_eq!(of(&counted, 70, 70, Span::MAX), [1020, 280, 7]);
        // At the last computation, job 2 had 50 s since the instant 0.
        assert_eq!(of(&counted, 70, 50, Span::MAX), [1020, 200, 7]);
        assert_eq!(of(&Comparison { counts_ends: true, ..counted }, 70, 70, Span::MAX), [1044, 280, 7]);
        // 70 s later, a quarter is left of the past with a half-life of 35 s.
        let halved = of(&Comparison { jobs: &[], ..counted }, 70, 70, Span::from_secs(35).unwrap());
        assert_eq!(halved, [250, 0, 2]);
        // A second of the second job costs as much as ten processors, of which each costs two in the mean.
        let mut billed = jobs.clone();
        billed[1].billing = Some(20);
        let weighed = Comparison { jobs: &billed, processor_billing: 2.0, ..counted };
        assert_eq!(of(&weighed, 70, 70, Span::MAX), [1020, 700, 7]);
    }

    #[test]
    fn a_record_may_begin_at_the_time_0() {
        let policy = "slurm(order='fair_tree', shares='u1')".parse().unwrap();
        let machine = Machine::plain(4);
        let comparison = Comparison {
            jobs: &[job(1, 3, [0, 0, 100], 100)],
            machine: &machine,
            policy: &policy,
            past: &BTreeMap::new(),
            processor_billing: 1.0,
            shares: None,
            computations: None,
            counts_ends: true,
        };
        assert_eq!(comparison.starts_from_idle(), Ok([(1, Time::ZERO)].into()));
    }

    #[test]
    fn states_are_the_cycles_at_which_jobs_wait() {
        let jobs = [job(1, 1, [3, 35, 40], 9), job(2, 1, [12, 22, 50], 9), job(3, 1, [61, 75, 80], 9)];
        let states = instants(&jobs.each_ref(), Span::from_secs(10).unwrap());
        assert_eq!(states, [10, 20, 30, 70].map(at));
    }

    #[test]
    fn a_state_with_too_many_processors_in_use_is_left_out() {
        let jobs = [job(1, 4, [0, 0, 50], 50), job(2, 4, [0, 0, 50], 50), job(3, 1, [5, 60, 70], 10)];
        let audit = audit(&jobs);
        assert_eq!(audit.states, 1, "only that after both have ended");
        assert_eq!(audit.states_left_out, 4, "all others while a job waits");
    }
}
