//! Charts of small waits, drawn whole.

use miserly_core::{JobNumber, Procs, Request, Resources, StartReason};

use super::*;
use crate::explain::story::{End, Event, MoveKind};

fn at(secs: i64) -> Time {
    Time::from_secs(secs).unwrap()
}

/// Returns a job that waits from 100 s to 180 s with a promise from 120 s on, and ends at `end`.
fn story(end: i64) -> Story {
    let request = Request::new(7, at(100), Span::from_secs(100).unwrap(), Resources::cpus(Procs::new(4)));
    let event = |secs, what| Event { at: at(secs), what };
    Story {
        request,
        free: Procs::ZERO,
        waiting: 0,
        reason: None,
        made_room: vec![],
        events: vec![
            event(120, What::Moved(at(190), MoveKind::Promised)),
            event(180, What::Started(StartReason::Backfilled)),
        ],
        passed_by: vec![],
        end: Some((at(end), End::Done)),
        opportunistic: None,
    }
}

fn holding(job: JobNumber, procs: u64, runs: &[(i64, Option<i64>)]) -> Holding {
    let runs = runs.iter().map(|(from, to)| (at(*from), to.map(at))).collect();
    Holding { job, procs: Procs::new(procs), reason: Some(StartReason::Reserved), runs }
}

#[track_caller]
fn check(held: Vec<Holding>, end: i64, width: usize, expect: &[&str]) {
    let text = chart(&story(end), &Held::from_jobs(held), &Clock::default(), width).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines[..lines.len() - 1], *expect);
    assert!(text.lines().all(|line| line.chars().count() <= width.max(78)), "{text}");
}

#[test]
fn bars_cover_the_wait_and_an_eighth_on_both_sides() {
    let held = vec![holding(3, 8, &[(0, Some(180))]), holding(4, 2, &[(130, Some(140)), (160, None)])];
    let expect = [
        "Jobs that held processors while it waited, and the job itself:",
        "job  procs                        start",
        "  3      8  <=================    reserved",
        "  4      2          ==    =====>  reserved",
        "  7      4    ....rrrrrrrrrrrr#>  backfilled",
        "              ^               ^",
        "              submitted 100   started 180",
    ];
    // Twenty columns of five seconds, from 90 s to 190 s.
    check(held, 1000, 44, &expect);
}

#[test]
fn a_short_job_ends_the_axis() {
    let expect = [
        "No job held processors while it waited:",
        "job  procs                        start",
        "  7      4    .....rrrrrrrrrrrr#  backfilled",
    ];
    let text = chart(&story(181), &Held::from_jobs(vec![]), &Clock::default(), 44).unwrap();
    assert_eq!(text.lines().skip(1).take(3).collect::<Vec<_>>(), expect);
}

#[test]
fn only_the_widest_and_the_named_jobs_are_shown() {
    let held = (10..40).map(|job| holding(job, 40 - job.unsigned_abs(), &[(job, Some(150))])).collect();
    let mut story = story(1000);
    story.reason = Some(WaitReason::Order { job: 39, procs: Procs::ONE });
    let text = chart(&story, &Held::from_jobs(held), &Clock::default(), 80).unwrap();
    assert!(text.contains("(10 of 30)"), "{text}");
    let jobs: Vec<&str> =
        text.lines().skip(3).take(11).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(jobs, ["10", "11", "12", "13", "14", "15", "16", "17", "18", "39", "7"]);
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn a_job_that_does_not_wait_has_no_chart() {
    let mut story = story(1000);
    story.events = vec![Event { at: at(100), what: What::Started(StartReason::Immediate) }];
    assert_eq!(chart(&story, &Held::default(), &Clock::default(), 80), None);
    story.events.clear();
    assert_eq!(chart(&story, &Held::default(), &Clock::default(), 80), None);
}
