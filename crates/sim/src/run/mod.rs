//! The simulation: virtual time jumps from instant to instant, and the driver schedules at each.

mod continued;

mod effects;

mod feedback;

mod live;

use std::convert::Infallible;
use std::io;
use std::iter::Peekable;

use miserly_core::{
    Driver, Effect, EndHow, Ended, Entry, EventOrder, JobId, Ledger, Machine, Matrix, Policy, Procs, Round,
    Submission, System, Time, Violation, queue_position,
};

pub use self::feedback::FeedbackJobs;
use self::live::{Due, Live};
use crate::event_queue::EventQueue;
use crate::finished::{Observer, SystemSnapshot};
use crate::job::Job;
use crate::numbering::Numbering;
use crate::opportunistic::BackgroundLoad;
use crate::slices::UsedSlots;

/// The reason for which a run stopped early. `E` is the error of the source of the jobs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<E = Infallible> {
    /// The source of the jobs failed.
    #[error(transparent)]
    Source(E),
    /// The policy broke a rule.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// An observer cannot write.
    #[error("cannot write the jobs: {0}")]
    Write(#[from] io::Error),
    /// The schedule is longer than time can count.
    #[error(
        "job {job} ends after the largest instant (some 290 000 years); a run time of the log is damaged"
    )]
    TooLong {
        /// The job.
        job: i64,
    },
    /// Jobs have not ended, and there is no further event.
    #[error(
        "policy {policy}: there is no further event, but {unfinished} jobs have not ended, the first is job {job}; \
         a pass has to start or resume jobs, or to request a wake-up"
    )]
    Stuck {
        /// The policy.
        policy: String,
        /// The first of the unfinished jobs.
        job: i64,
        /// Their number.
        unfinished: usize,
    },
}

/// A simulation: one machine under virtual time, with a policy, or with a policy for each of its
/// queues.
///
/// Jobs stream through; memory follows the jobs that are in the system.
pub struct Simulation {
    system: System,
    /// The processors of the machine, in queues or not.
    procs: Procs,
    /// Interactive work, and opportunistic jobs.
    load: BackgroundLoad,
    /// The jobs in the system, by handle.
    live: Vec<Option<Box<Live>>>,
    unused: Vec<JobId>,
    /// Ends, and the ends of estimates that jobs outlive.
    due: EventQueue,
    /// Jobs that are submitted after the end of another one.
    feedback: FeedbackJobs,
    starts: u64,
    admitted: u64,
    /// The free processors by number, if processors are numbered.
    pes: Option<Numbering>,
    round: Round,
    /// The slots that each queue uses, if its policy slices time.
    slots: Vec<UsedSlots>,
    /// Whether policies learn the actual runtimes of jobs at their submission.
    discloses_runtimes: bool,
    /// The work of all jobs that were submitted, processor-ticks.
    submitted_work: u128,
    /// The jobs that end in the round.
    ended: Vec<JobId>,
    effects: Vec<Effect>,
}

impl Simulation {
    /// Returns a simulation of `policy` on an idle machine.
    pub fn new(machine: Machine, policy: Box<dyn Policy>, event_order: EventOrder) -> Simulation {
        let procs = machine.capacity().cpus_count();
        Simulation::of_queues(
            System::new(vec![Driver::new(Ledger::new(machine), policy, event_order)]),
            procs,
        )
    }

    /// Returns a simulation of empty queues, on a machine of `procs` processors in all.
    ///
    /// The jobs' queue numbers name the queues by position from 1; any other number, or none, means
    /// the first.
    pub fn of_queues(system: System, procs: impl Into<Procs>) -> Simulation {
        Simulation {
            slots: vec![UsedSlots::none(); system.queues().len()],
            discloses_runtimes: false,
            submitted_work: 0,
            system,
            procs: procs.into(),
            load: BackgroundLoad::none(),
            live: Vec::new(),
            unused: Vec::new(),
            due: EventQueue::new(),
            feedback: FeedbackJobs::default(),
            starts: 0,
            admitted: 0,
            pes: None,
            round: Round::default(),
            ended: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Numbers the processors: each job gets the lowest that are free on its hosts. The schedule
    /// does not depend on it.
    #[must_use]
    pub fn with_numbered_processors(mut self) -> Simulation {
        self.pes = Some(match self.system.queues() {
            [only] if only.ledger().machine().capacity().cpus_count() == self.procs => {
                Numbering::new(only.ledger().machine())
            }
            queues => Numbering::from_pools(self.procs, queues),
        });
        self
    }

    /// Discloses the actual runtime of each job at its submission, for clairvoyant policies.
    #[must_use]
    pub fn with_known_runtimes(self) -> Simulation {
        Simulation { discloses_runtimes: true, ..self }
    }

    /// Adds interactive work: the processors that it uses from each instant on, in order.
    #[must_use]
    pub fn with_interactive(self, changes: Box<dyn Iterator<Item = (Time, Procs)> + Send>) -> Simulation {
        Simulation { load: BackgroundLoad::new(changes), ..self }
    }

    /// Adds jobs that are submitted after the end of another one. A job of the source comes before one of these at
    /// the same instant.
    pub fn add_feedback(&mut self, feedback: FeedbackJobs) {
        self.feedback = feedback;
    }

    /// Returns the queues with their ledgers.
    pub fn system(&mut self) -> &mut System {
        &mut self.system
    }

    /// Runs the jobs, which come in the order of their submission, to the end of the last one.
    ///
    /// The run ends early if an observer [has enough](Observer::has_enough).
    ///
    /// # Errors
    /// If the source of the jobs fails, an observer cannot write, or the policy breaks a rule.
    pub fn run<E>(
        &mut self,
        jobs: &mut dyn Iterator<Item = Result<Job, E>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError<E>> {
        let mut jobs = jobs.peekable();
        while self.step(&mut jobs, observers)?.is_some() {
            if observers.iter().any(|observer| observer.has_enough()) {
                return Ok(());
            }
        }
        self.check_all_ended()
    }

    /// Checks that no job is left after the last event.
    fn check_all_ended<E>(&self) -> Result<(), RunError<E>> {
        let count =
            |ledger: &Ledger| ledger.waiting_count() + ledger.suspended_count() + ledger.running_count();
        let unfinished = self.system.queues().iter().map(|queue| count(queue.ledger())).sum();
        for queue in self.system.queues() {
            let ledger = queue.ledger();
            let first = ledger.waiting().chain(ledger.suspended()).chain(ledger.running()).next();
            if let Some(job) = first {
                let (policy, job) = (queue.policy_name().to_owned(), ledger.request(job).number);
                return Err(RunError::Stuck { policy, job, unfinished });
            }
        }
        Ok(())
    }

    /// Runs the next round. Returns its instant, or `None` if there is no further event.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn step<I, E>(
        &mut self,
        jobs: &mut Peekable<I>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Option<Time>, RunError<E>>
    where
        I: Iterator<Item = Result<Job, E>>,
    {
        let Some(now) = self.next_instant(jobs) else { return Ok(None) };
        self.collect_due(now);
        self.collect_arrivals(now, jobs, observers)?;
        self.round.interactive = self.load.change(now);
        self.system.round(now, &mut self.round, &mut self.effects)?;
        self.finish(now, observers)?;
        self.apply(now, observers)?;
        self.record_slots(now);
        let snapshot = self.snapshot();
        for observer in observers.iter_mut() {
            observer.instant(now, snapshot);
            observer.system(now, &self.system);
        }
        Ok(Some(now))
    }

    fn next_instant<I, E>(&mut self, jobs: &mut Peekable<I>) -> Option<Time>
    where
        I: Iterator<Item = Result<Job, E>>,
    {
        let arrival = match jobs.peek() {
            Some(Ok(job)) => Some(job.request.submit),
            // At any time: the error is returned when the job is taken.
            Some(Err(_)) => Some(Time::from_ticks(i64::MIN)),
            None => None,
        };
        let next = [arrival, self.feedback.next_time(), self.due.next_time(), self.system.wake()];
        let next = next.into_iter().flatten().min()?;
        // Interactive work may go on for ever; the run does not.
        Some(self.load.next().map_or(next, |change| change.min(next)))
    }

    fn collect_due(&mut self, now: Time) {
        while self.due.next_time() == Some(now) {
            let Some((_, _, job)) = self.due.pop() else { return };
            let Some(live) = &mut self.live[job.index()] else { continue };
            match &mut live.started {
                Some(started) if started.due == Due::EndOfEstimate => {
                    started.due = Due::End;
                    let rank = started.rank;
                    let end = now + live.left(now, entry(&self.system, live.queue, job));
                    self.due.push(job, end, rank);
                    self.round.overdue.push(job);
                }
                // An opportunistic job may end before its start.
                _ => {
                    let how = if live.killed { EndHow::KilledAtEstimate } else { EndHow::Done };
                    self.feedback.ended(live.request.number, now);
                    self.round.ended.push(Ended { job, how });
                    self.ended.push(job);
                }
            }
        }
    }

    fn collect_arrivals<I, E>(
        &mut self,
        now: Time,
        jobs: &mut Peekable<I>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError<E>>
    where
        I: Iterator<Item = Result<Job, E>>,
    {
        while let Some(job) = jobs.next_if(|job| job.as_ref().map_or(true, |job| job.request.submit <= now)) {
            self.admit(now, job.map_err(RunError::Source)?, observers);
        }
        while let Some(job) = self.feedback.next(now) {
            self.admit(now, job, observers);
        }
        Ok(())
    }

    /// Submits a job in the round.
    fn admit(&mut self, now: Time, job: Job, observers: &mut [&mut dyn Observer]) {
        for observer in observers.iter_mut() {
            observer.submitted(now, &job.request);
        }
        let mut request = job.request.clone();
        request.known_runtime = self.discloses_runtimes.then_some(job.runtime.0);
        let queues = self.system.queues().len();
        let queue = queue_position(request.queue, queues);
        if queues > 1 {
            request.queue = u32::try_from(queue).ok();
        }
        let submission = Submission { job: self.handle(), request };
        let live = Live::new(job, queue, self.admitted);
        self.submitted_work += live.work();
        self.live[submission.job.index()] = Some(Box::new(live));
        self.admitted += 1;
        self.round.submitted.push(submission);
    }

    /// Returns a handle that no job in the system has.
    fn handle(&mut self) -> JobId {
        self.unused.pop().unwrap_or_else(|| {
            self.live.push(None);
            // More jobs do not fit in memory.
            JobId(u32::try_from(self.live.len() - 1).unwrap_or(u32::MAX))
        })
    }

    fn finish(&mut self, now: Time, observers: &mut [&mut dyn Observer]) -> io::Result<()> {
        for job in self.ended.drain(..) {
            self.unused.push(job);
            let Some(mut live) = self.live[job.index()].take() else { continue };
            live.release(now, &mut self.pes);
            self.load.set_opportunistic_procs(live.opportunistic.as_mut(), now, Procs::ZERO);
            let slices = live.turns.map(|turns| turns.over(now, &self.slots[live.queue]));
            let Some(finished) = live.finish(now, slices) else { continue };
            for observer in observers.iter_mut() {
                observer.finished(&finished)?;
            }
        }
        Ok(())
    }

    /// Records the number of slots in use.
    ///
    /// A job that runs in twice as many of twice as many slots keeps its pace, so there is no
    /// effect for it.
    fn record_slots(&mut self, now: Time) {
        let mut changed = false;
        for (slots, queue) in self.slots.iter_mut().zip(self.system.queues()) {
            changed |= slots.see(now, queue.ledger());
        }
        if !changed {
            return;
        }
        for (job, live) in (0..).map(JobId).zip(&mut self.live) {
            let Some(live) = live.as_mut().filter(|live| live.turns.is_some()) else { continue };
            live.record_slots(now, entry(&self.system, live.queue, job));
        }
    }

    /// Returns the state at the end of the instant.
    fn snapshot(&self) -> SystemSnapshot {
        let mut busy = self.load.procs();
        let mut snapshot =
            SystemSnapshot { submitted_work: self.submitted_work, ..SystemSnapshot::default() };
        for queue in self.system.queues() {
            let ledger = queue.ledger();
            busy += ledger.held_cpus();
            snapshot.kept += kept(queue);
            snapshot.waiting += ledger.waiting_count();
            snapshot.slots += ledger.matrix().map_or(0, Matrix::used);
        }
        snapshot.free = self.procs.saturating_sub(busy);
        snapshot
    }
}

/// Returns the processors that are kept idle on hosts that are reserved for a waiting job.
fn kept(queue: &Driver) -> Procs {
    let (mut hosts, ledger) = (queue.kept_hosts(), queue.ledger());
    if hosts.is_empty() {
        return Procs::ZERO;
    }
    hosts.sort_unstable();
    hosts.dedup();
    hosts.iter().map(|host| ledger.free_hosts().on(*host).cpus_count()).sum()
}

/// Returns the ledger entry of a job in the queue of that position.
fn entry(system: &System, queue: usize, job: JobId) -> &Entry {
    system.queues()[queue].ledger().entry(job)
}
