//! In how many rows jobs run, counted again from the ledger after each round.

use std::collections::BTreeMap;

use miserly_core::{Entry, EventOrder, JobNumber, Ledger, Machine, Pace, Procs, Time, work};
use miserly_sim::Slices;
use proptest::prelude::*;

use super::play;
use super::settings::{scheduler, workload};
use crate::support::{BOTH, Quad, jobs, jobs_in};

/// The sums of a job, and its increments in a tick: slots in which it runs, slots in use.
#[derive(Default)]
struct Counted {
    last: Option<Time>,
    adds: BTreeMap<JobNumber, (u128, u128)>,
    sums: BTreeMap<JobNumber, (u128, u128)>,
    /// The pace at the last round.
    paces: BTreeMap<JobNumber, Pace>,
    /// How often a job ran in another number of rows at the pace that it had.
    unseen: usize,
}

impl Counted {
    fn note(&mut self, now: Time, ledger: &Ledger) {
        let since = self.last.map_or(0, |last| work(now - last, Procs::new(1)));
        for (job, (ran_in, used)) in &self.adds {
            let sum = self.sums.entry(*job).or_default();
            *sum = (sum.0 + since * ran_in, sum.1 + since * used);
        }
        let used = ledger.matrix().unwrap().slots().count() as u128;
        let running: Vec<&Entry> = ledger.running().map(|job| ledger.entry(job)).collect();
        let before = std::mem::take(&mut self.adds);
        for entry in running {
            let (job, rows) = (entry.request.number, 1 + entry.alternate_slots.len() as u128);
            self.adds.insert(job, (rows, used));
            let pace = self.paces.insert(job, entry.progress.pace);
            let other = before.get(&job).is_some_and(|(ran_in, _)| *ran_in != rows);
            self.unseen += usize::from(other && pace == Some(entry.progress.pace));
        }
        self.last = Some(now);
    }
}

proptest! {
    #[test]
    fn as_counted_again((machine, jobs) in workload(true), (policy, _) in scheduler()) {
        for instants in BOTH {
            check(&machine, &jobs, &policy, instants);
        }
    }
}

/// Returns how often the number of rows of a job changed at the same pace.
fn check(machine: &Machine, jobs: &[miserly_sim::Job], policy: &str, instants: EventOrder) -> usize {
    let mut counted = Counted::default();
    let finished = play(machine, jobs, policy, instants, |now, ledger| counted.note(now, ledger));
    for job in finished {
        let (ran_in, used) = counted.sums.get(&job.request.number).copied().unwrap_or_default();
        let expect = Slices { span: job.end - job.start, ran_in, used };
        assert_eq!(job.slices, Some(expect), "{policy}: job {}", job.request.number);
    }
    counted.unseen
}

/// A job that runs in two rows of four after one of two has the pace that it had.
#[test]
fn more_rows_at_the_same_pace_are_counted() {
    let (_, quads) = crate::support::crowd(3);
    let crowd = jobs_in(1_000_003, &quads);
    let unseen = check(&Machine::plain(40), &crowd, "gang(packing=buddy)", EventOrder::Batched);
    assert!(unseen > 0, "no pace stayed, and nothing was tested");
}

#[test]
fn the_figures_of_a_job() {
    // Alone until the others come; then in one of two rows, or in both.
    let quads: [Quad; 3] = [(0, 30, 4, 30), (10, 20, 2, 20), (10, 20, 2, 20)];
    let finished = play(&Machine::plain(4), &jobs(&quads), "gang", EventOrder::Batched, |_, _| {});
    let figures = |nth: usize| {
        let of = finished[nth].slices.unwrap();
        (of.slots().unwrap(), of.used_slots().unwrap(), of.run_fraction(finished[nth].runtime).unwrap())
    };
    // 10 s alone and 40 s of two rows.
    assert_eq!(figures(0), (1.0, (10.0 + 80.0) / 50.0, 30.0 / 50.0));
    assert_eq!(figures(1), (1.0, 2.0, 0.5));
    assert_eq!(Slices::default().slots(), None, "of a job that was there for no time");
}

#[test]
fn where_time_is_not_sliced_there_are_none() {
    let schedule = crate::support::run(4, &jobs(&[(0, 5, 4, 5)]), "easy", EventOrder::Batched);
    assert_eq!(schedule.0[0].slices, None);
}
