//! The processors used by interactive work over time, from a file or a random process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::iter;
use std::str::FromStr;
use std::sync::Arc;

use miserly_core::{Procs, Span, Time};
use miserly_units::parse_seconds;

use crate::generate::random::Stream;

/// Streams of random numbers. Their values are part of the meaning of a seed.
mod purpose {
    pub(super) const SESSIONS: u64 = 41;
    pub(super) const LENGTHS: u64 = 42;
}

/// Limit of processors and seconds.
const MOST: u64 = 10_000_000_000;

const SECOND: Span = Span::from_ticks(1_000_000);

/// Interactive work.
#[derive(Clone, Debug, PartialEq)]
pub enum Interactive {
    /// Independent sessions: a Poisson process, written `poisson:EVERY:LENGTH:PROCS`.
    Poisson {
        /// Mean time between sessions in seconds.
        every: u64,
        /// Mean length of a session in seconds, exponentially distributed.
        length: u64,
        /// Processors of each session.
        procs: Procs,
    },
    /// The content of a file: processors from given seconds of the log on.
    File {
        /// File name.
        name: String,
        /// Instants in ascending order with the processors from then on.
        changes: Arc<[(Time, Procs)]>,
    },
}

/// Invalid interactive work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InteractiveError {
    /// The text is not a valid process.
    #[error(
        "interactive work {0:?}: write it as poisson:EVERY:LENGTH:PROCS, such as poisson:1h:20min:4, or name a file"
    )]
    Process(String),
    /// A line of a file is invalid.
    #[error(
        "{file}:{line}: write the second of the log and the processors from then on, in the order of the seconds, such as 3600 8"
    )]
    Line {
        /// File name.
        file: String,
        /// Line number.
        line: usize,
    },
}

impl FromStr for Interactive {
    type Err = InteractiveError;

    fn from_str(text: &str) -> Result<Interactive, InteractiveError> {
        let numbers = || {
            let mut parts = text.strip_prefix("poisson:")?.split(':');
            let mut seconds = || parse_seconds(parts.next()?, SECOND).ok().map(i64::unsigned_abs);
            let (every, length) = (seconds()?, seconds()?);
            let procs =
                parts.next()?.parse().ok().filter(|number| (1..=MOST).contains(number)).map(Procs::new)?;
            let process = Interactive::Poisson { every, length, procs };
            parts.next().is_none().then_some(process)
        };
        numbers().ok_or_else(|| InteractiveError::Process(text.into()))
    }
}

impl fmt::Display for Interactive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interactive::Poisson { every, length, procs } => write!(f, "poisson:{every}:{length}:{procs}"),
            Interactive::File { name, .. } => f.write_str(name),
        }
    }
}

impl Interactive {
    /// Parses the text of a file. Empty lines and lines that begin with `;` or `#` are ignored.
    ///
    /// # Errors
    /// The first invalid line, or a line that goes back in time.
    pub fn parse(name: &str, text: &str) -> Result<Interactive, InteractiveError> {
        let mut changes: Vec<(Time, Procs)> = Vec::new();
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with([';', '#']) {
                continue;
            }
            let after = changes.last().map(|(at, _)| *at);
            let change = change(content).filter(|(at, _)| after.is_none_or(|after| after < *at));
            changes.push(change.ok_or_else(|| InteractiveError::Line { file: name.into(), line })?);
        }
        Ok(Interactive::File { name: name.into(), changes: changes.into() })
    }

    /// Returns the instants in order with the processors from then on; none before the first. May
    /// be infinite.
    pub fn changes(&self, seed: u64) -> Box<dyn Iterator<Item = (Time, Procs)> + Send> {
        match self {
            Interactive::File { changes, .. } => {
                let changes = Arc::clone(changes);
                Box::new((0..changes.len()).map(move |at| changes[at]))
            }
            Interactive::Poisson { every, length, procs } => {
                Box::new(sessions(seed, *every as f64, *length as f64, *procs))
            }
        }
    }
}

/// Parses `3600 8`.
fn change(line: &str) -> Option<(Time, Procs)> {
    let mut words =
        line.split_whitespace().map(|word| word.parse::<u64>().ok().filter(|number| *number <= MOST));
    let (at, procs) = (words.next()??, words.next()??);
    let at = Time::from_secs(i64::try_from(at).ok()?)?;
    words.next().is_none().then_some((at, Procs::new(procs)))
}

/// Returns the changes caused by sessions, starting with an idle machine at 0.
fn sessions(seed: u64, every: f64, length: f64, procs: Procs) -> impl Iterator<Item = (Time, Procs)> {
    let (mut gaps, mut lengths) = (Stream::new(seed, purpose::SESSIONS), Stream::new(seed, purpose::LENGTHS));
    let mut coming = gaps.exponential(every);
    let mut ends: BinaryHeap<Reverse<Time>> = BinaryHeap::new();
    iter::from_fn(move || {
        let next = ticks(coming);
        let at = match ends.peek() {
            Some(Reverse(end)) if *end <= next => {
                let end = *end;
                ends.pop();
                end
            }
            _ => {
                ends.push(Reverse(ticks(coming + lengths.exponential(length))));
                coming += gaps.exponential(every);
                next
            }
        };
        Some((at, Procs::new(procs.get().saturating_mul(ends.len() as u64))))
    })
}

/// Converts seconds to an instant.
#[allow(clippy::cast_possible_truncation)]
fn ticks(secs: f64) -> Time {
    Time::from_ticks((secs * 1e6) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_what_is_wrong_with_them() {
        let load = Interactive::parse("load", "; second processors\n0 2\n\n60 0\n").unwrap();
        let secs = |secs| Time::from_secs(secs).unwrap();
        assert_eq!(load.changes(1).collect::<Vec<_>>(), [(secs(0), Procs::new(2)), (secs(60), Procs::ZERO)]);
        for (text, line) in [("1", 1), ("0 2\n0 3", 2), ("5 1\n4 1", 2), ("0 -1", 1), ("0 1 2", 1)] {
            let wrong = InteractiveError::Line { file: "load".into(), line };
            assert_eq!(Interactive::parse("load", text), Err(wrong), "{text}");
        }
    }

    #[test]
    fn processes_and_what_is_none() {
        let text = "poisson:600:1800:2";
        assert_eq!(text.parse::<Interactive>().unwrap().to_string(), text);
        for bad in ["poisson:", "poisson:1:2", "poisson:1:2:3:4", "poisson:0:2:1", "uniform:1:2:3"] {
            assert!(bad.parse::<Interactive>().is_err(), "{bad}");
        }
    }

    /// By Little's law, sessions of 30 s every 10 s overlap 3 at a time.
    #[test]
    fn sessions_have_their_mean_and_stay_in_order() {
        let load = "poisson:10:30:2".parse::<Interactive>().unwrap();
        let changes: Vec<_> = load.changes(7).take(200_000).collect();
        assert!(changes.is_sorted_by_key(|(at, _)| *at));
        let area: f64 = changes
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() * pair[0].1.get() as f64)
            .sum();
        let mean = area / (changes[changes.len() - 1].0 - Time::ZERO).as_secs_f64();
        assert!((mean - 6.0).abs() < 0.15, "{mean}");
        assert_eq!(load.changes(7).take(50).collect::<Vec<_>>(), changes[..50]);
    }
}
