//! The facts of jobs that a log may lack.

/// Facts of jobs that a policy uses, and that a log may lack.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// The user.
    pub user: bool,
    /// The group of the user.
    pub group: bool,
    /// The requested memory.
    pub memory: bool,
    /// The estimate of the runtime.
    pub estimate: bool,
}

impl JobFacts {
    /// Returns the facts of either.
    #[must_use]
    pub fn or(self, other: JobFacts) -> JobFacts {
        JobFacts {
            user: self.user || other.user,
            group: self.group || other.group,
            memory: self.memory || other.memory,
            estimate: self.estimate || other.estimate,
        }
    }
}
