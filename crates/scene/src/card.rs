//! The facts about one job, for a card beside its bar.

use serde::Serialize;

use crate::clock::span;
use crate::colour::reason_words;
use crate::{ANY_GPU, Job, Part, Schedule, State, Stay, counted};

/// What a reader wants to know about a job at first sight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    /// The number and the name.
    pub title: String,
    /// Keys and texts.
    pub lines: Vec<(&'static str, String)>,
    /// The begin and the end of its bar, if it has one.
    pub window: Option<(i64, i64)>,
    /// The latest start that was promised, and the end of the promised window.
    pub promise: Option<(i64, i64)>,
}

/// Returns the card of a job.
pub fn card(schedule: &Schedule<'_>, job: &Job) -> Card {
    let text = |at: i64| schedule.clock.instant(at, schedule.now);
    let pool = schedule.pools.get(job.pool).filter(|_| schedule.pools.len() > 1);
    let of_pool = pool.map_or_else(String::new, |pool| format!(" of {}", pool.name));
    let end = match job.state {
        State::Ended => job.end,
        _ => Some(schedule.now),
    };
    let started = job.start.filter(|_| !job.state.is_before_start());
    let used = job.whole().map(|whole| whole.ran);
    let used = used.or(started.zip(end).map(|(start, end)| end.saturating_sub(start)));
    let percent = |used: i64| i128::from(used) * 100 / i128::from(job.limit.max(1));
    let first = started.and(job.first_start());
    let start = first.or_else(|| job.window());
    let wait = start.map(|start| {
        let so_far = if started.is_some() { "" } else { ", by the plan" };
        format!("{}{so_far}", span(start.saturating_sub(job.submitted)))
    });
    let lines = [
        ("state", Some(job.word.clone())),
        ("user", Some(job.user.clone()).filter(|user| !user.is_empty())),
        (
            "request",
            Some(format!("{}{of_pool}, at most {}", counted(job.procs, "processor"), span(job.limit))),
        ),
        ("used", used.map(|used| format!("{} ({} % of the limit)", span(used), percent(used)))),
        ("submitted", Some(text(job.submitted))),
        ("start", first.map(text)),
        ("wait", wait),
        ("parts", parts(schedule, job)),
        ("promise", promise(schedule, job, first)),
        (
            "likely",
            job.likely.map(|[median, _, last]| {
                format!("{}, with 95 % by {}", text(median), schedule.clock.latest(last, schedule.now))
            }),
        ),
        ("GPUs", gpus(job)),
        ("reason", Some(reason_words(&job.reason).to_owned()).filter(|reason| !reason.is_empty())),
    ];
    let from = start.or(job.likely.map(|[median, ..]| median));
    let to = match job.state {
        State::Ended => job.end,
        _ if started.is_some() => job.end.map(|end| end.max(schedule.now)),
        _ => from.map(|from| from.saturating_add(job.limit)),
    };
    let promised = job.promised_first.or(job.promised);
    Card {
        title: job.title(),
        lines: lines.into_iter().filter_map(|(key, text)| Some((key, text?))).collect(),
        window: from.zip(to),
        promise: promised.map(|promised| (promised, promised.saturating_add(job.limit))),
    }
}

/// Returns the number and the type of the requested GPUs, as far as they are known.
fn gpus(job: &Job) -> Option<String> {
    let kind = Some(&*job.gpu).filter(|kind| !kind.is_empty() && *kind != ANY_GPU);
    match (job.gpus, kind) {
        (0, kind) => kind.map(str::to_owned),
        (count, None) => Some(count.to_string()),
        (count, Some(kind)) => Some(format!("{count} of type {kind}")),
    }
}

/// The most parts of a job that a card has.
const PARTS_MOST: usize = 4;

/// Returns the parts of the time in which a job ran, if it has several.
fn parts(schedule: &Schedule<'_>, job: &Job) -> Option<String> {
    let runs: Vec<&Stay> = job.stays.iter().filter(|stay| stay.part == Part::Run).collect();
    let text = |at: i64| schedule.clock.instant(at, job.first_start().unwrap_or(at));
    let shown = runs.iter().take(PARTS_MOST).map(|stay| format!("{} to {}", text(stay.from), text(stay.to)));
    let mut shown: Vec<String> = shown.collect();
    if runs.len() > PARTS_MOST {
        shown.push(format!("{} more", runs.len() - PARTS_MOST));
    }
    (runs.len() > 1).then(|| shown.join("; "))
}

/// Returns the promise of a job and its fate.
fn promise(schedule: &Schedule<'_>, job: &Job, started: Option<i64>) -> Option<String> {
    let promised = job.promised_first.or(job.promised)?;
    let by = format!("start by {}", schedule.clock.latest(promised, schedule.now));
    Some(match (started, job.unkept) {
        (Some(start), true) => format!("{by}: {} late", span(start.saturating_sub(promised))),
        (Some(start), false) if promised.saturating_sub(start) >= 1000 => {
            format!("{by}: kept, {} before", span(promised.saturating_sub(start)))
        }
        (Some(_), false) => format!("{by}: kept"),
        (None, true) if job.state == State::Ended => format!("{by}: not kept"),
        (None, true) => format!("{by}: at risk"),
        (None, false) => by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{HOUR, MINUTE};

    #[test]
    fn a_card_has_the_number_and_the_type_of_gpus() {
        let found = |gpu: &str, gpus| {
            let job = Job { gpu: gpu.to_owned(), gpus, ..Job::default() };
            let lines = card(&Schedule::of_jobs(8, []), &job).lines;
            lines.into_iter().find_map(|(key, text)| (key == "GPUs").then_some(text))
        };
        for (gpu, gpus, expect) in [
            ("", 0, None),
            (ANY_GPU, 0, None),
            (ANY_GPU, 2, Some("2")),
            ("a100", 0, Some("a100")),
            ("a100", 2, Some("2 of type a100")),
        ] {
            assert_eq!(found(gpu, gpus).as_deref(), expect, "{gpus} {gpu}");
        }
    }

    #[test]
    fn a_card_has_wait_use_and_promise() {
        let job = Job {
            number: 7,
            label: "7".to_owned(),
            name: "solve".to_owned(),
            user: "ada".to_owned(),
            procs: 4,
            limit: 2 * HOUR,
            state: State::Ended,
            word: "done".to_owned(),
            start: Some(30 * MINUTE),
            end: Some(90 * MINUTE),
            promised_first: Some(45 * MINUTE),
            ..Job::default()
        };
        let schedule = Schedule { now: 2 * HOUR, ..Schedule::of_jobs(8, [job.clone()]) };
        let found = card(&schedule, &job);
        assert_eq!((found.title.as_str(), found.window), ("7 solve", Some((30 * MINUTE, 90 * MINUTE))));
        let line =
            |key: &str| found.lines.iter().find(|(known, _)| *known == key).map(|(_, text)| text.clone());
        let expect = [
            ("request", "4 processors, at most 2 h"),
            ("used", "1 h (50 % of the limit)"),
            ("wait", "30 min"),
            ("promise", "start by 00:45: kept, 15 min before"),
        ];
        for (key, text) in expect {
            assert_eq!(line(key).as_deref(), Some(text), "{key}");
        }
        assert_eq!(found.promise, Some((45 * MINUTE, 165 * MINUTE)));
        let late = Job { promised_first: Some(20 * MINUTE), unkept: true, ..job };
        let lines = card(&schedule, &late).lines;
        assert!(lines.contains(&("promise", "start by 00:20: 10 min late".to_owned())), "{lines:?}");
    }
}
