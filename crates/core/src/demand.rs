//! The demand of a job on a machine: an amount of resources, in parts that are each on one host.

use std::num::NonZeroU32;

use crate::devices::DeviceDemand;
use crate::{Kind, Procs, Resources};

/// The form of a job over several hosts.
///
/// The default has one part for each processor, on any hosts.
///
/// A form applies on a machine of several hosts whose jobs may span them ([`Spread::Any`](crate::Spread::Any)).
/// Any other machine ignores it.
///
/// # Example
/// Four equal parts on four hosts, each with its host to itself:
/// ```
/// use miserly_core::{Form, Host, Machine, Request, Resources, Span, Spread, Time};
///
/// let host = |cpus: u64| Host { name: String::new(), capacity: Resources::cpus(cpus) };
/// let machine = Machine::new([8, 8, 8, 2].map(host).into()).with_spread(Spread::Any);
/// let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(16));
/// let in_four = Form { apart: true, ..Form::parts(4) };
/// assert!(machine.could_hold(&request));
/// assert!(!machine.could_hold(&Request { form: in_four, ..request }));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// The number of equal parts. Each part is on one host. `None`: one part for each processor.
    ///
    /// Each kind of resource is rounded up to a multiple of the parts.
    pub parts: Option<NonZeroU32>,
    /// Whether each part needs a host of its own.
    pub apart: bool,
    /// Whether the job has its hosts to itself, even if the machine is shared. It holds their whole capacity.
    pub alone: bool,
    /// The hosts on which it may run. `None`: all hosts.
    pub group: Option<HostGroup>,
}

/// A group of the hosts of a machine ([`Machine::with_groups`](crate::Machine::with_groups)), by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostGroup(pub u16);

impl Form {
    /// The default form: one part for each processor, on any hosts.
    pub const ANY: Form = Form { parts: None, apart: false, alone: false, group: None };

    /// Returns the form of this number of equal parts, on any hosts. Zero parts are one for each processor.
    pub const fn parts(parts: u32) -> Form {
        Form { parts: NonZeroU32::new(parts), ..Form::ANY }
    }
}

/// The demand of a job on a machine: an amount of the kinds that the machine accounts, in equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    amount: Resources,
    parts: u64,
    apart: bool,
    alone: bool,
    group: Option<HostGroup>,
    devices: Option<DeviceDemand>,
}

impl From<Resources> for Demand {
    /// Returns the demand of this amount in the default form. Parts differ by one where the processors do not divide an
    /// amount.
    fn from(amount: Resources) -> Demand {
        Demand {
            amount,
            parts: amount.cpus_count().get().max(1),
            apart: false,
            alone: false,
            group: None,
            devices: None,
        }
    }
}

impl Demand {
    /// Returns the demand of this amount in this form, with each kind rounded up to a multiple of the parts.
    pub fn new(amount: Resources, form: Form) -> Demand {
        let Form { parts, apart, alone, group } = form;
        let parts = parts.map_or(amount.cpus_count().get().max(1), |parts| parts.get().into());
        let amount = amount.map(|amount| amount.checked_next_multiple_of(parts).unwrap_or(amount));
        Demand { amount, parts, apart, alone, group, devices: None }
    }

    /// Returns the same demand with these devices.
    #[must_use]
    pub const fn with_devices(self, devices: Option<DeviceDemand>) -> Demand {
        Demand { devices, ..self }
    }

    /// Returns the devices of the job, if it demands any.
    pub const fn devices(&self) -> Option<DeviceDemand> {
        self.devices
    }

    /// Returns the amount of all parts together.
    ///
    /// A job that has its hosts to itself holds at least as much.
    pub const fn amount(&self) -> Resources {
        self.amount
    }

    /// Returns the processors of all parts together.
    pub const fn cpus_count(&self) -> Procs {
        self.amount.cpus_count()
    }

    /// Returns the number of parts, at least one.
    pub const fn parts(&self) -> u64 {
        self.parts
    }

    /// Returns whether each part needs a host of its own.
    pub const fn is_apart(&self) -> bool {
        self.apart
    }

    /// Returns whether the job has its hosts to itself.
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Returns the hosts on which the job may run, if not on all.
    pub const fn group(&self) -> Option<HostGroup> {
        self.group
    }

    /// Returns whether the demand has the default form.
    pub fn has_any_form(&self) -> bool {
        !self.apart
            && !self.alone
            && self.group.is_none()
            && self.parts == self.amount.cpus_count().get().max(1)
    }

    /// Returns the amount of one part, rounded up.
    pub fn each(&self) -> Resources {
        self.amount.map(|amount| amount.div_ceil(self.parts))
    }

    /// Returns the amount of the parts `from..to`. All parts sum to the whole exactly.
    #[must_use]
    pub fn part(&self, from: u64, to: u64) -> Resources {
        let parts = self.parts;
        // A part is at most the whole.
        let until = |amount: u64, end: u64| match amount.checked_mul(end) {
            // A division of 64 bits is many times as fast.
            Some(product) => product / parts,
            None => u64::try_from(u128::from(amount) * u128::from(end) / u128::from(parts)).unwrap_or(amount),
        };
        self.amount.map(|amount| until(amount, to) - until(amount, from))
    }
}

/// Counts the parts of one job that fit into one room after another.
#[derive(Clone, Copy, Debug)]
pub struct PartCounter {
    demand: Demand,
    /// The amount of one part, rounded up.
    each: Resources,
    /// The most parts on one host.
    most: u64,
}

impl PartCounter {
    /// Returns the counter for a job with this demand.
    pub fn new(demand: &Demand) -> PartCounter {
        let most = if demand.apart { 1 } else { demand.parts };
        PartCounter { demand: *demand, each: demand.each(), most }
    }

    /// Returns the hosts on which the job may run, if not on all.
    pub const fn group(&self) -> Option<HostGroup> {
        self.demand.group
    }

    /// Returns the number of parts that fit on a host of this capacity with this room.
    ///
    /// If the whole job fits, all of its parts fit. Otherwise an amount that the parts do not divide is rounded up for
    /// each part. A job that has its hosts to itself fits on idle hosts only.
    pub fn parts_in(&self, room: &Resources, capacity: &Resources) -> u64 {
        if self.demand.alone && room != capacity {
            return 0;
        }
        if self.demand.amount.fits_in(room) {
            return self.most;
        }
        let parts = Kind::ALL.map(|kind| match (room.get(kind), self.each.get(kind)) {
            (_, 0) => self.most,
            (room, 1) => room,
            (room, each) => room / each,
        });
        parts.into_iter().fold(self.most, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_job() {
        let demand = Demand::from(Resources::cpus(3).with(Kind::Memory, 10));
        let counter = PartCounter::new(&demand);
        let room = |cpus: u64, memory| {
            let room = Resources::cpus(cpus).with(Kind::Memory, memory);
            counter.parts_in(&room, &room)
        };
        assert_eq!([room(8, 100), room(2, 100), room(8, 7), room(8, 3)], [3, 2, 1, 0]);
        // Four for each of three processors would be twelve, but their total request is ten.
        assert_eq!([room(8, 10), room(8, 9)], [3, 2]);
        let rounded = Demand::new(demand.amount(), Form::ANY);
        assert_eq!(rounded.amount(), Resources::cpus(3).with(Kind::Memory, 12));
        let parts = [demand.part(0, 1), demand.part(1, 3)];
        assert_eq!(parts[0].plus(&parts[1]), demand.amount());
        assert_eq!(parts[0], Resources::cpus(1).with(Kind::Memory, 3));
        assert!(parts.iter().zip([1, 2]).all(|(part, parts)| counter.parts_in(part, part) <= parts));
    }

    #[test]
    fn parts_of_a_form() {
        let amount = Resources::cpus(7).with(Kind::Memory, 10);
        let demand = Demand::new(amount, Form::parts(2));
        assert_eq!(demand.each(), Resources::cpus(4).with(Kind::Memory, 5));
        assert_eq!(demand.part(0, 1), demand.each());
        let capacity = Resources::cpus(16).with(Kind::Memory, 100);
        let count = |form: Form, cpus: u64| {
            let room = capacity.with_cpus(Procs::new(cpus));
            PartCounter::new(&Demand::new(amount, form)).parts_in(&room, &capacity)
        };
        let two = Form::parts(2);
        assert_eq!([3, 4, 7, 8, 16].map(|cpus| count(two, cpus)), [0, 1, 1, 2, 2]);
        let apart = Form { apart: true, ..two };
        assert_eq!([3, 4, 16].map(|cpus| count(apart, cpus)), [0, 1, 1]);
        let alone = Form { alone: true, ..two };
        assert_eq!([15, 16].map(|cpus| count(alone, cpus)), [0, 2]);
        assert!(Demand::new(amount, Form::ANY).has_any_form() && !demand.has_any_form());
    }
}
