//! The mouse.

use miserly_terminal::App;
use miserly_view::Job;
use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::support::{PLAIN, drawn, facts, lines, posted, running, text, type_in, usual, waiting};

fn event(app: &mut App, kind: MouseEventKind, column: usize, row: usize) {
    let [column, row] = [column, row].map(|place| u16::try_from(place).expect("a small place"));
    let action = app.mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
    assert_eq!(action, None);
}

fn click(app: &mut App, column: usize, row: usize) {
    event(app, MouseEventKind::Down(MouseButton::Left), column, row);
}

/// Returns the row of the terminal, and the column in it, with a text.
#[track_caller]
fn find(app: &mut App, wanted: &str) -> (usize, usize) {
    let shown = lines(&drawn(app, 80, 24));
    let row =
        shown.iter().position(|line| line.contains(wanted)).unwrap_or_else(|| panic!("{wanted}: {shown:#?}"));
    let column = shown[row].find(wanted).map(|at| shown[row][..at].chars().count()).expect("it is shown");
    (column, row)
}

#[test]
fn a_click_selects_a_row_a_tab_and_a_bar() {
    let mut app = App::new(posted(usual()), PLAIN);
    let (column, row) = find(&mut app, "mesh");
    click(&mut app, column, row);
    assert!(text(&mut app).contains("job 4: "));
    let (column, row) = find(&mut app, "2 waiting");
    click(&mut app, column, row);
    assert!(text(&mut app).contains("[2 waiting 2]"));
    // The bar of the job that runs, which this tab does not list.
    let (column, row) = find(&mut app, "▓");
    click(&mut app, column, row);
    let shown = text(&mut app);
    assert!(shown.contains("job 2: ") && shown.contains("[1 all]"), "{shown}");
    click(&mut app, 0, 23);
    assert!(text(&mut app).contains("job 2: "), "nothing is below the table");
}

#[test]
fn the_wheel_scrolls_the_table_and_the_help() {
    let jobs: Vec<Job> = (1..60).map(|number| waiting(number, "mesh", number)).collect();
    let mut app = App::new(posted(facts(jobs)), PLAIN);
    let first = |app: &mut App| {
        let shown = lines(&drawn(app, 80, 24));
        let head = shown.iter().position(|line| line.contains("JOB")).unwrap();
        shown[head + 1].split(' ').next().unwrap().to_owned()
    };
    assert_eq!(first(&mut app), "1");
    event(&mut app, MouseEventKind::ScrollDown, 5, 15);
    assert_eq!(first(&mut app), "4");
    assert!(text(&mut app).contains("job 4: "), "the selection stays visible");
    event(&mut app, MouseEventKind::ScrollUp, 5, 15);
    assert_eq!(first(&mut app), "1");
    type_in(&mut app, "?");
    let before = text(&mut app);
    event(&mut app, MouseEventKind::ScrollDown, 5, 15);
    assert_ne!(text(&mut app), before);
}

#[test]
fn a_click_changes_no_question() {
    let mut app = App::new(posted(facts(vec![running(2, "solve", true), running(3, "mesh", true)])), PLAIN);
    let (column, row) = find(&mut app, "mesh");
    type_in(&mut app, "c");
    let asked = text(&mut app);
    click(&mut app, column, row);
    event(&mut app, MouseEventKind::ScrollDown, column, row);
    assert_eq!(text(&mut app), asked);
}
