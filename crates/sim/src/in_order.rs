//! Reordering of finished jobs from the order of their ends to that of their submissions.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use miserly_core::{JobNumber, Refusal, Request, Time};

use crate::finished::{Finished, Observer};

/// A consumer of finished jobs one by one, such as a writer of a file format.
pub trait Sink {
    /// Takes the next job.
    ///
    /// # Errors
    /// If it cannot be written.
    fn job(&mut self, job: &Finished) -> io::Result<()>;
}

/// An observer that passes the jobs to a sink in the order of their submission.
///
/// Jobs that ended before an earlier submitted one are buffered. Refused jobs are skipped.
pub struct InOrder<S> {
    sink: S,
    /// The jobs that are not yet passed on, by submission.
    pending: VecDeque<Pending>,
    /// The number of jobs that were passed on or skipped.
    done: u64,
    /// The ranks of each job in the system, by its number. A number that is used twice has two.
    ranks: BTreeMap<JobNumber, VecDeque<(Time, u64)>>,
    submitted: u64,
}

/// The state of a job that is not yet passed on.
enum Pending {
    InSystem,
    Ended(Box<Finished>),
    Refused,
}

impl<S: Sink> InOrder<S> {
    /// Returns an observer that passes jobs on to `sink`.
    pub const fn new(sink: S) -> InOrder<S> {
        InOrder { sink, pending: VecDeque::new(), done: 0, ranks: BTreeMap::new(), submitted: 0 }
    }

    /// Returns the sink, once the run is over.
    pub fn into_inner(self) -> S {
        self.sink
    }

    /// Returns the rank by submission of a job that leaves the system.
    fn rank(&mut self, request: &Request) -> Option<u64> {
        let number = request.number;
        let ranks = self.ranks.get_mut(&number)?;
        let place = ranks.iter().position(|(submit, _)| *submit == request.submit)?;
        let (_, rank) = ranks.remove(place)?;
        if ranks.is_empty() {
            self.ranks.remove(&number);
        }
        Some(rank)
    }

    /// Records the end of a job, and passes on all jobs that no longer wait for an earlier one.
    fn settle(&mut self, request: &Request, fate: Pending) -> io::Result<()> {
        let slot = self.rank(request).and_then(|rank| usize::try_from(rank - self.done).ok());
        if let Some(slot) = slot.and_then(|slot| self.pending.get_mut(slot)) {
            *slot = fate;
        }
        while self.pending.front().is_some_and(|fate| !matches!(fate, Pending::InSystem)) {
            self.done += 1;
            if let Some(Pending::Ended(job)) = self.pending.pop_front() {
                self.sink.job(&job)?;
            }
        }
        Ok(())
    }
}

impl<S: Sink> Observer for InOrder<S> {
    fn submitted(&mut self, _now: Time, request: &Request) {
        self.ranks.entry(request.number).or_default().push_back((request.submit, self.submitted));
        self.submitted += 1;
        self.pending.push_back(Pending::InSystem);
    }

    fn refused(&mut self, _now: Time, request: &Request, _why: Refusal) -> io::Result<()> {
        self.settle(request, Pending::Refused)
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.settle(&job.request, Pending::Ended(Box::new(job.clone())))
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Resources, Span, StartReason};

    use super::*;
    use crate::LoggedStatus;

    /// The numbers of the jobs, as they came.
    #[derive(Default)]
    struct Numbers(Vec<JobNumber>);

    impl Sink for Numbers {
        fn job(&mut self, job: &Finished) -> io::Result<()> {
            self.0.push(job.request.number);
            Ok(())
        }
    }

    fn request(number: JobNumber) -> Request {
        Request::new(number, Time::ZERO, Span::TICK, Resources::cpus(1))
    }

    fn finished(number: JobNumber) -> Finished {
        let (start, end) = (Time::ZERO, Time::ZERO + Span::TICK);
        Finished {
            admission: 0,
            request: request(number),
            runtime: Span::TICK,
            killed: false,
            status: LoggedStatus::Unknown,
            labels: Vec::new(),
            start,
            end,
            reason: Some(StartReason::Immediate),
            promised: None,
            reserved: None,
            broken: false,
            pes: None,
            allocations: vec![],
            interruptions: crate::Interruptions::default(),
            lost: 0,
            opportunistic: None,
            slices: None,
        }
    }

    /// Jobs 1 to 4 arrive, and 3 ends first. No job waits for a refused one, even if the refusal is
    /// the last event.
    #[test]
    fn a_refused_job_holds_nobody_up() {
        let refuse = |jobs: &mut InOrder<Numbers>, number| {
            jobs.refused(Time::ZERO, &request(number), Refusal::BeyondClasses).unwrap();
        };
        let end = |jobs: &mut InOrder<Numbers>, number| jobs.finished(&finished(number)).unwrap();
        let mut jobs = InOrder::new(Numbers::default());
        (1..=4).for_each(|number| jobs.submitted(Time::ZERO, &request(number)));
        end(&mut jobs, 3);
        refuse(&mut jobs, 1);
        assert_eq!(jobs.sink.0, []);
        end(&mut jobs, 4);
        refuse(&mut jobs, 2);
        assert_eq!(jobs.into_inner().0, [3, 4]);
    }
}
