//! Starts in the order of the queue under a guarantee: sorted backfilling (Zotkin et al. §5, Table
//! 8).
//!
//! A job's reservation at arrival is that of conservative backfilling. The interval until then,
//! times the guarantee, gives its deadline, which is promised.
//!
//! A pass starts the first job of the order that fits, if all others can still meet their
//! deadlines. They do so by a new plan, made in order of deadline (ties by arrival), or else by
//! their kept reservations. That is repeated until no job can start. So a job with a reservation
//! for now starts now, or has been given a later one.
//!
//! With exact estimates and a guarantee of 1 no job can move, and the schedule is that of
//! conservative backfilling.
//!
//! With w waiting jobs, of which f fit, and n breakpoints: O(f w n) at worst per start. A new plan
//! is abandoned at the first deadline that it misses.

use miserly_core::{Context, JobId, Span, StartReason, Time, Violation};

use super::availability::Availability;
use super::kept::{Kept, Plan};
use super::queue::WaitQueue;
use super::reservations::{Reservation, Reservations};
use crate::shared::{Waiting, head_start_reason};

/// A job that can start now.
struct Startable<P> {
    job: Waiting,
    place: P,
    /// The new reservations of the other jobs. Jobs that are not listed keep theirs.
    moves: Vec<(JobId, Time, P)>,
}

impl<A: Availability> Kept<A> {
    /// Starts jobs, always the first one that is permitted, until there is none.
    pub(super) fn start_in_order(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        while let Some(Startable { job, place, moves }) = self.first_startable(context) {
            let reason = match self.queue.jobs().first() {
                Some(first) if first.key != job.key => StartReason::Backfilled,
                _ => head_start_reason(context, job.job),
            };
            self.queue.remove(job.job);
            let own = self.plan.lift(job.job);
            self.plan.reservations.remove(job.job);
            let lifted: Vec<_> = moves.iter().map(|(other, ..)| self.plan.lift(*other)).collect();
            for (held, (_, at, place)) in lifted.into_iter().zip(moves) {
                held.map_or(Ok(()), |held| self.plan.put(context, &held, at, &place))?;
            }
            if let Some(own) = own {
                self.plan.availability.take(now, &own.job, &place);
                self.start(context, &Reservation { at: now, place, ..own }, reason)?;
            }
        }
        Ok(())
    }

    /// Returns the first job of the order that may start now.
    fn first_startable(&mut self, context: &Context<'_>) -> Option<Startable<A::Place>> {
        let candidates = self.candidates(context);
        if candidates.is_empty() {
            return None;
        }
        let Plan { availability: kept, reservations, bare, .. } = &mut self.plan;
        let bare = bare.as_mut()?;
        let by_deadline = by_deadline(&self.queue, reservations);
        let lent = || reservations.lent();
        lent().for_each(|held| bare.take(held.at, &held.job, &held.place));
        let found = candidates.iter().find_map(|job| {
            // Without a place beside the running jobs, there is none beside all reservations either.
            let place = place_now(bare, context, job)?;
            match replanned(context, bare, &by_deadline, job, &place) {
                Some(moves) => Some(Startable { job: *job, place, moves }),
                None => unmoved(context, kept, reservations.get(job.job)?, job),
            }
        });
        lent().for_each(|held| bare.give(held.at, &held.job, &held.place));
        found
    }

    /// Returns the jobs that the free resources admit, in the order of the queue.
    fn candidates(&self, context: &Context<'_>) -> Vec<Waiting> {
        let room = self.plan.availability.room(context.ledger(), None);
        let next = |job: &Waiting| self.queue.jobs().next_admitted(Some(&job.key), &room);
        std::iter::successors(self.queue.jobs().next_admitted(None, &room), next).collect()
    }
}

/// Returns the reservations of the jobs in the queue, in the order of their deadlines.
fn by_deadline<'a, P>(queue: &WaitQueue, reservations: &'a Reservations<P>) -> Vec<&'a Reservation<P>> {
    let mut held: Vec<_> = queue.iter().filter_map(|job| reservations.get(job.job)).collect();
    held.sort_unstable_by_key(|held| (held.deadline, held.job.key));
    held
}

/// Returns the job if it can start beside the kept places of the others.
fn unmoved<A: Availability>(
    context: &Context<'_>,
    kept: &mut A,
    own: &Reservation<A::Place>,
    job: &Waiting,
) -> Option<Startable<A::Place>> {
    kept.give(own.at, &own.job, &own.place);
    let place = place_now(kept, context, job);
    kept.take(own.at, &own.job, &own.place);
    Some(Startable { job: *job, place: place?, moves: vec![] })
}

/// Returns the changed reservations of the others if the job starts in its place and they all meet their
/// deadlines in a new plan.
fn replanned<A: Availability>(
    context: &Context<'_>,
    bare: &A,
    by_deadline: &[&Reservation<A::Place>],
    job: &Waiting,
    place: &A::Place,
) -> Option<Vec<(JobId, Time, A::Place)>> {
    let (now, ledger) = (context.now(), context.ledger());
    let mut plan = bare.clone();
    plan.take(now, job, place);
    let mut moves = vec![];
    for held in by_deadline.iter().filter(|held| held.job.job != job.job) {
        // A later start misses the deadline.
        let until = held.deadline + Span::TICK;
        let (at, place) = plan.first_start(ledger, &held.job, now, until)?;
        plan.take(at, &held.job, &place);
        if (at, &place) != (held.at, &held.place) {
            moves.push((held.job.job, at, place));
        }
    }
    Some(moves)
}

/// Returns a place in the plan where the job can start now.
fn place_now<A: Availability>(plan: &A, context: &Context<'_>, job: &Waiting) -> Option<A::Place> {
    let until = context.now() + Span::TICK;
    plan.start_from(context.ledger(), job, context.now(), until, None).map(|(_, place)| place)
}
