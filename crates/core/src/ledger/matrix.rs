//! The Ousterhout matrix, where processors are sliced in time: which of them are whose in which row (Feitelson 1996, §2).

use std::collections::BTreeMap;

use super::Ledger;
use super::progress::Pace;
use crate::violation::Rule;
use crate::{JobId, PeSet, Persistent, PolicyState, Procs, SlotId, Span};

/// How a policy slices the time of the processors of its only host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// In how many rows at most jobs may have their places. Where they have them in more, none is opened until they are fewer.
    pub most_slots: u32,
    /// For how long a row works in its turn; a tick at least.
    pub quantum: Span,
    /// What passes before it works, at each turn, if there are other rows. A job that runs in all of them goes on.
    pub switch: Span,
}

impl Slicing {
    /// As many rows as there are jobs, and switching costs nothing.
    pub const FREE: Slicing = Slicing { most_slots: u32::MAX, quantum: Span::TICK, switch: Span::ZERO };

    /// The pace of a job that runs in so many of the rows.
    fn pace(self, turns: u64, rows: u64) -> Pace {
        let ticks = |span: Span| span.ticks().max(0).unsigned_abs();
        if turns >= rows {
            return Pace::WHOLE;
        }
        if self.switch <= Span::ZERO {
            return Pace::new(turns, rows);
        }
        let (useful, turn) = (ticks(self.quantum).max(1), ticks(self.quantum) + ticks(self.switch));
        Pace::new(useful.saturating_mul(turns), turn.saturating_mul(rows))
    }
}

impl Ledger {
    /// Returns the number of slot unifications at terminations, if time is sliced.
    pub fn unifications(&self) -> Option<u64> {
        self.matrix().map(|matrix| matrix.unifications)
    }
}

/// The rows of a matrix over the processors of one host.
///
/// A job has its own place in one row, and may have the same processors in further rows (alternative scheduling). What it has there is
/// tentative: it gives way to whoever gets a place of his own there. A row is used as long as some job has its own place in it, and the rows
/// that are used take turns; so a job has a share of the time that is the rows it runs in over the rows that are used.
#[derive(Clone, Debug)]
pub struct Matrix {
    slicing: Slicing,
    all: PeSet,
    rows: Vec<Slot>,
    used: usize,
    stale: Stale,
    /// The rows of the jobs that ended since the last pass.
    vacated: Vec<SlotId>,
    /// How often any row has changed, and after how many changes all was brought up to date.
    changes: u64,
    settled: Option<u64>,
    /// The number of slot unifications at terminations.
    unifications: u64,
}

/// A row of a matrix.
#[derive(Clone, Debug)]
pub struct Slot {
    open: PeSet,
    open_count: Procs,
    jobs: usize,
    /// How many processors jobs have here besides that the host has lost.
    lost: Procs,
    /// The state that policies keep of it while it is used.
    state: PolicyState,
    /// Those that run here besides, each on its own processors.
    guests: BTreeMap<JobId, PeSet>,
    /// What is open, and not theirs.
    idle: PeSet,
    version: u64,
}

/// Whose paces are to be looked at.
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
            guests: BTreeMap::new(),
            idle,
            version: 0,
        }
    }

    /// The processors on which no job has its own place in this row. Tentative jobs may be there.
    pub fn open(&self) -> &PeSet {
        &self.open
    }

    /// How many these are; O(1).
    pub fn open_count(&self) -> Procs {
        self.open_count
    }

    /// How many processors jobs have here as their own that the host has lost.
    pub fn lost_count(&self) -> Procs {
        self.lost
    }

    /// The processors that nobody uses in this row, not even tentatively.
    pub fn idle(&self) -> &PeSet {
        &self.idle
    }

    /// A number that is another one whenever the row is another: who has places here of their own, or runs here besides.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether some job has its own place in it.
    pub fn is_used(&self) -> bool {
        self.jobs > 0
    }

    /// Returns the state that policies keep of it. It is empty when the row comes into use.
    pub fn state(&self) -> &PolicyState {
        &self.state
    }

    /// The jobs that run in it besides those that have their own places there, by their handles.
    pub fn alternates(&self) -> impl ExactSizeIterator<Item = JobId> + '_ {
        self.guests.keys().copied()
    }

    /// Whether a job is one of these.
    pub fn has_alternate(&self, job: JobId) -> bool {
        self.guests.contains_key(&job)
    }

    /// Takes out whoever runs here besides on some of these processors; returns them. O(guests), if any of these is not idle.
    fn evict(&mut self, pes: &PeSet) -> Vec<JobId> {
        if self.idle.contains_all(pes) {
            return vec![];
        }
        let in_the_way = self.guests.iter().filter(|(_, its)| its.intersects(pes)).map(|(job, _)| *job);
        let evicted: Vec<JobId> = in_the_way.collect();
        for job in &evicted {
            self.remove_alternate(*job);
        }
        evicted
    }

    fn remove_alternate(&mut self, job: JobId) {
        if let Some(pes) = self.guests.remove(&job) {
            self.idle.insert_all(&pes);
        }
    }
}

impl Matrix {
    /// No row is used.
    pub(super) fn new(slicing: Slicing, all: PeSet) -> Matrix {
        let stale = Stale::These(vec![]);
        Matrix {
            slicing,
            all,
            rows: vec![],
            used: 0,
            stale,
            vacated: vec![],
            changes: 0,
            settled: None,
            unifications: 0,
        }
    }

    /// The same, for another number of processors: nobody is there yet, and all that comes is news.
    pub(super) fn emptied(&self, all: PeSet) -> Matrix {
        let vacated = self.vacated.clone();
        let (changes, unifications) = (self.changes, self.unifications);
        Matrix { vacated, changes, unifications, ..Matrix::new(self.slicing, all) }
    }

    /// The row, which is about to change.
    fn changed(&mut self, slot: SlotId) -> Option<&mut Slot> {
        self.changes += 1;
        let row = self.rows.get_mut(index(slot))?;
        row.version = self.changes;
        Some(row)
    }

    /// Slices time so from now on.
    pub(super) fn slice(&mut self, slicing: Slicing) {
        self.slicing = slicing;
        self.stale = Stale::All;
    }

    /// How time is sliced.
    pub fn slicing(&self) -> Slicing {
        self.slicing
    }

    /// All processors of the host.
    pub fn all(&self) -> &PeSet {
        &self.all
    }

    /// How many rows are used.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The rows that are used, in order.
    pub fn slots(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        (0..).map(SlotId).zip(&self.rows).filter(|(_, row)| row.is_used())
    }

    /// The row, if it is used.
    pub fn slot(&self, slot: SlotId) -> Option<&Slot> {
        self.rows.get(index(slot)).filter(|row| row.is_used())
    }

    /// How many rows there may be: the limit, or what is used, if that is more since the limit was set.
    pub fn most(&self) -> usize {
        self.used.max(index(SlotId(self.slicing.most_slots)))
    }

    /// The lowest row that is not used; `None` if there may be no more of them. O(rows).
    pub fn unused(&self) -> Option<SlotId> {
        let free = self.rows.iter().position(|row| !row.is_used()).unwrap_or(self.rows.len());
        u32::try_from(free).ok().filter(|_| self.used < self.most()).map(SlotId)
    }

    /// The own rows of the jobs that ended since the last pass, in the order in which they ended: these may be used no longer, or by others.
    pub fn vacated(&self) -> &[SlotId] {
        &self.vacated
    }

    pub(super) fn vacated_mut(&mut self) -> &mut Vec<SlotId> {
        &mut self.vacated
    }

    /// The processors that nobody uses, as a mean over the rows that are used, rounded down; all of them, if none is. O(rows), and O(r) in
    /// the ranges of what is idle there.
    pub(super) fn idle_count(&self) -> Procs {
        let sum: u64 = self.rows.iter().filter(|row| row.is_used()).map(|row| row.idle.count().get()).sum();
        sum.checked_div(self.used as u64).map_or_else(|| self.all.count(), Procs::new)
    }

    /// The share of the time of a job that runs in so many rows.
    pub(super) fn pace(&self, turns: usize) -> Pace {
        self.slicing.pace(turns as u64, self.used as u64)
    }

    /// Whether a job could have its own place there, if there may be `most` rows: that matters only to a row that is not used yet.
    pub(super) fn check(&self, slot: SlotId, pes: &PeSet, most: usize) -> Result<(), Rule> {
        let open = match self.slot(slot) {
            Some(row) => &row.open,
            None if self.used < most && index(slot) < most => &self.all,
            None => return Err(Rule::NoSuchRow),
        };
        if open.contains_all(pes) { Ok(()) } else { Err(Rule::WrongPes) }
    }

    /// Gives a job its own place, which was checked; returns the tentative jobs that give way.
    pub(super) fn take(&mut self, slot: SlotId, pes: &PeSet) -> Vec<JobId> {
        while self.rows.len() <= index(slot) {
            self.rows.push(Slot::unused(&self.all));
        }
        let Some(row) = self.changed(slot) else { return vec![] };
        let evicted = row.evict(pes);
        row.open.remove_all(pes);
        row.idle.remove_all(pes);
        let before = std::mem::replace(&mut row.open_count, row.open.count());
        // A job may have processors besides that the machine has lost, which were not open.
        row.lost += pes.count() - (before - row.open_count);
        row.jobs += 1;
        if row.jobs == 1 {
            self.used += 1;
            self.stale = Stale::All;
        }
        evicted
    }

    /// Takes a job's own place; returns the tentative jobs of a row that is used no longer.
    pub(super) fn give(&mut self, slot: SlotId, pes: &PeSet) -> Vec<JobId> {
        // What the machine does not have any more is not free when it is given back.
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
        let evicted = std::mem::take(&mut row.guests).into_keys().collect();
        self.used -= 1;
        self.stale = Stale::All;
        evicted
    }

    /// Lets a job run in a row that is used and in which all its processors are idle.
    pub(super) fn add_alternate(&mut self, job: JobId, slot: SlotId, pes: &PeSet) -> Result<(), Rule> {
        let row = self.slot(slot).ok_or(Rule::NoSuchRow)?;
        if !row.idle.contains_all(pes) {
            return Err(Rule::WrongPes);
        }
        if let Some(row) = self.changed(slot) {
            row.idle.remove_all(pes);
            row.guests.insert(job, pes.clone());
        }
        Ok(())
    }

    /// Takes a job out of a row in which it is tentatively.
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
        self.rows.get_mut(index(slot)).filter(|row| row.is_used()).ok_or(Rule::NoSuchRow)
    }

    pub(super) fn count_unification(&mut self) {
        self.unifications += 1;
    }

    /// Notes that a job's pace may be another.
    pub(super) fn touch(&mut self, job: JobId) {
        if let Stale::These(jobs) = &mut self.stale {
            jobs.push(job);
        }
    }

    /// Whether no row and no pace has changed since this was asked last.
    pub(super) fn settle(&mut self) -> bool {
        let nothing = matches!(&self.stale, Stale::These(jobs) if jobs.is_empty());
        self.settled.replace(self.changes) == Some(self.changes) && nothing
    }

    /// The jobs whose paces have to be looked at, each once; `None` for all. From now on there are none.
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
