//! The `miserly` binary: arguments in, tables and files out.

#[macro_use]
mod output;

mod args;

mod colour;

mod commands;

mod read_log;

mod run_options;

mod failure;

mod features;

mod help;

mod hints;

mod progress;

mod warnings;

mod page;

mod picture;

#[cfg(feature = "daemon")]
mod slurm_names;

#[cfg(all(test, feature = "full"))]
mod reference;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::args::{Cli, Command};
use crate::colour::ColourArg;
use crate::commands::success_of;

fn main() -> ExitCode {
    #[cfg(feature = "daemon")]
    if let Some(folder) = shim_folder() {
        return miserly_launch::shim::run(&folder);
    }
    #[cfg(feature = "daemon")]
    if let Some(name) = slurm_names::called() {
        return slurm_names::run(name);
    }
    let (cli, json) = parsed().unwrap_or_else(|error| hints::with_hints(error).exit());
    cli.color.apply();
    if !cli.command.handles_signals() {
        clean_up_on_interrupt();
    }
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::print_failure(json && cli.command.asks_daemon(), None, &error);
            failure::exit_code(&error)
        }
    }
}

/// Returns the folder of an attempt if this program is called as its shim.
///
/// Before the command line is parsed: the parser takes more than a megabyte, and each running job has a shim.
#[cfg(feature = "daemon")]
fn shim_folder() -> Option<std::path::PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    let (command, folder) = (arguments.next()?, arguments.next()?);
    let is_shim =
        command == "shim" && arguments.next().is_none() && !folder.as_encoded_bytes().starts_with(b"-");
    is_shim.then(|| folder.into())
}

/// Parses the command line. Returns it, and whether it requests JSON. Its errors and its help have colours as `--color` has it.
fn parsed() -> Result<(Cli, bool), clap::Error> {
    let colour = ColourArg::on_command_line(std::env::args_os().skip(1));
    let parse = |command: clap::Command| {
        let mut command = command.color(colour.of_clap());
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok((cli, has_json(&matches)))
    };
    // Only a help that is shown is made.
    match parse(Cli::command()) {
        Err(error) if help::is_help(&error) => parse(help::command_line()),
        parsed => parsed,
    }
}

/// Returns whether the innermost command has the option `--json`.
fn has_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => has_json(inner),
        None => matches!(matches.try_get_one::<bool>("json"), Ok(Some(true))),
    }
}

/// Installs a handler that removes unfinished files and ends the processes of a measurement at an interrupt.
fn clean_up_on_interrupt() {
    // Without the handler an interrupt only leaves a temporary file, so its failure is ignored.
    let _ = ctrlc::set_handler(|| {
        #[cfg(feature = "page")]
        miserly_terminal::leave();
        #[cfg(feature = "measured")]
        miserly_measured::clean_up();
        miserly_report::remove_unfinished();
        std::process::exit(failure::INTERRUPTED);
    });
}

/// Runs a command and returns its exit code, unless it fails.
fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Simulate(args) => success_of(commands::simulate::run(args)),
        Command::Compare(args) => success_of(commands::compare::run(args)),
        Command::WaitOf(args) => success_of(commands::wait_of::run(args)),
        Command::Forecast(args) => success_of(commands::forecast::run(args)),
        Command::WhatIf(args) => success_of(commands::what_if::run(args)),
        Command::Explain(args) => success_of(commands::explain::run(args)),
        Command::Matrix(args) => success_of(commands::matrix::run(args)),
        Command::Policies(args) => success_of(commands::policies::run(args)),
        Command::Workload(args) => commands::workload::run(args),
        Command::Experiment(args) => success_of(commands::experiment::run(args)),
        Command::Bench(args) => success_of(commands::bench::run(args)),
        Command::Reproduce(args) => success_of(commands::experiment::reproduce(args)),
        Command::Report(args) => success_of(commands::experiment::report(args)),
        #[cfg(feature = "daemon")]
        Command::OfDaemon(command) => commands::live::run_command(command),
        #[cfg(feature = "page")]
        Command::Top(args) => commands::top::run(args),
        #[cfg(feature = "page")]
        Command::Ui(args) => commands::ui::run(args),
        #[cfg(feature = "slurm")]
        Command::Slurm(args) => success_of(commands::slurm::run(args)),
        Command::Help(args) => success_of(help::run(args)),
        Command::Completions(args) => success_of(commands::shell::completions(args)),
        Command::Man(args) => success_of(commands::shell::man(args)),
        #[cfg(feature = "measured")]
        Command::Kernel(args) => success_of(commands::measured::kernel(args)),
    }
}
