//! The output files of a job.

use std::path::PathBuf;

use crate::Record;

/// Returns the file of the standard output.
pub(crate) fn output(record: &Record) -> PathBuf {
    let submission = &record.submission;
    let usual = || PathBuf::from(if record.array.is_some() { "miserly-%A_%a.out" } else { "miserly-%j.out" });
    let pattern = submission.output.clone().unwrap_or_else(usual);
    place(record, pattern)
}

/// Returns the file of the standard error. By default it is that of the output.
pub(crate) fn error(record: &Record) -> PathBuf {
    record.submission.error.clone().map_or_else(|| output(record), |pattern| place(record, pattern))
}

fn place(record: &Record, pattern: PathBuf) -> PathBuf {
    let (array, index) = record.array.map_or((record.number, 0), |array| (array.first, array.index));
    let Some(text) = pattern.to_str() else { return record.submission.directory.join(pattern) };
    record.submission.directory.join(filled(text, record, array, index))
}

/// Returns a pattern with its placeholders replaced. `%%` is a percent sign.
fn filled(pattern: &str, record: &Record, array: i64, index: u32) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('j') => text.push_str(&record.number.to_string()),
            Some('A') => text.push_str(&array.to_string()),
            Some('a') => text.push_str(&index.to_string()),
            Some('x') => text.push_str(&record.name.replace('/', "_")),
            Some('%') | None => text.push('%'),
            Some(other) => text.extend(['%', other]),
        }
    }
    text
}
