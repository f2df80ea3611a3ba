//! The idle jobs in the order of their ranks, which grow at different rates.

use miserly_core::{Entry, JobId, Ledger, Time};

use super::pe_allocator;
use super::rank::{Criterion, Facts, Rank};

/// A job with its rank and its admission number.
pub(super) type Ranked = (Rank, u64, JobId);

/// The idle jobs, the most urgent first.
///
/// They are in the order of one instant. Few jobs overtake others until the next one, so sorting
/// them again is O(w) for w jobs.
#[derive(Debug)]
pub(super) struct Urgency {
    criterion: Criterion,
    lines: Vec<Line>,
    /// The instant of the order.
    at: Time,
    /// By the job.
    known: Vec<Option<Line>>,
}

/// An idle job, and what its rank depends on.
#[derive(Clone, Copy, Debug)]
struct Line {
    facts: Facts,
    admitted: u64,
    job: JobId,
    /// Whether it had processors when it was suspended.
    suspended: bool,
}

impl Urgency {
    /// Returns no jobs.
    pub(super) const fn empty(criterion: Criterion) -> Urgency {
        Urgency { criterion, lines: vec![], at: Time::ZERO, known: vec![] }
    }

    pub(super) fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = Urgency { at: now, ..Urgency::empty(self.criterion) };
        ledger.waiting().chain(ledger.suspended()).for_each(|job| self.insert(job, ledger.entry(job)));
    }

    /// Adds a job that is idle now. O(log w), and the jobs behind it move.
    pub(super) fn insert(&mut self, job: JobId, entry: &Entry) {
        let suspended = pe_allocator::own(entry).is_some();
        let line = Line { facts: Facts::new(entry), admitted: entry.admitted, job, suspended };
        let to = self.place(&line);
        self.lines.insert(to, line);
        if self.known.len() <= job.index() {
            self.known.resize(job.index() + 1, None);
        }
        self.known[job.index()] = Some(line);
    }

    /// Removes a job, if it is there. O(log w), and the jobs behind it move.
    pub(super) fn remove(&mut self, job: JobId) {
        let Some(line) = self.known.get_mut(job.index()).and_then(Option::take) else { return };
        let at = self.place(&line);
        debug_assert_eq!(self.lines[at].job, job, "the order of one instant");
        self.lines.remove(at);
    }

    /// Returns the rank of an idle job.
    pub(super) fn rank_of(&self, job: JobId, now: Time) -> Option<Rank> {
        self.known.get(job.index())?.as_ref().map(|line| line.facts.rank(self.criterion, now))
    }

    /// Returns the place of a job.
    fn place(&self, line: &Line) -> usize {
        let rank = self.rank(line);
        self.lines.partition_point(|other| precedes(self.rank(other), other.admitted, rank, line.admitted))
    }

    /// Sorts the jobs by their ranks of this instant.
    ///
    /// O(w), and O(log w) for each job that overtakes others.
    pub(super) fn sort(&mut self, now: Time) {
        if now == self.at || self.criterion == Criterion::Remaining {
            return;
        }
        self.at = now;
        let mut last: Option<Rank> = None;
        for at in 0..self.lines.len() {
            let line = self.lines[at];
            let rank = self.rank(&line);
            let before = |last: Rank| precedes(last, self.lines[at - 1].admitted, rank, line.admitted);
            if last.is_none_or(before) {
                last = Some(rank);
                continue;
            }
            let passed = |other: &Line| precedes(self.rank(other), other.admitted, rank, line.admitted);
            let to = self.lines[..at].partition_point(passed);
            self.lines[to..=at].rotate_right(1);
        }
    }

    /// Returns the jobs in their order, which is that of this instant after [`Urgency::sort`].
    pub(super) fn ranked(&self) -> impl Iterator<Item = Ranked> {
        self.lines.iter().map(|line| self.ranked_as(line))
    }

    /// Returns the suspended jobs in that order.
    pub(super) fn suspended(&self) -> impl Iterator<Item = Ranked> {
        self.lines.iter().filter(|line| line.suspended).map(|line| self.ranked_as(line))
    }

    fn ranked_as(&self, line: &Line) -> Ranked {
        (self.rank(line), line.admitted, line.job)
    }

    fn rank(&self, line: &Line) -> Rank {
        line.facts.rank(self.criterion, self.at)
    }
}

/// Returns whether a job of this rank and admission number comes before another one.
fn precedes(rank: Rank, admitted: u64, other: Rank, its: u64) -> bool {
    rank.cmp(&other).reverse().then(admitted.cmp(&its)).is_lt()
}

#[cfg(test)]
mod tests {
    use miserly_core::{Holds, HostId, PeSet, Placement, Request, Resources, Span, State, draw};

    use super::*;

    /// Returns a job that waits, or that is suspended after some work.
    fn entry(nth: i64, now: Time) -> Entry {
        let random = |number, most: u64| i64::try_from(draw(41, nth, number) % most).unwrap();
        let (submit, estimate) =
            (now - Span::from_ticks(random(0, 9_000_000)), Span::from_ticks(random(1, 20) * 500_000));
        let mut entry =
            Entry::waiting(Request::new(0, submit, estimate, Resources::cpus(2)), nth.unsigned_abs());
        if random(2, 2) == 0 {
            let (placement, holds) =
                (Placement::on_pes(HostId(0), Resources::cpus(2), PeSet::first(2)), Holds::AllButCpus);
            entry.state = State::Suspended { start: submit, until: Time::MAX, by: 0, placement, holds };
            entry.progress.done = u128::from(draw(41, nth, 3) % 2_000_000);
        }
        entry
    }

    #[test]
    fn the_order_is_that_of_sorted_ranks() {
        for criterion in [Criterion::Xfactor { factor: None }, Criterion::Remaining] {
            let mut urgency = Urgency::empty(criterion);
            let mut naive: Vec<(JobId, Entry)> = vec![];
            let (mut now, mut overtaken) = (Time::ZERO, 0);
            for step in 0..4_000 {
                let random = |number, most: u64| draw(42, step, number) % most;
                let full = naive.len() as u64 > random(0, 60);
                if full {
                    let at = usize::try_from(random(1, naive.len() as u64)).unwrap();
                    urgency.remove(naive.swap_remove(at).0);
                } else {
                    let entry = entry(step, now);
                    let job =
                        (0..99).map(JobId).find(|job| naive.iter().all(|(other, _)| job != other)).unwrap();
                    urgency.insert(job, &entry);
                    naive.push((job, entry));
                }
                if random(2, 3) > 0 {
                    continue;
                }
                let before: Vec<JobId> = urgency.ranked().map(|(.., job)| job).collect();
                now = now + Span::from_ticks(i64::try_from(random(3, 400_000)).unwrap());
                urgency.sort(now);
                let order: Vec<JobId> = urgency.ranked().map(|(.., job)| job).collect();
                naive.sort_by_key(|(_, entry)| {
                    (std::cmp::Reverse(criterion.rank(entry, now)), entry.admitted)
                });
                assert_eq!(order, naive.iter().map(|(job, _)| *job).collect::<Vec<_>>(), "at {now}");
                overtaken += u32::from(order != before);
            }
            let expected = if criterion == Criterion::Remaining { 0..=0 } else { 200..=1_400 };
            assert!(expected.contains(&overtaken), "{overtaken} of 1333");
        }
    }
}
