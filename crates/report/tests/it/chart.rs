//! From a few jobs to the picture of their schedule, by way of a log, so that the log's rules are the real ones.

use std::io;

use miserly_core::{Instants, Machine};
use miserly_policies::Chosen;
use miserly_report::gantt;
use miserly_sim::{Finished, Observer, Simulation};
use miserly_workload::{JobOptions, Jobs, Overrun, Trace};

/// A job as (submit, runtime, processors, estimate), in seconds.
pub(crate) type Quad = (i64, i64, u32, i64);

#[derive(Default)]
struct Schedule(Vec<Finished>);

impl Observer for Schedule {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.0.push(job.clone());
        Ok(())
    }
}

/// The schedule of the jobs, numbered from 1, with a second a column.
#[track_caller]
pub(crate) fn chart(procs: u32, jobs: &[Quad], policy: &str) -> String {
    chart_as(procs, jobs, policy, Instants::Batch, Overrun::Kill)
}

#[track_caller]
pub(crate) fn chart_as(
    procs: u32,
    jobs: &[Quad],
    policy: &str,
    instants: Instants,
    overrun: Overrun,
) -> String {
    let line = |(number, &(submit, runtime, procs, estimate)): (usize, &Quad)| {
        format!("{number} {submit} -1 {runtime} {procs} -1 -1 -1 {estimate} -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    };
    let log: String = (1..).zip(jobs).map(line).collect();
    let trace = Trace::memory("chart", log.into());
    let options = JobOptions { procs, overrun, ..JobOptions::default() };
    let mut jobs = Jobs::new(&trace, true, options).expect("a log in memory can be read");
    let machine = Machine::plain(procs.into());
    let chosen: Chosen = policy.parse().expect("a policy");
    let policy = chosen.build(&machine, 1).expect("one that runs on a plain machine");
    let mut schedule = Schedule::default();
    let mut simulation = Simulation::new(machine, policy, instants).with_pes();
    simulation.run(&mut jobs, &mut [&mut schedule]).expect("the run ends well");
    schedule.0.sort_by_key(|job| job.request.number);
    gantt(procs, &schedule.0, 0, 1)
}
