//! Users and groups by number and name, from the machine's files.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{LazyLock, Mutex};

/// The names that were looked up. A machine has few users, and they keep their names.
static NAMES: LazyLock<Mutex<BTreeMap<u32, String>>> = LazyLock::new(Mutex::default);

/// Returns the user's name, or the number if it has none.
pub(crate) fn name(uid: u32) -> String {
    let look_up = || AccountFiles::read().name(uid).unwrap_or_else(|| uid.to_string());
    let Ok(mut names) = NAMES.lock() else { return look_up() };
    names.entry(uid).or_insert_with(look_up).clone()
}

/// The content of the machine's files of users and groups. An unreadable file counts as empty.
pub(crate) struct AccountFiles {
    passwd: String,
    group: String,
}

impl AccountFiles {
    pub(crate) fn read() -> AccountFiles {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        AccountFiles { passwd: read("/etc/passwd"), group: read("/etc/group") }
    }

    fn name(&self, uid: u32) -> Option<String> {
        let user = self.users().find(|user| user.number == Some(uid))?;
        Some(user.name.to_owned())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.users().find(|user| user.name == name)?.number
    }

    /// Returns the members of the group that `is_it` accepts by name and number. These are the
    /// users in its list, and the users with it as their first group.
    pub(crate) fn members(&self, is_it: impl Fn(&str, &str) -> bool) -> Option<Vec<u32>> {
        let (number, named) = self.group.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
            is_it(name, number).then(|| (number, fields.next().unwrap_or_default()))
        })?;
        let first = self.users().filter(|user| user.group == number).filter_map(|user| user.number);
        Some(named.split(',').filter_map(|name| self.number(name)).chain(first).collect())
    }

    fn users(&self) -> impl Iterator<Item = User<'_>> {
        self.passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
            Some(User { name, number: number.parse().ok(), group: fields.next()? })
        })
    }
}

/// A line of the file of users.
struct User<'a> {
    name: &'a str,
    number: Option<u32>,
    /// The number of the first group.
    group: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_or_have_it_first() {
        let files = AccountFiles {
            passwd: "root:x:0:0::/:\nann:x:1001:50::/:\nbob:x:1002:60::/:\neve:x:1003:50::/:\nodd\n".into(),
            group: "lab:x:50:bob\nempty:x:70:\n".into(),
        };
        let named = |group: &str| files.members(|name, _| name == group);
        assert_eq!(named("lab"), Some(vec![1002, 1001, 1003]));
        assert_eq!(files.members(|_, number| number == "50"), named("lab"));
        assert_eq!([named("empty"), named("nobody")], [Some(vec![]), None]);
        assert_eq!(["bob", "zoe", "odd"].map(|name| files.number(name)), [Some(1002), None, None]);
        assert_eq!([1003, 7].map(|uid| files.name(uid)), [Some("eve".to_owned()), None]);
    }
}
