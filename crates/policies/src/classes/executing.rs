//! The counts of executing jobs, and the limits on them.

use std::collections::BTreeMap;

use miserly_classes::lsf::{Class, Length, Size};
use miserly_core::{HostId, Placement};

/// The numbers of jobs that may execute at a time on all hosts together. `None`: any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The limit for each user. A job of an unknown user has no such limit.
    pub user: Option<u32>,
    /// The limit for length `mt`.
    pub medium: Option<u32>,
    /// The limit for length `lt`.
    pub long: Option<u32>,
}

/// The counts of executing jobs, by limit. A job counts until its end event.
#[derive(Debug)]
pub(super) struct Executing {
    limits: Limits,
    by_host: Vec<[u32; Size::ALL.len()]>,
    by_length: [u32; Length::ALL.len()],
    /// Contains only users with executing jobs.
    by_user: BTreeMap<u32, u32>,
}

impl Executing {
    /// Returns zero counts under these limits.
    pub(super) fn nobody(limits: Limits, hosts: usize) -> Executing {
        let none = [0; Size::ALL.len()];
        Executing {
            limits,
            by_host: vec![none; hosts],
            by_length: [0; Length::ALL.len()],
            by_user: BTreeMap::new(),
        }
    }

    /// Resets all counts.
    pub(super) fn clear(&mut self) {
        *self = Executing::nobody(self.limits, self.by_host.len());
    }

    /// Counts a job that starts.
    pub(super) fn started(&mut self, on: &Placement, class: Class, user: Option<u32>) {
        for share in on.shares() {
            self.by_host[share.host.index()][class.size as usize] += 1;
        }
        self.by_length[class.length as usize] += 1;
        if let Some(user) = user {
            *self.by_user.entry(user).or_insert(0) += 1;
        }
    }

    /// Removes a counted job.
    pub(super) fn ended(&mut self, on: &Placement, class: Class, user: Option<u32>) {
        for share in on.shares() {
            self.by_host[share.host.index()][class.size as usize] -= 1;
        }
        self.by_length[class.length as usize] -= 1;
        if let Some(user) = user
            && let Some(count) = self.by_user.get_mut(&user)
        {
            *count -= 1;
            if *count == 0 {
                self.by_user.remove(&user);
            }
        }
    }

    /// Returns the number of jobs of a size on a host.
    pub(super) fn on(&self, host: HostId, size: Size) -> u32 {
        self.by_host[host.index()][size as usize]
    }

    /// Returns whether another job of this length may execute.
    pub(super) fn admits_length(&self, length: Length) -> bool {
        let limit = match length {
            Length::VeryShort | Length::Short => None,
            Length::Medium => self.limits.medium,
            Length::Long => self.limits.long,
        };
        limit.is_none_or(|most| self.by_length[length as usize] < most)
    }

    /// Returns whether another job of this user may execute.
    pub(super) fn admits_user(&self, user: Option<u32>) -> bool {
        let (Some(most), Some(user)) = (self.limits.user, user) else { return true };
        self.by_user.get(&user).is_none_or(|count| *count < most)
    }
}
