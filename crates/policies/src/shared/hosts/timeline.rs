//! The free resources of one host, from now on.

use miserly_core::{Kind, Procs, Resources, Span, Time};

use super::lasting::Falls;
use crate::shared::StepStaircase;

/// The number of resource kinds.
const KINDS: usize = Kind::ALL.len();

/// An amount of each kind. It is negative where more was taken than there is.
type Amounts = [i64; KINDS];

/// The free resources of a host as a step function of time, from a moving `now` to infinity.
///
/// A sorted array, because a host has few jobs. With n breakpoints a change is O(n). A query is
/// O(log n) plus the steps that it examines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    /// The time of each breakpoint, and the free resources from then on. The first one holds from
    /// the start of time.
    points: Vec<(i64, Amounts)>,
    /// The least amount of each kind from now on.
    least: Amounts,
    /// The first and the last time at which some amount is less than before.
    falls: Option<Falls>,
}

impl Timeline {
    /// Returns a timeline with this capacity free for ever.
    pub(super) fn new(capacity: &Resources) -> Timeline {
        let capacity = amounts(capacity);
        Timeline { points: vec![(i64::MIN, capacity)], least: capacity, falls: None }
    }

    /// Returns the first and the last time at which some amount is less than before.
    pub(super) fn falls(&self) -> Option<Falls> {
        self.falls
    }

    /// Returns the least amount of each kind that is free at any time from now on.
    pub(super) fn least(&self) -> Resources {
        resources(&self.least)
    }

    /// Returns the times of the breakpoints, but for the start of time.
    pub(super) fn breakpoints(&self) -> impl Iterator<Item = i64> + '_ {
        self.points[1..].iter().map(|(at, _)| *at)
    }

    /// Returns a number that equal timelines share, and others rarely.
    pub(super) fn fingerprint(&self) -> u64 {
        let mix = |sum: u64, value: i64| {
            (sum ^ value.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let point = |sum: u64, (at, free): &(i64, Amounts)| {
            free.iter().fold(mix(sum, *at), |sum, free| mix(sum, *free))
        };
        self.points.iter().fold(0, point)
    }

    /// Forgets the time before `now`.
    pub(super) fn advance(&mut self, now: Time) {
        let past = self.points.partition_point(|(at, _)| *at <= now.ticks()).saturating_sub(1);
        if past > 0 {
            self.points.drain(..past);
            self.points[0].0 = i64::MIN;
            self.measure();
        }
    }

    /// Takes an amount away in `from..to`, or gives it back. Calls `changed` for each breakpoint
    /// added or removed.
    pub(super) fn change(
        &mut self,
        from: Time,
        to: Time,
        amount: &Resources,
        give: bool,
        mut changed: impl FnMut(i64, bool),
    ) {
        if to <= from || *amount == Resources::NONE {
            return;
        }
        let first = self.breakpoint(from.ticks(), &mut changed);
        let last =
            if to == Time::MAX { self.points.len() } else { self.breakpoint(to.ticks(), &mut changed) };
        let mut by = amounts(amount);
        if !give {
            by = by.map(|amount| -amount);
        }
        for (_, free) in &mut self.points[first..last] {
            for (free, by) in free.iter_mut().zip(by) {
                *free += by;
            }
        }
        for at in [last, first] {
            self.merge(at, &mut changed);
        }
        self.measure();
    }

    /// Returns the index of the breakpoint at that time. Inserts it if absent.
    fn breakpoint(&mut self, time: i64, changed: &mut impl FnMut(i64, bool)) -> usize {
        let after = self.points.partition_point(|(at, _)| *at < time);
        if self.points.get(after).is_some_and(|(at, _)| *at == time) {
            return after;
        }
        self.points.insert(after, (time, self.points[after - 1].1));
        changed(time, true);
        after
    }

    /// Removes a breakpoint at which nothing changes.
    fn merge(&mut self, at: usize, changed: &mut impl FnMut(i64, bool)) {
        if at > 0 && at < self.points.len() && self.points[at].1 == self.points[at - 1].1 {
            let (time, _) = self.points.remove(at);
            changed(time, false);
        }
    }

    fn measure(&mut self) {
        self.least = self.points[0].1;
        self.falls = None;
        for pair in self.points.windows(2) {
            let ((_, before), (at, after)) = (&pair[0], &pair[1]);
            if !enough(before, after) {
                self.falls = Some(Falls { first: self.falls.map_or(*at, |falls| falls.first), last: *at });
                self.least = std::array::from_fn(|kind| self.least[kind].min(after[kind]));
            }
        }
    }

    fn locate(&self, time: Time) -> usize {
        self.points.partition_point(|(at, _)| *at <= time.ticks()).saturating_sub(1)
    }

    /// Returns the free resources until the first breakpoint. Negative amounts count as zero.
    pub(super) fn free_now(&self) -> Resources {
        resources(&self.points[0].1)
    }

    /// Returns the free resources at that time. Negative amounts count as zero.
    pub(super) fn free_at(&self, time: Time) -> Resources {
        resources(&self.points[self.locate(time)].1)
    }

    /// Returns the least amount of each kind that is free within `from..from + span`.
    ///
    /// O(1) if less becomes free only within that time, from now on, or never.
    pub(super) fn least_within(&self, from: Time, span: Span) -> Resources {
        match self.falls {
            None => return self.free_at(from),
            Some(falls) if falls.last < (from + span).ticks() && self.locate(from) == 0 => {
                return self.least();
            }
            Some(_) => {}
        }
        let least = |one: Amounts, other: Amounts| std::array::from_fn(|kind| one[kind].min(other[kind]));
        self.steps(from, span).copied().reduce(least).map_or(Resources::NONE, |least| resources(&least))
    }

    /// Returns whether no amount is ever negative.
    pub(super) fn is_possible(&self) -> bool {
        self.points.iter().all(|(_, free)| free.iter().all(|free| *free >= 0))
    }

    /// Returns whether `need` is free throughout `from..from + span`.
    pub(super) fn fits(&self, from: Time, span: Span, need: &Resources) -> bool {
        let need = needed(need);
        let mut steps = self.steps(from, span);
        let enough = |free: &Amounts| enough(&need, free);
        if self.falls.is_none() { steps.next().is_some_and(enough) } else { steps.all(enough) }
    }

    /// Returns the earliest start in `from..until` from which `need` stays free for `span`.
    ///
    /// The job itself holds as much from `limit` on, so a hole need not extend further. The result
    /// is `from` or a breakpoint.
    pub(super) fn earliest(
        &self,
        from: Time,
        until: Time,
        limit: Time,
        span: Span,
        need: &Resources,
    ) -> Option<Time> {
        let need = needed(need);
        let mut start = None;
        for (at, free) in &self.points[self.locate(from)..] {
            if let Some(start) =
                start.filter(|start| *at >= limit.ticks() || at.saturating_sub(*start) >= span.ticks())
            {
                return Some(Time::from_ticks(start));
            }
            if !enough(&need, free) {
                start = None;
            } else if start.is_none() {
                start = Some((*at).max(from.ticks()));
            }
            if start.unwrap_or(*at) >= until.ticks() {
                return None;
            }
        }
        start.map(Time::from_ticks)
    }

    /// Returns the most processors that are free at any instant of `from..to`.
    pub(super) fn most_cpus_within(&self, from: Time, to: Time) -> Procs {
        let most = self.steps(from, to - from).map(|free| free[Kind::Cpus as usize]).max();
        most.map_or(Procs::ZERO, procs)
    }

    /// Returns the processors that stay free from now on, of this number that is free now.
    pub(super) fn outlook(&self, now: Time, free: Procs) -> StepStaircase {
        let last = self.falls.map_or(i64::MIN, |falls| falls.last);
        let first = self.locate(now);
        let later = self.points[first..].iter().take_while(|(at, _)| *at <= last);
        let later =
            later.map(|(at, free)| (Time::from_ticks(*at).max(now), procs(free[Kind::Cpus as usize])));
        StepStaircase::falling(now, free, later)
    }

    /// Returns the free resources from `from` on as stretches, each with its end. The last one has
    /// no end.
    pub(super) fn stretches(&self, from: Time) -> impl Iterator<Item = (Time, Stretch<'_>)> {
        let first = self.locate(from);
        let ends = self.points[first + 1..].iter().map(|(at, _)| Time::from_ticks(*at)).chain([Time::MAX]);
        ends.zip(self.points[first..].iter().map(|(_, free)| Stretch(free)))
    }

    fn steps(&self, from: Time, span: Span) -> impl Iterator<Item = &Amounts> {
        let to = (from + span).ticks();
        let first = self.locate(from);
        let within = move |(index, (at, _)): &(usize, &(i64, Amounts))| *index == 0 || *at < to;
        self.points[first..].iter().enumerate().take_while(within).map(|(_, (_, free))| free)
    }
}

/// Returns whether each amount is at least the needed one.
#[inline]
fn enough(need: &Amounts, free: &Amounts) -> bool {
    // The sign of any difference. No amount is so large that a difference overflows.
    need.iter().zip(free).fold(0, |lacking, (need, free)| lacking | (free - need)) >= 0
}

/// Returns the amounts that a job needs. Kinds that it does not need may be short.
fn needed(need: &Resources) -> Amounts {
    amounts(need).map(|amount| if amount == 0 { i64::MIN / 4 } else { amount })
}

/// The free resources for some time, without a change.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a>(&'a Amounts);

impl Stretch<'_> {
    /// Returns whether `need` is free after `lacking` is subtracted.
    pub(super) fn has_beside(self, need: &Resources, lacking: &Resources) -> bool {
        let mut kinds = amounts(need).into_iter().zip(amounts(lacking)).zip(self.0);
        kinds.all(|((need, lacking), free)| need == 0 || need.saturating_add(lacking) <= *free)
    }
}

/// Returns an amount of processors. A negative one counts as zero.
fn procs(amount: i64) -> Procs {
    Procs::new(amount.max(0).cast_unsigned())
}

fn amounts(resources: &Resources) -> Amounts {
    // No host has more of any kind than an i64 counts.
    Kind::ALL.map(|kind| i64::try_from(resources.get(kind)).unwrap_or(i64::MAX / 4))
}

fn resources(amounts: &Amounts) -> Resources {
    let with = |resources: Resources, (kind, amount): (Kind, &i64)| {
        resources.with(kind, u64::try_from(*amount).unwrap_or(0))
    };
    Kind::ALL.into_iter().zip(amounts).fold(Resources::NONE, with)
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;
    use crate::shared::Admits;

    /// Takes and gives back amounts at random, and compares the outlook with a search for each width and span.
    #[test]
    fn the_outlook_tells_what_fits() {
        for seed in 0..50 {
            let mut line = Timeline::new(&Resources::cpus(20));
            let now = Time::from_ticks(5);
            for step in 0..30 {
                let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
                let at = |nth: u64| Time::from_ticks(i64::try_from(random(nth, 30)).unwrap());
                let (from, to) = (at(1), if random(3, 4) == 0 { Time::MAX } else { at(2) });
                line.change(from, to, &Resources::cpus(random(4, 4)), random(5, 2) == 0, |_, _| {});
                for from in [5, 9, 20].map(Time::from_ticks) {
                    for span in [1, 4, 12, 40] {
                        let each = (0..span).map(|after| line.free_at(from + Span::from_ticks(after)));
                        let least = each.reduce(|least, free| least.least(&free));
                        assert_eq!(Some(line.least_within(from, Span::from_ticks(span))), least, "{line:?}");
                    }
                }
                let free = line.free_at(now).cpus_count();
                let outlook = line.outlook(now, free);
                for span in [1, 2, 3, 5, 8, 13, 21, 34].map(Span::from_ticks) {
                    for procs in 1u32..30 {
                        let fits = line.fits(now, span, &Resources::cpus(u64::from(procs)));
                        assert_eq!(outlook.admits(procs, span), fits, "{procs} for {span:?}: {line:?}");
                    }
                }
            }
        }
    }
}
