//! The scheduling of Slurm: a main loop after each event, and backfilling in cycles.

mod billing;

mod plan;

mod nodes;

mod ends;

mod limits;

mod preemption;

mod select;

mod sets;

mod stretches;

mod suspension;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use miserly_core::{
    Context, Entry, Event, HostId, JobId, Ledger, Machine, Persistent, Placement, Policy, Refusal, Resources,
    Span, StartReason, State, Time, UsageWeights, Violation,
};

pub use self::billing::{BillingWeights, BillingWeightsError};
pub use self::limits::{RunningLimits, RunningLimitsError};
pub use self::nodes::NodePlan;
pub use self::plan::{CyclePlan, Planned, Simple};
pub use self::preemption::{PreemptionOrder, PreemptionRules, PreemptionRulesError};
pub use self::select::select_hosts;

use self::ends::demand_of;
use self::limits::{Exceeded, LimitUse};
use self::preemption::{Mode, Preempted, Preempting, RankAtStart, merge_sort};
use super::queue::{QueueWalk, WaitQueue};
use crate::shared::{Order, Requeued, RequeuedAt, Waiting, head_start_reason, start_job};

/// The settings of Slurm's scheduling, with the names of its `SchedulerParameters`.
#[derive(Clone, Debug, PartialEq)]
pub struct SlurmRules {
    /// The order of the queue: the priorities.
    pub order: Order,
    /// The least time between two main loops after submissions.
    pub batch_sched_delay: Span,
    /// Whether there are backfilling cycles: `sched/backfill`.
    pub backfill: bool,
    /// The time between two cycles.
    pub bf_interval: Span,
    /// The instant of one cycle, from time 0.
    pub bf_first: Span,
    /// The unit of the plan. Time limits are rounded up to it; on nodes, reservations are rounded down.
    pub bf_resolution: Span,
    /// How far ahead a reservation may begin.
    pub bf_window: Span,
    /// The number of jobs that a cycle tries.
    pub bf_max_job_test: u64,
    /// The limits of running jobs.
    pub limits: RunningLimits,
    /// The running jobs that leave the machine for others.
    pub preemption: PreemptionRules,
    /// The order in which they are tried.
    pub preemption_order: PreemptionOrder,
    /// The time after which a requeued job may start again.
    pub requeue_delay: Span,
    /// The time from the end of a preempted job until its resources are free.
    pub preempt_completing: Span,
    /// The time after which a waiting job preempts further jobs.
    pub preempt_retry: Span,
    /// What the resources of jobs cost in the usage.
    pub billing: BillingWeights,
}

/// Starts jobs as Slurm does.
///
/// | part | when | rule |
/// |---|---|---|
/// | main loop | after each end of a job, and after submissions, [`batch_sched_delay`](SlurmRules::batch_sched_delay) apart | starts the first jobs of the queue, up to the first one that does not fit. Where that one is bound to a group of hosts, as the jobs of a partition are, the loop goes on with the other hosts. It passes a job some of whose hosts are closed before its limit |
/// | cycle | each [`bf_interval`](SlurmRules::bf_interval), from [`bf_first`](SlurmRules::bf_first) on and before it, while jobs wait | plans the first jobs of the queue in order. A job starts if it fits now beside the running jobs and the reservations of this cycle. Else it has a reservation at its earliest start, if that is within the window |
///
/// A cycle is left out if nothing happened since the last one: it could start no job. That is not so where the order changes
/// with time, running jobs have limits, a job is overdue, the capacity varies, or the last cycle started a job or found one beyond the window.
///
/// A job that would exceed one of the [`limits`](SlurmRules::limits) is passed in both. A cycle has tried it, unless the limit is a
/// number of jobs.
///
/// With rules of [`preemption`](SlurmRules::preemption), a sort puts jobs that may preempt others before these. A job that does not fit
/// now makes running jobs leave, in the main loop and in a cycle. They leave when their grace is over and their epilogs have run, which
/// takes [`preempt_completing`](SlurmRules::preempt_completing). No job starts on their hosts meanwhile. Then the main loop starts
/// whatever job is the first one that fits. The job preempts no others before [`preempt_retry`](SlurmRules::preempt_retry) is over. In a
/// cycle, it has a reservation from now on of the hosts that it has without all jobs that it may preempt. Only hosts without a
/// reservation of the cycle are emptied; where hosts are not planned, that is so only before the first reservation.
/// A requeued job begins anew, and may start after [`requeue_delay`](SlurmRules::requeue_delay). Its wait counts from then on.
///
/// A job that may suspend others starts at once on their processors, those of the lowest queues first. On each host, the jobs of higher
/// queues have their processors, then those that started first. All others are suspended there, and resumed as soon as all their
/// processors are free. No other job starts on processors of suspended jobs; those count beside the others, as far as the host has them.
///
/// Reservations end with the cycle. Running jobs end by their time limits in the plan.
///
/// Slurm has the next cycle an interval after the end of the last one; here a cycle takes no time.
///
/// The plan of a cycle depends on the machine. Where jobs may span several hosts, [`NodePlan`] plans nodes as Slurm does. On any
/// other machine, [`Simple`] counts processors, or places each job on one host.
///
/// With w waiting jobs, a cycle costs one search of the plan for each of the jobs that it tries. The main loop costs one for each
/// job that it starts; with groups of h hosts, it also passes the jobs of those that are closed, O(w h).
#[derive(Debug)]
pub struct SlurmLike<P: CyclePlan> {
    rules: SlurmRules,
    queue: WaitQueue,
    plan: P,
    used: LimitUse,
    /// The instant of the next cycle, while jobs wait.
    next_cycle: Option<Time>,
    /// Whether a cycle may start a job that the last one could not start.
    changed: bool,
    /// Whether jobs were submitted since the last pass, or came back.
    submitted: bool,
    /// Whether jobs have left the machine since the last pass.
    left: bool,
    /// The preempted jobs, by the instants at which they leave the machine or may start again.
    preempted: BTreeSet<(Time, JobId)>,
    /// The hosts on which preempted jobs end.
    completing: FixedBitSet,
    /// The levels of the queues, if jobs are suspended.
    levels: BTreeMap<u32, usize>,
}

/// A walk through the waiting jobs.
enum JobWalk {
    /// In the order of the queue.
    Sorted(Box<QueueWalk>),
    /// In the order of jobs that preempt each other.
    Listed(std::vec::IntoIter<Waiting>),
}

impl<P: CyclePlan> SlurmLike<P> {
    /// Returns the policy on an idle machine.
    pub fn idle(machine: &Machine, rules: SlurmRules) -> SlurmLike<P> {
        let used = LimitUse::none(&rules.limits);
        SlurmLike::new(P::idle(machine), used, rules)
    }

    fn new(plan: P, used: LimitUse, rules: SlurmRules) -> SlurmLike<P> {
        SlurmLike {
            queue: WaitQueue::sorted(rules.order.clone()),
            plan,
            used,
            next_cycle: None,
            changed: true,
            submitted: false,
            left: false,
            preempted: BTreeSet::new(),
            completing: FixedBitSet::new(),
            levels: if rules.preemption.suspends() { rules.preemption.levels() } else { BTreeMap::new() },
            rules,
        }
    }

    /// Begins a walk. With preemption, O(w log w) for w waiting jobs.
    fn walk(&mut self, context: &Context<'_>) -> JobWalk {
        let mut walk = JobWalk::Sorted(Box::default());
        if self.rules.preemption.is_empty() {
            return walk;
        }
        let mut jobs: Vec<Waiting> = std::iter::from_fn(|| self.successor(context, &mut walk)).collect();
        let (ledger, rules) = (context.ledger(), &self.rules.preemption);
        jobs.sort_by_key(|job| ledger.entry(job.job).admitted);
        let preempts = |by: &Waiting, victim: &Waiting| {
            let is_higher = || by.key.primary() < victim.key.primary();
            rules.preempt(ledger.request(by.job), ledger.request(victim.job), is_higher)
        };
        let is_first = |one: &Waiting, other: &Waiting| {
            preempts(one, other) || !preempts(other, one) && one.key <= other.key
        };
        JobWalk::Listed(merge_sort(&jobs, &is_first).into_iter())
    }

    /// Returns the next job of a walk.
    fn successor(&mut self, context: &Context<'_>, walk: &mut JobWalk) -> Option<Waiting> {
        match walk {
            JobWalk::Sorted(walk) => {
                let job = self.queue.successor(context, walk)?;
                walk.last = Some(job.key);
                Some(job)
            }
            JobWalk::Listed(jobs) => jobs.next(),
        }
    }

    /// Returns whether the main loop runs in this pass. After a submission it does when the delay since the last such loop is over.
    fn is_main_loop_due(&mut self, context: &mut Context<'_>) -> Result<bool, Violation> {
        let (submitted, left) = (std::mem::take(&mut self.submitted), std::mem::take(&mut self.left));
        let delay = self.rules.batch_sched_delay;
        if delay == Span::ZERO {
            return Ok(true);
        }
        let now = context.now();
        let opens = context.ledger().machine().closed_hosts().iter().any(|closed| closed.to == now);
        let mut loops: SubmissionLoops = context.ledger().policy_state();
        // On a machine that it has just got, the policy has not looked at any job yet.
        let waits = submitted || opens || loops.last.is_none() && !self.queue.is_empty();
        if loops.due.is_none() && waits {
            loops.due = Some(loops.last.map_or(now, |last| now.max(last + delay)));
        }
        let is_due = loops.due.is_some_and(|due| due <= now);
        if is_due {
            loops = SubmissionLoops { last: Some(now), due: None };
        }
        context.set_policy_state(&loops);
        loops.due.map_or(Ok(()), |due| context.wake_at(due))?;
        Ok(is_due || left)
    }

    /// Starts the first jobs of the queue that fit.
    fn main_loop(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut open = self.plan.all_open(context.ledger());
        open.difference_with(&self.completing);
        let mut walk = self.walk(context);
        while let Some(job) = self.successor(context, &mut walk) {
            if self.exceeded(context.ledger(), &job).is_some() {
                self.refuse_if_too_large(context, &job)?;
            } else if let Some(place) = self.plan.place_now(context, &job, &open) {
                let reason = head_start_reason(context, job.job);
                self.start(context, &job, place, reason)?;
            } else if !self.refuse_if_too_large(context, &job)? && !self.start_over(context, &job, &open)? {
                self.preempt(context, &job, &open)?;
                open.difference_with(&self.completing);
                if !self.plan.close(context.now(), context.ledger(), &job, &mut open) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        context: &mut Context<'_>,
        job: &Waiting,
        place: P::Place,
        reason: StartReason,
    ) -> Result<(), Violation> {
        self.queue.remove(job.job);
        let placement = P::placement(context.ledger(), job.job, place);
        start_job(context, job.job, placement, reason)?;
        if self.rules.preemption.compare_priorities() {
            context.set_job_state(job.job, &RankAtStart(Some(job.key.primary())))?;
        }
        self.used.start(&self.rules.limits, job.job, context.ledger());
        self.plan.job_started(context.now(), job, context.ledger());
        Ok(())
    }

    /// Returns the limit that a job would exceed if it started now.
    fn exceeded(&self, ledger: &Ledger, job: &Waiting) -> Option<Exceeded> {
        self.used.exceeded(&self.rules.limits, ledger.request(job.job))
    }

    /// Refuses a job that the pool can never hold, or that exceeds a limit by itself. Returns whether it did.
    fn refuse_if_too_large(&mut self, context: &mut Context<'_>, job: &Waiting) -> Result<bool, Violation> {
        let never = self.plan.never_fits(context.now(), job, context.ledger())
            || self.rules.limits.never_allow(context.ledger().request(job.job));
        if never {
            self.queue.remove(job.job);
            context.refuse(job.job, Refusal::TooLarge)?;
        }
        Ok(never)
    }

    /// Runs a cycle, and removes its reservations from the plan.
    fn cycle(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.plan.begin_cycle(context.now(), context.ledger(), &self.rules);
        let planned = self.plan_jobs(context);
        self.plan.end_cycle();
        planned
    }

    fn plan_jobs(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut walk = self.walk(context);
        let mut tried = 0;
        while tried < self.rules.bf_max_job_test {
            let Some(job) = self.successor(context, &mut walk) else { break };
            let exceeded = self.exceeded(context.ledger(), &job);
            tried += u64::from(exceeded != Some(Exceeded::Jobs));
            if exceeded.is_some() || self.preempt_in_cycle(context, &job)? {
                continue;
            }
            match self.plan.plan(context, &job, &self.rules) {
                Planned::Now(place) => {
                    self.start(context, &job, place, StartReason::Backfilled)?;
                    // The next cycle tries jobs that this one did not reach.
                    self.changed = true;
                }
                Planned::Later(at, place) => P::record(context, job.job, at, &place)?,
                // As time goes by, it may get a reservation, and another job none.
                Planned::Beyond => self.changed = true,
                Planned::Never => drop(self.refuse_if_too_large(context, &job)?),
            }
        }
        Ok(())
    }

    /// Makes room for a job of a cycle that does not fit beside the running jobs, and plans it. Returns whether it did.
    fn preempt_in_cycle(&mut self, context: &mut Context<'_>, job: &Waiting) -> Result<bool, Violation> {
        if self.rules.preemption.is_empty() {
            return Ok(false);
        }
        let now = context.now();
        let mut open = self.plan.open_now(now, context.ledger(), job);
        if self.plan.place_now(context, job, &open).is_some() {
            return Ok(false);
        }
        open.difference_with(&self.completing);
        if self.start_over(context, job, &open)? {
            self.changed = true;
            return Ok(true);
        }
        let candidates = self.candidates(context, job);
        if candidates.is_empty() {
            return Ok(false);
        }
        if !self.plan.leave_out(now, context.ledger(), &candidates) {
            self.preempt(context, job, &open)?;
            return Ok(false);
        }
        let planned = self.plan.plan(context, job, &self.rules);
        self.plan.jobs_left(now, context.ledger());
        match planned {
            Planned::Now(place) => {
                self.preempt(context, job, &open)?;
                self.plan.reserve_now(now, job, &place, &self.rules);
                P::record(context, job.job, now, &place)?;
            }
            Planned::Later(at, place) => P::record(context, job.job, at, &place)?,
            Planned::Beyond => self.changed = true,
            Planned::Never => drop(self.refuse_if_too_large(context, job)?),
        }
        Ok(true)
    }

    /// Makes running jobs leave the open hosts for a job that does not fit beside them, unless it did so a short time ago.
    fn preempt(
        &mut self,
        context: &mut Context<'_>,
        job: &Waiting,
        open: &FixedBitSet,
    ) -> Result<(), Violation> {
        let now = context.now();
        let Preempting(last) = context.ledger().entry(job.job).policy_state.get();
        if last.is_some_and(|last| now - last < self.rules.preempt_retry) {
            return Ok(());
        }
        let Some(victims) = self.victims(context, job, open) else { return Ok(()) };
        context.set_job_state(job.job, &Preempting(Some(now)))?;
        for victim in victims {
            let entry = context.ledger().entry(victim);
            if Preempted::due(entry).is_none() {
                let ends = now + self.rules.preemption.grace(&entry.request);
                let at = ends + self.rules.preempt_completing;
                context.set_job_state(victim, &Preempted::Leaves { ends, at })?;
                self.preempted.insert((at, victim));
            }
        }
        self.plan.jobs_left(now, context.ledger());
        self.close_completing(now, context.ledger());
        Ok(())
    }

    /// Closes the hosts on which preempted jobs end, if the plan has hosts.
    fn close_completing(&mut self, now: Time, ledger: &Ledger) {
        if self.plan.all_open(ledger).is_empty() {
            return;
        }
        let is_completing =
            |entry: &&Entry| matches!(Preempted::of(entry), Preempted::Leaves { ends, .. } if ends <= now);
        let entries = self.preempted.iter().filter_map(|(_, job)| ledger.get(*job)).filter(is_completing);
        let shares = entries.filter_map(Entry::placement).flat_map(Placement::shares);
        self.completing = shares.map(|share| share.host.index()).collect();
        self.plan.set_completing(&self.completing);
    }

    /// Returns the running jobs that may leave the machine for a job, in the order in which they are tried.
    fn candidates(&self, context: &Context<'_>, job: &Waiting) -> Vec<JobId> {
        let (ledger, SlurmRules { preemption, preemption_order, order, .. }) =
            (context.ledger(), &self.rules);
        let request = ledger.request(job.job);
        if !preemption.admit(request, false) {
            return vec![];
        }
        let is_lower = |entry: &Entry, start| {
            // A job that the policy did not start has no rank of its own.
            let RankAtStart(rank) = entry.policy_state.get();
            job.key.primary() < rank.unwrap_or_else(|| order.key(start, entry, ledger).primary())
        };
        preemption.candidates(*preemption_order, context.now(), ledger, request, is_lower)
    }

    /// Returns the running jobs that leave the machine for a job, if that makes room.
    fn victims(&self, context: &Context<'_>, job: &Waiting, open: &FixedBitSet) -> Option<Vec<JobId>> {
        let (ledger, candidates) = (context.ledger(), self.candidates(context, job));
        if candidates.is_empty() {
            return None;
        }
        let (machine, demand) = (ledger.machine(), demand_of(ledger, job.job));
        let hosts = (0..).map(HostId).take(machine.hosts().len());
        let is_open = |host: HostId| {
            let may_be = host.index() >= open.len() || open.contains(host.index());
            may_be && machine.permits(demand.group(), host)
        };
        let mut open: Vec<bool> = hosts.map(is_open).collect();
        let now = context.now();
        machine.closed_within(now, now + job.span).for_each(|host| open[host.index()] = false);
        let hosts_in = |free: &[Resources]| select_hosts(machine, free, &open, &demand);
        PreemptionRules::victims(self.rules.preemption_order, ledger, candidates, &open, hosts_in)
    }

    /// Takes a running job off the machine. It waits again, or has ended.
    fn take_off(&mut self, context: &mut Context<'_>, victim: JobId) -> Result<(), Violation> {
        let mode = self.rules.preemption.mode(context.ledger().request(victim));
        self.used.end(&self.rules.limits, victim, context.ledger());
        context.requeue(victim, false)?;
        match mode {
            Mode::Requeue | Mode::Suspend => {
                let (submit, at) = (context.now(), context.now() + self.rules.requeue_delay);
                context.set_job_state(victim, &Preempted::Again { at })?;
                context.set_job_state(victim, &Requeued(Some(RequeuedAt { submit, eligible: at })))?;
                self.preempted.insert((at, victim));
                Ok(())
            }
            Mode::Cancel => context.refuse(victim, Refusal::Preempted),
        }
    }

    /// Puts requeued jobs whose delay is over into the queue, before it is sorted.
    fn queue_again(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let (now, ledger) = (context.now(), context.ledger());
        let is_again =
            |job: JobId| matches!(ledger.get(job).map(Preempted::of), Some(Preempted::Again { .. }));
        let due = self.preempted.iter().copied().take_while(|(at, _)| *at <= now);
        let due: Vec<(Time, JobId)> = due.filter(|(_, job)| is_again(*job)).collect();
        for (at, job) in due {
            self.preempted.remove(&(at, job));
            // A policy that is rebuilt after this does not queue it a second time.
            context.set_job_state(job, &Preempted::No)?;
            self.queue.insert(now, job, context.ledger());
            self.submitted = true;
        }
        Ok(())
    }

    /// Takes the jobs off the machine that have left it.
    fn settle_preempted(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let (now, mut have_left) = (context.now(), false);
        while let Some((_, job)) = self.preempted.first().copied().filter(|(at, _)| *at <= now) {
            self.preempted.pop_first();
            // A job that ends by itself at this instant has its end event after this.
            if context.ledger().get(job).is_some_and(|entry| !entry.allocated().is_zero()) {
                self.take_off(context, job)?;
                have_left = true;
            }
        }
        if have_left {
            self.left = true;
            self.plan.jobs_left(now, context.ledger());
        }
        self.close_completing(now, context.ledger());
        self.share_processors(context)
    }

    fn decide(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if self.is_main_loop_due(context)? {
            self.main_loop(context)?;
        }
        let now = context.now();
        if !self.queue.is_empty() {
            let opens = context.ledger().machine().closed_hosts().iter().map(|closed| closed.to);
            opens.filter(|at| *at > now).min().map_or(Ok(()), |at| context.wake_at(at))?;
        }
        if self.queue.is_empty() || !self.rules.backfill {
            self.next_cycle = None;
            return Ok(());
        }
        let rules = &self.rules;
        let due = *self.next_cycle.get_or_insert_with(|| rules.cycle_from(now));
        let LastCycle(last) = context.ledger().policy_state();
        if due <= now && last != Some(now) {
            context.set_policy_state(&LastCycle(Some(now)));
            // With limits, the main loop may pass a job at the next cycle that a job of this one brings over its limit.
            self.changed = P::VARIES_WITH_TIME
                || self.rules.order.changes()
                || self.plan.is_unsteady()
                || !self.rules.limits.is_empty()
                || !self.rules.preemption.is_empty();
            self.cycle(context)?;
        }
        self.next_cycle =
            self.changed.then(|| if due <= now { self.rules.cycle_from(now + Span::TICK) } else { due });
        self.next_cycle.map_or(Ok(()), |next| context.wake_at(next))
    }
}

impl SlurmRules {
    /// Returns the first cycle that is not before an instant.
    fn cycle_from(&self, at: Time) -> Time {
        round_up(at - self.bf_first, self.bf_interval) + self.bf_first
    }
}

/// Returns the first multiple of a unit that is not before an instant.
fn round_up(at: Time, unit: Span) -> Time {
    let unit = unit.ticks().max(1);
    let over = at.ticks().rem_euclid(unit);
    if over == 0 { at } else { at + Span::from_ticks(unit - over) }
}

impl<P: CyclePlan> Policy for SlurmLike<P> {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.rules.order.usage_half_life()
    }

    fn usage_weights(&self) -> Option<Arc<UsageWeights>> {
        self.rules.billing.weights()
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        let used = LimitUse::new(&self.rules.limits, ledger);
        *self = SlurmLike::new(P::rebuild(now, ledger), used, self.rules.clone());
        for job in ledger.waiting().chain(ledger.running()) {
            let entry = ledger.entry(job);
            match Preempted::due(entry).filter(|_| !self.rules.preemption.is_empty()) {
                Some(at) => drop(self.preempted.insert((at, job))),
                None if entry.state == State::Waiting => self.queue.insert(now, job, ledger),
                None => {}
            }
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        self.changed = true;
        self.plan.event(now, &event, ledger);
        match event {
            Event::Submitted(job) => {
                self.submitted = true;
                self.queue.insert(now, job, ledger);
            }
            Event::Ended(ended) => {
                self.left = true;
                self.queue.remove(ended.job);
                self.preempted.retain(|(_, job)| *job != ended.job);
                if ledger.entry(ended.job).state != State::Waiting {
                    self.used.end(&self.rules.limits, ended.job, ledger);
                }
            }
            // No policy runs around this one.
            Event::Changed(_) => self.rebuild(now, ledger),
            Event::Overdue(_) | Event::EndMoved { .. } | Event::Timer | Event::Rebuilt => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        self.plan.begin_pass(now, context.ledger());
        self.rules.order.compute(context);
        self.queue_again(context)?;
        self.queue.sort_again(now, context.ledger());
        let settled = if self.rules.preemption.is_empty() { Ok(()) } else { self.settle_preempted(context) };
        let decided = settled.and_then(|()| self.decide(context));
        self.queue.settle();
        self.plan.end_pass(now);
        decided?;
        self.preempted.first().map_or(Ok(()), |(at, _)| context.wake_at(*at))
    }
}

/// The main loops after submissions: the last one, and the next one, if a job was submitted since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SubmissionLoops {
    last: Option<Time>,
    due: Option<Time>,
}

impl Persistent for SubmissionLoops {
    const NAME: &'static str = "slurm/submission-loops";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        for instant in [self.last, self.due] {
            words.push(instant.is_some().into());
            words.push(instant.map_or(0, |at| at.ticks().cast_unsigned()));
        }
    }

    fn decode(_version: u32, words: &[u64]) -> Option<SubmissionLoops> {
        let instant = |is_known, ticks: u64| match is_known {
            0 => Some(None),
            1 => Some(Some(Time::from_ticks(ticks.cast_signed()))),
            _ => None,
        };
        match *words {
            [] => Some(SubmissionLoops::default()),
            [has_last, last, has_due, due] => {
                Some(SubmissionLoops { last: instant(has_last, last)?, due: instant(has_due, due)? })
            }
            _ => None,
        }
    }
}

/// The instant of the last cycle. Several rounds may have the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastCycle(Option<Time>);

impl Persistent for LastCycle {
    const NAME: &'static str = "slurm/last-cycle";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(|time| time.ticks().cast_unsigned()));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<LastCycle> {
        match *words {
            [] => Some(LastCycle(None)),
            [ticks] => Some(LastCycle(Some(Time::from_ticks(ticks.cast_signed())))),
            _ => None,
        }
    }
}
