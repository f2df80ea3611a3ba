//! How a job ended, as its log has it.

use super::{Field, Record};

/// How a job ended, as its log has it: field 11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It came to its end.
    Completed,
    /// It failed, or was killed.
    Failed,
    /// Its user took it back.
    Cancelled,
    /// The log does not say.
    #[default]
    Unknown,
}

impl Record {
    /// How it ended. Of a job that was checkpointed, the last part says.
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
    use super::*;

    #[test]
    fn the_codes_of_the_format() {
        let of = |code: i64| {
            let mut record = Record::unknown();
            record.set(Field::Status, code);
            record.status()
        };
        use Status::{Cancelled, Completed, Failed, Unknown};
        let statuses = [-1, 0, 1, 2, 3, 4, 5, 6].map(of);
        let expected = [Unknown, Failed, Completed, Unknown, Completed, Failed, Cancelled, Unknown];
        assert_eq!(statuses, expected);
    }
}
