//! The help: the commands in groups, and an example for each.

use anstyle::{AnsiColor, Effects, Style};
use anyhow::Context;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory};

use crate::args::{Cli, HelpArgs};
use crate::colour::colours;
use crate::output::{print, width};

/// The groups of the first help, each with the commands that most users need.
const GROUPS: [(&str, &str); 3] = [
    ("Logs", "compare simulate wait-of forecast what-if explain policies workload experiment reproduce"),
    ("Jobs", "submit run queue show logs wait cancel hold release modify top ui"),
    ("Operate", "daemon status pools usage reservation drain reload stop backup slurm-names hook slurm"),
];

/// The first command of each group.
const START: [(&str, &str); 3] = [
    ("compare", "miserly compare              six policies on an embedded log"),
    ("submit", "miserly submit -t 10m CMD    a job, with a promised start"),
    ("daemon", "miserly daemon --init        a configuration for this machine"),
];

/// An example of each command, a line each, below the name of the part of the program that has the command. A command without
/// one has that of the first command below it.
pub(crate) const EXAMPLES: &str = include_str!("examples.txt");

/// Returns the command line with its help: the commands in groups, and an example for each command.
pub(crate) fn command_line() -> Command {
    let command = with_examples(Cli::command(), "");
    let text = grouped(&command);
    command.override_help(text)
}

/// Returns whether an error of the command line is a help that was asked for.
pub(crate) fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Prints the help of the program, of all its commands, or of one.
pub(crate) fn run(args: &HelpArgs) -> anyhow::Result<()> {
    let mut command = if args.all { with_examples(Cli::command(), "") } else { command_line() };
    command.build();
    for name in &args.commands {
        let inner = command.find_subcommand(name).cloned();
        command = inner.with_context(|| format!("no command {name:?}; miserly help --all lists them"))?;
    }
    let help = if args.commands.is_empty() { command.render_help() } else { command.render_long_help() };
    let text = if colours(&std::io::stdout()) { help.ansi().to_string() } else { help.to_string() };
    print(&format!("{}\n", text.trim_end()))
}

/// Adds the examples to a command and those below it.
fn with_examples(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(&name, |command| {
            let command = match example(&path) {
                Some(example) => command.after_help(format!("Example:\n  {example}")),
                None => command,
            };
            with_examples(command, &path)
        });
    }
    command
}

fn example(path: &str) -> Option<&'static str> {
    EXAMPLES.lines().find(|line| is_of(path, line))
}

/// Returns whether a line is the example of a command, or of one below it.
fn is_of(path: &str, line: &str) -> bool {
    let rest = line.strip_prefix("miserly ").and_then(|line| line.strip_prefix(path));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Returns the part of the program that has a command, also if this build has not got it.
pub(crate) fn part_of(command: &str) -> Option<&'static str> {
    let at = EXAMPLES.lines().position(|line| is_of(command, line))?;
    EXAMPLES.lines().take(at).filter_map(|line| line.strip_prefix("# ")).last()
}

/// Returns the help with the commands in groups.
fn grouped(command: &Command) -> String {
    let title = Style::new().effects(Effects::BOLD | Effects::UNDERLINE);
    let name = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = String::new();
    for line in wrapped(&about, 0) {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&format!("\n{title}Usage:{title:#} miserly [OPTIONS] <COMMAND>\n"));
    for (group, names) in GROUPS {
        let there: Vec<&Command> =
            names.split(' ').filter_map(|name| command.find_subcommand(name)).collect();
        if there.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{title}{group}:{title:#}\n"));
        for command in there {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let mut lines = wrapped(&about, INDENT).into_iter();
            let first = lines.next().unwrap_or_default();
            text.push_str(&format!("  {name}{:<12}{name:#} {first}\n", command.get_name()));
            for line in lines {
                text.push_str(&format!("{:INDENT$}{line}\n", ""));
            }
        }
    }
    text.push_str(&format!("\n{title}Start with:{title:#}\n"));
    for (of, line) in START {
        if command.find_subcommand(of).is_some() {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text.push_str(
        "\nmiserly help --all lists all commands and options; miserly help COMMAND explains one.\n",
    );
    text
}

/// The column of the texts of commands.
const INDENT: usize = 15;

/// Returns the lines of a text beside an indent.
fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let room = width().min(100).saturating_sub(indent).max(20);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn paths(command: &Command, path: &str, found: &mut Vec<String>) {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let path = if path.is_empty() {
                command.get_name().to_owned()
            } else {
                format!("{path} {}", command.get_name())
            };
            paths(command, &path, found);
            found.push(path);
        }
    }

    #[test]
    fn each_command_has_an_example_that_can_be_given() {
        let mut found = vec![];
        paths(&Cli::command(), "", &mut found);
        for path in found {
            let example = example(&path).unwrap_or_else(|| panic!("{path} has no example"));
            assert!(example.starts_with(&format!("miserly {path}")), "{path}: {example}");
            if let Err(error) = Cli::try_parse_from(example.split(' ')) {
                panic!("{example}: {error}");
            }
        }
    }

    #[test]
    fn the_first_help_names_commands_that_are_there() {
        let command = Cli::command();
        let known = |name: &str| {
            command.find_subcommand(name).is_some() || crate::features::of_command(name).is_some()
        };
        for (group, names) in GROUPS {
            assert!(names.split(' ').all(known), "{group}");
            assert!(names.split(' ').count() <= 12, "{group}: some ten commands");
        }
        assert!(START.iter().all(|(name, _)| known(name)));
    }
}
