//! The options of Slurm's commands: one table for the parser, the help and the page for users.

use std::ffi::OsString;
use std::sync::LazyLock;

/// The table, which docs/how-to/slurm-names.md shows, too.
const TABLE: &str = include_str!("options.txt");

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Works,
    NoEffect,
    Refused,
}

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    None,
    Required,
    Optional,
}

/// An option of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptionRow {
    pub(super) long: &'static str,
    pub(super) letter: Option<char>,
    pub(super) value: Value,
    pub(super) class: Class,
    /// What it does, or why it does nothing.
    pub(super) note: &'static str,
}

/// The commands of a section, and its options.
type Section = (Vec<&'static str>, Vec<OptionRow>);

static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let mut sections: Vec<Section> = vec![];
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        if let Some(names) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((names.split(' ').collect(), vec![]));
        } else if let Some((_, rows)) = sections.last_mut() {
            rows.extend(row(line));
        }
    }
    sections
});

/// Returns the option of a line of the table.
fn row(line: &'static str) -> Option<OptionRow> {
    let (option, note) = line.split_once('\t')?;
    let mut words = option.split(' ');
    let class = match words.next()? {
        "+" => Class::Works,
        "~" => Class::NoEffect,
        _ => Class::Refused,
    };
    let letter = words.next()?.chars().next().filter(|letter| *letter != '.');
    let long = words.next()?;
    let (long, value) = match (long.strip_suffix("=?"), long.strip_suffix('=')) {
        (Some(long), _) => (long, Value::Optional),
        (None, Some(long)) => (long, Value::Required),
        (None, None) => (long, Value::None),
    };
    Some(OptionRow { long, letter, value, class, note })
}

/// Returns the options of a command.
pub(super) fn rows(command: &str) -> impl Iterator<Item = OptionRow> {
    let is_of = move |section: &&Section| section.0.contains(&command);
    SECTIONS.iter().filter(is_of).flat_map(|(_, rows)| rows).copied()
}

/// The options and the other words of a command line. Of an option that is given twice, the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    options: Vec<(OptionRow, Option<String>)>,
    /// The words that are no options.
    pub(super) words: Vec<OsString>,
}

impl Given {
    /// Returns the value of an option: empty for one without a value.
    pub(super) fn value(&self, long: &str) -> Option<&str> {
        self.all(long).last()
    }

    /// Returns the values of an option in the order of the command line.
    pub(super) fn all(&self, long: &str) -> impl Iterator<Item = &str> {
        self.options
            .iter()
            .filter(move |(row, _)| row.long == long)
            .map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// Returns the parts of all values of an option, which have commas between them.
    pub(super) fn list(&self, long: &str) -> Vec<String> {
        let parts = self.all(long).flat_map(|value| value.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// Returns whether an option is given.
    pub(super) fn has(&self, long: &str) -> bool {
        self.value(long).is_some()
    }

    /// Returns the given options, in order.
    pub(super) fn options(&self) -> impl Iterator<Item = (&OptionRow, Option<&str>)> {
        self.options.iter().map(|(row, value)| (row, value.as_deref()))
    }

    /// Returns these options after those of `before`, over which they take precedence.
    pub(super) fn after(self, before: Given) -> Given {
        let mut options = before.options;
        options.retain(|(row, _)| !self.has(row.long));
        options.extend(self.options);
        Given { options, words: self.words }
    }
}

/// Reads the words of a command line. `stops` at the first word that is no option, where the command of a job begins.
///
/// # Errors
/// The message for an option that Slurm does not have, or without its value. A refused option is an error with its reason.
pub(super) fn parse(
    command: &str,
    words: impl IntoIterator<Item = OsString>,
    stops: bool,
) -> Result<Given, String> {
    let table: Vec<OptionRow> = rows(command).collect();
    let mut given = Given::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            given.words.extend(words);
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, attached) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let row = long_option(&table, name)?;
            let value = value_of(row, attached, &format!("--{}", row.long), &mut words)?;
            given.options.push((row, value));
        } else if text.len() > 1 && text.starts_with('-') {
            letters(&table, text, &mut words, &mut given)?;
        } else {
            given.words.push(word);
            if stops {
                given.words.extend(words);
                break;
            }
        }
    }
    refuse(&given)?;
    Ok(given)
}

/// Reads the options of a word such as `-hj12`.
fn letters(
    table: &[OptionRow],
    word: &str,
    words: &mut impl Iterator<Item = OsString>,
    given: &mut Given,
) -> Result<(), String> {
    let mut rest = &word[1..];
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let row = table.iter().find(|row| row.letter == Some(letter)).copied();
        let row = row.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        if row.value == Value::None {
            given.options.push((row, None));
            continue;
        }
        let attached = Some(rest).filter(|rest| !rest.is_empty());
        let value = value_of(row, attached, &format!("-{letter}"), words)?;
        given.options.push((row, value));
        break;
    }
    Ok(())
}

/// Returns the option with this name, or the only one that begins with it, as getopt finds it.
fn long_option(table: &[OptionRow], name: &str) -> Result<OptionRow, String> {
    if let Some(row) = table.iter().find(|row| row.long == name) {
        return Ok(*row);
    }
    let found: Vec<&OptionRow> = table.iter().filter(|row| row.long.starts_with(name)).collect();
    match found[..] {
        [row] => Ok(*row),
        [] => Err(format!("unrecognized option '--{name}'")),
        _ => Err(format!("option '--{name}' is ambiguous")),
    }
}

fn value_of(
    row: OptionRow,
    attached: Option<&str>,
    written: &str,
    words: &mut impl Iterator<Item = OsString>,
) -> Result<Option<String>, String> {
    match (row.value, attached) {
        (Value::None, Some(_)) => Err(format!("option '{written}' doesn't allow an argument")),
        (Value::None | Value::Optional, None) => Ok(None),
        (_, Some(value)) => Ok(Some(value.to_owned())),
        (Value::Required, None) => {
            let next = words.next().ok_or_else(|| format!("option '{written}' requires an argument"))?;
            next.into_string().map(Some).map_err(|_| format!("{written}: the value is not UTF-8 text"))
        }
    }
}

/// Refuses options that cannot be honoured.
fn refuse(given: &Given) -> Result<(), String> {
    match given.options.iter().find(|(row, _)| row.class == Class::Refused) {
        Some((row, _)) => Err(format!("--{}: {}", row.long, row.note)),
        None => Ok(()),
    }
}

/// Returns the options of the variables with this prefix, such as `SBATCH_TIMELIMIT`.
///
/// # Errors
/// As [`parse`]. The message names the variable.
pub(super) fn of_environment(command: &str, prefix: &str) -> Result<Given, String> {
    let mut given = Given::default();
    for row in rows(command) {
        let own = match row.long {
            "array" if command == "sbatch" => "ARRAY_INX".to_owned(),
            "time" => "TIMELIMIT".to_owned(),
            "verbose" => "DEBUG".to_owned(),
            "Format" => "FORMAT2".to_owned(),
            long => long.to_ascii_uppercase().replace('-', "_"),
        };
        let name = format!("{prefix}{own}");
        let Some(value) = std::env::var_os(&name) else { continue };
        let value = value.into_string().map_err(|_| format!("{name}: the value is not UTF-8 text"))?;
        if row.class == Class::Refused {
            return Err(format!("{name}: {}", row.note));
        }
        given.options.push((row, Some(value).filter(|value| row.value != Value::None && !value.is_empty())));
    }
    Ok(given)
}

/// Returns the options of the `#SBATCH` lines of a script, up to its first command.
///
/// # Errors
/// As [`parse`], with the line.
pub(super) fn of_script(script: &str) -> Result<Given, String> {
    let mut all = Given::default();
    for (line, text) in (1..).zip(script.lines()) {
        let trimmed = text.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            break;
        }
        let Some(rest) = text.strip_prefix("#SBATCH").filter(|rest| rest.starts_with(char::is_whitespace))
        else {
            continue;
        };
        let at_line = |message: String| format!("line {line} of the script: {message}");
        let words =
            shlex::split(rest).ok_or_else(|| at_line("a quote or an escape does not end".to_owned()))?;
        let given = parse("sbatch", words.into_iter().map(OsString::from), false).map_err(at_line)?;
        if let Some(word) = given.words.first() {
            return Err(at_line(format!("{:?} belongs to no option", word.display().to_string())));
        }
        all = given.after(all);
    }
    Ok(all)
}
