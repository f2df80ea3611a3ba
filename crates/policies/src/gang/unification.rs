//! Slot unification (§2): two slots without a common processor become one.

use miserly_core::{Context, JobId, Ledger, Placement, Slot, SlotId, Span, Violation};

use super::slot_jobs::SlotJobs;

/// Unifies a slot that a job has left with the lowest slot that shares no processor with it.
///
/// The unified slot has the lower of their numbers. Returns whether there is such a slot.
pub(super) fn unite(
    context: &mut Context<'_>,
    slot_jobs: &mut SlotJobs,
    slot: SlotId,
) -> Result<bool, Violation> {
    let Some(other) = disjoint(context.ledger(), slot) else { return Ok(false) };
    let (kept, gone) = (slot.min(other), slot.max(other));
    let mut moves: Vec<(JobId, Placement)> = vec![];
    for nth in 0..slot_jobs.len() {
        let Some(slot_job) = slot_jobs.nth_mut(nth).filter(|slot_job| slot_job.slot == gone) else {
            continue;
        };
        let placement = context.ledger().entry(slot_job.job).placement().cloned();
        moves.extend(placement.map(|placement| (slot_job.job, placement.in_slot(kept))));
        slot_job.slot = kept;
    }
    // Their processors stay the same, so the move costs no time.
    context.remap(&moves, Span::ZERO)?;
    Ok(true)
}

/// Returns the lowest used slot whose jobs share no processor with those of this slot.
///
/// A slot with jobs on lost processors does not qualify: the processors that these jobs really use
/// are unknown.
fn disjoint(ledger: &Ledger, slot: SlotId) -> Option<SlotId> {
    let matrix = ledger.matrix()?;
    let whole = |row: &Slot| row.lost_count().is_zero();
    let mine = matrix.slot(slot).filter(|row| whole(row))?;
    let mut busy = matrix.all().clone();
    busy.remove_all(mine.open());
    let mut others = matrix.slots().filter(|(other, row)| *other != slot && whole(row));
    others.find(|(_, row)| row.open().contains_all(&busy)).map(|(other, _)| other)
}
