//! The rights of a user on a cluster.

use crate::{Configuration, Slurm, SlurmError};

impl Slurm {
    /// Returns whether a user may write the comments of administrators: root, the user of the controller, and an administrator of the
    /// accounting. An operator may not.
    ///
    /// # Errors
    /// If the accounting gives no answer.
    pub fn is_administrator(
        &self,
        configuration: &Configuration,
        user: u32,
        name: &str,
    ) -> Result<bool, SlurmError> {
        if user == 0 || configuration.slurm_user == Some(user) {
            return Ok(true);
        }
        let name = format!("name={name}");
        let answer = self.ask("sacctmgr", &["-n", "-P", "show", "user", &name, "format=AdminLevel"])?;
        Ok(answer.text.trim() == "Administrator")
    }
}
