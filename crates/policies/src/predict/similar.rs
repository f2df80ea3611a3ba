//! The lengths of a job by the runtimes of similar jobs of its user.

use miserly_core::{Ledger, Persistent, Request, Span};

use super::Lengths;

/// The number of ended jobs that are remembered of each user.
const REMEMBERED: usize = 40;

/// The number of runtimes in a sample, at most. The newest ones count.
const SAMPLE: usize = 10;

/// The least number of runtimes in a sample.
const LEAST_SAMPLE: usize = 2;

/// In the likely length a runtime below this number of seconds counts as it.
const LEAST_RUNTIME: u64 = 10;

/// What makes an ended job similar to another one, and its runtime. Times are in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndedJob {
    procs: u64,
    estimate: u64,
    runtime: u64,
}

/// The newest ended jobs of a user, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndedJobs(Vec<EndedJob>);

impl EndedJobs {
    /// Adds a job that ended.
    pub(super) fn add(&mut self, request: &Request, runtime: Span) {
        let oldest = self.0.len().saturating_sub(REMEMBERED - 1);
        self.0.drain(..oldest);
        let (estimate, runtime) = (seconds(request.estimate), seconds(runtime));
        self.0.push(EndedJob { procs: request.procs().get(), estimate, runtime });
    }

    /// Returns the sorted runtimes of the most similar jobs, if there are enough.
    fn sample(&self, request: &Request) -> Option<Vec<u64>> {
        let (procs, estimate) = (request.procs().get(), seconds(request.estimate));
        let same_estimate = |job: &&EndedJob| job.estimate == estimate;
        let newest = || self.0.iter().rev();
        let mut sample = runtimes(newest().filter(same_estimate).filter(|job| job.procs == procs))
            .or_else(|| runtimes(newest().filter(same_estimate)))
            .or_else(|| runtimes(newest()))?;
        for runtime in &mut sample {
            *runtime = (*runtime).min(estimate);
        }
        sample.sort_unstable();
        Some(sample)
    }
}

fn runtimes<'a>(jobs: impl Iterator<Item = &'a EndedJob>) -> Option<Vec<u64>> {
    let found: Vec<u64> = jobs.take(SAMPLE).map(|job| job.runtime).collect();
    (found.len() >= LEAST_SAMPLE).then_some(found)
}

/// Returns the lengths of a submitted job: its estimate, where too little is known of its user.
pub(super) fn lengths(request: &Request, ledger: &Ledger) -> Lengths {
    let sample = request.user.and_then(|user| ledger.user_state::<EndedJobs>(user).sample(request));
    let Some(sample) = sample else { return Lengths::one(request.estimate) };
    let length = |secs: u64| {
        let span = i64::try_from(secs).ok().and_then(Span::from_secs).unwrap_or(Span::MAX);
        span.min(request.estimate)
    };
    Lengths {
        likely: length(middle(&sample)),
        optimistic: length(quantile(&sample, 1, 4)),
        cautious: length(quantile(&sample, 9, 10)),
    }
}

/// Returns the least value of a sorted sample that the share `times / of` does not exceed.
fn quantile(sample: &[u64], times: usize, of: usize) -> u64 {
    let rank = (sample.len() * times).div_ceil(of);
    sample[rank.saturating_sub(1)]
}

/// Returns the geometric mean of the arithmetic and the harmonic mean, rounded down.
fn middle(sample: &[u64]) -> u64 {
    let counted = || sample.iter().map(|runtime| u128::from((*runtime).max(LEAST_RUNTIME)));
    let inverse: u128 = counted().map(|runtime| (1 << 64) / runtime).sum();
    // Estimates are below 2^44 s, so the square is below 2^128.
    let square = (counted().sum::<u128>() << 64) / inverse.max(1);
    u64::try_from(square.isqrt()).unwrap_or(u64::MAX)
}

fn seconds(span: Span) -> u64 {
    u64::try_from(span.ticks() / 1_000_000).unwrap_or(0)
}

impl Persistent for EndedJobs {
    const NAME: &'static str = "predict/ended-jobs";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.iter().flat_map(|job| [job.procs, job.estimate, job.runtime]));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<EndedJobs> {
        let job = |words: &[u64]| match *words {
            [procs, estimate, runtime] => Some(EndedJob { procs, estimate, runtime }),
            _ => None,
        };
        words.chunks(3).map(job).collect::<Option<_>>().map(EndedJobs)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Constraints, PolicyState, Procs, Resources};

    use super::*;

    fn request(procs: u64, estimate: i64) -> Request {
        Request {
            number: 1,
            submit: miserly_core::Time::ZERO,
            estimate: Span::from_secs(estimate).unwrap(),
            demand: Resources::cpus(Procs::new(procs)),
            form: miserly_core::Form::ANY,
            user: Some(1),
            group: None,
            queue: None,
            sizes: None,
            constraints: Constraints::NONE,
            devices: None,
            known_runtime: None,
        }
    }

    fn ended(jobs: impl IntoIterator<Item = (u64, i64, i64)>) -> EndedJobs {
        let mut ended = EndedJobs::default();
        for (procs, estimate, runtime) in jobs {
            ended.add(&request(procs, estimate), Span::from_secs(runtime).unwrap());
        }
        ended
    }

    #[test]
    fn the_narrowest_class_with_two_jobs_decides() {
        let past = ended([(1, 60, 1), (2, 60, 2), (2, 60, 3), (2, 90, 4), (9, 30, 50)]);
        assert_eq!(past.sample(&request(2, 60)), Some(vec![2, 3]));
        assert_eq!(past.sample(&request(1, 60)), Some(vec![1, 2, 3]));
        assert_eq!(past.sample(&request(2, 40)), Some(vec![1, 2, 3, 4, 40]));
        assert_eq!(ended([(1, 60, 1)]).sample(&request(1, 60)), None);
    }

    #[test]
    fn the_newest_jobs_count() {
        let past = ended((0..150).map(|runtime| (1, 1000, runtime)));
        assert_eq!(past.0.len(), REMEMBERED);
        assert_eq!(past.sample(&request(1, 1000)), Some((140..150).collect()));
        let mut state = PolicyState::EMPTY;
        state.set(&past);
        assert_eq!(state.get::<EndedJobs>(), past);
    }

    #[test]
    fn means_and_quantiles() {
        // The means of 10, 10, 1000 are 340 and 14.925.
        assert_eq!(middle(&[1, 10, 1000]), 71);
        assert_eq!(middle(&[100, 100]), 100);
        assert_eq!(middle(&[1 << 43; 20]), 1 << 43);
        let twenty: Vec<u64> = (1..=20).collect();
        assert_eq!((quantile(&twenty, 1, 4), quantile(&twenty, 9, 10)), (5, 18));
        assert_eq!((quantile(&[3, 7], 1, 4), quantile(&[3, 7], 9, 10)), (3, 7));
    }
}
