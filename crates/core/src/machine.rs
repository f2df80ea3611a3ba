//! The machine: a list of hosts.

use crate::{Request, Resources};

/// A host's position in its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// One host and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name that people know it by.
    pub name: String,
    /// What it has in all. A kind of which it has none is a kind that it does not account.
    pub capacity: Resources,
}

/// A machine: its hosts, in the order in which the administrator named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    hosts: Vec<Host>,
    accounted: Resources,
}

impl Machine {
    /// The papers' plain machine: one host with `procs` identical processors, nothing else accounted.
    pub fn plain(procs: u64) -> Machine {
        Machine::of(vec![Host { name: "machine".into(), capacity: Resources::cpus(procs) }])
    }

    /// A machine of these hosts.
    pub fn of(hosts: Vec<Host>) -> Machine {
        let accounted = hosts.iter().fold(Resources::NONE, |sum, host| sum.plus(&host.capacity));
        Machine { hosts, accounted }
    }

    /// The hosts, in order.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// What all hosts have together.
    pub fn capacity(&self) -> Resources {
        self.accounted
    }

    /// The part of a request that this machine accounts: what a placement of it has to hold.
    pub fn demand(&self, request: &Request) -> Resources {
        request.demand.masked(&self.accounted)
    }
}
