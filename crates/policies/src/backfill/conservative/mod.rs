//! Conservative backfilling: a reservation for every job, which never moves later.

mod risen;

mod starts;

use miserly_core::{Desk, Entry, Event, JobId, Ledger, Policy, Reason, Time, Violation};

use self::risen::Risen;
use self::starts::Starts;
use super::running::Running;
use super::{procs, sort_again, start, waiting};
use crate::shared::{Key, Order, Profile, QueueIndex, Waiting};

/// Conservative backfilling (Zotkin et al. §2).
///
/// At arrival a job gets the earliest hole that holds its processors for its estimate. After terminations
/// the schedule is compressed: each waiting job in queue order is lifted out and put back at the earliest
/// hole, never later than before. Every reservation is a promise.
///
/// # What is not touched
/// Since a job was last found unable to move, only a rise of the free count can have made room for it: to its
/// width at least, in a hole that starts before the rise ends. So compression asks the queue index for jobs no
/// wider than the highest count among the stretches that have risen, passes over all others, and searches no
/// further than those stretches. With n breakpoints and w waiting jobs in chunks of c: O(c + n/c + w/c) per
/// event and per job that is looked at.
///
/// # The order of starts
/// Jobs that start at one instant start in the order in which that was decided: a reservation that was moved
/// counts from its last move. Under sequential events they end, and are compressed after, in this order.
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
    /// Their reserved starts.
    starts: Starts,
    /// Jobs that came since the last pass.
    arrived: Vec<JobId>,
    /// The running jobs and the reservations.
    plan: Running,
    /// Whether a job ended since the last pass.
    compress: bool,
    /// Whether something was changed from outside: reservations may be in its way.
    repair: bool,
    /// Until when the jobs that ended since the last pass would have held processors.
    freed_until: Time,
    /// What rose while the last compression was already past some jobs.
    risen: Risen,
}

impl Conservative {
    /// Conservative backfilling with compression in this order.
    pub fn new(order: Order) -> Conservative {
        Conservative {
            order,
            queue: QueueIndex::new(),
            starts: Starts::default(),
            arrived: Vec::new(),
            plan: Running::none(0),
            compress: false,
            repair: false,
            freed_until: Time::ZERO,
            risen: Risen::ANYWHERE,
        }
    }

    /// Puts a job with a place in the plan into the indexes.
    fn keep(&mut self, now: Time, job: JobId, entry: &Entry, at: Time) {
        let held = waiting(&self.order, now, job, entry);
        self.queue.insert(held);
        self.starts.set(&held, at);
        self.plan.profile.take(at, at + held.span, held.procs);
    }

    /// Sorts the queue and the starts of each instant again, if the order changes with time.
    fn sort_again(&mut self, desk: &Desk<'_>) {
        if self.order.changes() {
            sort_again(&mut self.queue, &self.order, desk);
            for job in self.queue.iter() {
                self.starts.set(job, self.starts.get(job.job));
            }
        }
    }

    /// Lifts each job that may have room earlier and puts it back at its earliest hole, in queue order.
    fn compress(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        let Conservative { queue, starts, plan, risen, freed_until, .. } = self;
        let mut news = std::mem::replace(risen, Risen::NOWHERE);
        news.add(&plan.profile, now, *freed_until);
        let mut width = news.highest;
        queue.visit_narrow(&mut width, |job, width| {
            let from = starts.get(job.job);
            let place = plan.profile.earliest_within(now, news.until, from, job.span, job.procs);
            let Some(to) = place else { return Ok(()) };
            starts.set(job, to);
            shift(&mut plan.profile, job, from, to);
            // What this job leaves behind is news for those behind it now, and for all at the next pass.
            let left = (from.max(to + job.span), from + job.span);
            news.add(&plan.profile, left.0, left.1);
            risen.add(&plan.profile, left.0, left.1);
            *width = news.highest;
            desk.promise(job.job, to)
        })
    }

    /// Reserves for the jobs that came, in the order in which they came.
    fn admit(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        for job in std::mem::take(&mut self.arrived) {
            let entry = desk.ledger().entry(job);
            let at = self.plan.profile.earliest(now, entry.request.planned(), procs(entry));
            self.keep(now, job, entry, at);
            desk.promise(job, at)?;
        }
        Ok(())
    }

    /// Starts every job whose reserved start is now, in the order in which these starts were decided.
    fn start_due(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let mut due = Vec::new();
        while let Some((_, job)) = self.starts.first().filter(|(at, _)| *at <= desk.now()) {
            self.starts.remove(job).iter().for_each(|key| {
                self.queue.remove(key);
            });
            due.push(job);
        }
        due.sort_unstable_by_key(|job| desk.ledger().entry(*job).decided);
        for job in due {
            let reason = self.reason(desk, job);
            start(desk, job, reason)?;
        }
        Ok(())
    }

    /// A job that starts as it comes has passed those who came before it and wait on, if there are any.
    fn reason(&self, desk: &Desk<'_>, job: JobId) -> Reason {
        let now = desk.now();
        let entry = |job: JobId| desk.ledger().entry(job);
        if entry(job).request.submit < now {
            return Reason::Reserved;
        }
        let arrival = Key::arrival(entry(job));
        let passed =
            |other: &Waiting| self.starts.get(other.job) > now && Key::arrival(entry(other.job)) < arrival;
        if self.queue.iter().any(passed) { Reason::Backfilled } else { Reason::AtOnce }
    }

    /// Makes the plan possible again after a job did not end when it should have.
    fn repair(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.risen = Risen::ANYWHERE;
        let mut held: Vec<(Time, Waiting)> =
            self.queue.iter().map(|job| (self.starts.get(job.job), *job)).collect();
        for (at, job) in &held {
            self.plan.profile.give(*at, *at + job.span, job.procs);
        }
        held.sort_by_cached_key(|(at, job)| (*at, Key::arrival(desk.ledger().entry(job.job))));
        for (from, job) in held {
            let to = self.plan.profile.earliest(now.max(from), job.span, job.procs);
            self.starts.set(&job, to);
            self.plan.profile.take(to, to + job.span, job.procs);
            if to > from {
                desk.break_promise(job.job, to)?;
            }
        }
        Ok(())
    }

    fn plan(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        let disturbed = std::mem::take(&mut self.repair);
        if disturbed || self.plan.any_overdue() || self.starts.first().is_some_and(|(at, _)| at < now) {
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
    fn wake(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let next = match self.plan.overdue_procs() {
            0 => self.starts.first().map(|(at, _)| at),
            overdue => {
                let starts = self.queue.iter().map(|job| self.starts.get(job.job));
                starts.filter(|at| self.plan.profile.free_at(*at) >= overdue).min()
            }
        };
        match next {
            Some(at) if at < Time::MAX => desk.wake_at(at),
            _ => Ok(()),
        }
    }
}

/// Moves a job's processors in the plan.
fn shift(profile: &mut Profile, job: &Waiting, from: Time, to: Time) {
    profile.give(from, from + job.span, job.procs);
    profile.take(to, to + job.span, job.procs);
}

impl Policy for Conservative {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = Conservative::new(self.order.clone());
        self.plan = Running::rebuild(now, ledger);
        for job in ledger.waiting() {
            let entry = ledger.entry(job);
            match entry.promise {
                Some(promise) => self.keep(now, job, entry, promise.best),
                None => self.arrived.push(job),
            }
        }
        self.arrived.sort_by_cached_key(|job| Key::arrival(ledger.entry(*job)));
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
            Event::Disturbed => {
                self.repair = true;
                self.compress = true;
                self.freed_until = Time::MAX;
            }
            // Nothing is around it on a plain machine.
            Event::Timer | Event::Changed(_) => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.sort_again(desk);
        self.plan.profile.advance(now);
        self.plan.hold_overdue(now);
        let planned = self.plan(desk);
        self.plan.drop_overdue(now);
        planned?;
        self.start_due(desk)?;
        self.wake(desk)
    }
}
