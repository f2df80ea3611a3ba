//! Alternative scheduling (§2): jobs run in alternate slots, where their processors are free.

use std::collections::BTreeSet;

use miserly_core::{Context, JobId, Ledger, Matrix, PeSet, Slot, SlotId, Violation};

use super::job_index::JobIndex;
use super::pe_bits::PeBits;
use super::slot_jobs::{SlotJob, SlotJobs};
use super::takers::Takers;

/// The order of jobs that could run in the same alternate slot. The paper does not specify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlternativeOrder {
    /// The order of arrival.
    Arrival,
    /// The order of the jobs' own slots, then of arrival: the order of a walk through the matrix.
    Row,
}

/// The alternates of each slot.
///
/// In the order of arrival, a job is an alternate of a slot if it has no processor in common with the
/// own jobs and with the alternates that were admitted before it. So a change of the slot concerns only
/// the jobs on the changed processors, and later ones on processors that change by that in turn.
#[derive(Debug, Default)]
pub(super) struct Alternative {
    /// By slot. The alternates of unused slots are not remembered.
    rows: Vec<Option<Alternates>>,
    /// All jobs by their processors, while it is needed.
    index: Option<JobIndex>,
    /// The jobs that were placed since the last pass.
    came: Vec<Ranked>,
    /// The jobs that left since the last pass.
    gone: Vec<SlotJob>,
}

/// The admission number of a job, and its handle.
type Ranked = (u64, JobId);

/// The jobs that run in a slot besides its own jobs, in the order of arrival.
#[derive(Debug)]
struct Alternates {
    /// The version of the slot after all alternates entered.
    version: u64,
    /// The processors that were open to the alternates.
    open: PeSet,
    /// In the order of admission.
    jobs: Vec<Ranked>,
    takers: Takers,
}

/// A job and a slot that it enters or leaves.
type Step = (JobId, SlotId);

/// The jobs that enter or leave slots.
#[derive(Debug, Default)]
struct Steps {
    leave: Vec<Step>,
    enter: Vec<Step>,
    /// The slots that have changed.
    slots: Vec<SlotId>,
}

impl Alternative {
    /// Discards all remembered alternates.
    pub(super) fn forget(&mut self) {
        *self = Alternative::default();
    }

    /// Records a job that was placed.
    pub(super) fn came(&mut self, slot_job: &SlotJob) {
        self.came.push((slot_job.admitted, slot_job.job));
        self.index.iter_mut().for_each(|index| index.insert(slot_job));
    }

    /// Records a job that left.
    pub(super) fn left(&mut self, slot_job: SlotJob) {
        self.index.iter_mut().for_each(|index| index.remove(&slot_job));
        self.gone.push(slot_job);
    }

    /// Lets the jobs run in all alternate slots that can take them.
    ///
    /// O(slots), and for each slot that has changed O(k) for k jobs in the groups of the processors
    /// that changed. By slots, O(jobs) for each slot.
    pub(super) fn run(
        &mut self,
        context: &mut Context<'_>,
        slot_jobs: &SlotJobs,
        order: AlternativeOrder,
    ) -> Result<(), Violation> {
        let mut steps = match order {
            AlternativeOrder::Arrival => self.steps(context.ledger(), slot_jobs),
            AlternativeOrder::Row => steps_by_slot(context.ledger(), slot_jobs),
        };
        self.came.clear();
        self.gone.clear();
        // Jobs that leave a slot free processors for those that enter.
        each_job(&mut steps.leave, |job, left| {
            let has = &context.ledger().entry(job).alternate_slots;
            let leaves = |slot: &SlotId| left.binary_search(&(job, *slot)).is_ok();
            let stays: Vec<SlotId> = has.iter().copied().filter(|slot| !leaves(slot)).collect();
            context.set_alternate_slots(job, &stays)
        })?;
        each_job(&mut steps.enter, |job, entered| {
            let has = context.ledger().entry(job).alternate_slots.iter().copied();
            let mut slots: Vec<SlotId> = has.chain(entered.iter().map(|(_, slot)| *slot)).collect();
            slots.sort_unstable();
            context.set_alternate_slots(job, &slots)
        })?;
        let matrix = context.ledger().matrix();
        for slot in steps.slots {
            let row = matrix.and_then(|matrix| matrix.slot(slot));
            if let (Some(row), Some(Some(alternates))) = (row, self.rows.get_mut(slot.0 as usize)) {
                alternates.version = row.version();
            }
        }
        Ok(())
    }

    /// Returns the jobs that leave slots, and those that enter slots, in the order of arrival.
    fn steps(&mut self, ledger: &Ledger, slot_jobs: &SlotJobs) -> Steps {
        let mut steps = Steps::default();
        let Alternative { rows, index, came, gone } = self;
        let mut next = 0;
        for (slot, row) in ledger.matrix().into_iter().flat_map(Matrix::slots) {
            let at = slot.0 as usize;
            rows.resize_with(rows.len().max(at + 1), || None);
            rows[next..at].fill_with(|| None);
            next = at + 1;
            let Some(alternates) = &mut rows[at] else {
                let jobs = slot_jobs.iter().collect::<Vec<_>>();
                let alternates = Alternates::first(row.version(), row.open(), &jobs);
                steps.make(slot, row, &alternates.jobs);
                rows[at] = Some(alternates);
                continue;
            };
            if alternates.version == row.version() && came.is_empty() {
                continue;
            }
            let index = index.get_or_insert_with(|| JobIndex::new(slot_jobs));
            let mut repair = Repair::new(alternates, slot_jobs, index, came);
            if repair.alternates.version != row.version() {
                for slot_job in &*gone {
                    repair.remove(slot_job);
                }
                repair.open(row.open());
            }
            repair.decide_all();
            let Repair { left, entered, .. } = repair;
            steps.apply(slot, row, alternates, &left, &entered);
        }
        rows.truncate(next);
        steps
    }
}

/// Returns the jobs that leave slots, and those that enter slots, in the order of their own slots.
fn steps_by_slot(ledger: &Ledger, slot_jobs: &SlotJobs) -> Steps {
    let mut all: Vec<&SlotJob> = slot_jobs.iter().collect();
    all.sort_by_key(|slot_job| slot_job.slot);
    let mut steps = Steps::default();
    for (slot, row) in ledger.matrix().into_iter().flat_map(Matrix::slots) {
        steps.make(slot, row, &fitting(row.open(), &all));
    }
    steps
}

/// Returns the jobs that are alternates on these open processors, if they are tried in this order.
fn fitting(open: &PeSet, slot_jobs: &[&SlotJob]) -> Vec<Ranked> {
    let (mut idle, mut count, mut found) = (PeBits::new(open), open.count(), vec![]);
    for slot_job in slot_jobs {
        if count.is_zero() {
            break;
        }
        // Most jobs that do not fit lack their lowest processor.
        let may = slot_job.size <= count && idle.has(slot_job.lowest);
        if may && idle.contains_all(&slot_job.pes) {
            idle.remove_all(&slot_job.pes);
            count -= slot_job.size;
            found.push((slot_job.admitted, slot_job.job));
        }
    }
    found
}

/// Calls `act` for each job with its steps.
fn each_job(
    steps: &mut [Step],
    mut act: impl FnMut(JobId, &[Step]) -> Result<(), Violation>,
) -> Result<(), Violation> {
    steps.sort_unstable();
    steps.chunk_by(|one, next| one.0 == next.0).try_for_each(|of_job| act(of_job[0].0, of_job))
}

impl Steps {
    /// Adds the steps after which these are the alternates of a slot. O(a log a) in their number a.
    fn make(&mut self, slot: SlotId, row: &Slot, alternates: &[Ranked]) {
        let mut wanted: Vec<JobId> = alternates.iter().map(|(_, job)| *job).collect();
        wanted.sort_unstable();
        // Both are in the order of their handles.
        let mut has = row.alternates().peekable();
        for job in wanted {
            while let Some(other) = has.next_if(|other| *other < job) {
                self.leave.push((other, slot));
            }
            if has.next_if_eq(&job).is_none() {
                self.enter.push((job, slot));
            }
        }
        self.leave.extend(has.map(|job| (job, slot)));
        self.slots.push(slot);
    }

    /// Adds the steps for jobs that are no longer alternates, or are new ones.
    fn apply(&mut self, slot: SlotId, row: &Slot, all: &Alternates, left: &[JobId], entered: &[JobId]) {
        if all.version == row.version() && left.is_empty() && entered.is_empty() {
            return;
        }
        // The slot may have evicted some of those that left.
        let before = self.leave.len();
        let leave = left.iter().copied().filter(|job| row.has_alternate(*job));
        self.leave.extend(leave.map(|job| (job, slot)));
        let leaving = self.leave.len() - before;
        if row.alternates().len() + entered.len() == all.jobs.len() + leaving {
            self.enter.extend(entered.iter().map(|job| (*job, slot)));
            self.slots.push(slot);
        } else {
            // A job that moved has left all alternate slots.
            self.leave.truncate(before);
            self.make(slot, row, &all.jobs);
        }
    }
}

impl Alternates {
    /// Returns the alternates of a slot of this version with these open processors. `slot_jobs` are all
    /// jobs in the order of admission.
    fn first(version: u64, open: &PeSet, slot_jobs: &[&SlotJob]) -> Alternates {
        let jobs = fitting(open, slot_jobs);
        let mut takers = Takers::own(open);
        let mut all = slot_jobs.iter();
        for (admitted, _) in &jobs {
            if let Some(slot_job) = all.find(|slot_job| slot_job.admitted == *admitted) {
                takers.give(&slot_job.pes, *admitted);
            }
        }
        Alternates { version, open: open.clone(), jobs, takers }
    }
}

/// The update of the alternates of a slot.
///
/// Jobs are decided on in the order of admission, each at most once. What a decision changes concerns
/// later jobs only.
struct Repair<'a> {
    alternates: &'a mut Alternates,
    slot_jobs: &'a SlotJobs,
    index: &'a JobIndex,
    /// The jobs that may enter or leave.
    due: BTreeSet<Ranked>,
    left: Vec<JobId>,
    entered: Vec<JobId>,
}

impl<'a> Repair<'a> {
    /// Returns the update of a slot for new jobs.
    fn new(
        alternates: &'a mut Alternates,
        slot_jobs: &'a SlotJobs,
        index: &'a JobIndex,
        came: &[Ranked],
    ) -> Repair<'a> {
        let due = came.iter().copied().collect();
        Repair { alternates, slot_jobs, index, due, left: vec![], entered: vec![] }
    }

    /// Removes a job of the matrix that left.
    fn remove(&mut self, slot_job: &SlotJob) {
        if let Ok(place) = self.place(slot_job.admitted) {
            self.alternates.jobs.remove(place);
            self.release(slot_job);
        }
    }

    /// Sets the open processors.
    fn open(&mut self, open: &PeSet) {
        if self.alternates.open == *open {
            return;
        }
        let before = std::mem::replace(&mut self.alternates.open, open.clone());
        let (mut closed, mut opened) = (before.clone(), open.clone());
        closed.remove_all(open);
        opened.remove_all(&before);
        for admitted in self.alternates.takers.close(&closed) {
            self.again(admitted);
        }
        self.alternates.takers.free(&opened);
        self.note_free(&opened, None);
    }

    /// Decides on all jobs that may enter or leave.
    fn decide_all(&mut self) {
        while let Some((admitted, job)) = self.due.pop_first() {
            if let Some(slot_job) = self.slot_jobs.get(job) {
                self.decide(admitted, slot_job);
            }
        }
    }

    fn decide(&mut self, admitted: u64, slot_job: &SlotJob) {
        match (self.alternates.takers.admit(&slot_job.pes, admitted), self.place(admitted)) {
            (true, Err(place)) => {
                self.alternates.jobs.insert(place, (admitted, slot_job.job));
                self.entered.push(slot_job.job);
                for displaced in self.alternates.takers.give(&slot_job.pes, admitted) {
                    self.again(displaced);
                }
            }
            (false, Ok(place)) => {
                self.alternates.jobs.remove(place);
                self.left.push(slot_job.job);
                self.release(slot_job);
            }
            _ => {}
        }
    }

    /// Takes the processors of a job that is no longer an alternate, except those that it has lost
    /// already.
    fn release(&mut self, slot_job: &SlotJob) {
        self.alternates.takers.free_of(&slot_job.pes, slot_job.admitted);
        self.note_free(&slot_job.pes, Some(slot_job.admitted));
    }

    /// Records that processors became free for the jobs that were admitted after `after`, or for all.
    ///
    /// A job that could not have its processors even now is decided on when the alternate that has
    /// them leaves.
    fn note_free(&mut self, pes: &PeSet, after: Option<u64>) {
        let Repair { alternates: Alternates { takers, .. }, slot_jobs, index, due, .. } = self;
        index.each(pes, after, |indexed| {
            let admitted = indexed.admitted;
            // Most jobs that do not fit lack their lowest processor.
            if takers.admit_on(indexed.lowest, admitted)
                && slot_jobs.get(indexed.job).is_some_and(|slot_job| takers.admit(&slot_job.pes, admitted))
            {
                due.insert((admitted, indexed.job));
            }
        });
    }

    /// Decides again on an alternate.
    fn again(&mut self, admitted: u64) {
        if let Ok(place) = self.place(admitted) {
            self.due.insert(self.alternates.jobs[place]);
        }
    }

    /// Returns the place of an alternate, or the place where it would be.
    fn place(&self, admitted: u64) -> Result<usize, usize> {
        self.alternates.jobs.binary_search_by_key(&admitted, |(other, _)| *other)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    /// Jobs come and go, and other processors are open, at random. Compares the alternates with those of
    /// a scan of all jobs.
    #[test]
    fn updated_alternates_are_those_of_a_scan() {
        let mut changes = 0;
        for seed in 0..100 {
            let all: &[&SlotJob] = &[];
            let mut alternates = Alternates::first(0, &PeSet::first(400), all);
            let mut slot_jobs = SlotJobs::new();
            let mut index = JobIndex::default();
            for step in 0_i64..120 {
                let begin = step.unsigned_abs();
                let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
                let small = |nth: u64, most: u64| u32::try_from(random(nth, most)).unwrap();
                let part = |part: u64, most: u64| {
                    let low = small(10 + 2 * part, 380);
                    (low, low + small(11 + 2 * part, most))
                };
                let mut came = vec![];
                let mut gone = vec![];
                for nth in 0..random(0, 3) {
                    let width = [3, 20, 150][small(1, 3) as usize];
                    let parts: Vec<(u32, u32)> =
                        (0..=random(2, 2)).map(|one| part(2 * nth + one, width)).collect();
                    // Some jobs were admitted before others that came earlier.
                    let admitted = 8 * (begin - random(3, 20).min(begin)) + 4 * random(4, 2) + nth;
                    let job = JobId(u32::try_from(8 * begin + nth).unwrap());
                    if slot_jobs.iter().all(|other| other.admitted != admitted) {
                        let slot_job = SlotJob::at(admitted, job, SlotId(1), PeSet::from_ranges(&parts));
                        index.insert(&slot_job);
                        came.push((admitted, job));
                        slot_jobs.insert(slot_job);
                    }
                }
                let leave: Vec<u64> = slot_jobs.iter().map(|slot_job| slot_job.admitted).collect();
                for admitted in leave.into_iter().filter(|admitted| random(100 + admitted, 30) == 0) {
                    let slot_job = slot_jobs.remove(admitted).unwrap();
                    index.remove(&slot_job);
                    gone.push(slot_job);
                }
                let mut open = alternates.open.clone();
                if random(5, 3) == 0 {
                    open.remove_all(&PeSet::from_ranges(&[part(20, 60)]));
                    open.insert_all(&PeSet::from_ranges(&[part(30, 60), part(31, 10)]));
                }
                let before: Vec<JobId> = alternates.jobs.iter().map(|(_, job)| *job).collect();
                let mut repair = Repair::new(&mut alternates, &slot_jobs, &index, &came);
                for slot_job in &gone {
                    repair.remove(slot_job);
                }
                repair.open(&open);
                repair.decide_all();
                let (left, entered) = (repair.left, repair.entered);
                let expect = fitting(&open, &slot_jobs.iter().collect::<Vec<_>>());
                assert_eq!(alternates.jobs, expect, "seed {seed}, step {step}");
                let stayed = |job: &JobId| !left.contains(job) && gone.iter().all(|gone| gone.job != *job);
                let mut now: Vec<JobId> = before.into_iter().filter(stayed).chain(entered).collect();
                now.sort_unstable();
                let mut jobs: Vec<JobId> = expect.iter().map(|(_, job)| *job).collect();
                jobs.sort_unstable();
                assert_eq!(now, jobs, "seed {seed}, step {step}");
                changes += left.len();
            }
        }
        assert!(changes > 1000, "{changes} alternates gave way");
    }
}
