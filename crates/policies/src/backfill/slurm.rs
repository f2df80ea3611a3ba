//! The scheduling of Slurm: a main loop after each event, and backfilling in cycles.

use miserly_core::{
    Context, Event, Ledger, Machine, Persistent, Policy, Refusal, Span, StartReason, Time, Violation,
};

use super::availability::Availability;
use super::queue::{QueueWalk, WaitQueue};
use super::reservations::Reservation;
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
    /// The unit of the plan: time limits are rounded up to it.
    pub bf_resolution: Span,
    /// How far ahead a reservation may begin.
    pub bf_window: Span,
    /// The number of jobs that a cycle tries.
    pub bf_max_job_test: u64,
}

/// Starts jobs as Slurm does.
///
/// | part | when | rule |
/// |---|---|---|
/// | main loop | after each event | starts the first jobs of the queue, up to the first one that does not fit |
/// | cycle | at the multiples of [`bf_interval`](SlurmRules::bf_interval) since time 0, while jobs wait | plans the first jobs of the queue in order. A job starts if it fits now beside the running jobs and the reservations of this cycle. Else it has a reservation at its earliest start, if that is within the window |
///
/// A cycle is left out if nothing happened since the last one: it could start no job. That is not so where the order changes
/// with time, a job is overdue, the capacity varies, or the last cycle started a job or found one beyond the window.
///
/// Reservations end with the cycle. Running jobs end by their time limits in the plan.
///
/// Slurm has the next cycle an interval after the end of the last one; here a cycle takes no time. Slurm rounds the ends of
/// reservations; here time limits are rounded, so that a plan does not depend on the second of its cycle.
///
/// With w waiting jobs, a cycle costs one search of the plan for each of the jobs that it tries.
#[derive(Debug)]
pub struct SlurmLike<A: Availability> {
    rules: SlurmRules,
    queue: WaitQueue,
    plan: A,
    /// The instant of the next cycle, while jobs wait.
    next_cycle: Option<Time>,
    /// Whether a cycle may start a job that the last one could not start.
    changed: bool,
}

impl<A: Availability> SlurmLike<A> {
    /// Returns the policy on an idle machine.
    pub fn idle(machine: &Machine, rules: SlurmRules) -> SlurmLike<A> {
        SlurmLike::new(A::idle(machine), rules)
    }

    fn new(plan: A, rules: SlurmRules) -> SlurmLike<A> {
        SlurmLike {
            queue: WaitQueue::sorted(rules.order.clone()),
            plan,
            next_cycle: None,
            changed: true,
            rules,
        }
    }

    /// Starts the first jobs of the queue that fit.
    fn main_loop(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        while let Some(head) = self.queue.first(context) {
            let Some(place) = self.plan.place_now(context, &head, None) else {
                // The rest of the queue is not looked at.
                if !self.refuse_if_too_large(context, &head)? {
                    return Ok(());
                }
                continue;
            };
            let reason = head_start_reason(context, head.job);
            self.start(context, &head, place, reason)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        context: &mut Context<'_>,
        job: &Waiting,
        place: A::Place,
        reason: StartReason,
    ) -> Result<(), Violation> {
        self.queue.remove(job.job);
        let placement = A::placement(context.ledger(), job.job, place);
        start_job(context, job.job, placement, reason)?;
        self.plan.job_started(context.now(), job, context.ledger());
        Ok(())
    }

    /// Refuses a job that the pool can never hold. Returns whether it did.
    fn refuse_if_too_large(&mut self, context: &mut Context<'_>, job: &Waiting) -> Result<bool, Violation> {
        let varies = context.ledger().machine().varies();
        let never = varies && self.plan.never_fits(context.ledger(), context.now(), job);
        if never {
            self.queue.remove(job.job);
            context.refuse(job.job, Refusal::TooLarge)?;
        }
        Ok(never)
    }

    /// Runs a cycle, and removes its reservations from the plan.
    fn cycle(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut made = vec![];
        let planned = self.plan_jobs(context, &mut made);
        self.plan.release(&made);
        planned
    }

    fn plan_jobs(
        &mut self,
        context: &mut Context<'_>,
        made: &mut Vec<Reservation<A::Place>>,
    ) -> Result<(), Violation> {
        let now = context.now();
        let mut walk = QueueWalk::default();
        for _ in 0..self.rules.bf_max_job_test {
            let Some(job) = self.queue.successor(context, &mut walk) else { break };
            walk.last = Some(job.key);
            let planned = self.rounded(job);
            if let Some(place) = self.plan.place_now(context, &planned, None) {
                self.start(context, &job, place, StartReason::Backfilled)?;
                // The next cycle tries jobs that this one did not reach.
                self.changed = true;
                continue;
            }
            let Some((at, place)) = self.plan.earliest_start(context, &planned) else {
                self.refuse_if_too_large(context, &job)?;
                continue;
            };
            if at > now + self.rules.bf_window {
                // As time goes by, it may get a reservation, and another job none.
                self.changed = true;
                continue;
            }
            A::record_plan(context, job.job, at, &place, false)?;
            let reservation = Reservation::recomputed(planned, at, place);
            self.plan.hold(now, &reservation);
            made.push(reservation);
        }
        Ok(())
    }

    /// Returns a job whose time limit is rounded up.
    fn rounded(&self, job: Waiting) -> Waiting {
        Waiting { span: round_up(Time::ZERO + job.span, self.rules.bf_resolution) - Time::ZERO, ..job }
    }

    fn decide(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.main_loop(context)?;
        if self.queue.is_empty() || !self.rules.backfill {
            self.next_cycle = None;
            return Ok(());
        }
        let now = context.now();
        let interval = self.rules.bf_interval;
        let due = *self.next_cycle.get_or_insert_with(|| round_up(now, interval));
        let LastCycle(last) = context.ledger().policy_state();
        if due <= now && last != Some(now) {
            context.set_policy_state(&LastCycle(Some(now)));
            self.changed = self.rules.order.changes() || self.plan.any_overdue() || self.plan.varies();
            self.cycle(context)?;
        }
        self.next_cycle =
            self.changed.then(|| if due <= now { round_up(now + Span::TICK, interval) } else { due });
        self.next_cycle.map_or(Ok(()), |next| context.wake_at(next))
    }
}

/// Returns the first multiple of a unit that is not before an instant.
fn round_up(at: Time, unit: Span) -> Time {
    let unit = unit.ticks().max(1);
    let over = at.ticks() % unit;
    if over == 0 { at } else { at + Span::from_ticks(unit - over) }
}

impl<A: Availability> Policy for SlurmLike<A> {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.rules.order.usage_half_life()
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = SlurmLike::new(A::rebuild(now, ledger), self.rules.clone());
        for job in ledger.waiting() {
            self.queue.insert(now, job, ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        let freed = &mut A::Freed::default();
        self.changed = true;
        match event {
            Event::Submitted(job) => self.queue.insert(now, job, ledger),
            Event::Ended(ended) => {
                self.plan.job_ended(now, ended.job, ledger, freed);
                self.queue.remove(ended.job);
            }
            Event::Overdue(job) => self.plan.job_overdue(now, job, ledger, freed),
            Event::EndMoved { job, before } => self.plan.end_moved(now, job, before, ledger),
            // No policy runs around this one.
            Event::Changed(_) => self.rebuild(now, ledger),
            Event::Timer | Event::Rebuilt => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        self.plan.advance(now, context.ledger(), &mut A::Freed::default());
        self.queue.sort_again(now, context.ledger());
        self.plan.hold_overdue(now, context.ledger());
        let decided = self.decide(context);
        self.queue.settle();
        self.plan.release_overdue(now);
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
