//! The records of the matrix observers equal the ledger at every instant.

use std::collections::BTreeMap;

use miserly_core::{EventOrder, Ledger, Machine, SlotId, Time};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, MatrixRecord, MatrixWatch, MostSlots, Observer, Simulation};
use proptest::prelude::*;

use super::settings::{PACKINGS, scheduler, workload};
use crate::support::{BOTH, SEED, in_order, jobs};

/// Slot, job number, processors, and whether the place is the job's own.
type Place = (SlotId, i64, String, bool);

/// The places by the placements in the ledger and by its rows.
fn in_ledger(ledger: &Ledger) -> Vec<Place> {
    let matrix = ledger.matrix().expect("time is sliced");
    let mut places = vec![];
    for (slot, row) in matrix.slots() {
        let own = ledger.running().filter(|job| ledger.entry(*job).placement().unwrap().slot == slot);
        let here = own.map(|job| (job, true)).chain(row.alternates().map(|job| (job, false)));
        places.extend(here.map(|(job, own)| {
            let entry = ledger.entry(job);
            let pes = entry.placement().unwrap().pes().unwrap().to_string();
            (slot, entry.request.number, pes, own)
        }));
    }
    places.sort();
    places
}

/// The places that were there in the instant after `now`, as recorded.
fn recorded(record: &MatrixRecord, now: Time) -> Vec<Place> {
    let there = record.places.iter().filter(|held| held.from <= now && now < held.to);
    let mut places: Vec<Place> = there
        .map(|held| (held.place.slot, held.place.number, held.place.pes.to_string(), held.place.own))
        .collect();
    places.sort();
    places
}

/// Plays the jobs under the eyes of observers; the ledger's places at the end of each instant.
fn play(
    machine: &Machine,
    jobs: &[Job],
    policy: &str,
    instants: EventOrder,
    observers: &mut [&mut dyn Observer],
) -> BTreeMap<Time, Vec<Place>> {
    let policy = policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine.clone(), policy, instants);
    let mut source = in_order(jobs).peekable();
    let mut all = BTreeMap::new();
    while let Some(now) = simulation.step(&mut source, observers).unwrap() {
        all.insert(now, in_ledger(simulation.system().queues()[0].ledger()));
    }
    all
}

proptest! {
    #[test]
    fn every_instant_is_recorded((machine, jobs) in workload(true), (policy, _) in scheduler()) {
        for instants in BOTH {
            let mut watch = MatrixWatch::new(Time::ZERO, Time::MAX, usize::MAX);
            let ledger = play(&machine, &jobs, &policy, instants, &mut [&mut watch]);
            let record = watch.record().unwrap();
            prop_assert!(!record.cut && record.places.iter().all(|held| held.from < held.to));
            for (now, places) in &ledger {
                prop_assert_eq!(&recorded(&record, *now), places, "{} at {}", policy, now);
            }
        }
    }

    #[test]
    fn a_window_is_what_the_whole_record_has_of_it(
        (machine, jobs) in workload(false),
        packing in 0..PACKINGS.len(),
        (from, long) in (0i64..60, 1i64..60),
        most in 0usize..40,
    ) {
        let policy = format!("gang({})", PACKINGS[packing].0);
        let (from, to) = (Time::from_secs(from).unwrap(), Time::from_secs(from + long).unwrap());
        let mut whole = MatrixWatch::new(Time::ZERO, Time::MAX, usize::MAX);
        let mut part = MatrixWatch::new(from, to, most);
        let ledger = play(&machine, &jobs, &policy, EventOrder::Batched, &mut [&mut whole, &mut part]);
        let (of_whole, whole) = (whole.part(from, to, most).unwrap(), whole.record().unwrap());
        let part = part.record().unwrap();
        prop_assert!(of_whole.to >= part.to && (part.cut || of_whole == part));
        for part in [part, of_whole] {
            prop_assert!(part.cut || part.to == to);
            let at_begin = recorded(&part, from).len();
            prop_assert!(part.places.len() <= most.max(at_begin), "{} of {most}", part.places.len());
            let within = ledger.keys().copied().chain([from]);
            for now in within.filter(|now| (part.from..part.to).contains(now)) {
                prop_assert_eq!(recorded(&part, now), recorded(&whole, now), "{} at {}", policy, now);
            }
            if part.cut {
                prop_assert!(part.to > from && part.to < to);
            }
        }
    }
}

#[test]
fn the_most_slots_are_found() {
    // Three slots from 2 on, with the most processors taken at 3; again three at 60, with fewer.
    let quads = [
        (0, 10, 4, 10),
        (1, 10, 4, 10),
        (2, 10, 3, 10),
        (3, 2, 1, 2),
        (60, 9, 4, 9),
        (60, 9, 3, 9),
        (60, 9, 2, 9),
    ];
    let mut most = MostSlots::default();
    play(&Machine::plain(4), &jobs(&quads), "gang(packing=first-fit)", EventOrder::Batched, &mut [&mut most]);
    assert_eq!(most.at(), Time::from_secs(3));
}

#[test]
fn who_does_not_slice_time_has_no_matrix() {
    let machine = Machine::plain(4);
    let policy = "easy".parse::<PolicySpec>().unwrap().build(&machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine, policy, EventOrder::Batched);
    let (mut watch, mut most) = (MatrixWatch::new(Time::ZERO, Time::MAX, 9), MostSlots::default());
    let mut source = in_order(&jobs(&[(0, 10, 4, 10)])).collect::<Vec<_>>().into_iter();
    simulation.run(&mut source, &mut [&mut watch, &mut most]).unwrap();
    assert_eq!((watch.record(), most.at()), (None, None));
}
