//! Columns of `squeue -O` that have no letter for `-o`.
//!
//! In the lines of `scontrol` texts of users stand before these values, and may look like them.

use std::collections::BTreeMap;

use super::values::present;

/// The columns, which are the same from 22.05 to 26.05 (`src/squeue/opts.c`).
pub(super) const COLUMNS: [&str; 7] = [
    "JobArrayID",
    "Comment",
    "admin_comment",
    "tres-per-job",
    "tres-per-socket",
    "tres-per-task",
    "mem-per-tres",
];

/// The comments of a job, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// That of its user.
    pub user: Option<String>,
    /// That of an administrator.
    pub admin: Option<String>,
}

/// The values of the columns for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) comments: Comments,
    /// Generic resources of the whole job, as Slurm writes them.
    pub(crate) of_job: Option<String>,
    /// Those of each socket.
    pub(crate) of_socket: Option<String>,
    /// Those of each task. Since 23.11 its processors are among them.
    pub(crate) of_task: Option<String>,
    /// The memory of each generic resource.
    pub(crate) memory: Option<String>,
}

impl Columns {
    /// Returns the values in an answer in which each column ends with a mark, by the name of the job.
    pub(super) fn parse(text: &str, mark: &str) -> BTreeMap<String, Columns> {
        let values: Vec<&str> = text.split(mark).collect();
        let comment =
            |text: &str| Some(text).filter(|text| !matches!(*text, "" | "(null)")).map(str::to_owned);
        let list = |text: &str| present(text.trim()).map(str::to_owned);
        let columns = |values: &[&str]| {
            let [id, user, admin, of_job, of_socket, of_task, memory] = *values else { return None };
            let columns = Columns {
                comments: Comments { user: comment(user), admin: comment(admin) },
                of_job: list(of_job),
                of_socket: list(of_socket),
                of_task: list(of_task),
                memory: list(memory),
            };
            Some((id.trim().to_owned(), columns))
        };
        values.chunks_exact(COLUMNS.len()).filter_map(columns).collect()
    }

    /// Returns the values with the names that `scontrol` has for them.
    pub(crate) fn named(&self) -> [(&'static str, Option<&str>); 6] {
        [
            ("Comment", self.comments.user.as_deref()),
            ("AdminComment", self.comments.admin.as_deref()),
            ("TresPerJob", self.of_job.as_deref()),
            ("TresPerSocket", self.of_socket.as_deref()),
            ("TresPerTask", self.of_task.as_deref()),
            ("MemPerTres", self.memory.as_deref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user may write anything but the mark.
    #[test]
    fn a_comment_that_looks_like_columns_is_a_comment() {
        let text = "7|M two  \"blanks\"|N/A|gres/gpu:9|M(null)|MN/A|MN/A|Mcpu=2|Mgres/gpu:1500|M\n\
            8_1|MNone|Mof\nthe site|Mgres:gpu:2|MN/A|MN/A|MN/A|M\n9|M(null)|M|MN/A|MN/A|MN/A|MN/A|M\n";
        let all = Columns::parse(text, "|M");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["7", "8_1", "9"]);
        let comments = |id: &str| all[id].named().map(|(_, text)| text)[..2].to_vec();
        assert_eq!(comments("7"), [Some(" two  \"blanks\"|N/A|gres/gpu:9"), None]);
        assert_eq!(comments("8_1"), [Some("None"), Some("of\nthe site")]);
        assert_eq!(all["9"], Columns::default());
        assert_eq!((all["7"].of_job.as_deref(), all["7"].of_task.as_deref()), (None, Some("cpu=2")));
        assert_eq!(all["7"].memory.as_deref(), Some("gres/gpu:1500"));
        assert_eq!(all["8_1"].of_job.as_deref(), Some("gres:gpu:2"));
    }
}
