//! The accounts that may use a queue, as the file names them.

use std::collections::BTreeSet;

use miserly_engine::{AccountName, QueueUsers};
use miserly_machine_file::file::{Account, QueueFile};
use toml::Spanned;

use super::file::OperatorsFile;
use crate::users::{is_group, is_user};

/// Returns the users of a queue; `None` if the file names none, so every user may use it.
pub(super) fn users(queue: &QueueFile) -> Option<QueueUsers> {
    let restricted = !queue.users.is_empty() || !queue.groups.is_empty();
    restricted.then(|| list(&queue.users, &queue.groups))
}

/// Returns the operators.
pub(super) fn operators(written: &OperatorsFile) -> QueueUsers {
    list(&written.users, &written.groups)
}

/// Returns a list of users and groups.
pub(super) fn list(users: &[Spanned<Account>], groups: &[Spanned<Account>]) -> QueueUsers {
    QueueUsers { users: names(users), groups: names(groups) }
}

fn names(written: &[Spanned<Account>]) -> BTreeSet<AccountName> {
    let name = |account: &Spanned<Account>| match account.get_ref() {
        Account::Number(number) => AccountName::Number(*number),
        Account::Name(name) => AccountName::Name(name.clone()),
    };
    written.iter().map(name).collect()
}

/// Returns a warning for each user and group of a list that the system does not know now, with the effect.
pub(super) fn unknown(of: &str, users: &QueueUsers, effect: &str) -> Vec<String> {
    let warning =
        |kind: &str, name: &AccountName| format!("{of}: the system knows no {kind} {}; {effect}", text(name));
    let unknown_users = users.users.iter().filter(|user| !is_user(user)).map(|user| warning("user", user));
    let groups = users.groups.iter().filter(|group| !is_group(group));
    unknown_users.chain(groups.map(|group| warning("group", group))).collect()
}

fn text(name: &AccountName) -> String {
    match name {
        AccountName::Number(number) => number.to_string(),
        AccountName::Name(name) => format!("{name:?}"),
    }
}
