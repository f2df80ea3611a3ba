//! Content of the fixture; also for the example that writes it.

use jiff::Timestamp;
use miserly_engine::{Checkpoint, JournalBatch};

use super::content::row;

/// Returns the content of the fixture.
pub(crate) fn fixture() -> JournalBatch {
    let rows = [(1, true), (2, false), (3, true), (8, false)]
        .map(|(number, ended)| row(number, ended, 1, 5000 * usize::from(number == 3) + 100));
    let lines = vec!["{\"at\":1}".to_owned(), "{\"at\":2}".to_owned()];
    JournalBatch {
        lines,
        rows: rows.into(),
        values: vec![("clock".into(), "17".into())],
        ..JournalBatch::default()
    }
}

/// Returns what the fixtures since format 3 have besides: a checkpoint, and a line after it.
pub(crate) fn checkpoint() -> JournalBatch {
    let wall = Timestamp::from_microsecond(1_800_000_000_000_000).unwrap_or_default();
    let checkpoint = Checkpoint { line: "{\"at\":2}".to_owned(), wall };
    JournalBatch { lines: vec!["{}".to_owned()], checkpoint: Some(checkpoint), ..JournalBatch::default() }
}
