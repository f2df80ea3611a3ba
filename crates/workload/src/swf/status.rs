//! The recorded exit status of a job.

use super::{Field, Record};

/// The exit status of a job: field 11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The job completed.
    Completed,
    /// The job failed or was killed.
    Failed,
    /// The user cancelled the job.
    Cancelled,
    /// The log has no status.
    #[default]
    Unknown,
}

impl Record {
    /// Returns the exit status. For a checkpointed job, its last part decides.
    pub fn status(&self) -> Status {
        match self.get(Field::Status) {
            1 | 3 => Status::Completed,
            0 | 4 => Status::Failed,
            5 => Status::Cancelled,
            _ => Status::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{Cancelled, Completed, Failed, Unknown};
    use super::*;

    #[test]
    fn the_codes_of_the_format() {
        let of = |code: i64| {
            let mut record = Record::unknown();
            record.set(Field::Status, code);
            record.status()
        };
        let statuses = [-1, 0, 1, 2, 3, 4, 5, 6].map(of);
        let expected = [Unknown, Failed, Completed, Unknown, Completed, Failed, Cancelled, Unknown];
        assert_eq!(statuses, expected);
    }
}
