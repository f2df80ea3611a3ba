//! The time of a cycle between changes of its reservations.

use std::ops::Range;

use fixedbitset::FixedBitSet;
use miserly_core::{Span, Time};

/// The hosts without a reservation over the time of a cycle.
///
/// The stretches are in chunks, each with the hosts that are open during all of it.
#[derive(Debug, Default)]
pub(super) struct Stretches(Vec<Chunk>);

/// Some stretches that follow each other.
#[derive(Debug)]
struct Chunk {
    /// There is one at least.
    stretches: Vec<Stretch>,
    /// The hosts without a reservation during all of them.
    open: FixedBitSet,
    /// The least number of open hosts of a stretch.
    least: usize,
}

/// A stretch of time without a change of the reservations.
#[derive(Clone, Debug)]
struct Stretch {
    from: Time,
    to: Time,
    /// The hosts without a reservation.
    open: FixedBitSet,
    /// Their number.
    number: usize,
}

/// The place of a stretch: its chunk, and its place there.
type Place = (usize, usize);

/// An instant from which a job can be tried, and the stretch there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Try {
    pub(super) from: Time,
    /// The end of the stretch, unless it is the last one.
    pub(super) next: Option<Time>,
}

/// The most stretches of a chunk. Half of them are as many as a search looks at beside whole chunks.
const MOST: usize = 24;

impl Chunk {
    fn new(stretches: Vec<Stretch>) -> Chunk {
        let mut open = stretches[0].open.clone();
        stretches[1..].iter().for_each(|stretch| open.intersect_with(&stretch.open));
        let least = least(&stretches);
        Chunk { stretches, open, least }
    }

    fn from(&self) -> Time {
        self.stretches[0].from
    }

    fn to(&self) -> Time {
        self.stretches[self.stretches.len() - 1].to
    }

    /// Removes hosts from the stretches of a range.
    fn reserve(&mut self, range: Range<usize>, hosts: &FixedBitSet) {
        for stretch in &mut self.stretches[range] {
            stretch.number -= stretch.open.intersection_count(hosts);
            stretch.open.difference_with(hosts);
        }
        self.open.difference_with(hosts);
        self.least = least(&self.stretches);
    }
}

/// Returns the least number of open hosts of a stretch.
fn least(stretches: &[Stretch]) -> usize {
    stretches.iter().map(|stretch| stretch.number).min().unwrap_or(0)
}

impl Stretches {
    /// Returns a time without reservations.
    pub(super) fn new(from: Time, to: Time, open: FixedBitSet) -> Stretches {
        let number = open.count_ones(..);
        Stretches(vec![Chunk::new(vec![Stretch { from, to, open, number }])])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first try of a job from an instant on, and the hosts that are open for its span from then on. At least so many of
    /// the usable hosts are open.
    ///
    /// A try is at `from` or at a change of the reservations. Its stretch does not end before `least`.
    ///
    /// If the last part of the span has too few hosts, so has each try that has all of this part. So the search begins at the
    /// end of the span.
    ///
    /// With n stretches in c chunks and h hosts, O(c h + n h / c) in steps of 64 hosts for each try, and O(c) if one stretch alone
    /// has too few.
    pub(super) fn next_try(
        &self,
        from: Time,
        span: Span,
        (usable, hosts): (&FixedBitSet, usize),
        least: Time,
    ) -> Option<(Try, FixedBitSet)> {
        let mut from = from;
        let mut open = FixedBitSet::with_capacity(usable.len());
        let possible = self.first_where(|stretch| stretch.to >= least).unwrap_or(self.last());
        loop {
            let Some(mut first) = self.first_behind(from) else {
                // Nothing is reserved there.
                open.insert_range(..);
                return Some((Try { from, next: None }, open));
            };
            // A start at the end of a stretch is one of its starts.
            if first < possible {
                first = possible;
                from = self.at(first).from;
            }
            let Some(narrow) = self.last_narrow(first, from + span, (usable, hosts), &mut open) else {
                let next = (first != self.last()).then(|| self.at(first).to);
                return Some((Try { from, next }, open));
            };
            if narrow == self.last() {
                return None;
            }
            from = self.at(narrow).to;
        }
    }

    /// Returns a stretch from which on too few usable hosts are open until an instant, if there is one from `first` on. Otherwise
    /// `open` are the hosts that are open all this time.
    fn last_narrow(
        &self,
        first: Place,
        until: Time,
        (usable, hosts): (&FixedBitSet, usize),
        open: &mut FixedBitSet,
    ) -> Option<Place> {
        let number_of_chunks = self.0[first.0..].partition_point(|chunk| chunk.from() <= until);
        let during = |place: usize| {
            let chunk = &self.0[place];
            let begin = if place == first.0 { first.1 } else { 0 };
            let is_last = place + 1 == first.0 + number_of_chunks;
            let end = if is_last {
                chunk.stretches.partition_point(|one| one.from <= until)
            } else {
                chunk.stretches.len()
            };
            (chunk, begin..end)
        };
        let backwards = || (first.0..first.0 + number_of_chunks).rev();
        for place in backwards().filter(|place| self.0[*place].least < hosts) {
            let (chunk, range) = during(place);
            if let Some(narrow) = chunk.stretches[range.clone()].iter().rposition(|one| one.number < hosts) {
                return Some((place, range.start + narrow));
            }
        }
        open.insert_range(..);
        for place in backwards() {
            let (chunk, range) = during(place);
            if range.len() < chunk.stretches.len() {
                chunk.stretches[range.clone()].iter().for_each(|one| open.intersect_with(&one.open));
            } else {
                open.intersect_with(&chunk.open);
            }
            if open.intersection_count(usable) < hosts {
                return Some((place, self.narrow_in(place, range, until, (usable, hosts))));
            }
        }
        None
    }

    /// Returns the last stretch of a range in a chunk from which on too few usable hosts are open until an instant. That is so from
    /// the first one on.
    fn narrow_in(
        &self,
        place: usize,
        range: Range<usize>,
        until: Time,
        (usable, hosts): (&FixedBitSet, usize),
    ) -> usize {
        let mut open = usable.clone();
        for chunk in self.0[place + 1..].iter().take_while(|chunk| chunk.from() <= until) {
            if chunk.to() <= until {
                open.intersect_with(&chunk.open);
            } else {
                let during = chunk.stretches.iter().take_while(|one| one.from <= until);
                during.for_each(|one| open.intersect_with(&one.open));
            }
        }
        let from = range.start;
        let narrow = self.0[place].stretches[range].iter().rposition(|one| {
            open.intersect_with(&one.open);
            open.count_ones(..) < hosts
        });
        from + narrow.unwrap_or(0)
    }

    /// Returns those of the hosts that no reservation has at any time of a span, its ends included.
    pub(super) fn open(&self, from: Time, to: Time, mut hosts: FixedBitSet) -> FixedBitSet {
        let Some((chunk, nth)) = self.first_behind(from) else { return hosts };
        let first = self.0[chunk].stretches[nth..].iter();
        let others = self.0[chunk + 1..].iter().flat_map(|chunk| &chunk.stretches);
        let during = first.chain(others).take_while(|stretch| stretch.from <= to);
        during.for_each(|stretch| hosts.intersect_with(&stretch.open));
        hosts
    }

    /// Returns whether one of the hosts is reserved during a time, in units of the plan.
    pub(super) fn is_reserved(&self, from: Time, to: Time, hosts: &FixedBitSet) -> bool {
        let during = |stretch: &&Stretch| stretch.to > from && stretch.from < to;
        let mut chunks = self.0.iter().filter(|chunk| chunk.to() > from && chunk.from() < to);
        chunks.any(|chunk| {
            !hosts.is_subset(&chunk.open)
                && chunk.stretches.iter().filter(during).any(|one| !hosts.is_subset(&one.open))
        })
    }

    /// Reserves hosts.
    pub(super) fn reserve(&mut self, from: Time, to: Time, hosts: &FixedBitSet) {
        self.split(from);
        self.split(to);
        for chunk in self.0.iter_mut().filter(|chunk| chunk.to() > from && chunk.from() < to) {
            let begin = chunk.stretches.partition_point(|stretch| stretch.from < from);
            let end = chunk.stretches.partition_point(|stretch| stretch.to <= to);
            if begin < end {
                chunk.reserve(begin..end, hosts);
            }
        }
    }

    /// Splits the stretch over an instant.
    pub(super) fn split(&mut self, at: Time) {
        let Some((place, nth)) = self.first_behind(at) else { return };
        let stretches = &mut self.0[place].stretches;
        if stretches[nth].from >= at {
            return;
        }
        let first = Stretch { to: at, ..stretches[nth].clone() };
        stretches[nth].from = at;
        stretches.insert(nth, first);
        if stretches.len() > MOST {
            let behind = Chunk::new(stretches.split_off(MOST / 2));
            self.0[place] = Chunk::new(std::mem::take(stretches));
            self.0.insert(place + 1, behind);
        }
    }

    fn at(&self, (chunk, nth): Place) -> &Stretch {
        &self.0[chunk].stretches[nth]
    }

    /// Returns the place of the last stretch.
    fn last(&self) -> Place {
        let last = self.0.len().saturating_sub(1);
        (last, self.0.get(last).map_or(0, |chunk| chunk.stretches.len() - 1))
    }

    /// Returns the place of the first stretch that ends behind an instant.
    fn first_behind(&self, at: Time) -> Option<Place> {
        self.first_where(|stretch| stretch.to > at)
    }

    /// Returns the place of the first stretch with a property that all later ones have too.
    fn first_where(&self, has: impl Fn(&Stretch) -> bool) -> Option<Place> {
        let place = self.0.partition_point(|chunk| !chunk.stretches.last().is_some_and(&has));
        let chunk = self.0.get(place)?;
        Some((place, chunk.stretches.partition_point(|stretch| !has(stretch))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::draw;

    /// More than a word of a set.
    const HOSTS: usize = 70;

    fn at(ticks: i64) -> Time {
        Time::from_ticks(ticks)
    }

    /// Returns the hosts that reservations leave open from one instant until another one, both included, as the rule is written.
    fn open_slowly(made: &[(i64, i64, FixedBitSet)], from: i64, to: i64) -> FixedBitSet {
        let mut open = FixedBitSet::with_capacity(HOSTS);
        open.insert_range(..);
        for (begin, end, hosts) in made {
            if begin < end && begin <= &to && end > &from {
                open.difference_with(hosts);
            }
        }
        open
    }

    #[test]
    fn tries_are_those_of_each_stretch_with_enough_hosts() {
        const END: i64 = 200;
        let (mut skipped, mut found, mut chunks) = (0, 0, 0);
        for seed in 0..2_000 {
            let random =
                |nth: u64, most: i64| i64::try_from(draw(seed, 0, nth) % most.unsigned_abs()).unwrap();
            let mut all = FixedBitSet::with_capacity(HOSTS);
            all.insert_range(..);
            let mut stretches = Stretches::new(at(0), at(END), all);
            let mut made = vec![];
            let rarity = random(5, 3) * random(6, 20) + 3;
            for nth in (0..u64::try_from(random(0, 60)).unwrap()).map(|nth| 100 * nth + 10) {
                let begin = random(nth, END);
                let end = begin + random(nth + 1, 40);
                let mut hosts = FixedBitSet::with_capacity(HOSTS);
                hosts.extend((0..HOSTS).filter(|host| random(nth + 2 + *host as u64, rarity) == 0));
                let is_taken = made.iter().any(|(from, to, others): &(i64, i64, FixedBitSet)| {
                    from < to && *from < end && begin < *to && !others.is_disjoint(&hosts)
                });
                if begin < end && end <= END {
                    assert_eq!(stretches.is_reserved(at(begin), at(end), &hosts), is_taken, "{seed}");
                }
                stretches.reserve(at(begin), at(end), &hosts);
                made.push((begin, end, hosts));
            }
            chunks += usize::from(stretches.0.len() > 2);
            let mut marks: Vec<i64> = made.iter().flat_map(|(begin, end, _)| [*begin, *end]).collect();
            marks.retain(|mark| 0 < *mark && *mark < END);
            marks.sort_unstable();
            let (span, least, wanted) =
                (random(1, 30), random(2, END), usize::try_from(random(3, 60)).unwrap());
            let mut usable = FixedBitSet::with_capacity(HOSTS);
            usable.extend((0..HOSTS).filter(|host| random(2_000 + *host as u64, 8) > 0));
            // A search from stretch to stretch.
            let next_of = |from: i64| marks.iter().copied().find(|mark| *mark > from);
            let is_possible = |from: i64| {
                open_slowly(&made, from, from + span).intersection_count(&usable) >= wanted
                    && next_of(from).is_none_or(|next| next >= least)
            };
            let begin = random(4, END);
            let slow =
                std::iter::successors(Some(begin), |from| next_of(*from)).find(|from| is_possible(*from));
            let expect = slow.map(|from| {
                let next_try = Try { from: at(from), next: next_of(from).map(at) };
                (next_try, open_slowly(&made, from, from + span))
            });
            let fast = stretches.next_try(at(begin), Span::from_ticks(span), (&usable, wanted), at(least));
            assert_eq!(fast, expect, "{seed}");
            found += u32::from(slow.is_some());
            skipped += u32::from(slow.is_some_and(|from| from > begin));
        }
        assert!(skipped > 300 && found > 600 && chunks > 300, "{skipped}, {found}, {chunks}");
    }
}
