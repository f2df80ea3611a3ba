//! Reservations for the first jobs of the queue, recomputed at every pass.

use miserly_core::{
    Context, Entry, Event, JobId, Ledger, Persistent, Prediction, Refusal, Span, StartReason, State, Time,
    Violation,
};

use super::availability::{Availability, FreedCapacity};
use super::changes::ChangeTracker;
use super::guard::{FirstShadow, HeadGuard};
use super::queue::{QueueWalk, WaitQueue};
use super::reservations::Reservation;
use super::rules::{BackfillRules, ReservationDepth};
use crate::shared::{Admits, Bypassed, Key, Profile, Waiting, head_start_reason, start_job};

/// Backfilling with reservations that are recomputed at every pass.
///
/// Jobs in the order of the queue start if they fit now. Else they get the earliest reservation, up to the
/// reservation depth. A selective depth skips the jobs that are not entitled to one. All other jobs, in the
/// order of the candidates, start if they fit now beside the running jobs and those reservations.
///
/// The first reservation is the head's. It is promised where no job can be inserted before the head. A job that
/// was promised its start stays the head, and keeps its place while another policy lends it a quantum.
///
/// # Fast paths
/// With one reservation at most, only freed capacity lets a job start that could not at the last pass. So a pass
/// after arrivals looks at these alone. The head's reservation is searched for again only where capacity changed.
/// With every job reserved, the pass ends at the last job of the queue that may start. With a selective depth
/// nothing is remembered between passes, because jobs become entitled as time goes by.
///
/// With w waiting jobs in chunks of c: O(w/c) per pass without an order that counts bypasses, and for each job that
/// is looked at a search of the plan. Such an order costs O(w x p) for the p jobs that passed another one.
#[derive(Debug)]
pub(super) struct Recomputed<A: Availability> {
    rules: BackfillRules,
    /// Jobs that have a promised start, or were the head with a reservation if heads are held. The first to
    /// arrive is the head. There are more than one only if one of them left the queue for a time.
    held: Vec<(u64, JobId)>,
    /// Reservations of promised jobs that another policy runs for a quantum now. While there are any, no other job
    /// is promised a start.
    lent: Vec<Reservation<A::Place>>,
    queue: WaitQueue,
    pub(super) plan: A,
    /// The head's planned start that was recorded last.
    recorded: Option<(Key, Time, A::Place)>,
    /// The candidates of a pass that arrived since the last one.
    arrived: Vec<Waiting>,
    /// The keys of jobs that passed another one in this pass, if an order depends on their number.
    passing: Vec<Key>,
    /// The head's reservation as it was made last, if it is promised. The trial of a policy around this one reads
    /// it between passes ([`Backfilling::trial`](super::Backfilling::trial)).
    pub(super) promised: Vec<Reservation<A::Place>>,
    changes: ChangeTracker<A>,
}

/// The result of [`Recomputed::reserve`].
struct Reserved {
    /// The key of the last job of the queue that was looked at.
    looked_at_up_to: Option<Key>,
    /// Whether a job behind it may still start.
    may_backfill: bool,
}

/// The candidates of a pass that were not tried yet.
struct Candidates<'a> {
    /// The candidates that arrived since the last pass, in order. The first ones may have been tried.
    new: &'a [Waiting],
    /// Whether no other candidate can start, because no capacity was freed.
    only_new: bool,
    /// The walk to the candidate that was tried last.
    walk: QueueWalk,
}

impl<A: Availability> Recomputed<A> {
    pub(super) fn new(plan: A, rules: BackfillRules) -> Recomputed<A> {
        Recomputed {
            held: Vec::new(),
            arrived: Vec::new(),
            lent: Vec::new(),
            queue: WaitQueue::searched(
                rules.order.clone(),
                rules.candidate_order.clone(),
                !rules.depth.is_first(),
            ),
            plan,
            recorded: None,
            passing: Vec::new(),
            promised: Vec::new(),
            changes: ChangeTracker::new(),
            rules,
        }
    }

    fn place_now(&self, context: &Context<'_>, job: &Waiting) -> Option<A::Place> {
        let freed = (!self.queue.is_new(job.job)).then_some(&self.changes.freed);
        self.plan.place_now(context, job, freed)
    }

    /// Returns the place where a candidate can start beside the head, which has a guard. Its plan is by its
    /// optimistic length if the guard admits that, else by its estimate.
    fn place_under_guard(
        &self,
        context: &mut Context<'_>,
        job: Waiting,
        guard: HeadGuard,
    ) -> Result<Option<(Waiting, A::Place)>, Violation> {
        let Some(place) = self.place_now(context, &job) else { return Ok(None) };
        let entry = context.ledger().entry(job.job);
        if guard.admits(context.now(), &job, entry) {
            return Ok(Some((job, place)));
        }
        let estimate = entry.request.estimate;
        let prediction = entry.prediction;
        let job = Waiting { span: entry.request.planned(), ..job };
        let Some(place) = self.place_now(context, &job) else { return Ok(None) };
        if let Some(present) = prediction {
            context.predict(job.job, Prediction { planned: estimate, ..present })?;
        }
        Ok(Some((job, place)))
    }

    fn start(
        &mut self,
        context: &mut Context<'_>,
        job: &Waiting,
        place: A::Place,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let queued = self.dequeue(job.job);
        if reason == StartReason::Backfilled && self.rules.counts_bypasses() {
            // A candidate's own key may be of another order.
            self.passing.extend(queued);
        }
        self.changes.note_taken(&place);
        let placement = A::placement(context.ledger(), job.job, place);
        start_job(context, job.job, placement, reason)?;
        self.plan.job_started(context.now(), job, context.ledger());
        Ok(())
    }

    fn dequeue(&mut self, job: JobId) -> Option<Key> {
        self.changes.job_left(job);
        self.held.retain(|(_, held)| *held != job);
        self.queue.remove(job)
    }

    /// Starts the first jobs of the queue or gives them a reservation.
    fn reserve(
        &mut self,
        context: &mut Context<'_>,
        made: &mut Vec<Reservation<A::Place>>,
    ) -> Result<Reserved, Violation> {
        let mut walk = QueueWalk::default();
        let mut candidate = None;
        while self.rules.depth.exceeds(made.len()) {
            let next = match self.held_head().filter(|_| made.is_empty()) {
                Some(job) => self.queue.get(context, job),
                None => self.next_in_turn(context, &mut walk),
            };
            let Some(next) = next else {
                let may_backfill = self.rules.depth.is_selective();
                return Ok(Reserved { looked_at_up_to: walk.last, may_backfill });
            };
            self.changes.set_head(next.job);
            if let Some(place) = self.place_now(context, &next) {
                let reason = self.start_reason(context, next.job, made);
                self.start(context, &next, place, reason)?;
                continue;
            }
            let Some((at, place)) = self.changes.earliest_start(&mut self.plan, context, &next) else {
                self.give_up(context, &next)?;
                continue;
            };
            if made.is_empty() {
                self.record_head(context, &next, at, &place)?;
            }
            let reservation = Reservation::recomputed(next, at, place);
            self.plan.hold(context.now(), &reservation);
            made.push(reservation);
            let behind = self.candidates_behind(walk.last);
            if self.rules.depth.exceeds(made.len()) && !self.may_start(context, behind, &mut candidate) {
                return Ok(Reserved { looked_at_up_to: walk.last, may_backfill: false });
            }
        }
        Ok(Reserved { looked_at_up_to: walk.last, may_backfill: true })
    }

    /// Returns the key behind which jobs have not been looked at yet; `None` for the whole queue.
    fn candidates_behind(&self, last: Option<Key>) -> Option<Key> {
        last.filter(|_| !self.rules.depth.is_selective())
    }

    fn is_queue_head(&mut self, context: &Context<'_>, job: JobId) -> bool {
        self.queue.first(context).is_some_and(|first| first.job == job)
    }

    /// Returns the reason for which a job starts beside the reservations that were made before.
    fn start_reason(
        &mut self,
        context: &Context<'_>,
        job: JobId,
        made: &[Reservation<A::Place>],
    ) -> StartReason {
        let in_queue_order = match self.rules.depth {
            // The first jobs of the queue may have no reservation.
            ReservationDepth::Xfactor(_) => self.is_queue_head(context, job),
            // No job has a reservation.
            ReservationDepth::First(0) => made.is_empty() && self.is_queue_head(context, job),
            ReservationDepth::First(_) | ReservationDepth::All => made.is_empty(),
        };
        if in_queue_order { head_start_reason(context, job) } else { StartReason::Backfilled }
    }

    /// Whether a job behind `last` in the queue may start. Only starts of this pass matter, because the rest is
    /// recomputed. `candidate` is the job that was found before: the room for it only shrinks.
    fn may_start(
        &mut self,
        context: &Context<'_>,
        last: Option<Key>,
        candidate: &mut Option<Waiting>,
    ) -> bool {
        let room = self.plan.room(context.ledger(), None);
        let still = |job: &Waiting| Some(job.key) > last && room.admits(job.procs, job.span);
        if !candidate.as_ref().is_some_and(still) {
            *candidate = self.queue.next(context, &mut QueueWalk::behind(last), &room);
        }
        candidate.is_some()
    }

    /// Refuses a job that the pool can never hold. If the pool has only lost the capacity, the job waits for its
    /// return, and its promise is broken. Meanwhile it is not held, because another head may be promised a start.
    fn give_up(&mut self, context: &mut Context<'_>, job: &Waiting) -> Result<(), Violation> {
        let varies = context.ledger().machine().varies();
        if varies && self.plan.never_fits(context.ledger(), context.now(), job) {
            self.dequeue(job.job);
            return context.refuse(job.job, Refusal::TooLarge);
        }
        let entry = context.ledger().entry(job.job);
        let is_promised = promised_start(entry).is_some();
        let is_held = entry.policy_state.get::<HeldHead>().0;
        self.held.retain(|(_, held)| *held != job.job);
        if is_held {
            context.set_job_state(job.job, &HeldHead(false))?;
        }
        if is_promised { context.break_promise(job.job, Time::MAX) } else { Ok(()) }
    }

    /// Returns the next job of the walk that is entitled to a reservation, except the held one.
    fn next_in_turn(&mut self, context: &Context<'_>, walk: &mut QueueWalk) -> Option<Waiting> {
        loop {
            let next = self.queue.successor(context, walk)?;
            walk.last = Some(next.key);
            let wait = context.now() - context.ledger().request(next.job).submit;
            if self.rules.depth.entitles(wait, next.span) && self.held_head() != Some(next.job) {
                return Some(next);
            }
        }
    }

    /// Starts the candidates that fit beside the reservations.
    fn backfill(
        &mut self,
        context: &mut Context<'_>,
        behind: Option<Key>,
        made: &[Reservation<A::Place>],
    ) -> Result<(), Violation> {
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.clear();
        if !self.changes.freed.is_anywhere() {
            self.queue.new_candidates(context, &mut arrived);
        }
        let mut candidates = Candidates {
            new: &arrived,
            only_new: self.changes.freed.is_nowhere(),
            walk: QueueWalk::behind(behind.filter(|_| !self.queue.has_candidates())),
        };
        let head = made.last().filter(|_| self.rules.guards_head());
        let guard = head.map(|head| HeadGuard::new(head, context.ledger()));
        while let Some(next) = self.next_candidate(context, &mut candidates) {
            if made.iter().any(|made| made.job.job == next.job) {
                continue;
            }
            let found = match guard {
                Some(guard) => self.place_under_guard(context, next, guard)?,
                None => self.place_now(context, &next).map(|place| (next, place)),
            };
            if let Some((job, place)) = found {
                let reason = self.start_reason(context, job.job, made);
                self.start(context, &job, place, reason)?;
            }
        }
        self.arrived = arrived;
        Ok(())
    }

    /// Returns the next candidate: new arrivals and old candidates, merged by key.
    fn next_candidate(&mut self, context: &Context<'_>, candidates: &mut Candidates<'_>) -> Option<Waiting> {
        let Candidates { new, only_new, walk } = candidates;
        while let [first, rest @ ..] = *new
            && Some(first.key) <= walk.last
        {
            *new = rest;
        }
        let mut next = new.first().copied();
        if !*only_new {
            let room = self.plan.room(context.ledger(), Some(&self.changes.freed));
            let old = self.queue.next_candidate(context, walk, &room);
            next = match (next, old) {
                (Some(new), Some(old)) if new.key < old.key => Some(new),
                (new, old) => old.or(new),
            };
        }
        walk.last = Some(next?.key);
        next
    }

    /// Records the head's planned start, once for each value. It is a promise, where no job can be inserted before
    /// the head.
    fn record_head(
        &mut self,
        context: &mut Context<'_>,
        head: &Waiting,
        at: Time,
        place: &A::Place,
    ) -> Result<(), Violation> {
        let same = |(key, start, on): &(Key, Time, A::Place)| (*key, *start) == (head.key, at) && on == place;
        if self.recorded.as_ref().is_some_and(same) {
            return Ok(());
        }
        self.recorded = Some((head.key, at, place.clone()));
        let head = head.job;
        let entry = context.ledger().entry(head);
        let rank = (entry.admitted, head);
        let first = entry.policy_state.get::<FirstShadow>();
        if let Some(first) = first.found(context.now(), at).filter(|_| self.rules.guards_head()) {
            context.set_job_state(head, &first)?;
        }
        if self.rules.hold_head && self.held.is_empty() {
            self.hold_head(rank);
            context.set_job_state(head, &HeldHead(true))?;
        }
        let promised = self.rules.promises_head() && context.keeps_promises();
        A::record_plan(context, head, at, place, promised)?;
        if !self.rules.promises_head() {
            return Ok(());
        }
        match context.ledger().entry(head).promise {
            Some(promise) if promise.best < at => context.break_promise(head, at)?,
            _ => context.promise(head, at)?,
        }
        // A policy around this one may have suppressed it.
        if promised_start(context.ledger().entry(head)).is_some() {
            self.hold_head(rank);
        }
        Ok(())
    }

    /// Returns the head's reservation, if it is the same as at the last pass.
    fn unchanged_head(&mut self, context: &Context<'_>) -> Option<Reservation<A::Place>> {
        let first = match self.held_head() {
            Some(held) => self.queue.get(context, held)?,
            None => self.queue.first(context)?,
        };
        self.changes.unchanged_head(&self.plan, context).filter(|head| head.job == first).cloned()
    }

    /// Reserves and backfills. Afterwards no reservation is in the plan.
    fn decide(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut made = std::mem::take(&mut self.promised);
        made.clear();
        made.extend_from_slice(&self.lent);
        for lent in &made {
            self.plan.hold(context.now(), lent);
        }
        let decided = if let Some(head) = self.unchanged_head(context) {
            self.plan.hold(context.now(), &head);
            made.push(head);
            self.backfill(context, None, &made)
        } else {
            match self.reserve(context, &mut made) {
                Ok(Reserved { looked_at_up_to, may_backfill: true }) => {
                    self.backfill(context, self.candidates_behind(looked_at_up_to), &made)
                }
                reserved => reserved.map(|_| ()),
            }
        };
        self.plan.release(&made);
        self.changes.settle(made.get(self.lent.len()));
        self.queue.settle();
        made.truncate(usize::from(self.rules.promises_head()));
        self.promised = made;
        decided
    }

    /// Holds the jobs that are past their bounds at the head.
    fn hold_late(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let Some(times) = self.rules.late_after else { return Ok(()) };
        Self::set_bounds(context, times)?;
        for Waiting { job, .. } in by_arrival(context) {
            let entry = context.ledger().entry(job);
            let (Bound(bound), HeldHead(is_held)) = (entry.policy_state.get(), entry.policy_state.get());
            if bound.is_some_and(|bound| bound <= context.now()) && !is_held {
                self.hold_head((entry.admitted, job));
                context.set_job_state(job, &HeldHead(true))?;
            }
        }
        Ok(())
    }

    /// Requests a wake-up at the next bound of a job that still waits.
    fn wake_at_bound(&self, context: &mut Context<'_>) -> Result<(), Violation> {
        if self.rules.late_after.is_none() {
            return Ok(());
        }
        let bound = |job: &Waiting| context.ledger().entry(job.job).policy_state.get::<Bound>().0;
        let bounds = by_arrival(context).iter().filter_map(bound).filter(|at| *at > context.now()).min();
        bounds.map_or(Ok(()), |at| context.wake_at(at))
    }

    /// Gives each new job its bound: so many `times` the wait that conservative backfilling would promise, if it had
    /// scheduled all jobs so far. Its schedule counts processors, and jobs run in it as long as their estimates.
    fn set_bounds(context: &mut Context<'_>, times: u32) -> Result<(), Violation> {
        let (now, ledger) = (context.now(), context.ledger());
        let mut new = by_arrival(context);
        new.retain(|job| ledger.entry(job.job).policy_state.get::<Bound>().0.is_none());
        if new.is_empty() {
            return Ok(());
        }
        let procs = u32::try_from(ledger.machine().capacity().cpus_count()).unwrap_or(u32::MAX);
        let mut beside = ledger.policy_state::<Beside>();
        let mut profile = beside.profile(now, procs);
        for job in new {
            let at = profile.earliest(now, job.span, job.procs.min(procs));
            beside.place(&mut profile, at, at + job.span, job.procs.min(procs));
            let wait = Span::from_ticks((at - now).ticks().saturating_mul(times.into()));
            context.set_job_state(job.job, &Bound(Some(now + wait)))?;
        }
        context.set_policy_state(&beside);
        Ok(())
    }

    /// Counts the jobs that passed each waiting job.
    fn count_bypasses(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if self.passing.is_empty() {
            return Ok(());
        }
        let passing = std::mem::take(&mut self.passing);
        for waiting in self.queue.iter() {
            let passed = passing.iter().filter(|key| **key > waiting.key).count();
            let Bypassed(before) = context.ledger().entry(waiting.job).policy_state.get();
            let bypassed = before.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
            context.set_job_state(waiting.job, &Bypassed(bypassed))?;
        }
        Ok(())
    }

    /// Holds a job at the head, by its rank of admission.
    fn hold_head(&mut self, rank: (u64, JobId)) {
        if let Err(at) = self.held.binary_search(&rank) {
            self.held.insert(at, rank);
        }
    }

    /// Returns the job that is held at the head.
    fn held_head(&self) -> Option<JobId> {
        self.held.first().map(|(_, job)| *job)
    }

    fn enqueue(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        self.queue.insert(now, job, ledger);
        let entry = ledger.entry(job);
        let may_be_held = self.rules.hold_head || self.rules.late_after.is_some();
        if promised_start(entry).is_some() || (may_be_held && entry.policy_state.get::<HeldHead>().0) {
            self.hold_head((entry.admitted, job));
        }
    }

    /// Keeps the reservation of a promised job that is on the machine for a quantum.
    fn keep_reservation(&mut self, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        let in_quantum = matches!(entry.state, State::Running { quantum: Some(_), .. });
        if !in_quantum || promised_start(entry).is_none() {
            return;
        }
        if let Some((at, place)) = A::kept_start(entry, true) {
            let job = Waiting::by_arrival(job, entry);
            self.lent.push(Reservation::recomputed(job, at, place));
        }
    }

    fn job_left(&mut self, job: JobId) {
        self.dequeue(job);
        let lent = self.lent.len();
        self.lent.retain(|lent| lent.job.job != job);
        if self.lent.len() < lent {
            self.changes = ChangeTracker::new();
        }
    }

    pub(super) fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = Recomputed::new(A::rebuild(now, ledger), self.rules.clone());
        for job in ledger.waiting() {
            self.enqueue(now, job, ledger);
        }
        for job in ledger.running() {
            self.keep_reservation(job, ledger);
        }
    }

    pub(super) fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        let freed = &mut self.changes.freed;
        match event {
            Event::Submitted(job) => self.enqueue(now, job, ledger),
            Event::Ended(ended) => {
                self.plan.job_ended(now, ended.job, ledger, freed);
                self.job_left(ended.job);
            }
            Event::Overdue(job) => self.plan.job_overdue(now, job, ledger, freed),
            Event::EndMoved { job, before } => {
                self.plan.end_moved(now, job, before, ledger);
                // A later end may move the shadow time, beyond the ends of candidates.
                self.changes = ChangeTracker::new();
            }
            Event::Changed(job) => {
                self.plan.job_changed(now, job, ledger, freed);
                self.job_left(job);
                match ledger.entry(job).placement() {
                    None => self.enqueue(now, job, ledger),
                    Some(_) => self.keep_reservation(job, ledger),
                }
            }
            Event::Timer | Event::Rebuilt => {}
        }
    }

    pub(super) fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        // A guard may admit a candidate because the shadow time moved.
        let by_freed_capacity = self.rules.depth.is_one_at_most() && !self.rules.guards_head();
        let may_be_late = self.rules.late_after.is_some();
        if !by_freed_capacity || may_be_late || !self.lent.is_empty() || self.plan.varies() {
            self.changes = ChangeTracker::new();
        }
        self.plan.advance(now, context.ledger(), &mut self.changes.freed);
        self.queue.sort_again(now, context.ledger());
        self.plan.hold_overdue(now, context.ledger());
        let decided = self.hold_late(context).and_then(|()| self.decide(context));
        self.plan.release_overdue(now);
        decided?;
        self.count_bypasses(context)?;
        self.wake_at_bound(context)?;
        // Where capacity varies, a job may fit at a time that is the end of no job.
        let change = self.plan.next_change(now).filter(|_| !self.queue.is_empty());
        change.map_or(Ok(()), |at| context.wake_at(at))
    }
}

/// Returns the waiting jobs in the order of arrival.
fn by_arrival(context: &Context<'_>) -> Vec<Waiting> {
    let ledger = context.ledger();
    let mut waiting: Vec<Waiting> =
        ledger.waiting().map(|job| Waiting::by_arrival(job, ledger.entry(job))).collect();
    waiting.sort_unstable_by_key(|job| job.key);
    waiting
}

/// Returns the start that a job was promised, unless that promise was broken until further notice.
fn promised_start(entry: &Entry) -> Option<Time> {
    entry.promise.map(|promise| promise.best).filter(|best| *best < Time::MAX)
}

/// The schedule of conservative backfilling beside that of the policy: start, end and processors of each job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Beside(Vec<(Time, Time, u32)>);

impl Beside {
    /// Returns the processors that are free in it from `now` on. Jobs that have ended in it are removed.
    fn profile(&mut self, now: Time, procs: u32) -> Profile {
        self.0.retain(|(_, end, _)| *end > now);
        let mut profile = Profile::new(procs);
        profile.advance(now);
        for (start, end, procs) in &self.0 {
            profile.take((*start).max(now), *end, *procs);
        }
        profile
    }

    fn place(&mut self, profile: &mut Profile, start: Time, end: Time, procs: u32) {
        profile.take(start, end, procs);
        self.0.push((start, end, procs));
    }
}

impl Persistent for Beside {
    const NAME: &'static str = "backfill/conservative-beside";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        let ticks = |time: Time| time.ticks().cast_unsigned();
        words.extend(
            self.0.iter().flat_map(|(start, end, procs)| [ticks(*start), ticks(*end), (*procs).into()]),
        );
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Beside> {
        let time = |word: u64| Time::from_ticks(word.cast_signed());
        let job = |words: &[u64]| match *words {
            [start, end, procs] => Some((time(start), time(end), u32::try_from(procs).ok()?)),
            _ => None,
        };
        words.chunks(3).map(job).collect::<Option<_>>().map(Beside)
    }
}

/// The time after which a waiting job goes to the head (Zotkin et al. §5 and §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bound(Option<Time>);

impl Persistent for Bound {
    const NAME: &'static str = "backfill/bound";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(|time| time.ticks().cast_unsigned()));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Bound> {
        match *words {
            [] => Some(Bound(None)),
            [ticks] => Some(Bound(Some(Time::from_ticks(ticks.cast_signed())))),
            _ => None,
        }
    }
}

/// Whether a waiting job has a reservation and stays the head of the queue (Chiang and Vernon §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeldHead(bool);

impl Persistent for HeldHead {
    const NAME: &'static str = "backfill/held-head";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.0.into());
    }

    fn decode(_version: u32, words: &[u64]) -> Option<HeldHead> {
        Some(HeldHead(words == [1]))
    }
}
