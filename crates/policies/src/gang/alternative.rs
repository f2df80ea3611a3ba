//! Alternative scheduling (§2): jobs run in alternate slots, where their processors are free.

use miserly_core::{Context, JobId, Ledger, Matrix, PeSet, Procs, Slot, SlotId, Violation};

use super::pe_bits::PeBits;
use super::slot_jobs::{SlotJob, SlotJobs};

/// The order of jobs that could run in the same alternate slot. The paper does not specify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlternativeOrder {
    /// The order of arrival.
    Arrival,
    /// The order of the jobs' own slots, then of arrival: the order of a walk through the matrix.
    Row,
}

/// The alternates of each slot.
///
/// In the order of arrival, all jobs are examined again in a slot whose open processors changed, and the
/// later ones in a slot that an alternate left. Jobs that were rejected before are rejected again. In
/// other slots only later arrivals are examined.
#[derive(Debug, Default)]
pub(super) struct Alternative {
    rows: Vec<Option<Alternates>>,
    /// All jobs admitted before this number were examined.
    tried: u64,
    /// The admission numbers of the jobs that left since the last pass.
    gone: Vec<u64>,
}

/// The jobs that run in a slot besides its own jobs.
#[derive(Debug)]
struct Alternates {
    /// The version of the slot after all alternates entered; 0 before.
    version: u64,
    /// The processors that were open to the alternates.
    open: PeSet,
    /// In the order of examination, which is that of admission wherever the alternates are
    /// remembered.
    jobs: Vec<(u64, JobId)>,
    /// The processors that they left idle, and their number.
    idle: PeBits,
    count: Procs,
}

/// A job and a slot that it enters or leaves.
type Step = (JobId, SlotId);

impl Alternative {
    /// Discards all remembered alternates.
    pub(super) fn forget(&mut self) {
        *self = Alternative::default();
    }

    /// Records a job that was placed.
    pub(super) fn came(&mut self, admitted: u64) {
        // The job may sort before others that were examined already.
        if admitted < self.tried {
            self.forget();
        }
    }

    /// Records a job that left.
    pub(super) fn left(&mut self, admitted: u64) {
        self.gone.push(admitted);
    }

    /// Lets the jobs run in all alternate slots that can take them.
    ///
    /// O(slots + jobs), and O(jobs) for each slot that is examined again. By slots, that is each
    /// one.
    pub(super) fn run(
        &mut self,
        context: &mut Context<'_>,
        slot_jobs: &SlotJobs,
        order: AlternativeOrder,
    ) -> Result<(), Violation> {
        let mut all: Vec<&SlotJob> = slot_jobs.iter().collect();
        if order == AlternativeOrder::Row {
            // A new or moved job may sort before all others, and remembered jobs are found by
            // admission.
            self.forget();
            all.sort_by_key(|slot_job| (slot_job.slot, slot_job.admitted));
        }
        let (mut leave, mut enter) = self.steps(context.ledger(), &all);
        // Jobs that leave a slot free processors for those that enter.
        each_job(&mut leave, |job, left| {
            let has = &context.ledger().entry(job).alternate_slots;
            let stays: Vec<SlotId> = has.iter().copied().filter(|row| !left.contains(&(job, *row))).collect();
            context.set_alternate_slots(job, &stays)
        })?;
        each_job(&mut enter, |job, entered| {
            let has = context.ledger().entry(job).alternate_slots.iter().copied();
            let mut rows: Vec<SlotId> = has.chain(entered.iter().map(|(_, row)| *row)).collect();
            rows.sort_unstable();
            context.set_alternate_slots(job, &rows)
        })?;
        self.note_versions(context.ledger());
        Ok(())
    }

    /// Records the versions of the slots, with their alternates.
    fn note_versions(&mut self, ledger: &Ledger) {
        for (slot, row) in ledger.matrix().into_iter().flat_map(Matrix::slots) {
            if let Some(Some(alternates)) = self.rows.get_mut(slot.0 as usize) {
                alternates.version = row.version();
            }
        }
    }

    /// Returns the jobs that leave slots, and those that enter slots.
    fn steps(&mut self, ledger: &Ledger, all: &[&SlotJob]) -> (Vec<Step>, Vec<Step>) {
        let (mut leave, mut enter) = (vec![], vec![]);
        let new = &all[all.partition_point(|slot_job| slot_job.admitted < self.tried)..];
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        for (slot, row) in ledger.matrix().into_iter().flat_map(Matrix::slots) {
            // Unused slots are not remembered.
            while self.rows.len() < slot.0 as usize {
                rows.next();
                self.rows.push(None);
            }
            let known = rows.next().flatten().filter(|alternates| alternates.are_of(row));
            let alternates = match known.map(|alternates| (self.first_gone(&alternates, row), alternates)) {
                Some((None, alternates)) => alternates.and_of(slot, new),
                Some((Some(gone), alternates)) => {
                    let later = all.partition_point(|slot_job| slot_job.admitted < gone);
                    alternates.before(gone, &all[..later]).and_of(slot, &all[later..])
                }
                None => Alternates::none(row).and_of(slot, all),
            };
            if alternates.version != row.version() || alternates.jobs.len() != row.alternates().len() {
                let mut wanted: Vec<JobId> = alternates.jobs.iter().map(|(_, job)| *job).collect();
                wanted.sort_unstable();
                // Both are in the order of their numbers.
                let mut has = row.alternates().peekable();
                for job in wanted {
                    leave.extend(
                        std::iter::from_fn(|| has.next_if(|other| *other < job)).map(|job| (job, slot)),
                    );
                    if has.next_if_eq(&job).is_none() {
                        enter.push((job, slot));
                    }
                }
                leave.extend(has.map(|job| (job, slot)));
            }
            self.rows.push(Some(alternates));
        }
        self.tried = all.iter().map(|slot_job| slot_job.admitted + 1).max().unwrap_or(0);
        self.gone.clear();
        (leave, enter)
    }

    /// Returns the first alternate that left.
    fn first_gone(&self, alternates: &Alternates, row: &Slot) -> Option<u64> {
        let left = |gone: &u64| alternates.jobs.binary_search_by_key(gone, |(admitted, _)| *admitted).is_ok();
        let changed = alternates.version != row.version();
        self.gone.iter().copied().filter(|gone| changed && left(gone)).min()
    }
}

/// Calls `act` for each job with its steps.
fn each_job(
    steps: &mut [Step],
    mut act: impl FnMut(JobId, &[Step]) -> Result<(), Violation>,
) -> Result<(), Violation> {
    steps.sort_unstable();
    steps.chunk_by(|one, next| one.0 == next.0).try_for_each(|of_job| act(of_job[0].0, of_job))
}

impl Alternates {
    fn none(row: &Slot) -> Alternates {
        let (open, count) = (row.open().clone(), row.open_count());
        Alternates { version: 0, idle: PeBits::new(&open), open, jobs: vec![], count }
    }

    /// Returns whether they were chosen for these open processors.
    fn are_of(&self, row: &Slot) -> bool {
        self.version == row.version() || self.open == *row.open()
    }

    /// Returns those that were admitted before this number. `earlier` has all jobs that were.
    fn before(mut self, admitted: u64, earlier: &[&SlotJob]) -> Alternates {
        self.jobs.truncate(self.jobs.partition_point(|(other, _)| *other < admitted));
        (self.idle, self.count) = (PeBits::new(&self.open), self.open.count());
        for (admitted, _) in &self.jobs {
            if let Ok(at) = earlier.binary_search_by_key(admitted, |slot_job| slot_job.admitted) {
                self.idle.remove_all(&earlier[at].pes);
                self.count -= earlier[at].size;
            }
        }
        self
    }

    /// Adds the jobs of `slot_jobs` that fit on the idle processors.
    fn and_of(mut self, slot: SlotId, slot_jobs: &[&SlotJob]) -> Alternates {
        for slot_job in slot_jobs {
            if self.count.is_zero() {
                break;
            }
            let may = slot_job.size <= self.count && slot_job.slot != slot;
            // Most jobs that do not fit lack their lowest processor.
            if may && self.idle.has(slot_job.lowest) && self.idle.contains_all(&slot_job.pes) {
                self.idle.remove_all(&slot_job.pes);
                self.count -= slot_job.size;
                self.jobs.push((slot_job.admitted, slot_job.job));
            }
        }
        self
    }
}
