//! Hypothetical futures: a simulation that continues a system.

use std::convert::Infallible;

use miserly_core::{Entry, JobId, Procs, Span, StartReason, State, System, Time, span_of_work};

use super::live::{Due, Live, Started};
use super::{RunError, Simulation};
use crate::job::Job;

impl Simulation {
    /// Returns a simulation that continues the jobs of a system from `now` on, each with this runtime. No job
    /// arrives, unless the caller adds it.
    ///
    /// A runtime that is over already becomes one more tick. Slots and swapped memory are not continued.
    ///
    /// # Errors
    /// If a job ends after the largest instant.
    pub fn continuing(
        system: System,
        procs: impl Into<Procs>,
        now: Time,
        runtime: impl FnMut(&Entry) -> Span,
    ) -> Result<Simulation, RunError<Infallible>> {
        let jobs = jobs_of(&system, now, runtime);
        let mut simulation = Simulation::of_queues(system, procs);
        let handles = jobs.iter().map(|(job, _)| job.index() + 1).max().unwrap_or(0);
        simulation.live.resize_with(handles, || None);
        let mut running = Vec::new();
        for (job, live) in jobs {
            running.extend(live.started.as_ref().map(|started| (started.at, live.admission, job)));
            simulation.live[job.index()] = Some(Box::new(live));
        }
        simulation.unused = (0..)
            .map(JobId)
            .zip(&simulation.live)
            .filter(|(_, live)| live.is_none())
            .map(|(job, _)| job)
            .collect();
        running.sort_unstable();
        for (_, _, job) in running {
            let live = simulation.live[job.index()].as_mut();
            if let Some(started) = live.and_then(|live| live.started.as_mut()) {
                started.rank = simulation.starts;
                simulation.starts += 1;
            }
            simulation.expect_end(now, job)?;
        }
        Ok(simulation)
    }
}

/// Returns the jobs of a system with these runtimes.
fn jobs_of(system: &System, now: Time, mut runtime: impl FnMut(&Entry) -> Span) -> Vec<(JobId, Live)> {
    let mut jobs = Vec::new();
    for (queue, driver) in system.queues().iter().enumerate() {
        let ledger = driver.ledger();
        for job in ledger.waiting().chain(ledger.running()).chain(ledger.suspended()) {
            let entry = ledger.entry(job);
            let done = span_of_work(entry.done(now), entry.request.procs());
            let runtime = runtime(entry).max(done + Span::TICK);
            let mut live = Live::new(Job::new(entry.request.clone(), runtime), queue, entry.admitted);
            if let State::Running { start, .. } | State::Suspended { start, .. } = entry.state {
                let (reason, due) = (StartReason::Reserved, Due::End);
                live.started = Some(Started { at: start, reason, rank: 0, due });
            }
            jobs.push((job, live));
        }
    }
    jobs
}
