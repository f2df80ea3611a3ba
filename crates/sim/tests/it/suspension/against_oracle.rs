//! The policies with suspension against reference implementations: all suspensions and processors.

use std::io;

use miserly_core::{Effect, EventOrder, JobNumber, Machine, Time};
use miserly_oracle::{NaiveJob, NaiveLife, suspension_schedule};
use miserly_policies::PolicySpec;
use miserly_sim::{Finished, Job, Observer, Simulation};
use proptest::prelude::*;

use super::settings::cases;
use crate::story::stays;
use crate::support::{BOTH, SEED, in_order};

/// Some time on some processors.
type Stay = (Time, Time, Vec<usize>);

/// All that became of a job.
#[derive(Debug, PartialEq, Eq)]
struct Life {
    start: Time,
    end: Time,
    suspended: Vec<Time>,
    resumed: Vec<Time>,
    stays: Vec<Stay>,
}

/// The recorded events of the jobs.
#[derive(Default)]
struct Lives {
    suspended: Vec<(JobNumber, Time)>,
    resumed: Vec<(JobNumber, Time)>,
    finished: Vec<Finished>,
}

impl Observer for Lives {
    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        match effect {
            Effect::Suspended { .. } => self.suspended.push((job, now)),
            Effect::Resumed { .. } => self.resumed.push((job, now)),
            _ => {}
        }
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.finished.push(job.clone());
        Ok(())
    }
}

/// Returns whether an allocation has a duration. Others are not compared, because they have no
/// effect.
fn lasting(stay: &Stay) -> bool {
    stay.0 < stay.1
}

fn ours(machine: &Machine, jobs: &[Job], policy: &str, instants: EventOrder) -> Vec<Life> {
    let policy = policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut lives = Lives::default();
    let mut simulation = Simulation::new(machine.clone(), policy, instants).with_numbered_processors();
    simulation.run(&mut in_order(jobs), &mut [&mut lives]).unwrap();
    lives.finished.sort_by_key(|job| job.request.number);
    let at = |all: &[(JobNumber, Time)], job: &Finished| {
        all.iter().filter(|(number, _)| *number == job.request.number).map(|(_, at)| *at).collect()
    };
    let life = |job: &Finished| {
        let pes = |ranges: &[(u32, u32)]| {
            ranges.iter().flat_map(|&(low, high)| low as usize..=high as usize).collect()
        };
        let stays = stays(job).into_iter().map(|stay| (stay.from, stay.to, pes(stay.pes.ranges())));
        Life {
            start: job.start,
            end: job.end,
            suspended: at(&lives.suspended, job),
            resumed: at(&lives.resumed, job),
            stays: stays.filter(lasting).collect(),
        }
    };
    lives.finished.iter().map(life).collect()
}

fn theirs(life: NaiveLife) -> Life {
    let pes = |pes: Vec<bool>| (0..pes.len()).filter(|pe| pes[*pe]).collect();
    let stays = life.stays.into_iter().map(|stay| (stay.from, stay.to.unwrap(), pes(stay.pes)));
    Life {
        start: life.start.unwrap(),
        end: life.end.unwrap(),
        suspended: life.suspended,
        resumed: life.resumed,
        stays: stays.filter(lasting).collect(),
    }
}

proptest! {
    #[test]
    fn the_same_life_for_every_job((machine, jobs, setting) in cases()) {
        let naive: Vec<NaiveJob> =
            jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
        for instants in BOTH {
            let naive = suspension_schedule(&machine, &naive, &setting.naive, instants);
            let naive: Vec<Life> = naive.into_iter().map(theirs).collect();
            let ours = ours(&machine, &jobs, &setting.written(), instants);
            for ((number, ours), theirs) in (1..).zip(ours).zip(naive) {
                prop_assert_eq!(ours, theirs, "job {}, {}, {}", number, setting.written(), instants);
            }
        }
    }
}
