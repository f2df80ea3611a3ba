//! Keyword arguments as the words of a command line.

use clap::{Args, Command, FromArgMatches};
use miserly_options::{By, GroupingParser};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};

use crate::error::error;

/// Parses keyword arguments as the options of that name: `scale_load=1.2` is `--scale-load=1.2`. `True` is an option
/// without a value, `None` and `False` are no option, and a list is the option several times.
///
/// `more` are further words.
pub(crate) fn parse<A: Args + FromArgMatches>(
    function: &str,
    more: &[&str],
    given: Option<&Bound<'_, PyDict>>,
) -> PyResult<A> {
    let mut words = vec![function.to_owned()];
    words.extend(more.iter().map(|word| (*word).to_owned()));
    for (name, value) in given.into_iter().flat_map(PyDictMethods::iter) {
        let name = name.extract::<String>()?;
        push(&mut words, &name, &value)?;
    }
    let command = A::augment_args(Command::new("miserly").no_binary_name(false).disable_help_flag(true));
    let matches = command.try_get_matches_from(words).map_err(|wrong| error(message(function, &wrong)))?;
    A::from_arg_matches(&matches).map_err(|wrong| error(message(function, &wrong)))
}

/// Returns the groupings of these words.
pub(crate) fn groups(function: &str, by: &[String]) -> PyResult<Vec<By>> {
    let words: Vec<String> = by.iter().map(|word| format!("--by={word}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let parsed: ByWords = parse(function, &words, None)?;
    Ok(parsed.by)
}

/// Groupings of jobs.
#[derive(Debug, Args)]
struct ByWords {
    #[arg(long, value_parser = GroupingParser)]
    by: Vec<By>,
}

/// Refuses the options of `A`.
pub(crate) fn refuse<A: Args>(why: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let refused = A::augment_args(Command::new("miserly"));
    for name in given.into_iter().flat_map(PyDictMethods::keys) {
        let name = name.extract::<String>()?;
        if refused.get_arguments().any(|option| option.get_id() == name.as_str()) {
            return Err(error(format!("{name}: {why}")));
        }
    }
    Ok(())
}

fn push(words: &mut Vec<String>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let option = format!("--{}", name.replace('_', "-"));
    if value.is_none() {
        return Ok(());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        if flag.is_true() {
            words.push(option);
        }
        return Ok(());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for value in value.try_iter()? {
            push(words, name, &value?)?;
        }
        return Ok(());
    }
    if value.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err(format!("{name}: a dict is no value of an option")));
    }
    words.push(format!("{option}={}", value.str()?));
    Ok(())
}

/// Returns the message of a parser in terms of keyword arguments.
fn message(function: &str, wrong: &clap::Error) -> String {
    let text = wrong.to_string();
    let text = text.trim_start_matches("error: ");
    let head = text.split("\n\nUsage").next().unwrap_or(text).trim();
    let head = head.split("\n\nFor more").next().unwrap_or(head).trim();
    format!("{function}: {}", head.replace("\n\n  tip: ", "; "))
}
