//! The `miserly` binary: arguments in, tables and files out.

#[macro_use]
mod output;

mod args;

mod colour;

mod commands;

mod run_options;

mod failure;

mod hints;

mod progress;

mod warnings;

mod page;

#[cfg(test)]
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, Command, SlurmCommand};
use crate::colour::ColourArg;

fn main() -> ExitCode {
    if let Some(folder) = shim_folder() {
        return miserly_launch::shim::run(&folder);
    }
    let cli = parsed().unwrap_or_else(|error| hints::with_hints(error).exit());
    cli.color.apply();
    // The first three commands handle signals themselves. A kernel is a job, which a signal ends.
    let own = matches!(cli.command, Command::Daemon(_) | Command::Shim(_) | Command::Events(_));
    // These read signals, and restore the terminal.
    let own = own || matches!(cli.command, Command::Run(_) | Command::Alloc(_) | Command::Attach(_));
    // A driver ends after its step.
    let drives =
        matches!(&cli.command, Command::Slurm(args) if matches!(args.command, SlurmCommand::Drive(_)));
    if !own && !drives && !matches!(cli.command, Command::Kernel(_)) {
        clean_up_on_interrupt();
    }
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::print_failure(cli.command.asks_daemon_for_json(), None, &error);
            failure::exit_code(&error)
        }
    }
}

/// Returns the folder of an attempt if this program is called as its shim.
///
/// Before the command line is parsed: the parser takes more than a megabyte, and each running job has a shim.
fn shim_folder() -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    let (command, folder) = (arguments.next()?, arguments.next()?);
    let is_shim =
        command == "shim" && arguments.next().is_none() && !folder.as_encoded_bytes().starts_with(b"-");
    is_shim.then(|| folder.into())
}

/// Parses the command line. Its errors and its help have colours as `--color` has it.
fn parsed() -> Result<Cli, clap::Error> {
    let colour = ColourArg::on_command_line(std::env::args_os().skip(1));
    let mut command = Cli::command().color(colour.of_clap());
    Cli::from_arg_matches(&command.try_get_matches_from_mut(std::env::args_os())?)
        .map_err(|error| error.format(&mut command))
}

/// Installs a handler that removes unfinished files and ends the processes of a measurement at an interrupt.
fn clean_up_on_interrupt() {
    // Without the handler an interrupt only leaves a temporary file, so its failure is ignored.
    let _ = ctrlc::set_handler(|| {
        miserly_terminal::leave();
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
        Command::Reproduce(args) => success_of(commands::experiment::reproduce(args)),
        Command::Report(args) => success_of(commands::experiment::report(args)),
        Command::Daemon(args) => success_of(commands::live::daemon::run(args)),
        Command::Shadow(args) => success_of(commands::live::shadow(args)),
        Command::Slurm(args) => success_of(commands::slurm::run(args)),
        Command::Ui(args) => commands::ui::run(args),
        Command::Replay(args) => commands::live::replay::run(args),
        Command::Submit(args) => commands::live::submit(args),
        Command::Run(args) => commands::live::run(args),
        Command::Alloc(args) => commands::live::alloc(args),
        Command::Attach(args) => commands::live::attach(args),
        Command::Queue(args) => commands::live::queue(args),
        Command::Top(args) => commands::live::top(args),
        Command::Show(args) => commands::live::show(args),
        Command::Logs(args) => commands::live::logs(args),
        Command::Wait(args) => commands::live::wait(args),
        Command::Cancel(args) => commands::live::cancel(args),
        Command::Hold(args) => commands::live::hold(args),
        Command::Release(args) => commands::live::release(args),
        Command::Requeue(args) => commands::live::requeue(args),
        Command::Extend(args) => commands::live::extend(args),
        Command::Signal(args) => commands::live::signal(args),
        Command::Pause(args) => commands::live::pause(args),
        Command::Resume(args) => commands::live::resume(args),
        Command::Modify(args) => commands::live::modify(args),
        Command::Reservation(args) => commands::live::reservation(args),
        Command::Limits(args) => commands::live::limits(args),
        Command::Pools(args) => commands::live::pools(args),
        Command::Status(args) => commands::live::status(args),
        Command::Usage(args) => commands::live::usage(args),
        Command::Events(args) => commands::live::events(args),
        Command::Hook(args) => commands::live::hook(args),
        Command::Metrics(args) => commands::live::metrics(args),
        Command::Drain(args) => commands::live::drain(args),
        Command::Stop(args) => commands::live::stop(args),
        Command::Reload(args) => commands::live::reload(args),
        Command::Export(args) => success_of(commands::live::export::run(args)),
        Command::Backup(args) => success_of(commands::live::backup::run(args)),
        Command::Completions(args) => success_of(commands::shell::completions(args)),
        Command::Man(args) => success_of(commands::shell::man(args)),
        Command::Kernel(args) => success_of(commands::measured::kernel(args)),
        Command::Shim(args) => Ok(miserly_launch::shim::run(&args.dir)),
    }
}

/// Returns the exit code of a command that has no exit code of its own.
fn success_of(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
