//! Conservative backfilling: a reservation for every job, which never moves later.

use std::collections::BTreeSet;

use miserly_core::{Broken, Desk, Entry, Event, JobId, Ledger, Policy, Reason, Time, Violation};

use super::running::Running;
use super::{procs, start, waiting};
use crate::shared::{Key, Order, QueueIndex, Staircase, Waiting};

/// Conservative backfilling (Zotkin et al. §2).
///
/// At arrival a job gets the earliest hole that holds its processors for its estimate. After terminations
/// the schedule is compressed: each waiting job in queue order is lifted out and put back at the earliest
/// hole, never later than before. Every reservation is a promise.
///
/// # What is not touched
/// Since a job was last found unable to move, only a rise of the free count can have made room for it, and
/// only if the count rose to its width. So compression asks the queue index for jobs no wider than the
/// highest count among the stretches that have risen, and passes over all others. With n breakpoints and
/// w waiting jobs in chunks of c: O(c + n/c + w/c) per event and per job that is looked at.
///
/// # Overdue jobs
/// While a running job is past its expected end, and as long as a reservation lies in the past, each pass
/// first repairs the plan: all reservations, by their starts (ties by arrival), go to the earliest hole not
/// before now and not before where they were. A promise that this moves later is broken, and says why.
#[derive(Debug)]
pub struct Conservative {
    order: Order,
    /// Jobs with a reservation, in the order of compression.
    queue: QueueIndex,
    /// The same jobs by their reserved starts, then in the order of the queue.
    by_start: BTreeSet<(Time, Key, JobId)>,
    /// The reserved start of each job in the queue, by the job's handle.
    reserved: Vec<Time>,
    /// Jobs that came since the last pass.
    arrived: Vec<JobId>,
    /// The running jobs and the reservations.
    plan: Running,
    /// Whether a job ended since the last pass.
    compress: bool,
    /// Until when the jobs that ended since the last pass would have held processors.
    freed_until: Time,
    /// The highest count of a stretch that rose while the last compression was already past some jobs.
    risen: u32,
    stairs: Staircase,
}

impl Conservative {
    /// Conservative backfilling with compression in this order.
    pub fn new(order: Order) -> Conservative {
        Conservative {
            order,
            queue: QueueIndex::new(),
            by_start: BTreeSet::new(),
            reserved: Vec::new(),
            arrived: Vec::new(),
            plan: Running::none(0),
            compress: false,
            freed_until: Time::ZERO,
            risen: u32::MAX,
            stairs: Staircase::default(),
        }
    }

    /// Puts a job with a place in the plan into the indexes.
    fn keep(&mut self, job: JobId, entry: &Entry, at: Time) {
        let held = waiting(self.order, job, entry);
        self.queue.insert(held);
        self.by_start.insert((at, held.key, job));
        if self.reserved.len() <= job.index() {
            self.reserved.resize(job.index() + 1, Time::MAX);
        }
        self.reserved[job.index()] = at;
        self.plan.profile.take(at, at + held.span, held.procs);
    }

    /// Notes a job's new reserved start, and returns the old one. The plan is the caller's to change.
    fn reindex(&mut self, held: &Waiting, to: Time) -> Time {
        let from = std::mem::replace(&mut self.reserved[held.job.index()], to);
        if from != to {
            self.by_start.remove(&(from, held.key, held.job));
            self.by_start.insert((to, held.key, held.job));
        }
        from
    }

    /// Lifts each job that may have room earlier and puts it back at its earliest hole, in queue order.
    fn compress(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        let mut highest = self.plan.profile.most_within(now, self.freed_until).max(self.risen);
        self.risen = 0;
        let mut last = None;
        loop {
            self.stairs.set_flat(highest);
            let Some(next) = self.queue.next_admitted(last.as_ref(), &self.stairs) else { return Ok(()) };
            last = Some(next.key);
            let from = self.reserved[next.job.index()];
            let Some(to) = self.plan.profile.earliest_before(now, from, next.span, next.procs) else {
                continue;
            };
            self.reindex(&next, to);
            self.plan.profile.give(from, from + next.span, next.procs);
            self.plan.profile.take(to, to + next.span, next.procs);
            desk.promise(next.job, to)?;
            // What this job leaves behind is news for those behind it now, and for all at the next pass.
            let left = self.plan.profile.most_within(from.max(to + next.span), from + next.span);
            highest = highest.max(left);
            self.risen = self.risen.max(left);
        }
    }

    /// Reserves for the jobs that came, in the order in which they came.
    fn admit(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        for job in std::mem::take(&mut self.arrived) {
            let entry = desk.ledger().entry(job);
            let at = self.plan.profile.earliest(now, entry.request.planned(), procs(entry));
            self.keep(job, entry, at);
            desk.promise(job, at)?;
        }
        Ok(())
    }

    /// Starts every job whose reserved start is now.
    fn start_due(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        while let Some(&(at, key, job)) = self.by_start.first().filter(|(at, ..)| *at <= now) {
            self.by_start.remove(&(at, key, job));
            self.queue.remove(&key);
            let reason = self.reason(desk, job);
            start(desk, job, reason)?;
        }
        Ok(())
    }

    /// A job that starts as it comes has passed those who came before it and wait on, if there are any.
    fn reason(&self, desk: &Desk<'_>, job: JobId) -> Reason {
        if desk.ledger().request(job).submit < desk.now() {
            return Reason::Reserved;
        }
        let now = desk.now();
        let waits =
            |&(at, _, other): &(Time, Key, JobId)| at > now && desk.ledger().request(other).submit < now;
        if self.by_start.iter().rev().any(waits) { Reason::Backfilled } else { Reason::AtOnce }
    }

    /// Makes the plan possible again after a job did not end when it should have.
    fn repair(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.risen = u32::MAX;
        let mut held: Vec<Waiting> = self.queue.iter().copied().collect();
        for job in &held {
            let at = self.reserved[job.job.index()];
            self.plan.profile.give(at, at + job.span, job.procs);
        }
        let arrival = |job: JobId| Order::Arrival.key(desk.ledger().entry(job));
        held.sort_by_cached_key(|job| (self.reserved[job.job.index()], arrival(job.job)));
        for job in held {
            let from = self.reserved[job.job.index()];
            let to = self.plan.profile.earliest(now.max(from), job.span, job.procs);
            self.reindex(&job, to);
            self.plan.profile.take(to, to + job.span, job.procs);
            if to > from {
                desk.break_promise(job.job, to, Broken::Overdue)?;
            }
        }
        Ok(())
    }

    fn plan(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        if self.plan.any_overdue() || self.by_start.first().is_some_and(|(at, ..)| *at < now) {
            self.repair(desk)?;
        }
        if std::mem::take(&mut self.compress) {
            self.compress(desk)?;
        }
        self.freed_until = Time::from_ticks(i64::MIN);
        self.admit(desk)
    }

    /// Asks to be called at the next reserved start that can be kept even if no overdue job ends until then.
    ///
    /// Where it could not be kept there is nothing to do before such an end, which is an event.
    fn wake(&self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let overdue = self.plan.overdue_procs();
        let kept = |at: &Time| overdue == 0 || self.plan.profile.free_at(*at) >= overdue;
        match self.by_start.iter().map(|(at, ..)| *at).find(kept) {
            Some(at) if at < Time::MAX => desk.wake_at(at),
            _ => Ok(()),
        }
    }
}

impl Policy for Conservative {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = Conservative::new(self.order);
        self.plan = Running::rebuild(now, ledger);
        for job in ledger.waiting() {
            let entry = ledger.entry(job);
            match entry.promise {
                Some(promise) => self.keep(job, entry, promise.best),
                None => self.arrived.push(job),
            }
        }
        self.arrived.sort_by_cached_key(|job| Order::Arrival.key(ledger.entry(*job)));
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.arrived.push(job),
            Event::Overdue(job) => self.plan.overdue(job, ledger),
            Event::Ended(ended) => {
                self.compress = true;
                let until = self.plan.ended(now, ended.job, ledger);
                self.freed_until = self.freed_until.max(until);
            }
            Event::Timer => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.plan.profile.advance(now);
        self.plan.hold_overdue(now);
        let planned = self.plan(desk);
        self.plan.drop_overdue(now);
        planned?;
        self.start_due(desk)?;
        self.wake(desk)
    }
}
