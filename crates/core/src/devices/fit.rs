//! The choice of devices on a host, and the free devices of a machine.

use std::sync::Arc;

use super::{CellId, DeviceDemand, DeviceTable, HeldDevices, TypicalDemands};
use crate::violation::Rule;
use crate::{HostId, Resources};

/// The rule by which a job gets its host and its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceFit {
    /// The host with the least free devices, then the fewest free processors. A share goes to the device with the least
    /// free memory.
    #[default]
    Best,
    /// The host and device at which the free devices that typical jobs cannot use grow least. Ties are as for `Best`.
    Gradient(Arc<TypicalDemands>),
}

crate::named_enum! {
    /// The name of a [`DeviceFit`].
    #[derive(Default)]
    pub enum FitRule {
        /// [`DeviceFit::Best`].
        #[default]
        Best "best",
        /// [`DeviceFit::Gradient`], for the jobs of the run.
        Gradient "gradient",
    }
}

/// Free resources of a host, and a job that would take some of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken<'a> {
    pub(super) room: &'a Resources,
    pub(super) amount: &'a Resources,
    pub(super) devices: &'a [HeldDevices],
}

impl DeviceTable {
    /// Returns the devices of a host that a job gets, given the free amount of each cell, or `None` if it does not fit.
    ///
    /// Whole devices are of the class with the fewest free ones that suffice, then of the first class. A share is on the
    /// device with the least free memory that suffices, then on the first one. More free amounts never make a job unfit.
    pub fn choose(
        &self,
        host: HostId,
        demand: DeviceDemand,
        free: impl Fn(CellId) -> u64,
    ) -> Option<Vec<HeldDevices>> {
        match demand {
            DeviceDemand::Whole { .. } => self.choose_whole(host, demand, free),
            DeviceDemand::Share { .. } => {
                let fitting = self.fitting_shares(host, demand, &free);
                Some(vec![fitting.min_by_key(|held| (free(held.cell), held.cell))?])
            }
        }
    }

    /// Returns each choice on a host of which the [rule](DeviceTable::fit) selects one: all devices for a share under
    /// [`DeviceFit::Gradient`], and else that of [`choose`](DeviceTable::choose).
    pub fn choices(
        &self,
        host: HostId,
        demand: DeviceDemand,
        free: impl Fn(CellId) -> u64,
    ) -> Vec<Vec<HeldDevices>> {
        match (demand, self.fit()) {
            (DeviceDemand::Share { .. }, DeviceFit::Gradient(_)) => {
                // Devices of a class with as much free memory are alike.
                let mut seen: Vec<(usize, u64)> = Vec::new();
                let is_new = |held: &HeldDevices| {
                    let kind = (self.cell(held.cell).class, free(held.cell));
                    let is_new = !seen.contains(&kind);
                    seen.push(kind);
                    is_new
                };
                self.fitting_shares(host, demand, &free).filter(is_new).map(|held| vec![held]).collect()
            }
            _ => self.choose(host, demand, free).into_iter().collect(),
        }
    }

    /// Returns whether [`choose`](DeviceTable::choose) finds devices, without a list of them.
    pub(super) fn could_choose(
        &self,
        host: HostId,
        demand: DeviceDemand,
        free: &impl Fn(CellId) -> u64,
    ) -> bool {
        if let DeviceDemand::Share { .. } = demand {
            return self.fitting_shares(host, demand, free).next().is_some();
        }
        let of_host = |id: &CellId| demand.classes().has(self.cell(*id).class);
        let is_enough = |class: usize| {
            let cells = self.cells_of(host).filter(|id| self.cell(*id).class == class);
            cells.map(|id| self.devices_in(id, free(id))).sum::<u64>() >= demand.count().into()
        };
        let mut last = None;
        self.cells_of(host).filter(of_host).map(|id| self.cell(id).class).any(|class| {
            // The cells of a class are often neighbours.
            last.replace(class) != Some(class) && is_enough(class)
        })
    }

    /// Returns the share of each device on which it fits.
    fn fitting_shares<'a>(
        &'a self,
        host: HostId,
        demand: DeviceDemand,
        free: &'a impl Fn(CellId) -> u64,
    ) -> impl Iterator<Item = HeldDevices> + 'a {
        self.cells_of(host).filter_map(move |id| {
            let held = HeldDevices::planned(id, self.share_in(id, demand)?);
            (free(id) >= held.amount).then_some(held)
        })
    }

    /// Returns the amount of a share in a cell, if it may be there.
    pub(super) fn share_in(&self, id: CellId, demand: DeviceDemand) -> Option<u64> {
        let DeviceDemand::Share { amount, classes } = demand else { return None };
        let cell = self.cells().get(id.index())?;
        (cell.shares && classes.has(cell.class)).then(|| amount.of(cell.most))
    }

    fn choose_whole(
        &self,
        host: HostId,
        demand: DeviceDemand,
        free: impl Fn(CellId) -> u64,
    ) -> Option<Vec<HeldDevices>> {
        let count = u64::from(demand.count());
        let mut classes: Vec<(usize, u64)> = Vec::new();
        for id in self.cells_of(host).filter(|id| demand.classes().has(self.cell(*id).class)) {
            let (class, devices) = (self.cell(id).class, self.devices_in(id, free(id)));
            match classes.iter_mut().find(|(other, _)| *other == class) {
                Some((_, all)) => *all += devices,
                None => classes.push((class, devices)),
            }
        }
        let enough = classes.into_iter().filter(|(_, devices)| *devices >= count);
        let (class, _) = enough.min_by_key(|(class, devices)| (*devices, *class))?;
        let mut left = count;
        let mut held = Vec::new();
        for id in self.cells_of(host).filter(|id| self.cell(*id).class == class) {
            let devices = self.devices_in(id, free(id)).min(left);
            if devices > 0 {
                held.push(HeldDevices::planned(id, self.cell(id).whole(devices)?));
                left -= devices;
            }
        }
        Some(held)
    }

    /// Returns the whole devices that are free in a cell with this free amount.
    fn devices_in(&self, id: CellId, free: u64) -> u64 {
        let cell = self.cell(id);
        if cell.shares { u64::from(free >= cell.most) } else { free }
    }

    /// Returns whether the devices are those of a demand on a host: whole devices of one permitted class, or one share.
    pub fn is_of(&self, host: HostId, demand: Option<DeviceDemand>, devices: &[HeldDevices]) -> bool {
        let Some(demand) = demand else { return devices.is_empty() };
        let here = devices.iter().all(|held| {
            self.cells()
                .get(held.cell.index())
                .is_some_and(|cell| cell.host == host && demand.classes().has(cell.class))
        });
        if !here || devices.windows(2).any(|pair| pair[0].cell >= pair[1].cell) {
            return false;
        }
        match (demand, devices) {
            (DeviceDemand::Share { .. }, [held]) => self.share_in(held.cell, demand) == Some(held.amount),
            (DeviceDemand::Share { .. }, _) => false,
            (DeviceDemand::Whole { count, .. }, _) => {
                let whole = |held: &HeldDevices| match self.devices_in(held.cell, held.amount) {
                    0 => None,
                    devices => Some(devices),
                };
                let total =
                    devices.iter().map(whole).try_fold(0_u64, |sum, devices| sum.checked_add(devices?));
                let alike = devices
                    .windows(2)
                    .all(|two| self.cell(two[0].cell).class == self.cell(two[1].cell).class);
                alike && total == Some(count.into())
            }
        }
    }

    /// Returns the rank of a job on a host: smaller is better. `free` is the free amount of each cell before its start.
    pub(crate) fn rank(
        &self,
        host: HostId,
        (room, amount): (&Resources, &Resources),
        devices: &[HeldDevices],
        free: impl Fn(CellId) -> u64,
    ) -> (i64, u64) {
        let idle = self.cells_of(host).map(|id| self.cell(id).thousandths(free(id))).sum();
        let growth = match self.fit() {
            DeviceFit::Best => 0,
            DeviceFit::Gradient(typical) => typical.growth(self, host, Taken { room, amount, devices }, free),
        };
        (growth, idle)
    }
}

/// The free devices of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeDevices {
    /// The free amount of each cell.
    amounts: Vec<u64>,
    /// The free devices of each cell, one bit each. Those of a device that is given in shares do not count.
    names: Vec<u64>,
}

impl FreeDevices {
    /// Returns the free devices of an idle machine.
    pub(crate) fn idle(table: &DeviceTable) -> FreeDevices {
        let amounts = table.cells().iter().map(|cell| cell.capacity).collect();
        let names = table.cells().iter().map(|cell| cell.positions() & !cell.lost).collect();
        FreeDevices { amounts, names }
    }

    /// Returns the free amount of a cell. A cell that does not exist has none.
    pub(crate) fn of(&self, cell: CellId) -> u64 {
        self.amounts.get(cell.index()).copied().unwrap_or(0)
    }

    /// Returns these devices with names: parts of the physical device with the fewest free parts, then the first ones.
    ///
    /// Devices that have names keep them.
    pub(crate) fn named(&self, table: &DeviceTable, held: HeldDevices) -> HeldDevices {
        let Some(cell) = table.cells().get(held.cell.index()).filter(|_| held.names == 0) else {
            return held;
        };
        if cell.shares {
            return HeldDevices { names: 1, ..held };
        }
        let mut free = self.names[held.cell.index()];
        let mut names = 0;
        for _ in 0..held.amount.min(free.count_ones().into()) {
            let parts = cell.parts.clamp(1, 64);
            let on_same = |at: u32| (u64::MAX >> (64 - parts)) << (at - at % parts);
            let positions = (0..u64::BITS).filter(|at| free >> at & 1 == 1);
            let Some(at) = positions.min_by_key(|at| ((free & on_same(*at)).count_ones(), *at)) else {
                break;
            };
            names |= 1 << at;
            free &= !(1 << at);
        }
        HeldDevices { names, ..held }
    }

    /// Takes devices with their names: all, or none if one is not free.
    pub(crate) fn take(&mut self, table: &DeviceTable, held: &[HeldDevices]) -> Result<(), Rule> {
        for held in held {
            let at = held.cell.index();
            let cell = table.cells().get(at).ok_or(Rule::WrongDevices)?;
            if held.amount > self.amounts[at] {
                return Err(Rule::OverCommitted);
            }
            let named =
                if cell.shares { held.names == 1 } else { u64::from(held.names.count_ones()) == held.amount };
            if !named || held.names & !self.names[at] != 0 {
                return Err(Rule::WrongDevices);
            }
        }
        for held in held {
            let at = held.cell.index();
            self.amounts[at] -= held.amount;
            if !table.cell(held.cell).shares {
                self.names[at] &= !held.names;
            }
        }
        Ok(())
    }

    /// Releases devices that were taken.
    pub(crate) fn give(&mut self, held: &[HeldDevices]) {
        for held in held {
            let at = held.cell.index();
            self.amounts[at] += held.amount;
            self.names[at] |= held.names;
        }
    }
}
