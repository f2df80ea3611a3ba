//! The machine: a list of hosts, and how jobs lie on them.

use crate::{Calendar, Procs, Request, Resources};

/// A host's position in its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

impl HostId {
    /// The position as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One host and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name that people know it by.
    pub name: String,
    /// What it has in all. A kind of which it has none is a kind that it does not account, if no other host has any.
    pub capacity: Resources,
}

/// Over how many hosts a job may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// One: a job that fits on none of them alone does not run (Chiang and Vernon §2).
    #[default]
    One,
    /// Any number: each processor takes its part of the job's other resources along.
    Any,
}

/// Whether jobs share hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// They do: a job holds what it asked for.
    #[default]
    Shared,
    /// A job has its hosts to itself, and so holds all that they have.
    Whole,
}

/// A machine: its hosts, in the order in which the administrator named them, and how jobs lie on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    hosts: Vec<Host>,
    /// What all hosts have together.
    total: Resources,
    /// What they had at first: a kind of which some had any stays accounted when it is lost.
    accounted: Resources,
    spread: Spread,
    sharing: Sharing,
    calendar: Option<Calendar>,
}

impl Machine {
    /// The papers' plain machine: one host with `procs` identical processors, nothing else accounted.
    pub fn plain(procs: impl Into<Procs>) -> Machine {
        Machine::new(vec![Host { name: "machine".into(), capacity: Resources::cpus(procs) }])
    }

    /// A machine of these hosts, which jobs share, each job on one of them.
    pub fn new(hosts: Vec<Host>) -> Machine {
        let total = hosts.iter().fold(Resources::NONE, |sum, host| sum.plus(&host.capacity));
        let (spread, sharing) = (Spread::One, Sharing::Shared);
        Machine { hosts, total, accounted: total, spread, sharing, calendar: None }
    }

    /// One host of which a pool has so much, over time. What it has at most is the capacity of the host.
    pub fn pool(name: String, calendar: Calendar) -> Machine {
        let machine = Machine::new(vec![Host { name, capacity: calendar.most() }]);
        Machine { calendar: Some(calendar), ..machine }
    }

    /// How much of its one host it has, over time; `None` if that is always all.
    pub fn calendar(&self) -> Option<&Calendar> {
        self.calendar.as_ref()
    }

    /// The same hosts, with jobs over so many of them.
    #[must_use]
    pub fn with_spread(self, spread: Spread) -> Machine {
        Machine { spread, ..self }
    }

    /// The same hosts, shared by jobs or not.
    #[must_use]
    pub fn with_sharing(self, sharing: Sharing) -> Machine {
        Machine { sharing, ..self }
    }

    /// The same machine of one host, which now has so much.
    #[must_use]
    pub(crate) fn with_capacity(mut self, capacity: Resources) -> Machine {
        self.total = capacity;
        self.hosts[0].capacity = capacity;
        self
    }

    /// The hosts, in order.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// What a host has in all.
    ///
    /// # Panics
    /// If the machine has no such host.
    #[track_caller]
    pub fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.index()]
    }

    /// What all hosts have together.
    pub fn capacity(&self) -> Resources {
        self.total
    }

    /// Over how many hosts a job may lie.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// Whether jobs share hosts.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Whether what it has varies over time.
    pub fn varies(&self) -> bool {
        self.calendar.as_ref().is_some_and(Calendar::varies)
    }

    /// Whether it is one host of processors and nothing else, at all times: then a count says all there is to say of
    /// what is free.
    pub fn is_plain(&self) -> bool {
        self.hosts.len() == 1
            && self.calendar.is_none()
            && self.sharing == Sharing::Shared
            && self.accounted == Resources::cpus(self.accounted.cpus_count())
    }

    /// The part of a request that this machine accounts: what a placement of it has to hold, where hosts are shared.
    ///
    /// Where a job may lie on several hosts each processor takes along the same part of all else, rounded up: otherwise
    /// there could be room for it at one time and, with more free, none at another.
    pub fn demand(&self, request: &Request) -> Resources {
        let demand = request.demand.masked(&self.accounted);
        match self.spread {
            Spread::One => demand,
            Spread::Any => demand.in_equal_parts(),
        }
    }

    /// Whether the job could run if nobody else were here. O(hosts).
    pub fn could_hold(&self, request: &Request) -> bool {
        let demand = self.demand(request);
        match self.spread {
            Spread::One => self.hosts.iter().any(|host| demand.fits_in(&host.capacity)),
            Spread::Any => {
                let parts = self.hosts.iter().map(|host| host.capacity.parts(&demand));
                parts.fold(Procs::ZERO, Procs::saturating_add) >= demand.cpus_count()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Span, Time};

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
        // Sixty for each processor: one on a host.
        assert_eq!((asks(3, 180), asks(4, 240)), ((false, true), (false, false)));
        assert!(!one.is_plain() && Machine::plain(3).is_plain());
    }
}
