//! The run, and what must hold of any schedule.

use std::convert::Infallible;
use std::io;

use miserly_core::{JobNumber, Machine, PeSet, StartReason, Refusal, Request, Time};
use miserly_policies::{PolicySpec, Promises};
use miserly_sim::{Finished, Observer, Simulation};

use crate::input::{Case, SEED};

/// What became of the jobs.
#[derive(Default)]
pub(crate) struct Schedule {
    /// By number.
    pub(crate) ended: Vec<Finished>,
    /// In the order in which they were refused.
    refused: Vec<JobNumber>,
}

impl Observer for Schedule {
    fn refused(&mut self, _now: Time, request: &Request, _why: Refusal) -> std::io::Result<()> {
        self.refused.push(request.number);
        Ok(())
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.ended.push(job.clone());
        Ok(())
    }
}

/// Runs the jobs, with the policy rebuilt after every so many rounds.
pub(crate) fn run(case: &Case, replace_every: usize) -> Schedule {
    let machine = Machine::plain(case.procs);
    let chosen: PolicySpec = case.policy.parse().unwrap();
    let build = || chosen.build(&machine, SEED).unwrap();
    let mut schedule = Schedule::default();
    let mut simulation = Simulation::new(machine.clone(), build(), case.instants).with_numbered_processors();
    let mut jobs = case.jobs.iter().cloned().map(Ok::<_, Infallible>).peekable();
    let mut observers: [&mut dyn Observer; 1] = [&mut schedule];
    let mut rounds = 0;
    while simulation.step(&mut jobs, &mut observers).expect("the policy makes no mistake").is_some() {
        rounds += 1;
        if rounds % replace_every == 0 {
            simulation.system().queues_mut()[0].replace(build());
        }
    }
    schedule.ended.sort_by_key(|job| job.request.number);
    schedule
}

/// All that a policy decided of a job.
pub(crate) type Decision = (JobNumber, Time, Option<StartReason>, Option<Time>, bool);

pub(crate) fn decisions(schedule: &Schedule) -> Vec<Decision> {
    let decision = |job: &Finished| (job.request.number, job.start, job.reason, job.promised, job.broken);
    schedule.ended.iter().map(decision).collect()
}

/// The invariants of any schedule.
pub(crate) fn check(case: &Case, schedule: &Schedule) {
    let jobs = &schedule.ended;
    let mut gone: Vec<JobNumber> = jobs.iter().map(|job| job.request.number).collect();
    gone.extend(&schedule.refused);
    gone.sort_unstable();
    let all: Vec<JobNumber> = case.jobs.iter().map(|job| job.request.number).collect();
    assert_eq!(gone, all, "every job ends or is refused, once");
    let spec: PolicySpec = case.policy.parse().unwrap();
    let needs = spec.needs();
    assert!(schedule.refused.is_empty() || needs.refusals, "others have no classes and no horizon");
    let overruns = case.jobs.iter().any(|job| job.runtime.0 > job.request.planned());
    let promises = spec.promises();
    let rigid = !(needs.resizing || needs.time_slices || needs.suspension || needs.requeue);
    for (index, job) in jobs.iter().enumerate() {
        assert!(job.start >= job.request.submit);
        let asked = case.jobs.iter().find(|asked| asked.request.number == job.request.number);
        let runtime = asked.expect("a job of the case").runtime.0;
        // A job that has done a part of its work in a quantum may do only the rest from its last start on.
        let kept = needs.checkpoints;
        assert!(kept || job.end - job.start >= runtime);
        assert!(!rigid || job.end - job.start == runtime);
        assert!(overruns || !job.broken, "only an overdue job breaks promises");
        assert!(job.broken || job.promised.is_none_or(|promised| job.start <= promised));
        match promises {
            Promises::EveryJob => assert!(job.promised.is_some()),
            Promises::Nothing => assert!(job.promised.is_none()),
            Promises::Head => {}
        }
        let pes = job.pes.as_ref().expect("enough processors are free");
        assert!(!rigid || pes.count() == job.request.procs());
        for other in jobs[..index].iter().filter(|_| rigid) {
            let apart = job.end <= other.start || other.end <= job.start;
            assert!(apart || other.pes.as_ref().is_none_or(|others| disjoint(pes, others)));
        }
    }
}

fn disjoint(one: &PeSet, other: &PeSet) -> bool {
    let apart = |a: &(u32, u32), b: &(u32, u32)| a.1 < b.0 || b.1 < a.0;
    one.ranges().iter().all(|a| other.ranges().iter().all(|b| apart(a, b)))
}
