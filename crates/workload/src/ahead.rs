//! Jobs that another thread reads ahead of their use.

use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::jobs::{Job, Jobs, LineCounts};
use crate::trace::TraceError;

/// The jobs that are handed over at a time.
const BATCH: usize = 256;

/// The batches that are ready, at most. The thread waits when nobody takes them.
const READY: usize = 8;

type Batch = Vec<Result<Job, TraceError>>;

impl Jobs<'_> {
    /// Calls `work` with the jobs, which another thread reads, unpacks and parses meanwhile. Returns the counts of all
    /// lines that were read, which may be more than `work` took.
    ///
    /// The jobs are the same as without it, and an error comes at the same place. It is the last item. The other
    /// thread calls `each` with every job that it reads.
    pub fn read_ahead<T>(
        self,
        each: impl FnMut(&Job) + Send,
        work: impl FnOnce(&mut dyn Iterator<Item = Result<Job, TraceError>>) -> T,
    ) -> (T, LineCounts) {
        let source = Mutex::new(Source { jobs: self, each });
        let take = || source.lock().unwrap_or_else(PoisonError::into_inner);
        let done = thread::scope(|scope| {
            let (sender, batches) = mpsc::sync_channel(READY);
            let reader = thread::Builder::new().name("reader".to_owned());
            match reader.spawn_scoped(scope, move || send(&mut *take(), &sender)) {
                Ok(_) => work(&mut batches.into_iter().flatten()),
                // The machine has no thread left.
                Err(_) => work(&mut *take()),
            }
        });
        let counts = take().jobs.counts().clone();
        (done, counts)
    }
}

/// The jobs, and the function that is called with each of them.
struct Source<'a, F> {
    jobs: Jobs<'a>,
    each: F,
}

impl<F: FnMut(&Job)> Iterator for Source<'_, F> {
    type Item = Result<Job, TraceError>;

    fn next(&mut self) -> Option<Result<Job, TraceError>> {
        let job = self.jobs.next();
        if let Some(Ok(job)) = &job {
            (self.each)(job);
        }
        job
    }
}

/// Sends the jobs up to the first error, as long as somebody takes them.
fn send(jobs: &mut impl Iterator<Item = Result<Job, TraceError>>, batches: &SyncSender<Batch>) {
    let mut is_last = false;
    while !is_last {
        let mut batch = Batch::with_capacity(BATCH);
        while batch.len() < BATCH && !is_last {
            let job = jobs.next();
            is_last = job.as_ref().is_none_or(Result::is_err);
            batch.extend(job);
        }
        if batches.send(batch).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobOptions, Trace};

    fn lines(lines: u64) -> String {
        let line = |job: u64| format!("{job} {job} -1 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n");
        let mut text: String = "; MaxProcs: 8\n".to_owned();
        (1..=lines).for_each(|job| text.push_str(&line(job)));
        text
    }

    fn log(text: String) -> Trace {
        Trace::memory("log", text.into_bytes())
    }

    fn jobs(trace: &Trace) -> Jobs<'_> {
        let options = JobOptions { procs: miserly_core::Procs::new(8), ..JobOptions::default() };
        Jobs::new(trace, true, options).unwrap()
    }

    #[test]
    fn jobs_come_in_order_whatever_their_number() {
        for jobs_in_log in [0, 1, 255, 256, 257, 5_000] {
            let trace = log(lines(jobs_in_log));
            let numbers = |job: Result<Job, _>| job.unwrap().request.number;
            let mut seen = Vec::new();
            let (read, counts) = jobs(&trace).read_ahead(
                |job| seen.push(job.request.number),
                |jobs| jobs.map(numbers).collect::<Vec<_>>(),
            );
            assert_eq!(read, seen);
            let mut same = jobs(&trace);
            assert_eq!(read, same.by_ref().map(numbers).collect::<Vec<_>>());
            assert_eq!(counts, *same.counts());
            assert_eq!(counts.used, jobs_in_log);
        }
    }

    #[test]
    fn an_error_is_the_last_item() {
        let trace = log(lines(300) + "broken\n1 2 3\n");
        let (read, _) =
            jobs(&trace).read_ahead(|_| {}, |jobs| jobs.map(|job| job.is_ok()).collect::<Vec<_>>());
        assert_eq!(read.len(), 301);
        assert!(read[..300].iter().all(|good| *good) && !read[300]);
    }

    #[test]
    fn a_reader_that_nobody_waits_for_ends() {
        let trace = log(lines(100_000));
        let (first, counts) = jobs(&trace).read_ahead(|_| {}, |jobs| jobs.next().is_some());
        assert!(first && counts.used < 100_000, "{counts:?}");
    }
}
