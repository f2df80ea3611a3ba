//! Sorting with a bound: EASY in a sorted queue, in which a job past its bound goes to the head.

use miserly_core::{Request, Span, Time};

use crate::world::World;
use crate::{NaiveOrder, easy};

/// The schedule of conservative backfilling for all jobs so far, in which each runs as long as its estimate, and the
/// bounds that it gives to jobs.
pub(crate) struct Beside {
    procs: u64,
    /// Start, end and processors of each job.
    held: Vec<(Time, Time, u64)>,
    /// The bound of each job, by position.
    pub(crate) bounds: Vec<Option<Time>>,
}

impl Beside {
    pub(crate) fn new(procs: u64, jobs: usize) -> Beside {
        Beside { procs, held: Vec::new(), bounds: vec![None; jobs] }
    }

    /// Gives a job its bound at its arrival: so many `times` its wait in the schedule.
    pub(crate) fn arrive(&mut self, now: Time, position: usize, request: &Request, times: i64) {
        if self.bounds[position].is_some() {
            return;
        }
        let (procs, span) = (request.procs().get(), request.planned());
        let ends = self.held.iter().map(|&(_, end, _)| end).filter(|&end| end > now);
        let starts = ends.chain([now]).filter(|&start| self.is_hole(start, start + span, procs));
        let start = starts.min().expect("after the last end the whole machine is free");
        self.held.push((start, start + span, procs));
        let wait = Span::from_ticks((start - now).ticks().saturating_mul(times));
        self.bounds[position] = Some(now + wait);
    }

    fn is_hole(&self, from: Time, until: Time, procs: u64) -> bool {
        let taken_at = |time: Time| {
            let there = self.held.iter().filter(|(start, end, _)| *start <= time && time < *end);
            there.map(|(.., procs)| procs).sum::<u64>()
        };
        let starts =
            self.held.iter().map(|&(start, ..)| start).filter(|&start| from < start && start < until);
        starts.chain([from]).all(|time| taken_at(time) + procs <= self.procs)
    }

    /// Returns the jobs past their bounds, and the next bound of the others.
    pub(crate) fn late(&self, now: Time, waiting: &[usize]) -> (Vec<usize>, Option<Time>) {
        let bounded = waiting.iter().filter_map(|&position| Some((position, self.bounds[position]?)));
        let (late, other): (Vec<_>, Vec<_>) = bounded.partition(|(_, bound)| *bound <= now);
        (
            late.into_iter().map(|(position, _)| position).collect(),
            other.into_iter().map(|(_, bound)| bound).min(),
        )
    }
}

/// Runs one pass. Returns the next bound of a waiting job.
pub(crate) fn pass(
    world: &mut World<'_>,
    beside: &mut Beside,
    order: NaiveOrder,
    times: i64,
) -> Option<Time> {
    for position in world.queue(NaiveOrder::ARRIVAL) {
        beside.arrive(world.now, position, world.request(position), times);
    }
    let mut head = None;
    for position in beside.late(world.now, &world.queue(NaiveOrder::ARRIVAL)).0 {
        if head.is_none() && world.fits_now(position) {
            world.start(position);
        } else {
            head = head.or(Some(position));
        }
    }
    easy::pass(world, order, order, head);
    beside.late(world.now, &world.waiting).1
}
