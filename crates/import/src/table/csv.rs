//! Tables as text: values with a separator or between blanks.

use std::io::{self, BufRead};

use miserly_workload::Trace;
use miserly_workload::swf::ReadError;

use super::cell::Cell;
use super::source::{RowWork, Wanted};
use crate::error::{FieldError, ImportError};

/// Longest row in bytes. A vector in a cell takes some thousand.
const LONGEST: usize = 1 << 24;

/// The form of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextForm {
    /// The separator; `None` for blanks.
    pub(crate) delimiter: Option<u8>,
}

/// The rows of a text.
pub(crate) struct TextRows<'a> {
    trace: &'a Trace,
    input: Box<dyn BufRead + Send + 'a>,
    form: TextForm,
    line: u64,
    buffer: Vec<u8>,
}

/// The places of the cells of a row: their bytes in it, and whether they are in quotes.
type Cells = Vec<(usize, usize, bool)>;

impl<'a> TextRows<'a> {
    pub(crate) fn open(trace: &'a Trace, form: TextForm) -> Result<TextRows<'a>, ImportError> {
        Ok(TextRows { trace, input: trace.unpacked()?, form, line: 0, buffer: vec![] })
    }

    /// Returns the names in the header line.
    pub(crate) fn header(&mut self) -> Result<Vec<String>, ImportError> {
        let mut cells = Cells::new();
        if !self.next(&mut cells)? {
            return Ok(vec![]);
        }
        let row = self.buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.buffer);
        let skipped = self.buffer.len() - row.len();
        let name = |&(start, end, is_quoted): &(usize, usize, bool)| {
            let cell = &self.buffer[start.max(skipped)..end.max(skipped)];
            let cell = if is_quoted { unquoted(cell) } else { cell.to_vec() };
            String::from_utf8_lossy(cell.trim_ascii()).into_owned()
        };
        Ok(cells.iter().map(name).collect())
    }

    /// Calls `work` with the wanted cells of each row and its line. `width` is the number of columns.
    pub(crate) fn each(
        &mut self,
        wanted: &Wanted,
        width: usize,
        work: &mut RowWork<'_>,
    ) -> Result<(), ImportError> {
        let mut places = Cells::new();
        let mut unquoted_cells: Vec<Vec<u8>> = vec![];
        let mut left = wanted.rows;
        while left > 0 {
            let first = self.line + 1;
            if !self.next(&mut places)? {
                return Ok(());
            }
            if places.len() == 1 && places[0].0 == places[0].1 {
                continue;
            }
            left -= 1;
            if places.len() != width {
                let error = FieldError::Width { found: places.len(), expected: width };
                work(Err(error), first)?;
                continue;
            }
            unquoted_cells.clear();
            for &column in &wanted.columns {
                let (start, end, is_quoted) = places[column];
                unquoted_cells.extend(is_quoted.then(|| unquoted(&self.buffer[start..end])));
            }
            let mut quoted = unquoted_cells.iter();
            let mut cells = [Cell::Null; Wanted::MOST];
            for (cell, &column) in cells.iter_mut().zip(&wanted.columns) {
                let (start, end, is_quoted) = places[column];
                let text = if is_quoted {
                    quoted.next().map_or(&[][..], |text| text)
                } else {
                    &self.buffer[start..end]
                };
                *cell = Cell::Text(text);
            }
            work(Ok(&cells[..wanted.columns.len()]), first)?;
        }
        Ok(())
    }

    /// Reads the next row into the buffer; `false` at the end.
    fn next(&mut self, cells: &mut Cells) -> Result<bool, ImportError> {
        self.buffer.clear();
        loop {
            let start = self.buffer.len();
            if !self.next_line()? {
                // Quotes that are still open.
                return if start == 0 { Ok(false) } else { Err(self.open_quote()) };
            }
            self.line += 1;
            if split(&self.buffer, self.form.delimiter, cells) {
                return Ok(true);
            }
            if self.buffer.len() > LONGEST {
                return Err(self.open_quote());
            }
            self.buffer.push(b'\n');
        }
    }

    fn open_quote(&self) -> ImportError {
        let value = self.buffer.iter().take(40).map(|&byte| char::from(byte)).collect();
        let error =
            FieldError::Value { field: "row".into(), value, expected: "a quote at the end of a value" };
        error.at(self.trace.name(), self.line)
    }

    /// Appends a line without its end.
    fn next_line(&mut self) -> Result<bool, ImportError> {
        let failed = |error: io::Error, line| self.trace.read_error(ReadError::Io { line, error }).into();
        let start = self.buffer.len();
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error, self.line)),
            };
            let end = memchr::memchr(b'\n', available);
            let taken = end.unwrap_or(available.len());
            self.buffer.extend_from_slice(&available[..taken]);
            let at_end = available.is_empty();
            self.input.consume(taken + usize::from(end.is_some()));
            if self.buffer.len() > LONGEST {
                return Err(ImportError::TooLong { name: self.trace.name().into(), line: self.line + 1 });
            }
            if end.is_some() || at_end {
                let found = end.is_some() || self.buffer.len() > start;
                if self.buffer.len() > start && self.buffer.last() == Some(&b'\r') {
                    self.buffer.pop();
                }
                return Ok(found);
            }
        }
    }
}

/// Finds the cells of a row; `false` if it ends in a quoted cell.
fn split(row: &[u8], delimiter: Option<u8>, cells: &mut Cells) -> bool {
    cells.clear();
    let Some(delimiter) = delimiter else {
        let mut at = 0;
        for word in row.split(u8::is_ascii_whitespace) {
            if !word.is_empty() {
                cells.push((at, at + word.len(), false));
            }
            at += word.len() + 1;
        }
        if cells.is_empty() {
            cells.push((0, 0, false));
        }
        return true;
    };
    let mut start = 0;
    loop {
        let quoted = row.get(start) == Some(&b'"');
        let end = if quoted {
            let Some(end) = quote_end(row, start + 1) else { return false };
            end + memchr::memchr(delimiter, &row[end..]).unwrap_or(row.len() - end)
        } else if cells.is_empty() && memchr::memchr(b'"', row).is_none() {
            // The usual row has no quotes.
            each_place(row, delimiter, |end| {
                cells.push((start, end, false));
                start = end + 1;
            });
            row.len()
        } else {
            start + memchr::memchr(delimiter, &row[start..]).unwrap_or(row.len() - start)
        };
        cells.push((start, end, quoted));
        if end == row.len() {
            return true;
        }
        start = end + 1;
    }
}

/// Calls `work` with each place of a byte. Cells are short, so eight bytes are tested at once.
fn each_place(row: &[u8], byte: u8, mut work: impl FnMut(usize)) {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let wanted = u64::from_ne_bytes([byte; 8]);
    let (blocks, rest) = row.as_chunks::<8>();
    for (block, from) in blocks.iter().zip((0..).step_by(8)) {
        let other = u64::from_le_bytes(*block) ^ wanted;
        // The highest bit of each byte that is the wanted one.
        let mut found = !(((other & LOW) + LOW) | other | LOW);
        while found != 0 {
            work(from + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
    }
    let from = row.len() - rest.len();
    rest.iter().zip(from..).filter(|(found, _)| **found == byte).for_each(|(_, at)| work(at));
}

/// Returns the place behind the quote that closes a cell. A doubled quote is part of it.
fn quote_end(row: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'"', &row[at..])? + 1;
        if row.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

fn unquoted(cell: &[u8]) -> Vec<u8> {
    let inner = cell.strip_prefix(b"\"").unwrap_or(cell);
    let inner = inner.trim_ascii_end();
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    let mut text = Vec::with_capacity(inner.len());
    let mut after_quote = false;
    for &byte in inner {
        after_quote = byte == b'"' && !after_quote;
        if !after_quote {
            text.push(byte);
        }
    }
    text
}
