//! The text form of instants, numbers and tables.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use jiff::tz::TimeZone;
pub(crate) use miserly_api::model::matches_pattern;
use miserly_api::model::{Exit, JobRef, JobView, Phase, number_ranges};
use miserly_view::{Clock, word};
pub(crate) use miserly_view::{counted, plain};

pub(crate) use crate::output::local;

/// How instants are printed.
#[derive(Clone, Copy)]
pub(super) struct Instants {
    pub(super) now: Timestamp,
    /// With date and seconds.
    pub(super) exact: bool,
}

impl Instants {
    /// Returns instants with date and seconds.
    pub(super) fn exact() -> Instants {
        Instants { now: Timestamp::now(), exact: true }
    }

    /// Returns short instants.
    pub(super) fn short() -> Instants {
        Instants { now: Timestamp::now(), exact: false }
    }

    /// Returns an instant in local time.
    ///
    /// A short one has seconds within an hour, no date on the same day, the weekday within six days, and else the date.
    pub(super) fn text(self, at: Timestamp) -> String {
        if self.exact {
            local(at)
        } else if at.duration_since(self.now).unsigned_abs().as_secs() < 3600 {
            at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
        } else {
            Clock::Wall(TimeZone::system()).instant(at.as_millisecond(), self.now.as_millisecond())
        }
    }
}

/// Returns the numbers of processors, with ranges as FIRST-LAST.
pub(super) fn numbers(cpus: &[u32]) -> String {
    ranges(&number_ranges(cpus))
}

/// Returns ranges with both ends as text, such as `0-3,8`.
pub(super) fn ranges(cpus: &[(u32, u32)]) -> String {
    let run = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    cpus.iter().map(run).collect::<Vec<_>>().join(",")
}

/// Returns the state of a job in words. That of a failed one has its exit code or its signal.
pub(super) fn outcome(job: &JobView) -> String {
    match &job.phase {
        Phase::Done { exit: Exit::Code(code @ 1..), .. } => format!("failed, exit {code}"),
        Phase::Done { exit: Exit::Signal(signal), .. } => format!("failed, signal {signal}"),
        _ => word(job).to_owned(),
    }
}

/// Returns jobs as a list of ranges, such as `10, 12-14`.
pub(super) fn jobs(jobs: &[JobRef]) -> String {
    jobs.iter().map(JobRef::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a table without lines. The columns in `right` are numbers.
pub(crate) fn table(header: &[&str], right: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(header);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        if index == 0 {
            column.set_padding((0, 1));
        }
        if right.contains(&header[index]) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_processors() {
        assert_eq!(numbers(&[]), "");
        assert_eq!(numbers(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(numbers(&[u32::MAX]), u32::MAX.to_string());
    }
}
