//! Users, their accounts, and the users of a queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The user behind a request, as the kernel identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user's number.
    pub uid: u32,
    /// The user's account; `None` if it was not looked up, or if the system has none.
    pub account: Option<Arc<Account>>,
    /// The proof of a submission for the launcher; `None` for other requests, and where the launcher needs none.
    pub credential: Option<Credential>,
}

/// The proof that a user submitted a job. The engine stores it with the job and gives it to the launcher.
///
/// Its content has a meaning for the launcher only.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "String", into = "String")]
pub struct Credential(Arc<str>);

impl From<String> for Credential {
    fn from(content: String) -> Credential {
        Credential(content.into())
    }
}

impl From<Credential> for String {
    fn from(credential: Credential) -> String {
        credential.content().to_owned()
    }
}

impl Credential {
    /// Returns the content.
    pub fn content(&self) -> &str {
        &self.0
    }
}

/// An entry of the system's database of users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// The groups of the user, beginning with the group of its entry.
    pub groups: Vec<Group>,
}

/// A group of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number.
    pub number: u32,
    /// The name, if the system knows one.
    pub name: Option<String>,
}

/// A user or a group, as the configuration names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(untagged)]
pub enum AccountName {
    /// By number.
    Number(u32),
    /// By name.
    Name(String),
}

/// The users of a queue that is not open to all. A queue without users and groups admits nobody.
///
/// The names are compared with the account of the caller at each request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct QueueUsers {
    /// The users.
    pub users: BTreeSet<AccountName>,
    /// The groups whose members may use the queue.
    pub groups: BTreeSet<AccountName>,
}

impl Caller {
    /// Returns a user whose account was not looked up.
    pub fn new(uid: u32) -> Caller {
        Caller { uid, account: None, credential: None }
    }

    /// Returns the first group of the user by number, if the account was looked up.
    pub fn first_group(&self) -> Option<u32> {
        Some(self.account.as_deref()?.groups.first()?.number)
    }
}

impl AccountName {
    fn is(&self, number: u32, name: Option<&str>) -> bool {
        match self {
            AccountName::Number(other) => *other == number,
            AccountName::Name(other) => name == Some(other),
        }
    }
}

impl QueueUsers {
    /// Returns whether the user, or one of the user's groups, is in the list.
    pub fn admits(&self, caller: &Caller) -> bool {
        let account = caller.account.as_deref();
        let name = account.map(|account| account.name.as_str());
        let groups = account.map_or(&[][..], |account| &account.groups);
        let in_group =
            |of: &AccountName| groups.iter().any(|group| of.is(group.number, group.name.as_deref()));
        self.users.iter().any(|user| user.is(caller.uid, name)) || self.groups.iter().any(in_group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> BTreeSet<AccountName> {
        names.iter().map(|name| AccountName::Name((*name).into())).collect()
    }

    #[test]
    fn a_list_admits_the_users_and_the_members_that_it_names() {
        let group = |number, name: &str| Group { number, name: Some(name.into()) };
        let account = Account { name: "ann".into(), groups: vec![group(50, "lab"), group(60, "all")] };
        let ann = Caller { account: Some(Arc::new(account)), ..Caller::new(1001) };
        let users = |users, groups| QueueUsers { users, groups };
        let check = |list: &QueueUsers, expect: bool| assert_eq!(list.admits(&ann), expect, "{list:?}");
        check(&users(named(&["bob", "ann"]), named(&[])), true);
        check(&users(BTreeSet::from([AccountName::Number(1001)]), named(&[])), true);
        check(&users(named(&[]), named(&["lab"])), true);
        check(&users(named(&[]), BTreeSet::from([AccountName::Number(60)])), true);
        check(&users(named(&["lab"]), named(&["ann"])), false);
        check(&users(BTreeSet::from([AccountName::Number(50)]), named(&[])), false);
        // An empty list is no list for all.
        check(&QueueUsers::default(), false);
        assert!(!users(named(&["ann"]), named(&["lab"])).admits(&Caller::new(1001)));
    }
}
