//! Hypothetical futures: a simulation that continues a system.

use std::collections::HashMap;
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
        mut runtime: impl FnMut(&Entry) -> Span,
    ) -> Result<Simulation, RunError<Infallible>> {
        let mut simulation = Simulation::of_queues(system, procs);
        let mut running = Vec::new();
        let mut found: HashMap<u32, (usize, Live)> = HashMap::new();
        for (queue, driver) in simulation.system.queues().iter().enumerate() {
            let ledger = driver.ledger();
            for job in ledger.waiting().chain(ledger.running()).chain(ledger.suspended()) {
                let entry = ledger.entry(job);
                let done = span_of_work(entry.done(now), entry.request.procs());
                let runtime = runtime(entry).max(done + Span::TICK);
                let mut live = Live::new(Job::new(entry.request.clone(), runtime), queue, entry.admitted);
                if let State::Running { start, .. } | State::Suspended { start, .. } = entry.state {
                    let reason = StartReason::Reserved;
                    live.started = Some(Started { at: start, reason, rank: 0, due: Due::End });
                    running.push((start, entry.admitted, job));
                }
                found.insert(job.0, (queue, live));
            }
        }
        let handles = found.keys().max().map_or(0, |most| most + 1);
        for handle in 0..handles {
            let live = found.remove(&handle).map(|(_, live)| live);
            if live.is_none() {
                simulation.unused.push(JobId(handle));
            }
            simulation.live.push(live);
        }
        running.sort_unstable();
        for (_, _, job) in running {
            if let Some(started) =
                simulation.live[job.index()].as_mut().and_then(|live| live.started.as_mut())
            {
                started.rank = simulation.starts;
                simulation.starts += 1;
            }
            simulation.expect_end(now, job)?;
        }
        Ok(simulation)
    }
}
