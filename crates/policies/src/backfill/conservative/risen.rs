//! Where compression has to look.

use miserly_core::Time;

use crate::shared::Profile;

/// Where the free count has risen: nowhere from `until` on, and nowhere above `highest`.
///
/// A job that could not move before can move now only to a hole that is no higher and starts no later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Risen {
    pub(super) until: Time,
    pub(super) highest: u32,
}

impl Risen {
    pub(super) const NOWHERE: Risen = Risen { until: Time::from_ticks(i64::MIN), highest: 0 };
    pub(super) const ANYWHERE: Risen = Risen { until: Time::MAX, highest: u32::MAX };

    /// Adds that it may have risen in `from..until` of the profile as it is now.
    pub(super) fn add(&mut self, profile: &Profile, from: Time, until: Time) {
        if from < until {
            self.highest = self.highest.max(profile.most_within(from, until));
            self.until = self.until.max(until);
        }
    }
}
