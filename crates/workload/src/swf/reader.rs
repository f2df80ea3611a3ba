//! A log as a stream of lines.

use std::fmt;
use std::io::{self, BufRead};

use super::extra::{ExtraColumns, Extras};
use super::parse::{Deviations, LineError, is_blank, parse_counted, parse_plain};
use super::record::Record;
use super::writer::append;
use crate::converted::ConvertedReader;

/// Longest accepted line in bytes. Real lines have a few hundred bytes.
const LINE_MAX: usize = 1 << 16;

/// Byte order mark of UTF-8, which some editors insert.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line of a log.
#[derive(Debug, PartialEq, Eq)]
pub enum LogLine<'a> {
    /// A comment with its `;`, without its line end.
    Comment(&'a str),
    /// A job.
    Job(&'a Record),
    /// A blank line.
    Blank,
}

/// An error with its line, such as `line 3: 17 fields where the format has 18`.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A malformed job line.
    Malformed {
        /// Line number, from 1.
        line: u64,
        /// Cause.
        error: LineError,
    },
    /// A line too long to be text.
    TooLong {
        /// Line number, from 1.
        line: u64,
    },
    /// The input failed.
    Io {
        /// Last complete line, from 1.
        line: u64,
        /// Cause.
        error: io::Error,
    },
}

impl ReadError {
    /// Returns the line number of the error, from 1.
    pub fn line(&self) -> u64 {
        match self {
            ReadError::Malformed { line, .. } | ReadError::TooLong { line } => *line,
            ReadError::Io { line, .. } => line + 1,
        }
    }

    /// Returns the description of the error.
    pub fn problem(&self) -> String {
        match self {
            ReadError::Malformed { error, .. } => error.to_string(),
            ReadError::TooLong { .. } => {
                format!(
                    "more than {LINE_MAX} bytes without a line end; not a log in the Standard Workload Format"
                )
            }
            ReadError::Io { error, .. } => match error.kind() {
                // Only compressed data has a known end.
                io::ErrorKind::UnexpectedEof => {
                    "the gzipped data is truncated; download the file again".into()
                }
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                    format!("the gzipped data is damaged ({error}); download the file again")
                }
                _ => format!("cannot continue reading: {error}"),
            },
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line(), self.problem())
    }
}

/// A reader of a log line by line. It holds one line at a time.
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    record: Record,
    line: u64,
    has_line_end: bool,
    fills_missing: bool,
    deviations: Deviations,
    columns: ExtraColumns,
    /// A log without a text, which is read in place of the input.
    converted: Option<Box<ConvertedReader>>,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader of uncompressed text.
    pub fn new(input: R) -> Reader<R> {
        let (buffer, record) = (Vec::with_capacity(256), Record::unknown());
        let (deviations, columns) = (Deviations::default(), ExtraColumns::default());
        Reader {
            input,
            buffer,
            record,
            line: 0,
            has_line_end: true,
            fills_missing: false,
            deviations,
            columns,
            converted: None,
        }
    }

    /// Returns the reader with a log that was converted in place of its input.
    pub(crate) fn of_converted(self, log: ConvertedReader) -> Reader<R> {
        Reader { converted: Some(Box::new(log)), ..self }
    }

    /// Returns the reader that takes missing fields at the end of a line as unknown, if `fill` is set.
    #[must_use]
    pub fn filling_missing_fields(self, fill: bool) -> Reader<R> {
        Reader { fills_missing: fill, ..self }
    }

    /// Returns the counts of the lines so far that deviate from the format and were read.
    pub fn deviations(&self) -> Deviations {
        self.deviations
    }

    /// Returns the number of the last line read, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the next line, or `None` at the end.
    ///
    /// After [`ReadError::Malformed`], reading can continue with the next line. Other errors are
    /// final.
    ///
    /// # Errors
    /// The line is malformed, or the input fails.
    pub fn next_line(&mut self) -> Result<Option<LogLine<'_>>, ReadError> {
        if self.converted.as_ref().is_some_and(|log| !log.has_comment()) {
            return Ok(self.next_converted()?.then_some(LogLine::Job(&self.record)));
        }
        if !self.fill()? {
            return Ok(None);
        }
        let Reader { buffer, record, line, fills_missing, deviations, columns, .. } = self;
        match buffer.iter().find(|&&byte| !is_blank(byte)) {
            None => Ok(Some(LogLine::Blank)),
            Some(b';') => {
                let comment = make_text(buffer);
                if let Some(extra) = ExtraColumns::of_comment(comment) {
                    *columns = extra;
                    *record.extras_mut() = Extras::default();
                }
                Ok(Some(LogLine::Comment(comment)))
            }
            Some(_) => match parse_counted(buffer, record, *fills_missing, columns, deviations) {
                Ok(()) => Ok(Some(LogLine::Job(record))),
                Err(error) => Err(ReadError::Malformed { line: *line, error }),
            },
        }
    }

    /// Returns the next job, skipping comments and blank lines, or `None` at the end.
    ///
    /// # Errors
    /// See [`next_line`](Reader::next_line).
    pub fn next_job(&mut self) -> Result<Option<&Record>, ReadError> {
        Ok(if self.advance()? { Some(&self.record) } else { None })
    }

    /// Advances to the next job; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, ReadError> {
        if self.converted.is_some() {
            return self.next_converted();
        }
        while !self.parse_in_place()? {
            match self.next_line()? {
                None => return Ok(false),
                Some(LogLine::Job(_)) => break,
                Some(LogLine::Comment(_) | LogLine::Blank) => {}
            }
        }
        Ok(true)
    }

    /// Advances to the next job of a converted log; `false` at the end.
    fn next_converted(&mut self) -> Result<bool, ReadError> {
        let Some(log) = &mut self.converted else { return Ok(false) };
        self.line += log.skip_comments();
        match log.next_job() {
            Ok(Some(job)) => {
                // The reader of the jobs overwrites the record.
                std::mem::swap(&mut self.record, job);
                self.line += 1;
                let checked = self.record.check();
                checked.map_err(|error| ReadError::Malformed { line: self.line, error }).map(|()| true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(ReadError::Io { line: self.line, error }),
        }
    }

    /// Reads one line of a converted log into the buffer; `false` at the end.
    fn fill_converted(&mut self) -> Result<bool, ReadError> {
        self.has_line_end = true;
        if let Some(comment) = self.converted.as_mut().and_then(|log| log.next_comment()) {
            self.buffer.extend_from_slice(comment.as_bytes());
            self.columns = ExtraColumns::of_comment(comment).unwrap_or(std::mem::take(&mut self.columns));
            self.line += 1;
            return Ok(true);
        }
        let found = self.next_converted()?;
        if found {
            append(&self.record, &self.columns, &mut self.buffer);
        }
        Ok(found)
    }

    /// Returns the job reached by [`advance`](Reader::advance).
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Parses the next line without a copy, if it is an ordinary job line and the input buffer holds a block from its
    /// start.
    ///
    /// All other lines are left to [`next_line`](Reader::next_line).
    fn parse_in_place(&mut self) -> Result<bool, ReadError> {
        if !self.columns.is_empty() {
            return Ok(false);
        }
        let available = match self.input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(ReadError::Io { line: self.line, error }),
        };
        let Some(block) = available.first_chunk() else { return Ok(false) };
        let Some(length) = parse_plain(block, &mut self.record) else { return Ok(false) };
        self.input.consume(length + 1);
        self.line += 1;
        Ok(true)
    }

    /// Calls `work` with each of the next lines that the input buffer holds completely, unparsed and without line end.
    /// Returns whether there was one.
    ///
    /// All other lines are left to [`next_raw`](Reader::next_raw).
    pub(crate) fn each_raw_in_place(&mut self, mut work: impl FnMut(&[u8])) -> Result<bool, ReadError> {
        // The first line may begin with a byte order mark.
        if self.line == 0 {
            return Ok(false);
        }
        let available = match self.input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(ReadError::Io { line: self.line, error }),
        };
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', available) {
            if end - start > LINE_MAX {
                break;
            }
            work(&available[start..end]);
            self.line += 1;
            start = end + 1;
        }
        self.input.consume(start);
        Ok(start > 0)
    }

    /// Returns the next line unparsed, without its line end, or `None` at the end.
    ///
    /// # Errors
    /// [`ReadError::TooLong`], [`ReadError::Io`].
    pub fn next_raw(&mut self) -> Result<Option<&[u8]>, ReadError> {
        Ok(if self.fill()? { Some(&self.buffer) } else { None })
    }

    /// Returns whether the line of the last [`next_raw`](Reader::next_raw) had a line end.
    pub fn has_line_end(&self) -> bool {
        self.has_line_end
    }

    /// Reads one line into the buffer, without line end and byte order mark; `false` at the end of
    /// the input.
    fn fill(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        if self.converted.is_some() {
            return self.fill_converted();
        }
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(ReadError::Io { line: self.line, error }),
            };
            let end = memchr::memchr(b'\n', available);
            let taken = end.unwrap_or(available.len());
            self.buffer.extend_from_slice(&available[..taken]);
            let at_end = available.is_empty();
            self.input.consume(taken + usize::from(end.is_some()));
            if self.buffer.len() > LINE_MAX {
                return Err(ReadError::TooLong { line: self.line + 1 });
            }
            if end.is_some() || at_end {
                self.has_line_end = end.is_some();
                let found = end.is_some() || !self.buffer.is_empty();
                if self.line == 0 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                    self.buffer.drain(..BYTE_ORDER_MARK.len());
                }
                self.line += u64::from(found);
                return Ok(found);
            }
        }
    }
}

/// Returns the buffer as text without trailing carriage returns. Invalid UTF-8 is replaced.
fn make_text(buffer: &mut Vec<u8>) -> &str {
    while buffer.last() == Some(&b'\r') {
        buffer.pop();
    }
    if std::str::from_utf8(buffer).is_err() {
        *buffer = String::from_utf8_lossy(buffer).into_owned().into_bytes();
    }
    std::str::from_utf8(buffer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// An input that fails once behind this text, and then ends.
    struct Failing<'a> {
        text: &'a [u8],
        failed: bool,
    }

    impl Read for Failing<'_> {
        fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("only read by lines"))
        }
    }

    impl BufRead for Failing<'_> {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            if self.text.is_empty() && !std::mem::replace(&mut self.failed, true) {
                return Err(io::Error::other("damage"));
            }
            Ok(self.text)
        }

        fn consume(&mut self, amount: usize) {
            self.text = &self.text[amount..];
        }
    }

    #[test]
    fn a_failed_read_is_reported_at_once() {
        let text = b"1 0 -1 1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n";
        let reader = || Reader::new(Failing { text, failed: false });
        let mut jobs = reader();
        assert!(jobs.next_job().is_ok_and(|job| job.is_some()));
        assert!(matches!(jobs.next_job(), Err(ReadError::Io { line: 1, .. })));
        let mut lines = reader();
        assert!(lines.next_raw().is_ok_and(|line| line.is_some()));
        assert!(matches!(lines.each_raw_in_place(|_| {}), Err(ReadError::Io { line: 1, .. })));
    }
}
