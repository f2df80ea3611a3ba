//! Keys that send requests, each after a confirmation.

use jiff::Timestamp;
use miserly_api::model::{MovedPromise, Moves, Window};
use miserly_terminal::{Action, Answer, App, Request, What};
use miserly_view::{Job, State};
use ratatui::crossterm::event::KeyCode;

use crate::support::{
    NOW, PLAIN, drawn, facts, lines, posted, press, running, text, type_in, usual, waiting,
};

fn of(job: Job) -> App {
    App::new(posted(facts(vec![job])), PLAIN)
}

fn request(job: i64, what: What) -> Request {
    Request { job, label: job.to_string(), what }
}

fn asked(job: i64, what: What) -> Action {
    Action::Ask(request(job, what))
}

fn previewed(job: i64, what: What) -> Action {
    Action::Preview(request(job, what))
}

/// Returns the moves of a job 3 that loses its promise, so that five others start earlier.
fn lost() -> Moves {
    let at = |minutes: i64| Timestamp::from_millisecond(NOW + minutes * 60_000 + 1).expect("an instant");
    let moved = |job| MovedPromise { job, before: at(60), after: Some(at(29)) };
    let before = Some(Window { start: at(29), end: at(60) });
    Moves { job: 3, before, moved: (4..9).map(moved).collect(), count: 5, ..Moves::default() }
}

#[track_caller]
fn check_shown(app: &mut App, expect: &str) {
    let shown = text(app);
    assert!(shown.contains(expect), "{expect:?} is not in\n{shown}");
}

#[test]
fn a_running_job_is_cancelled_after_a_confirmation() {
    let mut app = of(running(2, "solve", true));
    assert_eq!(type_in(&mut app, "c"), Some(previewed(2, What::Cancel)));
    check_shown(&mut app, "cancels job 2, which runs since 11:30, and frees 2 processors");
    assert_eq!(type_in(&mut app, "y"), Some(asked(2, What::Cancel)));
    app.answer(Answer::Refused("the job is another user's".to_owned()));
    check_shown(&mut app, "the job is another user's");
}

#[test]
fn any_other_key_drops_the_request() {
    for code in [KeyCode::Char('n'), KeyCode::Esc, KeyCode::Enter, KeyCode::Char('q'), KeyCode::Down] {
        let mut app = of(running(2, "solve", true));
        type_in(&mut app, "c");
        assert_eq!(press(&mut app, code), None);
        check_shown(&mut app, "nothing is changed");
        assert_eq!(type_in(&mut app, "y"), None);
    }
}

#[test]
fn a_hold_tells_the_promises_that_move() {
    let mut app = of(waiting(3, "render", 30));
    assert_eq!(type_in(&mut app, "h"), Some(previewed(3, What::Hold)));
    check_shown(&mut app, "holds job 3");
    let of_another = Answer::Moves(request(4, What::Hold), Err("job 4 has ended".to_owned()));
    assert!(!app.answer(of_another));
    assert!(app.answer(Answer::Moves(request(3, What::Hold), Ok(lost().into()))));
    check_shown(&mut app, "job 3: no promise; before: starts by 12:30, ends by 13:01");
    check_shown(&mut app, "other promises that move: 5");
    check_shown(&mut app, "job 6: from 13:01 to 12:30");
    check_shown(&mut app, "and 2 jobs");
    assert_eq!(type_in(&mut app, "y"), Some(asked(3, What::Hold)));
    app.answer(Answer::Done("job 3: held".to_owned()));
    check_shown(&mut app, "job 3: held");
}

#[test]
fn only_a_held_job_is_released() {
    let held = Job { state: State::Held, promised: None, ..waiting(3, "render", 30) };
    let mut app = of(held);
    type_in(&mut app, "h");
    check_shown(&mut app, "job 3 is held already");
    type_in(&mut app, "r");
    assert_eq!(type_in(&mut app, "y"), Some(asked(3, What::Release)));
    let mut app = of(running(2, "solve", true));
    type_in(&mut app, "r");
    check_shown(&mut app, "job 2 is not held");
    type_in(&mut app, "h");
    check_shown(&mut app, "only a waiting job can be held");
}

#[test]
fn an_extension_asks_for_its_time() {
    let mut app = of(running(2, "solve", true));
    type_in(&mut app, "e3x");
    check_shown(&mut app, "extend by (such as 30min, 2h): 3x_");
    press(&mut app, KeyCode::Enter);
    check_shown(&mut app, "3x");
    press(&mut app, KeyCode::Backspace);
    type_in(&mut app, "0min");
    press(&mut app, KeyCode::Enter);
    check_shown(&mut app, "extends job 2 by 30m, to 1h30m in all");
    app.answer(Answer::Moves(
        request(2, What::Extend(1800)),
        Err("the promise to job 9 would break".to_owned()),
    ));
    check_shown(&mut app, "the promise to job 9 would break");
    assert_eq!(type_in(&mut app, "y"), Some(asked(2, What::Extend(1800))));
    assert!(!app.answer(Answer::Moves(request(2, What::Extend(1800)), Err("too late".to_owned()))));
}

#[test]
fn the_request_is_for_the_job_that_was_selected() {
    let mut app = of(running(2, "solve", true));
    type_in(&mut app, "c");
    app.post(posted(facts(vec![waiting(9, "other", 5)])));
    check_shown(&mut app, "job 2 is not known any more");
    assert_eq!(type_in(&mut app, "y"), Some(asked(2, What::Cancel)));
}

#[test]
fn the_past_takes_no_request() {
    let mut app = App::new(posted(usual()), PLAIN);
    for key in ["c", "h", "r", "e"] {
        type_in(&mut app, "t");
        assert_eq!(type_in(&mut app, key), None);
        check_shown(&mut app, "this is the past");
        type_in(&mut app, "f");
    }
}

#[test]
fn without_jobs_there_is_nothing_to_ask() {
    let mut app = App::new(posted(facts(vec![])), PLAIN);
    type_in(&mut app, "c");
    check_shown(&mut app, "no job is selected");
    assert_eq!(press(&mut app, KeyCode::Enter), None);
}

#[test]
fn the_effect_is_shown_as_a_whole_on_any_terminal() {
    for (width, height) in [(80, 24), (20, 9), (40, 6), (200, 3)] {
        let mut app = of(waiting(3, "render", 30));
        drawn(&mut app, width, height);
        type_in(&mut app, "h");
        let shown = lines(&drawn(&mut app, width, height)).join("");
        let words: Vec<&str> = shown.split_whitespace().collect();
        let effect = "holds job 3";
        assert!(words.join(" ").contains(effect), "{width} x {height}: {words:?}");
        app.answer(Answer::Moves(request(3, What::Hold), Ok(lost().into())));
        let shown = lines(&drawn(&mut app, width, height)).join(" ");
        assert_eq!(shown.contains("and 2 jobs"), height > 9, "{width} x {height}: {shown}");
        assert!(shown.contains("y: yes"), "{width} x {height}: {shown}");
    }
    let mut app = of(waiting(3, "render", 30));
    drawn(&mut app, 80, 2);
    type_in(&mut app, "h");
    assert_eq!(type_in(&mut app, "y"), None);
}
