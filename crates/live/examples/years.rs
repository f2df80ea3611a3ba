//! Measures the state of a daemon of constant load over years, and the start with a long journal.
//!
//! `cargo run --release -p miserly-live --example years -- miser 2 20 60 1000000`
//!
//! The arguments are the policy, the years, the jobs of each day, the days of `keep-history` (0 keeps
//! everything), and the lines of the long journal.

mod bench;

use std::path::Path;

use jiff::Timestamp;
use miserly_core::Span;
use miserly_engine::{Checkpoint, JournalBatch};
use miserly_live::store::Store;

use self::bench::{Bench, Failure, Load, now, size};

/// A day, in ticks.
const DAY: i64 = 86_400_000_000;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, usual: i64| arguments.get(nth).map_or(Ok(usual), |text| text.parse::<i64>());
    let policy = arguments.first().map_or("miser", |text| text);
    let folder = tempfile::tempdir_in(".")?;
    years(&folder.path().join("years"), policy, number(1, 2)?, number(2, 20)?, number(3, 60)?)?;
    long_journal(&folder.path().join("long"), number(4, 1_000_000)?)
}

/// Runs the same number of jobs each day, and prints the state at the end of each quarter.
fn years(folder: &Path, policy: &str, years: i64, jobs: i64, keep: i64) -> Result<(), Failure> {
    let keep_history = (keep > 0).then(|| Span::from_ticks(keep * DAY));
    let load = Load { policy: policy.to_owned(), cpus: 2, mixed: false, keep_history };
    let mut bench = Bench::open(folder, &load, 0)?;
    for day in 0..years * 364 {
        for nth in 0..jobs {
            bench.now = bench.now.max(day * DAY + nth * (DAY / jobs));
            bench.submit()?;
            bench.end_one()?;
        }
        if day % 91 == 90 {
            let at = bench.now;
            drop(bench);
            let segments = Store::open(folder)?.segments().count();
            println!("day {}: state {} kB, {segments} sealed segments", day + 1, size(folder) >> 10);
            bench = Bench::open(folder, &load, at + 1)?;
        }
    }
    Ok(())
}

/// Writes a journal of sealed segments, and prints the times of a start and of a whole check.
fn long_journal(folder: &Path, lines: i64) -> Result<(), Failure> {
    let mut store = Store::open(folder)?;
    let line = "x".repeat(300);
    for nth in 0..lines / 10_000 {
        let wall = Timestamp::from_second(nth)?;
        let checkpoint = Some(Checkpoint { line: "x".repeat(3000), wall });
        let lines = vec![line.clone(); 9999];
        store.commit(&JournalBatch { lines, checkpoint, ..JournalBatch::default() })?;
    }
    drop(store);
    let began = now();
    drop(Store::open(folder)?);
    println!("start with {lines} lines, {} MB: {:.2?}", size(folder) >> 20, began.elapsed());
    let began = now();
    // Nothing is damaged, so this only checks.
    Store::recover(folder, |_, _| Ok(()))?;
    println!("check of all segments: {:.2?}", began.elapsed());
    Ok(())
}
