//! Output of records and comments as text.

use std::io::{self, Write};

use super::extra::ExtraColumns;
use super::reader::LogLine;
use super::record::{Field, Record};

/// A writer of a log line by line, with fields separated by one space.
///
/// The extra fields of jobs are written in the columns of the last `; Extra:` comment, and left out before one.
pub struct SwfWriter<W> {
    output: W,
    text: Vec<u8>,
    columns: ExtraColumns,
}

impl<W: Write> SwfWriter<W> {
    /// Creates a writer. `output` should be buffered.
    pub fn new(output: W) -> SwfWriter<W> {
        SwfWriter { output, text: Vec::with_capacity(256), columns: ExtraColumns::default() }
    }

    /// Writes a line as the reader returned it.
    ///
    /// # Errors
    /// The output fails.
    pub fn line(&mut self, line: &LogLine<'_>) -> io::Result<()> {
        match line {
            LogLine::Comment(comment) => self.comment(comment),
            LogLine::Job(record) => self.job(record),
            LogLine::Blank => self.output.write_all(b"\n"),
        }
    }

    /// Writes a comment line; `comment` includes its `;`.
    ///
    /// # Errors
    /// The output fails.
    pub fn comment(&mut self, comment: &str) -> io::Result<()> {
        if let Some(columns) = ExtraColumns::of_comment(comment) {
            self.columns = columns;
        }
        writeln!(self.output, "{comment}")
    }

    /// Writes a job line.
    ///
    /// # Errors
    /// The output fails.
    pub fn job(&mut self, record: &Record) -> io::Result<()> {
        self.text.clear();
        append(record, &self.columns, &mut self.text);
        self.text.push(b'\n');
        self.output.write_all(&self.text)
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}

/// Appends a job line without its end.
pub(super) fn append(record: &Record, columns: &ExtraColumns, line: &mut Vec<u8>) {
    for field in Field::ALL {
        if field != Field::Job {
            line.push(b' ');
        }
        if field == Field::CpuTime {
            line.extend_from_slice(record.cpu_time().as_bytes());
        } else {
            // Writing to memory cannot fail.
            let _ = write!(line, "{}", record.get(field));
        }
    }
    columns.write(record.extras(), line);
}
