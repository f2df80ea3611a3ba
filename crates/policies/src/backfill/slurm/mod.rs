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

use std::collections::BTreeSet;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use miserly_core::{
    Context, Event, HostId, JobId, Ledger, Machine, Persistent, Policy, Refusal, Resources, Span,
    StartReason, State, Time, UsageWeights, Violation,
};

pub use self::billing::{BillingWeights, BillingWeightsError};
pub use self::limits::{RunningLimits, RunningLimitsError};
pub use self::nodes::NodePlan;
pub use self::plan::{CyclePlan, Planned, Simple};
pub use self::preemption::{PreemptionOrder, PreemptionRules, PreemptionRulesError};
pub use self::select::select_hosts;

use self::ends::demand_of;
use self::limits::{Exceeded, LimitUse};
use self::preemption::{Levels, Mode, Preempted};
use super::queue::{QueueWalk, WaitQueue};
use crate::shared::{Order, Waiting, head_start_reason, start_job};

/// The settings of Slurm's scheduling, with the names of its `SchedulerParameters`.
#[derive(Clone, Debug, PartialEq)]
pub struct SlurmRules {
    /// The order of the queue: the priorities.
    pub order: Order,
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
    /// What the resources of jobs cost in the usage.
    pub billing: BillingWeights,
}

/// Starts jobs as Slurm does.
///
/// | part | when | rule |
/// |---|---|---|
/// | main loop | after each event | starts the first jobs of the queue, up to the first one that does not fit. Where that one is bound to a group of hosts, as the jobs of a partition are, the loop goes on with the other hosts. It passes a job some of whose hosts are closed before its limit |
/// | cycle | each [`bf_interval`](SlurmRules::bf_interval), from [`bf_first`](SlurmRules::bf_first) on and before it, while jobs wait | plans the first jobs of the queue in order. A job starts if it fits now beside the running jobs and the reservations of this cycle. Else it has a reservation at its earliest start, if that is within the window |
///
/// A cycle is left out if nothing happened since the last one: it could start no job. That is not so where the order changes
/// with time, running jobs have limits, a job is overdue, the capacity varies, or the last cycle started a job or found one beyond the window.
///
/// A job that would exceed one of the [`limits`](SlurmRules::limits) is passed in both. In a cycle, one that would exceed a number
/// of processors has a reservation if it cannot start now for want of hosts, as Slurm checks this limit only at a start.
///
/// With rules of [`preemption`](SlurmRules::preemption), jobs are behind all jobs that may preempt them, in whatever order. A job that does not fit now takes the place of running jobs, in the main loop and
/// in a cycle. It starts at once, or when the grace time of the others is over. Until then it preempts no more jobs. Nothing but hosts
/// without a reservation of the cycle are emptied; where hosts are not planned, that is so only before the first reservation.
/// A requeued job begins anew, and may start after [`requeue_delay`](SlurmRules::requeue_delay).
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
    /// The preempted jobs, by the instants at which they leave the machine or may start again.
    preempted: BTreeSet<(Time, JobId)>,
    levels: Levels,
}

/// A walk through the waiting jobs, level by level.
struct LevelWalk {
    level: usize,
    within: QueueWalk,
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
            preempted: BTreeSet::new(),
            levels: Levels::new(&rules.preemption),
            rules,
        }
    }

    fn walk(&self) -> LevelWalk {
        LevelWalk { level: self.levels.highest(), within: QueueWalk::default() }
    }

    /// Returns the next job of a walk.
    fn successor(&mut self, context: &Context<'_>, walk: &mut LevelWalk) -> Option<Waiting> {
        loop {
            if let Some(job) = self.queue.successor(context, &mut walk.within) {
                walk.within.last = Some(job.key);
                if self.levels.highest() == 0
                    || self.levels.has(context.ledger().request(job.job), walk.level)
                {
                    return Some(job);
                }
            } else {
                walk.level = walk.level.checked_sub(1)?;
                walk.within = QueueWalk::default();
            }
        }
    }

    /// Starts the first jobs of the queue that fit.
    fn main_loop(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut open = self.plan.all_open(context.ledger());
        let mut walk = self.walk();
        while let Some(job) = self.successor(context, &mut walk) {
            if self.exceeded(context.ledger(), &job).is_some() {
                self.refuse_if_too_large(context, &job)?;
            } else if let Some(place) = self.plan.place_now(context, &job, &open) {
                let reason = head_start_reason(context, job.job);
                self.start(context, &job, place, reason)?;
            } else if !self.refuse_if_too_large(context, &job)?
                && !self.preempt(context, &job, &open)?
                && !self.plan.close(context.now(), context.ledger(), &job, &mut open)
            {
                return Ok(());
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
        let mut walk = self.walk();
        let mut tried = 0;
        while tried < self.rules.bf_max_job_test {
            let Some(job) = self.successor(context, &mut walk) else { break };
            let exceeded = self.exceeded(context.ledger(), &job);
            if exceeded == Some(Exceeded::Jobs) {
                continue;
            }
            tried += 1;
            if exceeded.is_none() && self.preempt_in_cycle(context, &job)? {
                continue;
            }
            match self.plan.plan(context, &job, &self.rules) {
                Planned::Now(_) if exceeded.is_some() => {}
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

    /// Starts a job of a cycle in the place of running jobs, if it may not start beside them. Returns whether it started.
    fn preempt_in_cycle(&mut self, context: &mut Context<'_>, job: &Waiting) -> Result<bool, Violation> {
        if !self.rules.preemption.admit(context.ledger().request(job.job)) {
            return Ok(false);
        }
        let open = self.plan.open_now(context.now(), context.ledger(), job);
        Ok(self.plan.place_now(context, job, &open).is_none() && self.preempt(context, job, &open)?)
    }

    /// Takes running jobs off the open hosts for a job that does not fit beside them. Returns whether it started.
    fn preempt(
        &mut self,
        context: &mut Context<'_>,
        job: &Waiting,
        open: &FixedBitSet,
    ) -> Result<bool, Violation> {
        let Some(victims) = self.victims(context, job, open) else { return Ok(false) };
        let (now, by) = (context.now(), context.ledger().entry(job.job).admitted);
        let (mut left, mut wait) = (false, false);
        for victim in victims {
            let entry = context.ledger().entry(victim);
            let grace = self.rules.preemption.grace(&entry.request);
            let leaves = Preempted::due(entry).is_some();
            if leaves || grace > Span::ZERO {
                if !leaves {
                    context.set_job_state(victim, &Preempted::Leaves { at: now + grace, by })?;
                    self.preempted.insert((now + grace, victim));
                }
                wait = true;
            } else {
                self.take_off(context, victim)?;
                left = true;
            }
        }
        if left || wait {
            self.plan.jobs_left(now, context.ledger());
        }
        let place = if wait { None } else { self.plan.place_now(context, job, open) };
        let Some(place) = place else { return Ok(false) };
        let reason = head_start_reason(context, job.job);
        self.start(context, job, place, reason)?;
        self.changed = true;
        Ok(true)
    }

    /// Returns the running jobs that leave the machine for a job, if that makes room. A job whose victims are in their grace time has no
    /// others.
    fn victims(&self, context: &Context<'_>, job: &Waiting, open: &FixedBitSet) -> Option<Vec<JobId>> {
        let ledger = context.ledger();
        let SlurmRules { preemption, preemption_order, .. } = &self.rules;
        let (entry, machine) = (ledger.entry(job.job), ledger.machine());
        if !preemption.admit(&entry.request) {
            return None;
        }
        let waits_for = |job: JobId| matches!(Preempted::of(ledger.entry(job)), Preempted::Leaves { by, .. } if by == entry.admitted);
        if self.preempted.iter().any(|(_, other)| waits_for(*other)) {
            return None;
        }
        let demand = demand_of(ledger, job.job);
        let hosts = (0..).map(HostId).take(machine.hosts().len());
        let is_open = |host: HostId| {
            let may_be = host.index() >= open.len() || open.contains(host.index());
            may_be && machine.permits(demand.group(), host)
        };
        let mut open: Vec<bool> = hosts.map(is_open).collect();
        let now = context.now();
        machine.closed_within(now, now + job.span).for_each(|host| open[host.index()] = false);
        let hosts_in = |free: &[Resources]| select_hosts(machine, free, &open, &demand);
        preemption.victims(*preemption_order, now, ledger, &entry.request, &open, hosts_in)
    }

    /// Takes a running job off the machine. It waits again, or has ended.
    fn take_off(&mut self, context: &mut Context<'_>, victim: JobId) -> Result<(), Violation> {
        let mode = self.rules.preemption.mode(context.ledger().request(victim));
        self.used.end(&self.rules.limits, victim, context.ledger());
        context.requeue(victim, false)?;
        match mode {
            Mode::Requeue => {
                let at = context.now() + self.rules.requeue_delay;
                context.set_job_state(victim, &Preempted::Again { at })?;
                self.preempted.insert((at, victim));
                Ok(())
            }
            Mode::Cancel => context.refuse(victim, Refusal::Preempted),
        }
    }

    /// Puts requeued jobs whose delay is over into the queue, before it is sorted.
    fn queue_again(&mut self, now: Time, ledger: &Ledger) {
        let is_again =
            |job: JobId| matches!(ledger.get(job).map(Preempted::of), Some(Preempted::Again { .. }));
        let due = self.preempted.iter().copied().take_while(|(at, _)| *at <= now);
        let due: Vec<(Time, JobId)> = due.filter(|(_, job)| is_again(*job)).collect();
        for (at, job) in due {
            self.preempted.remove(&(at, job));
            self.queue.insert(now, job, ledger);
        }
    }

    /// Takes the jobs off the machine whose grace time is over, and starts those for which they leave.
    fn settle_preempted(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let mut preemptors = BTreeSet::new();
        while let Some((_, job)) = self.preempted.first().copied().filter(|(at, _)| *at <= now) {
            self.preempted.pop_first();
            match context.ledger().get(job).map(Preempted::of) {
                // It ends by itself at this instant. Its end event follows.
                _ if context.ledger().get(job).is_none_or(|entry| entry.allocated().is_zero()) => {}
                Some(Preempted::Leaves { by, .. }) => {
                    self.take_off(context, job)?;
                    preemptors.insert(by);
                }
                _ => {}
            }
        }
        if preemptors.is_empty() {
            return Ok(());
        }
        self.plan.jobs_left(now, context.ledger());
        let open = self.plan.all_open(context.ledger());
        let mut walk = self.walk();
        while let Some(job) = self.successor(context, &mut walk) {
            let is_one = preemptors.contains(&context.ledger().entry(job.job).admitted);
            if is_one
                && self.exceeded(context.ledger(), &job).is_none()
                && let Some(place) = self.plan.place_now(context, &job, &open)
            {
                let reason = head_start_reason(context, job.job);
                self.start(context, &job, place, reason)?;
            }
        }
        Ok(())
    }

    fn decide(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.main_loop(context)?;
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
            Event::Submitted(job) => self.queue.insert(now, job, ledger),
            Event::Ended(ended) => {
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
        self.queue_again(now, context.ledger());
        self.queue.sort_again(now, context.ledger());
        let decided = self.settle_preempted(context).and_then(|()| self.decide(context));
        self.queue.settle();
        self.plan.end_pass(now);
        decided?;
        self.preempted.first().map_or(Ok(()), |(at, _)| context.wake_at(*at))
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
