//! The most mails for the jobs of one user in an hour.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use miserly_launch::BootTime;

/// The time in which the mails are counted.
const HOUR: Duration = Duration::from_hours(1);

/// The recent mails for the jobs of each user.
#[derive(Debug)]
pub(super) struct MailRate {
    most: u32,
    /// The instants of the mails of an hour, by user.
    sent: BTreeMap<u32, VecDeque<BootTime>>,
}

/// Whether a mail may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// It may.
    Yes,
    /// It may, and it is the last one for a while.
    Last,
    /// It may not: the user had as many in an hour.
    No,
}

impl MailRate {
    pub(super) fn new(most: u32) -> MailRate {
        MailRate { most, sent: BTreeMap::new() }
    }

    /// Counts a mail for a job of a user.
    pub(super) fn count(&mut self, uid: u32, now: BootTime) -> Permit {
        let sent = self.sent.entry(uid).or_default();
        while sent.front().is_some_and(|at| at.after(HOUR) <= now) {
            sent.pop_front();
        }
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        if sent.len() >= most {
            return Permit::No;
        }
        sent.push_back(now);
        if sent.len() == most { Permit::Last } else { Permit::Yes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_mails_in_an_hour_and_others_have_their_own() {
        use Permit::{Last, No, Yes};
        let mut rate = MailRate::new(2);
        let at = |minute: i64| BootTime(minute * 60_000_000);
        let counted = [(1, 0), (1, 10), (1, 20), (2, 20), (1, 59), (1, 60), (1, 61), (1, 70)];
        let permits = counted.map(|(uid, minute)| rate.count(uid, at(minute)));
        assert_eq!(permits, [Yes, Last, No, Yes, No, Last, No, Last]);
        assert_eq!(MailRate::new(0).count(1, at(0)), No);
    }
}
