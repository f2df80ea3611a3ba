//! The pass of the scheduler after a submission or an end.

use super::packing::{Place, first_fit_decreasing, place};
use super::world::{Running, World};
use super::{NaiveFurther, NaiveGang, NaivePacking};
use crate::order::arrival;

impl World<'_> {
    /// Unifies slots for the jobs that left these, places waiting jobs, and assigns alternate
    /// slots.
    pub(super) fn pass(&mut self, vacated: &[usize]) {
        let NaiveGang { unify, alternative, packing, .. } = *self.rules;
        if packing == NaivePacking::Migration {
            self.map_anew(None);
        } else if unify {
            for slot in vacated {
                self.unite(*slot);
            }
        }
        for job in self.queue() {
            let started = self.has_rest(job) && self.start(job);
            if !started && self.rules.strict {
                break;
            }
        }
        self.running.iter_mut().for_each(|running| running.further = 0);
        if let Some(first) = alternative {
            self.run_in_further_rows(first);
        }
        self.settle();
    }

    fn limit(&self) -> usize {
        self.rules.slots.unwrap_or(usize::MAX)
    }

    fn start(&mut self, job: usize) -> bool {
        let size = usize::try_from(self.jobs[job].request.procs().get()).expect("a small job");
        let found = if self.rules.packing == NaivePacking::Migration {
            self.map_anew(Some((job, size)))
        } else {
            place(self, size).filter(|place| place.slot < self.limit())
        };
        let Some(Place { slot, pes, from_right }) = found else { return false };
        if from_right {
            self.from_right.push(slot);
        }
        self.waiting.retain(|other| *other != job);
        self.running.push(Running::new(job, self.now, slot, pes));
        true
    }

    /// Maps all jobs again and finds a place for one more. If that takes too many slots, it changes
    /// nothing.
    fn map_anew(&mut self, another: Option<(usize, usize)>) -> Option<Place> {
        let mut all: Vec<(usize, usize)> =
            self.residents().iter().map(|running| (running.job, running.size())).collect();
        all.extend(another);
        all.sort_by_key(|(job, _)| arrival(*job, self.jobs));
        let sizes: Vec<usize> = all.iter().map(|(_, size)| *size).collect();
        let mut places = first_fit_decreasing(self.procs, &sizes);
        if places.iter().any(|place| place.slot >= self.limit()) {
            return None;
        }
        let nth = all.iter().position(|one| Some(*one) == another);
        let its = nth.map(|nth| (all.remove(nth), places.remove(nth)).1);
        for ((job, _), place) in all.into_iter().zip(places) {
            let running = self.running.iter_mut().find(|running| running.job == job).expect("it runs");
            if running.pes != place.pes {
                running.rest(self.now, self.rules.migrate);
            }
            (running.slot, running.pes) = (place.slot, place.pes);
        }
        its
    }

    fn unite(&mut self, slot: usize) {
        let used = self.used();
        if !used.contains(&slot) {
            return;
        }
        let mine = self.open(slot);
        let disjoint =
            |other: usize| other != slot && mine.iter().zip(self.open(other)).all(|(a, b)| *a || b);
        let Some(other) = used.into_iter().find(|other| disjoint(*other)) else { return };
        for running in self.running.iter_mut().filter(|running| !running.gone) {
            if running.slot == slot.max(other) {
                running.slot = slot.min(other);
            }
        }
        self.forget_unused();
    }

    fn run_in_further_rows(&mut self, first: NaiveFurther) {
        for slot in self.used() {
            let mut idle = self.open(slot);
            let mut residents = self.residents();
            if first == NaiveFurther::ByRow {
                residents.sort_by_key(|running| running.slot);
            }
            let order: Vec<usize> = residents.iter().map(|running| running.job).collect();
            for job in order {
                let running = self.running.iter_mut().find(|running| running.job == job).expect("it runs");
                let free = running.pes.iter().zip(&idle).all(|(mine, idle)| !mine || *idle);
                if running.slot != slot && free {
                    running.further += 1;
                    idle.iter_mut().zip(&running.pes).for_each(|(idle, mine)| *idle &= !mine);
                }
            }
        }
    }
}
