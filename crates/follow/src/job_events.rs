//! The events of jobs, from the facts that were known before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{Failure, JobView, Phase};
use serde::{Deserialize, Serialize};

/// The kind of an event of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEventKind {
    /// The job was accepted.
    Submitted,
    /// It has started in its window.
    Started,
    /// Its promised start is another one.
    Moved,
    /// Its plan is behind its promise.
    AtRisk,
    /// Its promise was not kept: it started late, or ended without a start.
    Missed,
    /// Its time limit is near.
    NearEnd,
    /// It uses almost no processor time.
    Idle,
    /// It has ended because it had not started by its latest start.
    GivenUp,
    /// It has ended in any way.
    Ended,
    /// It has ended, and not with exit code 0.
    Failed,
}

/// An event of a job, and the job after it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEvent {
    /// The kind of the event.
    pub kind: JobEventKind,
    /// The job after the event.
    pub job: JobView,
}

/// The known facts of the unfinished jobs. A file can keep them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KnownJobs {
    /// The number of the last commit that was seen; `None` before the first one.
    pub journal: Option<i64>,
    /// The highest number of a job that was seen.
    #[serde(default)]
    pub highest: i64,
    jobs: BTreeMap<i64, Job>,
}

/// The known facts of a job.
#[allow(clippy::struct_excessive_bools)] // Each is a fact of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Job {
    started: bool,
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised: Option<Timestamp>,
    // Its name in files of earlier versions is that of both events.
    #[serde(default, alias = "broken", skip_serializing_if = "std::ops::Not::not")]
    at_risk: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    missed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    idle: bool,
    /// Whether its end is near, and this was an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    near: bool,
}

impl Job {
    fn new(view: &JobView) -> Job {
        let promise = view.promise.as_ref();
        Job {
            // Of one that has ended, too: a job may come and go between two commits.
            started: view.phase.started().is_some(),
            attempts: view.attempts,
            promised: promise.and_then(|promise| promise.now).map(|window| window.start),
            at_risk: promise.is_some_and(|promise| promise.at_risk.is_some()),
            missed: view.missed_promise(),
            idle: view.idle_since.is_some(),
            near: false,
        }
    }
}

impl KnownJobs {
    /// Takes the changed jobs of a commit. Returns their events, by job. The first commit has no events.
    pub fn change(&mut self, journal: i64, jobs: Vec<JobView>) -> Vec<JobEvent> {
        let first = self.journal.replace(journal).is_none();
        let mut happened = vec![];
        for view in jobs {
            self.highest = self.highest.max(view.number);
            let ended = view.phase.ended().is_some();
            let before = self.jobs.remove(&view.number);
            // What ended before it was known is no news, unless it came and went between two commits.
            let events = if first { vec![] } else { events(before.as_ref(), &view) };
            if !ended {
                let near = before.is_some_and(|before| before.near && before.attempts == view.attempts);
                self.jobs.insert(view.number, Job { near, ..Job::new(&view) });
            }
            happened.extend(events.into_iter().map(|kind| JobEvent { kind, job: view.clone() }));
        }
        happened
    }

    /// Returns the known jobs that are not among these, which are all unfinished ones.
    pub fn missing(&self, all: &[JobView]) -> Vec<i64> {
        let there: BTreeSet<i64> = all.iter().map(|view| view.number).collect();
        self.jobs.keys().copied().filter(|number| !there.contains(number)).collect()
    }

    /// Forgets jobs of which the daemon has nothing any more.
    pub fn forget(&mut self, jobs: &[i64]) {
        for job in jobs {
            self.jobs.remove(job);
        }
    }

    /// Returns the events of the running jobs that reach their time limits within `before`. Each has one event.
    pub fn near_end<'a>(
        &mut self,
        now: Timestamp,
        before: SignedDuration,
        running: impl Iterator<Item = &'a JobView>,
    ) -> Vec<JobEvent> {
        let mut happened = vec![];
        for view in running {
            let Phase::Running(holding) = &view.phase else { continue };
            let Some(job) = self.jobs.get_mut(&view.number).filter(|job| !job.near) else { continue };
            if holding.end.duration_since(now) <= before {
                job.near = true;
                happened.push(JobEvent { kind: JobEventKind::NearEnd, job: view.clone() });
            }
        }
        happened
    }
}

/// Returns the events that lead to this job.
fn events(before: Option<&Job>, view: &JobView) -> Vec<JobEventKind> {
    let after = Job::new(view);
    let mut events = vec![];
    if before.is_none() {
        events.push(JobEventKind::Submitted);
    }
    let again = before.is_some_and(|before| before.attempts < after.attempts);
    if after.started && before.is_none_or(|before| !before.started || again) {
        events.push(JobEventKind::Started);
    }
    let moved = |before: &Job| before.promised.is_some() && before.promised != after.promised;
    if before.is_some_and(moved) && !after.started {
        events.push(JobEventKind::Moved);
    }
    if after.at_risk && before.is_none_or(|before| !before.at_risk) {
        events.push(JobEventKind::AtRisk);
    }
    if after.missed && before.is_none_or(|before| !before.missed) {
        events.push(JobEventKind::Missed);
    }
    if after.idle && before.is_none_or(|before| !before.idle) {
        events.push(JobEventKind::Idle);
    }
    if view.phase.ended().is_some() {
        // A promise that ends with its job did not move.
        events.retain(|event| *event != JobEventKind::Moved);
        if matches!(view.phase, Phase::Failed { why: Failure::NotInTime, .. }) {
            events.push(JobEventKind::GivenUp);
        }
        events.push(JobEventKind::Ended);
        if !view.phase.succeeded() {
            events.push(JobEventKind::Failed);
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use miserly_api::model::Judgement;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns a job with a promise, as the daemon lists it.
    fn view(number: i64, phase: &serde_json::Value, promised: i64) -> JobView {
        let window = json!({"start": at(promised), "end": at(promised + 60)});
        serde_json::from_value(json!({
            "number": number, "name": "sort", "uid": 1, "user": "ann", "queue": "batch", "cpus": 1, "memory": 0,
            "time": 60.0, "script": false, "submitted": at(0), "restartable": false, "opportunistic": true,
            "phase": phase, "attempts": 1, "runs": 1, "unenforced": [],
            "promise": {"promised": window, "now": window, "history": []},
        }))
        .unwrap()
    }

    fn queued(number: i64, promised: i64) -> JobView {
        view(number, &json!({"state": "queued"}), promised)
    }

    fn running(number: i64) -> JobView {
        view(number, &json!({"state": "running", "start": at(10), "end": at(70), "cpus": [0]}), 10)
    }

    fn done(number: i64, code: i32) -> JobView {
        let exit = json!({"code": code});
        view(number, &json!({"state": "done", "start": at(10), "end": at(20), "exit": exit}), 10)
    }

    fn names(happened: &[JobEvent]) -> Vec<(i64, JobEventKind)> {
        happened.iter().map(|one| (one.job.number, one.kind)).collect()
    }

    #[test]
    fn the_first_jobs_are_no_news_and_their_changes_are() {
        use JobEventKind::{Ended, Failed, Moved, Started, Submitted};
        let mut known = KnownJobs::default();
        assert_eq!(known.change(1, vec![queued(1, 10), queued(2, 70)]), []);
        let happened = known.change(2, vec![running(1), queued(2, 30), queued(3, 90)]);
        assert_eq!(names(&happened), [(1, Started), (2, Moved), (3, Submitted)]);
        assert_eq!(known.change(3, vec![running(1), queued(2, 30)]), []);
        assert_eq!(names(&known.change(4, vec![done(1, 0)])), [(1, Ended)]);
        // What started and failed between two commits is told once, in order.
        assert_eq!(
            names(&known.change(5, vec![done(4, 3)])),
            [(4, Submitted), (4, Started), (4, Ended), (4, Failed)]
        );
    }

    #[test]
    fn after_a_break_the_missing_jobs_are_found_from_a_file() {
        let mut known = KnownJobs::default();
        known.change(1, vec![queued(1, 10), running(2)]);
        let mut known: KnownJobs = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        let all = [queued(3, 10)];
        assert_eq!(known.missing(&all), [1, 2]);
        let happened = known.change(9, vec![done(2, 0), queued(3, 10)]);
        assert_eq!(names(&happened), [(2, JobEventKind::Ended), (3, JobEventKind::Submitted)]);
        known.forget(&[1, 2]);
        assert_eq!(known.missing(&all), [] as [i64; 0]);
    }

    #[test]
    fn a_near_end_is_told_once() {
        let mut known = KnownJobs::default();
        known.change(1, vec![running(1)]);
        let (job, before) = (running(1), SignedDuration::from_secs(20));
        assert_eq!(known.near_end(at(49), before, [&job].into_iter()), []);
        let happened = known.near_end(at(50), before, [&job].into_iter());
        assert_eq!(names(&happened), [(1, JobEventKind::NearEnd)]);
        known.change(2, vec![running(1)]);
        assert_eq!(known.near_end(at(60), before, [&job].into_iter()), []);
    }

    #[test]
    fn idle_jobs_and_jobs_that_are_given_up_have_events() {
        use JobEventKind::{Ended, Failed, GivenUp, Idle};
        let mut known = KnownJobs::default();
        known.change(1, vec![running(1), queued(2, 70)]);
        let idle = JobView { idle_since: Some(at(20)), ..running(1) };
        assert_eq!(names(&known.change(2, vec![idle.clone()])), [(1, Idle)]);
        assert_eq!(names(&known.change(3, vec![idle.clone()])), []);
        assert_eq!(names(&known.change(4, vec![running(1)])), []);
        assert_eq!(names(&known.change(5, vec![idle])), [(1, Idle)], "each time");
        let given_up = json!({"state": "failed", "at": at(20), "why": "not_in_time", "message": ""});
        let happened = known.change(6, vec![view(2, &given_up, 70)]);
        assert_eq!(names(&happened), [(2, GivenUp), (2, Ended), (2, Failed)]);
    }

    #[test]
    fn a_promise_at_risk_and_a_missed_one_are_one_event_each() {
        use JobEventKind::{AtRisk, Missed, Moved, Started};
        let away = miserly_api::model::PromiseChangeReason::Away;
        let behind = |mut view: JobView| {
            let promise = view.promise.as_mut().unwrap();
            promise.at_risk = Some(miserly_api::model::AtRisk { by: Some(5.0), why: away });
            view
        };
        let mut late = running(1);
        late.judged = vec![miserly_api::model::JudgedPromise {
            promised: at(5),
            judgement: Judgement::Late,
            by: Some(5.0),
            why: Some(away),
        }];
        let mut known = KnownJobs::default();
        known.change(1, vec![queued(1, 10)]);
        assert_eq!(names(&known.change(2, vec![behind(queued(1, 20))])), [(1, Moved), (1, AtRisk)]);
        assert_eq!(names(&known.change(3, vec![behind(queued(1, 20))])), []);
        assert_eq!(names(&known.change(4, vec![late.clone()])), [(1, Started), (1, Missed)]);
        assert_eq!(names(&known.change(5, vec![late])), []);
    }
}
