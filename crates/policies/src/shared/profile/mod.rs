//! The availability profile: the number of free processors from now on.

mod chunk;

mod no_holes;

mod search;

use std::ops::ControlFlow;

use miserly_core::{Span, Time};

use self::chunk::{CHUNK, Chunk};
use self::no_holes::NoHoles;
use self::search::Search;
use super::staircase::StepStaircase;

/// The number of past breakpoints that are removed together.
const PAST: usize = 16;

/// Free processors as a step function of time, from a moving `now` to infinity.
///
/// Breakpoints are stored in chunks that record their least and most count. A search therefore
/// skips a chunk that is free, or taken, throughout. With n breakpoints and chunks of c = 64, a
/// change is O(c + n / c). A search costs the same for each hole that is too short. In a chunk that
/// is shorter than the wanted hole, it examines only the stretches at both ends. Equal neighbours are
/// merged, so two profiles with the same counts are equal.
///
/// ```
/// use miserly_core::{Span, Time};
/// use miserly_policies::shared::Profile;
///
/// let [now, end] = [0, 60].map(Time::from_ticks);
/// let mut profile = Profile::new(4);
/// profile.take(now, end, 3);
/// assert_eq!(profile.free_at(now), 1);
/// assert_eq!(profile.earliest(now, Span::from_ticks(90), 2), end);
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    chunks: Vec<Chunk>,
    /// Times before this one are past and no longer represented.
    now: i64,
    /// What [`earliest_again`](Profile::earliest_again) found out.
    no_holes: NoHoles,
}

/// A breakpoint: its chunk, and its index in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    chunk: usize,
    index: usize,
}

impl Profile {
    /// The largest machine that a profile can count.
    pub const MOST: u32 = 1 << 30;

    /// Returns the profile of a machine with `procs` processors, all of them always free.
    pub fn new(procs: u32) -> Profile {
        // The registry checks a lower limit.
        let free = i32::try_from(procs.min(Profile::MOST)).unwrap_or(i32::MAX);
        let chunks = vec![Chunk::new(vec![i64::MIN], vec![free])];
        Profile { chunks, now: i64::MIN, no_holes: NoHoles::default() }
    }

    /// Forgets the time before `now`.
    pub fn advance(&mut self, now: Time) {
        let now = now.ticks();
        self.now = now;
        let past = self.chunks.iter().skip(1).take_while(|chunk| chunk.first <= now).count();
        if past > 0 {
            self.chunks.drain(..past);
        }
        let first = &mut self.chunks[0];
        if first.times.get(PAST).is_some_and(|&time| time <= now) {
            let done = first.times.partition_point(|&time| time <= now) - 1;
            first.times.drain(..done);
            first.free.drain(..done);
            first.measure();
        }
    }

    /// Takes `procs` processors away in `from..to`. The count may go below zero; planners must
    /// prevent that.
    pub fn take(&mut self, from: Time, to: Time, procs: u32) {
        self.add(from, to, -signed(procs));
    }

    /// Gives `procs` processors back in `from..to`.
    pub fn give(&mut self, from: Time, to: Time, procs: u32) {
        self.add(from, to, signed(procs));
        self.no_holes.given(from);
    }

    /// Returns the number of free processors at `time`. A negative count is 0. O(log n).
    pub fn free_at(&self, time: Time) -> u32 {
        let at = self.locate(time.ticks());
        u32::try_from(self.count(at)).unwrap_or(0)
    }

    /// Returns the most processors that are free at any instant of `from..to`; 0 if that is empty.
    pub fn most_within(&self, from: Time, to: Time) -> u32 {
        if to <= from {
            return 0;
        }
        let to = to.ticks();
        let mut most = i32::MIN;
        let start = self.locate(from.ticks());
        let mut first = start.index;
        for (index, chunk) in self.chunks.iter().enumerate().skip(start.chunk) {
            if index > start.chunk && chunk.first >= to {
                break;
            }
            if chunk.most + chunk.lift > most {
                let end = chunk.before(to);
                let within = chunk.free[first..end.max(first + 1)].iter().copied().fold(i32::MIN, i32::max);
                most = most.max(within + chunk.lift);
            }
            first = 0;
        }
        u32::try_from(most).unwrap_or(0)
    }

    /// Returns the earliest instant, not before `not_before`, from which `procs` processors stay
    /// free for `span`.
    ///
    /// The result is `not_before` or a breakpoint, or [`Time::MAX`] if the machine is never that
    /// free.
    ///
    /// # Source
    /// The hole search of conservative backfilling, Zotkin et al. §2.
    pub fn earliest(&self, not_before: Time, span: Span, procs: u32) -> Time {
        self.earliest_within(not_before, Time::MAX, Time::MAX, span, procs).unwrap_or(Time::MAX)
    }

    /// Returns the start of the earliest hole that starts before `limit` and before `until`.
    ///
    /// The job itself holds `procs` from `limit` on, so a hole need not extend further. This is the
    /// search for a reservation earlier than `limit`, without first removing the present one.
    pub fn earliest_within(
        &self,
        not_before: Time,
        until: Time,
        limit: Time,
        span: Span,
        procs: u32,
    ) -> Option<Time> {
        let mut search = Search {
            until: until.min(limit).ticks(),
            limit: limit.ticks(),
            span: span.ticks(),
            not_before: not_before.ticks(),
            start: None,
        };
        let at = self.locate(not_before.ticks());
        let mut first = at.index;
        for chunk in &self.chunks[at.chunk..] {
            if let ControlFlow::Break(found) = search.chunk(chunk, first, signed(procs) - chunk.lift) {
                return found;
            }
            first = 0;
        }
        search.start.map(Time::from_ticks)
    }

    /// The same as [`earliest_within`](Profile::earliest_within), with the knowledge of former calls.
    ///
    /// A job as wide and as long as one before, or more so, is searched for only where that one was not,
    /// until processors are given back there. So a run of identical jobs costs one search.
    pub fn earliest_again(
        &mut self,
        not_before: Time,
        until: Time,
        limit: Time,
        span: Span,
        procs: u32,
    ) -> Option<Time> {
        let until = until.min(limit);
        let from = self.no_holes.skip(not_before, limit, span, procs);
        if from >= until {
            return None;
        }
        let found = self.earliest_within(from, until, limit, span, procs);
        let none_before = found.unwrap_or(until);
        if none_before > from {
            self.no_holes.note(not_before, none_before, limit, span, procs);
        }
        found
    }

    /// Returns the processors that stay free from `now` on, with the span for each width.
    ///
    /// O(n) in the breakpoints. A chunk that does not fall below the count before it is O(1).
    pub fn outlook(&self, now: Time) -> StepStaircase {
        let start = self.locate(now.ticks());
        let mut steps = Vec::new();
        let mut least = self.count(start);
        let mut first = start.index + 1;
        for chunk in &self.chunks[start.chunk..] {
            if least > 0 && chunk.least + chunk.lift < least {
                for (&time, free) in chunk.times.iter().zip(&chunk.free).skip(first) {
                    let free = free + chunk.lift;
                    if free < least {
                        steps.push((least, Time::from_ticks(time) - now));
                        least = free;
                    }
                }
            }
            first = 0;
        }
        steps.push((least, Span::MAX));
        let counted = |(free, until): (i32, Span)| Some((u32::try_from(free).ok()?, until));
        StepStaircase { steps: steps.into_iter().filter_map(counted).filter(|(free, _)| *free > 0).collect() }
    }

    fn time(&self, at: At) -> i64 {
        self.chunks[at.chunk].times[at.index]
    }

    fn count(&self, at: At) -> i32 {
        self.chunks[at.chunk].free[at.index] + self.chunks[at.chunk].lift
    }

    /// Returns the last breakpoint at or before `time`, or the first one if there is none.
    fn locate(&self, time: i64) -> At {
        let chunk = match &self.chunks[..] {
            [_] => 0,
            chunks => chunks.partition_point(|chunk| chunk.first <= time).saturating_sub(1),
        };
        At { chunk, index: self.chunks[chunk].up_to(time).saturating_sub(1) }
    }

    fn add(&mut self, from: Time, to: Time, delta: i32) {
        if to <= from || delta == 0 {
            return;
        }
        let (mut end, _) = self.breakpoint(to.ticks());
        let chunks = self.chunks.len();
        // A change that covers now may be applied from any earlier time: that is past.
        let past = from.ticks() <= self.now;
        let (start, inserted) =
            if past { (self.locate(self.now), false) } else { self.breakpoint(from.ticks()) };
        if self.chunks.len() != chunks {
            end = self.locate(to.ticks());
        } else if inserted && start.chunk == end.chunk {
            end.index += 1;
        }
        for chunk in start.chunk..=end.chunk {
            let first = if chunk == start.chunk { start.index } else { 0 };
            let held = &mut self.chunks[chunk];
            let last = if chunk == end.chunk { end.index } else { held.times.len() };
            held.lift_within(first, last, delta);
        }
        self.merge(end);
        if !past {
            self.merge(start);
        }
    }

    /// Returns the breakpoint at `time`, and whether it was inserted.
    ///
    /// A time before the profile gives the first breakpoint, because earlier times are not kept.
    fn breakpoint(&mut self, time: i64) -> (At, bool) {
        let at = self.locate(time);
        if self.time(at) >= time {
            return (at, false);
        }
        let chunk = &mut self.chunks[at.chunk];
        let new = At { index: at.index + 1, ..at };
        chunk.times.insert(new.index, time);
        chunk.free.insert(new.index, chunk.free[at.index]);
        chunk.mark_ends();
        if chunk.times.len() < CHUNK {
            return (new, true);
        }
        let upper = chunk.split();
        self.chunks.insert(at.chunk + 1, upper);
        (self.locate(time), true)
    }

    /// Removes a breakpoint at which nothing changes.
    fn merge(&mut self, at: At) {
        let before = match at {
            At { chunk: 0, index: 0 } => return,
            At { chunk, index: 0 } => At { chunk: chunk - 1, index: self.chunks[chunk - 1].times.len() - 1 },
            At { chunk, index } => At { chunk, index: index - 1 },
        };
        if self.count(before) == self.count(at) {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: At) {
        let chunk = &mut self.chunks[at.chunk];
        chunk.times.remove(at.index);
        chunk.free.remove(at.index);
        if chunk.times.is_empty() {
            self.chunks.remove(at.chunk);
            return;
        }
        chunk.mark_ends();
        chunk.loosen();
        let together = |next: &Chunk| self.chunks[at.chunk].times.len() + next.times.len();
        if self.chunks.get(at.chunk + 1).is_some_and(|next| together(next) <= CHUNK / 2) {
            let next = self.chunks.remove(at.chunk + 1);
            self.chunks[at.chunk].append(&next);
        }
    }
}

/// Compares the free processors at every instant, past instants included, for profiles that were
/// never advanced.
impl PartialEq for Profile {
    fn eq(&self, other: &Profile) -> bool {
        let points = |profile: &Profile| {
            let counted = profile.chunks.iter().flat_map(|chunk| {
                let counts = chunk.free.iter().map(move |free| free + chunk.lift);
                chunk.times.iter().copied().zip(counts)
            });
            counted.collect::<Vec<_>>()
        };
        points(self) == points(other)
    }
}

fn signed(procs: u32) -> i32 {
    // No machine is larger than Profile::MOST, and no job wider than its machine.
    i32::try_from(procs).unwrap_or(i32::MAX)
}
