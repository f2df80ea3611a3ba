//! The devices of a machine, as classes and cells.

use std::ops::Range;

use super::{
    ClassSet, DeviceClass, DeviceDemand, DeviceError, DeviceFit, DeviceGroup, DeviceRequest, ShareAmount,
};
use crate::HostId;

/// The position of a cell in its [`DeviceTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(pub u32);

impl CellId {
    /// Returns the position as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Devices of one class on one host that are counted together: whole devices, or the memory of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCell {
    /// The host.
    pub host: HostId,
    /// The position of the class in the table.
    pub class: usize,
    /// The number of devices; of a device that is given in shares, its memory in kB. Lost devices do not count.
    pub capacity: u64,
    /// The capacity without a loss.
    pub most: u64,
    /// The lost devices by position, one bit each.
    pub lost: u64,
    /// The position of its first device among those of the host.
    pub first: u32,
    /// The number of devices on the same physical device.
    pub parts: u32,
    /// Whether the cell is one device that is given in shares.
    pub shares: bool,
}

impl DeviceCell {
    /// Returns the positions of its devices, lost ones included, one bit each.
    pub(super) fn positions(&self) -> u64 {
        let count = if self.shares { 1 } else { u32::try_from(self.most).unwrap_or(u32::MAX) };
        64_u32.checked_sub(count).and_then(|unused| u64::MAX.checked_shr(unused)).unwrap_or(0)
    }

    /// Returns the amount that a number of whole devices take of the cell, or `None` if it has too few.
    pub(super) fn whole(&self, devices: u64) -> Option<u64> {
        if self.shares { (devices == 1).then_some(self.most) } else { Some(devices) }
            .filter(|amount| *amount <= self.capacity)
    }

    /// Returns an amount of the cell in thousandths of a device, rounded down.
    pub fn thousandths(&self, amount: u64) -> u64 {
        if self.shares { amount.saturating_mul(1000) / self.most.max(1) } else { amount.saturating_mul(1000) }
    }
}

/// The devices of a machine: their classes, and their cells by host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTable {
    classes: Vec<DeviceClass>,
    cells: Vec<DeviceCell>,
    /// The first cell of each host, and the number of all.
    first: Vec<u32>,
    fit: DeviceFit,
}

impl DeviceTable {
    /// Returns the table of these devices of each host, in the order of the hosts.
    ///
    /// # Errors
    /// [`DeviceError::TooManyClasses`] if there are more than [`ClassSet::MOST`] classes.
    pub fn new(hosts: &[Vec<DeviceGroup>]) -> Result<DeviceTable, DeviceError> {
        let mut table = DeviceTable { classes: vec![], cells: vec![], first: vec![0], fit: DeviceFit::Best };
        for (host, groups) in (0..).map(HostId).zip(hosts) {
            let mut first = 0;
            for group in groups {
                let class = table.add_class(&group.class);
                let cell = |first: u32, capacity: u64, shares: bool| DeviceCell {
                    host,
                    class,
                    capacity,
                    most: capacity,
                    lost: 0,
                    first,
                    parts: group.parts,
                    shares,
                };
                match group.class.memory.filter(|_| group.class.shares) {
                    Some(memory) => {
                        table.cells.extend((0..group.count).map(|nth| cell(first + nth, memory, true)));
                    }
                    None => table.cells.push(cell(first, group.count.into(), false)),
                }
                first += group.count;
            }
            // No machine has so many cells.
            table.first.push(u32::try_from(table.cells.len()).unwrap_or(u32::MAX));
        }
        if table.classes.len() > ClassSet::MOST {
            return Err(DeviceError::TooManyClasses { classes: table.classes.len() });
        }
        Ok(table)
    }

    /// Returns the same devices with this rule of placement.
    #[must_use]
    pub fn with_fit(self, fit: DeviceFit) -> DeviceTable {
        DeviceTable { fit, ..self }
    }

    /// Returns the same devices, of which only these are lost: positions of cells, one bit each.
    #[must_use]
    pub fn with_lost(mut self, lost: &[(CellId, u64)]) -> DeviceTable {
        for (id, cell) in (0..).map(CellId).zip(&mut self.cells) {
            let names = lost.iter().filter(|(of, _)| *of == id).fold(0, |all, (_, names)| all | names);
            cell.lost = names & cell.positions();
            let count = u64::from(cell.lost.count_ones());
            cell.capacity = if cell.shares { cell.most * (1 - count) } else { cell.most - count };
        }
        self
    }

    /// Returns the lost devices: positions of cells, one bit each.
    pub fn lost(&self) -> Vec<(CellId, u64)> {
        let cells = (0..).map(CellId).zip(&self.cells);
        cells.filter(|(_, cell)| cell.lost != 0).map(|(id, cell)| (id, cell.lost)).collect()
    }

    /// Returns the rule of placement.
    pub fn fit(&self) -> &DeviceFit {
        &self.fit
    }

    fn add_class(&mut self, class: &DeviceClass) -> usize {
        let same = |other: &DeviceClass| {
            other.is_named(&class.name) && DeviceClass { name: class.name.clone(), ..other.clone() } == *class
        };
        self.classes.iter().position(same).unwrap_or_else(|| {
            self.classes.push(class.clone());
            self.classes.len() - 1
        })
    }

    /// Returns the classes, in the order of their first devices.
    pub fn classes(&self) -> &[DeviceClass] {
        &self.classes
    }

    /// Returns the types, each once.
    pub fn types(&self) -> Vec<String> {
        let mut types: Vec<String> = Vec::new();
        for class in &self.classes {
            if types.iter().all(|name| !class.is_named(name)) {
                types.push(class.name.clone());
            }
        }
        types
    }

    /// Returns the cells, in the order of their hosts.
    pub fn cells(&self) -> &[DeviceCell] {
        &self.cells
    }

    /// Returns a cell.
    ///
    /// # Panics
    /// If there is no such cell.
    #[track_caller]
    pub fn cell(&self, cell: CellId) -> &DeviceCell {
        &self.cells[cell.index()]
    }

    /// Returns the cells of a host.
    pub fn cells_of(&self, host: HostId) -> impl DoubleEndedIterator<Item = CellId> + Clone + use<> {
        self.range(host).map(CellId)
    }

    fn range(&self, host: HostId) -> Range<u32> {
        let bound = |at: usize| self.first.get(at).copied();
        bound(host.index()).zip(bound(host.index() + 1)).map_or(0..0, |(first, next)| first..next)
    }

    /// Returns the demand of a job of a log: a number of thousandths of a device, of one of these types, separated by `|`.
    ///
    /// Less than one device is a share, where some device of the types is given in shares. Otherwise the number is rounded
    /// up to whole devices. No devices are no demand.
    ///
    /// # Errors
    /// If no device can meet it.
    pub fn demand_of_log(
        &self,
        thousandths: u64,
        types: Option<&str>,
    ) -> Result<Option<DeviceDemand>, DeviceError> {
        if thousandths == 0 {
            return Ok(None);
        }
        let count = u32::try_from(thousandths.div_ceil(1000)).unwrap_or(u32::MAX);
        let whole = DeviceRequest::any(count);
        let request = types.map_or(Ok(whole.clone()), |types| whole.with_types(types))?;
        let part = u32::try_from(thousandths).ok().filter(|part| *part < 1000);
        let share = part.zip(self.demand(&DeviceRequest { share: true, ..request.clone() }).ok());
        Ok(Some(match share {
            Some((part, demand)) => {
                DeviceDemand::Share { amount: ShareAmount::Thousandths(part), classes: demand.classes() }
            }
            None => self.demand(&request)?,
        }))
    }

    /// Returns the demand of a request.
    ///
    /// A request with neither type nor memory is for whole devices, unless the machine has parts only. Parts are
    /// requested by their type, or by memory.
    ///
    /// # Errors
    /// If no device can meet the request.
    pub fn demand(&self, request: &DeviceRequest) -> Result<DeviceDemand, DeviceError> {
        let DeviceRequest { types, count, memory, share } = request;
        let known = |name: &&String| self.classes.iter().any(|class| class.is_named(name));
        if let Some(name) = types.iter().find(|name| !known(name)) {
            return Err(DeviceError::UnknownType { name: name.clone(), types: self.types() });
        }
        if *share && *count != 1 {
            return Err(DeviceError::ShareOfSeveral { count: *count });
        }
        let only_parts = self.classes.iter().all(|class| class.part_of.is_some());
        let is_one = |class: &&DeviceClass| match &types[..] {
            [] => class.part_of.is_none() || memory.is_some() || only_parts,
            types => types.iter().any(|name| class.is_named(name)),
        };
        let of_types = self.classes.iter().filter(is_one).filter(|class| class.shares || !share);
        if of_types.clone().next().is_none() {
            return Err(DeviceError::NoShares);
        }
        let most = of_types.clone().filter_map(|class| class.memory).max().unwrap_or(0);
        let has_memory = |class: &&DeviceClass| memory.is_none_or(|memory| class.has_memory(memory));
        let fitting = |class: &DeviceClass| is_one(&class) && (class.shares || !share) && has_memory(&class);
        let classes = self.classes.iter().enumerate().filter(|(_, class)| fitting(class));
        let classes = classes.fold(ClassSet::default(), |set, (at, _)| set.with(at));
        if classes.is_empty() {
            return Err(DeviceError::Memory { memory: memory.unwrap_or(0), most });
        }
        Ok(match (share, memory) {
            (true, Some(memory)) => DeviceDemand::Share { amount: ShareAmount::Memory(*memory), classes },
            _ => DeviceDemand::Whole { count: *count, classes },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, memory: u64, part_of: Option<&str>, shares: bool) -> DeviceClass {
        DeviceClass { name: name.into(), memory: Some(memory), part_of: part_of.map(Into::into), shares }
    }

    fn table() -> DeviceTable {
        let group = |class, count, parts| DeviceGroup { class, count, parts };
        let first = vec![
            group(class("a100", 80, None, false), 6, 1),
            group(class("1g.10gb", 10, Some("a100"), false), 14, 7),
        ];
        let second =
            vec![group(class("T4", 16, None, true), 2, 1), group(class("a100", 40, None, false), 1, 1)];
        DeviceTable::new(&[first, vec![], second]).unwrap()
    }

    #[test]
    fn a_device_in_shares_is_a_cell_of_its_own() {
        let table = table();
        let cells =
            |host| table.cells_of(HostId(host)).map(|cell| table.cell(cell).capacity).collect::<Vec<_>>();
        assert_eq!([cells(0), cells(1), cells(2), cells(3)], [vec![6, 14], vec![], vec![16, 16, 1], vec![]]);
        assert_eq!(table.cells().iter().map(|cell| cell.first).collect::<Vec<_>>(), [0, 6, 0, 1, 2]);
        assert_eq!(table.types(), ["a100", "1g.10gb", "T4"]);
    }

    #[track_caller]
    fn check(request: &DeviceRequest, expect: Result<&[usize], &str>) {
        let demand = table().demand(request);
        let classes =
            |demand: DeviceDemand| (0..64).filter(|at| demand.classes().has(*at)).collect::<Vec<_>>();
        let found = demand.map(classes).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expect);
    }

    #[test]
    fn the_classes_of_a_request() {
        let request = |text: &str| text.parse::<DeviceRequest>().unwrap();
        check(&request("2"), Ok(&[0, 2, 3]));
        check(&request("A100:2"), Ok(&[0, 3]));
        check(&request("t4|1g.10gb"), Ok(&[1, 2]));
        check(&request("1").with_memory(10), Ok(&[0, 1, 2, 3]));
        check(&request("1").with_memory(41), Ok(&[0]));
        check(&request("a100").with_memory(81), Err("no GPU has 81 kB of memory; the most is 80 kB"));
        check(&request("h100"), Err("no GPU of type \"h100\"; the types are a100, 1g.10gb, T4"));
        check(&DeviceRequest::share(10), Ok(&[2]));
        check(&DeviceRequest::share(17), Err("no GPU has 17 kB of memory; the most is 16 kB"));
        check(
            &DeviceRequest::share(1).with_types("a100").unwrap(),
            Err("no GPU of these types is given in shares; request whole GPUs"),
        );
        check(
            &DeviceRequest { count: 2, ..DeviceRequest::share(1) },
            Err("a share is of one GPU, not of 2; request whole GPUs, or a count of 1"),
        );
    }
}
