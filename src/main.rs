//! The `miserly` binary: arguments in, tables and files out.

mod args;

mod commands;

mod run;

mod progress;

mod output;

mod page;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Without the handler an interrupt only leaves a temporary file behind, so its failure is no reason to stop.
    let _ = ctrlc::set_handler(|| {
        miserly_report::remove_unfinished();
        std::process::exit(130);
    });
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command; its exit code, unless it fails.
fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Simulate(args) => commands::simulate::run(args)?,
        Command::Compare(args) => commands::compare::run(args)?,
        Command::Explain(args) => commands::explain::run(args)?,
        Command::Policies(args) => commands::policies::run(args)?,
        Command::Workload(args) => return commands::workload::run(args),
        Command::Experiment(args) => commands::experiment::run(args)?,
        Command::Reproduce(args) => commands::experiment::reproduce(args)?,
        Command::Report(args) => commands::experiment::report(args)?,
        Command::Export(args) => commands::live::export::run(args)?,
        Command::Completions(args) => commands::shell::completions(args)?,
        Command::Man(args) => commands::shell::man(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
