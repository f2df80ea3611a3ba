//! The checks at the end of a campaign: nothing is lost, doubled, early, or late without a record.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use miserly_api::model::{Exit, Failure, JobView, Judgement, KilledBy, LostBy, Phase};
use miserly_core::BreachCause;
use miserly_engine::SavedBreachCause;

use super::clocks::{Clocks, Shared};
use super::load::Told;
use super::runs::{Run, Runs};
use crate::kills::check_counts;
use crate::support::{Daemon, is_over};

/// The delay between the instant of a start and the line that the job writes, on a machine that is busy with other tests.
const WRITES_WITHIN: f64 = 1.5;

/// The error of an instant that two processes read.
const NEAR: f64 = 0.05;

/// Checks all jobs, and then the record of their promises.
pub(super) fn check_all(daemon: &mut Daemon, clocks: &Shared, told: &Told) {
    let jobs: BTreeMap<i64, JobView> = daemon.history().into_iter().map(|job| (job.number, job)).collect();
    let runs = Runs::read(daemon);
    runs.check_attempts();
    runs.check_processors(|job| told.in_windows.contains(&job));
    check_numbers(&jobs, told, &runs);
    let clocks = clocks.read().expect("clocks");
    let fails = |number: &&i64| {
        let check = Check { job: &jobs[*number], runs: runs.of(**number), told, clocks: &clocks };
        let checked = AssertUnwindSafe(|| {
            check.end();
            check.not_early(&runs);
            check.not_late();
        });
        // Each is reported by itself, and the jobs after it are checked, too.
        catch_unwind(checked).is_err()
    };
    let failed: Vec<&i64> = told.accepted.iter().filter(fails).collect();
    assert!(
        failed.is_empty(),
        "{} of {} jobs fail their checks: {failed:?}",
        failed.len(),
        told.accepted.len()
    );
    let log = daemon.log();
    for bad in ["panicked", "broke a rule", "made a mistake"] {
        assert!(!log.contains(bad), "{bad}: {log}");
    }
    for (job, by, why) in check_counts(daemon) {
        let outside = [BreachCause::Away, BreachCause::Overdue, BreachCause::Amended].map(SavedBreachCause);
        assert!(outside.contains(&why), "job {job} was late by {by} for {why:?}");
    }
}

/// Each accepted job is there, under a number of its own; a refused one is not.
fn check_numbers(jobs: &BTreeMap<i64, JobView>, told: &Told, runs: &Runs) {
    assert!(told.accepted.is_sorted_by(|one, next| one < next), "numbers increase: {:?}", told.accepted);
    for number in &told.accepted {
        let job = jobs.get(number).unwrap_or_else(|| panic!("job {number} was lost"));
        assert!(is_over(&job.phase), "job {number}: {:?}", job.phase);
    }
    for (number, runs) in &runs.0 {
        let job = jobs.get(number).unwrap_or_else(|| panic!("job {number} ran, and is in no list"));
        assert!(runs.iter().all(|run| run.attempt <= job.runs), "job {number}: {runs:?}");
    }
    let mut names = BTreeSet::new();
    for job in jobs.values() {
        assert!(names.insert(&job.name), "{} was submitted twice", job.name);
        let refused = told.refused.get(&job.name);
        assert!(refused.is_none(), "job {} was refused: {refused:?} {job:#?}", job.number);
    }
}

/// A job with all that is known about it.
struct Check<'a> {
    job: &'a JobView,
    runs: &'a [Run],
    told: &'a Told,
    clocks: &'a Clocks,
}

impl Check<'_> {
    /// It ended as jobs of its kind do.
    #[track_caller]
    fn end(&self) {
        let Check { job, runs, told, clocks } = self;
        let (number, last) = (job.number, runs.last());
        let near_sleep = last.is_none_or(|run| clocks.slept_near(run.began));
        let as_expected = match &job.phase {
            // What is still the shim until it becomes the job's command may have been the one that was killed.
            Phase::Done { exit: Exit::Signal(9), .. } => true,
            Phase::Done { exit, .. } => {
                let ended = last.is_some_and(|run| run.attempt == job.runs && run.ended.is_some());
                *exit == Exit::Code(0) && ended && !told.endless.contains(&number)
            }
            Phase::Killed { by: KilledBy::User, .. } => told.cancelled.contains(&number),
            Phase::Killed { by: KilledBy::Time, .. } => told.endless.contains(&number) || near_sleep,
            Phase::Lost { why, .. } => *why == LostBy::Shim && !job.restartable,
            Phase::Failed { why, message, .. } => self.may_fail(*why, message),
            _ => false,
        };
        assert!(as_expected, "job {number} came to {:?}\n{runs:?}\n{job:#?}", job.phase);
    }

    /// A failed disk may keep a job from its start, and a full one only delays it.
    fn may_fail(&self, why: Failure, message: &str) -> bool {
        // A restartable job may have run before the launch that failed.
        let ran = !self.runs.is_empty() && !self.job.restartable;
        let disk = message.contains("os error 5");
        // Also of a run that was lost, and left too little time for another one. A restartable job may have written its last line
        // when its shim was killed.
        let has_ended = self.runs.last().is_some_and(|run| run.ended.is_some()) && !self.job.restartable;
        let deadline =
            why == Failure::Refused && self.told.deadlines.contains_key(&self.job.number) && !has_ended;
        // A shim was killed, or the program that would have become the command.
        let killed = ["shim", "Broken pipe", "terminated before its command"];
        let shim = why == Failure::System && killed.iter().any(|text| message.contains(text));
        deadline || (!ran && (disk || shim))
    }

    /// It did not run before its submission, its earliest start, or the end of the job that it waited for.
    #[track_caller]
    fn not_early(&self, runs: &Runs) {
        let Check { job, told, clocks, .. } = self;
        let Some(first) = self.runs.first() else { return };
        let began = clocks.common(first.began);
        if let Some(begin) = told.begins.get(&job.number) {
            assert!(began + NEAR >= *begin, "job {} ran {} s early", job.number, begin - began);
        }
        let before = told.after.get(&job.number).and_then(|before| runs.of(*before).last());
        if let Some(end) = before.and_then(|run| run.ended.or(Some(run.began))) {
            assert!(first.began >= end, "job {} ran before the end of another: {job:#?}", job.number);
        }
    }

    /// It ran by the start that it was promised, or its record has the breach.
    #[track_caller]
    fn not_late(&self) {
        let Check { job, told, clocks, .. } = self;
        let Some(first) = self.runs.first() else { return };
        let Some(start) = told.starts.get(&job.number).filter(|_| !told.taken_back.contains(&job.number))
        else {
            return;
        };
        let by = clocks.common(first.began) - start;
        let recorded =
            !job.judged.is_empty() && job.judged.iter().any(|judged| judged.judgement != Judgement::Kept);
        // Which came first, the sleep or the start, is not known.
        let near_sleep = clocks.slept_near(first.began);
        assert!(
            by < WRITES_WITHIN || recorded || near_sleep,
            "job {} was {by} s late, and nothing says so: {job:#?}",
            job.number
        );
    }
}
