//! The Ousterhout matrix of a gang scheduler at an instant, as a document and as text.

mod text;

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_sim::{MatrixRecord, PlaceHeld};
use serde::Serialize;

/// The jobs in each slot at an instant. Times are in seconds of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixDoc {
    version: &'static str,
    policy: String,
    at: f64,
    procs: u64,
    /// Slots in use, ascending.
    slots: Vec<SlotDoc>,
    /// Jobs in the order of submission.
    jobs: Vec<JobDoc>,
}

/// A slot in use, which is the own slot of at least one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SlotDoc {
    slot: u32,
    /// Processors of jobs in their own slot.
    own: u64,
    /// Processors of alternate jobs in this slot.
    also: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct JobDoc {
    job: i64,
    user: Option<u32>,
    procs: u64,
    submit: f64,
    /// Own slot.
    slot: u32,
    /// Alternate slots, in which no other job needs the processors.
    also_in: Vec<u32>,
    /// Start of the placement in the own slot.
    since: f64,
    /// Slots in which the job runs over slots in use.
    run_fraction: f64,
    /// Processors as inclusive ranges.
    pes: Vec<(u32, u32)>,
}

impl MatrixDoc {
    /// Creates the document of the matrix at the begin of a record.
    pub fn new(record: &MatrixRecord, policy: String) -> MatrixDoc {
        let there = |held: &&PlaceHeld| held.from <= record.from && record.from < held.to;
        let places: Vec<&PlaceHeld> = record.places.iter().filter(there).collect();
        let slots = slots(&places);
        MatrixDoc {
            version: env!("CARGO_PKG_VERSION"),
            policy,
            at: secs(record.from),
            procs: record.procs.get(),
            jobs: jobs(&places, slots.len()),
            slots,
        }
    }
}

fn slots(places: &[&PlaceHeld]) -> Vec<SlotDoc> {
    let mut slots: BTreeMap<u32, SlotDoc> = BTreeMap::new();
    for place in places.iter().map(|held| &held.place) {
        let slot = place.slot.0;
        let doc = slots.entry(slot).or_insert(SlotDoc { slot, own: 0, also: 0 });
        *(if place.own { &mut doc.own } else { &mut doc.also }) += place.pes.count().get();
    }
    slots.into_values().collect()
}

fn jobs(places: &[&PlaceHeld], used: usize) -> Vec<JobDoc> {
    let mut also: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for place in places.iter().map(|held| &held.place).filter(|place| !place.own) {
        also.entry(place.admission).or_default().push(place.slot.0);
    }
    let job = |held: &&PlaceHeld| {
        let place = &held.place;
        let mut also_in = also.get(&place.admission).cloned().unwrap_or_default();
        also_in.sort_unstable();
        JobDoc {
            job: place.number,
            user: place.user,
            procs: place.pes.count().get(),
            submit: secs(place.submit),
            slot: place.slot.0,
            since: secs(held.from),
            run_fraction: (1 + also_in.len()) as f64 / used.max(1) as f64,
            also_in,
            pes: place.pes.ranges().to_vec(),
        }
    };
    let mut own: Vec<&PlaceHeld> = places.iter().copied().filter(|held| held.place.own).collect();
    own.sort_by_key(|held| held.place.admission);
    own.iter().map(job).collect()
}

fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}
