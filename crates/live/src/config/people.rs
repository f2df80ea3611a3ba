//! The accounts that may use a queue, by number.

use std::collections::BTreeSet;

use miserly_machine_file::file::Account;
use toml::Spanned;

use super::error::{Problem, of_field};
use crate::users::Known;

/// Returns the numbers of these users and of all members of these groups. The machine's files as
/// they are now define them.
pub(super) fn all(users: &[Spanned<Account>], groups: &[Spanned<Account>]) -> Result<Vec<u32>, Problem> {
    if users.is_empty() && groups.is_empty() {
        return Ok(Vec::new());
    }
    let known = Known::read();
    let mut all = BTreeSet::new();
    for user in users {
        all.insert(number(&known, user.get_ref()).ok_or_else(|| unknown(user, "users", "user"))?);
    }
    for group in groups {
        all.extend(members(&known, group.get_ref()).ok_or_else(|| unknown(group, "groups", "group"))?);
    }
    Ok(all.into_iter().collect())
}

/// Returns a user's number. A user given by number may be missing in the file, since other services
/// may define it.
fn number(known: &Known, user: &Account) -> Option<u32> {
    match user {
        Account::Number(number) => Some(*number),
        Account::Name(name) => known.number(name),
    }
}

fn members(known: &Known, group: &Account) -> Option<Vec<u32>> {
    match group {
        Account::Number(number) => known.members(|_, of| of == number.to_string()),
        Account::Name(name) => known.members(|of, _| of == name),
    }
}

fn unknown(written: &Spanned<Account>, field: &str, kind: &str) -> Problem {
    let who = match written.get_ref() {
        Account::Name(name) => format!("{name:?}"),
        Account::Number(number) => number.to_string(),
    };
    let problem = format!("there is no {kind} {who}; write a name of this machine, or a number");
    of_field(written, field, &problem)
}
