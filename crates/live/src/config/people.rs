//! Who may use a queue, by number.

use std::collections::BTreeSet;

use miserly_pools::Who;
use toml::Spanned;

use super::error::{Problem, of_field};
use crate::users::Known;

/// The numbers of these users and of all members of these groups, as the machine's files know them now.
pub(super) fn all(users: &[Spanned<Who>], groups: &[Spanned<Who>]) -> Result<Vec<u32>, Problem> {
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

/// A user's number. One that is written as a number need not be in the file: other services may know it.
fn number(known: &Known, user: &Who) -> Option<u32> {
    match user {
        Who::Number(number) => Some(*number),
        Who::Name(name) => known.number(name),
    }
}

fn members(known: &Known, group: &Who) -> Option<Vec<u32>> {
    match group {
        Who::Number(number) => known.members(|_, of| of == number.to_string()),
        Who::Name(name) => known.members(|of, _| of == name),
    }
}

fn unknown(written: &Spanned<Who>, field: &str, kind: &str) -> Problem {
    let who = match written.get_ref() {
        Who::Name(name) => format!("{name:?}"),
        Who::Number(number) => number.to_string(),
    };
    let problem = format!("there is no {kind} {who}; write a name of this machine, or a number");
    of_field(written, field, &problem)
}
