//! The page of the commands, from the declarations of the command line.

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};

use super::markdown::{anchor, code, escaped, table};
use super::names::Names;
use crate::args::Cli;

pub(super) fn page() -> String {
    let mut program = Cli::command();
    program.build();
    let rows = visible(&program).map(summary);
    format!(
        "# Commands\n\n\
         Every command prints its own part of this page with `--help`, and a shorter one with `-h`.\n\
         `miserly --version` prints the version.\n\n{}{}",
        table(["command", "purpose"], rows),
        visible(&program).map(|command| section(command, 2)).collect::<String>()
    )
}

/// Returns each command with its options, their values and their defaults.
pub(super) fn names() -> Names {
    let mut program = Cli::command();
    program.build();
    let mut names = Names::default();
    let global = program.get_arguments().filter(|arg| is_listed(arg));
    names.add(program.get_name(), global.map(name_of_argument));
    add_commands(&mut names, &program);
    names
}

fn add_commands(names: &mut Names, of: &Command) {
    for command in visible(of) {
        let args = command.get_arguments().filter(|arg| is_listed(arg) && !arg.is_global_set());
        names.add(name(command), args.map(name_of_argument));
        add_commands(names, command);
    }
}

/// Returns the names of an argument, its values and its default in one line.
fn name_of_argument(arg: &Arg) -> String {
    let shorts = arg.get_short().into_iter().chain(arg.get_visible_short_aliases().unwrap_or_default());
    let mut words: Vec<String> = arg.get_index().map(|index| index.to_string()).into_iter().collect();
    words.push(arg.to_string());
    words.extend(arg.get_visible_aliases().unwrap_or_default().iter().map(|alias| format!("--{alias}")));
    words.extend(shorts.map(|short| format!("-{short}")));
    let values = values(arg);
    if !values.is_empty() {
        words.push(values.iter().map(PossibleValue::get_name).collect::<Vec<_>>().join("|"));
    }
    words.extend(default_in_words(arg).map(|default| format!("= {default}")));
    words.join(" ")
}

/// Returns the default of an argument. One that depends on others is in its help.
fn default_in_words(arg: &Arg) -> Option<String> {
    let defaults = defaults(arg);
    if !defaults.is_empty() {
        return Some(defaults.join(","));
    }
    let help = help(arg);
    let (_, rest) = help.split_once("[default: ")?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn help(arg: &Arg) -> String {
    arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default()
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

fn summary(command: &Command) -> [String; 2] {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    [format!("[`{}`](#{})", name(command), anchor(name(command))), escaped(&about)]
}

/// Returns a command and its own commands, as sections of this level.
fn section(command: &Command, level: usize) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().lines().map(str::trim);
    let mut text = format!(
        "\n{} {}\n\n{}\n\n```text\n{}\n```\n",
        "#".repeat(level),
        name(command),
        escaped(&about.unwrap_or_default()),
        usage.collect::<Vec<_>>().join("\n")
    );
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| is_listed(arg)).collect();
    let mut headings: Vec<&str> = vec![];
    for arg in &args {
        if !headings.contains(&heading(arg)) {
            headings.push(heading(arg));
        }
    }
    for of in headings {
        let args = args.iter().filter(|arg| heading(arg) == of);
        text += &format!("\n**{of}**\n{}", args.map(|arg| argument(arg)).collect::<String>());
    }
    let mut inner = visible(command).peekable();
    if inner.peek().is_some() {
        text += &format!("\n{}", table(["command", "purpose"], visible(command).map(summary)));
    }
    text + &inner.map(|command| section(command, level + 1)).collect::<String>()
}

/// Returns whether the page lists an argument. All commands have the same two others.
fn is_listed(arg: &Arg) -> bool {
    !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

fn heading(arg: &Arg) -> &str {
    let usual = if arg.is_positional() { "Arguments" } else { "Options" };
    arg.get_help_heading().unwrap_or(usual)
}

/// Returns an item of a list: the argument, its help, its values and its default.
fn argument(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let mut parts: Vec<String> = help(arg).split("\n\n").map(escaped).collect();
    let values = values(arg);
    if values.iter().any(|value| value.get_help().is_some()) {
        parts.push(values.iter().map(described).collect::<Vec<_>>().join("\n  "));
    } else if !values.is_empty() {
        let names: Vec<String> = values.iter().map(|value| code(value.get_name())).collect();
        parts.push(format!("Values: {}.", names.join(", ")));
    }
    let defaults: Vec<String> = defaults(arg).iter().map(|value| code(value)).collect();
    if !defaults.is_empty() {
        parts.push(format!("Default: {}.", defaults.join(", ")));
    }
    format!("\n- {short}`{arg}`\n\n  {}\n", parts.join("\n\n  "))
}

/// Returns the named values that an argument can have.
fn values(arg: &Arg) -> Vec<PossibleValue> {
    if !arg.get_action().takes_values() || arg.is_hide_possible_values_set() {
        return vec![];
    }
    arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect()
}

fn defaults(arg: &Arg) -> Vec<String> {
    if !arg.get_action().takes_values() || arg.is_hide_default_value_set() {
        return vec![];
    }
    arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect()
}

fn described(value: &PossibleValue) -> String {
    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
    format!("- `{}`: {}", value.get_name(), escaped(&help))
}
