//! The time of a cycle between changes of its reservations.

use fixedbitset::FixedBitSet;
use miserly_core::{Span, Time};

/// The hosts without a reservation over the time of a cycle.
#[derive(Debug, Default)]
pub(super) struct Stretches(Vec<Stretch>);

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

/// An instant from which a job can be tried, and the stretch there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Try {
    pub(super) from: Time,
    /// The end of the stretch, unless it is the last one.
    pub(super) next: Option<Time>,
}

/// The number of stretches after which open hosts are counted: that takes longer than finding them.
const CHECKED: usize = 16;

impl Stretches {
    /// Returns a time without reservations.
    pub(super) fn new(from: Time, to: Time, open: FixedBitSet) -> Stretches {
        Stretches(vec![Stretch { from, to, number: open.count_ones(..), open }])
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
    /// With n stretches and h hosts, O(n h) in steps of 64 hosts for each try, and O(n) if one stretch alone has too few.
    pub(super) fn next_try(
        &self,
        from: Time,
        span: Span,
        (usable, hosts): (&FixedBitSet, usize),
        least: Time,
    ) -> Option<(Try, FixedBitSet)> {
        let mut from = from;
        loop {
            let mut first = self.first_behind(from);
            // A start at the end of a stretch is one of its starts.
            let possible =
                self.0.partition_point(|stretch| stretch.to < least).min(self.0.len().saturating_sub(1));
            if first < possible {
                first = possible;
                from = self.0[first].from;
            }
            let during = self.0[first..].partition_point(|stretch| stretch.from <= from + span);
            let during = &self.0[first..first + during];
            let mut open = FixedBitSet::with_capacity(usable.len());
            open.insert_range(..);
            let too_narrow = during.iter().rposition(|stretch| stretch.number < hosts).or_else(|| {
                let mut backwards = during.iter().enumerate().rev();
                let together = backwards.find(|(nth, stretch)| {
                    open.intersect_with(&stretch.open);
                    nth % CHECKED == 0 && open.intersection_count(usable) < hosts
                });
                together.map(|(nth, _)| nth)
            });
            let Some(narrow) = too_narrow else {
                let next = self.0.get(first).filter(|_| first + 1 < self.0.len()).map(|stretch| stretch.to);
                return Some((Try { from, next }, open));
            };
            if first + narrow + 1 == self.0.len() {
                return None;
            }
            from = self.0[first + narrow].to;
        }
    }

    /// Returns those of the hosts that no reservation has at any time of a span, its ends included.
    pub(super) fn open(&self, from: Time, to: Time, hosts: FixedBitSet) -> FixedBitSet {
        let during = self.0[self.first_behind(from)..].iter().take_while(|stretch| stretch.from <= to);
        during.fold(hosts, |mut open, stretch| {
            open.intersect_with(&stretch.open);
            open
        })
    }

    /// Returns whether one of the hosts is reserved during a time, in units of the plan.
    pub(super) fn is_reserved(&self, from: Time, to: Time, hosts: &FixedBitSet) -> bool {
        let mut during = self.0[self.first_behind(from)..].iter().take_while(|stretch| stretch.from < to);
        during.any(|stretch| !hosts.is_subset(&stretch.open))
    }

    /// Reserves hosts.
    pub(super) fn reserve(&mut self, from: Time, to: Time, hosts: &FixedBitSet) {
        self.split(from);
        self.split(to);
        let begin = self.0.partition_point(|stretch| stretch.from < from);
        for stretch in self.0[begin..].iter_mut().take_while(|stretch| stretch.to <= to) {
            stretch.number -= stretch.open.intersection_count(hosts);
            stretch.open.difference_with(hosts);
        }
    }

    /// Splits the stretch over an instant.
    pub(super) fn split(&mut self, at: Time) {
        let place = self.first_behind(at);
        if let Some(stretch) = self.0.get_mut(place).filter(|stretch| stretch.from < at) {
            let first = Stretch { to: at, ..stretch.clone() };
            stretch.from = at;
            self.0.insert(place, first);
        }
    }

    /// Returns the place of the first stretch that ends behind an instant.
    fn first_behind(&self, at: Time) -> usize {
        self.0.partition_point(|stretch| stretch.to <= at)
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
        const END: i64 = 60;
        let (mut skipped, mut found) = (0, 0);
        for seed in 0..2_000 {
            let random =
                |nth: u64, most: i64| i64::try_from(draw(seed, 0, nth) % most.unsigned_abs()).unwrap();
            let mut all = FixedBitSet::with_capacity(HOSTS);
            all.insert_range(..);
            let mut stretches = Stretches::new(at(0), at(END), all);
            let mut made = vec![];
            for nth in (0..u64::try_from(random(0, 12)).unwrap()).map(|nth| 100 * nth + 10) {
                let begin = random(nth, END);
                let end = begin + random(nth + 1, 40);
                let mut hosts = FixedBitSet::with_capacity(HOSTS);
                hosts.extend((0..HOSTS).filter(|host| random(nth + 2 + *host as u64, 3) == 0));
                let is_taken = made.iter().any(|(from, to, others): &(i64, i64, FixedBitSet)| {
                    from < to && *from < end && begin < *to && !others.is_disjoint(&hosts)
                });
                if begin < end && end <= END {
                    assert_eq!(stretches.is_reserved(at(begin), at(end), &hosts), is_taken, "{seed}");
                }
                stretches.reserve(at(begin), at(end), &hosts);
                made.push((begin, end, hosts));
            }
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
        assert!(skipped > 300 && found > 600, "{skipped}, {found}");
    }
}
