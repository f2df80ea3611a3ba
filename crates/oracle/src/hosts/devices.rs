//! The devices of a job, given the free amount of each cell. A cell is some devices, or the memory of one device.

use miserly_core::devices::{DeviceDemand, DeviceTable, ShareAmount};
use miserly_core::{Demand, HostId, Machine};

/// The cells of which a job holds some, and the amounts.
pub(super) type Cells = Vec<(usize, u64)>;

/// Returns the positions of the cells of a host.
pub(super) fn cells_of(machine: &Machine, host: usize) -> Vec<usize> {
    let cells = machine.devices().map(DeviceTable::cells).unwrap_or_default();
    let host = HostId(u32::try_from(host).unwrap_or(u32::MAX));
    (0..cells.len()).filter(|&cell| cells[cell].host == host).collect()
}

/// Returns the free devices of a host, in thousandths of a device.
pub(super) fn idle(machine: &Machine, host: usize, free: impl Fn(usize) -> u64) -> u64 {
    let cells = machine.devices().map(DeviceTable::cells).unwrap_or_default();
    let share = |cell: usize| 1000 * free(cell) / if cells[cell].shares { cells[cell].capacity } else { 1 };
    cells_of(machine, host).into_iter().map(share).sum()
}

/// Returns the devices of a job on a host, or `None` if it does not fit there.
///
/// It is every single device in turn that is free, by class. The class with the fewest such devices is taken that has
/// enough. A share goes to the fullest device that has room.
pub(super) fn devices(
    machine: &Machine,
    host: usize,
    demand: &Demand,
    free: impl Fn(usize) -> u64,
) -> Option<Cells> {
    let (Some(demand), Some(table)) = (demand.devices(), machine.devices()) else { return Some(vec![]) };
    let (cells, here) = (table.cells(), cells_of(machine, host));
    let (count, permitted) = match demand {
        DeviceDemand::Share { amount, classes } => {
            let needed = |cell: usize| match amount {
                ShareAmount::Memory(memory) => memory,
                ShareAmount::Thousandths(part) => (cells[cell].capacity * u64::from(part) / 1000).max(1),
            };
            let mut fitting: Vec<usize> = here;
            fitting.retain(|&cell| cells[cell].shares && classes.has(cells[cell].class));
            fitting.retain(|&cell| free(cell) >= needed(cell));
            fitting.sort_by_key(|&cell| (free(cell), cell));
            return fitting.first().map(|&cell| vec![(cell, needed(cell))]);
        }
        DeviceDemand::Whole { count, classes } => (count as usize, classes),
    };
    let mut best: Option<Vec<usize>> = None;
    for class in (0..table.classes().len()).filter(|&class| permitted.has(class)) {
        let mut single: Vec<usize> = Vec::new();
        for &cell in here.iter().filter(|&&cell| cells[cell].class == class) {
            let devices =
                if cells[cell].shares { u64::from(free(cell) == cells[cell].capacity) } else { free(cell) };
            (0..devices).for_each(|_| single.push(cell));
        }
        if single.len() >= count && best.as_ref().is_none_or(|best| single.len() < best.len()) {
            best = Some(single);
        }
    }
    let mut held: Cells = Vec::new();
    for &cell in &best?[..count] {
        let amount = if cells[cell].shares { cells[cell].capacity } else { 1 };
        match held.iter_mut().find(|(other, _)| *other == cell) {
            Some((_, sum)) => *sum += amount,
            None => held.push((cell, amount)),
        }
    }
    Some(held)
}
