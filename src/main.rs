//! The `miserly` binary: arguments in, tables and files out.

#[macro_use]
mod output;

mod args;

mod commands;

mod run;

mod progress;

mod warnings;

mod page;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| without_hidden_commands(error).exit());
    // Those two commands handle signals themselves.
    if !matches!(cli.command, Command::Daemon(_) | Command::Shim(_)) {
        end_tidily();
    }
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            commands::live::print_failure(cli.command.asks_daemon_for_json(), None, &error);
            commands::live::exit_code(&error).unwrap_or(ExitCode::from(2))
        }
    }
}

/// Removes the hidden commands from the suggestions of an error in the command line.
fn without_hidden_commands(mut error: clap::Error) -> clap::Error {
    let suggested = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::Strings(names)) = error.get(suggested) {
        let hidden: Vec<String> = Cli::command()
            .get_subcommands()
            .filter(|command| command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        let shown = names.iter().filter(|name| !hidden.contains(name)).cloned().collect();
        error.insert(suggested, ContextValue::Strings(shown));
    }
    error
}

/// Installs a handler that removes unfinished files at an interrupt.
fn end_tidily() {
    // Without the handler an interrupt only leaves a temporary file, so its failure is ignored.
    let _ = ctrlc::set_handler(|| {
        miserly_report::remove_unfinished();
        std::process::exit(130);
    });
}

/// Runs a command and returns its exit code, unless it fails.
fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Simulate(args) => commands::simulate::run(args)?,
        Command::Compare(args) => commands::compare::run(args)?,
        Command::WaitOf(args) => commands::wait_of::run(args)?,
        Command::Explain(args) => commands::explain::run(args)?,
        Command::Matrix(args) => commands::matrix::run(args)?,
        Command::Policies(args) => commands::policies::run(args)?,
        Command::Workload(args) => return commands::workload::run(args),
        Command::Experiment(args) => commands::experiment::run(args)?,
        Command::Reproduce(args) => commands::experiment::reproduce(args)?,
        Command::Report(args) => commands::experiment::report(args)?,
        Command::Daemon(args) => commands::live::daemon::run(args)?,
        Command::Replay(args) => return commands::live::replay::run(args),
        Command::Submit(args) => return commands::live::submit(args),
        Command::Queue(args) => return commands::live::queue(args),
        Command::Show(args) => return commands::live::show(args),
        Command::Logs(args) => return commands::live::logs(args),
        Command::Wait(args) => return commands::live::wait(args),
        Command::Cancel(args) => return commands::live::cancel(args),
        Command::Hold(args) => return commands::live::hold(args),
        Command::Release(args) => return commands::live::release(args),
        Command::Requeue(args) => return commands::live::requeue(args),
        Command::Extend(args) => return commands::live::extend(args),
        Command::Pools(args) => return commands::live::pools(args),
        Command::Status(args) => return commands::live::status(args),
        Command::Drain(args) => return commands::live::drain(args),
        Command::Export(args) => commands::live::export::run(args)?,
        Command::Completions(args) => commands::shell::completions(args)?,
        Command::Man(args) => commands::shell::man(args)?,
        Command::Shim(args) => return Ok(miserly_launch::shim::run(&args.dir)),
    }
    Ok(ExitCode::SUCCESS)
}
