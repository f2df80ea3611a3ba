//! A second table with a row for each key.

use std::collections::BTreeMap;
use std::path::Path;

use miserly_workload::Trace;

use super::cell::Cell;
use super::map::{ColumnMap, Join};
use super::source::{Source, Wanted};
use crate::error::ImportError;

/// The rows of the second table by their keys.
pub(crate) struct Joined {
    /// The names of its columns, each with the name of the table and a point before.
    pub(crate) names: Vec<String>,
    rows: BTreeMap<Box<[u8]>, Box<[OwnedCell]>>,
}

/// A cell that owns its text.
enum OwnedCell {
    Cell(Cell<'static>),
    Text(Box<[u8]>),
}

impl Joined {
    /// Reads the table beside `table`, plain or gzipped. Of rows with the same key, the first applies.
    pub(crate) fn read(map: &ColumnMap, join: &Join, table: &str) -> Result<Joined, ImportError> {
        let folder = Path::new(table).parent().unwrap_or(Path::new(""));
        let names = ["", ".gz", ".zst"].map(|end| folder.join(format!("{}{end}", join.file.value)));
        let Some(path) = names.iter().find(|path| path.is_file()) else {
            let problem = format!("no file {:?} in the folder of {table}", join.file.value);
            return Err(map.wrong(join.file.place, problem).into());
        };
        let trace = Trace::open(path)?;
        let mut source = Source::open(&trace, &join.form, None)?;
        let Some(key) = source.names.iter().position(|name| *name == join.key) else {
            let problem = format!("{} has no column {:?}", trace.name(), join.key);
            return Err(map.wrong(join.file.place, problem).into());
        };
        let names: Vec<String> = source.names.iter().map(|name| format!("{}.{name}", join.name)).collect();
        // Only the columns that the map mentions are kept.
        let is_used = |name: &String| map.mentions(name);
        let kept: Vec<usize> = (0..names.len()).filter(|&column| is_used(&names[column])).collect();
        let wanted = Wanted {
            columns: kept.iter().copied().chain([key]).take(Wanted::MOST).collect(),
            rows: u64::MAX,
        };
        let mut rows = BTreeMap::new();
        source.each(&wanted, &mut |cells, number| {
            let cells = cells.map_err(|error| error.at(trace.name(), number))?;
            let Some((key, cells)) = cells.split_last() else { return Ok(()) };
            let owned = cells.iter().map(|cell| match *cell {
                Cell::Text(text) => OwnedCell::Text(text.into()),
                Cell::Int(number) => OwnedCell::Cell(Cell::Int(number)),
                Cell::Float(number) => OwnedCell::Cell(Cell::Float(number)),
                Cell::Instant(micros) => OwnedCell::Cell(Cell::Instant(micros)),
                Cell::Local(micros) => OwnedCell::Cell(Cell::Local(micros)),
                Cell::Null => OwnedCell::Cell(Cell::Null),
            });
            if let Some(key) = key.text() {
                rows.entry(key.as_bytes().into()).or_insert_with(|| owned.collect());
            }
            Ok(())
        })?;
        Ok(Joined { names: kept.into_iter().map(|column| names[column].clone()).collect(), rows })
    }

    /// Returns a cell of the row with this key, or no value.
    pub(crate) fn cell(&self, key: &str, column: usize) -> Cell<'_> {
        match self.rows.get(key.as_bytes()).and_then(|row| row.get(column)) {
            Some(OwnedCell::Cell(cell)) => *cell,
            Some(OwnedCell::Text(text)) => Cell::Text(text),
            None => Cell::Null,
        }
    }
}
