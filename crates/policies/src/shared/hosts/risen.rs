//! Where more has become free since somebody looked.

use miserly_core::{HostId, Placement, Time};

/// Hosts on which more may be free than before, each until when; or any host, for ever.
///
/// Who found no room somewhere has none there until the host is among them: nothing but a rise makes room. That time goes by
/// does not, since whoever could start at some time could as well start when the hosts last changed before it.
#[derive(Clone, Debug, Default)]
pub struct Risen {
    anywhere: bool,
    /// In the order of the hosts.
    hosts: Vec<(HostId, Time)>,
    until: Option<Time>,
}

impl Risen {
    /// Nobody has looked yet.
    pub fn anywhere() -> Risen {
        Risen { anywhere: true, until: Some(Time::MAX), hosts: Vec::new() }
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

    /// The hosts, in order, and until when; `None` if it may be any.
    pub fn hosts(&self) -> Option<&[(HostId, Time)]> {
        (!self.anywhere).then_some(&self.hosts)
    }

    /// Until when there is more, wherever; `None` if there is not.
    pub fn until(&self) -> Option<Time> {
        self.until
    }

    /// Whether there is no more anywhere.
    pub fn is_nowhere(&self) -> bool {
        self.until.is_none()
    }
}
