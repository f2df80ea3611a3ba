//! Users and groups by name.

use std::collections::BTreeSet;
use std::fs;

use toml::{Spanned, Value};

use super::error::Problem;

/// The numbers of these users and of all members of these groups, as the machine's files know them now.
pub(super) fn all(users: &[Spanned<Value>], groups: &[Spanned<Value>]) -> Result<Vec<u32>, Problem> {
    if users.is_empty() && groups.is_empty() {
        return Ok(Vec::new());
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let known = Known { passwd: read("/etc/passwd"), group: read("/etc/group") };
    let mut all = BTreeSet::new();
    for user in users {
        all.insert(known.user(user.get_ref()).ok_or_else(|| unknown(user, "users", "user"))?);
    }
    for group in groups {
        all.extend(known.members(group.get_ref()).ok_or_else(|| unknown(group, "groups", "group"))?);
    }
    Ok(all.into_iter().collect())
}

fn unknown(written: &Spanned<Value>, field: &str, kind: &str) -> Problem {
    let who = match written.get_ref() {
        Value::String(name) => format!("{name:?}"),
        Value::Integer(number) => number.to_string(),
        other => format!("that is {}", other.type_str()),
    };
    let problem = format!("{field}: there is no {kind} {who}; write a name of this machine, or a number");
    (written.span(), problem)
}

/// The machine's files of users and groups.
struct Known {
    passwd: String,
    group: String,
}

impl Known {
    /// A user's number. One that is written as a number need not be in the file: other services may know it.
    fn user(&self, written: &Value) -> Option<u32> {
        match written {
            Value::Integer(number) => u32::try_from(*number).ok(),
            Value::String(name) => self.passwd.lines().find_map(|line| number_of(line, name)),
            _ => None,
        }
    }

    /// The members of a group: whoever it names, and whoever has it for a first group.
    fn members(&self, written: &Value) -> Option<Vec<u32>> {
        let line = self.group.lines().find(|line| match written {
            Value::Integer(number) => line.split(':').nth(2) == Some(&number.to_string()),
            Value::String(name) => line.split(':').next() == Some(name),
            _ => false,
        })?;
        let mut fields = line.split(':').skip(2);
        let (number, named) = (fields.next()?, fields.next().unwrap_or_default());
        let of_name = |name| self.passwd.lines().find_map(|line| number_of(line, name));
        let first = self.passwd.lines().filter(|line| line.split(':').nth(3) == Some(number));
        let first = first.filter_map(|line| line.split(':').nth(2)?.parse().ok());
        Some(named.split(',').filter_map(of_name).chain(first).collect())
    }
}

/// The number in a line, if it is that of the name.
fn number_of(line: &str, name: &str) -> Option<u32> {
    let mut fields = line.split(':');
    (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_or_have_it_first() {
        let known = Known {
            passwd: "root:x:0:0::/:\nann:x:1001:50::/:\nbob:x:1002:60::/:\neve:x:1003:50::/:\n".into(),
            group: "lab:x:50:bob\nempty:x:70:\n".into(),
        };
        let text = |text: &str| Value::String(text.into());
        assert_eq!(known.members(&text("lab")), Some(vec![1002, 1001, 1003]));
        assert_eq!(known.members(&Value::Integer(50)), known.members(&text("lab")));
        assert_eq!(known.members(&text("empty")), Some(vec![]));
        assert_eq!(known.members(&text("nobody")), None);
        assert_eq!([known.user(&text("bob")), known.user(&text("zoe"))], [Some(1002), None]);
        assert_eq!([known.user(&Value::Integer(7)), known.user(&Value::Integer(-7))], [Some(7), None]);
    }
}
