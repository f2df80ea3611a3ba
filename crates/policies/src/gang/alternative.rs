//! Alternative scheduling (§2): jobs run in further rows, where their processors are free.

use miserly_core::{Desk, JobId, Ledger, Matrix, SlotId, Violation};

use super::residents::Residents;

/// Lets the jobs run in all rows in which they may: row by row, and in each in the order of their arrival.
pub(super) fn run(desk: &mut Desk<'_>, residents: &Residents) -> Result<(), Violation> {
    let wanted = wanted(desk.ledger(), residents);
    // Who leaves a row makes room for whoever comes.
    for (job, rows) in &wanted {
        let has = &desk.ledger().entry(*job).also_in;
        if !has.iter().all(|row| rows.contains(row)) {
            let stays: Vec<SlotId> = has.iter().copied().filter(|row| rows.contains(row)).collect();
            desk.also_in(*job, &stays)?;
        }
    }
    for (job, rows) in &wanted {
        if desk.ledger().entry(*job).also_in != *rows {
            desk.also_in(*job, rows)?;
        }
    }
    Ok(())
}

/// The rows in which each job may run besides its own. O(jobs x rows).
fn wanted(ledger: &Ledger, residents: &Residents) -> Vec<(JobId, Vec<SlotId>)> {
    let mut wanted: Vec<(JobId, Vec<SlotId>)> =
        residents.iter().map(|resident| (resident.job, vec![])).collect();
    let rows = ledger.matrix().into_iter().flat_map(Matrix::rows);
    for (slot, row) in rows {
        let (mut idle, mut count) = (row.open().clone(), row.open_count());
        for (resident, (_, rows)) in residents.iter().zip(&mut wanted) {
            let size = resident.pes.count();
            if size <= count && resident.slot != slot && idle.contains_all(&resident.pes) {
                idle.remove_all(&resident.pes);
                count -= size;
                rows.push(slot);
            }
        }
    }
    wanted
}
