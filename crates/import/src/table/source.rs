//! Tables of every format as rows of cells.

use miserly_workload::Trace;

use super::cell::Cell;
use super::csv::{TextForm, TextRows};
use super::field::TableFormat;
use super::json::JsonRows;
use super::map::TableForm;
use super::parquet::ParquetRows;
use crate::error::{FieldError, ImportError};

/// The first bytes of Parquet.
pub(crate) const PARQUET: &[u8] = b"PAR1";

/// The columns to read, as their places in the table.
pub(crate) struct Wanted {
    pub(crate) columns: Vec<usize>,
    /// Most rows.
    pub(crate) rows: u64,
}

impl Wanted {
    /// Most columns.
    pub(crate) const MOST: usize = 40;
}

/// The work on a row: its cells, or why they are not valid, and its number from 1.
pub(crate) type RowWork<'a> = dyn FnMut(Result<&[Cell<'_>], FieldError>, u64) -> Result<(), ImportError> + 'a;

/// A table in memory, such as a data frame.
pub trait Frame {
    /// Returns the names of the columns.
    fn names(&self) -> Vec<String>;

    /// Calls `work` with the cells of these columns, by their places, of each row.
    ///
    /// # Errors
    /// The first error of `work`, or a column that has no cells.
    fn each(
        &mut self,
        columns: &[usize],
        work: &mut dyn FnMut(&[Cell<'_>]) -> Result<(), ImportError>,
    ) -> Result<(), ImportError>;
}

/// A table that was opened: the names of its columns are known.
pub(crate) struct Source<'a> {
    pub(crate) names: Vec<String>,
    rows: Rows<'a>,
}

enum Rows<'a> {
    Frame(&'a mut dyn Frame),
    Text(TextRows<'a>),
    Json(JsonRows<'a>),
    Parquet(ParquetRows),
}

impl<'a> Source<'a> {
    /// Returns a table in memory.
    pub(crate) fn of_frame(frame: &'a mut dyn Frame) -> Source<'a> {
        Source { names: frame.names(), rows: Rows::Frame(frame) }
    }

    /// Opens a table.
    pub(crate) fn open(
        trace: &'a Trace,
        form: &TableForm,
        delimiter: Option<u8>,
    ) -> Result<Source<'a>, ImportError> {
        let format = format_in(trace, form)?;
        let (names, rows) = match format {
            TableFormat::Parquet => {
                let rows = ParquetRows::open(trace)?;
                (rows.names(), Rows::Parquet(rows))
            }
            TableFormat::Json => {
                let rows = JsonRows::new(trace, form);
                (rows.names()?, Rows::Json(rows))
            }
            TableFormat::Csv | TableFormat::Text | TableFormat::Pbs => {
                let delimiter = delimiter.or(form.delimiter).unwrap_or(b',');
                let delimiter = (format != TableFormat::Text).then_some(delimiter);
                let mut rows = TextRows::open(trace, TextForm { delimiter })?;
                let names = match &form.names {
                    Some(names) => names.clone(),
                    None => rows.header()?,
                };
                (names, Rows::Text(rows))
            }
        };
        Ok(Source { names, rows })
    }

    /// Returns what the number of a row counts.
    pub(crate) fn unit(&self) -> &'static str {
        match self.rows {
            Rows::Text(_) => "line",
            Rows::Frame(_) | Rows::Json(_) | Rows::Parquet(_) => "row",
        }
    }

    /// Calls `work` with each row.
    pub(crate) fn each(&mut self, wanted: &Wanted, work: &mut RowWork<'_>) -> Result<(), ImportError> {
        match &mut self.rows {
            Rows::Frame(frame) => {
                let mut number = 0;
                frame.each(&wanted.columns, &mut |cells| {
                    number += 1;
                    work(Ok(cells), number)
                })
            }
            Rows::Text(rows) => rows.each(wanted, self.names.len(), work),
            Rows::Json(rows) => {
                let names: Vec<&str> =
                    wanted.columns.iter().map(|&column| self.names[column].as_str()).collect();
                rows.each(&names, wanted.rows, work)
            }
            Rows::Parquet(rows) => rows.each(wanted, work),
        }
    }
}

/// Returns the format of a table: that of its form, or else by its first bytes.
pub(crate) fn format_in(trace: &Trace, form: &TableForm) -> Result<TableFormat, ImportError> {
    match form.format {
        Some(format) => Ok(format),
        None => Ok(format_of(&trace.start(64)?)),
    }
}

/// Returns the format of a table with these first bytes.
pub(crate) fn format_of(start: &[u8]) -> TableFormat {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    match text.first() {
        _ if start.starts_with(PARQUET) => TableFormat::Parquet,
        Some(b'{' | b'[') => TableFormat::Json,
        _ => TableFormat::Csv,
    }
}
