//! The run, and what must hold of any schedule.

use std::io;

use miserly_core::{JobNumber, Machine, PeSet, Reason, Time};
use miserly_policies::{Chosen, Promises};
use miserly_sim::{Finished, Observer, Simulation};
use miserly_workload::TraceError;

use crate::input::{Case, SEED};

#[derive(Default)]
struct Schedule(Vec<Finished>);

impl Observer for Schedule {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.0.push(job.clone());
        Ok(())
    }
}

/// What became of the jobs, by number; the policy rebuilt after every so many rounds.
pub(crate) fn run(case: &Case, replace_every: usize) -> Vec<Finished> {
    let machine = Machine::plain(case.procs);
    let chosen: Chosen = case.policy.parse().unwrap();
    let build = || chosen.build(&machine, SEED).unwrap();
    let mut schedule = Schedule::default();
    let mut simulation = Simulation::new(machine.clone(), build(), case.instants).with_pes();
    let mut jobs = case.jobs.iter().cloned().map(Ok::<_, TraceError>).peekable();
    let mut observers: [&mut dyn Observer; 1] = [&mut schedule];
    let mut rounds = 0;
    while simulation.step(&mut jobs, &mut observers).expect("the policy makes no mistake").is_some() {
        rounds += 1;
        if rounds % replace_every == 0 {
            simulation.driver().replace(build());
        }
    }
    schedule.0.sort_by_key(|job| job.request.number);
    schedule.0
}

/// All that a policy decided of a job.
pub(crate) type Decision = (JobNumber, Time, Reason, Option<Time>, bool);

pub(crate) fn decisions(jobs: &[Finished]) -> Vec<Decision> {
    jobs.iter().map(|job| (job.request.number, job.start, job.reason, job.promised, job.broken)).collect()
}

/// The invariants of any schedule.
pub(crate) fn check(case: &Case, jobs: &[Finished]) {
    let numbers = |jobs: &mut dyn Iterator<Item = JobNumber>| jobs.collect::<Vec<_>>();
    let ended = numbers(&mut jobs.iter().map(|job| job.request.number));
    assert_eq!(ended, numbers(&mut case.jobs.iter().map(|job| job.request.number)), "every job ends, once");
    let overruns = case.jobs.iter().any(|job| job.runtime.0 > job.request.planned());
    let promises = case.policy.parse::<Chosen>().unwrap().promises();
    // The jobs of an equipartition change their processors as they run.
    let rigid = !case.policy.starts_with("eqspatial");
    for (index, job) in jobs.iter().enumerate() {
        assert!(job.start >= job.request.submit);
        assert!(job.end - job.start >= case.jobs[index].runtime.0);
        assert!(!rigid || job.end - job.start == case.jobs[index].runtime.0);
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
