//! Keys that send no request.

use jiff::Timestamp;
use miserly_api::model::Slice;
use miserly_terminal::{Action, Answer, App, Detail};
use miserly_view::Job;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::support::{
    MINUTE, NOW, PLAIN, drawn, facts, job, lines, posted, press, text, type_in, usual, waiting,
};

fn app() -> App {
    App::new(posted(usual()), PLAIN)
}

/// Checks the job of which the sentence is shown.
#[track_caller]
fn check_selected(app: &mut App, number: i64) {
    let shown = text(app);
    assert!(shown.contains(&format!("job {number}: ")), "{shown}");
}

#[test]
fn keys_that_end_it() {
    for code in [KeyCode::Char('q'), KeyCode::Esc, KeyCode::F(10)] {
        assert_eq!(press(&mut app(), code), Some(Action::Quit));
    }
    let mut app = app();
    type_in(&mut app, "/c");
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.key(interrupt), Some(Action::Quit), "also while a text is typed");
}

#[test]
fn the_selection_moves() {
    let mut app = app();
    check_selected(&mut app, 3);
    press(&mut app, KeyCode::Down);
    check_selected(&mut app, 4);
    press(&mut app, KeyCode::End);
    check_selected(&mut app, 1);
    press(&mut app, KeyCode::Down);
    check_selected(&mut app, 1);
    press(&mut app, KeyCode::Up);
    check_selected(&mut app, 2);
    press(&mut app, KeyCode::Home);
    check_selected(&mut app, 3);
}

#[test]
fn the_selection_follows_its_job() {
    let mut app = app();
    press(&mut app, KeyCode::Down);
    let jobs = vec![waiting(4, "mesh", 10), waiting(3, "render", 30)];
    app.post(posted(facts(jobs)));
    check_selected(&mut app, 4);
    app.post(posted(facts(vec![waiting(3, "render", 30)])));
    check_selected(&mut app, 3);
}

#[test]
fn the_first_row_is_selected_until_a_key_selects_a_job() {
    let queue = |jobs: &[i64]| posted(facts(jobs.iter().map(|job| waiting(*job, "mesh", *job)).collect()));
    let all: Vec<i64> = (20..60).collect();
    let mut app = App::new(queue(&all[10..]), PLAIN);
    check_selected(&mut app, 30);
    app.post(queue(&all));
    check_selected(&mut app, 20);
    // A search that is given up selects no job.
    type_in(&mut app, "/59");
    check_selected(&mut app, 59);
    press(&mut app, KeyCode::Esc);
    app.post(queue(&all[5..]));
    check_selected(&mut app, 25);
    press(&mut app, KeyCode::Down);
    app.post(queue(&all));
    check_selected(&mut app, 26);
    press(&mut app, KeyCode::Home);
    app.post(queue(&all[1..]));
    check_selected(&mut app, 21);
}

#[test]
fn a_request_keeps_the_job_of_the_first_row() {
    let first = waiting(4, "mesh", 10);
    let other = waiting(3, "render", 5);
    for keys in ["e30min", "l", "c"] {
        let mut app = App::new(posted(facts(vec![first.clone()])), PLAIN);
        type_in(&mut app, keys);
        app.post(posted(facts(vec![other.clone(), first.clone()])));
        type_in(&mut app, if keys == "l" { "c" } else { "" });
        if keys == "e30min" {
            press(&mut app, KeyCode::Enter);
        }
        let asked = press(&mut app, KeyCode::Char('y'));
        assert!(matches!(&asked, Some(Action::Ask(request)) if request.job == 4), "{keys}: {asked:?}");
        check_selected(&mut app, 3);
    }
}

#[test]
fn pages_of_many_jobs() {
    let many: Vec<Job> = (100..200).map(|number| waiting(number, "many", number)).collect();
    let mut app = App::new(posted(facts(many)), PLAIN);
    let rows = lines(&drawn(&mut app, 80, 24)).iter().filter(|line| line.contains("many")).count();
    press(&mut app, KeyCode::PageDown);
    check_selected(&mut app, 100 + i64::try_from(rows).unwrap());
    press(&mut app, KeyCode::End);
    check_selected(&mut app, 199);
    press(&mut app, KeyCode::PageUp);
    check_selected(&mut app, 199 - i64::try_from(rows).unwrap());
}

#[test]
fn tabs_and_the_own_jobs() {
    let mut others = usual();
    others.jobs.push(job(9, "foreign", false).into());
    let mut app = App::new(posted(others), PLAIN);
    let listed = |app: &mut App| {
        let shown = text(app);
        ["archive", "solve", "render", "foreign"].map(|name| shown.contains(name))
    };
    assert_eq!(listed(&mut app), [true; 4]);
    type_in(&mut app, "m");
    assert_eq!(listed(&mut app), [true, true, true, false]);
    press(&mut app, KeyCode::Tab);
    assert_eq!(listed(&mut app), [false, false, true, false]);
    type_in(&mut app, "3");
    assert_eq!(listed(&mut app), [false, true, false, false]);
    press(&mut app, KeyCode::F(5));
    assert_eq!(listed(&mut app), [true, false, false, false]);
    press(&mut app, KeyCode::Tab);
    assert_eq!(listed(&mut app), [true, true, true, false]);
}

#[test]
fn a_search_finds_while_it_is_typed() {
    let mut app = app();
    type_in(&mut app, "/SOL");
    assert!(text(&mut app).contains("/SOL_"));
    check_selected(&mut app, 2);
    press(&mut app, KeyCode::Enter);
    type_in(&mut app, "n");
    check_selected(&mut app, 2);
    press(&mut app, KeyCode::Home);
    type_in(&mut app, "/anna");
    press(&mut app, KeyCode::Enter);
    type_in(&mut app, "n");
    check_selected(&mut app, 4);
    type_in(&mut app, "NN");
    check_selected(&mut app, 1);
    type_in(&mut app, "/solve");
    press(&mut app, KeyCode::Esc);
    check_selected(&mut app, 1);
    type_in(&mut app, "/nothing");
    press(&mut app, KeyCode::Enter);
    assert!(text(&mut app).contains("no job has \"nothing\""));
}

#[test]
fn a_column_sorts() {
    let mut app = app();
    type_in(&mut app, "s");
    let shown = text(&mut app);
    assert!(shown.contains("JOB▲"), "{shown}");
    press(&mut app, KeyCode::Home);
    check_selected(&mut app, 1);
    type_in(&mut app, "S");
    press(&mut app, KeyCode::Home);
    check_selected(&mut app, 4);
}

#[test]
fn the_chart_moves_and_zooms() {
    let mut app = app();
    let axis = |app: &mut App| lines(&drawn(app, 80, 24))[2].clone();
    let before = axis(&mut app);
    press(&mut app, KeyCode::Right);
    assert_ne!(axis(&mut app), before);
    press(&mut app, KeyCode::Left);
    assert_eq!(axis(&mut app), before);
    type_in(&mut app, "+");
    assert_ne!(axis(&mut app), before);
    type_in(&mut app, "-");
    assert_eq!(axis(&mut app), before);
}

#[test]
fn the_past() {
    let mut app = app();
    type_in(&mut app, "t");
    for _ in 0..45 {
        press(&mut app, KeyCode::Left);
    }
    let shown = text(&mut app);
    assert!(shown.contains("day 2 11:15:00 PAST") && shown.contains("2 waiting 3  3 running 0"), "{shown}");
    assert!(shown.contains("no forecast at an earlier"), "{shown}");
    app.post(posted(facts(vec![])));
    type_in(&mut app, "f");
    assert!(text(&mut app).contains("no jobs"));
}

#[test]
fn what_starts_now() {
    let mut app = app();
    type_in(&mut app, "w");
    assert!(text(&mut app).contains("batch: nothing; miserly submit --quote"), "{}", text(&mut app));
    let slice = |minute: i64, cpus_free| Slice {
        from: Timestamp::from_millisecond(NOW + minute * MINUTE).expect("an instant"),
        cpus: 4,
        cpus_free,
        memory_free: 0,
        gpus_free: 0,
    };
    let mut known = facts(vec![]);
    known.pools[0].slices = vec![slice(0, 3), slice(90, 1)];
    app.post(posted(known));
    let shown = text(&mut app);
    assert!(shown.contains("batch: 3 processors for 1 h 30 min"), "{shown}");
    assert!(shown.contains("batch: 1 processor for any time"), "{shown}");
    type_in(&mut app, "x");
    assert!(text(&mut app).contains("no jobs"));
    type_in(&mut app, "tw");
    assert!(text(&mut app).contains("known for the present of a daemon only"));
}

#[test]
fn help_is_scrolled_and_left() {
    let mut app = app();
    type_in(&mut app, "?");
    let shown = text(&mut app);
    assert!(shown.contains("this page") && shown.contains("end       "), "all keys\n{shown}");
    assert!(!shown.contains('…') && shown.contains("any other key closes"), "{shown}");
    press(&mut app, KeyCode::End);
    assert!(text(&mut app).contains("The last 50 ended jobs"));
    drawn(&mut app, 40, 24);
    press(&mut app, KeyCode::End);
    let narrow = lines(&drawn(&mut app, 40, 24)).join("\n");
    assert!(narrow.contains("The last 50 ended jobs are listed."), "{narrow}");
    press(&mut app, KeyCode::Esc);
    check_selected(&mut app, 3);
}

#[test]
fn the_detail_has_the_end_of_the_output() {
    let mut app = app();
    assert_eq!(press(&mut app, KeyCode::Enter), Some(Action::Detail(3)));
    assert_eq!(app.detailed(), Some(3));
    let log = (0..100).map(|line| format!("line {line}")).collect();
    let detail = Detail { number: 3, head: vec!["command: sleep".to_owned()], log };
    assert!(app.answer(Answer::Detail(detail.clone())) && !app.answer(Answer::Detail(detail)));
    let shown = text(&mut app);
    assert!(shown.contains("command: sleep") && shown.contains("line 99"), "{shown}");
    press(&mut app, KeyCode::Up);
    assert!(!text(&mut app).contains("line 99"));
    press(&mut app, KeyCode::Home);
    assert!(text(&mut app).contains("line 0 "));
    type_in(&mut app, "q");
    assert_eq!(app.detailed(), None);
    let late = Detail { number: 3, ..Detail::default() };
    assert!(!app.answer(Answer::Detail(late)), "it is not shown any more");
}
