//! Records and comments back to text.

use std::io::{self, Write};

use super::reader::Line;
use super::record::{Field, Record};

/// Writes a log line by line, fields separated by one space.
pub struct Writer<W> {
    output: W,
    text: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A writer to `output`, which should be buffered.
    pub fn new(output: W) -> Writer<W> {
        Writer { output, text: Vec::with_capacity(256) }
    }

    /// Writes one line as the reader gave it.
    ///
    /// # Errors
    /// If the output fails.
    pub fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        match line {
            Line::Comment(comment) => self.comment(comment),
            Line::Job(record) => self.job(record),
            Line::Blank => self.output.write_all(b"\n"),
        }
    }

    /// Writes a comment line; `comment` brings its own `;`.
    ///
    /// # Errors
    /// If the output fails.
    pub fn comment(&mut self, comment: &str) -> io::Result<()> {
        writeln!(self.output, "{comment}")
    }

    /// Writes a job line.
    ///
    /// # Errors
    /// If the output fails.
    pub fn job(&mut self, record: &Record) -> io::Result<()> {
        self.text.clear();
        for field in Field::ALL {
            if field != Field::Job {
                self.text.push(b' ');
            }
            if field == Field::CpuTime {
                self.text.extend_from_slice(record.cpu_time().as_bytes());
            } else {
                write!(self.text, "{}", record.get(field))?;
            }
        }
        self.text.push(b'\n');
        self.output.write_all(&self.text)
    }

    /// Hands the output back.
    pub fn into_inner(self) -> W {
        self.output
    }
}
