//! The text form of instants, numbers and tables.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_view::ranges;
pub(crate) use miserly_view::{counted, plain};

/// Returns an instant in local time, ISO-like, to the second.
pub(crate) fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the numbers of processors, with ranges as FIRST-LAST.
pub(super) fn numbers(cpus: &[u32]) -> String {
    let run = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges(cpus).iter().map(run).collect::<Vec<_>>().join(",")
}

/// Returns the numbers of jobs, with commas between them.
pub(super) fn jobs(jobs: &[i64]) -> String {
    jobs.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
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
