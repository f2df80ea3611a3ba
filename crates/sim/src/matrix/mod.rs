//! Which job is in which slot when, where processors are shared by turns.

mod watch;

pub use watch::{MatrixRecord, MatrixWatch, MostSlots, PlaceHeld};

use miserly_core::{Driver, JobId, JobNumber, Ledger, Matrix, PeSet, SlotId, Time};

/// A job's place in a slot of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    /// Which job it is: its place in the order of submission to its queue, from 0.
    pub admission: u64,
    /// Its number in the log.
    pub number: JobNumber,
    /// When it was submitted.
    pub submit: Time,
    /// Who submitted it.
    pub user: Option<u32>,
    /// The slot.
    pub slot: SlotId,
    /// Its processors there.
    pub pes: PeSet,
    /// Whether the place is its own; else it runs there too as long as nobody else needs them (alternative scheduling).
    pub own: bool,
}

/// The first queue that slices time.
fn sliced(queues: &[Driver]) -> Option<(&Ledger, &Matrix)> {
    queues.iter().map(Driver::ledger).find_map(|ledger| Some((ledger, ledger.matrix()?)))
}

/// A place as the ledger has it.
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

/// Shows every place of every job that runs.
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
