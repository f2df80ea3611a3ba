//! The hosts where capacity was freed.

use miserly_core::{HostId, Placement, Time};

/// Hosts on which more may be free than before, each until a time; or any host, for any time.
///
/// A job without a possible placement on a host has none until the host is added here. The passage
/// of time alone creates none. A job that could start at some time could also start at the host's
/// last change before it.
#[derive(Clone, Debug, Default)]
pub struct FreedHosts {
    anywhere: bool,
    /// In the order of the hosts.
    hosts: Vec<(HostId, Time)>,
    until: Option<Time>,
}

impl FreedHosts {
    /// Returns the value for a first search: any host, for any time.
    pub fn all() -> FreedHosts {
        FreedHosts { anywhere: true, until: Some(Time::MAX), hosts: Vec::new() }
    }

    /// Adds the hosts of a placement.
    pub fn add(&mut self, placement: &Placement, until: Time) {
        for share in placement.shares() {
            self.add_host(share.host, until);
        }
    }

    /// Adds a host.
    pub fn add_host(&mut self, host: HostId, until: Time) {
        if self.anywhere {
            return;
        }
        self.until = self.until.max(Some(until));
        match self.hosts.binary_search_by_key(&host, |(host, _)| *host) {
            Ok(at) => self.hosts[at].1 = self.hosts[at].1.max(until),
            Err(at) => self.hosts.insert(at, (host, until)),
        }
    }

    /// Returns the hosts, in order, each with its time. Returns `None` if any host may be affected.
    pub fn hosts(&self) -> Option<&[(HostId, Time)]> {
        (!self.anywhere).then_some(&self.hosts)
    }

    /// Returns the latest of these times, or `None` without any host.
    pub fn until(&self) -> Option<Time> {
        self.until
    }

    /// Returns whether there is no such host.
    pub fn is_nowhere(&self) -> bool {
        self.until.is_none()
    }
}
