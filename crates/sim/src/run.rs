//! The run: virtual time jumps from instant to instant, and the driver plays each.

use std::io;
use std::iter::Peekable;

use miserly_core::{
    Driver, Effect, EndHow, Ended, Instants, JobId, Ledger, Machine, PeSet, Policy, Reason, Request, Round,
    Span, Submission, Time, Violation,
};
use miserly_workload::swf::Record;
use miserly_workload::{Job, TraceError};

use crate::event_queue::EventQueue;
use crate::finished::{Finished, Observer};

/// Why a run ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The policy made a mistake.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// An observer cannot write.
    #[error("cannot write the jobs: {0}")]
    Write(#[from] io::Error),
    /// The schedule is longer than time can count.
    #[error(
        "job {job} would run beyond the end of time (some 290 000 years); its run time or those before it are damaged"
    )]
    TooLong {
        /// The job.
        job: i64,
    },
    /// Nothing will ever happen again, and jobs still wait.
    #[error("the policy left {waiting} jobs waiting for ever (please report this with the trace)")]
    Stuck {
        /// How many.
        waiting: usize,
    },
}

/// A simulation: one policy on one machine under virtual time.
///
/// Jobs stream through; memory follows the jobs that are in the system.
pub struct Simulation {
    driver: Driver,
    /// What every job in the system is to itself, by its handle.
    live: Vec<Option<Live>>,
    unused: Vec<JobId>,
    /// Ends, and the ends of estimates that jobs outlive.
    due: EventQueue,
    starts: u64,
    admitted: u64,
    /// The free processors by number, if the jobs are to be told theirs.
    pes: Option<PeSet>,
    round: Round,
    /// The jobs that end in the round.
    ended: Vec<JobId>,
    effects: Vec<Effect>,
}

/// A job in the system, with what only the machine knows of it.
struct Live {
    admission: u64,
    request: Request,
    runtime: Span,
    killed: bool,
    record: Option<Box<Record>>,
    started: Option<Started>,
    promised: Option<Time>,
    broken: bool,
}

struct Started {
    at: Time,
    reason: Reason,
    rank: u64,
    /// Its estimate ends before it does, and that is what is due next.
    outlives: bool,
    pes: Option<PeSet>,
}

impl Simulation {
    /// A run of `policy` on an idle machine.
    pub fn new(machine: Machine, policy: Box<dyn Policy>, instants: Instants) -> Simulation {
        Simulation {
            driver: Driver::new(Ledger::new(machine), policy, instants),
            live: Vec::new(),
            unused: Vec::new(),
            due: EventQueue::new(),
            starts: 0,
            admitted: 0,
            pes: None,
            round: Round::default(),
            ended: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Tells each job its processors: the lowest that are free. The schedule does not depend on it.
    #[must_use]
    pub fn with_pes(mut self) -> Simulation {
        let procs = self.driver.ledger().machine().capacity().cpus_count();
        self.pes = Some(PeSet::first(u32::try_from(procs).unwrap_or(u32::MAX)));
        self
    }

    /// The driver, with the ledger as it stands.
    pub fn driver(&mut self) -> &mut Driver {
        &mut self.driver
    }

    /// Plays the jobs, which come in the order of their submission, to the end of the last one.
    ///
    /// # Errors
    /// If the jobs cannot be read, an observer cannot write, or the policy makes a mistake.
    pub fn run(
        &mut self,
        jobs: &mut dyn Iterator<Item = Result<Job, TraceError>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError> {
        let mut jobs = jobs.peekable();
        while self.step(&mut jobs, observers)?.is_some() {}
        match self.driver.ledger().waiting_count() {
            0 => Ok(()),
            waiting => Err(RunError::Stuck { waiting }),
        }
    }

    /// Plays the next round; returns its instant, or `None` where nothing is left to happen.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn step<I>(
        &mut self,
        jobs: &mut Peekable<I>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Option<Time>, RunError>
    where
        I: Iterator<Item = Result<Job, TraceError>>,
    {
        let Some(now) = self.next_instant(jobs) else { return Ok(None) };
        self.collect_due(now);
        self.collect_arrivals(now, jobs, observers)?;
        self.driver.round(now, &mut self.round, &mut self.effects)?;
        self.finish(now, observers)?;
        self.apply(now, observers)?;
        let ledger = self.driver.ledger();
        for observer in observers.iter_mut() {
            observer.instant(now, ledger.free().cpus_count(), ledger.waiting_count());
        }
        Ok(Some(now))
    }

    fn next_instant<I>(&self, jobs: &mut Peekable<I>) -> Option<Time>
    where
        I: Iterator<Item = Result<Job, TraceError>>,
    {
        let arrival = match jobs.peek() {
            Some(Ok(job)) => Some(job.request.submit),
            // Whatever the time is: the error is met when the job is taken.
            Some(Err(_)) => Some(Time::from_ticks(i64::MIN)),
            None => None,
        };
        [arrival, self.due.next_time(), self.driver.wake()].into_iter().flatten().min()
    }

    fn collect_due(&mut self, now: Time) {
        while self.due.next_time() == Some(now) {
            let Some((_, _, job)) = self.due.pop() else { return };
            let Some(live) = &mut self.live[job.index()] else { continue };
            let Some(started) = &mut live.started else { continue };
            if std::mem::take(&mut started.outlives) {
                self.due.push(job, started.at + live.runtime, started.rank);
                self.round.overdue.push(job);
            } else {
                let how = if live.killed { EndHow::KilledAtEstimate } else { EndHow::Done };
                self.round.ended.push(Ended { job, how });
                self.ended.push(job);
            }
        }
    }

    fn collect_arrivals<I>(
        &mut self,
        now: Time,
        jobs: &mut Peekable<I>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError>
    where
        I: Iterator<Item = Result<Job, TraceError>>,
    {
        while let Some(job) = jobs.next_if(|job| job.as_ref().map_or(true, |job| job.request.submit <= now)) {
            let job = job?;
            for observer in observers.iter_mut() {
                observer.submitted(now, &job.request);
            }
            let submission = Submission { job: self.handle(), request: job.request.clone() };
            self.live[submission.job.index()] = Some(Live::of(job, self.admitted));
            self.admitted += 1;
            self.round.submitted.push(submission);
        }
        Ok(())
    }

    /// A handle that no job in the system has.
    fn handle(&mut self) -> JobId {
        self.unused.pop().unwrap_or_else(|| {
            self.live.push(None);
            // More jobs than that do not fit in any memory.
            JobId(u32::try_from(self.live.len() - 1).unwrap_or(u32::MAX))
        })
    }

    fn finish(&mut self, now: Time, observers: &mut [&mut dyn Observer]) -> Result<(), RunError> {
        for job in self.ended.drain(..) {
            self.unused.push(job);
            let Some(finished) = self.live[job.index()].take().and_then(|live| live.finish(now)) else {
                continue;
            };
            if let (Some(free), Some(pes)) = (&mut self.pes, &finished.pes) {
                free.insert_all(pes);
            }
            for observer in observers.iter_mut() {
                observer.finished(&finished)?;
            }
        }
        Ok(())
    }

    /// Plays the machine: what the scheduler started runs, and will end.
    fn apply(&mut self, now: Time, observers: &mut [&mut dyn Observer]) -> Result<(), RunError> {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            let (Effect::Started { job, .. }
            | Effect::Promised { job, .. }
            | Effect::PromiseBroken { job, .. }
            | Effect::Planned { job, .. }) = effect;
            let Some(live) = &mut self.live[job.index()] else { continue };
            for observer in observers.iter_mut() {
                observer.effect(now, live.request.number, &effect);
            }
            match effect {
                Effect::Started { reason, planned, .. } => {
                    if now + live.runtime == Time::MAX {
                        return Err(RunError::TooLong { job: live.request.number });
                    }
                    let outlives = live.runtime > planned;
                    let pes = self.pes.as_mut().and_then(|free| free.take_lowest(live.request.procs()));
                    self.due.push(job, now + live.runtime.min(planned), self.starts);
                    live.started = Some(Started { at: now, reason, rank: self.starts, outlives, pes });
                    self.starts += 1;
                }
                Effect::Promised { latest, .. } => {
                    live.promised.get_or_insert(latest);
                }
                Effect::PromiseBroken { .. } => live.broken = true,
                Effect::Planned { .. } => {}
            }
        }
        self.effects = effects;
        Ok(())
    }
}

impl Live {
    fn of(job: Job, admission: u64) -> Live {
        Live {
            admission,
            request: job.request,
            runtime: job.runtime.0,
            killed: job.killed,
            record: job.record,
            started: None,
            promised: None,
            broken: false,
        }
    }

    fn finish(self, end: Time) -> Option<Finished> {
        let Started { at, reason, pes, .. } = self.started?;
        Some(Finished {
            admission: self.admission,
            request: self.request,
            runtime: self.runtime,
            killed: self.killed,
            start: at,
            end,
            reason,
            promised: self.promised,
            broken: self.broken,
            pes,
            record: self.record,
        })
    }
}
