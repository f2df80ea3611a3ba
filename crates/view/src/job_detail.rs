//! The details of a job that its daemon has: the history of its promise, and the resources that it used.

use jiff::Timestamp;
use miserly_api::model::{JobView, UsageSource};
use miserly_units::memory;
use serde::Serialize;

use crate::account::promise_cause;
use crate::usage::ran;
use crate::{Clock, details};
use miserly_scene::{SECOND, counted, span};

/// The details of a job, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobDetail {
    /// The command, the paths and the comment: keys and texts.
    pub lines: Vec<(&'static str, String)>,
    /// The changes of its promise, in order.
    pub history: Vec<PromiseStep>,
    /// The used resources against the requested ones; empty before the end of the first attempt.
    pub used: Vec<UseOfJob>,
    /// How the use was measured, or why it is not known; empty if the job did not run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub measured: String,
}

/// A change of a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromiseStep {
    /// The time of the change.
    pub at: String,
    /// The latest start from then on.
    pub start: String,
    /// How the latest start moved; empty for the first one.
    pub moved: String,
    /// The cause.
    pub why: &'static str,
}

/// The use of a resource by a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UseOfJob {
    /// The resource.
    pub what: &'static str,
    /// The used amount; empty if it is not measured.
    pub used: String,
    /// The requested amount.
    pub asked: String,
    /// The share of the requested amount that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Returns the details of a job.
pub fn job_detail(job: &JobView, clock: &Clock) -> JobDetail {
    let is_ended = job.phase.ended().is_some();
    let used = used(job);
    let measured = match &job.usage {
        Some(usage) if usage.total.source == UsageSource::ControlGroup => "measured by control groups",
        Some(_) => "measured of the processes that the shim saw end; the memory is that of the largest one",
        None if job.command.is_none() => "private; shown to the job's user, root and the daemon's user",
        None if job.phase.started().is_none() => "",
        None if is_ended => "not measured",
        None => "the use is measured at the end of the run",
    };
    JobDetail { lines: details(job), history: history(job, clock), used, measured: measured.to_owned() }
}

fn history(job: &JobView, clock: &Clock) -> Vec<PromiseStep> {
    let changes = job.promise.iter().flat_map(|promise| &promise.history);
    let mut last: Option<Timestamp> = None;
    changes
        .map(|change| {
            let moved = match (last, change.start) {
                (Some(before), Some(start)) => moved(start.duration_since(before).as_millis()),
                _ => String::new(),
            };
            last = change.start.or(last);
            let start = change.start.map(Timestamp::as_millisecond);
            PromiseStep {
                at: clock.exact(change.at.as_millisecond()),
                start: start
                    .map_or_else(|| "no start".to_owned(), |start| format!("by {}", clock.exact(start))),
                moved,
                why: promise_cause(change.why),
            }
        })
        .collect()
}

/// Returns a change of the latest start in words.
fn moved(by: i128) -> String {
    let by = i64::try_from(by).unwrap_or(i64::MAX);
    match by {
        0 => "the same".to_owned(),
        ..0 => format!("{} earlier", span(by.saturating_neg())),
        _ if by < SECOND => "less than a second later".to_owned(),
        _ => format!("{} later", span(by)),
    }
}

/// Returns the use of the last attempt, to which the times of the job belong.
fn used(job: &JobView) -> Vec<UseOfJob> {
    let Some(last) = job.usage.as_ref().and_then(|usage| usage.attempts.last()) else { return vec![] };
    let mut found = vec![];
    if let Some((start, end)) = ran(&job.phase) {
        let time = end.duration_since(start).as_secs_f64();
        let share = |used: f64, asked: f64| (asked > 0.0).then(|| used / asked);
        let (cpu, asked) = (last.usage.user + last.usage.system, time * job.cpus as f64);
        found.push(UseOfJob {
            what: "processors",
            used: format!("{:.2} on average", if time > 0.0 { cpu / time } else { 0.0 }),
            asked: counted(job.cpus, "processor"),
            share: share(cpu, asked),
        });
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
        let text = |secs: f64| span((secs * 1000.0) as i64);
        found.push(UseOfJob {
            what: "time",
            used: text(time),
            asked: text(job.time),
            share: share(time, job.time),
        });
    }
    if let Some(peak) = last.usage.memory_peak {
        let share = (job.memory > 0).then(|| peak as f64 / job.memory as f64);
        let asked = if job.memory > 0 { memory(job.memory) } else { "no request".to_owned() };
        found.push(UseOfJob { what: "memory", used: format!("{} at most", memory(peak)), asked, share });
    }
    if job.gpus > 0 {
        found.push(UseOfJob {
            what: "GPUs",
            used: String::new(),
            asked: counted(job.gpus, "GPU"),
            share: None,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use miserly_api::model::{
        AttemptUsage, Exit, JobUsage, Phase, PromiseChange, PromiseChangeReason, PromiseView, Usage, Window,
    };

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    #[test]
    fn each_change_of_a_promise_has_its_cause() {
        let change =
            |secs, start: Option<i64>, why| PromiseChange { at: at(secs), start: start.map(at), why };
        let promise = PromiseView {
            promised: Window { start: at(600), end: at(660) },
            now: None,
            at_risk: None,
            history: vec![
                change(0, Some(600), PromiseChangeReason::Submitted),
                change(10, Some(300), PromiseChangeReason::Earlier),
                change(20, None, PromiseChangeReason::Held),
                change(30, Some(420), PromiseChangeReason::Released),
            ],
        };
        let job = JobView { promise: Some(promise), ..JobView::default() };
        let found = job_detail(&job, &Clock::SinceStart).history;
        let texts: Vec<[&str; 3]> = found.iter().map(|step| [&*step.start, &*step.moved, step.why]).collect();
        let expected = [
            ["by day 1 00:10:00", "", "submitted"],
            ["by day 1 00:05:00", "5 min earlier", "another job freed resources"],
            ["no start", "", "the job was held"],
            ["by day 1 00:07:00", "2 min later", "the job was released"],
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn used_resources_are_beside_the_requested_ones() {
        let usage = Usage {
            user: 50.0,
            system: 10.0,
            memory_peak: Some(256 << 20),
            io_read: None,
            io_written: None,
            stops: 0,
            source: UsageSource::ControlGroup,
        };
        let attempts = vec![AttemptUsage { attempt: 1, usage }];
        let job = JobView {
            cpus: 4,
            memory: 1 << 30,
            gpus: 2,
            time: 600.0,
            phase: Phase::Done { start: at(0), end: at(60), exit: Exit::Code(0), cpu_ranges: vec![] },
            usage: Some(JobUsage { total: usage, attempts }),
            command: Some(vec!["true".to_owned()]),
            ..JobView::default()
        };
        let found = job_detail(&job, &Clock::SinceStart);
        let texts: Vec<String> = found
            .used
            .iter()
            .map(|one| format!("{} {} {} {:?}", one.what, one.used, one.asked, one.share))
            .collect();
        let expected = [
            "processors 1.00 on average 4 processors Some(0.25)",
            "time 1 min 10 min Some(0.1)",
            "memory 256MiB at most 1GiB Some(0.25)",
            "GPUs  2 GPUs None",
        ];
        assert_eq!(texts, expected);
        assert_eq!(found.measured, "measured by control groups");
        let private = job_detail(&JobView { command: None, usage: None, ..job }, &Clock::SinceStart);
        assert!(private.used.is_empty() && private.measured.starts_with("private"));
    }
}
