//! A record of a run on hosts, for the checks.

use std::io;

use miserly_core::{Effect, EventOrder, JobNumber, Ledger, Machine, Refusal, Request, StartReason, Time};
use miserly_policies::PolicySpec;
use miserly_sim::{Allocation, Finished, Job, Observer, Simulation};

use crate::support::{SEED, in_order};

/// Some time of a job on the machine: from a start to its end, or until it was put back into the
/// queue.
pub(crate) struct Tenure {
    pub(crate) job: JobNumber,
    pub(crate) from: Time,
    pub(crate) to: Option<Time>,
    pub(crate) quantum: bool,
}

/// All events of an observer.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) tenures: Vec<Tenure>,
    pub(crate) finished: Vec<Finished>,
    pub(crate) refused: Vec<JobNumber>,
}

impl Observer for Story {
    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        match effect {
            Effect::Started { reason, .. } => {
                let quantum = *reason == StartReason::Quantum;
                self.tenures.push(Tenure { job, from: now, to: None, quantum });
            }
            Effect::Requeued { .. } => self.leave(now, job),
            _ => {}
        }
    }

    fn refused(&mut self, _: Time, request: &Request, _: Refusal) -> io::Result<()> {
        self.refused.push(request.number);
        Ok(())
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.leave(job.end, job.request.number);
        self.finished.push(job.clone());
        Ok(())
    }
}

impl Story {
    /// Plays the jobs; `look` sees the ledger after each round.
    pub(crate) fn of(
        machine: &Machine,
        jobs: &[Job],
        policy: &str,
        instants: EventOrder,
        look: impl Fn(&Ledger),
    ) -> Story {
        let built = policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
        let mut simulation = Simulation::new(machine.clone(), built, instants).with_numbered_processors();
        let mut story = Story::default();
        let mut source = in_order(jobs).peekable();
        while simulation.step(&mut source, &mut [&mut story]).unwrap().is_some() {
            look(simulation.system().queues()[0].ledger());
        }
        story
    }

    fn leave(&mut self, now: Time, job: JobNumber) {
        let mut open = self.tenures.iter_mut().filter(|tenure| tenure.job == job && tenure.to.is_none());
        open.next().expect("it is on the machine").to = Some(now);
    }

    /// Where a job was when, and which.
    pub(crate) fn stays(&self) -> impl Iterator<Item = (&Finished, Allocation)> {
        self.finished.iter().flat_map(|job| stays(job).into_iter().map(move |stay| (job, stay)))
    }

    /// Whose it is.
    pub(crate) fn whose(&self, tenure: &Tenure) -> &Finished {
        self.finished.iter().find(|job| job.request.number == tenure.job).expect("it has ended")
    }
}

/// Returns the allocations of a job: one throughout, or those reported.
pub(crate) fn stays(job: &Finished) -> Vec<Allocation> {
    let whole = job.pes.iter().map(|pes| Allocation {
        from: job.start,
        to: job.end,
        worked: (job.start, job.end),
        pes: pes.clone(),
    });
    if job.allocations.is_empty() { whole.collect() } else { job.allocations.clone() }
}
