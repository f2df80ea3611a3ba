//! The use of the devices of a machine over time, by class, and their fragmentation.

use miserly_core::devices::{CellId, DeviceClass, DeviceDemand, DeviceTable};
use miserly_core::{Ledger, Request, Resources, Span, System, Time};

use crate::finished::Observer;

/// The use of the devices of a machine, from the first submission to the last one.
///
/// After the last submission the machine only runs empty. Amounts are thousandths of a device, and their sums over time are
/// thousandths times ticks.
#[derive(Clone, Debug, Default)]
pub struct DeviceUse {
    /// The sums to the last submission.
    sums: Sums,
    /// The sums to `at`.
    running: Sums,
    /// The state since `at`.
    present: Present,
    first: Option<Time>,
    at: Time,
    last: Time,
    classes: Vec<ClassSize>,
}

/// A class of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClassSize {
    name: String,
    devices: u64,
}

/// Sums over time.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// The allocated amount of each class.
    busy: Vec<u128>,
    /// The free amount of all classes while a waiting job would fit if free devices were together.
    fragmented: u128,
    /// The waiting jobs with devices.
    waiting: u128,
}

/// The state of the machine for some time.
#[derive(Clone, Debug, Default)]
struct Present {
    busy: Vec<u64>,
    fragmented: u64,
    waiting: u64,
}

/// The use of a class of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassUse {
    /// The type.
    pub name: String,
    /// The number of devices.
    pub devices: u64,
    /// The mean number of allocated devices.
    pub busy: f64,
}

impl DeviceUse {
    /// Returns the use of each type, in the order of the machine's classes. Empty for a machine without devices, and for a
    /// run of no length.
    pub fn types(&self) -> Vec<ClassUse> {
        let mut types: Vec<ClassUse> = Vec::new();
        let Some(time) = self.time() else { return types };
        for (class, busy) in self.classes.iter().zip(&self.sums.busy) {
            let busy = *busy as f64 / 1e3 / time;
            match types.iter_mut().find(|other| other.name == class.name) {
                Some(of_type) => {
                    of_type.devices += class.devices;
                    of_type.busy += busy;
                }
                None => types.push(ClassUse { name: class.name.clone(), devices: class.devices, busy }),
            }
        }
        types
    }

    /// Returns the mean number of free devices while a job waits that would fit if they were together; 0 at other times.
    pub fn fragmented(&self) -> f64 {
        self.time().map_or(0.0, |time| self.sums.fragmented as f64 / 1e3 / time)
    }

    /// Returns the mean number of waiting jobs with devices.
    pub fn waiting(&self) -> f64 {
        self.time().map_or(0.0, |time| self.sums.waiting as f64 / time)
    }

    /// Returns the length of the measured time in ticks.
    fn time(&self) -> Option<f64> {
        let length = self.last - self.first?;
        (length > Span::ZERO).then_some(length.ticks() as f64)
    }

    fn advance(&mut self, now: Time) {
        let Some(_) = self.first else { return };
        let passed = u128::from((now - self.at).ticks().max(0).unsigned_abs());
        self.running.busy.resize(self.present.busy.len(), 0);
        for (sum, busy) in self.running.busy.iter_mut().zip(&self.present.busy) {
            *sum += u128::from(*busy) * passed;
        }
        self.running.fragmented += u128::from(self.present.fragmented) * passed;
        self.running.waiting += u128::from(self.present.waiting) * passed;
        self.at = now;
    }
}

impl Observer for DeviceUse {
    fn submitted(&mut self, now: Time, _request: &Request) {
        if self.first.is_none() {
            (self.first, self.at) = (Some(now), now);
        }
        self.advance(now);
        self.last = now;
        self.sums.clone_from(&self.running);
    }

    fn system(&mut self, now: Time, system: &System) {
        self.advance(now);
        let [queue] = system.queues() else { return };
        let ledger = queue.ledger();
        let Some(table) = ledger.machine().devices() else { return };
        if self.classes.is_empty() {
            self.classes = sizes(table);
        }
        self.present = present(ledger, table);
    }
}

fn sizes(table: &DeviceTable) -> Vec<ClassSize> {
    let class = |(at, class): (usize, &DeviceClass)| {
        let cells = table.cells().iter().filter(|cell| cell.class == at);
        let devices = cells.map(|cell| if cell.shares { 1 } else { cell.capacity }).sum();
        ClassSize { name: class.name.clone(), devices }
    };
    table.classes().iter().enumerate().map(class).collect()
}

fn present(ledger: &Ledger, table: &DeviceTable) -> Present {
    let mut busy = vec![0; table.classes().len()];
    let mut free = vec![0; table.classes().len()];
    for (id, cell) in (0..).map(CellId).zip(table.cells()) {
        let room = ledger.free_devices(id);
        busy[cell.class] += cell.thousandths(cell.capacity - room);
        free[cell.class] += cell.thousandths(room);
    }
    let mut seen: Vec<(Resources, DeviceDemand)> = Vec::new();
    let (mut waiting, mut is_fragmented) = (0, false);
    for job in ledger.waiting() {
        let request = ledger.request(job);
        let demand = ledger.machine().demand(request);
        let Some(devices) = demand.devices() else { continue };
        waiting += 1;
        let kind = (demand.amount(), devices);
        if is_fragmented || seen.contains(&kind) {
            continue;
        }
        seen.push(kind);
        let permitted = free.iter().enumerate().filter(|(class, _)| devices.classes().has(*class));
        let together = permitted.map(|(_, free)| free).sum::<u64>() >= devices.thousandths(table);
        let fits_together = together && demand.amount().fits_in(&ledger.free());
        is_fragmented = fits_together && ledger.fit(&demand).is_none();
    }
    let fragmented = if is_fragmented { free.iter().sum() } else { 0 };
    Present { busy, fragmented, waiting }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use miserly_core::devices::{DeviceClass, DeviceGroup, DeviceRequest};
    use miserly_core::{EventOrder, Host, Machine};
    use miserly_policies::PolicySpec;

    use super::*;
    use crate::{Job, Simulation};

    /// Two hosts with two devices each. Job 3 wants two devices, and one is free on each host from 0 to 6.
    #[test]
    fn free_devices_of_two_hosts_are_fragments() {
        let class = DeviceClass { name: "a".into(), memory: None, part_of: None, shares: false };
        let group = DeviceGroup { class, count: 2, parts: 1 };
        let table = DeviceTable::new(&[vec![group.clone()], vec![group]]).unwrap();
        let demand = |count| table.demand(&DeviceRequest::any(count)).unwrap();
        let job = |number: i64, submit: i64, run: i64, count: u32, cpus: u64| {
            let span = Span::from_ticks(run);
            let request = Request::new(number, Time::from_ticks(submit), span, Resources::cpus(cpus));
            Job::new(Request { devices: Some(demand(count)), ..request }, span)
        };
        // The first two do not fit on one host by their processors.
        let jobs = [job(1, 0, 6, 1, 3), job(2, 0, 8, 1, 3), job(3, 1, 4, 2, 1), job(4, 10, 1, 1, 1)];
        let host = |name: &str| Host { name: name.into(), capacity: Resources::cpus(4_u64) };
        let machine = Machine::new(vec![host("x"), host("y")]).with_devices(Some(Arc::new(table.clone())));
        let policy = "easy".parse::<PolicySpec>().unwrap().build(&machine, 1).unwrap();
        let mut used = DeviceUse::default();
        let mut simulation = Simulation::new(machine, policy, EventOrder::Batched);
        simulation.run(&mut jobs.into_iter().map(Ok::<_, Infallible>), &mut [&mut used]).unwrap();
        // 6 + 8 + 2 x 4 device-ticks in 10 ticks; 2 are free and one job waits from 1 to 6.
        assert_eq!(used.types(), [ClassUse { name: "a".into(), devices: 4, busy: 2.2 }]);
        assert_eq!((used.fragmented(), used.waiting()), (1.0, 0.5));
    }
}
