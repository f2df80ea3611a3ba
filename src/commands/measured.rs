//! `miserly reproduce miser-1999`: a paper that is measured on real processes, and the programs that it runs.

use std::path::PathBuf;

use anyhow::{Context, bail};
use miserly_kernels::Kernel;
use miserly_measured::{NAME, Options, Program, ProgramTask, guard, measure, run_program};

use super::experiment::{print_page, summary};
use crate::args::{KernelArgs, KernelName, ReproduceArgs};
use crate::output::print;

/// Measures the paper and prints its page. Fails if a mechanism fails, whatever the times.
pub(crate) fn reproduce(args: &ReproduceArgs) -> anyhow::Result<()> {
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{NAME}-results")));
    let measured = &args.measured;
    let options = Options {
        exe: std::env::current_exe().context("cannot find the file of this program")?,
        command: command(args),
        quick: measured.quick,
        scale: measured.scale.unwrap_or(1.0),
        repeats: measured.repeats.unwrap_or(3),
        seed: measured.seed.unwrap_or(1),
        threads: measured.threads.and_then(|threads| usize::try_from(threads).ok()),
        cgroup: measured.cgroup.as_ref().map(std::path::absolute).transpose()?,
        only: args.only.clone(),
        folder: folder.clone(),
    };
    let found = measure(&options, &|progress| note!("{NAME}: {progress}"))?;
    print_page(&found.page, args.json)?;
    note!("report: {}", folder.join("report.html").display());
    if !args.json {
        print(&format!("\n{}\n", summary(&found.page)))?;
    }
    if let [first, ..] = &found.failures[..] {
        bail!("{} mechanisms failed: {first}; the section Mechanisms has all", found.failures.len());
    }
    Ok(())
}

/// Returns the command that repeats the measurement.
fn command(args: &ReproduceArgs) -> String {
    let measured = &args.measured;
    let mut words = vec!["miserly reproduce".to_owned(), NAME.to_owned()];
    words.extend(args.only.as_ref().map(|part| format!("--only {part}")));
    words.extend(measured.quick.then(|| "--quick".to_owned()));
    words.extend(measured.scale.map(|scale| format!("--scale {scale}")));
    words.extend(measured.repeats.map(|repeats| format!("--repeats {repeats}")));
    words.extend(measured.threads.map(|threads| format!("--threads {threads}")));
    words.extend(measured.seed.map(|seed| format!("--seed {seed}")));
    words.extend(measured.cgroup.as_ref().map(|path| format!("--cgroup {}", path.display())));
    words.join(" ")
}

/// Runs a program, and prints its record as a line of JSON.
pub(crate) fn kernel(args: &KernelArgs) -> anyhow::Result<()> {
    let task = match args.name {
        KernelName::Ep => ProgramTask::Kernel(Kernel::Ep, args.rounds),
        KernelName::Bt => ProgramTask::Kernel(Kernel::Bt, args.rounds),
        KernelName::Cg => ProgramTask::Kernel(Kernel::Cg, args.rounds),
        KernelName::Stamp => ProgramTask::Stamp,
        KernelName::Burn => ProgramTask::Burn,
        KernelName::Hold => ProgramTask::Hold(args.rounds),
        KernelName::Guard => {
            let folder = args.folder.as_deref().context("a guard has a folder")?;
            return Ok(guard(folder, args.group.as_deref())?);
        }
    };
    let threads = usize::try_from(args.threads)?;
    let program = Program { task, threads, cpus: args.cpus.clone(), nice: args.nice, parent: args.parent };
    let record = run_program(&program)?;
    print(&(serde_json::to_string(&record)? + "\n"))
}
