//! The topology of the machine: whole cores, and what a setup with them refuses.

use miserly_api::model::{Phase, Submission};
use miserly_engine::{Absence, Action, Attempt, DaemonReply, DaemonRequest, PlannedWindow, Topology};

use super::life::{Life, early, job};

/// Returns a life with a pool of six processors, in three cores of two: 0 and 3, 1 and 4, 2 and 5.
fn cores(whole: bool) -> Life {
    let mut life = Life::new(6, 8);
    life.setup.topology =
        Topology { cores: vec![vec![0, 3], vec![1, 4], vec![2, 5], vec![6, 7]], nodes: vec![] };
    life.setup.whole_cores = whole;
    life.set_up(0).unwrap();
    life
}

#[track_caller]
fn check_cpus(life: &mut Life, second: i64, job: i64, expect: &[u32]) {
    match life.job(second, job).phase {
        Phase::Running(allocation) => assert_eq!(allocation.cpus, expect),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_gets_whole_cores_before_parts_of_cores() {
    let mut life = cores(false);
    let [two, one, other] = [2, 1, 1].map(|cpus| life.submit(1, job(cpus, 20)));
    check_cpus(&mut life, 2, two, &[0, 3]);
    check_cpus(&mut life, 2, one, &[1]);
    check_cpus(&mut life, 2, other, &[4]);
}

#[test]
fn with_whole_cores_requests_are_rounded_up_and_no_core_is_shared() {
    let mut life = cores(true);
    let [first, second, third] = [1, 3, 1].map(|cpus| life.submit(1, job(cpus, 20)));
    assert_eq!([first, second, third].map(|job| life.job(2, job).cpus), [2, 4, 2]);
    check_cpus(&mut life, 2, first, &[0, 3]);
    check_cpus(&mut life, 2, second, &[1, 2, 4, 5]);
    assert_eq!(life.job(2, third).phase, Phase::Queued);
    // The next daemon has the same topology from the state, also if it knows none itself yet.
    life.begin(3, &Absence::default());
    life.end_attempt(4, Attempt { job: second, nth: 1 });
    check_cpus(&mut life, 5, third, &[1, 4]);
}

#[test]
fn the_rounded_request_counts_everywhere() {
    let mut life = cores(true);
    let refused = life.ask(1, DaemonRequest::Submit(job(7, 20))).unwrap_err();
    assert!(refused.message.contains("8 cpus: queue batch has at most 6"), "{refused}");
    let named = Submission { request_id: Some("a".to_owned()), ..job(5, 20) };
    let again = [life.submit(1, named.clone()), life.submit(2, named)];
    assert_eq!(again[0], again[1]);
    let quote = life.ask(3, DaemonRequest::Quote(job(1, 20))).unwrap();
    let DaemonReply::Quote(quote) = quote else { panic!("{quote:?}") };
    let after = life.job(3, again[0]).promise.unwrap().promised.end;
    assert!(quote.windows[0].as_ref().is_some_and(|window| window.start >= after), "{quote:?}");
}

#[test]
fn a_window_that_begins_without_a_daemon_has_whole_cores() {
    let mut life = cores(true);
    life.submit(1, job(4, 20));
    life.submit(1, job(2, 60));
    let waits = life.submit(1, early(2, 20));
    let window = |action| match action {
        Action::PlanWindow(PlannedWindow { cpus, .. }) => Some(cpus),
        Action::Launch(launch) => launch.planned_window.map(|window| window.cpus),
        _ => None,
    };
    let windows: Vec<Vec<u32>> = life.actions(waits).into_iter().filter_map(window).collect();
    assert_eq!(windows, [[0, 3]]);
}

#[test]
fn whole_cores_are_not_switched_on_under_jobs_that_have_parts() {
    let mut life = cores(false);
    let half = life.submit(1, job(1, 20));
    life.setup.whole_cores = true;
    let problem = life.set_up(2).unwrap_err();
    assert_eq!(problem.job, Some(half));
    assert!(problem.message.contains("requests 1 cpus, which are no whole cores of 2"), "{problem}");
    life.end_attempt(3, Attempt { job: half, nth: 1 });
    life.set_up(4).unwrap();
}

#[test]
fn whole_cores_are_not_switched_on_under_a_job_on_parts_of_cores() {
    // Without a topology it gets the lowest processors, which are parts of two cores.
    let mut life = Life::new(6, 8);
    let parts = life.submit(1, job(2, 20));
    check_cpus(&mut life, 1, parts, &[0, 1]);
    life.setup.topology = Topology { cores: vec![vec![0, 3], vec![1, 4], vec![2, 5]], nodes: vec![] };
    life.setup.whole_cores = true;
    let problem = life.set_up(2).unwrap_err();
    assert!(problem.message.contains("runs on the cpus [0, 1], which are no whole cores"), "{problem}");
}
