//! Requests on a job, and their effects in words.

use miserly_units::{duration, span_of_seconds};
use miserly_view::{Facts, Job, State, counted};

/// A request on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of the job.
    pub job: i64,
    /// The number of the job, with its index in an array.
    pub label: String,
    /// The request.
    pub what: What,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Ends or withdraws the job.
    Cancel,
    /// Holds the job.
    Hold,
    /// Releases the job.
    Release,
    /// Extends its time limit by seconds.
    Extend(u64),
}

impl Request {
    /// Returns a request on a job.
    ///
    /// # Errors
    /// If the request does not fit the state of the job: the reason.
    pub(crate) fn new(job: &Job, what: What) -> Result<Request, String> {
        match misfit(job.state, what) {
            Some(reason) => Err(format!("job {} {reason}", job.label)),
            None => Ok(Request { job: job.number, label: job.label.clone(), what }),
        }
    }

    /// Returns what the request does to the job, in words.
    pub(crate) fn effect(&self, facts: &Facts) -> String {
        let Some(job) = facts.jobs.iter().find(|job| job.number == self.job) else {
            return format!("job {} is not known any more", self.label);
        };
        match self.what {
            What::Cancel => cancel(facts, job),
            What::Hold => format!("holds job {}", job.label),
            What::Release => format!("releases job {}, which gets a new place in the queue", job.label),
            What::Extend(secs) => extend(job, secs),
        }
    }

    /// Returns the request in the past tense.
    pub(crate) fn done(&self) -> String {
        match self.what {
            What::Cancel => format!("job {}: cancelled", self.label),
            What::Hold => format!("job {}: held", self.label),
            What::Release => format!("job {}: released", self.label),
            What::Extend(secs) => format!("job {}: extended by {}", self.label, span(secs)),
        }
    }
}

/// Returns the reason if a request makes no sense in this state.
fn misfit(state: State, what: What) -> Option<&'static str> {
    match (what, state) {
        (_, State::Ended) => Some("has ended"),
        (What::Hold, State::Held) => Some("is held already"),
        (What::Hold, state) if !state.is_before_start() => {
            Some("has started; only a waiting job can be held")
        }
        (What::Release, state) if state != State::Held => Some("is not held"),
        _ => None,
    }
}

fn cancel(facts: &Facts, job: &Job) -> String {
    if job.state.is_before_start() {
        return format!("cancels job {}, which waits", job.label);
    }
    let since = job
        .start
        .map_or_else(String::new, |start| format!(" since {}", facts.clock.instant(start, facts.now)));
    format!("cancels job {}, which runs{since}, and frees {}", job.label, counted(job.procs, "processor"))
}

fn extend(job: &Job, secs: u64) -> String {
    let by = i64::try_from(secs).unwrap_or(i64::MAX).saturating_mul(1000);
    let longer = job.limit.saturating_add(by);
    let limit = span(longer.unsigned_abs() / 1000);
    format!("extends job {} by {}, to {limit} in all", job.label, span(secs))
}

fn span(secs: u64) -> String {
    duration(span_of_seconds(secs as f64))
}
