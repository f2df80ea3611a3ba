//! The devices of jobs in the ledger.

use std::sync::Arc;

use super::{Holds, Ledger, Part, State};
use crate::devices::{CellId, FreeDevices, HeldDevices};
use crate::violation::Rule;
use crate::{Demand, Placement};

impl Ledger {
    /// Returns the free amount of a cell of devices: a number, or the memory of a device that is given in shares. A cell
    /// that the machine does not have has none.
    pub fn free_devices(&self, cell: CellId) -> u64 {
        self.devices.as_ref().map_or(0, |devices| devices.of(cell))
    }

    /// Checks that a placement has the demanded devices, on its host.
    pub(super) fn check_demanded_devices(&self, demand: &Demand, placement: &Placement) -> Result<(), Rule> {
        let is_right = match (self.machine.devices(), placement.shares()) {
            (None, _) => placement.devices().is_empty(),
            (Some(table), [share]) => table.is_of(share.host, demand.devices(), placement.devices()),
            (Some(_), _) => false,
        };
        if is_right { Ok(()) } else { Err(Rule::WrongDevices) }
    }

    /// Returns a placement whose devices have names.
    pub(super) fn with_named_devices(&self, placement: Placement) -> Placement {
        let (Some(free), Some(table)) = (&self.devices, self.machine.devices()) else { return placement };
        let named = placement.devices().iter().map(|held| free.named(table, *held)).collect();
        placement.with_devices(named)
    }

    /// Takes the devices of a placement, if the part has them: all, or none if one is not free.
    pub(super) fn take_devices(&mut self, placement: &Placement, part: Part) -> Result<(), Rule> {
        match (&mut self.devices, self.machine.devices()) {
            (Some(free), Some(table)) if part.has_devices() => free.take(table, placement.devices()),
            _ => Ok(()),
        }
    }

    /// Sets the devices of a cell that are lost: positions of the cell, one bit each.
    ///
    /// # Errors
    /// [`Rule::OverCommitted`] or [`Rule::WrongDevices`] if a job holds one of them.
    pub(crate) fn lose_devices(&mut self, cell: CellId, names: u64) -> Result<(), Rule> {
        let Some(table) = self.machine.devices() else { return Ok(()) };
        let mut lost = table.lost();
        lost.retain(|(other, _)| *other != cell);
        lost.push((cell, names));
        let table = table.clone().with_lost(&lost);
        let mut free = FreeDevices::idle(&table);
        for entry in self.jobs.iter().flatten() {
            free.take(&table, held_by(&entry.state))?;
        }
        self.machine = self.machine.clone().with_devices(Some(Arc::new(table)));
        self.devices = Some(Box::new(free));
        Ok(())
    }

    pub(super) fn give_devices(&mut self, placement: &Placement, part: Part) {
        if let Some(free) = self.devices.as_mut().filter(|_| part.has_devices()) {
            free.give(placement.devices());
        }
    }

    /// Asserts that the free devices follow from the placements.
    pub(super) fn check_devices(&self) {
        let (Some(free), Some(table)) = (&self.devices, self.machine.devices()) else { return };
        let mut derived = FreeDevices::idle(table);
        for entry in self.jobs.iter().flatten() {
            let taken = derived.take(table, held_by(&entry.state));
            assert_eq!(taken, Ok(()), "job {} shares a device beyond its capacity", entry.request.number);
        }
        assert_eq!(derived, **free, "the free devices follow from the placements");
    }
}

/// Returns the devices that a job in this state holds.
fn held_by(state: &State) -> &[HeldDevices] {
    match state {
        State::Running { placement, released: false, .. } => placement.devices(),
        State::Suspended { placement, holds, .. } if *holds != Holds::Nothing => placement.devices(),
        _ => &[],
    }
}
