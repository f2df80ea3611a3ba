//! Users and queues that options give by name.

use std::collections::BTreeSet;

use miserly_workload::swf::{Field, Header, ReadError};
use miserly_workload::{FieldFilter, Trace, TraceError};

use crate::error::SetupError;
use crate::options::RunOptions;

/// The limit of listed users or queues in a message.
const LISTED: usize = 20;

/// A field of the log with numbers that the header may name.
#[derive(Clone, Copy)]
struct Named(Field);

const USER: Named = Named(Field::User);
const QUEUE: Named = Named(Field::Queue);

/// Adds the numbers of the requested users and queues to the options of the jobs.
pub(crate) fn resolve_names(
    trace: &Trace,
    header: &Header,
    options: &mut RunOptions,
) -> Result<(), SetupError> {
    for word in &options.users {
        options.jobs.users.push(USER.number(word, trace, header)?);
    }
    for word in &options.without_users {
        let number = USER.number(word, trace, header)?;
        if !USER.numbers(trace)?.contains(&number.into()) {
            return Err(USER.no_name(word, trace, header)?);
        }
        options.jobs.drop.push(FieldFilter::equal(Field::User, number));
    }
    for word in &options.queues {
        options.jobs.queues.push(QUEUE.number(word, trace, header)?);
    }
    Ok(())
}

impl Named {
    /// Returns the number that `word` is, or that the header gives to this name.
    fn number(self, word: &str, trace: &Trace, header: &Header) -> Result<u32, SetupError> {
        if let Some(number) = word.parse().ok().or_else(|| header.names(self.0).number(word)) {
            return Ok(number);
        }
        Err(self.no_name(word, trace, header)?)
    }

    /// Returns the error that there is no such user or queue.
    fn no_name(self, word: &str, trace: &Trace, header: &Header) -> Result<SetupError, TraceError> {
        Ok(SetupError::NoName {
            log: trace.name().to_owned(),
            kind: self.0.name(),
            wanted: word.to_owned(),
            has: self.available(trace, header)?,
        })
    }

    /// Returns the users or queues of the log, in words.
    fn available(self, trace: &Trace, header: &Header) -> Result<String, TraceError> {
        let kind = self.0.name();
        let named = header.names(self.0);
        if !named.is_empty() {
            let words = named.iter().map(|(number, name)| format!("{number} {name}"));
            return Ok(format!("the {kind}s are {}", listed(words.collect())));
        }
        let numbers = self.numbers(trace)?;
        if numbers.is_empty() {
            return Ok(format!("the log has no {kind}s"));
        }
        let numbers = numbers.iter().map(ToString::to_string).collect();
        Ok(format!("its header has no names of {kind}s; the {kind}s are {}", listed(numbers)))
    }

    /// Returns the numbers in the log.
    fn numbers(self, trace: &Trace) -> Result<BTreeSet<u64>, TraceError> {
        let (mut numbers, mut reader) = (BTreeSet::new(), trace.reader()?);
        loop {
            match reader.next_job() {
                Ok(Some(record)) => numbers.extend(record.recorded(self.0)),
                Ok(None) => return Ok(numbers),
                Err(ReadError::Malformed { .. }) => {}
                Err(error) => return Err(trace.read_error(error)),
            }
        }
    }
}

/// Returns the words with commas, and the number of those beyond the limit.
fn listed(mut words: Vec<String>) -> String {
    let more = words.len().saturating_sub(LISTED);
    words.truncate(LISTED);
    words.extend((more > 0).then(|| format!("and {more} more")));
    words.join(", ")
}
