//! The Ousterhout matrix for sliced processors: the processors of each job in each slot (Feitelson
//! 1996, §2).

use std::collections::BTreeMap;

use super::Ledger;
use super::progress::Pace;
use crate::violation::Rule;
use crate::{JobId, PeSet, Persistent, PolicyState, Procs, SlotId, Span};

/// The time slicing of the processors of the only host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// The maximum number of slots with own places of jobs. While more are in use, no slot is
    /// opened.
    pub most_slots: u32,
    /// The time for which a slot works in its time slice, at least one tick.
    pub quantum: Span,
    /// The cost of a context switch to the slot, if there are other slots. A job that runs in all
    /// slots is not interrupted.
    pub switch: Span,
}

impl Slicing {
    /// Any number of slots, and free context switches.
    pub const FREE: Slicing = Slicing { most_slots: u32::MAX, quantum: Span::TICK, switch: Span::ZERO };

    /// Returns the pace of a job that runs in `turns` of the slots.
    fn pace(self, turns: u64, used: u64) -> Pace {
        let ticks = |span: Span| span.ticks().max(0).unsigned_abs();
        if turns >= used {
            return Pace::WHOLE;
        }
        if self.switch <= Span::ZERO {
            return Pace::new(turns, used);
        }
        let (useful, turn) = (ticks(self.quantum).max(1), ticks(self.quantum) + ticks(self.switch));
        Pace::new(useful.saturating_mul(turns), turn.saturating_mul(used))
    }
}

impl Ledger {
    /// Returns the number of slot unifications at terminations, if time is sliced.
    pub fn unifications(&self) -> Option<u64> {
        self.matrix().map(|matrix| matrix.unifications)
    }
}

/// The slots of a matrix over the processors of one host.
///
/// A job has its own place in one slot. It may have the same processors in alternate slots
/// (alternative scheduling). There it is evicted when another job gets its own place. A slot is
/// used while some job has its own place in it. The used slots run in rotation. So the share of the
/// time of a job is the number of its slots over the number of used slots.
#[derive(Clone, Debug)]
pub struct Matrix {
    slicing: Slicing,
    all: PeSet,
    slots: Vec<Slot>,
    used: usize,
    stale: Stale,
    /// The slots of the jobs that ended since the last pass.
    vacated: Vec<SlotId>,
    /// The number of changes of slots, and its value at the last update of all paces.
    changes: u64,
    settled: Option<u64>,
    /// The number of slot unifications at terminations.
    unifications: u64,
}

/// A slot of a matrix.
#[derive(Clone, Debug)]
pub struct Slot {
    open: PeSet,
    open_count: Procs,
    jobs: usize,
    /// The number of allocated processors here that the host has lost.
    lost: Procs,
    /// The state that policies store for the slot while it is used.
    state: PolicyState,
    /// The alternate jobs of this slot, each on its own processors.
    alternates: BTreeMap<JobId, PeSet>,
    /// The open processors without an alternate job.
    idle: PeSet,
    version: u64,
}

/// The jobs whose paces must be updated.
#[derive(Clone, Debug)]
enum Stale {
    All,
    These(Vec<JobId>),
}

impl Slot {
    fn unused(all: &PeSet) -> Slot {
        let (open, idle) = (all.clone(), all.clone());
        Slot {
            open,
            open_count: all.count(),
            jobs: 0,
            lost: Procs::ZERO,
            state: PolicyState::EMPTY,
            alternates: BTreeMap::new(),
            idle,
            version: 0,
        }
    }

    /// Returns the processors on which no job has its own place in this slot. Alternate jobs may
    /// run there.
    pub fn open(&self) -> &PeSet {
        &self.open
    }

    /// Returns the number of open processors. O(1).
    pub fn open_count(&self) -> Procs {
        self.open_count
    }

    /// Returns the number of processors that jobs own here and that the host has lost.
    pub fn lost_count(&self) -> Procs {
        self.lost
    }

    /// Returns the processors that no job uses in this slot. Alternate jobs count as users.
    pub fn idle(&self) -> &PeSet {
        &self.idle
    }

    /// Returns a version number that changes with the own places and the alternate jobs of the
    /// slot.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns whether some job has its own place in the slot.
    pub fn is_used(&self) -> bool {
        self.jobs > 0
    }

    /// Returns the state that policies store for the slot. It is empty when the slot comes into
    /// use.
    pub fn state(&self) -> &PolicyState {
        &self.state
    }

    /// Returns the alternate jobs of the slot, ordered by their handles.
    pub fn alternates(&self) -> impl ExactSizeIterator<Item = JobId> + '_ {
        self.alternates.keys().copied()
    }

    /// Returns whether a job is an alternate of the slot. O(log a) in their number a.
    pub fn has_alternate(&self, job: JobId) -> bool {
        self.alternates.contains_key(&job)
    }

    /// Evicts the alternate jobs on some of these processors and returns them. O(alternate jobs),
    /// if any of these processors is not idle.
    fn evict(&mut self, pes: &PeSet) -> Vec<JobId> {
        if self.idle.contains_all(pes) {
            return vec![];
        }
        let in_the_way = self.alternates.iter().filter(|(_, its)| its.intersects(pes)).map(|(job, _)| *job);
        let evicted: Vec<JobId> = in_the_way.collect();
        for job in &evicted {
            self.remove_alternate(*job);
        }
        evicted
    }

    fn remove_alternate(&mut self, job: JobId) {
        if let Some(pes) = self.alternates.remove(&job) {
            self.idle.insert_all(&pes);
        }
    }
}

impl Matrix {
    /// Returns a matrix without used slots.
    pub(super) fn new(slicing: Slicing, all: PeSet) -> Matrix {
        let stale = Stale::These(vec![]);
        Matrix {
            slicing,
            all,
            slots: vec![],
            used: 0,
            stale,
            vacated: vec![],
            changes: 0,
            settled: None,
            unifications: 0,
        }
    }

    /// Returns an empty matrix for another number of processors, with the same counters. Every job
    /// that is added counts as a change.
    pub(super) fn emptied(&self, all: PeSet) -> Matrix {
        let vacated = self.vacated.clone();
        let (changes, unifications) = (self.changes, self.unifications);
        Matrix { vacated, changes, unifications, ..Matrix::new(self.slicing, all) }
    }

    /// Returns the slot for a change, with a new version.
    fn changed(&mut self, slot: SlotId) -> Option<&mut Slot> {
        self.changes += 1;
        let row = self.slots.get_mut(index(slot))?;
        row.version = self.changes;
        Some(row)
    }

    /// Sets the time slicing from now on.
    pub(super) fn slice(&mut self, slicing: Slicing) {
        self.slicing = slicing;
        self.stale = Stale::All;
    }

    /// Returns the time slicing.
    pub fn slicing(&self) -> Slicing {
        self.slicing
    }

    /// Returns all processors of the host.
    pub fn all(&self) -> &PeSet {
        &self.all
    }

    /// Returns the number of used slots.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns the used slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        (0..).map(SlotId).zip(&self.slots).filter(|(_, row)| row.is_used())
    }

    /// Returns the slot, if it is used.
    pub fn slot(&self, slot: SlotId) -> Option<&Slot> {
        self.slots.get(index(slot)).filter(|row| row.is_used())
    }

    /// Returns the maximum number of slots: the limit, or the number of used slots if that is
    /// larger.
    pub fn most(&self) -> usize {
        self.used.max(index(SlotId(self.slicing.most_slots)))
    }

    /// Returns the lowest unused slot, or `None` at the maximum number of slots. O(slots).
    pub fn unused(&self) -> Option<SlotId> {
        let free = self.slots.iter().position(|row| !row.is_used()).unwrap_or(self.slots.len());
        u32::try_from(free).ok().filter(|_| self.used < self.most()).map(SlotId)
    }

    /// Returns the own slots of the jobs that ended since the last pass, in the order of their
    /// ends. Such a slot may now be unused, or used by other jobs.
    pub fn vacated(&self) -> &[SlotId] {
        &self.vacated
    }

    pub(super) fn vacated_mut(&mut self) -> &mut Vec<SlotId> {
        &mut self.vacated
    }

    /// Returns the number of idle processors as a mean over the used slots, rounded down. Returns
    /// all processors if no slot is used.
    ///
    /// O(slots), and O(r) in the number of idle ranges.
    pub(super) fn idle_count(&self) -> Procs {
        let sum: u64 = self.slots.iter().filter(|row| row.is_used()).map(|row| row.idle.count().get()).sum();
        sum.checked_div(self.used as u64).map_or_else(|| self.all.count(), Procs::new)
    }

    /// Returns the pace of a job that runs in this number of slots.
    pub(super) fn pace(&self, turns: usize) -> Pace {
        self.slicing.pace(turns as u64, self.used as u64)
    }

    /// Checks that a job could have its own place there. `most` is the maximum number of slots,
    /// which limits only the use of a new slot.
    pub(super) fn check(&self, slot: SlotId, pes: &PeSet, most: usize) -> Result<(), Rule> {
        let open = match self.slot(slot) {
            Some(row) => &row.open,
            None if self.used < most && index(slot) < most => &self.all,
            None => return Err(Rule::NoSuchSlot),
        };
        if open.contains_all(pes) { Ok(()) } else { Err(Rule::WrongPes) }
    }

    /// Gives a job its own place, which was checked. Returns the evicted alternate jobs.
    pub(super) fn take(&mut self, slot: SlotId, pes: &PeSet) -> Vec<JobId> {
        while self.slots.len() <= index(slot) {
            self.slots.push(Slot::unused(&self.all));
        }
        let Some(row) = self.changed(slot) else { return vec![] };
        let evicted = row.evict(pes);
        row.open.remove_all(pes);
        row.idle.remove_all(pes);
        let before = std::mem::replace(&mut row.open_count, row.open.count());
        // A job may also have processors that the machine has lost, which were not open.
        row.lost += pes.count() - (before - row.open_count);
        row.jobs += 1;
        if row.jobs == 1 {
            self.used += 1;
            self.stale = Stale::All;
        }
        evicted
    }

    /// Takes the own place of a job. Returns the alternate jobs of a slot that becomes unused.
    pub(super) fn give(&mut self, slot: SlotId, pes: &PeSet) -> Vec<JobId> {
        // Processors that the machine has lost are not free when they are released.
        let there = pes.intersection(&self.all);
        let Some(row) = self.changed(slot) else { return vec![] };
        row.open.insert_all(&there);
        row.idle.insert_all(&there);
        let before = std::mem::replace(&mut row.open_count, row.open.count());
        row.lost -= pes.count() - (row.open_count - before);
        row.jobs -= 1;
        if row.jobs > 0 {
            return vec![];
        }
        row.state = PolicyState::EMPTY;
        row.idle.clone_from(&row.open);
        let evicted = std::mem::take(&mut row.alternates).into_keys().collect();
        self.used -= 1;
        self.stale = Stale::All;
        evicted
    }

    /// Adds an alternate job to a used slot in which all its processors are idle.
    pub(super) fn add_alternate(&mut self, job: JobId, slot: SlotId, pes: &PeSet) -> Result<(), Rule> {
        let row = self.slot(slot).ok_or(Rule::NoSuchSlot)?;
        if !row.idle.contains_all(pes) {
            return Err(Rule::WrongPes);
        }
        if let Some(row) = self.changed(slot) {
            row.idle.remove_all(pes);
            row.alternates.insert(job, pes.clone());
        }
        Ok(())
    }

    /// Removes an alternate job from a slot.
    pub(super) fn remove_alternate(&mut self, job: JobId, slot: SlotId) {
        if let Some(row) = self.changed(slot) {
            row.remove_alternate(job);
        }
    }

    pub(super) fn set_state<T: Persistent>(&mut self, slot: SlotId, value: &T) -> Result<(), Rule> {
        self.used_mut(slot)?.state.set(value);
        Ok(())
    }

    pub(super) fn restore_state(&mut self, slot: SlotId, state: PolicyState) -> Result<(), Rule> {
        self.used_mut(slot)?.state = state;
        Ok(())
    }

    fn used_mut(&mut self, slot: SlotId) -> Result<&mut Slot, Rule> {
        self.slots.get_mut(index(slot)).filter(|row| row.is_used()).ok_or(Rule::NoSuchSlot)
    }

    pub(super) fn count_unification(&mut self) {
        self.unifications += 1;
    }

    /// Records that the pace of a job may have changed.
    pub(super) fn touch(&mut self, job: JobId) {
        if let Stale::These(jobs) = &mut self.stale {
            jobs.push(job);
        }
    }

    /// Returns whether no slot and no pace has changed since the last call.
    pub(super) fn settle(&mut self) -> bool {
        let nothing = matches!(&self.stale, Stale::These(jobs) if jobs.is_empty());
        self.settled.replace(self.changes) == Some(self.changes) && nothing
    }

    /// Returns the jobs whose paces must be updated, each once, or `None` for all jobs. Clears the
    /// list.
    pub(super) fn take_stale(&mut self) -> Option<Vec<JobId>> {
        match std::mem::replace(&mut self.stale, Stale::These(vec![])) {
            Stale::All => None,
            Stale::These(mut jobs) => {
                jobs.sort_unstable();
                jobs.dedup();
                Some(jobs)
            }
        }
    }
}

fn index(slot: SlotId) -> usize {
    slot.0 as usize
}
