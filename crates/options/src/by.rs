//! The groupings of jobs.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use miserly_run::RunSetup;
use miserly_sim::Grouping;
use miserly_workload::TraceError;

/// A grouping of jobs that is asked for.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// This one.
    Known(Grouping),
    /// By ranges of the time limits that suit the log.
    TimeLimits,
}

/// The word for [`By::TimeLimits`].
const TIME_LIMITS: &str = "time-limit";

/// The parser of a grouping of jobs: a name, which the help lists, or ranges.
#[derive(Clone)]
pub struct GroupingParser;

impl TypedValueParser for GroupingParser {
    type Value = By;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<By, clap::Error> {
        let parse = |word: &str| match word {
            TIME_LIMITS => Ok(By::TimeLimits),
            word => word.parse::<Grouping>().map(By::Known),
        };
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = Grouping::ALL.into_iter().map(Grouping::as_str).chain([TIME_LIMITS]);
        Some(Box::new(words.map(PossibleValue::new)))
    }
}

/// Returns the groupings of `--by`, with ranges of time limits that suit the jobs of this setup.
///
/// # Errors
/// If the log cannot be read, which these ranges need.
pub fn groupings(setup: &RunSetup, by: &[By]) -> Result<Vec<Grouping>, TraceError> {
    let grouping = |by: &By| match by {
        By::Known(grouping) => Ok(*grouping),
        By::TimeLimits => Ok(setup.suited_ranges()?.time_limits()),
    };
    by.iter().map(grouping).collect()
}
