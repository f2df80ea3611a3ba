//! The rights of a user on a cluster.

use crate::{Configuration, Slurm};

impl Slurm {
    /// Returns whether a user may write the comments of administrators: root, the user of the controller, and an administrator of the
    /// accounting. An operator may not.
    ///
    /// Without the accounting nothing is known of administrators.
    pub fn is_administrator(&self, configuration: &Configuration, user: u32, name: &str) -> bool {
        if user == 0 || configuration.slurm_user == Some(user) {
            return true;
        }
        let name = format!("name={name}");
        let answer = self.ask("sacctmgr", &["-n", "-P", "show", "user", &name, "format=AdminLevel"]);
        answer.is_ok_and(|answer| answer.text.trim() == "Administrator")
    }
}
