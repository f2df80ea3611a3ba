//! Arrays as one row each.

use miserly_terminal::{Action, App};
use miserly_view::{Job, State};
use ratatui::crossterm::event::KeyCode;

use crate::support::{PLAIN, ended, facts, posted, press, running, text, type_in, waiting};

/// Returns a job of the array 10.
fn member(index: u32, job: Job) -> Job {
    let number = 10 + i64::from(index);
    Job { number, label: format!("10[{index}]"), array: Some((10, index)), ..job }
}

fn app() -> App {
    let failed = Job { word: "done, failed".to_owned(), ..ended(0, "sweep") };
    let jobs = vec![
        member(0, ended(0, "sweep")),
        member(1, failed),
        member(2, running(0, "sweep", true)),
        member(3, waiting(0, "sweep", 30)),
        member(4, waiting(0, "sweep", 60)),
        waiting(7, "mesh", 90),
    ];
    App::new(posted(facts(jobs)), PLAIN)
}

#[track_caller]
fn rows(app: &mut App) -> Vec<String> {
    let shown = text(app);
    let rows = shown.lines().skip_while(|line| !line.contains("JOB")).skip(1);
    rows.take_while(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn an_array_is_one_row_with_its_progress() {
    let mut app = app();
    let shown = rows(&mut app);
    assert!(
        shown[0].starts_with("10[0-4]") && shown[0].contains("2/5 ended, 1 failed, 1 running"),
        "{shown:?}"
    );
    assert!(shown[1].starts_with("7 ") && shown.len() == 2, "{shown:?}");
    assert!(
        text(&mut app).contains("5 jobs: 2 waiting, 1 running, 2 ended, 1 of them without success"),
        "{}",
        text(&mut app)
    );
    type_in(&mut app, "2");
    let waiting = rows(&mut app);
    assert!(waiting[0].starts_with("10[3-4]") && waiting.len() == 2, "{waiting:?}");
}

#[test]
fn a_key_lists_the_jobs_of_arrays_one_by_one() {
    let mut app = app();
    type_in(&mut app, "a");
    assert_eq!(rows(&mut app).len(), 6);
    type_in(&mut app, "a");
    assert_eq!(rows(&mut app).len(), 2);
    assert_eq!(press(&mut app, KeyCode::Enter), None, "it opens the array first");
    assert_eq!(rows(&mut app).len(), 6);
    assert!(matches!(press(&mut app, KeyCode::Enter), Some(Action::Detail(_))));
}

#[test]
fn no_request_is_for_an_array() {
    let mut app = app();
    assert_eq!(type_in(&mut app, "c"), None);
    assert!(text(&mut app).contains("10[0-4] are several jobs; a lists them one by one"));
    type_in(&mut app, "ac");
    assert!(text(&mut app).contains("y: yes"));
}

#[test]
fn a_single_job_of_an_array_is_a_job() {
    let mut app =
        App::new(posted(facts(vec![member(0, Job { state: State::Held, ..waiting(0, "sweep", 5) })])), PLAIN);
    assert!(rows(&mut app)[0].starts_with("10[0]"));
}
