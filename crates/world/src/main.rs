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
use miserly_world::{Failure, Script, run, script, shrink, write_out};

use self::reached::Reached;

mod reached;

/// Simulates the whole daemon, one script for each seed.
#[derive(Debug, Parser)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
struct Args {
    /// The seeds, such as 0..2000.
    #[arg(long, default_value = "0..2000", value_parser = range)]
    seeds: Range<u64>,
    /// Steps of each script.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// Makes every script a wide one, with restores of backups, torn commits and failed openings; else one in ten is.
    #[arg(long)]
    wide: bool,
    /// Lets shims wait for the windows of promised jobs in every script; else they do in one of three.
    #[arg(long)]
    waits: bool,
    /// Lets the first queue of every script write suspended jobs out.
    #[arg(long)]
    write_out: bool,
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
    /// Prints a failing script as it is, and does not shorten it.
    #[arg(long)]
    as_is: bool,
    /// Prints the marks in the code with their counts. From 2000 seeds on, a mark that is never reached is an error.
    #[arg(long)]
    marks: bool,
    /// Prints the marks as JSON.
    #[arg(long, requires = "marks")]
    json: bool,
}

/// Of so many seeds one has a wide script.
const WIDE: u64 = 10;

impl Args {
    /// Returns the script of a seed.
    fn of_seed(&self, seed: u64) -> Script {
        let mut script = script(seed, self.steps, self.wide || seed % WIDE == WIDE - 1);
        script.machine.waits |= self.waits;
        if self.write_out {
            write_out(seed, &mut script);
        }
        script
    }
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
        return play(&args, &args.of_seed(args.seeds.start));
    }
    let failures = play_seeds(&args);
    for (seed, failure) in &failures {
        println!(
            "seed {seed}, step {}: {}",
            failure.step,
            failure.what.chars().take(400).collect::<String>()
        );
    }
    match failures.first() {
        Some((seed, failure)) => report(&args, &args.of_seed(*seed), failure),
        None => report_marks(&args),
    }
}

/// Prints the marks, and checks that enough seeds have reached those that they can.
fn report_marks(args: &Args) -> Result<()> {
    if !args.marks {
        return Ok(());
    }
    let reached = Reached::now();
    if args.json {
        println!("{}", reached.to_json());
    } else {
        print!("{reached}");
    }
    let seeds = args.seeds.end - args.seeds.start;
    let differences = if seeds < reached::SEEDS { vec![] } else { reached.differences(seeds) };
    if differences.is_empty() {
        return Ok(());
    }
    bail!("marks: {} (crates/world/unreached lists those that cannot be reached)", differences.join("\n"))
}

fn play(args: &Args, script: &Script) -> Result<()> {
    let outcome = run(script);
    if args.trace {
        println!("{}", outcome.trace);
    }
    outcome.failure.map_or(Ok(()), |failure| report(args, script, &failure))
}

/// Prints the shortest script that fails so, or the script as it is.
fn report(args: &Args, script: &Script, failure: &Failure) -> Result<()> {
    let short = if args.as_is { script.clone() } else { shrink(script, failure) };
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
                    let outcome = run(&args.of_seed(seed));
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
    if !args.json {
        println!("{steps} steps, {jobs} jobs, {batches} batches");
    }
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort_by_key(|(seed, _)| *seed);
    failures
}
