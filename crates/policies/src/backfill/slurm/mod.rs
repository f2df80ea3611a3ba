//! The scheduling of Slurm: a main loop after each event, and backfilling in cycles.

mod plan;

mod nodes;

mod ends;

mod limits;

mod select;

mod sets;

mod stretches;

use miserly_core::{
    Context, Event, Ledger, Machine, Persistent, Policy, Refusal, Span, StartReason, State, Time, Violation,
};

pub use self::limits::{RunningLimits, RunningLimitsError};
pub use self::nodes::NodePlan;
pub use self::plan::{CyclePlan, Planned, Simple};
pub use self::select::select_hosts;

use self::limits::{Exceeded, LimitUse};
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
            rules,
        }
    }

    /// Starts the first jobs of the queue that fit.
    fn main_loop(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut open = self.plan.all_open(context.ledger());
        let mut walk = QueueWalk::default();
        while let Some(job) = self.queue.successor(context, &mut walk) {
            walk.last = Some(job.key);
            if self.exceeded(context.ledger(), &job).is_some() {
                self.refuse_if_too_large(context, &job)?;
            } else if let Some(place) = self.plan.place_now(context, &job, &open) {
                let reason = head_start_reason(context, job.job);
                self.start(context, &job, place, reason)?;
            } else if !self.refuse_if_too_large(context, &job)?
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
        let mut walk = QueueWalk::default();
        let mut tried = 0;
        while tried < self.rules.bf_max_job_test {
            let Some(job) = self.queue.successor(context, &mut walk) else { break };
            walk.last = Some(job.key);
            let exceeded = self.exceeded(context.ledger(), &job);
            if exceeded == Some(Exceeded::Jobs) {
                continue;
            }
            tried += 1;
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
                || !self.rules.limits.is_empty();
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

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        let used = LimitUse::new(&self.rules.limits, ledger);
        *self = SlurmLike::new(P::rebuild(now, ledger), used, self.rules.clone());
        for job in ledger.waiting() {
            self.queue.insert(now, job, ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        self.changed = true;
        self.plan.event(now, &event, ledger);
        match event {
            Event::Submitted(job) => self.queue.insert(now, job, ledger),
            Event::Ended(ended) => {
                self.queue.remove(ended.job);
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
        self.queue.sort_again(now, context.ledger());
        let decided = self.decide(context);
        self.queue.settle();
        self.plan.end_pass(now);
        decided
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
