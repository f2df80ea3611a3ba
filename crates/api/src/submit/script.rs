//! The directives of a script.

use std::error::Error;
use std::fmt;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Args, Command, FromArgMatches};
use jiff::Zoned;

use super::slurm::SlurmDirectives;
use super::{SubmitOptions, instant};

/// The directives of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directives {
    /// The options. `#MISERLY` takes precedence over `#SBATCH`.
    pub options: SubmitOptions,
    /// Remarks on ignored directives, in order.
    pub warnings: Vec<Remark>,
}

/// A remark on a line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line, from 1.
    pub line: usize,
    /// The remark.
    pub message: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl Error for Remark {}

/// Reads the lines `#MISERLY` and `#SBATCH` of a script, up to its first command. Relative instants
/// count from `now`.
///
/// # Errors
/// The first invalid line: a meaningless value, or an unknown option of `#MISERLY`. Unknown options
/// of `#SBATCH` are only warnings, since they concern Slurm's machine.
pub fn directives(script: &str, now: &Zoned) -> Result<Directives, Remark> {
    let parser = Parser::new(now);
    let (mut own, mut slurm) = (SubmitOptions::default(), SlurmDirectives::default());
    let mut warnings = Vec::new();
    let mut last = 0;
    for (line, text) in head(script) {
        let remark = |message: String| Remark { line, message };
        if let Some(options) = directive(text, "#MISERLY") {
            own = parser.options(words(options).map_err(remark)?, None).map_err(remark)?.or(own);
        } else if let Some(options) = directive(text, "#SBATCH") {
            let ignored = |name: &str| warnings.push(remark(format!("nothing is made of #SBATCH {name}")));
            slurm.read(&words(options).map_err(remark)?, &parser, ignored).map_err(remark)?;
        } else {
            continue;
        }
        last = line;
    }
    let of_slurm = slurm.finish().map_err(|message| Remark { line: last, message })?;
    let options = own.or(of_slurm);
    warnings.extend(unread(script));
    Ok(Directives { options, warnings })
}

/// Returns the words of a line.
fn words(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| "a quote or an escape does not end".to_owned())
}

/// The parser of the options of a line, which is that of the command line.
pub(super) struct Parser(Command);

impl Parser {
    /// Returns a parser for which relative instants count from `now`.
    fn new(now: &Zoned) -> Parser {
        let command =
            Command::new("#MISERLY").no_binary_name(true).disable_help_flag(true).args_override_self(true);
        let with_any_value = |option: Arg| {
            let is_flag = option.get_num_args().is_some_and(|count| !count.takes_values());
            let takes_value = option.get_action().takes_values() && !is_flag;
            option.allow_hyphen_values(takes_value)
        };
        let when = |now: Zoned| move |text: &str| instant(text, &now);
        Parser(
            SubmitOptions::augment_args(command)
                .mut_args(with_any_value)
                .mut_arg("begin", |begin| begin.value_parser(when(now.clone())))
                .mut_arg("deadline", |deadline| deadline.value_parser(when(now.clone()))),
        )
    }

    /// Returns the options of some words. `name` is that of the only option if it has another one in its line.
    pub(super) fn options(&self, words: Vec<String>, name: Option<&str>) -> Result<SubmitOptions, String> {
        if words.iter().any(|word| word == "--") {
            return Err("no option --; a line has options only".to_owned());
        }
        let matches = self.0.clone().try_get_matches_from(words).map_err(|error| message(&error, name))?;
        SubmitOptions::from_arg_matches(&matches).map_err(|error| message(&error, name))
    }
}

/// Returns the message of an error in a line, without the usage of the command line. `name` stands for that of the option.
fn message(error: &clap::Error, name: Option<&str>) -> String {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let argument = context(ContextKind::InvalidArg);
    let option = name.or_else(|| argument.split_whitespace().next()).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            format!("no option {option}; `miserly submit --help` lists them")
        }
        ErrorKind::UnknownArgument => format!("{argument:?} belongs to no option"),
        ErrorKind::InvalidValue if context(ContextKind::InvalidValue).is_empty() => {
            format!("{option} needs a value")
        }
        ErrorKind::TooManyValues => format!("{option} takes no value"),
        ErrorKind::ValueValidation => match error.source() {
            Some(source) => format!("{option}: {source}"),
            None => format!("{option}: {:?} is no value of it", context(ContextKind::InvalidValue)),
        },
        _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

/// Returns the number of the first line of a text that would be a directive at the head of a script.
pub fn directive_line(text: &str) -> Option<usize> {
    let is_directive = |line: &str| {
        let line = line.trim_start_matches(BYTE_ORDER_MARK).trim_start();
        directive(line, "#MISERLY").or_else(|| directive(line, "#SBATCH")).is_some()
    };
    text.lines().position(is_directive).map(|position| position + 1)
}

/// The byte order mark of Unicode, which some editors write at the begin of a file.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns remarks on the directives of a script that are not read: those after its first command, and indented ones.
///
/// A later line `#!` begins another script, whose directives are not those of this one.
fn unread(script: &str) -> impl Iterator<Item = Remark> {
    let head = head(script).count();
    let lines = script.lines().enumerate().skip(1).take_while(|(_, text)| !text.starts_with("#!"));
    let is_read = move |index: usize, text: &str| index < head && !text.starts_with(char::is_whitespace);
    lines.filter(move |(index, text)| !is_read(*index, text) && directive_line(text).is_some()).map(
        move |(index, text)| {
            let mark = text.split_whitespace().next().unwrap_or_default();
            let why = if index < head { "it is indented" } else { "it is after the first command" };
            Remark { line: index + 1, message: format!("{mark} is not read: {why}") }
        },
    )
}

/// Returns the lines before the first command, with their numbers.
fn head(script: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = script.lines().zip(1..).map(|(text, line)| (line, text));
    lines.take_while(|(_, text)| text.trim().is_empty() || text.trim_start().starts_with('#'))
}

/// Returns the text after the mark, if the line has it.
fn directive<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.strip_prefix(mark).filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests;
