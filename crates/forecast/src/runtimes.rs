//! Likely runtimes of jobs that wait or run, from the jobs that ended.

use std::collections::{BTreeMap, VecDeque};

use miserly_core::{Entry, Request, Span, Time, span_of_work};

/// The number of ended jobs of a user that are kept.
const OF_USER: usize = 64;

/// The number of ended jobs of all users that are kept.
const OF_ALL: usize = 512;

/// An ended job.
#[derive(Clone, Copy, Debug)]
struct Past {
    procs: u64,
    estimate: Span,
    runtime: Span,
}

/// The ended jobs of each user, and of all.
///
/// The likely runtime of a job is the median over similar ended jobs that ran longer than it has run so far. Similar are
/// the jobs of its user with the same size and estimate, or else with the same estimate, or else all of its user. Without
/// any, the runtimes of all users' jobs count in proportion to their estimates.
#[derive(Clone, Debug, Default)]
pub struct RuntimeModel {
    users: BTreeMap<Option<u32>, VecDeque<Past>>,
    all: VecDeque<Past>,
}

impl RuntimeModel {
    /// Adds a job that ended.
    pub fn learn(&mut self, request: &Request, runtime: Span) {
        let past = Past { procs: request.procs().get(), estimate: request.estimate, runtime };
        push(self.users.entry(request.user).or_default(), past, OF_USER);
        push(&mut self.all, past, OF_ALL);
    }

    /// Returns the likely runtime of a job of the ledger, between its age and its estimate.
    pub fn runtime(&self, entry: &Entry, now: Time) -> Span {
        let request = &entry.request;
        let age = span_of_work(entry.done(now), request.procs());
        let likely = self.of_user(request, age).or_else(|| self.of_all(request, age));
        likely.unwrap_or(request.estimate).min(request.estimate)
    }

    fn of_user(&self, request: &Request, age: Span) -> Option<Span> {
        let past = self.users.get(&request.user)?;
        let procs = request.procs().get();
        let same = |past: &&Past| past.estimate == request.estimate;
        let runtimes = |similar: &dyn Fn(&&Past) -> bool| {
            let longer =
                past.iter().filter(similar).map(|past| past.runtime).filter(|runtime| *runtime > age);
            median(longer.collect())
        };
        runtimes(&|past| same(past) && past.procs == procs)
            .or_else(|| runtimes(&same))
            .or_else(|| runtimes(&|_| true))
    }

    fn of_all(&self, request: &Request, age: Span) -> Option<Span> {
        let scaled = |past: &Past| {
            let (runtime, estimate) =
                (i128::from(past.runtime.ticks()), i128::from(past.estimate.ticks().max(1)));
            let ticks = i128::from(request.estimate.ticks()) * runtime / estimate;
            Span::from_ticks(i64::try_from(ticks).unwrap_or(i64::MAX))
        };
        median(self.all.iter().map(scaled).filter(|runtime| *runtime > age).collect())
    }
}

/// Appends to the last `most` ended jobs.
fn push(past: &mut VecDeque<Past>, job: Past, most: usize) {
    if past.len() == most {
        past.pop_front();
    }
    past.push_back(job);
}

/// Returns the upper median of at least two values.
fn median(mut values: Vec<Span>) -> Option<Span> {
    if values.len() < 2 {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable(middle).1)
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
    fn check(model: &RuntimeModel, request: Request, expect: i64) {
        assert_eq!(model.runtime(&Entry::waiting(request, 0), Time::ZERO), Span::from_ticks(expect));
    }

    #[test]
    fn similar_jobs_come_first() {
        let mut model = RuntimeModel::default();
        check(&model, request(1, 2, 100), 100);
        for runtime in [10, 20, 30] {
            model.learn(&request(1, 2, 100), Span::from_ticks(runtime));
        }
        check(&model, request(1, 2, 100), 20);
        check(&model, request(1, 4, 100), 20);
        check(&model, request(1, 4, 15), 15);
        // Another user: a fifth of the estimate.
        check(&model, request(2, 4, 1000), 200);
    }
}
