//! Likely runtimes of jobs that wait or run, from the jobs that ended.

use std::collections::{BTreeMap, VecDeque};

use miserly_core::{Entry, Request, Span, Time, span_of_work};

/// The number of ended jobs of a user that are kept.
const OF_USER: usize = 64;

/// The number of ended jobs of all users that are kept.
const OF_ALL: usize = 128;

/// The fewest similar jobs from which a runtime is drawn.
const FEW: usize = 3;

/// An ended job.
#[derive(Clone, Copy, Debug)]
struct Past {
    procs: u64,
    estimate: Span,
    runtime: Span,
}

/// The ended jobs of each user, and of all.
///
/// The likely runtimes of a job are those of similar ended jobs that ran longer than it has run so far. Similar are the jobs
/// of its user with the same size and estimate, or else with the same estimate, or else all of its user. With fewer than
/// three of them, the runtimes of all users' jobs count in proportion to their estimates.
#[derive(Clone, Debug, Default)]
pub struct RuntimeModel {
    users: BTreeMap<Option<u32>, VecDeque<Past>>,
    all: VecDeque<Past>,
}

/// The runtimes that a job may have, ascending. None is above its estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtimes(Vec<Span>);

impl Runtimes {
    /// Returns one of them by a random number. `None` if there are none.
    pub fn pick(&self, random: u64) -> Option<Span> {
        let place = usize::try_from(random % (self.0.len().max(1) as u64)).unwrap_or(0);
        self.0.get(place).copied()
    }
}

impl RuntimeModel {
    /// Adds a job that ended.
    pub fn learn(&mut self, request: &Request, runtime: Span) {
        let past = Past { procs: request.procs().get(), estimate: request.estimate, runtime };
        push(self.users.entry(request.user).or_default(), past, OF_USER);
        push(&mut self.all, past, OF_ALL);
    }

    /// Returns the likely runtimes of a job of the ledger, each above its age.
    pub fn runtimes(&self, entry: &Entry, now: Time) -> Runtimes {
        let request = &entry.request;
        let age = span_of_work(entry.done(now), request.procs());
        let found = self.of_user(request, age).unwrap_or_else(|| self.of_all(request, age));
        let mut runtimes: Vec<Span> =
            found.into_iter().map(|runtime| runtime.min(request.estimate)).collect();
        runtimes.sort_unstable();
        Runtimes(runtimes)
    }

    fn of_user(&self, request: &Request, age: Span) -> Option<Vec<Span>> {
        let past = self.users.get(&request.user)?;
        let procs = request.procs().get();
        let same = |past: &&Past| past.estimate == request.estimate;
        let longer = |similar: &dyn Fn(&&Past) -> bool| {
            let runtimes = past.iter().filter(similar).map(|past| past.runtime);
            let longer: Vec<Span> = runtimes.filter(|runtime| *runtime > age).collect();
            (longer.len() >= FEW).then_some(longer)
        };
        longer(&|past| same(past) && past.procs == procs)
            .or_else(|| longer(&same))
            .or_else(|| longer(&|_| true))
    }

    fn of_all(&self, request: &Request, age: Span) -> Vec<Span> {
        let scaled = |past: &Past| {
            let (runtime, estimate) =
                (i128::from(past.runtime.ticks()), i128::from(past.estimate.ticks().max(1)));
            let ticks = i128::from(request.estimate.ticks()) * runtime / estimate;
            Span::from_ticks(i64::try_from(ticks).unwrap_or(i64::MAX))
        };
        self.all.iter().map(scaled).filter(|runtime| *runtime > age).collect()
    }
}

/// Appends to the last `most` ended jobs.
fn push(past: &mut VecDeque<Past>, job: Past, most: usize) {
    if past.len() == most {
        past.pop_front();
    }
    past.push_back(job);
}

#[cfg(test)]
mod tests {
    use miserly_core::Resources;

    use super::*;

    fn request(user: u32, procs: u64, estimate: i64) -> Request {
        let request = Request::new(1, Time::ZERO, Span::from_ticks(estimate), Resources::cpus(procs));
        Request { user: Some(user), ..request }
    }

    #[track_caller]
    fn check(model: &RuntimeModel, request: Request, expect: &[i64]) {
        let runtimes = model.runtimes(&Entry::waiting(request, 0), Time::ZERO);
        assert_eq!(runtimes.0, expect.iter().copied().map(Span::from_ticks).collect::<Vec<_>>());
    }

    #[test]
    fn similar_jobs_come_first() {
        let mut model = RuntimeModel::default();
        check(&model, request(1, 2, 100), &[]);
        for runtime in [10, 30, 20] {
            model.learn(&request(1, 2, 100), Span::from_ticks(runtime));
        }
        check(&model, request(1, 2, 100), &[10, 20, 30]);
        check(&model, request(1, 4, 100), &[10, 20, 30]);
        check(&model, request(1, 4, 15), &[10, 15, 15]);
        // Another user: in proportion to the estimate.
        check(&model, request(2, 4, 1000), &[100, 200, 300]);
    }
}
