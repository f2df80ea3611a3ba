//! Job by job against the reference implementation, with a boolean for each processor of each slot.

use miserly_core::{EventOrder, Machine, PeSet, Time};
use miserly_oracle::{NaiveGang, NaiveJob, gang_schedule};
use miserly_sim::Job;
use proptest::prelude::*;

use super::settings::{scheduler, workload};
use crate::support::{BOTH, run_on};

type Life = (Time, Time, String);

fn naive(machine: &Machine, jobs: &[Job], rules: &NaiveGang, instants: EventOrder) -> Vec<Life> {
    let jobs: Vec<NaiveJob> =
        jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    let shown = |pes: &[bool]| {
        let mine = (0..).zip(pes).filter(|(_, mine)| **mine).map(|(pe, _)| (pe, pe));
        PeSet::from_ranges(&mine.collect::<Vec<_>>()).to_string()
    };
    let lives = gang_schedule(machine, &jobs, rules, instants);
    lives.iter().map(|life| (life.start, life.end, shown(&life.pes))).collect()
}

fn ours(machine: &Machine, jobs: &[Job], policy: &str, instants: EventOrder) -> Vec<Life> {
    let jobs = run_on(machine, jobs, policy, instants).0;
    let pes = |pes: &Option<PeSet>| pes.as_ref().map(PeSet::to_string).unwrap_or_default();
    jobs.iter().map(|job| (job.start, job.end, pes(&job.pes))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, ..ProptestConfig::default() })]

    #[test]
    fn the_same_life_for_every_job((machine, jobs) in workload(false), (policy, rules) in scheduler()) {
        for instants in BOTH {
            let theirs = naive(&machine, &jobs, &rules, instants);
            prop_assert_eq!(ours(&machine, &jobs, &policy, instants), theirs, "{}, {}", policy, instants);
        }
    }

    #[test]
    fn and_under_overruns((machine, jobs) in workload(true), (policy, rules) in scheduler()) {
        for instants in BOTH {
            let theirs = naive(&machine, &jobs, &rules, instants);
            prop_assert_eq!(ours(&machine, &jobs, &policy, instants), theirs, "{}, {}", policy, instants);
        }
    }
}
