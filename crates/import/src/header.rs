//! Recognition of the header line of a job table: its separator, its names, and the presets that have them.

use miserly_workload::Trace;

use crate::error::ImportError;
use crate::table::{Bound, ColumnMap, PRESETS, TableFormat, format_of};

/// Separators of CSV.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// Returns the separator of a table in CSV by its first line.
pub(crate) fn delimiter(trace: &Trace) -> Result<Option<u8>, ImportError> {
    let start = trace.start(1 << 16)?;
    if format_of(&start) != TableFormat::Csv {
        return Ok(None);
    }
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(delimiter_of(line))
}

fn delimiter_of(line: &[u8]) -> Option<u8> {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    // Of equal counts, the first applies.
    DELIMITERS
        .into_iter()
        .rev()
        .max_by_key(|&delimiter| count(delimiter))
        .filter(|&delimiter| count(delimiter) > 0)
}

fn names_of(line: &str) -> Vec<String> {
    let Some(delimiter) = delimiter_of(line.as_bytes()) else { return vec![] };
    let trimmed = |name: &str| name.trim().trim_matches('"').to_owned();
    line.split(char::from(delimiter)).map(trimmed).collect()
}

/// Returns whether a line is a header of a table: at least three names.
pub(crate) fn is_table_header(line: &str) -> bool {
    let names = names_of(line);
    let is_name = |name: &String| {
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
            && name.len() <= 60
            && name.chars().all(|letter| letter.is_alphanumeric() || " _.-/()[]:#%".contains(letter))
    };
    let with_blanks = names.iter().filter(|name| name.contains(' ')).count();
    names.len() >= 3 && names.iter().all(is_name) && with_blanks * 4 <= names.len()
}

/// Returns whether a line is the header of a table that a preset reads.
pub(crate) fn is_preset_header(line: &str) -> bool {
    is_table_header(line) && !fitting_presets(&names_of(line)).is_empty()
}

/// Returns the presets whose columns a table has: those with the most.
pub(crate) fn fitting_presets(names: &[String]) -> Vec<&'static str> {
    let fits = |map: &ColumnMap| {
        let has_header =
            map.form.names.is_none() && map.join.is_none() && map.unseen.is_none() && !map.fields.is_empty();
        has_header && Bound::new(map, "", names, None, vec![]).is_ok()
    };
    let fitting: Vec<(usize, &str)> = PRESETS
        .iter()
        .filter_map(|preset| {
            let map = preset.map().ok().filter(fits)?;
            Some((map.fields.len(), preset.name))
        })
        .collect();
    let most = fitting.iter().map(|(fields, _)| *fields).max();
    fitting.into_iter().filter(|(fields, _)| Some(*fields) == most).map(|(_, name)| name).collect()
}
