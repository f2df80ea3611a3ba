//! Measures the engine over the real store with many jobs, without processes.
//!
//! `cargo run --release -p miserly-live --example waiting-jobs -- miser 10000 3000`
//! `cargo run --release -p miserly-live --example waiting-jobs -- miser 100000 0 10000`
//!
//! The arguments are the policy, the number of waiting jobs, the number of jobs that run to their
//! early ends, and the number of running jobs. Without the last one, two jobs run, and all jobs are
//! equal: each early end then moves every promise. With it, jobs differ in processors and time.

#[path = "../bench/mod.rs"]
mod bench;

mod measure;

mod requests;

use std::path::Path;

use miserly_api::model::Filter;
use miserly_engine::DaemonRequest;

use bench::{Bench, Failure, Load, now, size};
use measure::{Written, repeat, resident};

/// The number of repetitions of each request.
const REPEATED: i64 = 9;

/// The last submissions that are measured apart: all others wait before them.
const LAST: usize = 1000;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let policy = arguments.next().unwrap_or_else(|| "miser".to_owned());
    let waiting: usize = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let short: usize = arguments.next().map_or(Ok(3000), |text| text.parse())?;
    let running: Option<u32> = arguments.next().map(|text| text.parse()).transpose()?;
    let folder = tempfile::tempdir_in(".")?;
    let load = Load { policy, cpus: running.unwrap_or(2), mixed: running.is_some(), keep_history: None };
    crowd(&folder.path().join("crowd"), &load, waiting)?;
    early_ends(&folder.path().join("short"), &load, short)
}

/// Measures requests while many jobs wait.
fn crowd(folder: &Path, load: &Load, waiting: usize) -> Result<(), Failure> {
    let mut bench = Bench::open(folder, load, 0)?;
    submit(&mut bench, folder, load, waiting)?;
    println!("memory: {} MB", resident() >> 10);
    let head = i64::from(load.cpus) + 1;
    let last = i64::from(load.cpus) + i64::try_from(waiting)?;
    let middle = i64::midpoint(head, last);
    repeat("cancel at the head", folder, head..head + REPEATED, |job| bench.cancel(job))?;
    repeat("cancel in the middle", folder, middle..middle + REPEATED, |job| bench.cancel(job))?;
    repeat("cancel at the tail", folder, (last - REPEATED..=last).rev(), |job| bench.cancel(job))?;
    repeat("early end", folder, 0..REPEATED, |_| bench.end_one().map(drop))?;
    repeat("quote", folder, 0..REPEATED, |_| bench.quote())?;
    repeat("show", folder, 0..REPEATED, |_| bench.ask(DaemonRequest::Job(middle - 1)).map(drop))?;
    let page = || DaemonRequest::Jobs(Filter::default());
    repeat("list, first page", folder, 0..REPEATED, |_| bench.ask(page()).map(drop))?;
    repeat("list, all pages", folder, 0..3, |_| bench.list_all().map(drop))?;
    repeat("status", folder, 0..REPEATED, |_| bench.ask(DaemonRequest::Status).map(drop))?;
    let now = bench.now;
    drop(bench);
    repeat("start", folder, 1..3, |nth| Bench::open(folder, load, now + nth * 1000).map(drop))?;
    let mut bench = Bench::open(folder, load, now + 5000)?;
    repeat("cancel of all that wait", folder, 0..1, |_| bench.cancel_range(head, last).map(drop))
}

/// Submits the jobs that run and those that wait.
fn submit(bench: &mut Bench, folder: &Path, load: &Load, waiting: usize) -> Result<(), Failure> {
    let jobs = waiting + load.cpus as usize;
    let first = jobs.saturating_sub(LAST);
    repeat("submit, the first ones", folder, 0..first, |_| bench.submit().map(drop))?;
    repeat("submit, the last ones", folder, first..jobs, |_| bench.submit().map(drop))
}

/// Measures the ends of jobs that use little of their time.
fn early_ends(folder: &Path, load: &Load, jobs: usize) -> Result<(), Failure> {
    if jobs == 0 {
        return Ok(());
    }
    let mut bench = Bench::open(folder, load, 0)?;
    for _ in 0..jobs {
        bench.submit()?;
    }
    let (before, began, mut ended) = (Written::now(), now(), 0_u32);
    while bench.end_one()? {
        ended += 1;
    }
    let rate = f64::from(ended) / began.elapsed().as_secs_f64();
    println!(
        "{ended} early ends: {rate:.0} jobs/s, {:.1} kB written each, state {} MB, memory {} MB",
        before.kilobytes() / f64::from(ended.max(1)),
        size(folder) >> 20,
        resident() >> 10
    );
    Ok(())
}
