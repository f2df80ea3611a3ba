//! The free devices that typical jobs cannot use.
//!
//! # Source
//! Weng, Yang, Yu et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent,
//! USENIX ATC 2023, §3.

use super::fit::Taken;
use super::{CellId, DeviceDemand, DeviceTable};
use crate::{HostId, Resources};

/// The demands of typical jobs with devices, each with its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypicalDemands(Vec<(Resources, DeviceDemand, i64)>);

impl TypicalDemands {
    /// Returns the demands with their weights, for example the number of jobs with each.
    pub fn new(demands: Vec<(Resources, DeviceDemand, i64)>) -> TypicalDemands {
        TypicalDemands(demands)
    }

    /// Returns the growth of the fragments of a host if a job takes some of it, in thousandths of a device times weight.
    pub(super) fn growth(
        &self,
        table: &DeviceTable,
        host: HostId,
        taken: Taken<'_>,
        free: impl Fn(CellId) -> u64,
    ) -> i64 {
        let held =
            |cell: CellId| taken.devices.iter().find(|held| held.cell == cell).map_or(0, |held| held.amount);
        let after = |cell: CellId| free(cell).saturating_sub(held(cell));
        self.fragments(table, host, &taken.room.less(taken.amount), after)
            - self.fragments(table, host, taken.room, &free)
    }

    /// Returns the fragments of a host: for each demand its weight times the thousandths of devices that it cannot use.
    pub(super) fn fragments(
        &self,
        table: &DeviceTable,
        host: HostId,
        room: &Resources,
        free: impl Fn(CellId) -> u64,
    ) -> i64 {
        let each = self.0.iter().map(|(amount, demand, weight)| {
            let fits = amount.fits_in(room) && table.could_choose(host, *demand, &free);
            let unusable = |id: &CellId| !fits || !is_usable(table, *id, *demand, free(*id));
            let cells = table.cells_of(host).filter(unusable);
            let lost: u64 = cells.map(|id| table.cell(id).thousandths(free(id))).sum();
            weight.saturating_mul(i64::try_from(lost).unwrap_or(i64::MAX))
        });
        each.fold(0, i64::saturating_add)
    }
}

/// Returns whether a job could use a device of a cell with this free amount.
fn is_usable(table: &DeviceTable, id: CellId, demand: DeviceDemand, free: u64) -> bool {
    let cell = table.cell(id);
    match demand {
        DeviceDemand::Whole { classes, .. } => classes.has(cell.class) && (!cell.shares || free == cell.most),
        DeviceDemand::Share { .. } => table.share_in(id, demand).is_some_and(|amount| free >= amount),
    }
}
