//! A reservation for every job, which is kept.

use miserly_core::{
    Context, Entry, Event, Expected, JobId, Ledger, Refusal, Span, StartReason, State, Time, Violation,
};

use super::availability::{Availability, FreedCapacity};
use super::bounds::Bounds;
use super::queue::WaitQueue;
use super::reservations::{Reservation, Reservations};
use super::rules::BackfillRules;
use crate::shared::{Key, Waiting, start_job};

/// Backfilling with a kept reservation for every job.
///
/// At arrival a job gets the earliest place that holds it for its planned time. After terminations
/// the plan is compressed. Each waiting job, in the order of the queue, is removed and inserted
/// again at the earliest place, never later than before. If it cannot start earlier, it keeps its
/// place. Every reservation is a promise.
///
/// No job starts before its `begin`. With a horizon a job is refused that has no place within its
/// bounds. Without one, only a job is refused that could never run. A job that lost its place with
/// capacity keeps a reservation at the end of time until the capacity is back.
///
/// # Fast path
/// Since a job was last found unable to move, only freed capacity can have made a place for it. So
/// compression skips jobs that are wider than the freed capacity, and searches only there.
///
/// # Overdue jobs
/// While a running job is past its expected end, and while a reservation lies in the past, each
/// pass first repairs the plan. All reservations, by their starts (ties by arrival), move to the
/// earliest place not before now and not before their present start. A promise that this moves
/// later is broken, with the cause.
///
/// # The order of starts
/// Jobs that start at one instant start in the order in which that was decided. A reservation that
/// was moved counts from its last move. Under sequential events jobs end in this order too.
#[derive(Debug)]
pub(super) struct Kept<A: Availability> {
    pub(super) rules: BackfillRules,
    pub(super) queue: WaitQueue,
    pub(super) plan: Plan<A>,
    /// Jobs that arrived since the last pass.
    arrived: Vec<JobId>,
    /// Waiting jobs that had no reservation when the plan was rebuilt: their requests changed. They get reservations before
    /// other jobs move into their former places.
    displaced: Vec<JobId>,
    /// Whether a job ended since the last pass.
    compress: bool,
    /// Whether an external change may conflict with reservations.
    repair: bool,
}

/// The plan with the reservations in it.
#[derive(Debug)]
pub(super) struct Plan<A: Availability> {
    pub(super) availability: A,
    /// The reservations of the jobs in the queue, and of those in a quantum of another policy.
    pub(super) reservations: Reservations<A::Place>,
    /// The capacity that was freed since jobs were last found unable to move.
    freed: A::Freed,
    /// Whether a promise may be later than the reserved start.
    guarantee: bool,
    /// The availability beside the jobs on the machine, without reservations, if there is a guarantee. A
    /// new plan begins with it.
    pub(super) bare: Option<A>,
}

impl<A: Availability> Plan<A> {
    fn new(availability: A, guarantee: bool) -> Plan<A> {
        let bare = guarantee.then(|| availability.clone());
        let reservations = Reservations::default();
        Plan { availability, reservations, freed: A::Freed::anywhere(), guarantee, bare }
    }

    /// Calls `change` for the availability without reservations too, if it is kept.
    fn on_bare(&mut self, change: impl FnOnce(&mut A, &mut A::Freed)) {
        if let Some(bare) = &mut self.bare {
            change(bare, &mut A::Freed::default());
        }
    }

    /// Removes a reservation from the plan.
    pub(super) fn lift(&mut self, job: JobId) -> Option<Reservation<A::Place>> {
        let held = self.reservations.get(job)?.clone();
        self.availability.give(held.at, &held.job, &held.place);
        Some(held)
    }

    /// Inserts a removed reservation again in a place that is free.
    pub(super) fn put(
        &mut self,
        context: &mut Context<'_>,
        held: &Reservation<A::Place>,
        at: Time,
        place: &A::Place,
    ) -> Result<(), Violation> {
        let job = held.job.job;
        self.availability.take(at, &held.job, place);
        if held.at == at && held.place == *place {
            return Ok(());
        }
        let missed = at > held.deadline;
        let deadline = if missed || !self.guarantee { at } else { held.deadline };
        self.reservations.set(job, at, place.clone(), deadline);
        A::record_plan(context, job, at, place, !self.guarantee && context.keeps_promises())?;
        // The plan of an earlier policy need not be a promise.
        let is_promised = context.ledger().entry(job).promise.is_some();
        match (missed, self.guarantee) {
            (true, _) if is_promised => context.break_promise(job, at),
            (true, _) | (false, false) => context.promise(job, at),
            (false, true) => Ok(()),
        }
    }

    /// Moves a reservation to an earlier start in this freed capacity, if there is one.
    ///
    /// Returns the former reservation.
    fn advance(
        &mut self,
        context: &mut Context<'_>,
        job: JobId,
        freed: &A::Freed,
    ) -> Result<Option<Reservation<A::Place>>, Violation> {
        let Plan { availability, reservations, .. } = self;
        let Some(held) = reservations.get(job) else { return Ok(None) };
        let from = held.begin.max(context.now());
        let earlier = availability.earlier_start(context.ledger(), from, held, freed);
        let Some((at, place)) = earlier else { return Ok(None) };
        let before = self.lift(job);
        if let Some(before) = &before {
            self.put(context, before, at, &place)?;
        }
        Ok(before)
    }
}

impl<A: Availability> Kept<A> {
    pub(super) fn new(availability: A, rules: BackfillRules) -> Kept<A> {
        Kept {
            queue: WaitQueue::sorted(rules.order.clone()),
            plan: Plan::new(availability, rules.guarantee.is_some()),
            arrived: Vec::new(),
            displaced: Vec::new(),
            compress: false,
            repair: false,
            rules,
        }
    }

    /// Enters a reservation of a job in the ledger.
    fn keep(&mut self, now: Time, ledger: &Ledger, held: Reservation<A::Place>) {
        let job = held.job.job;
        self.plan.availability.take(held.at, &held.job, &held.place);
        let waits = ledger.entry(job).placement().is_none();
        self.plan.reservations.insert(held, waits);
        if waits {
            self.queue.insert(now, job, ledger);
        }
    }

    /// Returns the reservation of a job from the ledger, if it has one.
    fn saved(&self, job: JobId, entry: &Entry) -> Option<Reservation<A::Place>> {
        let guarantee = self.plan.guarantee;
        let promised = !guarantee && !self.rules.plans_by_predictions();
        let (at, place) = A::kept_start(entry, promised)?;
        let promised = entry.promise.filter(|_| guarantee);
        let deadline = promised.map_or(at, |promise| promise.best);
        let begin = entry.request.constraints.begin.unwrap_or(Time::ZERO);
        Some(Reservation { job: Waiting::by_arrival(job, entry), at, place, deadline, begin })
    }

    /// Moves each job that can start earlier, in the order of the queue.
    fn compress(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let Kept { queue, plan, .. } = self;
        let mut freed = std::mem::take(&mut plan.freed);
        if plan.availability.varies() {
            freed = A::Freed::anywhere();
        }
        let mut width = plan.availability.widest(now, &mut freed);
        queue.jobs().visit_narrow(&mut width, |job, width| {
            let Some(left) = plan.advance(context, job.job, &freed)? else { return Ok(()) };
            let at = plan.reservations.get(job.job).map_or(left.at, |held| held.at);
            // The released place is free for the jobs behind it now, and for all at the next pass.
            let (from, until) = (left.at.max(at + job.span), left.end());
            for freed in [&mut freed, &mut plan.freed] {
                plan.availability.note_freed(freed, job, &left.place, from, until);
            }
            *width = plan.availability.widest(now, &mut freed);
            Ok(())
        })
    }

    /// Repairs the plan: all reservations, by their starts, move to the earliest start not before
    /// their present one.
    fn repair(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let Kept { queue, plan, .. } = self;
        plan.freed = A::Freed::anywhere();
        let mut lifted: Vec<_> = queue.iter().filter_map(|job| plan.lift(job.job)).collect();
        lifted.sort_unstable_by_key(|held| (held.at, held.job.key));
        for held in lifted {
            let from = held.at.max(held.begin).max(now);
            // At the end of time it is not known when the job may begin.
            let found = (from < Time::MAX).then(|| {
                let place = Some(&held.place);
                plan.availability.start_from(context.ledger(), &held.job, from, Time::MAX, place)
            });
            // Without such a place the capacity is lost: the job waits until it is back.
            let (at, place) = found.flatten().unwrap_or_else(|| (Time::MAX, held.place.clone()));
            plan.put(context, &held, at, &place)?;
        }
        Ok(())
    }

    /// Reserves for jobs without a reservation, in the order of arrival.
    fn admit(&mut self, context: &mut Context<'_>, jobs: Vec<JobId>) -> Result<(), Violation> {
        jobs.into_iter().try_for_each(|job| self.admit_one(context, job))
    }

    fn admit_one(&mut self, context: &mut Context<'_>, job: JobId) -> Result<(), Violation> {
        let now = context.now();
        let entry = context.ledger().entry(job);
        let promised = entry.promise.map(|promise| promise.best);
        let bounds = Bounds::new(&entry.request, now, self.rules.horizon.unwrap_or(Span::MAX));
        let waiting = Waiting::by_arrival(job, entry);
        let until = bounds.until(waiting.span);
        let Plan { availability, guarantee, .. } = &mut self.plan;
        let found = availability.first_start(context.ledger(), &waiting, bounds.begin, until);
        let Some((at, place)) = found else {
            let never = availability.never_fits(context.ledger(), bounds.begin, &waiting);
            return context.refuse(job, if never { Refusal::TooLarge } else { bounds.refusal });
        };
        let deadline = self
            .rules
            .guarantee
            .map_or(at, |times| now + Span::from_ticks((at - now).ticks().saturating_mul(times.into())));
        let guarantee = *guarantee;
        let held = Reservation { job: waiting, at, place: place.clone(), deadline, begin: bounds.begin };
        self.keep(now, context.ledger(), held);
        A::record_plan(context, job, at, &place, !guarantee && context.keeps_promises())?;
        // The place of its promise is gone: its host was lost, or has another capacity.
        if promised.is_some_and(|promised| promised < deadline) {
            return context.break_promise(job, deadline);
        }
        context.promise(job, deadline)
    }

    /// Starts every job whose reserved start is now, in the order in which these starts were
    /// decided.
    fn start_due(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut due = self.plan.reservations.take_begun();
        due.sort_unstable_by_key(|job| context.ledger().entry(*job).decided);
        for job in due {
            if let Some(held) = self.plan.reservations.remove(job) {
                self.queue.remove(job);
                let reason = self.reason(context, &held.job);
                self.start(context, &held, reason)?;
            }
        }
        Ok(())
    }

    /// Starts a job in its reserved place. The job is no longer in an index.
    pub(super) fn start(
        &mut self,
        context: &mut Context<'_>,
        held: &Reservation<A::Place>,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let placement = A::placement(context.ledger(), held.job.job, held.place.clone());
        start_job(context, held.job.job, placement, reason)?;
        let Plan { availability, freed, .. } = &mut self.plan;
        availability.reservation_started(context.now(), held, context.ledger(), freed);
        self.plan.on_bare(|bare, _| bare.job_started(context.now(), &held.job, context.ledger()));
        Ok(())
    }

    /// Returns the start reason of a job.
    ///
    /// A job that starts at its arrival has overtaken the earlier jobs that still wait, if there
    /// are any.
    fn reason(&self, context: &Context<'_>, job: &Waiting) -> StartReason {
        let now = context.now();
        if context.ledger().request(job.job).submit < now {
            return if self.rules.horizon.is_some() { StartReason::Promised } else { StartReason::Reserved };
        }
        let mut waiting = self.queue.iter().filter_map(|other| self.plan.reservations.get(other.job));
        let passed = waiting.any(|other| other.at > now && other.job.key < job.key);
        if passed { StartReason::Backfilled } else { StartReason::Immediate }
    }

    /// Requests a pass at the next reserved start that can be kept even if no overdue job ends
    /// until then.
    fn wake(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let Plan { availability, reservations, .. } = &mut self.plan;
        let next = if availability.any_overdue() {
            let held = self.queue.iter().filter_map(|job| reservations.get(job.job));
            held.filter(|held| availability.is_beside_overdue(held, context.ledger()))
                .map(|held| held.at)
                .min()
        } else {
            reservations.next_start()
        };
        next.filter(|at| *at < Time::MAX).map_or(Ok(()), |at| context.wake_at(at))
    }

    fn decide(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let missed = self.plan.availability.any_overdue() || self.plan.reservations.any_missed();
        if std::mem::take(&mut self.repair) || missed {
            self.repair(context)?;
        }
        let displaced = std::mem::take(&mut self.displaced);
        self.admit(context, displaced)?;
        if std::mem::take(&mut self.compress) && !self.plan.guarantee {
            self.compress(context)?;
        }
        let arrived = std::mem::take(&mut self.arrived);
        self.admit(context, arrived)?;
        if self.plan.guarantee { self.start_in_order(context) } else { self.start_due(context) }
    }

    pub(super) fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = Kept::new(A::rebuild(now, ledger), self.rules.clone());
        for job in ledger.waiting() {
            match self.saved(job, ledger.entry(job)) {
                Some(held) => self.keep(now, ledger, held),
                None => self.displaced.push(job),
            }
        }
        // A job in a quantum of another policy returns to its reservation.
        for job in ledger.running() {
            let entry = ledger.entry(job);
            let in_quantum = matches!(entry.state, State::Running { quantum: Some(_), .. });
            if let Some(held) = self.saved(job, entry).filter(|_| in_quantum) {
                self.keep(now, ledger, held);
            }
        }
        self.displaced.sort_by_cached_key(|job| Key::arrival(ledger.entry(*job)));
    }

    /// Removes a waiting job and its reservation. Returns whether that is the whole consequence.
    pub(super) fn withdraw(&mut self, job: JobId) -> bool {
        let Plan { availability, reservations, freed, guarantee, .. } = &mut self.plan;
        let known = reservations.get(job).is_some_and(|held| held.at < Time::MAX);
        // With a guarantee, jobs start in an order that depends on all of them.
        if *guarantee || !known || self.queue.remove(job).is_none() {
            return false;
        }
        if let Some(held) = reservations.remove(job) {
            availability.give(held.at, &held.job, &held.place);
            availability.note_freed(freed, &held.job, &held.place, held.at, held.end());
        }
        self.compress = true;
        true
    }

    pub(super) fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        self.plan.on_bare(|bare, freed| match event {
            Event::Overdue(job) => bare.job_overdue(now, job, ledger, freed),
            Event::EndMoved { job, before } => bare.end_moved(now, job, before, ledger),
            Event::Ended(ended) => bare.job_ended(now, ended.job, ledger, freed),
            Event::Changed(job) => bare.job_changed(now, job, ledger, freed),
            Event::Submitted(_) | Event::Rebuilt | Event::Timer => {}
        });
        let Plan { availability, reservations, freed, .. } = &mut self.plan;
        match event {
            Event::Submitted(job) => self.arrived.push(job),
            Event::Overdue(job) => availability.job_overdue(now, job, ledger, freed),
            Event::EndMoved { job, before } => {
                let earlier = |expected: &Expected| matches!(expected, Expected::At(end) if *end < before);
                let state = &ledger.entry(job).state;
                self.compress |= matches!(state, State::Running { expected, .. } if earlier(expected));
                self.repair = true;
                availability.end_moved(now, job, before, ledger);
            }
            Event::Ended(ended) => {
                self.compress = true;
                availability.job_ended(now, ended.job, ledger, freed);
                // It has a reservation if it ended in a quantum of another policy.
                if let Some(held) = reservations.remove(ended.job) {
                    availability.give(held.at, &held.job, &held.place);
                    availability.note_freed(freed, &held.job, &held.place, held.at, held.end());
                    self.queue.remove(ended.job);
                }
            }
            Event::Changed(job) => {
                self.compress = true;
                self.repair = true;
                availability.job_changed(now, job, ledger, freed);
                self.queue.remove(job);
                let waits = ledger.entry(job).placement().is_none();
                let is_reserved = reservations.set_waiting(job, waits);
                if waits && is_reserved {
                    self.queue.insert(now, job, ledger);
                } else if waits {
                    // Its reservation was on a host that is gone.
                    self.displaced.push(job);
                }
            }
            Event::Rebuilt => {
                self.compress = true;
                self.repair = true;
            }
            Event::Timer => {}
        }
    }

    pub(super) fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        let Plan { availability, reservations, .. } = &mut self.plan;
        // The plan was made for the changes that come with time alone.
        availability.advance(now, context.ledger(), &mut A::Freed::default());
        availability.hold_overdue(now, context.ledger());
        reservations.advance(now);
        self.plan.on_bare(|bare, freed| {
            bare.advance(now, context.ledger(), freed);
            bare.hold_overdue(now, context.ledger());
        });
        self.queue.sort_again(now, context.ledger());
        let decided = self.decide(context);
        self.queue.settle();
        self.plan.availability.release_overdue(now);
        self.plan.on_bare(|bare, _| bare.release_overdue(now));
        decided?;
        self.wake(context)
    }
}
