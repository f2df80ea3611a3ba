//! The machine: a list of hosts, and the rules by which jobs are placed on them.

use std::sync::Arc;

use crate::devices::{CellId, DeviceTable, HeldDevices};
use crate::{
    Calendar, Charge, Demand, Form, HostGroup, JobClasses, Kind, PartCounter, Placement, Procs, Request,
    Resources, Time,
};

/// The position of a host in its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

impl HostId {
    /// Returns the position as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host and its capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name of the host, for display.
    pub name: String,
    /// The total capacity. A kind that no host has is not accounted.
    pub capacity: Resources,
}

crate::named_enum! {
    /// The number of hosts that a job may span.
    #[derive(Default)]
    pub enum Spread {
        /// One host. A job that fits on no host alone does not run (Chiang and Vernon §2).
        #[default]
        One "one",
        /// Any number of hosts, unless the job has a [`Form`]. Each processor comes with its part of the other resources of the
        /// job.
        Any "any",
    }
}

crate::named_enum! {
    /// The sharing of hosts by jobs.
    #[derive(Default)]
    pub enum Sharing {
        /// Jobs share hosts. A job holds the requested amount.
        #[default]
        Shared "shared",
        /// A job has its hosts to itself, and so holds their whole capacity.
        Whole "whole",
    }
}

/// Hosts on which no job may run from one time until another one, known ahead.
///
/// Jobs that run there already go on. A policy that [plans with them](crate::Machine::closed_hosts) places no other job there
/// whose time limit reaches into this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedHosts {
    /// The beginning.
    pub from: Time,
    /// The end, after the beginning.
    pub to: Time,
    /// The hosts.
    pub hosts: Vec<HostId>,
}

/// A machine: its hosts, in the order of the configuration, and the placement rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    hosts: Vec<Host>,
    /// The capacities of the hosts without repetitions, each with the number of its hosts.
    capacities: Vec<(Resources, u64)>,
    /// The capacity of all hosts together.
    total: Resources,
    /// The initial capacity. A kind with a positive amount stays accounted when it is lost.
    accounted: Resources,
    spread: Spread,
    sharing: Sharing,
    calendar: Option<Calendar>,
    /// Whether each host is in each group.
    groups: Vec<Vec<bool>>,
    /// The weight of each host; none if all are alike.
    weights: Vec<u64>,
    closed: Vec<ClosedHosts>,
    classes: Option<Arc<JobClasses>>,
    charge: Option<Charge>,
    devices: Option<Arc<DeviceTable>>,
}

/// The order of hosts for a job on a machine with devices, smallest first.
///
/// The growth of the fragments, the free devices in thousandths, the free processors, the free memory, and the number.
type HostRank = (i64, u64, Procs, u64, HostId);

impl Machine {
    /// Returns the plain machine of the papers: one host with `procs` identical processors, no
    /// other kind accounted.
    pub fn plain(procs: impl Into<Procs>) -> Machine {
        Machine::new(vec![Host { name: "machine".into(), capacity: Resources::cpus(procs) }])
    }

    /// Returns a machine of these hosts, which jobs share. Each job runs on one of them.
    pub fn new(hosts: Vec<Host>) -> Machine {
        let total = hosts.iter().fold(Resources::NONE, |sum, host| sum.plus(&host.capacity));
        let (spread, sharing) = (Spread::One, Sharing::Shared);
        let capacities = distinct(hosts.iter().map(|host| host.capacity).collect());
        Machine {
            hosts,
            capacities,
            total,
            accounted: total,
            spread,
            sharing,
            calendar: None,
            groups: vec![],
            weights: vec![],
            closed: vec![],
            classes: None,
            charge: None,
            devices: None,
        }
    }

    /// Returns a machine of one host whose capacity follows the calendar. The capacity of the host
    /// is the maximum of the calendar.
    pub fn pool(name: String, calendar: Calendar) -> Machine {
        let machine = Machine::new(vec![Host { name, capacity: calendar.most() }]);
        Machine { calendar: Some(calendar), ..machine }
    }

    /// Returns the capacity of the only host over time, or `None` if it is constant.
    pub fn calendar(&self) -> Option<&Calendar> {
        self.calendar.as_ref()
    }

    /// Returns the same hosts with this limit on the hosts per job.
    #[must_use]
    pub fn with_spread(self, spread: Spread) -> Machine {
        Machine { spread, ..self }
    }

    /// Returns the same hosts with this sharing.
    #[must_use]
    pub fn with_sharing(self, sharing: Sharing) -> Machine {
        Machine { sharing, ..self }
    }

    /// Returns the same hosts with these groups, to which [forms](Form::group) refer by their place. Hosts that the machine
    /// does not have are left out.
    ///
    /// # Example
    /// ```
    /// use miserly_core::{Form, Host, HostGroup, HostId, Machine, Request, Resources, Span, Spread, Time};
    ///
    /// let host = |cpus: u64| Host { name: String::new(), capacity: Resources::cpus(cpus) };
    /// let machine = Machine::new([8, 8, 4].map(host).into()).with_spread(Spread::Any);
    /// let machine = machine.with_groups(&[vec![HostId(1), HostId(2)]]);
    /// let form = Form { group: Some(HostGroup(0)), ..Form::ANY };
    /// let request = |cpus: u64| Request { form, ..Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(cpus)) };
    /// assert!(machine.could_hold(&request(12)) && !machine.could_hold(&request(13)));
    /// ```
    #[must_use]
    pub fn with_groups(mut self, groups: &[Vec<HostId>]) -> Machine {
        let members = |group: &Vec<HostId>| {
            let mut is_in = vec![false; self.hosts.len()];
            for host in group {
                is_in.get_mut(host.index()).into_iter().for_each(|is_in| *is_in = true);
            }
            is_in
        };
        self.groups = groups.iter().map(members).collect();
        self
    }

    /// Returns the same hosts with these weights, in the order of the hosts. A host without one has weight 1.
    ///
    /// Some [policies](crate::Policy) give a job the hosts of the lowest weight.
    #[must_use]
    pub fn with_weights(mut self, mut weights: Vec<u64>) -> Machine {
        weights.resize(self.hosts.len(), 1);
        if weights.windows(2).all(|pair| pair[0] == pair[1]) {
            weights.clear();
        }
        self.weights = weights;
        self
    }

    /// Returns the weights of the hosts, in order; none if all are alike.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Returns the same hosts, of which some are closed at times. Hosts that the machine does not have are left out.
    #[must_use]
    pub fn with_closed_hosts(mut self, mut closed: Vec<ClosedHosts>) -> Machine {
        for one in &mut closed {
            one.hosts.retain(|host| host.index() < self.hosts.len());
        }
        closed.retain(|one| one.from < one.to && !one.hosts.is_empty());
        self.closed = closed;
        self
    }

    /// Returns the times at which hosts are closed. Only some [policies](crate::Policy) plan with them.
    pub fn closed_hosts(&self) -> &[ClosedHosts] {
        &self.closed
    }

    /// Returns the hosts that are closed at some instant from one time until before another one. A host may be listed twice.
    pub fn closed_within(&self, from: Time, to: Time) -> impl Iterator<Item = HostId> + '_ {
        let during = move |one: &&ClosedHosts| one.from < to && from < one.to;
        self.closed.iter().filter(during).flat_map(|one| one.hosts.iter().copied())
    }

    /// Returns the same hosts with this table of job classes.
    #[must_use]
    pub fn with_classes(self, classes: Option<Arc<JobClasses>>) -> Machine {
        Machine { classes, ..self }
    }

    /// Returns the same hosts, whose jobs cost this in the usage of their users and groups.
    #[must_use]
    pub fn with_charge(self, charge: Option<Charge>) -> Machine {
        Machine { charge, ..self }
    }

    /// Returns what jobs cost in the usage; `None` if they cost as much as they have processors.
    pub fn charge(&self) -> Option<Charge> {
        self.charge
    }

    /// Returns the table of job classes, if the machine has one.
    pub fn classes(&self) -> Option<&Arc<JobClasses>> {
        self.classes.as_ref()
    }

    /// Returns the same hosts with these devices. Each job then runs on one host.
    #[must_use]
    pub fn with_devices(self, devices: Option<Arc<DeviceTable>>) -> Machine {
        let spread = if devices.is_some() { Spread::One } else { self.spread };
        Machine { spread, devices, ..self }
    }

    /// Returns the devices of the hosts, if there are any.
    pub fn devices(&self) -> Option<&DeviceTable> {
        self.devices.as_deref()
    }

    /// Returns the devices of a host that a job gets there, by the [rule](DeviceTable::fit) of the machine, with its rank
    /// among the hosts. Returns `None` if it does not fit.
    ///
    /// `room` is free when it starts, and `throughout` is the free amount of each cell that stays free for it. `free` is
    /// that when it starts.
    pub fn choose_devices(
        &self,
        host: HostId,
        demand: &Demand,
        room: &Resources,
        free: impl Fn(CellId) -> u64,
        throughout: impl Fn(CellId) -> u64,
    ) -> Option<(HostRank, Vec<HeldDevices>)> {
        let (cpus, memory) = (room.cpus_count(), room.get(Kind::Memory));
        let Some(table) = self.devices() else { return Some(((0, 0, cpus, memory, host), vec![])) };
        let choices = match demand.devices() {
            Some(devices) => table.choices(host, devices, throughout),
            None => vec![vec![]],
        };
        let ranked = choices.into_iter().map(|devices| {
            let (growth, idle) = table.rank(host, (room, &demand.amount()), &devices, &free);
            ((growth, idle, cpus, memory, host), devices)
        });
        ranked.min_by(|(one, here), (other, there)| {
            let cell = |devices: &[HeldDevices]| devices.first().map(|held| (free(held.cell), held.cell));
            one.cmp(other).then(cell(here).cmp(&cell(there)))
        })
    }

    /// Returns a placement on one host with these free resources and free amounts of cells, or `None` if the job does not
    /// fit. O(hosts).
    pub fn fit_with_devices(
        &self,
        rooms: &[Resources],
        free: impl Fn(CellId) -> u64,
        demand: &Demand,
    ) -> Option<Placement> {
        let placed = (0..).map(HostId).zip(rooms).filter_map(|(host, room)| {
            let whole = self.sharing == Sharing::Whole;
            let capacity = self.host(host).capacity;
            if !demand.amount().fits_in(room) || (whole && *room != capacity) {
                return None;
            }
            let (rank, devices) = self.choose_devices(host, demand, room, &free, &free)?;
            let amount = if whole { capacity } else { demand.amount() };
            Some((rank, Placement::on(host, amount).with_devices(devices)))
        });
        placed.min_by_key(|(rank, _)| *rank).map(|(_, placement)| placement)
    }

    /// Returns of each group whether the host is in it.
    pub fn groups_of(&self, host: HostId) -> Vec<bool> {
        self.groups.iter().map(|group| group.get(host.index()).copied().unwrap_or(false)).collect()
    }

    /// Returns whether a job may run on a host, by the group of its form. A group that the machine does not have has no hosts.
    pub fn permits(&self, group: Option<HostGroup>, host: HostId) -> bool {
        group.is_none_or(|group| {
            let group = self.groups.get(usize::from(group.0));
            group.is_some_and(|group| group.get(host.index()).copied().unwrap_or(false))
        })
    }

    /// Returns the same machine of one host with this capacity.
    #[must_use]
    pub(crate) fn with_capacity(mut self, capacity: Resources) -> Machine {
        self.total = capacity;
        self.hosts[0].capacity = capacity;
        self.capacities = vec![(capacity, 1)];
        self
    }

    /// Returns the hosts, in order.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns a host of the machine.
    ///
    /// # Panics
    /// If the machine has no such host.
    #[track_caller]
    pub fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.index()]
    }

    /// Returns the capacity of all hosts together.
    pub fn capacity(&self) -> Resources {
        self.total
    }

    /// Returns the number of hosts that a job may span.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// Returns whether jobs share hosts.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Returns whether the capacity varies over time.
    pub fn varies(&self) -> bool {
        self.calendar.as_ref().is_some_and(Calendar::varies)
    }

    /// Returns whether the machine is one host of constant capacity with processors only. A count
    /// then describes its free resources completely.
    pub fn is_plain(&self) -> bool {
        self.hosts.len() == 1
            && self.calendar.is_none()
            && self.sharing == Sharing::Shared
            && self.devices.is_none()
            && self.accounted == Resources::cpus(self.accounted.cpus_count())
    }

    /// Returns the amount of a request that this machine accounts, of all parts together.
    ///
    /// It is all of the [demand](Machine::demand) where each job runs on one host.
    pub fn amount(&self, request: &Request) -> Resources {
        match self.spread {
            Spread::One => request.demand.masked(&self.accounted),
            Spread::Any => self.demand(request).amount(),
        }
    }

    /// Returns the part of a request that this machine accounts. Where hosts are shared, a
    /// placement must hold exactly this amount, unless the job has its hosts to itself.
    ///
    /// Where a job may span several hosts, each of its parts has the same amount of all
    /// resources, rounded up. Otherwise a job could fit at one time and not fit at another time
    /// with more free resources. The [form](Request::form) is ignored on one host, and where a job
    /// runs on one host.
    pub fn demand(&self, request: &Request) -> Demand {
        let amount = request.demand.masked(&self.accounted);
        match (self.spread, &self.hosts[..]) {
            (Spread::One, _) => {
                Demand::from(amount).with_devices(request.devices.filter(|_| self.devices.is_some()))
            }
            (Spread::Any, [_]) => Demand::new(amount, Form::ANY),
            (Spread::Any, _) => Demand::new(amount, request.form),
        }
    }

    /// Returns whether the job could run on the idle machine. O(k) for k different hosts; O(hosts) for a job with a group.
    pub fn could_hold(&self, request: &Request) -> bool {
        let demand = self.demand(request);
        if let Some(table) = self.devices.as_ref().filter(|_| demand.devices().is_some()) {
            let rooms: Vec<Resources> = self.hosts.iter().map(|host| host.capacity).collect();
            return self.fit_with_devices(&rooms, |cell| table.cell(cell).most, &demand).is_some();
        }
        match self.spread {
            Spread::One => self.capacities.iter().any(|(capacity, _)| demand.amount().fits_in(capacity)),
            Spread::Any => {
                let counter = PartCounter::new(&demand);
                if demand.group().is_some() {
                    let permitted = (0..).map(HostId).zip(&self.hosts);
                    let permitted = permitted.filter(|(host, _)| self.permits(demand.group(), *host));
                    let parts = permitted.map(|(_, host)| counter.parts_in(&host.capacity, &host.capacity));
                    return parts.fold(0, u64::saturating_add) >= demand.parts();
                }
                let parts = |(capacity, hosts): &(Resources, u64)| {
                    counter.parts_in(capacity, capacity).saturating_mul(*hosts)
                };
                self.capacities.iter().map(parts).fold(0, u64::saturating_add) >= demand.parts()
            }
        }
    }
}

/// Returns the capacities without repetitions, each with its number.
fn distinct(mut capacities: Vec<Resources>) -> Vec<(Resources, u64)> {
    capacities.sort_unstable_by_key(|capacity| Kind::ALL.map(|kind| capacity.get(kind)));
    capacities.chunk_by(|one, other| one == other).map(|equal| (equal[0], equal.len() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, Time};

    fn dual(number: u32) -> Host {
        Host { name: format!("n{number}"), capacity: Resources::cpus(2).with(Kind::Memory, 100) }
    }

    #[test]
    fn what_could_run_on_an_idle_machine() {
        let one = Machine::new((0..3).map(dual).collect());
        let any = one.clone().with_spread(Spread::Any);
        let asks = |procs: u64, memory| {
            let demand = Resources::cpus(procs).with(Kind::Memory, memory);
            let request = Request::new(1, Time::ZERO, Span::TICK, demand);
            (one.could_hold(&request), any.could_hold(&request))
        };
        assert_eq!(asks(2, 100), (true, true));
        assert_eq!(asks(1, 101), (false, false));
        assert_eq!(asks(3, 3), (false, true));
        // 60 for each processor: one on a host.
        assert_eq!((asks(3, 180), asks(4, 240)), ((false, true), (false, false)));
        let in_form = |machine: &Machine, procs: u64, form| {
            let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(procs));
            machine.could_hold(&Request { form, ..request })
        };
        let apart = |parts| Form { apart: true, ..Form::parts(parts) };
        let fitting = [(6, Form::parts(3)), (4, Form::parts(1)), (3, apart(3)), (4, apart(2)), (4, apart(4))];
        assert_eq!(fitting.map(|(procs, form)| in_form(&any, procs, form)), [true, false, true, true, false]);
        assert!(
            in_form(&one, 2, apart(4)) && in_form(&Machine::plain(8).with_spread(Spread::Any), 8, apart(4))
        );
        assert!(!one.is_plain() && Machine::plain(3).is_plain());
    }
}
