//! Immediate service as in the slides: a slice at once for each arriving job, then EASY.

use std::borrow::Cow;
use std::collections::BTreeMap;

use miserly_core::{
    Context, Entry, Event, Expected, JobId, Ledger, PeSet, Policy, Procs, Span, StartReason, State, Time,
    Violation,
};

use super::Moving;
use super::merged::merged;
use super::pe_allocator::{self, PeAllocator};
use super::rank::{current_slowdown, ran};
use super::running::Running;
use super::victim::{Victim, by_rank, enough};
use super::view::{need_of_leavers, room};
use crate::shared::{Key, QueueIndex, Staircase, Waiting};

/// Immediate service: a slice for every arriving job, by suspending others (slide "Immediate
/// Service", after Chiang and Vernon).
///
/// A job that arrives and cannot start suspends running jobs that have had their slices. Those with
/// the smallest (wait + run) / run go first, until the job fits. Victims that turn out to be
/// unnecessary are spared. If that is not enough the job waits. After its slice it continues, and
/// may be suspended in turn.
///
/// All idle jobs wait in one queue in the order of arrival, suspended jobs included. Suspended jobs
/// return to their own processors (unless jobs migrate). The queue uses EASY: the first job has a
/// reservation, and backfilled jobs do not delay it, by the estimates. A job that lacks resources
/// other than processors has no reservation. Suspended jobs may hold these, and they have to resume
/// before. Every job's first slice is protected, even if the job did not suspend others for it.
///
/// The queue is walked once a pass, and once more for each arrival. After the first job that does not
/// fit, a chunk of jobs that are wider than the free processors costs O(1), and a suspended job costs
/// nothing while one and the same running job keeps it from its processors. The reservation is made
/// only if a later job could start: O(r log r) for r running jobs. A start on free choice of
/// processors examines those of suspended jobs until the choice is known
/// ([`PeChoice::Spare`](super::PeChoice::Spare)).
pub struct Slices {
    name: &'static str,
    slice: Span,
    moving: Moving,
    allocator: PeAllocator,
    running: Running,
    /// The idle jobs in the order of arrival.
    queue: QueueIndex,
    /// Those of them that no running job is known to block.
    open: QueueIndex,
    /// The suspended ones of them.
    suspended: BTreeMap<Key, JobId>,
    /// The suspended jobs that cannot return before a running job leaves, by that job.
    blocked: BTreeMap<JobId, Vec<(Key, JobId)>>,
    /// Jobs that arrived since the last pass.
    new: Vec<JobId>,
}

/// The reservation of the first job of the queue.
struct Reservation {
    /// The start of the reservation.
    at: Time,
    /// Processors that it leaves free then, if it has no fixed processors.
    extra: Procs,
    /// The processors of the reservation, if they are fixed.
    on: PeSet,
}

/// The first job of the queue that does not fit.
enum Head {
    /// The job, whose reservation is not known because no later job could start so far.
    Job(JobId),
    /// Its reservation.
    Reserved(Reservation),
}

/// Processors that are held, and the expected end of that.
type Occupied<'l> = (Time, Cow<'l, PeSet>);

impl Slices {
    /// Returns a policy with slices of that length.
    pub fn new(name: &'static str, slice: Span, moving: Moving) -> Slices {
        let allocator = PeAllocator::new(moving);
        let running = Running::none(moving.transfer);
        let (queue, open) = (QueueIndex::new(), QueueIndex::new());
        let (suspended, blocked) = (BTreeMap::new(), BTreeMap::new());
        Slices { name, slice, moving, allocator, running, queue, open, suspended, blocked, new: vec![] }
    }

    /// Starts the queue's jobs as EASY does.
    fn pass_queue(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.unblock_released(context.ledger());
        let mut available = self.allocator.available(context.ledger());
        let mut head: Option<Head> = None;
        let mut last: Option<Key> = None;
        while let Some(Waiting { key, job, .. }) = self.next(last, head.is_some(), &available) {
            last = Some(key);
            if !self.allocator.is_schedulable(context.ledger(), job) {
                continue;
            }
            let Some(pes) = self.room(context, job, &available, head.as_mut()) else {
                if head.is_none() && self.allocator.has_rest(context.ledger(), job) {
                    head = Some(Head::Job(job));
                }
                self.block(context.ledger(), (key, job), &available);
                continue;
            };
            let comes_now = context.ledger().request(job).submit == context.now();
            let reason = match head {
                Some(_) => StartReason::Backfilled,
                None if comes_now => StartReason::Immediate,
                None => StartReason::Reserved,
            };
            available.remove_all(&pes);
            self.allocator.start_or_resume(context, job, pes, reason)?;
            self.now_runs(context.ledger(), job);
        }
        Ok(())
    }

    /// Returns the next job of the queue after this one.
    ///
    /// Behind the head, only jobs count that are no wider than the available processors.
    fn next(&self, last: Option<Key>, behind: bool, available: &PeSet) -> Option<Waiting> {
        let most = if behind { u32::try_from(available.count()).unwrap_or(u32::MAX) } else { u32::MAX };
        let room = Staircase::of_shadow(most, Span::ZERO, most);
        let queue = if behind { &self.open } else { &self.queue };
        queue.next_admitted(last.as_ref(), &room).filter(|_| most > 0)
    }

    /// Leaves out a suspended job that has to return to processors of a running job, until that job
    /// leaves them.
    fn block(&mut self, ledger: &Ledger, (key, job): (Key, JobId), available: &PeSet) {
        let entry = ledger.entry(job);
        let own = pe_allocator::own(entry).filter(|_| self.allocator.must_return(ledger, entry));
        let Some(own) = own.filter(|own| !available.contains_all(own)) else { return };
        let by = self.running.on(ledger, own).next();
        if let Some(by) = by.filter(|_| self.open.remove(&key)) {
            self.blocked.entry(by).or_default().push((key, job));
        }
    }

    /// Takes in again the jobs that a job has blocked, which leaves its processors.
    fn unblock(&mut self, ledger: &Ledger, by: JobId) {
        for (key, job) in self.blocked.remove(&by).unwrap_or_default() {
            // It may have left, and another job may have its handle.
            if self.suspended.get(&key) == Some(&job) {
                self.open.insert(waiting(job, ledger.entry(job)));
            }
        }
    }

    /// Takes in again the jobs that a job has blocked whose end is certain.
    fn unblock_released(&mut self, ledger: &Ledger) {
        let gone = self.blocked.keys().copied();
        let gone: Vec<JobId> = gone.filter(|job| !pe_allocator::keeps(ledger.entry(*job))).collect();
        for job in gone {
            self.unblock(ledger, job);
        }
    }

    fn now_runs(&mut self, ledger: &Ledger, job: JobId) {
        self.remove_idle(ledger.entry(job));
        self.running.insert(ledger, job);
    }

    fn insert_idle(&mut self, job: JobId, entry: &Entry) {
        let waiting = waiting(job, entry);
        self.queue.insert(waiting);
        self.open.insert(waiting);
        if pe_allocator::own(entry).is_some() {
            self.suspended.insert(waiting.key, job);
        }
    }

    fn remove_idle(&mut self, entry: &Entry) {
        let key = Key::arrival(entry);
        self.queue.remove(&key);
        self.open.remove(&key);
        self.suspended.remove(&key);
    }

    /// Returns processors on which a job can run now without delaying the first job of the queue.
    fn room(
        &self,
        context: &Context<'_>,
        job: JobId,
        available: &PeSet,
        head: Option<&mut Head>,
    ) -> Option<PeSet> {
        let (ledger, now) = (context.ledger(), context.now());
        let place = |of: &PeSet| self.place(ledger, job, of);
        let Some(head) = head else { return place(available) };
        let now_on = place(available)?;
        if let Head::Job(first) = *head {
            *head = Head::Reserved(self.reserve(context, first, available));
        }
        let Head::Reserved(first) = head else { return None };
        let entry = ledger.entry(job);
        let procs = entry.request.procs();
        let end = now + self.moving.transfer.swap_in_time(entry) + entry.left(now, procs);
        if end <= first.at {
            return Some(now_on);
        }
        if first.on.is_empty() {
            first.extra = first.extra.checked_sub(procs)?;
            return Some(now_on);
        }
        let mut elsewhere = available.clone();
        elsewhere.remove_all(&first.on);
        place(&elsewhere)
    }

    /// Returns processors among these on which a job can run now.
    fn place(&self, ledger: &Ledger, job: JobId, available: &PeSet) -> Option<PeSet> {
        let procs = ledger.request(job).procs();
        let returning = || self.suspended.values().copied();
        let choose = || self.allocator.choose(ledger, procs, available, &[], returning());
        self.allocator.place(ledger, job, available, choose)
    }

    /// Returns the reservation of the first job of the queue, if no job is suspended for it.
    fn reserve(&self, context: &Context<'_>, job: JobId, available: &PeSet) -> Reservation {
        let (ledger, now) = (context.ledger(), context.now());
        let entry = ledger.entry(job);
        let mut occupied = self.occupied(ledger, now);
        if let Some(own) = pe_allocator::own(entry).filter(|_| self.allocator.must_return(ledger, entry)) {
            let ends = occupied.iter().filter(|(_, pes)| pes.intersects(own)).map(|(end, _)| *end);
            return Reservation { at: ends.max().unwrap_or(now), extra: Procs::ZERO, on: own.clone() };
        }
        occupied.sort_unstable_by_key(|(end, _)| *end);
        let procs = entry.request.procs();
        let (mut free, mut at) = (available.count(), now);
        for (end, pes) in occupied {
            // All processors that become free at one instant count together.
            if free >= procs && end > at {
                break;
            }
            at = end;
            free += pes.count();
        }
        Reservation { at, extra: free.saturating_sub(procs), on: PeSet::empty() }
    }

    /// Returns the held and claimed processors, each set with its expected end.
    fn occupied<'l>(&self, ledger: &'l Ledger, now: Time) -> Vec<Occupied<'l>> {
        let mut claimed = PeSet::empty();
        let mut occupied = vec![];
        for job in self.allocator.claimants() {
            let entry = ledger.entry(job);
            let (Some(start), Some(pes)) = (entry.planned, pe_allocator::claim(entry)) else { continue };
            claimed.insert_all(pes);
            let end = start.max(now)
                + self.moving.transfer.swap_in_time(entry)
                + entry.left(now, entry.request.procs());
            occupied.push((end, Cow::Borrowed(pes)));
        }
        let holds = self.running.jobs().chain(self.allocator.swapping_out()).map(|job| ledger.entry(job));
        for (end, pes) in holds.filter_map(|entry| holds_until(entry, now)) {
            let mut pes = Cow::Borrowed(pes);
            if pes.intersects(&claimed) {
                pes.to_mut().remove_all(&claimed);
            }
            occupied.push((end, pes));
        }
        occupied
    }

    /// Gives a job that has just arrived its slice, if possible.
    fn serve(&mut self, context: &mut Context<'_>, job: JobId) -> Result<(), Violation> {
        let (ledger, now) = (context.ledger(), context.now());
        let need = need_of_leavers(ledger, job);
        let victims = self.running.jobs().filter_map(|job| self.victim(ledger, now, job));
        let victims = by_rank(victims.collect());
        let free = room(&self.allocator, ledger, &self.allocator.available(ledger));
        let Some(victims) = enough(free, &need, victims.iter()) else { return Ok(()) };
        let victims: Vec<JobId> = victims.into_iter().map(|victim| victim.job).collect();
        let available = self.allocator.available_without(ledger, &victims);
        let procs = ledger.request(job).procs();
        let key = |job: &JobId| (Key::arrival(ledger.entry(*job)), *job);
        let mut leave: Vec<(Key, JobId)> = victims.iter().map(key).collect();
        leave.sort_unstable();
        let suspended = self.suspended.iter().map(|(key, job)| (*key, *job));
        let returning = merged(suspended, leave.into_iter(), Ord::cmp).map(|(_, job)| job);
        let Some(pes) = self.allocator.choose(ledger, procs, &available, &victims, returning) else {
            return Ok(());
        };
        self.allocator.start_over_victims(context, job, &victims, pes, StartReason::Quantum)?;
        let ledger = context.ledger();
        for victim in victims {
            self.running.remove(ledger, victim);
            self.unblock(ledger, victim);
            self.insert_idle(victim, ledger.entry(victim));
        }
        if !self.allocator.claims(job) {
            self.now_runs(ledger, job);
        }
        Ok(())
    }

    /// Returns a running job as a victim, if it has had its slice.
    fn victim(&self, ledger: &Ledger, now: Time, job: JobId) -> Option<Victim> {
        let entry = ledger.entry(job);
        (pe_allocator::works(entry, now) && ran(entry, now) >= self.slice).then(|| Victim {
            rank: current_slowdown(entry, now),
            admitted: entry.admitted,
            job,
            gives: self.moving.transfer.frees(entry),
        })
    }
}

/// Returns an idle job with its position in the order of arrival.
fn waiting(job: JobId, entry: &Entry) -> Waiting {
    let mut waiting = Waiting::by_arrival(job, entry);
    if let Some(own) = pe_allocator::own(entry) {
        waiting.procs = u32::try_from(own.count()).unwrap_or(u32::MAX);
    }
    waiting
}

/// Returns the processors of a job and the expected time until which it holds them.
fn holds_until(entry: &Entry, now: Time) -> Option<(Time, &PeSet)> {
    let end = match entry.state {
        // Its end is certain, so its processors are free already.
        State::Running { released: true, .. } => return None,
        State::Running { expected: Expected::At(end), .. } => end,
        State::Running { .. } => now + Span::TICK,
        State::Suspended { holds: miserly_core::Holds::All { until }, .. } => until,
        _ => return None,
    };
    pe_allocator::pes(entry).map(|pes| (end.max(now + Span::TICK), pes))
}

impl Policy for Slices {
    fn name(&self) -> &str {
        self.name
    }

    fn names_pes(&self) -> bool {
        true
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.allocator.rebuild(now, ledger);
        self.running.rebuild(ledger);
        self.queue.clear();
        self.open.clear();
        self.suspended.clear();
        self.blocked.clear();
        ledger.waiting().chain(ledger.suspended()).for_each(|job| self.insert_idle(job, ledger.entry(job)));
    }

    fn event(&mut self, _now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.insert_idle(job, ledger.entry(job));
                self.new.push(job);
            }
            Event::Ended(ended) => {
                self.allocator.forget(ended.job);
                self.remove_idle(ledger.entry(ended.job));
                self.running.remove(ledger, ended.job);
                self.unblock(ledger, ended.job);
            }
            _ => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.allocator.finish_swap_outs(context)?;
        for job in self.allocator.serve_claims(context)? {
            self.now_runs(context.ledger(), job);
        }
        self.pass_queue(context)?;
        for job in std::mem::take(&mut self.new) {
            if context.ledger().get(job).is_some_and(|entry| entry.state == State::Waiting) {
                self.serve(context, job)?;
                // Other jobs may fit on the remaining processors.
                self.pass_queue(context)?;
            }
        }
        self.allocator.next_swap_out().map_or(Ok(()), |at| context.wake_at(at))
    }
}
