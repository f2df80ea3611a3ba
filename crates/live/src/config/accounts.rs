//! The accounts that may use a queue, by number.

use std::collections::BTreeSet;

use miserly_machine_file::file::Account;
use toml::Spanned;

use super::error::{Problem, of_field};
use crate::users::AccountFiles;

/// Returns the numbers of these users and of all members of these groups. The machine's files as
/// they are now define them.
pub(super) fn numbers(users: &[Spanned<Account>], groups: &[Spanned<Account>]) -> Result<Vec<u32>, Problem> {
    if users.is_empty() && groups.is_empty() {
        return Ok(Vec::new());
    }
    let files = AccountFiles::read();
    let mut all = BTreeSet::new();
    for user in users {
        all.insert(number(&files, user.get_ref()).ok_or_else(|| unknown(user, "users", "user"))?);
    }
    for group in groups {
        all.extend(members(&files, group.get_ref()).ok_or_else(|| unknown(group, "groups", "group"))?);
    }
    Ok(all.into_iter().collect())
}

/// Returns a user's number. A user given by number may be missing in the file, since other services
/// may define it.
fn number(files: &AccountFiles, user: &Account) -> Option<u32> {
    match user {
        Account::Number(number) => Some(*number),
        Account::Name(name) => files.number(name),
    }
}

fn members(files: &AccountFiles, group: &Account) -> Option<Vec<u32>> {
    match group {
        Account::Number(number) => files.members(|_, of| of == number.to_string()),
        Account::Name(name) => files.members(|of, _| of == name),
    }
}

fn unknown(written: &Spanned<Account>, field: &str, kind: &str) -> Problem {
    let account = match written.get_ref() {
        Account::Name(name) => format!("{name:?}"),
        Account::Number(number) => number.to_string(),
    };
    let problem = format!("there is no {kind} {account}; write a name of this machine, or a number");
    of_field(written, field, &problem)
}
