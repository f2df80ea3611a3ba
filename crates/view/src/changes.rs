//! The changes between two instants.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::{Facts, Job, State};
use miserly_scene::counted;
use miserly_scene::span;

/// The shortest move of a promise that is listed: a minute, milliseconds.
const MOVED_LEAST: i64 = 60_000;

/// The most jobs of an array that have a line each.
const OF_ARRAY_MOST: usize = 5;

/// A change of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The instant of the facts that have it.
    #[serde(skip)]
    pub at: i64,
    /// The instant as text.
    pub text: String,
    /// The number of the job.
    #[serde(skip)]
    pub job: i64,
    /// The change, in words.
    pub sentence: String,
}

/// Returns the changes between two facts about the same machine, by job. Of many jobs of an array the first has a line. O(n log n)
/// for n jobs.
pub fn changes(before: &Facts, after: &Facts) -> Vec<Change> {
    let known: BTreeMap<i64, &Job> = before.jobs.iter().map(|job| (job.number, &**job)).collect();
    let change = |job: &Arc<Job>| {
        let words = in_words(after, known.get(&job.number).copied(), job)?;
        let sentence = format!("job {} ({}, {}) {words}", job.label, job.name, job.user);
        let text = after.clock.exact(after.now);
        Some((job.array.map(|(array, _)| array), Change { at: after.now, text, job: job.number, sentence }))
    };
    let all: Vec<(Option<i64>, Change)> = after.jobs.iter().filter_map(change).collect();
    let mut of_arrays: BTreeMap<i64, usize> = BTreeMap::new();
    for array in all.iter().filter_map(|(array, _)| *array) {
        *of_arrays.entry(array).or_default() += 1;
    }
    let united = |(array, change): (Option<i64>, Change)| {
        let Some(count) = array.and_then(|array| of_arrays.get_mut(&array)) else { return Some(change) };
        let more = std::mem::take(count).checked_sub(1)?;
        if more < OF_ARRAY_MOST {
            *count = more;
            return Some(change);
        }
        let sentence = format!("{}, and {more} more jobs of its array changed", change.sentence);
        Some(Change { sentence, ..change })
    };
    all.into_iter().filter_map(united).collect()
}

/// Returns the change of a job in words, if it is worth a line.
fn in_words(after: &Facts, before: Option<&Job>, job: &Job) -> Option<String> {
    let text = |at: i64| after.clock.instant(at, after.now);
    let state = match before {
        None => Some(new(job, &text)),
        Some(before) => (before.state != job.state).then(|| entered(before.state, job)),
    };
    let is_news = job.unkept && before.is_none_or(|before| !before.unkept);
    let parts: Vec<String> =
        state.into_iter().chain(is_news.then(|| "is later than promised".to_owned())).collect();
    if !parts.is_empty() {
        return Some(parts.join("; "));
    }
    let before = before?;
    let (from, to) = before.promised.zip(job.promised)?;
    let moved = from.saturating_sub(to).saturating_abs();
    if moved < MOVED_LEAST {
        return None;
    }
    let how = if to < from { "earlier" } else { "later" };
    Some(format!("starts {} {how}: by {}", span(moved), text(to)))
}

/// Returns the words for a job that was not known before.
fn new(job: &Job, text: &dyn Fn(i64) -> String) -> String {
    match (job.state, job.promised) {
        (State::Waiting, Some(start)) => format!("was submitted; starts by {}", text(start)),
        (State::Waiting, None) => "was submitted".to_owned(),
        _ => format!("was submitted, and {}", entered(State::Waiting, job)),
    }
}

/// Returns the words for the state that a job entered.
fn entered(before: State, job: &Job) -> String {
    match (before, job.state) {
        (_, State::Ended) => format!("ended: {}", job.word),
        (State::Suspended, State::Running) => "was resumed".to_owned(),
        (_, State::Running) => format!("started on {}", counted(job.procs, "processor")),
        (_, State::Suspended) => "was suspended".to_owned(),
        (_, State::Opportunistic) => "runs on idle processors".to_owned(),
        (_, State::Parked) => "was stopped on idle processors".to_owned(),
        (_, State::Held) => "was held".to_owned(),
        (_, State::Waiting) => "waits again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(jobs: Vec<Job>) -> Facts {
        Facts::of_jobs(0, jobs)
    }

    fn job(number: i64, state: State, promised: i64) -> Job {
        let label = number.to_string();
        Job {
            number,
            label,
            name: "sort".into(),
            user: "ann".into(),
            state,
            procs: 2,
            promised: Some(promised),
            ..Job::default()
        }
    }

    #[test]
    fn starts_ends_and_moved_promises() {
        let before = facts(vec![
            job(1, State::Waiting, 0),
            job(2, State::Waiting, 600_000),
            job(3, State::Waiting, 600_000),
        ]);
        let after = facts(vec![
            job(1, State::Running, 0),
            job(2, State::Waiting, 0),
            job(3, State::Waiting, 599_000),
            job(4, State::Waiting, 600_000),
            Job { unkept: true, ..job(5, State::Running, 0) },
        ]);
        let sentences: Vec<String> =
            changes(&before, &after).into_iter().map(|change| change.sentence).collect();
        assert_eq!(
            sentences,
            [
                "job 1 (sort, ann) started on 2 processors",
                "job 2 (sort, ann) starts 10 min earlier: by 00:00",
                "job 4 (sort, ann) was submitted; starts by 00:10",
                "job 5 (sort, ann) was submitted, and started on 2 processors; is later than promised",
            ]
        );
        assert_eq!(changes(&after, &after), []);
    }

    #[test]
    fn many_jobs_of_an_array_are_one_change() {
        let member =
            |index: u32, state| Job { array: Some((10, index)), ..job(10 + i64::from(index), state, 0) };
        let of = |count, state| facts((0..count).map(|index| member(index, state)).collect());
        let lines = |count| changes(&of(count, State::Waiting), &of(count, State::Held)).len();
        assert_eq!((lines(5), lines(6), lines(400)), (5, 1, 1));
        let found = changes(&of(6, State::Waiting), &of(6, State::Held));
        assert_eq!(found[0].sentence, "job 10 (sort, ann) was held, and 5 more jobs of its array changed");
    }
}
