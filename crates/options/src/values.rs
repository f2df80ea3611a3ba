//! Parsers of values that several commands take.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::value_parser;
use miserly_core::{Procs, Span};
use miserly_policies::shared::Profile;
use miserly_units::{UnitError, parse_duration_from, parse_seconds};

/// Parses a duration in whole seconds.
///
/// # Errors
/// If it is none.
pub fn seconds(text: &str) -> Result<i64, UnitError> {
    parse_seconds(text, Span::ZERO)
}

/// Parses a duration, as an unsigned number of seconds.
///
/// # Errors
/// If it is none.
pub fn unsigned_seconds(text: &str) -> Result<u64, UnitError> {
    seconds(text).map(i64::unsigned_abs)
}

/// Parses the time limit of a job.
///
/// # Errors
/// If it is none.
pub fn job_time(text: &str) -> Result<Span, UnitError> {
    parse_duration_from(text, Span::TICK)
}

/// Returns the parser of a machine size.
pub fn procs() -> impl TypedValueParser<Value = Procs> {
    value_parser!(u32).range(1..=i64::from(Profile::MOST)).map(|procs| Procs::new(procs.into()))
}

/// Returns the parser of a value by its word. Each row has the word, the value and its help.
///
/// # Panics
/// Never: the parser gives a word of a row.
pub fn words<T: Clone + Send + Sync + 'static>(
    rows: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let possible = rows.iter().map(|(word, _, help)| PossibleValue::new(word).help(*help));
    PossibleValuesParser::new(possible).map(|given| {
        let row = rows.iter().find(|(word, ..)| *word == given);
        row.expect("it is one of the possible values").1.clone()
    })
}
