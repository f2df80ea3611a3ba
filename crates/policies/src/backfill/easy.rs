//! EASY: a reservation for the head of the queue, made anew at every pass; the rest may pass it.

use miserly_core::{Desk, Event, JobId, Ledger, Policy, Reason, Time, Violation};

use super::running::Running;
use super::{free_now, in_turn, sort_again, start, waiting};
use crate::shared::{Admits, Key, Order, QueueIndex, Staircase, Waiting};

/// EASY backfilling (Zotkin et al. §2, after Lifka 1995).
///
/// Starts head jobs while they fit. The running jobs, by expected end, then give the *shadow time*, the
/// earliest time at which the head fits, and the *extra nodes*, free then beyond the head's need. Candidates
/// behind the head, in their order, start if they fit now and either end by the shadow time or use only
/// extra nodes, which they consume.
///
/// Promises the head its shadow time, where nobody can come in before it: with the queue in arrival order, or if
/// a head is held: one that has a shadow time stays the head until it starts, whoever sorts before it (as
/// in Chiang's SJF-backfill). The held one is known by its promise.
///
/// A pass after nothing but arrivals looks at these alone: whoever could not start beside the head's
/// reservation cannot now. With r running and w waiting jobs in chunks of c: O(c + r/c + w/c) per event and
/// per start.
#[derive(Debug)]
pub struct Easy {
    order: Order,
    backfill: Order,
    hold: bool,
    /// The head that has a shadow time, if heads are held.
    held: Option<JobId>,
    /// All waiting jobs, in the order of the queue.
    queue: QueueIndex,
    /// All waiting jobs, in the order of the candidates, where that is another one.
    candidates: Option<QueueIndex>,
    running: Running,
    /// Jobs that came since the last pass.
    arrived: Vec<JobId>,
    /// The head's reservation, as long as no job has ended since it was made.
    reserved: Option<Reservation>,
    /// The head and its shadow time as they were told last.
    told: Option<(Key, Time)>,
}

/// The head's place, and what is left beside it.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    head: Key,
    shadow: Time,
    extra: u32,
    /// What was free when the last candidate had been looked at.
    free: u32,
}

impl Easy {
    /// EASY with the queue in `order` and the candidates behind its head in `backfill`.
    pub fn new(order: Order, backfill: Order) -> Easy {
        let candidates = (backfill != order).then(QueueIndex::new);
        Easy {
            order,
            backfill,
            hold: false,
            held: None,
            queue: QueueIndex::new(),
            candidates,
            running: Running::none(0),
            arrived: Vec::new(),
            reserved: None,
            told: None,
        }
    }

    /// The same, with a head that has a shadow time kept at the head, or not.
    #[must_use]
    pub fn holding(self, hold: bool) -> Easy {
        Easy { hold, ..self }
    }

    fn enqueue(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        self.queue.insert(waiting(&self.order, now, job, entry));
        if let Some(candidates) = &mut self.candidates {
            candidates.insert(waiting(&self.backfill, now, job, entry));
        }
    }

    fn start(&mut self, desk: &mut Desk<'_>, next: Waiting, reason: Reason) -> Result<(), Violation> {
        let entry = desk.ledger().entry(next.job);
        self.queue.remove(&self.order.key(desk.now(), entry));
        if let Some(candidates) = &mut self.candidates {
            candidates.remove(&self.backfill.key(desk.now(), entry));
        }
        self.running.profile.take(desk.now(), desk.now() + next.span, next.procs);
        start(desk, next.job, reason)
    }

    fn head(&self, desk: &Desk<'_>) -> Option<Waiting> {
        match self.held {
            Some(job) => Some(waiting(&self.order, desk.now(), job, desk.ledger().entry(job))),
            None => self.queue.first().copied(),
        }
    }

    fn start_heads(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        while let Some(head) = self.head(desk).filter(|head| head.procs <= free_now(desk.ledger())) {
            self.reserved = None;
            self.held = None;
            let reason = in_turn(desk, head.job);
            self.start(desk, head, reason)?;
        }
        Ok(())
    }

    /// Lets jobs pass the head of the queue, if there is one, which does not fit.
    fn fill(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let Some(head) = self.head(desk) else { return Ok(()) };
        if let Some(place) = self.kept(desk, &head) {
            return self.backfill_arrived(desk, place);
        }
        self.running.hold_overdue(desk.now());
        let result = self.backfill(desk, head);
        self.running.drop_overdue(desk.now());
        result
    }

    /// Reserves the head's place, and lets pass it whoever does not disturb that.
    fn backfill(&mut self, desk: &mut Desk<'_>, head: Waiting) -> Result<(), Violation> {
        let shadow = self.running.profile.earliest(desk.now(), head.span, head.procs);
        self.tell(desk, &head, shadow)?;
        let extra = self.running.profile.free_at(shadow).saturating_sub(head.procs);
        let mut place = Reservation { head: head.key, shadow, extra, free: free_now(desk.ledger()) };
        let mut last = None;
        loop {
            // The head does not fit, so it is never among those that do.
            let candidates = self.candidates.as_ref().unwrap_or(&self.queue);
            let Some(next) = candidates.next_admitted(last.as_ref(), &place.stairs(desk.now())) else {
                break;
            };
            self.start_beside(desk, &mut place, next)?;
            last = Some(next.key);
        }
        self.reserved = Some(place);
        Ok(())
    }

    /// Lets those of the arrived jobs pass the head that do not disturb its place.
    fn backfill_arrived(&mut self, desk: &mut Desk<'_>, mut place: Reservation) -> Result<(), Violation> {
        let (now, ledger) = (desk.now(), desk.ledger());
        let mut arrived: Vec<Waiting> =
            self.arrived.iter().map(|&job| waiting(&self.backfill, now, job, ledger.entry(job))).collect();
        arrived.sort_unstable_by_key(|job| job.key);
        for next in arrived {
            if place.stairs(desk.now()).admits(next.procs, next.span) {
                self.start_beside(desk, &mut place, next)?;
            }
        }
        self.reserved = Some(place);
        Ok(())
    }

    fn start_beside(
        &mut self,
        desk: &mut Desk<'_>,
        place: &mut Reservation,
        next: Waiting,
    ) -> Result<(), Violation> {
        // As the staircase sees it: a sum could saturate where a span does not.
        if next.span > place.shadow - desk.now() {
            place.extra -= next.procs;
        }
        place.free -= next.procs;
        self.start(desk, next, Reason::Backfilled)
    }

    /// The head's reservation, if it still is what a new one would be.
    ///
    /// Expected ends that have come since without an event free processors too (sequential instants), and while
    /// a job is overdue the shadow time moves with now.
    fn kept(&self, desk: &Desk<'_>, head: &Waiting) -> Option<Reservation> {
        let same = |place: &Reservation| place.head == head.key && place.free == free_now(desk.ledger());
        self.reserved.filter(same).filter(|_| !self.running.any_overdue())
    }

    /// Tells the head's start, once for each value: a promise, where nobody can come in before the head.
    fn tell(&mut self, desk: &mut Desk<'_>, head: &Waiting, shadow: Time) -> Result<(), Violation> {
        if self.told == Some((head.key, shadow)) {
            return Ok(());
        }
        self.told = Some((head.key, shadow));
        let head = head.job;
        if self.hold {
            self.held = Some(head);
        } else if !self.order.is_arrival() {
            return desk.plan(head, shadow);
        }
        match desk.ledger().entry(head).promise {
            // Only an overdue job can be the cause; the ledger checks that there was one.
            Some(promise) if promise.best < shadow => desk.break_promise(head, shadow),
            _ => desk.promise(head, shadow),
        }
    }
}

impl Policy for Easy {
    fn name(&self) -> &'static str {
        "easy"
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        self.candidates = (self.backfill != self.order).then(QueueIndex::new);
        self.running = Running::rebuild(now, ledger);
        self.arrived.clear();
        self.reserved = None;
        self.told = None;
        let promised = |job: &JobId| ledger.entry(*job).promise;
        self.held = ledger
            .waiting()
            .filter(|job| self.hold && promised(job).is_some())
            .min_by_key(|job| promised(job).map(|promise| promise.best));
        for job in ledger.waiting() {
            self.enqueue(now, job, ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.enqueue(now, job, ledger);
                self.arrived.push(job);
            }
            Event::Overdue(job) => {
                self.running.overdue(job, ledger);
                self.reserved = None;
            }
            Event::Ended(ended) => {
                self.running.ended(now, ended.job, ledger);
                self.reserved = None;
            }
            // Nothing is around it on a plain machine; and it plans anew at each pass.
            Event::Timer | Event::Changed(_) | Event::Disturbed => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.running.profile.advance(now);
        sort_again(&mut self.queue, &self.order, desk);
        if let Some(candidates) = &mut self.candidates {
            sort_again(candidates, &self.backfill, desk);
        }
        self.start_heads(desk)?;
        let result = self.fill(desk);
        self.arrived.clear();
        result
    }
}

impl Reservation {
    /// What fits beside it from `now` on.
    fn stairs(&self, now: Time) -> Staircase {
        Staircase::of_shadow(self.free, self.shadow - now, self.extra)
    }
}
