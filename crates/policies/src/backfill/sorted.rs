//! Sorting with a guarantee: whoever is first in the order starts, if all the others can still be in time.

use miserly_core::{Desk, Event, JobId, Ledger, Policy, Reason, Span, Time, Violation};

use super::running::Running;
use super::{free_now, in_turn, procs, sort_again, start, waiting};
use crate::shared::{Admits, Key, Order, Profile, QueueIndex, Staircase, Waiting};

/// Backfilling in sorted order under a shadow guarantee (Zotkin et al. §5, Table 8).
///
/// When a job is submitted, its guarantee is the earliest hole beside the running jobs and the kept plan of the
/// waiting ones, as conservative backfilling would give it. The interval until then, times `guarantee`, makes its
/// deadline, which it is promised; the hole is its place in the kept plan.
///
/// In a pass the first job of the order that fits starts if all others still have places that meet their
/// deadlines: those of a new plan, made in order of deadline (ties by arrival), which is kept from then on; or
/// else their kept ones. That is repeated until nobody can start. So a job whose place in the kept plan begins
/// now does start now, or has been given a later one in time.
///
/// With exact estimates and `guarantee` 1 nobody can move, and the schedule is that of conservative backfilling.
///
/// While a running job is overdue, and as long as a place lies in the past, each pass first repairs the plan as
/// [`Conservative`](super::Conservative) does. A deadline that is missed so is a promise broken, with the cause.
///
/// The ledger has the plan as well as the deadlines. With w waiting jobs, of which f fit into what is free,
/// and n breakpoints: O(f w n) at worst per start, and a new plan is given up at the first deadline that it misses.
#[derive(Debug)]
pub struct Sorted {
    order: Order,
    guarantee: i64,
    queue: QueueIndex,
    /// The places of the waiting jobs, by deadline.
    places: Vec<Place>,
    /// Jobs that came since the last pass.
    arrived: Vec<JobId>,
    running: Running,
    /// Something was changed from outside: places may be in its way.
    repair: bool,
}

/// A waiting job's place in the kept plan.
#[derive(Clone, Copy, Debug)]
struct Place {
    deadline: Time,
    arrival: Key,
    job: JobId,
    procs: u32,
    span: Span,
    at: Time,
}

impl Sorted {
    /// Jobs start in `order`, each within `guarantee` times the interval that conservative backfilling would promise.
    pub fn new(order: Order, guarantee: u32) -> Sorted {
        Sorted {
            order,
            guarantee: guarantee.into(),
            queue: QueueIndex::new(),
            places: Vec::new(),
            arrived: Vec::new(),
            running: Running::none(0),
            repair: false,
        }
    }

    /// The running jobs and the kept plan.
    fn plan(&self) -> Profile {
        let mut plan = self.running.profile.clone();
        self.places.iter().for_each(|place| place.take(&mut plan, place.at));
        plan
    }

    fn keep(&mut self, now: Time, job: JobId, ledger: &Ledger, deadline: Time, at: Time) {
        let entry = ledger.entry(job);
        let (arrival, span) = (Key::arrival(entry), entry.request.planned());
        self.places.push(Place { deadline, arrival, job, procs: procs(entry), span, at });
        self.queue.insert(waiting(&self.order, now, job, entry));
    }

    fn sort_by_deadline(&mut self) {
        self.places.sort_unstable_by_key(|place| (place.deadline, place.arrival));
    }

    /// Makes the plan possible again after a job did not end when it should have.
    fn repair(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let mut plan = self.running.profile.clone();
        self.places.sort_unstable_by_key(|place| (place.at, place.arrival));
        for place in &mut self.places {
            let at = plan.earliest(desk.now().max(place.at), place.span, place.procs);
            place.take(&mut plan, at);
            place.move_to(desk, at)?;
            if at > place.deadline {
                place.deadline = at;
                desk.break_promise(place.job, at)?;
            }
        }
        self.sort_by_deadline();
        Ok(())
    }

    /// Gives those who came their places and their deadlines, in the order in which they came.
    fn admit(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        if self.arrived.is_empty() {
            return Ok(());
        }
        let now = desk.now();
        let mut plan = self.plan();
        for job in std::mem::take(&mut self.arrived) {
            let entry = desk.ledger().entry(job);
            let (procs, span) = (procs(entry), entry.request.planned());
            let at = plan.earliest(now, span, procs);
            plan.take(at, at + span, procs);
            let interval = (at - now).ticks().saturating_mul(self.guarantee);
            let deadline = now + Span::from_ticks(interval);
            self.keep(now, job, desk.ledger(), deadline, at);
            desk.promise(job, deadline)?;
            desk.plan(job, at)?;
        }
        self.sort_by_deadline();
        Ok(())
    }

    /// Starts jobs, always the first one that may, until there is none.
    fn start_all(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        while let Some((next, starts)) = self.next(desk) {
            let reason = match self.queue.first() {
                Some(first) if first.key != next.key => Reason::Backfilled,
                _ => in_turn(desk, next.job),
            };
            self.queue.remove(&next.key);
            self.places.retain(|place| place.job != next.job);
            for (place, at) in self.places.iter_mut().zip(starts) {
                place.move_to(desk, at)?;
            }
            self.running.profile.take(desk.now(), desk.now() + next.span, next.procs);
            start(desk, next.job, reason)?;
        }
        Ok(())
    }

    /// The first job that may start now, and where the others' places are to be then, by deadline.
    fn next(&self, desk: &Desk<'_>) -> Option<(Waiting, Vec<Time>)> {
        let now = desk.now();
        let free = free_now(desk.ledger());
        let stairs = Staircase::of_shadow(free, Span::MAX, free);
        let mut next = self.queue.next_admitted(None, &stairs)?;
        let mut kept = self.plan();
        loop {
            if let Some(starts) = self.replanned(now, &next).or_else(|| self.unmoved(now, &next, &mut kept)) {
                return Some((next, starts));
            }
            next = self.queue.next_admitted(Some(&next.key), &stairs)?;
        }
    }

    /// All others' places in a new plan with this job started, if each meets its deadline.
    fn replanned(&self, now: Time, next: &Waiting) -> Option<Vec<Time>> {
        let mut plan = self.running.profile.clone();
        plan.take(now, now + next.span, next.procs);
        let place_again = |place: &Place| {
            let at = plan.earliest(now, place.span, place.procs);
            place.take(&mut plan, at);
            (at <= place.deadline).then_some(at)
        };
        self.others(next).map(place_again).collect()
    }

    /// All others' kept places, if this job can start beside them.
    fn unmoved(&self, now: Time, next: &Waiting, kept: &mut Profile) -> Option<Vec<Time>> {
        let own = self.places.iter().find(|place| place.job == next.job)?;
        own.give(kept);
        let fits = kept.outlook(now).admits(next.procs, next.span);
        own.take(kept, own.at);
        fits.then(|| self.others(next).map(|place| place.at).collect())
    }

    fn others(&self, next: &Waiting) -> impl Iterator<Item = &Place> {
        let job = next.job;
        self.places.iter().filter(move |place| place.job != job)
    }

    fn decide(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        let disturbed = std::mem::take(&mut self.repair);
        if disturbed || self.running.any_overdue() || self.places.iter().any(|place| place.at < now) {
            self.repair(desk)?;
        }
        self.admit(desk)?;
        self.start_all(desk)
    }

    /// Asks to be called at the next place that can be kept even if no overdue job ends until then.
    fn wake(&self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let starts = self.places.iter().map(|place| place.at);
        let next = match self.running.overdue_procs() {
            0 => starts.min(),
            overdue => {
                let plan = self.plan();
                starts.filter(|at| plan.free_at(*at) >= overdue).min()
            }
        };
        next.filter(|at| *at < Time::MAX).map_or(Ok(()), |at| desk.wake_at(at))
    }
}

impl Place {
    fn take(&self, plan: &mut Profile, at: Time) {
        plan.take(at, at + self.span, self.procs);
    }

    fn give(&self, plan: &mut Profile) {
        plan.give(self.at, self.at + self.span, self.procs);
    }

    fn move_to(&mut self, desk: &mut Desk<'_>, at: Time) -> Result<(), Violation> {
        if self.at == at {
            return Ok(());
        }
        self.at = at;
        desk.plan(self.job, at)
    }
}

impl Policy for Sorted {
    fn name(&self) -> &'static str {
        "sorted"
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        self.places.clear();
        self.arrived.clear();
        self.running = Running::rebuild(now, ledger);
        for job in ledger.waiting() {
            let entry = ledger.entry(job);
            match entry.promise {
                Some(promise) => {
                    let at = entry.planned.unwrap_or(promise.best);
                    self.keep(now, job, ledger, promise.best, at);
                }
                None => self.arrived.push(job),
            }
        }
        self.sort_by_deadline();
        self.arrived.sort_by_cached_key(|job| Key::arrival(ledger.entry(*job)));
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.arrived.push(job),
            Event::Overdue(job) => self.running.overdue(job, ledger),
            Event::Ended(ended) => {
                self.running.ended(now, ended.job, ledger);
            }
            Event::Disturbed => self.repair = true,
            // Nothing is around it on a plain machine.
            Event::Timer | Event::Changed(_) => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.running.profile.advance(now);
        sort_again(&mut self.queue, &self.order, desk);
        self.running.hold_overdue(now);
        let decided = self.decide(desk);
        self.running.drop_overdue(now);
        decided?;
        self.wake(desk)
    }
}
