//! Alternative scheduling (§2): jobs run in further rows, where their processors are free.

use miserly_core::{Context, JobId, Ledger, Matrix, PeSet, Procs, Slot, SlotId, Violation};

use super::residents::{Shadow, SlotJob, SlotJobs};

/// Who goes first where several jobs could run in a row besides their own. The paper does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlternativeOrder {
    /// Who came first.
    Arrival,
    /// Whose own row is lowest, and of one row who came first: as one goes through the matrix.
    Row,
}

/// Who runs in each row besides the jobs that have their own places there: row by row.
///
/// In the order of arrival, a row is looked at anew only if what is open there changed, or a job left that ran there: who was turned away
/// is turned away again. In other rows only those are tried that have come since.
#[derive(Debug, Default)]
pub(super) struct Alternative {
    rows: Vec<Option<Alternates>>,
    /// All that arrived before this one were tried.
    tried: u64,
    /// The jobs that left since the last pass, by their admission.
    gone: Vec<u64>,
}

/// The jobs that run in a row besides its own.
#[derive(Debug)]
struct Alternates {
    /// Of the row, when they had all come; 0 before.
    version: u64,
    /// What was open to them.
    open: PeSet,
    /// In the order in which they were asked: where these are remembered, by admission.
    jobs: Vec<(u64, JobId)>,
    /// What they left idle, how many these are, and their shadow.
    idle: PeSet,
    count: Procs,
    shadow: Shadow,
}

/// A job and a row that it enters or leaves.
type Step = (JobId, SlotId);

impl Alternative {
    /// Everything is to be looked at anew.
    pub(super) fn forget(&mut self) {
        *self = Alternative::default();
    }

    /// A job has a place now.
    pub(super) fn came(&mut self, admitted: u64) {
        // It may go before those that were tried already.
        if admitted < self.tried {
            self.forget();
        }
    }

    /// A job is gone.
    pub(super) fn left(&mut self, admitted: u64) {
        self.gone.push(admitted);
    }

    /// Lets the jobs run in all rows in which they may. O(rows + jobs), and O(jobs) for each row that is looked at anew: by rows, that is each
    /// one.
    pub(super) fn run(
        &mut self,
        context: &mut Context<'_>,
        residents: &SlotJobs,
        order: AlternativeOrder,
    ) -> Result<(), Violation> {
        let mut all: Vec<&SlotJob> = residents.iter().collect();
        if order == AlternativeOrder::Row {
            // Whoever comes, or is in another row than he was, may go before all others; and what is remembered is looked up by admission.
            self.forget();
            all.sort_by_key(|resident| (resident.slot, resident.admitted));
        }
        let (mut leave, mut enter) = self.steps(context.ledger(), &all);
        // Who leaves a row makes room for whoever comes.
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

    /// Notes how the rows are now, with their guests.
    fn note_versions(&mut self, ledger: &Ledger) {
        for (slot, row) in ledger.matrix().into_iter().flat_map(Matrix::slots) {
            if let Some(Some(guests)) = self.rows.get_mut(slot.0 as usize) {
                guests.version = row.version();
            }
        }
    }

    /// Who has to leave which row, and who to enter which.
    fn steps(&mut self, ledger: &Ledger, all: &[&SlotJob]) -> (Vec<Step>, Vec<Step>) {
        let (mut leave, mut enter) = (vec![], vec![]);
        let new = &all[all.partition_point(|resident| resident.admitted < self.tried)..];
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        for (slot, row) in ledger.matrix().into_iter().flat_map(Matrix::slots) {
            // Rows that nobody uses are not remembered.
            while self.rows.len() < slot.0 as usize {
                rows.next();
                self.rows.push(None);
            }
            let known = rows.next().flatten().filter(|guests| self.is_of(guests, row));
            let guests = match known {
                Some(guests) => guests.and_of(slot, new),
                None => Alternates::none(row).and_of(slot, all),
            };
            if guests.version != row.version() || guests.jobs.len() != row.alternates().len() {
                let mut wanted: Vec<JobId> = guests.jobs.iter().map(|(_, job)| *job).collect();
                wanted.sort_unstable();
                let may_stay = |job: &JobId| wanted.binary_search(job).is_ok();
                leave.extend(row.alternates().filter(|job| !may_stay(job)).map(|job| (job, slot)));
                enter.extend(wanted.iter().filter(|job| !row.has_alternate(**job)).map(|job| (*job, slot)));
            }
            self.rows.push(Some(guests));
        }
        self.tried = all.iter().map(|resident| resident.admitted + 1).max().unwrap_or(0);
        self.gone.clear();
        (leave, enter)
    }

    /// Whether these are still the guests of a row, but for those that have come since.
    fn is_of(&self, guests: &Alternates, row: &Slot) -> bool {
        let left = |gone: &u64| guests.jobs.binary_search_by_key(gone, |(admitted, _)| *admitted).is_ok();
        guests.version == row.version() || (guests.open == *row.open() && !self.gone.iter().any(left))
    }
}

/// Does something for each job, with its steps.
fn each_job(
    steps: &mut [Step],
    mut act: impl FnMut(JobId, &[Step]) -> Result<(), Violation>,
) -> Result<(), Violation> {
    steps.sort_unstable();
    steps.chunk_by(|one, next| one.0 == next.0).try_for_each(|of_job| act(of_job[0].0, of_job))
}

impl Alternates {
    fn none(row: &Slot) -> Alternates {
        let (idle, count) = (row.open().clone(), row.open_count());
        Alternates { version: 0, open: idle.clone(), jobs: vec![], shadow: Shadow::of(&idle), idle, count }
    }

    /// And those of further jobs for which there is room.
    fn and_of(mut self, slot: SlotId, residents: &[&SlotJob]) -> Alternates {
        for resident in residents {
            if self.count.is_zero() {
                break;
            }
            let may = resident.size <= self.count && resident.slot != slot;
            if may && resident.shadow.lies_in(self.shadow) && self.idle.contains_all(&resident.pes) {
                self.idle.remove_all(&resident.pes);
                self.count -= resident.size;
                self.shadow = Shadow::of(&self.idle);
                self.jobs.push((resident.admitted, resident.job));
            }
        }
        self
    }
}
