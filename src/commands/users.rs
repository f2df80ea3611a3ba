//! The names of users.

use std::collections::BTreeMap;

use miserly_view::plain;
use nix::unistd::{Uid, User};

/// The names of users, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct Users(BTreeMap<u32, String>);

impl Users {
    /// Returns the name of a user, or the number if the system has none.
    pub(crate) fn name(&mut self, uid: u32) -> String {
        self.0.entry(uid).or_insert_with(|| look_up(uid)).clone()
    }
}

fn look_up(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| plain(&user.name))
}
