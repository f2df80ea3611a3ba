//! Users and groups by number and name, from the system's databases: files, LDAP, or others.
//!
//! A lookup may wait for a server on the network.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use miserly_engine::{Account, AccountName, Caller, Group};
use nix::unistd::{self, Gid, Uid};

/// The time for which a name is remembered for display.
const REMEMBERED: Duration = Duration::from_mins(1);

/// Names that were looked up for display, by number, and when. No permission depends on them.
type Names = LazyLock<Mutex<BTreeMap<u32, (Instant, String)>>>;

/// The names of users.
static USERS: Names = LazyLock::new(Mutex::default);

/// The names of groups.
static GROUPS: Names = LazyLock::new(Mutex::default);

/// Returns the user's name for display, or the number if it has none.
pub(crate) fn name(uid: u32) -> String {
    remembered(&USERS, uid, || Some(unistd::User::from_uid(Uid::from_raw(uid)).ok().flatten()?.name))
}

/// Returns the group's name for display, or the number if it has none.
pub(crate) fn group_name(gid: u32) -> String {
    remembered(&GROUPS, gid, || Some(unistd::Group::from_gid(Gid::from_raw(gid)).ok().flatten()?.name))
}

#[allow(clippy::disallowed_methods, reason = "the age of a name has no effect on jobs")]
fn remembered(names: &Names, number: u32, find: impl FnOnce() -> Option<String>) -> String {
    let now = Instant::now();
    let known = |names: &BTreeMap<u32, (Instant, String)>| {
        let (at, name) = names.get(&number)?;
        (now.duration_since(*at) < REMEMBERED).then(|| name.clone())
    };
    if let Some(name) = known(&names.lock().unwrap_or_else(PoisonError::into_inner)) {
        return name;
    }
    let name = find().unwrap_or_else(|| number.to_string());
    names.lock().unwrap_or_else(PoisonError::into_inner).insert(number, (now, name.clone()));
    name
}

/// Returns a caller with the account that the user has now.
///
/// # Errors
/// If the databases do not answer.
pub(crate) fn caller(uid: u32) -> io::Result<Caller> {
    let Some(user) = unistd::User::from_uid(Uid::from_raw(uid))? else { return Ok(Caller::new(uid)) };
    let name = CString::new(user.name.as_str())?;
    let group = |gid: Gid| {
        let name = unistd::Group::from_gid(gid).ok().flatten().map(|group| group.name);
        Group { number: gid.as_raw(), name }
    };
    let groups = unistd::getgrouplist(&name, user.gid)?.into_iter().map(group).collect();
    Ok(Caller { account: Some(Arc::new(Account { name: user.name, groups })), ..Caller::new(uid) })
}

/// Returns whether the system knows a user now. A number needs no entry.
pub(crate) fn is_user(user: &AccountName) -> bool {
    match user {
        AccountName::Number(_) => true,
        AccountName::Name(name) => unistd::User::from_name(name).is_ok_and(|user| user.is_some()),
    }
}

/// Returns whether the system knows a group now.
pub(crate) fn is_group(group: &AccountName) -> bool {
    let found = match group {
        AccountName::Number(number) => unistd::Group::from_gid(Gid::from_raw(*number)),
        AccountName::Name(name) => unistd::Group::from_name(name),
    };
    found.is_ok_and(|group| group.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_an_account_and_a_group() {
        let root = caller(0).unwrap().account.expect("root has an entry");
        assert_eq!((root.name.as_str(), name(0).as_str()), ("root", "root"));
        assert!(root.groups.iter().any(|group| group.number == 0 && group.name.as_deref() == Some("root")));
    }

    #[test]
    fn a_number_without_an_entry_has_no_account() {
        let strange = 3_999_999_999;
        assert_eq!(caller(strange).unwrap(), Caller::new(strange));
        assert_eq!(name(strange), strange.to_string());
        assert!(!is_group(&AccountName::Name("no such group".into())));
        assert!(
            !is_user(&AccountName::Name("no such user".into())) && is_user(&AccountName::Number(strange))
        );
    }
}
