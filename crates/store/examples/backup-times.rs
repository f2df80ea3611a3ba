//! Measures the time of a backup, and the times of commits meanwhile.
//!
//! `cargo run --release -p miserly-store --example backup-times -- 10000`

use std::error::Error;
use std::fs;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use miserly_engine::JournalBatch;
use miserly_store::{Backups, Store};

#[path = "../tests/it/store/content.rs"]
mod content;

/// The bytes of a job with its environment.
const SIZE: usize = 3000;

fn main() -> Result<(), Box<dyn Error>> {
    let jobs: i64 = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let folder = tempfile::tempdir_in(".")?;
    let mut store = Store::open(folder.path())?;
    for first in (1..=jobs).step_by(500) {
        let rows = (first..=jobs.min(first + 499)).map(|job| content::row(job, job % 10 != 0, 1, SIZE));
        let rows = rows.collect();
        store.commit(&JournalBatch {
            rows,
            lines: vec!["x".repeat(300); 1000],
            ..JournalBatch::default()
        })?;
    }
    println!("{jobs} jobs, {} MB", fs::metadata(folder.path().join("store/jobs.db"))?.len() >> 20);
    let mut left = 200;
    let some = |wait| {
        thread::sleep(wait);
        left -= 1;
        left > 0
    };
    println!("commits alone: {}", commits(&mut store, some)?);
    let (path, (done, end)) = (folder.path().to_owned(), channel::<()>());
    let began = now();
    let backup = thread::spawn(move || {
        let taken = Backups::new(&path).take(3).map(drop);
        drop(done);
        taken
    });
    let goes_on = |wait| end.recv_timeout(wait) == Err::<(), _>(RecvTimeoutError::Timeout);
    println!("commits during the backup: {}", commits(&mut store, goes_on)?);
    backup.join().map_err(|_| "the backup panicked")??;
    println!("the backup: {:?}", began.elapsed());
    Ok(())
}

/// Commits every few milliseconds, and returns the number, the median and the longest time of a
/// commit.
fn commits(store: &mut Store, mut goes_on: impl FnMut(Duration) -> bool) -> Result<String, Box<dyn Error>> {
    let (mut times, mut number) = (vec![], 0);
    while goes_on(Duration::from_millis(5)) {
        number += 1;
        let rows = vec![content::row(number, false, 2, SIZE)];
        let began = now();
        store.commit(&JournalBatch { rows, lines: vec!["x".repeat(300)], ..JournalBatch::default() })?;
        times.push(began.elapsed());
    }
    times.sort();
    let median = times.get(times.len() / 2);
    Ok(format!("{}, median {median:?}, longest {:?}", times.len(), times.last()))
}

#[allow(clippy::disallowed_methods, reason = "elapsed time is the result")]
fn now() -> Instant {
    Instant::now()
}
