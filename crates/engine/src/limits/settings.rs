//! The limits as they are configured, and which of them apply to a job.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Caller, QueueUsers, Record};

/// The limits of a user, or of several users together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Limits {
    /// The number of unfinished jobs.
    pub jobs: Option<u64>,
    /// The size of their commands, scripts and environments, in bytes.
    pub bytes: Option<u64>,
    /// Their processors times their time limits, in processor-ticks.
    pub cpu_time: Option<i64>,
    /// The number of those that do not run in their windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// The number of jobs in ledgers: those that run, and those with a promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u64>,
    /// The processors of the jobs in ledgers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// The processor time within a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_hours: Option<CpuHours>,
    /// The GPUs of the jobs in ledgers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// The time of GPUs within a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<CpuHours>,
}

/// The time of processors or GPUs that windows may use within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct CpuHours {
    /// The most of it, in ticks of one processor or GPU.
    pub most: i64,
    /// The period, in days.
    pub days: u32,
}

impl CpuHours {
    /// The longest period, in days.
    pub const MOST_DAYS: u32 = 366;
}

/// The limits of some users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LimitTable {
    /// The name, which no other table has.
    pub name: Arc<str>,
    /// The users, and the groups whose members are limited.
    pub users: QueueUsers,
    /// Whether the limits are for all of them together, in place of each of them.
    #[serde(default)]
    pub together: bool,
    /// The limits.
    pub limits: Limits,
}

/// The limits of all users. Root has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct UserLimits {
    /// The limits of each user, where no table sets another one.
    #[serde(flatten)]
    pub each: Limits,
    /// The limits of some users, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<LimitTable>,
}

/// The jobs that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The jobs of a user.
    User(u32),
    /// The jobs whose users a table named at their submission.
    Table(Arc<str>),
    /// The jobs of an array, by the number of the first one.
    Array(i64),
}

/// One limit that applies to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound<T> {
    /// The name of its table.
    pub(crate) table: Arc<str>,
    /// The jobs that it counts.
    pub(crate) scope: Scope,
    /// The limit.
    pub(crate) most: T,
}

impl UserLimits {
    /// The name of the limits of each user.
    pub const DEFAULT: &str = "user-limits";

    /// Returns the names of the tables for a user. Those of root are none.
    pub(crate) fn tables_of(&self, caller: &Caller) -> Vec<Arc<str>> {
        let limited = self.tables.iter().filter(|table| caller.uid != 0 && table.users.admits(caller));
        limited.map(|table| Arc::clone(&table.name)).collect()
    }

    /// Returns the limits of one kind for a user with these tables.
    ///
    /// Of the tables for each user, the first one that has the limit takes the place of the default. All tables for users
    /// together apply.
    pub(crate) fn bounds<T>(
        &self,
        uid: u32,
        names: &[Arc<str>],
        kind: impl Fn(&Limits) -> Option<T>,
    ) -> Vec<Bound<T>> {
        if uid == 0 {
            return vec![];
        }
        let applies = |table: &&LimitTable| names.contains(&table.name);
        let bound = |table: &LimitTable, scope| {
            kind(&table.limits).map(|most| Bound { table: Arc::clone(&table.name), scope, most })
        };
        let mut each = self.tables.iter().filter(applies).filter(|table| !table.together);
        let own = each.find_map(|table| bound(table, Scope::User(uid))).or_else(|| {
            let most = kind(&self.each)?;
            Some(Bound { table: UserLimits::DEFAULT.into(), scope: Scope::User(uid), most })
        });
        let together = self.tables.iter().filter(applies).filter(|table| table.together);
        let all = together.filter_map(|table| bound(table, Scope::Table(Arc::clone(&table.name))));
        own.into_iter().chain(all).collect()
    }

    /// Returns the limits of one kind for the jobs like this one.
    pub(crate) fn bounds_of<T>(&self, record: &Record, kind: impl Fn(&Limits) -> Option<T>) -> Vec<Bound<T>> {
        self.bounds(record.uid, &record.limits, kind)
    }

    /// Returns whether any table has a limit of one kind.
    pub(crate) fn any<T>(&self, kind: impl Fn(&Limits) -> Option<T>) -> bool {
        let all = std::iter::once(&self.each).chain(self.tables.iter().map(|table| &table.limits));
        all.into_iter().any(|limits| kind(limits).is_some())
    }

    /// Returns the longest period of limits of a kind, in days.
    pub(crate) fn longest_period(&self, kind: impl Fn(&Limits) -> Option<CpuHours>) -> Option<u32> {
        let all = std::iter::once(&self.each).chain(self.tables.iter().map(|table| &table.limits));
        all.filter_map(kind).map(|of| of.days).max()
    }
}

impl Record {
    /// Returns the scopes in which the job counts, beside that of its array.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = Scope> + '_ {
        let tables = self.limits.iter().map(|name| Scope::Table(Arc::clone(name)));
        std::iter::once(Scope::User(self.uid)).chain(tables)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::AccountName;

    fn table(name: &str, uid: u32, together: bool, limits: Limits) -> LimitTable {
        let users = QueueUsers { users: [AccountName::Number(uid)].into(), groups: BTreeSet::new() };
        LimitTable { name: name.into(), users, together, limits }
    }

    fn jobs(jobs: u64) -> Limits {
        Limits { jobs: Some(jobs), ..Limits::default() }
    }

    #[test]
    fn a_table_for_each_user_takes_the_place_of_the_default_and_tables_together_add_up() {
        let limits = UserLimits {
            each: Limits { queued: Some(9), ..jobs(1) },
            tables: vec![
                table("none", 5, false, Limits::default()),
                table("first", 5, false, jobs(2)),
                table("second", 5, false, jobs(3)),
                table("all", 5, true, jobs(4)),
                table("more", 5, true, jobs(5)),
            ],
        };
        let bounds = |uid: u32, kind: fn(&Limits) -> Option<u64>| {
            let bounds = limits.bounds(uid, &limits.tables_of(&Caller::new(uid)), kind);
            let bounds = bounds.into_iter().map(|of| (of.table.to_string(), of.scope, of.most));
            bounds.collect::<Vec<_>>()
        };
        let own = |name: &str, uid: u32, most: u64| (name.to_owned(), Scope::User(uid), most);
        let all = |name: &str, most: u64| (name.to_owned(), Scope::Table(name.into()), most);
        assert_eq!(bounds(5, |of| of.jobs), [own("first", 5, 2), all("all", 4), all("more", 5)]);
        assert_eq!(bounds(5, |of| of.queued), [own("user-limits", 5, 9)]);
        assert_eq!(bounds(6, |of| of.jobs), [own("user-limits", 6, 1)]);
        assert_eq!(bounds(6, |of| of.bytes), []);
        assert_eq!(bounds(0, |of| of.jobs), [], "root has no limits");
    }

    #[test]
    fn limits_of_an_earlier_version_are_read() {
        let stored = r#"{"jobs":3,"bytes":null,"cpu_time":7}"#;
        let limits: UserLimits = serde_json::from_str(stored).unwrap();
        let each = Limits { cpu_time: Some(7), ..jobs(3) };
        assert_eq!(limits, UserLimits { each, tables: vec![] });
        assert_eq!(serde_json::to_string(&limits).unwrap(), stored, "without new limits it is the same");
    }
}
