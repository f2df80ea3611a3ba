//! The matrix of a gang scheduler at an instant: as a document, and as text.

mod text;

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_sim::{MatrixRecord, PlaceHeld};
use serde::Serialize;

/// Who is in which slot at an instant. Times in seconds of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixDoc {
    version: &'static str,
    policy: String,
    at: f64,
    procs: u64,
    /// The slots that are used, ascending.
    slots: Vec<SlotDoc>,
    /// The jobs, in the order of their submission.
    jobs: Vec<JobDoc>,
}

/// A slot that is used: some job has its own place there.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SlotDoc {
    slot: u32,
    /// Processors of the jobs that have their own places there.
    own: u64,
    /// Processors on which others run there too.
    also: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct JobDoc {
    job: i64,
    user: Option<u32>,
    procs: u64,
    submit: f64,
    /// Its own slot.
    slot: u32,
    /// The other slots in which it runs, since nobody else needs its processors there.
    also_in: Vec<u32>,
    /// Since when it has its own place.
    since: f64,
    /// The slots in which it runs over the slots that are used.
    run_fraction: f64,
    /// Its processors as inclusive ranges.
    pes: Vec<(u32, u32)>,
}

impl MatrixDoc {
    /// The matrix at the begin of a record.
    pub fn of(record: &MatrixRecord, policy: String) -> MatrixDoc {
        let there = |held: &&PlaceHeld| held.from <= record.from && record.from < held.to;
        let places: Vec<&PlaceHeld> = record.places.iter().filter(there).collect();
        let slots = slots(&places);
        MatrixDoc {
            version: env!("CARGO_PKG_VERSION"),
            policy,
            at: secs(record.from),
            procs: record.procs,
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
