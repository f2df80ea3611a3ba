//! The time of processors or GPUs in windows that have ended.
//!
//! A window counts on the day on which it ends. A day is 24 hours of the engine's time, which no setting of the clock moves.
//! For each user and each table there is a number for each day of the longest period, so memory is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miserly_core::Time;

use super::{CpuHours, Scope};
use crate::journal::to_json;
use crate::{Journal, JournalError};

/// A day, in ticks.
const DAY: i64 = 86_400_000_000;

/// The stored values in which users are, by their numbers.
const BLOCKS: u32 = 64;

/// The name of the stored time of processors, and that of GPUs.
const CPUS: &str = "used-time";
const GPUS: &str = "used-gpu-time";

/// The ticks of each day that has any.
type Days = BTreeMap<i64, i64>;

/// The time of processors or GPUs in windows that have ended, by user and by table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsedTime {
    /// The name of its stored values.
    name: &'static str,
    /// Shared with snapshots.
    of: Arc<BTreeMap<Scope, Arc<Days>>>,
    /// The keys of values that differ from the stored ones.
    changed: BTreeSet<String>,
}

impl UsedTime {
    /// Returns no time of processors.
    pub(crate) fn of_cpus() -> UsedTime {
        UsedTime { name: CPUS, of: Arc::default(), changed: BTreeSet::new() }
    }

    /// Returns no time of GPUs.
    pub(crate) fn of_gpus() -> UsedTime {
        UsedTime { name: GPUS, ..UsedTime::of_cpus() }
    }

    /// Returns the stored times of the same kind.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub(crate) fn load(&self, journal: &impl Journal) -> Result<UsedTime, JournalError> {
        let mut of = BTreeMap::new();
        let tables = self.tables();
        for key in (0..BLOCKS).map(|number| self.block(number)).chain([tables.clone()]) {
            let Some(text) = journal.value(&key)? else { continue };
            let stored: BTreeMap<String, Vec<(i64, i64)>> = serde_json::from_str(&text).unwrap_or_default();
            let scope = |name: String| {
                if key == tables {
                    Some(Scope::Table(name.into()))
                } else {
                    name.parse().ok().map(Scope::User)
                }
            };
            let days = |days: Vec<(i64, i64)>| Arc::new(days.into_iter().collect());
            of.extend(stored.into_iter().filter_map(|(name, of)| Some((scope(name)?, days(of)))));
        }
        Ok(UsedTime { name: self.name, of: Arc::new(of), changed: BTreeSet::new() })
    }

    /// Counts a window that ended, and forgets the days before a period.
    pub(crate) fn add(&mut self, scope: Scope, at: Time, work: u128, period: u32) {
        let ticks = i64::try_from(work).unwrap_or(i64::MAX);
        if ticks == 0 {
            return;
        }
        self.changed.insert(self.key(&scope));
        let days = Arc::make_mut(&mut self.of).entry(scope).or_default();
        let days = Arc::make_mut(days);
        let count = days.entry(day(at)).or_default();
        *count = count.saturating_add(ticks);
        *days = days.split_off(&first_day(at, period));
    }

    /// Returns the ticks that count within the period of a limit.
    pub(crate) fn within(&self, scope: &Scope, limit: CpuHours, at: Time) -> i64 {
        let days = self.of.get(scope).into_iter().flat_map(|days| days.range(first_day(at, limit.days)..));
        days.fold(0, |sum: i64, (_, ticks)| sum.saturating_add(*ticks))
    }

    /// Returns the instant from which the earliest counted day does not count any more.
    pub(crate) fn next_less(&self, scope: &Scope, limit: CpuHours, at: Time) -> Option<Time> {
        let (day, _) = self.of.get(scope)?.range(first_day(at, limit.days)..).next()?;
        Some(Time::from_ticks((day + i64::from(limit.days)).saturating_mul(DAY)))
    }

    /// Takes the changed values, as the journal stores them.
    ///
    /// # Errors
    /// If they have no JSON.
    pub(crate) fn take_changed(&mut self) -> Result<Vec<(String, String)>, JournalError> {
        let mut entries = vec![];
        for changed in std::mem::take(&mut self.changed) {
            let stored = self.of.iter().filter(|(scope, _)| self.key(scope) == changed);
            let stored: BTreeMap<String, Vec<(i64, i64)>> =
                stored.map(|(scope, days)| (name(scope), pairs(days))).collect();
            entries.push((changed, to_json(&stored)?));
        }
        Ok(entries)
    }

    fn block(&self, number: u32) -> String {
        format!("{}/{number}", self.name)
    }

    /// Returns the key of the stored value in which tables are.
    fn tables(&self) -> String {
        format!("{}/tables", self.name)
    }

    /// Returns the key of the stored value with a user or a table.
    fn key(&self, scope: &Scope) -> String {
        match scope {
            Scope::User(uid) => self.block(uid % BLOCKS),
            Scope::Table(_) | Scope::Array(_) => self.tables(),
        }
    }
}

fn pairs(days: &Days) -> Vec<(i64, i64)> {
    days.iter().map(|(day, ticks)| (*day, *ticks)).collect()
}

fn day(at: Time) -> i64 {
    at.ticks().div_euclid(DAY)
}

/// Returns the first day that counts within a period: today is its last one.
fn first_day(at: Time, period: u32) -> i64 {
    day(at) - i64::from(period) + 1
}

fn name(scope: &Scope) -> String {
    match scope {
        Scope::User(uid) => uid.to_string(),
        Scope::Table(name) => name.to_string(),
        Scope::Array(first) => first.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(day: i64) -> Time {
        Time::from_ticks(day * DAY + 5)
    }

    fn limit(days: u32) -> CpuHours {
        CpuHours { most: 0, days }
    }

    #[test]
    fn a_window_counts_from_the_day_of_its_end_for_the_period() {
        let (mut times, user) = (UsedTime::of_cpus(), Scope::User(7));
        for (day, work) in [(10, 1), (10, 2), (11, 4), (20, 8)] {
            times.add(user.clone(), on(day), work, 30);
        }
        let within = |days, day| times.within(&user, limit(days), on(day));
        assert_eq!([20, 39, 40, 41, 49, 50].map(|day| within(30, day)), [15, 15, 12, 8, 8, 0]);
        assert_eq!([1, 10, 11].map(|days| within(days, 20)), [8, 12, 15]);
        assert_eq!(times.next_less(&user, limit(30), on(20)), Some(Time::from_ticks(40 * DAY)));
        assert_eq!(times.within(&Scope::User(8), limit(30), on(20)), 0);
    }

    #[test]
    fn memory_is_bounded_by_the_period() {
        let (mut times, table) = (UsedTime::of_cpus(), Scope::Table("lab".into()));
        for day in 0..1000 {
            times.add(table.clone(), on(day), 1, 30);
        }
        assert_eq!(times.of[&table].len(), 30);
        assert_eq!(times.within(&table, limit(366), on(999)), 30);
    }
}
