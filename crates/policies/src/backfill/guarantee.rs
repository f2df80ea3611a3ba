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
use super::kept::Kept;
use super::reservations::Reservation;
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
    fn first_startable(&self, context: &Context<'_>) -> Option<Startable<A::Place>> {
        let room = self.plan.availability.room(context.ledger(), None);
        let mut job = self.queue.jobs().next_admitted(None, &room)?;
        let by_deadline = self.by_deadline();
        let mut kept = self.plan.availability.clone();
        let mut bare = kept.clone();
        for held in &by_deadline {
            bare.give(held.at, &held.job, &held.place);
        }
        loop {
            let replanned = || replanned(context, &bare, &by_deadline, &job);
            let startable = replanned().or_else(|| self.unmoved(context, &mut kept, &job));
            if startable.is_some() {
                return startable;
            }
            job = self.queue.jobs().next_admitted(Some(&job.key), &room)?;
        }
    }

    fn by_deadline(&self) -> Vec<&Reservation<A::Place>> {
        let reservations = &self.plan.reservations;
        let mut held: Vec<_> = self.queue.iter().filter_map(|job| reservations.get(job.job)).collect();
        held.sort_unstable_by_key(|held| (held.deadline, held.job.key));
        held
    }

    /// Returns the job if it can start beside the kept places of the others.
    fn unmoved(&self, context: &Context<'_>, kept: &mut A, job: &Waiting) -> Option<Startable<A::Place>> {
        let own = self.plan.reservations.get(job.job)?;
        kept.give(own.at, &own.job, &own.place);
        let place = place_now(kept, context, job);
        kept.take(own.at, &own.job, &own.place);
        Some(Startable { job: *job, place: place?, moves: vec![] })
    }
}

/// Returns the job if it can start and all others meet their deadlines in a new plan.
fn replanned<A: Availability>(
    context: &Context<'_>,
    bare: &A,
    by_deadline: &[&Reservation<A::Place>],
    job: &Waiting,
) -> Option<Startable<A::Place>> {
    let (now, ledger) = (context.now(), context.ledger());
    let place = place_now(bare, context, job)?;
    let mut plan = bare.clone();
    plan.take(now, job, &place);
    let others = by_deadline.iter().filter(|held| held.job.job != job.job);
    let moves = others.map(|held| {
        let (at, place) = plan.start_from(ledger, &held.job, now, Time::MAX, None)?;
        plan.take(at, &held.job, &place);
        (at <= held.deadline).then_some((held.job.job, at, place))
    });
    let moves = moves.collect::<Option<Vec<_>>>()?;
    Some(Startable { job: *job, place, moves })
}

/// Returns a place in the plan where the job can start now.
fn place_now<A: Availability>(plan: &A, context: &Context<'_>, job: &Waiting) -> Option<A::Place> {
    let until = context.now() + Span::TICK;
    plan.start_from(context.ledger(), job, context.now(), until, None).map(|(_, place)| place)
}
