//! A reservation for every job, which is kept.

use miserly_core::{
    Desk, Event, HostId, JobId, Ledger, Machine, Placement, Policy, Reason, Resources, Span, State, Time,
    Violation,
};

use super::super::start_on;
use super::places::{Place, Places};
use super::queue::Queue;
use super::{Backfilling, Room, demand};
use crate::shared::{HostPlan, Key, Order, Risen, Trial, Waiting};
use crate::window::{Bounds, earliest};

/// Conservative backfilling on hosts (Zotkin et al. §2; Chiang and Vernon §2.2 with every job scheduled).
///
/// When it comes a job gets the earliest start there is beside the running jobs and all reservations, on the hosts that
/// it fits best then. When something has ended each waiting job, in the order of the queue, is lifted out and put back
/// at the earliest start, never later than before; where it cannot start earlier it stays on its hosts. Every reservation
/// is a promise. Overdue jobs are treated as [`Conservative`](super::super::Conservative) treats them.
///
/// No job starts before its earliest start ([`miserly_core::Terms`]). With [windows](Kept::with_windows) a job is refused that
/// cannot have one within its bounds; without, only one that could never run. Where lost capacity leaves no place for a
/// job that has one, it keeps it at the end of time, to come back when there is.
///
/// # What is not touched
/// Since a job was last found unable to move, only a rise on some host can have made room for it there, in a hole that
/// starts before the rise ends. So compression passes over jobs that are wider than whatever has risen, and searches the hosts
/// that have. Where jobs lie on several hosts it looks at what all have free together first, and no further than the rises.
///
/// With w waiting jobs that are narrow enough and r hosts that have risen: O(w r) for each event at which something ends, and
/// O(m) for each job that comes, in the m breakpoints of all hosts.
#[derive(Debug)]
pub struct Kept {
    name: &'static str,
    order: Order,
    /// How far ahead a window may lie, if reservations are windows.
    horizon: Option<Span>,
    queue: Queue,
    /// The reservations of the jobs in the queue, and of those that were lent a quantum.
    places: Places,
    /// Jobs that came since the last pass.
    arrived: Vec<JobId>,
    /// The running jobs and the reservations.
    plan: HostPlan,
    /// Something ended since the last pass.
    compress: bool,
    /// Somebody else changed what jobs hold: reservations may be in their way.
    repair: bool,
    /// Where there is more since jobs were last found unable to move.
    risen: Risen,
}

impl Kept {
    /// Every job has a reservation; compression goes in this order.
    pub fn new(machine: &Machine, order: Order) -> Kept {
        Kept::named("conservative", machine, order)
    }

    /// The same by another name.
    pub fn named(name: &'static str, machine: &Machine, order: Order) -> Kept {
        Kept {
            name,
            queue: Queue::of(order.clone(), order.clone()),
            order,
            horizon: None,
            places: Places::default(),
            arrived: Vec::new(),
            plan: HostPlan::new(machine),
            compress: false,
            repair: false,
            risen: Risen::anywhere(),
        }
    }

    /// The same, with windows in the place of reservations: none of them further ahead than `horizon` when it is made.
    #[must_use]
    pub fn with_windows(self, horizon: Span) -> Kept {
        Kept { horizon: Some(horizon), ..self }
    }

    /// Enters a reservation.
    fn keep(&mut self, now: Time, job: JobId, ledger: &Ledger, at: Time, placement: Placement) {
        let entry = ledger.entry(job);
        let span = entry.request.planned();
        self.plan.take(at, span, &placement);
        let waits = entry.placement().is_none();
        self.places.insert(job, Place { at, span, placement, arrival: Key::arrival(entry) }, waits);
        if waits {
            self.queue.insert(now, job, ledger);
        }
    }

    /// Moves a reservation to where there is room now; it is not in the plan.
    fn put(
        &mut self,
        desk: &mut Desk<'_>,
        job: JobId,
        at: Time,
        placement: Placement,
    ) -> Result<(), Violation> {
        let Some(place) = self.places.get(job) else { return Ok(()) };
        self.plan.take(at, place.span, &placement);
        if place.at == at && place.placement == placement {
            return Ok(());
        }
        let later = at > place.at;
        self.places.set(job, at, placement.clone());
        desk.plan_on(job, at, placement)?;
        if later { desk.break_promise(job, at) } else { desk.promise(job, at) }
    }

    fn lift(&mut self, job: JobId) -> Option<Place> {
        let place = self.places.get(job)?.clone();
        self.plan.give(place.at, place.span, &place.placement);
        Some(place)
    }

    /// The earliest start of a job from now on, but before `until`, and where.
    fn earliest(&self, desk: &Desk<'_>, job: JobId, until: Time) -> Option<(Time, Placement)> {
        let (ledger, now) = (desk.ledger(), desk.now());
        let request = ledger.request(job);
        let (span, demand) = (request.planned(), demand(ledger, job));
        let begin = earliest(request, now);
        if begin > now {
            return self.plan.earliest_from(begin, until, span, &demand);
        }
        self.plan.earliest(ledger, now, until, span, &demand, &self.places.due(now))
    }

    /// Lifts each job that may have room earlier and puts it back at its earliest start, in the order of the queue.
    fn compress(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let mut news = std::mem::take(&mut self.risen);
        if self.plan.is_pool() {
            news = Risen::anywhere();
        }
        let mut room = Room { procs: self.plan.most_cpus(desk.now(), &news) };
        let mut last = None;
        while let Some(job) = self.queue.next(last.as_ref(), &room) {
            last = Some(job.key);
            let Some(left) = self.advance(desk, &job, &news)? else { continue };
            // What this job leaves behind is news for those behind it now, and for all at the next pass.
            news.add(&left.placement, left.at + left.span);
            self.risen.add(&left.placement, left.at + left.span);
            room.procs = self.plan.most_cpus(desk.now(), &news);
        }
        Ok(())
    }

    /// Moves a job's reservation to an earlier start, if there is one; returns what it was.
    fn advance(
        &mut self,
        desk: &mut Desk<'_>,
        job: &Waiting,
        news: &Risen,
    ) -> Result<Option<Place>, Violation> {
        let Some((at, placement)) = self.earlier(desk, job.job, news) else { return Ok(None) };
        let before = self.lift(job.job);
        self.put(desk, job.job, at, placement)?;
        Ok(before)
    }

    /// A start before that of a job's reservation, where there is more than when it last looked, and the hosts.
    fn earlier(&mut self, desk: &Desk<'_>, job: JobId, news: &Risen) -> Option<(Time, Placement)> {
        let place = self.places.get(job)?;
        let reserved = (place.at, place.span, &place.placement);
        let from = earliest(desk.ledger().request(job), desk.now());
        if from >= place.at {
            return None;
        }
        let demand = demand(desk.ledger(), job);
        if let Some(hosts) = self.plan.hosts_alone(news) {
            return self.plan.earlier_on(from, &demand, reserved, hosts);
        }
        let until = place.at.min(news.until()?);
        if !self.plan.seems_earlier(from, until, &demand, reserved) {
            return None;
        }
        let place = self.lift(job)?;
        let earlier = self.earliest(desk, job, until);
        self.plan.take(place.at, place.span, &place.placement);
        earlier.filter(|(at, _)| *at < place.at)
    }

    /// Makes the plan possible again: all reservations, by their starts, go to the earliest start not before where they
    /// were.
    fn repair(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        self.risen = Risen::anywhere();
        let mut jobs: Vec<(Time, Key, JobId)> = self
            .places
            .starts()
            .filter_map(|(at, job)| Some((at, self.places.get(job)?.arrival, job)))
            .collect();
        jobs.sort_unstable();
        for (.., job) in &jobs {
            self.lift(*job);
        }
        for (at, _, job) in jobs {
            let Some(place) = self.places.get(job).cloned() else { continue };
            let request = desk.ledger().request(job);
            let from = at.max(earliest(request, desk.now()));
            let found = if from == Time::MAX {
                // Nobody knows yet when it may begin.
                None
            } else if self.plan.holds(from, place.span, &place.placement) {
                Some((from, place.placement.clone()))
            } else {
                self.plan.earliest_from(from, Time::MAX, place.span, &demand(desk.ledger(), job))
            };
            // As much is not here any more: it waits until it is here again.
            let (at, placement) = found.unwrap_or((Time::MAX, place.placement));
            self.put(desk, job, at, placement)?;
        }
        Ok(())
    }

    /// Reserves for the jobs that came, in the order in which they came.
    fn admit(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        for job in std::mem::take(&mut self.arrived) {
            let request = desk.ledger().request(job);
            let bounds = Bounds::of(request, now, self.horizon.unwrap_or(Span::MAX));
            let until = bounds.until(request.planned());
            let Some((at, placement)) = self.earliest(desk, job, until) else {
                desk.refuse(job, bounds.refusal(&self.plan, desk.ledger().request(job)))?;
                continue;
            };
            self.keep(now, job, desk.ledger(), at, placement.clone());
            desk.plan_on(job, at, placement)?;
            desk.promise(job, at)?;
        }
        Ok(())
    }

    /// Starts every job whose reserved start is now, in the order in which these starts were decided.
    fn start_due(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        let due = self.places.starts().take_while(|(at, _)| *at <= now);
        let mut due: Vec<JobId> = due.map(|(_, job)| job).collect();
        due.sort_unstable_by_key(|job| desk.ledger().entry(*job).decided);
        for job in due {
            let Some(place) = self.lift(job) else { continue };
            self.places.remove(job);
            self.queue.remove(job);
            let reason = self.reason(desk, job, place.arrival);
            start_on(desk, job, place.placement.clone(), reason)?;
            self.plan.follow(now, job, desk.ledger());
            // It has less to do than was planned, if work that it did in a quantum was kept.
            if self.plan.until(job) < Some(place.at + place.span) {
                self.risen.add(&place.placement, place.at + place.span);
            }
        }
        Ok(())
    }

    /// A job that starts as it comes has passed those who came before it and wait on, if there are any.
    fn reason(&self, desk: &Desk<'_>, job: JobId, arrival: Key) -> Reason {
        let now = desk.now();
        if desk.ledger().request(job).submit < now {
            return if self.horizon.is_some() { Reason::Promised } else { Reason::Reserved };
        }
        let later = self.places.starts().rev().take_while(|(at, _)| *at > now);
        let mut passed = later.filter_map(|(_, other)| self.places.get(other));
        if passed.any(|other| other.arrival < arrival) { Reason::Backfilled } else { Reason::AtOnce }
    }

    /// Asks to be called at the next reserved start that can be kept even if no late job ends until then.
    fn wake(&self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let keeps = |&(at, job): &(Time, JobId)| {
            let ledger = desk.ledger();
            let fits = |host, amount: &Resources| {
                let late = self.plan.late_on(host, ledger);
                late.fits_in(&self.plan.free_at(host, at)) || *amount == Resources::NONE
            };
            let shares = self.places.get(job).into_iter().flat_map(|place| place.placement.shares());
            !self.plan.any_late() || shares.into_iter().all(|share| fits(share.host, &share.amount))
        };
        let next = self.places.starts().find(keeps).map(|(at, _)| at);
        next.filter(|at| *at < Time::MAX).map_or(Ok(()), |at| desk.wake_at(at))
    }

    /// Takes a job that ended out of the plan.
    fn leaves(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        // A late one held what it has until the next tick.
        let until = self.plan.until(job).max(Some(now + Span::TICK));
        if let (Some(placement), Some(until)) = (ledger.entry(job).placement(), until) {
            self.risen.add(placement, until);
        }
        self.plan.forget(job);
    }

    fn plan_all(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        let past = self.places.starts().next().is_some_and(|(at, _)| at < now);
        if std::mem::take(&mut self.repair) || self.plan.any_late() || past {
            self.repair(desk)?;
        }
        if std::mem::take(&mut self.compress) {
            self.compress(desk)?;
        }
        self.admit(desk)
    }
}

impl Policy for Kept {
    fn name(&self) -> &str {
        self.name
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        let horizon = self.horizon;
        *self = Kept { horizon, ..Kept::named(self.name, ledger.machine(), self.order.clone()) };
        self.plan = HostPlan::rebuild(now, ledger);
        for job in ledger.waiting() {
            let entry = ledger.entry(job);
            match (entry.planned, &entry.planned_on) {
                (Some(at), Some(placement)) => self.keep(now, job, ledger, at, placement.clone()),
                _ => self.arrived.push(job),
            }
        }
        // Who was lent a quantum comes back to its reservation.
        for job in ledger.running() {
            let entry = ledger.entry(job);
            if let (State::Running { quantum: Some(_), .. }, Some(at), Some(placement)) =
                (&entry.state, entry.planned, &entry.planned_on)
            {
                self.keep(now, job, ledger, at, placement.clone());
            }
        }
        self.arrived.sort_by_cached_key(|job| Key::arrival(ledger.entry(*job)));
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.arrived.push(job),
            Event::Overdue(job) => self.plan.follow(now, job, ledger),
            Event::Ended(ended) => {
                self.compress = true;
                self.leaves(now, ended.job, ledger);
                // Its place, if it ended in a quantum that was lent to it.
                if let Some(place) = self.lift(ended.job) {
                    self.risen.add(&place.placement, place.at + place.span);
                    self.places.remove(ended.job);
                    self.queue.remove(ended.job);
                }
            }
            Event::Changed(job) => {
                self.compress = true;
                self.repair = true;
                self.plan.follow(now, job, ledger);
                self.queue.remove(job);
                let waits = ledger.entry(job).placement().is_none();
                if self.places.set_waiting(job, waits) && waits {
                    self.queue.insert(now, job, ledger);
                }
            }
            Event::Disturbed => {
                self.compress = true;
                self.repair = true;
            }
            Event::Timer => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        // Plans were made for what happens by itself.
        self.plan.advance(now, &mut Risen::default());
        self.queue.sort_again(now, desk.ledger());
        self.plan.hold_late(now, desk.ledger());
        let planned = self.plan_all(desk);
        self.plan.drop_late();
        planned?;
        self.start_due(desk)?;
        self.wake(desk)
    }
}

impl Backfilling for Kept {
    fn trial(&self, host: HostId, promised: bool) -> Trial<'_> {
        let mut trial = self.plan.trial(host);
        for place in self.places.all().filter(|_| !promised) {
            trial.give(place.at, place.span, &place.placement);
        }
        trial
    }
}
