//! The judgements of promises and forecasts so far.

use jiff::Timestamp;
use miserly_api::model::{MissedPromise, PromiseChangeReason, Status};
use miserly_units::{duration_rounded, span_of_seconds};
use serde::Serialize;

use crate::Clock;

/// The promises and forecasts of all jobs so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The promises to runs of jobs.
    pub promises: u64,
    /// Those whose jobs started in time.
    pub kept: u64,
    /// Those whose jobs started later.
    pub late: u64,
    /// Those whose jobs ended without a start, and whose users did not request that.
    pub lost: u64,
    /// Those whose users took their jobs back.
    pub withdrawn: u64,
    /// Those that are not judged yet.
    pub open: u64,
    /// The open ones whose plans are behind the promise.
    pub at_risk: u64,
    /// The last ones that were late or lost, the latest first.
    pub missed: Vec<Missed>,
    /// The audit of forecasts; absent if none was audited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<ForecastAccount>,
}

/// A promise that was late or lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// The number of the job.
    pub job: i64,
    /// What happened, in words.
    pub sentence: String,
}

/// The jobs with a forecast, and those that started by its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ForecastAccount {
    /// Jobs with a forecast that started.
    pub audited: u64,
    /// Those that started by the median, by the bound of 80 % and by that of 95 %.
    pub kept: [u64; 3],
}

impl Account {
    /// Returns the account of a daemon.
    pub fn new(status: &Status, clock: &Clock) -> Account {
        let forecasts = status.forecasts.map(|forecasts| ForecastAccount {
            audited: forecasts.audited,
            kept: [forecasts.kept_50, forecasts.kept_80, forecasts.kept_95],
        });
        let text = |at: Timestamp| clock.exact(at.as_millisecond());
        let missed =
            |missed: &MissedPromise| Missed { job: missed.job, sentence: missed_promise(missed, text) };
        Account {
            promises: status.promises,
            kept: status.kept,
            late: status.late,
            lost: status.lost,
            withdrawn: status.withdrawn,
            open: status.open,
            at_risk: status.at_risk,
            missed: status.missed.iter().rev().map(missed).collect(),
            forecasts,
        }
    }
}

/// Returns a promise that was late or lost in words. `text` writes an instant.
pub fn missed_promise(missed: &MissedPromise, text: impl Fn(Timestamp) -> String) -> String {
    let how = match missed.by {
        Some(by) => format!("started {} late", duration_rounded(span_of_seconds(by))),
        None => "ended without a start".to_owned(),
    };
    let (job, promised) = (missed.job, text(missed.promised));
    format!("job {job} {how}, promised by {promised}: {}", promise_cause(missed.why))
}

/// Returns the cause of a change of a promise in words.
pub const fn promise_cause(why: PromiseChangeReason) -> &'static str {
    match why {
        PromiseChangeReason::Submitted => "submitted",
        PromiseChangeReason::Earlier => "another job freed resources",
        PromiseChangeReason::Overdue => "a running job is overdue",
        PromiseChangeReason::Away => "the daemon did not run or stalled, or the machine was suspended",
        PromiseChangeReason::Shutdown => "the machine or the session shut down",
        PromiseChangeReason::Launch => "the launch took longer than the slack of the promise",
        PromiseChangeReason::Capacity => "the machine lost capacity",
        PromiseChangeReason::Amended => "another request was amended",
        PromiseChangeReason::Lost => "its attempt was lost, and it runs again",
        PromiseChangeReason::Stopped => "its queue was stopped after a mistake of its policy",
        PromiseChangeReason::Held => "the job was held",
        PromiseChangeReason::Released => "the job was released",
        PromiseChangeReason::Retried => "the job failed, and runs again",
        PromiseChangeReason::Modified => "its request was changed",
        PromiseChangeReason::Requeued => "its user requested another run",
        PromiseChangeReason::Operator => "an operator held, changed or cancelled it",
        PromiseChangeReason::Displaced => "its policy took it off its resources",
        PromiseChangeReason::Refused => "the policy of its queue rejects it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_promise_names_delay_and_cause() {
        let missed = |by| MissedPromise {
            job: 7,
            at: Timestamp::UNIX_EPOCH,
            promised: Timestamp::UNIX_EPOCH,
            judgement: miserly_api::model::Judgement::Late,
            by,
            why: PromiseChangeReason::Capacity,
        };
        let text = |by| missed_promise(&missed(by), |_| "08:04".to_owned());
        assert_eq!(
            text(Some(90.0)),
            "job 7 started 1m30s late, promised by 08:04: the machine lost capacity"
        );
        assert_eq!(text(None), "job 7 ended without a start, promised by 08:04: the machine lost capacity");
    }
}
