//! The directives of a script.

use std::fmt;

use jiff::Zoned;

use super::options::{OWN, Row, SLURM, Subject, Written, next};
use super::quantity::Dialect;
use super::set::OptionCollector;
use super::submit_options::SubmitOptions;

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

impl std::error::Error for Remark {}

/// Reads the lines `#MISERLY` and `#SBATCH` of a script, up to its first command. Relative instants
/// count from `now`.
///
/// # Errors
/// The first invalid line: a meaningless value, or an unknown option of `#MISERLY`. Unknown options
/// of `#SBATCH` are only warnings, since they concern Slurm's machine.
pub fn directives(script: &str, now: &Zoned) -> Result<Directives, Remark> {
    let (mut own, mut slurm) = (OptionCollector::default(), OptionCollector::default());
    let mut warnings = Vec::new();
    let mut last = 0;
    for (line, text) in head(script) {
        let mut left_out = |message: String| warnings.push(Remark { line, message });
        let read = if let Some(options) = directive(text, "#MISERLY") {
            gather(options, OWN, Dialect::Own, now, &mut own, &mut left_out)
        } else if let Some(options) = directive(text, "#SBATCH") {
            gather(options, SLURM, Dialect::Slurm, now, &mut slurm, &mut left_out)
        } else {
            continue;
        };
        read.map_err(|message| Remark { line, message })?;
        last = line;
    }
    let of_slurm = slurm.options().map_err(|message| Remark { line: last, message })?;
    let options = own.options().map_err(|message| Remark { line: last, message })?.or(of_slurm);
    warnings.extend(unread(script));
    Ok(Directives { options, warnings })
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

/// Adds the options of a line.
fn gather(
    options: &str,
    rows: &[Row],
    dialect: Dialect,
    now: &Zoned,
    gathered: &mut OptionCollector,
    left_out: &mut impl FnMut(String),
) -> Result<(), String> {
    let words = shlex::split(options).ok_or("a quote or an escape does not end")?;
    let mut words = words.iter().peekable();
    while let Some(written) = next(&mut words, rows)? {
        match written {
            Written::Known(subject, value) => {
                let set = gathered.set(subject, value, dialect, now);
                set.map_err(|message| format!("{}: {message}", name(rows, subject)))?
                    .into_iter()
                    .for_each(&mut *left_out);
            }
            Written::Unknown(name) if dialect == Dialect::Slurm => {
                left_out(format!("nothing is made of #SBATCH {name}"));
            }
            Written::Unknown(name) => {
                return Err(format!("no option {name}; `miserly submit --help` lists them"));
            }
        }
    }
    Ok(())
}

fn name(rows: &[Row], subject: Subject) -> String {
    rows.iter().find(|row| row.2 == subject).map_or_else(String::new, |row| format!("--{}", row.0))
}

#[cfg(test)]
mod tests;
