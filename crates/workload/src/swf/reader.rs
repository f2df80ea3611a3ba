//! A log as a stream of lines.

use std::fmt;
use std::io::{self, BufRead};

use super::parse::{LineError, is_blank, parse_line};
use super::record::Record;

/// The longest line that is taken for text. Real ones have a few hundred bytes.
const LINE_MAX: usize = 1 << 16;

/// What some editors put before the first line: the byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line of a log.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A comment, the `;` included, without its line end.
    Comment(&'a str),
    /// A job.
    Job(&'a Record),
    /// Nothing but blanks.
    Blank,
}

/// What stopped the reader, and where: `line 3: 17 fields where the format has 18`.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A job line that is not one.
    Malformed {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        error: LineError,
    },
    /// A line too long to be text.
    TooLong {
        /// The line's number, from 1.
        line: u64,
    },
    /// The bytes did not come.
    Io {
        /// The last whole line, from 1.
        line: u64,
        /// What went wrong.
        error: io::Error,
    },
}

impl ReadError {
    /// The line at which it happened, from 1.
    pub fn line(&self) -> u64 {
        match self {
            ReadError::Malformed { line, .. } | ReadError::TooLong { line } => *line,
            ReadError::Io { line, .. } => line + 1,
        }
    }

    /// What happened there.
    pub fn problem(&self) -> String {
        match self {
            ReadError::Malformed { error, .. } => error.to_string(),
            ReadError::TooLong { .. } => {
                format!("over {LINE_MAX} bytes without a line end; this is no Standard Workload Format")
            }
            ReadError::Io { error, .. } => match error.kind() {
                // Only what is packed knows that it should go on.
                io::ErrorKind::UnexpectedEof => {
                    "the gzipped data stops in the middle, so the file seems truncated; fetch it again".into()
                }
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                    format!("the gzipped data is damaged ({error}); fetch the file again")
                }
                _ => format!("cannot read on: {error}"),
            },
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line(), self.problem())
    }
}

/// Reads a log line by line. Holds one line at a time, whatever the length of the log.
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    record: Record,
    line: u64,
}

impl<R: BufRead> Reader<R> {
    /// A reader of uncompressed text.
    pub fn new(input: R) -> Reader<R> {
        Reader { input, buffer: Vec::with_capacity(256), record: Record::unknown(), line: 0 }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next line; `None` at the end.
    ///
    /// After [`ReadError::Malformed`] the reader goes on with the line after it; the other errors are final.
    ///
    /// # Errors
    /// If the line is no job line, or the input fails.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        if !self.fill()? {
            return Ok(None);
        }
        let Reader { buffer, record, line, .. } = self;
        match buffer.iter().find(|&&byte| !is_blank(byte)) {
            None => Ok(Some(Line::Blank)),
            Some(b';') => Ok(Some(Line::Comment(make_text(buffer)))),
            Some(_) => match parse_line(buffer, record) {
                Ok(()) => Ok(Some(Line::Job(record))),
                Err(error) => Err(ReadError::Malformed { line: *line, error }),
            },
        }
    }

    /// The next job, comments and blank lines passed over; `None` at the end.
    ///
    /// # Errors
    /// As [`next_line`](Reader::next_line).
    pub fn next_job(&mut self) -> Result<Option<&Record>, ReadError> {
        Ok(if self.advance()? { Some(&self.record) } else { None })
    }

    /// Goes on to the next job; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, ReadError> {
        while !self.parse_in_place()? {
            match self.next_line()? {
                None => return Ok(false),
                Some(Line::Job(_)) => break,
                Some(Line::Comment(_) | Line::Blank) => {}
            }
        }
        Ok(true)
    }

    /// The job that [`advance`](Reader::advance) went on to.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Parses the next line where it stands, without a copy, if it is a job's and the input holds all of it.
    ///
    /// What says no here is left to [`next_line`](Reader::next_line), which also meets the input's errors.
    fn parse_in_place(&mut self) -> Result<bool, ReadError> {
        // The first line may begin with a byte order mark.
        if self.line == 0 {
            return Ok(false);
        }
        let Ok(available) = self.input.fill_buf() else { return Ok(false) };
        let Some(end) = memchr::memchr(b'\n', available).filter(|&end| end <= LINE_MAX) else {
            return Ok(false);
        };
        let line = &available[..end];
        if line.iter().find(|&&byte| !is_blank(byte)).is_none_or(|&byte| byte == b';') {
            return Ok(false);
        }
        let parsed = parse_line(line, &mut self.record);
        self.input.consume(end + 1);
        self.line += 1;
        match parsed {
            Ok(()) => Ok(true),
            Err(error) => Err(ReadError::Malformed { line: self.line, error }),
        }
    }

    /// The next line as it stands, without its line end, whatever is in it; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError::TooLong`], [`ReadError::Io`].
    pub fn next_raw(&mut self) -> Result<Option<&[u8]>, ReadError> {
        Ok(if self.fill()? { Some(&self.buffer) } else { None })
    }

    /// Gets one line into the buffer, without its line end, the first without its byte order mark; `false` at the end of the input.
    fn fill(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
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

/// The buffer as text without carriage returns at its end, bytes that are no UTF-8 replaced.
fn make_text(buffer: &mut Vec<u8>) -> &str {
    while buffer.last() == Some(&b'\r') {
        buffer.pop();
    }
    if std::str::from_utf8(buffer).is_err() {
        *buffer = String::from_utf8_lossy(buffer).into_owned().into_bytes();
    }
    std::str::from_utf8(buffer).unwrap_or_default()
}
