//! Content of stores; also for the example that writes the fixture.

use miserly_live::store::{Batch, Row};

/// Returns a job whose body is `size` bytes that depend on `version`.
pub(crate) fn row(number: i64, ended: bool, version: i64, size: usize) -> Row {
    let body: String =
        format!("{{\"job\":{number},\"version\":{version}}} ").chars().cycle().take(size).collect();
    let queue = if number % 3 == 0 { "short" } else { "batch" };
    let array = (number % 4 == 0).then_some(number / 8 * 8);
    Row {
        number,
        ended,
        uid: u32::try_from(1000 + number % 2).unwrap_or_default(),
        queue: queue.into(),
        array,
        body,
    }
}

/// Returns the content of the fixture.
pub(crate) fn fixture() -> Batch {
    let rows = [(1, true), (2, false), (3, true), (8, false)]
        .map(|(number, ended)| row(number, ended, 1, 5000 * usize::from(number == 3) + 100));
    let lines = vec!["{\"at\":1}".to_owned(), "{\"at\":2}".to_owned()];
    Batch { lines, rows: rows.into(), meta: vec![("clock".into(), "17".into())] }
}
