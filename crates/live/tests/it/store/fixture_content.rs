//! Content of the fixture; also for the example that writes it.

use miserly_engine::JournalBatch;

use super::content::row;

/// Returns the content of the fixture.
pub(crate) fn fixture() -> JournalBatch {
    let rows = [(1, true), (2, false), (3, true), (8, false)]
        .map(|(number, ended)| row(number, ended, 1, 5000 * usize::from(number == 3) + 100));
    let lines = vec!["{\"at\":1}".to_owned(), "{\"at\":2}".to_owned()];
    JournalBatch { lines, rows: rows.into(), values: vec![("clock".into(), "17".into())] }
}
