//! Reservations for the first jobs of the queue, made anew at every pass.

use std::collections::BTreeSet;

use miserly_core::{
    Desk, Entry, Event, HostId, JobId, Ledger, Machine, Persistent, Placement, Policy, Reason, Refusal,
    State, Time, Violation,
};

use super::super::{in_turn, start_on};
use super::news::News;
use super::queue::{Anyone, Queue};
use super::{Backfilling, Reserved, Room, demand};
use crate::shared::{Bypassed, HostPlan, Key, Order, Trial, Waiting};

/// How many jobs of the queue have a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The first so many: with 1, EASY backfilling.
    First(usize),
    /// Every job.
    All,
}

impl Depth {
    fn reaches(self, made: usize) -> bool {
        match self {
            Depth::First(most) => made < most,
            Depth::All => true,
        }
    }

    fn is_one_at_most(self) -> bool {
        matches!(self, Depth::First(0 | 1))
    }
}

/// Backfilling with reservations that are made anew at every pass (Chiang and Vernon §2.2; Zotkin et al. §2, §8).
///
/// Jobs in the order of the queue start if they fit now; else they get the earliest reservation there is on the hosts,
/// up to `depth` of them. All others, in the order of the candidates, start if they fit now beside the running jobs
/// and those reservations. Of several hosts a job takes the one that it fits best ([`miserly_core::FreeHosts`]).
///
/// The first reservation is the head's. Unless every job has one (and none a guarantee) it is promised where nobody can come
/// in before the head: with the queue in order of arrival, or if the head is held once it has one. A job that was promised
/// its start stays the head, and keeps its place while another policy lends it a quantum.
///
/// # What is not looked at
/// With one reservation at most, who could not start at a pass can start at the next only where a host has more free since, or if it
/// has only just come; and the head's reservation is looked for again only there, as long as the head stays the same.
///
/// With w waiting jobs and m breakpoints: O(log hosts) for each candidate that is narrow enough, O(m) for each
/// new reservation.
#[derive(Debug)]
pub struct Anew {
    name: &'static str,
    depth: Depth,
    hold: bool,
    /// The waiting jobs that have the promise of a start, or have been the head with a reservation, if heads are held; the one
    /// that came first is the head. There are more only if one was taken out of the queue for a time.
    held: BTreeSet<(u64, JobId)>,
    /// The places of promised jobs that were lent a quantum before: they are kept, and nobody else is promised anything.
    lent: Vec<Reserved>,
    queue: Queue,
    plan: HostPlan,
    told: Option<(Key, Time, Placement)>,
    /// Who started in this pass ahead of somebody, if that counts.
    ahead: Vec<Key>,
    /// The head's reservation as it was made last, if it is promised.
    promised: Vec<Reserved>,
    /// What has changed since the last pass.
    news: News,
}

impl Anew {
    /// The policy of that name, with the queue in `order`.
    pub fn new(name: &'static str, machine: &Machine, order: Order, depth: Depth) -> Anew {
        Anew {
            name,
            queue: Queue::of(order.clone(), order),
            depth,
            hold: false,
            held: BTreeSet::new(),
            lent: Vec::new(),
            plan: HostPlan::new(machine),
            told: None,
            ahead: Vec::new(),
            promised: Vec::new(),
            news: News::all(),
        }
    }

    /// The same, with candidates in their own order.
    #[must_use]
    pub fn backfilling(self, backfill: Order) -> Anew {
        Anew { queue: Queue::of(self.queue.order, backfill), ..self }
    }

    /// The same, with a head that has a reservation kept at the head, or not.
    #[must_use]
    pub fn holding(self, hold: bool) -> Anew {
        Anew { hold, ..self }
    }

    fn fit_now(&self, desk: &Desk<'_>, next: &Waiting) -> Option<Placement> {
        let demand = demand(desk.ledger(), next.job);
        self.news.fit_now(&self.plan, desk.ledger(), desk.now(), next, &demand)
    }

    fn start(
        &mut self,
        desk: &mut Desk<'_>,
        next: &Waiting,
        placement: Placement,
        reason: Reason,
    ) -> Result<(), Violation> {
        if reason == Reason::Backfilled && self.queue.counts_bypasses() {
            // A candidate's own key may be of another order.
            self.ahead.extend(self.queue.key(next.job));
        }
        self.dequeue(next.job);
        self.news.takes(&placement);
        start_on(desk, next.job, placement, reason)?;
        self.plan.follow(desk.now(), next.job, desk.ledger());
        Ok(())
    }

    fn dequeue(&mut self, job: JobId) {
        self.queue.remove(job);
        self.news.leaves(job);
        self.held.retain(|(_, held)| *held != job);
    }

    /// The first jobs of the queue, in its order: started, or given a reservation. Tells behind which job it stopped.
    fn reserve(&mut self, desk: &mut Desk<'_>, made: &mut Vec<Reserved>) -> Result<Option<Key>, Violation> {
        let mut last = None;
        let mut held = None;
        while self.depth.reaches(made.len()) {
            // Where one that is held starts, it is the turn of the next one.
            let next = match self.head().filter(|head| made.is_empty() && held != Some(*head)) {
                Some(job) => {
                    held = Some(job);
                    self.queue.get(job, desk.ledger())
                }
                None => self.next_in_turn(&mut last),
            };
            let Some(next) = next else { break };
            self.news.first(next.job);
            if let Some(placement) = self.fit_now(desk, &next) {
                let reason = if made.is_empty() { in_turn(desk, next.job) } else { Reason::Backfilled };
                self.start(desk, &next, placement, reason)?;
                continue;
            }
            let demand = demand(desk.ledger(), next.job);
            let place = self.news.reserve(&self.plan, desk.ledger(), desk.now(), &next, &demand);
            let Some((at, placement)) = place else {
                self.give_up(desk, &next)?;
                continue;
            };
            if made.is_empty() {
                self.tell(desk, &next, at, &placement)?;
            }
            self.plan.take(at, next.span, &placement);
            made.push(Reserved { job: next.job, at, span: next.span, placement });
            // Only who starts now matters; the rest is planned again.
            if self.queue.next(last.as_ref(), &Room::of(desk.ledger())).is_none() {
                break;
            }
        }
        Ok(last)
    }

    /// Sends a job away that the pool can never hold for so long. Where the pool has only lost what the job asks for, the job
    /// waits until it is there again, and its promise is broken. It is not held meanwhile: another head may be promised a start by
    /// the time it comes back, which it must not take.
    fn give_up(&mut self, desk: &mut Desk<'_>, next: &Waiting) -> Result<(), Violation> {
        let demand = demand(desk.ledger(), next.job);
        if self.plan.machine().varies() && self.plan.never_fits(desk.now(), next.span, &demand) {
            self.dequeue(next.job);
            return desk.refuse(next.job, Refusal::TooLarge);
        }
        let entry = desk.ledger().entry(next.job);
        let is_promised = promised_start(entry).is_some();
        let is_held = entry.policy_state.get::<HeldHead>().0;
        self.held.remove(&(entry.admitted, next.job));
        if is_held {
            desk.set_job_state(next.job, &HeldHead(false))?;
        }
        if is_promised { desk.break_promise(next.job, Time::MAX) } else { Ok(()) }
    }

    /// Where what there is varies, somebody may fit whom no end of a job tells of.
    fn wake(&self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let change = self.plan.next_change(desk.now()).filter(|_| self.queue.first().is_some());
        change.map_or(Ok(()), |at| desk.wake_at(at))
    }

    /// The job behind `last` in the queue, but for the held one, whose turn came before.
    fn next_in_turn(&self, last: &mut Option<Key>) -> Option<Waiting> {
        loop {
            let next = self.queue.next(last.as_ref(), &Anyone)?;
            *last = Some(next.key);
            if self.head() != Some(next.job) {
                return Some(next);
            }
        }
    }

    /// Lets those start who fit beside the reservations.
    fn fill(&mut self, desk: &mut Desk<'_>, behind: Option<Key>, made: &[Reserved]) -> Result<(), Violation> {
        let mut last = if self.queue.has_candidates() { None } else { behind };
        let arrived = self.queue.as_candidates(self.news.arrived(), desk.ledger());
        let mut arrived = arrived.into_iter().peekable();
        loop {
            while arrived.next_if(|job| Some(job.key) <= last).is_some() {}
            let old = self.queue.next_candidate(last.as_ref(), &self.news.room(desk.ledger()));
            let next = old.into_iter().chain(arrived.peek().copied()).min_by_key(|next| next.key);
            let Some(next) = next else { return Ok(()) };
            last = Some(next.key);
            if made.iter().any(|made| made.job == next.job) {
                continue;
            }
            if let Some(placement) = self.fit_now(desk, &next) {
                let first = made.is_empty() && self.queue.first() == Some(next.job);
                let reason = if first { in_turn(desk, next.job) } else { Reason::Backfilled };
                self.start(desk, &next, placement, reason)?;
            }
        }
    }

    /// Tells the head's start, once for each value: a promise, where nobody can come in before the head.
    fn tell(
        &mut self,
        desk: &mut Desk<'_>,
        head: &Waiting,
        at: Time,
        placement: &Placement,
    ) -> Result<(), Violation> {
        let told = Some((head.key, at, placement.clone()));
        if self.told == told {
            return Ok(());
        }
        self.told = told;
        let head = head.job;
        let entry = desk.ledger().entry(head);
        let place = (entry.admitted, head);
        if self.hold && self.held.is_empty() {
            self.held.insert(place);
            desk.set_job_state(head, &HeldHead(true))?;
        }
        desk.plan_on(head, at, placement.clone())?;
        if !self.promises() {
            return Ok(());
        }
        match desk.ledger().entry(head).promise {
            Some(promise) if promise.best < at => desk.break_promise(head, at)?,
            _ => desk.promise(head, at)?,
        }
        // A policy around this one may have silenced it.
        if promised_start(desk.ledger().entry(head)).is_some() {
            self.held.insert(place);
        }
        Ok(())
    }
}

impl Anew {
    /// Whether the head is promised its start.
    fn promises(&self) -> bool {
        self.depth != Depth::All && (self.hold || self.queue.order.is_arrival())
    }

    fn place(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let mut made = self.lent.clone();
        for lent in &made {
            self.plan.take(lent.at, lent.span, &lent.placement);
        }
        let placed = self.reserve(desk, &mut made).and_then(|behind| self.fill(desk, behind, &made));
        for made in &made {
            self.plan.give(made.at, made.span, &made.placement);
        }
        self.news.is_old(made.get(self.lent.len()));
        made.truncate(usize::from(self.promises()));
        self.promised = made;
        placed
    }

    /// Counts the jobs that started ahead of each that waits.
    fn count_bypasses(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let ahead = std::mem::take(&mut self.ahead);
        for waiting in self.queue.iter().filter(|_| !ahead.is_empty()) {
            let passed = ahead.iter().filter(|key| **key > waiting.key).count();
            let Bypassed(before) = desk.ledger().entry(waiting.job).policy_state.get();
            let bypassed = before.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
            desk.set_job_state(waiting.job, &Bypassed(bypassed))?;
        }
        Ok(())
    }

    /// The job that is held at the head.
    fn head(&self) -> Option<JobId> {
        self.held.first().map(|(_, job)| *job)
    }

    fn enqueue(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        self.queue.insert(now, job, ledger);
        self.news.enters(job);
        let entry = ledger.entry(job);
        if promised_start(entry).is_some() || (self.hold && entry.policy_state.get::<HeldHead>().0) {
            self.held.insert((entry.admitted, job));
        }
    }

    /// Keeps the place of a job that is on the machine for a quantum only, if it was promised.
    fn keep_place(&mut self, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        if let (State::Running { quantum: Some(_), .. }, Some(_), Some(at), Some(placement)) =
            (&entry.state, promised_start(entry), entry.planned, &entry.planned_on)
        {
            let (span, placement) = (entry.request.planned(), placement.clone());
            self.lent.push(Reserved { job, at, span, placement });
        }
    }

    /// Forgets what was known of a job but for what it holds.
    fn leave(&mut self, job: JobId) {
        self.dequeue(job);
        let lent = self.lent.len();
        self.lent.retain(|lent| lent.job != job);
        if self.lent.len() < lent {
            self.news = News::all();
        }
    }

    /// Notes where there may be more, now that somebody else has changed what a job holds; the plan has it as it was.
    fn note_change(&mut self, job: JobId, ledger: &Ledger) {
        let (before, now) = (self.plan.placement_of(job), ledger.entry(job).placement());
        if before.or(now).is_none() {
            // It was late, and so in no plan, and has gone.
            self.news = News::all();
        }
        self.news.rises(before);
        self.news.rises(now);
    }
}

impl Policy for Anew {
    fn name(&self) -> &str {
        self.name
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        self.plan = HostPlan::rebuild(now, ledger);
        self.told = None;
        self.held.clear();
        self.lent.clear();
        self.news = News::all();
        for job in ledger.waiting() {
            self.enqueue(now, job, ledger);
        }
        for job in ledger.running() {
            self.keep_place(job, ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.enqueue(now, job, ledger),
            Event::Ended(ended) => {
                self.news.rises(ledger.entry(ended.job).placement());
                self.plan.forget(ended.job);
                self.leave(ended.job);
            }
            Event::Overdue(job) => {
                self.news.rises(ledger.entry(job).placement());
                self.plan.follow(now, job, ledger);
            }
            Event::Changed(job) => {
                self.note_change(job, ledger);
                self.plan.follow(now, job, ledger);
                self.leave(job);
                match ledger.entry(job).placement() {
                    None => self.enqueue(now, job, ledger),
                    Some(_) => self.keep_place(job, ledger),
                }
            }
            Event::Timer | Event::Disturbed => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        if !self.depth.is_one_at_most() || !self.lent.is_empty() || self.plan.is_pool() {
            self.news = News::all();
        }
        self.plan.advance(now, self.news.risen());
        self.queue.sort_again(now, desk.ledger());
        self.plan.hold_late(now, desk.ledger());
        let placed = self.place(desk);
        self.plan.drop_late();
        placed?;
        self.count_bypasses(desk)?;
        self.wake(desk)
    }
}

impl Backfilling for Anew {
    fn trial(&self, host: HostId, promised: bool) -> Trial<'_> {
        let mut trial = self.plan.trial(host);
        // They are not in the plan between passes.
        for place in self.promised.iter().filter(|_| promised) {
            trial.take(place.at, place.span, &place.placement);
        }
        trial
    }
}

/// The start that a job was promised, unless that promise was broken until further notice.
fn promised_start(entry: &Entry) -> Option<Time> {
    entry.promise.map(|promise| promise.best).filter(|best| *best < Time::MAX)
}

/// Whether a waiting job has a scheduled start and stays the head of the queue until it starts (Chiang and Vernon §2.3).
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
