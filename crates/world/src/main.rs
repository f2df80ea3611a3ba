//! Plays the scripts of seeds, or one script, and shrinks failing ones.

use std::fs;
use std::ops::Range;
use std::panic;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use clap::Parser;
use miserly_world::{Failure, Script, run, script, shrink};

/// Simulates the whole daemon, one script for each seed.
#[derive(Debug, Parser)]
struct Args {
    /// The seeds, such as 0..2000.
    #[arg(long, default_value = "0..2000", value_parser = range)]
    seeds: Range<u64>,
    /// Steps of each script.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// Plays this script instead.
    #[arg(long)]
    script: Option<PathBuf>,
    /// Writes a failing script, shortened, into this file.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Prints all events.
    #[arg(long)]
    trace: bool,
    /// Goes on after a failure, and lists all.
    #[arg(long)]
    all: bool,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.ok_or_else(|| format!("{text:?} is no range such as 0..2000"))
}

fn main() -> Result<()> {
    let args = Args::parse();
    // A panic of the engine is a failure of a script, and said there.
    panic::set_hook(Box::new(|_| {}));
    if let Some(path) = &args.script {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let script: Script = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        return play(&args, &script);
    }
    if args.trace {
        return play(&args, &script(args.seeds.start, args.steps));
    }
    let failures = play_seeds(&args);
    for (seed, failure) in &failures {
        println!(
            "seed {seed}, step {}: {}",
            failure.step,
            failure.what.chars().take(400).collect::<String>()
        );
    }
    let Some((seed, failure)) = failures.first() else { return Ok(()) };
    report(&args, &script(*seed, args.steps), failure)
}

fn play(args: &Args, script: &Script) -> Result<()> {
    let outcome = run(script);
    if args.trace {
        println!("{}", outcome.trace);
    }
    outcome.failure.map_or(Ok(()), |failure| report(args, script, &failure))
}

/// Prints the shortest script that fails so.
fn report(args: &Args, script: &Script, failure: &Failure) -> Result<()> {
    let short = shrink(script, failure);
    println!("{short}");
    if let Some(failure) = run(&short).failure {
        println!("step {}: {}", failure.step, failure.what);
    }
    if let Some(path) = &args.keep {
        fs::write(path, short.to_json())?;
    }
    bail!("{}", failure.what.chars().take(200).collect::<String>())
}

/// Plays the scripts of all seeds on all processors. Returns the failures by seed; only one unless all are wanted.
fn play_seeds(args: &Args) -> Vec<(u64, Failure)> {
    let next = AtomicU64::new(args.seeds.start);
    let failures = Mutex::new(vec![]);
    let [steps, jobs, batches] = [0; 3].map(AtomicU64::new);
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let found = || failures.lock().map_or(true, |found| !found.is_empty());
                    if seed >= args.seeds.end || (!args.all && found()) {
                        return;
                    }
                    let outcome = run(&script(seed, args.steps));
                    steps.fetch_add(args.steps as u64, Ordering::Relaxed);
                    jobs.fetch_add(outcome.jobs as u64, Ordering::Relaxed);
                    batches.fetch_add(outcome.batches, Ordering::Relaxed);
                    if let (Some(failure), Ok(mut failures)) = (outcome.failure, failures.lock()) {
                        failures.push((seed, failure));
                    }
                }
            });
        }
    });
    let [steps, jobs, batches] = [steps, jobs, batches].map(AtomicU64::into_inner);
    println!("{steps} steps, {jobs} jobs, {batches} batches");
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort_by_key(|(seed, _)| *seed);
    failures
}
