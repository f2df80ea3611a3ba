//! Immediate service as in the slides: a slice at once for each arriving job, then EASY.

use miserly_core::{
    Context, Entry, Event, Expected, JobId, Ledger, PeSet, Policy, Procs, Span, StartReason, State, Time,
    Violation,
};

use super::Moving;
use super::job_sets::JobSets;
use super::pe_allocator::{self, PeAllocator};
use super::rank::{current_slowdown, ran};
use super::view::{Victim, by_rank, enough, need_of_leavers, room};
use crate::shared::Key;

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
/// O((w + r) log (w + r)) for w idle jobs and r running ones, once a pass and once more for each
/// arrival. A start on free choice of processors examines those of all suspended jobs
/// ([`PeChoice::Spare`](super::PeChoice::Spare)).
pub struct Slices {
    name: &'static str,
    slice: Span,
    moving: Moving,
    allocator: PeAllocator,
    sets: JobSets,
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

/// Processors that are held, and the expected end of that.
type Occupied = (Time, PeSet);

impl Slices {
    /// Returns a policy with slices of that length.
    pub fn new(name: &'static str, slice: Span, moving: Moving) -> Slices {
        let allocator = PeAllocator::new(moving);
        Slices { name, slice, moving, allocator, sets: JobSets::default(), new: vec![] }
    }

    /// Returns the idle jobs without claim or swap-out, in the order of arrival.
    fn queue(&self, ledger: &Ledger) -> Vec<JobId> {
        let waits = |job: &JobId| self.allocator.is_schedulable(ledger, *job);
        in_order_of_arrival(ledger, self.sets.idle.iter().copied().filter(waits))
    }

    /// Starts the queue's jobs as EASY does.
    fn pass_queue(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut available = self.allocator.available(context.ledger());
        let suspended = in_order_of_arrival(context.ledger(), context.ledger().suspended());
        let mut reserved: Option<Reservation> = None;
        for job in self.queue(context.ledger()) {
            let Some(pes) = self.room(context, job, &available, &suspended, reserved.as_mut()) else {
                if reserved.is_none() && self.allocator.has_rest(context.ledger(), job) {
                    reserved = Some(self.reserve(context, job, &available));
                }
                continue;
            };
            let comes_now = context.ledger().request(job).submit == context.now();
            let reason = match reserved {
                Some(_) => StartReason::Backfilled,
                None if comes_now => StartReason::Immediate,
                None => StartReason::Reserved,
            };
            available.remove_all(&pes);
            self.allocator.start_or_resume(context, job, pes, reason)?;
            self.sets.set_running(job);
        }
        Ok(())
    }

    /// Returns processors on which a job can run now without delaying the first job of the queue.
    fn room(
        &self,
        context: &Context<'_>,
        job: JobId,
        available: &PeSet,
        suspended: &[JobId],
        reserved: Option<&mut Reservation>,
    ) -> Option<PeSet> {
        let (ledger, now) = (context.ledger(), context.now());
        let Some(first) = reserved else { return self.allocator.place(ledger, job, available, || suspended) };
        let entry = ledger.entry(job);
        let procs = entry.request.procs();
        let end = now + self.moving.transfer.swap_in_time(entry) + entry.left(now, procs);
        if end <= first.at {
            return self.allocator.place(ledger, job, available, || suspended);
        }
        let mut elsewhere = available.clone();
        elsewhere.remove_all(&first.on);
        let pes = self.allocator.place(ledger, job, &elsewhere, || suspended)?;
        if first.on.is_empty() {
            first.extra = first.extra.checked_sub(procs)?;
        }
        Some(pes)
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
    fn occupied(&self, ledger: &Ledger, now: Time) -> Vec<Occupied> {
        let mut claimed = PeSet::empty();
        let mut occupied = vec![];
        for job in self.sets.idle.iter().filter(|job| self.allocator.claims(**job)) {
            let entry = ledger.entry(*job);
            let (Some(start), Some(pes)) = (entry.planned, pe_allocator::claim(entry)) else { continue };
            claimed.insert_all(pes);
            let end = start.max(now)
                + self.moving.transfer.swap_in_time(entry)
                + entry.left(now, entry.request.procs());
            occupied.push((end, pes.clone()));
        }
        let holds = self.sets.running.iter().chain(&self.sets.idle).map(|job| ledger.entry(*job));
        for (end, pes) in holds.filter_map(|entry| holds_until(entry, now)) {
            let mut pes = pes.clone();
            pes.remove_all(&claimed);
            occupied.push((end, pes));
        }
        occupied
    }

    /// Gives a job that has just arrived its slice, if possible.
    fn serve(&mut self, context: &mut Context<'_>, job: JobId) -> Result<(), Violation> {
        let (ledger, now) = (context.ledger(), context.now());
        let need = need_of_leavers(ledger, job);
        let victims = self.sets.running.iter().filter_map(|job| self.victim(ledger, now, *job));
        let victims = by_rank(victims.collect());
        let free = room(&self.allocator, ledger, &self.allocator.available(ledger));
        let Some(victims) = enough(free, &need, victims.iter()) else { return Ok(()) };
        let victims: Vec<JobId> = victims.into_iter().map(|victim| victim.job).collect();
        let available = self.allocator.available_without(ledger, &victims);
        let leave = victims.iter().copied();
        let returning = in_order_of_arrival(ledger, ledger.suspended().chain(leave));
        let procs = ledger.request(job).procs();
        let Some(pes) = self.allocator.choose(ledger, procs, &available, &returning) else {
            return Ok(());
        };
        self.allocator.start_over_victims(context, job, &victims, pes, StartReason::Quantum)?;
        self.sets.set_suspended(victims);
        if !self.allocator.claims(job) {
            self.sets.set_running(job);
        }
        Ok(())
    }

    /// Returns a running job as a victim, if it has had its slice.
    fn victim(&self, ledger: &Ledger, now: Time, job: JobId) -> Option<Victim> {
        let entry = ledger.entry(job);
        let works = matches!(entry.state, State::Running { released: false, .. }) && entry.progress.at <= now;
        (works && ran(entry, now) >= self.slice).then(|| Victim {
            rank: current_slowdown(entry, now),
            admitted: entry.admitted,
            job,
            gives: self.moving.transfer.frees(entry),
        })
    }
}

fn in_order_of_arrival(ledger: &Ledger, jobs: impl Iterator<Item = JobId>) -> Vec<JobId> {
    let mut jobs: Vec<JobId> = jobs.collect();
    jobs.sort_unstable_by_key(|job| Key::arrival(ledger.entry(*job)));
    jobs
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
        self.sets = JobSets::new(ledger);
    }

    fn event(&mut self, _now: Time, event: Event, _ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.sets.insert_idle(job);
                self.new.push(job);
            }
            Event::Ended(ended) => {
                self.allocator.forget(ended.job);
                self.sets.remove(ended.job);
            }
            _ => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.allocator.finish_swap_outs(context)?;
        for job in self.allocator.serve_claims(context)? {
            self.sets.set_running(job);
        }
        self.pass_queue(context)?;
        for job in std::mem::take(&mut self.new) {
            if self.sets.idle.contains(&job) {
                self.serve(context, job)?;
                // Other jobs may fit on the remaining processors.
                self.pass_queue(context)?;
            }
        }
        self.allocator.next_swap_out().map_or(Ok(()), |at| context.wake_at(at))
    }
}
