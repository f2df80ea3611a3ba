//! Facts that do not change as time goes by: a run, or a stored state.

use miserly_terminal::{App, Look, once};
use miserly_view::{Facts, Job};
use ratatui::crossterm::event::KeyCode;

use crate::support::{MINUTE, NOW, PLAIN, ended, facts, posted, press, text, type_in};

/// Returns a run with a job from 10:10 to 11:10 of the second day, and one from 11:10 to 12:00. Both were submitted at 7:00.
fn run() -> Facts {
    let second = Job { start: Some(NOW - 50 * MINUTE), end: Some(NOW), ..ended(2, "second") };
    Facts { live: false, ..facts(vec![ended(1, "first"), second]) }
}

fn app() -> App {
    App::new(posted(run()), PLAIN).without_daemon()
}

/// Checks the first line of the frame.
#[track_caller]
fn check(app: &mut App, head: &str) {
    let shown = text(app);
    assert!(shown.lines().next().is_some_and(|line| line.starts_with(head)), "{shown}");
}

#[test]
fn keys_lead_through_it() {
    let mut app = app();
    // The known time is five hours: 300 steps.
    check(&mut app, "vm  day 2 12:00:00  step 1 min");
    press(&mut app, KeyCode::Right);
    check(&mut app, "vm  day 2 12:00:00");
    press(&mut app, KeyCode::Left);
    check(&mut app, "vm  day 2 11:59:00");
    type_in(&mut app, "++");
    check(&mut app, "vm  day 2 11:59:00  step 15 s");
    type_in(&mut app, "-----");
    check(&mut app, "vm  day 2 11:59:00  step 10 min");
    press(&mut app, KeyCode::Left);
    check(&mut app, "vm  day 2 11:49:00");
    press(&mut app, KeyCode::Home);
    check(&mut app, "vm  day 2 07:00:00");
    assert!(text(&mut app).contains("2 waiting 2"));
    press(&mut app, KeyCode::Left);
    check(&mut app, "vm  day 2 07:00:00");
    press(&mut app, KeyCode::End);
    check(&mut app, "vm  day 2 12:00:00");
    type_in(&mut app, "pf");
    check(&mut app, "vm  day 2 12:00:00");
}

#[test]
fn a_long_log_has_long_steps_and_a_long_chart() {
    let early = Job { submitted: NOW - 700 * 24 * 60 * MINUTE, ..ended(3, "early") };
    let mut facts = run();
    facts.jobs.push(early.into());
    let mut app = App::new(posted(facts), PLAIN).without_daemon();
    check(&mut app, "vm  day 2 12:00:00  step 3 d");
    press(&mut app, KeyCode::Left);
    check(&mut app, "vm  day -1 12:00:00  step 3 d");
}

#[test]
fn an_instant_is_typed() {
    let mut app = app();
    type_in(&mut app, "t11:00");
    assert!(text(&mut app).contains("11:00_"));
    press(&mut app, KeyCode::Enter);
    check(&mut app, "vm  day 2 11:00:00");
    assert!(text(&mut app).contains("3 running 1"));
    type_in(&mut app, "t-30min");
    press(&mut app, KeyCode::Enter);
    check(&mut app, "vm  day 2 10:30:00");
    type_in(&mut app, "tday 9");
    press(&mut app, KeyCode::Enter);
    assert!(text(&mut app).contains("is after the last known instant"));
    press(&mut app, KeyCode::Esc);
    type_in(&mut app, "tnever");
    press(&mut app, KeyCode::Enter);
    assert!(text(&mut app).contains("write an instant, such as day 3 08:00"));
    press(&mut app, KeyCode::Esc);
    check(&mut app, "vm  day 2 10:30:00");
}

#[test]
fn nothing_is_asked() {
    let mut app = app();
    assert_eq!(type_in(&mut app, "c"), None);
    assert!(text(&mut app).contains("there is no daemon to ask"));
    assert_eq!(press(&mut app, KeyCode::Enter), None);
    let shown = text(&mut app);
    assert!(!shown.contains("output") && !shown.contains("cancel"), "{shown}");
    assert_eq!(type_in(&mut app, "c"), None);
    assert!(!text(&mut app).contains("[1 all]"), "the key has no effect");
    type_in(&mut app, "q");
    assert!(text(&mut app).contains("[1 all]"));
}

#[test]
fn a_frame_of_an_instant() {
    let app =
        App::new(posted(run()), Look { colour: false, ascii: true }).at(NOW - 60 * MINUTE).with_processors();
    let shown = once(app, 80);
    assert!(shown.starts_with("vm  day 2 11:00:00"), "{shown}");
    assert!(shown.contains("1 first anna: 2 cpus"), "{shown}");
    let mut one = run();
    one.jobs.push(Job { procs: 1, ..ended(3, "single") }.into());
    let one = App::new(posted(one), PLAIN).at(NOW - 60 * MINUTE).with_processors();
    assert!(once(one, 80).contains("3 single anna: 1 cpu\n"));
}
