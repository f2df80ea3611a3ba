//! The counts of executing jobs, and the limits on them.

use std::collections::BTreeMap;

use miserly_core::{HostId, JobClass, JobClasses, Placement};

/// The counts of executing jobs, by limit. A job counts until its end event.
#[derive(Debug)]
pub(super) struct Executing {
    /// The limit for each user. A job of an unknown user has no such limit.
    user_limit: Option<u32>,
    by_host: Vec<Vec<u32>>,
    by_length: Vec<u32>,
    /// Contains only users with executing jobs.
    by_user: BTreeMap<u32, u32>,
}

impl Executing {
    /// Returns zero counts of these classes.
    pub(super) fn nobody(user_limit: Option<u32>, classes: &JobClasses, hosts: usize) -> Executing {
        Executing {
            user_limit,
            by_host: vec![vec![0; classes.sizes.len()]; hosts],
            by_length: vec![0; classes.lengths.len()],
            by_user: BTreeMap::new(),
        }
    }

    /// Resets all counts.
    pub(super) fn clear(&mut self) {
        self.by_host.iter_mut().for_each(|host| host.fill(0));
        self.by_length.fill(0);
        self.by_user.clear();
    }

    /// Counts a job that starts.
    pub(super) fn started(&mut self, on: &Placement, class: JobClass, user: Option<u32>) {
        for share in on.shares() {
            self.by_host[share.host.index()][class.size] += 1;
        }
        self.by_length[class.length] += 1;
        if let Some(user) = user {
            *self.by_user.entry(user).or_insert(0) += 1;
        }
    }

    /// Removes a counted job.
    pub(super) fn ended(&mut self, on: &Placement, class: JobClass, user: Option<u32>) {
        for share in on.shares() {
            self.by_host[share.host.index()][class.size] -= 1;
        }
        self.by_length[class.length] -= 1;
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
    pub(super) fn on(&self, host: HostId, size: usize) -> u32 {
        self.by_host[host.index()][size]
    }

    /// Returns whether another job of this length may execute.
    pub(super) fn admits_length(&self, classes: &JobClasses, length: usize) -> bool {
        classes.lengths[length].most.is_none_or(|most| self.by_length[length] < most)
    }

    /// Returns whether another job of this user may execute.
    pub(super) fn admits_user(&self, user: Option<u32>) -> bool {
        let (Some(most), Some(user)) = (self.user_limit, user) else { return true };
        self.by_user.get(&user).is_none_or(|count| *count < most)
    }
}
