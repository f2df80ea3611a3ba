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
    // Those two see to signals themselves.
    if !matches!(cli.command, Command::Daemon(_) | Command::Shim(_)) {
        end_tidily();
    }
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Leaves no half-written file behind when it is interrupted.
fn end_tidily() {
    // Without the handler an interrupt only leaves a temporary file behind, so its failure is no reason to stop.
    let _ = ctrlc::set_handler(|| {
        miserly_report::remove_unfinished();
        std::process::exit(130);
    });
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
        Command::Daemon(args) => commands::live::daemon::run(args)?,
        Command::Completions(args) => commands::shell::completions(args)?,
        Command::Man(args) => commands::shell::man(args)?,
        Command::Shim(args) => return Ok(miserly_launch::shim::run(&args.dir)),
    }
    Ok(ExitCode::SUCCESS)
}
