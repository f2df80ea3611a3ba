//! Suspension by rank: the xfactor, or the remaining time.

use miserly_core::Span;

use super::processors::{enough, meet, within};
use super::world::{State, World};
use super::{NaiveLimit, NaiveRule};

/// (wait + estimate) / estimate, or the negative remaining time. A larger rank is more urgent.
#[derive(Clone, Copy)]
struct Rank {
    over: i128,
    under: i128,
}

impl World<'_> {
    pub(super) fn pass_by_rank(&mut self) {
        while self.sees_to_somebody() {}
    }

    /// Serves the most urgent job that can be served. Returns whether there was one.
    fn sees_to_somebody(&mut self) -> bool {
        for job in self.most_urgent_first(self.idle()) {
            if let Some(pes) = self.place(job, &self.available()) {
                self.go_on(job, pes);
                return true;
            }
            if let Some((victims, pes)) = self.victims_of(job) {
                self.take_over(job, &victims, pes);
                return true;
            }
        }
        false
    }

    /// Sorts jobs by rank, then by admission.
    pub(super) fn most_urgent_first(&self, mut jobs: Vec<usize>) -> Vec<usize> {
        jobs.sort_by(|&one, &other| {
            let (one, other) = (self.rank(one), self.rank(other));
            (other.over * one.under).cmp(&(one.over * other.under))
        });
        jobs
    }

    fn rank(&self, job: usize) -> Rank {
        let estimate = self.estimate(job);
        match self.rules.rule {
            NaiveRule::Remaining => {
                let left = (estimate - self.ran(job)).max(Span::ZERO);
                Rank { over: -i128::from(left.ticks()), under: 1 }
            }
            _ => Rank {
                over: i128::from(self.waited(job).ticks() + estimate.ticks()),
                under: i128::from(estimate.ticks()),
            },
        }
    }

    fn estimate(&self, job: usize) -> Span {
        self.jobs[job].request.estimate.max(Span::from_ticks(1_000_000))
    }

    /// Returns whether the rank of the first job allows it to suspend the second.
    fn entitled(&self, job: usize, running: usize) -> bool {
        let (mine, its) = (self.rank(job), self.rank(running));
        match self.rules.rule {
            NaiveRule::Xfactor { factor: Some(factor), .. } => {
                let (mine, its) = (mine.over * its.under, its.over * mine.under);
                mine > its && mine * 1_000_000 >= its * i128::from(factor)
            }
            NaiveRule::Remaining => mine.over > its.over,
            _ => false,
        }
    }

    /// Returns the victims of a job, and its processors after their suspension.
    fn victims_of(&self, job: usize) -> Option<(Vec<usize>, Vec<bool>)> {
        let mut running = self.those(State::Running);
        running.retain(|&other| self.can_be_suspended(other));
        match self.own(job) {
            Some(own) => self.victims_on(job, own, running),
            None => self.victims_anywhere(job, running),
        }
    }

    /// Returns whether the job works and is within its limit.
    fn can_be_suspended(&self, job: usize) -> bool {
        let standing = &self.standing[job];
        let limited = match self.rules.rule {
            NaiveRule::Xfactor { limit: Some(limit), .. } => self.beyond(job, limit),
            _ => false,
        };
        !standing.gone && standing.works_from <= self.now && !limited
    }

    /// Returns all jobs on the processors of a job that must be resumed there.
    fn victims_on(&self, job: usize, own: Vec<bool>, running: Vec<usize>) -> Option<(Vec<usize>, Vec<bool>)> {
        let there = running.into_iter().filter(|&other| meet(&self.standing[other].pes, &own));
        let there: Vec<usize> = there.collect();
        let may = within(&own, &self.had(&there))
            && there.iter().all(|&other| self.entitled(job, other))
            && self.has_rest(job, &there);
        may.then_some((there, own))
    }

    /// Returns the least urgent jobs until the job fits, without the most urgent of them that are
    /// unnecessary.
    fn victims_anywhere(&self, job: usize, running: Vec<usize>) -> Option<(Vec<usize>, Vec<bool>)> {
        let wanted = self.procs(job);
        let comes_back = self.standing[job].state == State::Suspended;
        let half_width = matches!(self.rules.rule, NaiveRule::Xfactor { .. }) && !comes_back;
        let mut candidates = running;
        candidates
            .retain(|&other| self.entitled(job, other) && (!half_width || 2 * wanted >= self.procs(other)));
        // Among equal ranks, the first to arrive is suspended first.
        candidates.sort_by(|&one, &other| {
            let (one, other) = (self.rank(one), self.rank(other));
            (one.over * other.under).cmp(&(other.over * one.under))
        });
        let victims = enough(&candidates, |victims| self.fits_without(job, victims))?;
        let pes = self.choose(job, &self.had(&victims), &victims)?;
        Some((victims, pes))
    }
}

/// The limits.
impl World<'_> {
    /// Returns the category, by length and then by width.
    pub(super) fn category(&self, job: usize) -> usize {
        let minutes = |count: i64| Span::from_ticks(count * 60_000_000);
        let estimate = self.estimate(job);
        let length = [10, 60, 480].iter().filter(|most| estimate > minutes(**most)).count();
        let width = [1, 8, 32].iter().filter(|most| self.procs(job) > **most).count();
        4 * length + width
    }

    /// Returns (wait + runtime) / runtime in millionths. A runtime below ten seconds counts as ten
    /// seconds.
    pub(super) fn slowdown_at_end(&self, job: usize) -> u128 {
        let runtime = self.jobs[job].runtime.0;
        let wait = self.now - self.jobs[job].request.submit - runtime;
        let bounded = u128::from(runtime.ticks().max(10_000_000).unsigned_abs());
        (u128::from(wait.ticks().unsigned_abs()) + bounded) * 1_000_000 / bounded
    }

    /// Returns whether the xfactor of a job exceeds its limit: a multiple of the mean of its
    /// category. A category without ends has no limit.
    fn beyond(&self, job: usize, limit: NaiveLimit) -> bool {
        let category = self.category(job);
        let ended =
            self.slowdowns.iter().filter(|(other, _)| *other == category).map(|(_, slowdown)| *slowdown);
        let (sum, ended) = match limit.means {
            Some(means) => (u128::from(means[category]), 1),
            None => (ended.clone().sum(), ended.count() as u128),
        };
        let rank = self.rank(job);
        let (over, under) = (rank.over.unsigned_abs(), rank.under.unsigned_abs());
        ended > 0 && over * ended * 1_000_000_000_000 > sum * u128::from(limit.factor) * under
    }
}
