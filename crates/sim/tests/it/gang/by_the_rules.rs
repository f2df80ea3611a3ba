//! Invariants of any gang schedule.

use std::collections::BTreeMap;

use miserly_core::{Entry, EventOrder, JobNumber, Ledger, Machine, PeSet, Procs, SlotId, Time, work};
use miserly_sim::Job;
use proptest::prelude::*;

use super::play;
use super::settings::{PACKINGS, scheduler, workload};
use crate::rebuild::run_replacing;
use crate::support::{BOTH, Schedule, jobs_in, run, run_on, tick_jobs};

/// A multiple of every number of rows that a few jobs may need.
const PARTS: u128 = 5_354_228_880;

fn running(ledger: &Ledger) -> Vec<&Entry> {
    ledger.running().map(|job| ledger.entry(job)).collect()
}

fn place(entry: &Entry) -> (SlotId, &PeSet) {
    let placement = entry.placement().expect("it runs");
    (placement.slot, placement.pes().expect("it is on certain processors"))
}

/// The rows in which it runs, its own first.
fn rows(entry: &Entry) -> Vec<SlotId> {
    [place(entry).0].into_iter().chain(entry.alternate_slots.iter().copied()).collect()
}

fn used(jobs: &[&Entry]) -> usize {
    let mut used: Vec<SlotId> = jobs.iter().map(|entry| place(entry).0).collect();
    used.sort_unstable();
    used.dedup();
    used.len()
}

fn check_rows(ledger: &Ledger) {
    let jobs = running(ledger);
    for (nth, one) in jobs.iter().enumerate() {
        assert_eq!(place(one).1.count(), one.request.procs());
        assert!(rows(one).iter().all(|row| jobs.iter().any(|entry| place(entry).0 == *row)), "rows are used");
        for other in &jobs[..nth] {
            let common = rows(one).iter().any(|row| rows(other).contains(row));
            assert!(!common || !place(one).1.intersects(place(other).1), "a processor has one job in a row");
        }
    }
}

fn check_fractions(ledger: &Ledger) {
    let jobs = running(ledger);
    for entry in &jobs {
        let (turns, of) = (entry.progress.pace.turns(), entry.progress.pace.denominator());
        assert_eq!(turns * used(&jobs) as u64, of * rows(entry).len() as u64, "rows available / rows used");
    }
}

/// The processor-ticks, in parts, that the jobs have done between the rounds.
#[derive(Default)]
struct Account {
    last: Option<Time>,
    /// Of each running job: in a tick.
    speed: BTreeMap<JobNumber, u128>,
    done: BTreeMap<JobNumber, u128>,
}

impl Account {
    fn note(&mut self, now: Time, ledger: &Ledger) {
        for (job, speed) in &self.speed {
            let since = self.last.map_or(0, |last| work(now - last, Procs::new(1)));
            *self.done.entry(*job).or_default() += since * speed;
        }
        let jobs = running(ledger);
        let speed = |entry: &&Entry| {
            let parts = PARTS / used(&jobs) as u128 * rows(entry).len() as u128;
            (entry.request.number, parts * u128::from(entry.request.procs()))
        };
        for entry in &jobs {
            let done = self.done.get(&entry.request.number).copied().unwrap_or(0);
            assert_eq!(entry.done(now), done / PARTS, "job {}", entry.request.number);
        }
        let speed = jobs.iter().map(speed).collect();
        self.last = Some(now);
        // A job that ended keeps the speed that it had last.
        self.speed = speed;
    }
}

proptest! {
    #[test]
    fn no_processor_has_two_jobs_in_a_row((machine, jobs) in workload(true), (policy, _) in scheduler()) {
        for instants in BOTH {
            play(&machine, &jobs, &policy, instants, |_, ledger| check_rows(ledger));
        }
    }

    #[test]
    fn run_fractions_are_rows_available_over_rows_used((machine, jobs) in workload(true), (policy, _) in scheduler()) {
        // Without the costs, which come last.
        let policy = format!("{})", policy.split(", quantum").next().unwrap());
        for instants in BOTH {
            play(&machine, &jobs, &policy, instants, |_, ledger| check_fractions(ledger));
        }
    }

    #[test]
    fn work_is_conserved((machine, jobs) in workload(true), packing in 0..PACKINGS.len()) {
        let policy = format!("gang({})", PACKINGS[packing].0);
        for instants in BOTH {
            let mut account = Account::default();
            let finished = play(&machine, &jobs, &policy, instants, |now, ledger| account.note(now, ledger));
            for job in finished {
                let done = account.done.get(&job.request.number).copied().unwrap_or(0);
                let asked = work(job.runtime, job.request.procs()) * PARTS;
                let tick = u128::from(job.request.procs()) * PARTS;
                prop_assert!(done >= asked && done < asked + tick, "to the tick, job {}", job.request.number);
            }
        }
    }

    #[test]
    fn a_ledger_is_restored_with_its_rows((machine, jobs) in workload(true), (policy, _) in scheduler()) {
        play(&machine, &jobs, &policy, EventOrder::Batched, |now, ledger| {
            let handles: Vec<_> = ledger.running().chain(ledger.waiting()).collect();
            let entries = handles.iter().map(|job| (*job, ledger.entry(*job).clone())).collect();
            let mut restored = Ledger::restored(machine.clone(), entries).unwrap();
            restored.slice_time(ledger.matrix().unwrap().slicing());
            restored.sanity_check(now);
            let rows = |ledger: &Ledger| -> Vec<(SlotId, PeSet, PeSet)> {
                let matrix = ledger.matrix().unwrap();
                matrix.slots().map(|(slot, row)| (slot, row.open().clone(), row.idle().clone())).collect()
            };
            assert_eq!(rows(&restored), rows(ledger));
            assert!(handles.iter().all(|job| restored.entry(*job) == ledger.entry(*job)));
        });
    }

    #[test]
    fn powers_of_two_are_packed_in_the_fewest_rows(
        lg in 0u32..6,
        asks in prop::collection::vec((0i64..40, 0i64..20, 0u32..6), 1..30),
    ) {
        let procs = 1 << lg;
        let quads: Vec<_> = asks.iter().map(|(at, run, size)| (*at, *run, 1 << size.min(&lg), *run)).collect();
        let jobs = jobs_in(1_000_000, &quads);
        for instants in BOTH {
            play(&Machine::plain(procs), &jobs, "gang(packing=migration)", instants, |_, ledger| {
                let jobs = running(ledger);
                let sum: u64 = jobs.iter().map(|entry| entry.request.procs().get()).sum();
                assert_eq!(used(&jobs) as u64, sum.div_ceil(procs));
            });
        }
    }

    #[test]
    fn one_row_and_a_strict_queue_are_first_come_first_served(
        (procs, quads) in crate::support::workload(true),
        packing in 0..7usize,
    ) {
        // The packings that take any free processors. The costs apply to several slots only.
        let (packing, _) = PACKINGS[packing];
        let policy = format!("gang({packing}, slots=1, strict=true, quantum=1s, switch=0.5, migrate=3)");
        let jobs = tick_jobs(&quads);
        for instants in BOTH {
            let fcfs = run(procs, &jobs, "fcfs", instants);
            let gang = run(procs, &jobs, &policy, instants);
            prop_assert_eq!(fcfs.decisions(), gang.decisions(), "{}, {}", policy, instants);
            prop_assert_eq!(ends(&fcfs), ends(&gang), "{}, {}", policy, instants);
        }
    }

    #[test]
    fn a_rebuilt_policy_goes_on_the_same(
        (machine, jobs) in workload(true),
        (policy, _) in scheduler(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        for instants in BOTH {
            let kept = run_on(&machine, &jobs, &policy, instants);
            let rebuilt = run_replacing(&machine, &jobs, &policy, instants, &replace);
            prop_assert_eq!(kept.decisions(), rebuilt.decisions(), "{}, {}", policy, instants);
            prop_assert_eq!(ends(&kept), ends(&rebuilt), "{}, {}", policy, instants);
        }
    }
}

fn ends(schedule: &Schedule) -> Vec<Time> {
    schedule.0.iter().map(|job| job.end).collect()
}

/// Hundreds of jobs at once, in which rows open and close all the time.
fn crowd(seed: u64) -> Vec<Job> {
    let (_, quads) = crate::support::crowd(seed);
    jobs_in(1_000_003, &quads)
}

#[test]
fn with_hundreds_of_jobs_every_packing_keeps_its_rules() {
    for (packing, _) in PACKINGS {
        let policy = format!("gang({packing})");
        let machine = Machine::plain(40);
        let mut most = 0;
        let finished = play(&machine, &crowd(3), &policy, EventOrder::Batched, |_, ledger| {
            check_rows(ledger);
            check_fractions(ledger);
            most = most.max(used(&running(ledger)));
        });
        assert!(most > 10, "{policy} has {most} rows at most");
        assert!(finished.iter().all(|job| job.end - job.start >= job.runtime));
    }
}
