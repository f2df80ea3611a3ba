//! The text form of instants, numbers and tables.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns an instant in local time, ISO-like, to the second.
pub(crate) fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns a number and its word, in the plural if needed.
pub(crate) fn counted(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// Returns the numbers of processors, with ranges as FIRST-LAST.
pub(super) fn numbers(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let run = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
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

/// Returns a text of another user without control characters, so that nothing in it moves the
/// cursor of a terminal or changes the direction of its text.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_control(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Returns whether a character is a control character, a line separator, or one of Unicode's
/// directional marks.
fn is_control(letter: char) -> bool {
    let directional = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    letter.is_control() || directional
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_their_word() {
        assert_eq!((counted(1, "job"), counted(2, "job")), ("1 job".to_owned(), "2 jobs".to_owned()));
    }

    #[test]
    fn runs_of_processors() {
        assert_eq!(numbers(&[]), "");
        assert_eq!(numbers(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(numbers(&[u32::MAX]), u32::MAX.to_string());
    }

    #[test]
    fn nobody_s_name_moves_the_cursor() {
        assert_eq!(plain("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{200f}d\u{e9}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{e9}");
    }
}
