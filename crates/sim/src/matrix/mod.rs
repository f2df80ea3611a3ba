//! The jobs of each slot over time, for gang scheduling.

mod watch;

pub use watch::{MatrixRecord, MatrixWatch, MostSlots, PlaceHeld};

use miserly_core::{Driver, JobId, JobNumber, Ledger, Matrix, PeSet, SlotId, Time};

/// The position of a job in a slot of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    /// Its position in the order of submission to its queue, from 0.
    pub admission: u64,
    /// Its number in the log.
    pub number: JobNumber,
    /// The time of its submission.
    pub submit: Time,
    /// The user of the job.
    pub user: Option<u32>,
    /// The slot.
    pub slot: SlotId,
    /// Its processors there.
    pub pes: PeSet,
    /// Whether the slot is its own. Otherwise it is an alternate slot, where it runs while its
    /// processors are free.
    pub own: bool,
}

/// Returns the first queue that slices time.
fn sliced(queues: &[Driver]) -> Option<(&Ledger, &Matrix)> {
    queues.iter().map(Driver::ledger).find_map(|ledger| Some((ledger, ledger.matrix()?)))
}

/// The position of a job in a slot, by reference to the ledger.
struct Seen<'a> {
    ledger: &'a Ledger,
    job: JobId,
    admission: u64,
    slot: SlotId,
    pes: &'a PeSet,
    own: bool,
}

impl Seen<'_> {
    fn place(&self) -> SlotPlace {
        let request = self.ledger.request(self.job);
        SlotPlace {
            admission: self.admission,
            number: request.number,
            submit: request.submit,
            user: request.user,
            slot: self.slot,
            pes: self.pes.clone(),
            own: self.own,
        }
    }
}

/// Calls `show` for every slot of every running job.
fn each_place(ledger: &Ledger, mut show: impl FnMut(&Seen<'_>)) {
    for job in ledger.running() {
        let entry = ledger.entry(job);
        let Some((own, pes)) =
            entry.placement().and_then(|placement| Some((placement.slot, placement.pes()?)))
        else {
            continue;
        };
        let at = |slot, own| Seen { ledger, job, admission: entry.admitted, slot, pes, own };
        show(&at(own, true));
        for slot in &entry.alternate_slots {
            show(&at(*slot, false));
        }
    }
}
