//! The packing schemes.

use std::cmp::Reverse;

use super::buddy::on_least;
use super::world::World;
use super::{NaivePacking, buddy};

/// A place in a slot.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) pes: Vec<bool>,
    /// Whether the slot is new and filled from the right.
    pub(super) from_right: bool,
}

/// Returns the place for a job of this size: in a used slot, or otherwise in the lowest unused one.
pub(super) fn place(world: &World<'_>, size: usize) -> Option<Place> {
    let used = world.used();
    if let Some((slot, pes)) = in_used(world, &used, size) {
        return Some(Place { slot, pes, from_right: false });
    }
    let slot = (0..=used.len()).find(|slot| !used.contains(slot))?;
    let right = used.iter().filter(|slot| world.from_right.contains(slot)).count();
    let from_right = world.rules.packing == NaivePacking::BySlots && used.len() - right > right;
    let pes = within(world, &vec![true; world.procs], size, from_right)?;
    Some(Place { slot, pes, from_right })
}

fn in_used(world: &World<'_>, used: &[usize], size: usize) -> Option<(usize, Vec<bool>)> {
    let rows = used.iter().map(|slot| (*slot, world.open(*slot)));
    let rows: Vec<(usize, Vec<bool>)> = rows.filter(|(_, open)| count(open) >= size).collect();
    let cost = |open: &[bool]| -> Option<usize> {
        match world.rules.packing {
            NaivePacking::FirstFit | NaivePacking::Migration => Some(0),
            NaivePacking::BestFit | NaivePacking::BySize { .. } | NaivePacking::BySlots => Some(count(open)),
            NaivePacking::MinMax => by_load(world, open).get(size - 1).map(|(load, _)| *load),
            NaivePacking::MinAverage => Some(by_load(world, open)[..size].iter().map(|(load, _)| load).sum()),
            NaivePacking::Buddy | NaivePacking::BuddyByMax => {
                on_least(world, open, size).map(|(load, _)| load)
            }
        }
    };
    let possible = rows.into_iter().filter_map(|(slot, open)| Some((cost(&open)?, slot, open)));
    let (_, slot, open) = possible.min_by_key(|(cost, slot, _)| (*cost, *slot))?;
    let pes = within(world, &open, size, world.from_right.contains(&slot))?;
    Some((slot, pes))
}

/// Returns `size` of these processors.
fn within(world: &World<'_>, open: &[bool], size: usize, from_right: bool) -> Option<Vec<bool>> {
    let mut order: Vec<usize> = (0..world.procs).filter(|pe| open[*pe]).collect();
    match world.rules.packing {
        NaivePacking::BySize { threshold } if size > threshold => order.reverse(),
        NaivePacking::BySlots if from_right => order.reverse(),
        NaivePacking::MinMax | NaivePacking::MinAverage => {
            order = by_load(world, open).into_iter().map(|(_, pe)| pe).collect();
        }
        NaivePacking::Buddy | NaivePacking::BuddyByMax => {
            let (_, controller) = on_least(world, open, size)?;
            order = buddy::choose(world, controller, size);
        }
        _ => {}
    }
    Some((0..world.procs).map(|pe| order[..size].contains(&pe)).collect())
}

fn count(open: &[bool]) -> usize {
    open.iter().filter(|open| **open).count()
}

/// Returns the number of jobs with places on a processor.
pub(super) fn load(world: &World<'_>, pe: usize) -> usize {
    world.residents().iter().filter(|running| running.pes[pe]).count()
}

/// Returns these processors with their loads, the least loaded first. Ties go to the lowest.
fn by_load(world: &World<'_>, open: &[bool]) -> Vec<(usize, usize)> {
    let mut all: Vec<_> = (0..world.procs).filter(|pe| open[*pe]).map(|pe| (load(world, pe), pe)).collect();
    all.sort_unstable();
    all
}

/// Returns the places of jobs of these sizes, the largest first.
pub(super) fn first_fit_decreasing(procs: usize, sizes: &[usize]) -> Vec<Place> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| (Reverse(sizes[*at]), *at));
    let mut rows: Vec<Vec<bool>> = vec![];
    let mut places = vec![Place { slot: 0, pes: vec![], from_right: false }; sizes.len()];
    for at in order {
        let slot = rows.iter().position(|open| count(open) >= sizes[at]).unwrap_or(rows.len());
        if slot == rows.len() {
            rows.push(vec![true; procs]);
        }
        let mut pes = vec![false; procs];
        for _ in 0..sizes[at] {
            let pe = rows[slot].iter().position(|open| *open).expect("room");
            (rows[slot][pe], pes[pe]) = (false, true);
        }
        places[at] = Place { slot, pes, from_right: false };
    }
    places
}
