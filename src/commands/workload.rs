//! `miserly workload`: what is in a log, what is wrong with it, and logs from a model or another format.

use anyhow::Context;
use miserly_report::{AtomicFile, check_json, check_text, describe_json, describe_text};
use miserly_workload::generate::{Feitelson96, MadeLog, Model, Shape, find_model};
use miserly_workload::{check, describe};

use crate::args::{CheckArgs, DescribeArgs, GenerateArgs, WorkloadArgs, WorkloadCommand};
use crate::commands::import;
use crate::output::{print, print_json};
use crate::run::open;

pub(crate) fn run(args: &WorkloadArgs) -> anyhow::Result<()> {
    match &args.command {
        WorkloadCommand::Describe(args) => describe_log(args),
        WorkloadCommand::Check(args) => check_log(args),
        WorkloadCommand::Generate(args) => generate_log(args),
        WorkloadCommand::Import(args) => import::run(args),
    }
}

fn describe_log(args: &DescribeArgs) -> anyhow::Result<()> {
    let description = describe(&open(&args.trace)?, args.procs, args.procs_field.into())?;
    if args.json {
        return print_json(&describe_json(&description, &args.estimate));
    }
    print(&describe_text(&description, &args.estimate))
}

fn check_log(args: &CheckArgs) -> anyhow::Result<()> {
    let report = check(&open(&args.trace)?, args.procs, args.procs_field.into())?;
    if args.json { print_json(&check_json(&report)) } else { print(&check_text(&report, args.lines)) }
}

fn generate_log(args: &GenerateArgs) -> anyhow::Result<()> {
    let log = args.model()?.generate()?;
    match &args.output {
        None => write_to_stdout(&log),
        Some(path) => {
            let written = AtomicFile::create(path).and_then(|(file, mut output)| {
                log.write(&mut output)?;
                file.commit(output)
            });
            written.with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

fn write_to_stdout(log: &MadeLog) -> anyhow::Result<()> {
    let mut text = Vec::new();
    log.write(&mut text)?;
    print(&String::from_utf8_lossy(&text))
}

impl GenerateArgs {
    /// The model with its parameters set.
    pub(crate) fn model(&self) -> anyhow::Result<Box<dyn Model>> {
        let entry = find_model(&self.model)?;
        let shape = Shape {
            jobs: self.jobs.unwrap_or(entry.shape.jobs),
            procs: self.procs.unwrap_or(entry.shape.procs),
            load: self.load.unwrap_or(entry.shape.load),
            seed: self.seed.unwrap_or(entry.shape.seed),
        };
        if self.repeat_after_end && self.model == Feitelson96::NAME {
            return Ok(Box::new(Feitelson96 { repeat_after_end: true, ..Feitelson96::with_shape(shape) }));
        }
        Ok((entry.build)(shape))
    }
}
