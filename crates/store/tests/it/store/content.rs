//! Rows of stores; also for the examples.

use miserly_engine::JobRow;

/// Returns a job with a body of `size` bytes that depend on `version`.
pub(crate) fn row(number: i64, ended: bool, version: i64, size: usize) -> JobRow {
    let body: String =
        format!("{{\"job\":{number},\"version\":{version}}} ").chars().cycle().take(size).collect();
    let queue = if number % 3 == 0 { "short" } else { "batch" };
    let array = (number % 4 == 0).then_some(number / 8 * 8);
    JobRow {
        number,
        ended,
        uid: u32::try_from(1000 + number % 2).unwrap_or_default(),
        queue: queue.into(),
        array,
        body,
        problem: None,
    }
}
