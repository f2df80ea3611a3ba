//! The frames of the view.

use miserly_follow::Posted;
use miserly_terminal::{App, Look};
use miserly_view::{Job, PoolFacts, plain};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Color;

use crate::support::{
    MINUTE, NOW, PLAIN, drawn, facts, frame, lines, posted, press, running, text, usual, waiting,
};

const FRAME: &str = "\
vm  day 2 12:00  promises: 11 kept of 12, 1 broken  95 % bounds: 95 % held of 40
batch [██████████████████·················] 2 held, 2 free of 4; memory 0B/8GiB
      10:00             12:00              14:00             16:00
batch                   │
                        │
       ▄1████████  ▄2▓▓▓│▓▓▓▓▚3▚▚▚▚▚▚▚░4░░░░░░░░
       ▄█████████  ▄▓▓▓▓│▓▓▓▓▚▚▚▚▚▚▚▚▚░░░░░░░░░░
[1 all] 2 waiting 2  3 running 1  4 ended 1
JOB NAME    USER CPUS STATE   START    END
3   render  anna    2 queued  by 12:30 by 13:30
4   mesh    anna    2 queued  by 13:30 by 14:30
2   solve   anna    2 running 11:30    by 12:30
1   archive anna    2 done    10:10    11:10

job 3: starts by 12:30; waits for 1 processor that job 2 holds until 12:30
";

#[test]
fn a_frame_has_all_parts() {
    assert_eq!(frame(posted(usual()), false), FRAME);
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let jobs: Vec<Job> = (10..90).map(|number| waiting(number, "many", number)).collect();
    for facts in [usual(), facts(vec![]), facts(jobs)] {
        for (width, height) in [(80, 24), (200, 50), (20, 5), (1, 1), (7, 9), (3, 40), (300, 2), (40, 16)] {
            let mut app = App::new(posted(facts.clone()), PLAIN);
            for code in ['l', 'q', 'c', 'n', '?', 'q', '/', 'x'].map(KeyCode::Char) {
                drawn(&mut app, width, height);
                press(&mut app, code);
            }
        }
    }
}

#[test]
fn a_machine_without_pools_or_with_many() {
    let mut none = usual();
    none.pools.clear();
    none.jobs.clear();
    assert!(text(&mut App::new(posted(none), PLAIN)).contains("no jobs"));
    let mut many = usual();
    many.pools = (0..30)
        .map(|at| PoolFacts { name: format!("pool {at}"), cpus: 64, ..PoolFacts::default() })
        .collect();
    assert!(text(&mut App::new(posted(many), PLAIN)).contains("more pools"));
}

#[test]
fn without_colours_no_cell_has_one() {
    let coloured = |colour| {
        let mut app = App::new(posted(usual()), Look { colour, ascii: false });
        let buffer = drawn(&mut app, 80, 24);
        buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(coloured(true) && !coloured(false));
}

#[test]
fn in_ascii_every_character_is_one() {
    let facts = facts(vec![running(2, "任務 é", true), waiting(3, "…", 30)]);
    let mut app = App::new(posted(facts.clone()), Look { colour: true, ascii: true });
    let shown = lines(&drawn(&mut app, 80, 24)).join("\n");
    assert!(shown.is_ascii(), "{shown}");
    assert!(shown.contains('=') && shown.contains('@') && shown.contains('|'), "{shown}");
    assert!(frame(posted(facts), true).is_ascii());
}

#[test]
fn a_name_moves_no_cursor() {
    let evil = "\x1b[2J\x1b[1;1Hgone\n\r\u{202e}x";
    let mut app = App::new(posted(facts(vec![running(2, &plain(evil), true)])), PLAIN);
    let shown = text(&mut app);
    assert!(shown.lines().next().unwrap().starts_with("vm"), "{shown}");
    assert!(!shown.chars().any(|letter| letter.is_control() && letter != '\n'), "{shown}");
    assert!(shown.contains("[2J"), "{shown}");
}

#[test]
fn wide_characters_keep_the_columns() {
    let shown = frame(posted(facts(vec![running(2, "任務", true), running(3, "ab", true)])), false);
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains(" running ")).collect();
    let columns =
        |line: &str| ratatui::text::Span::raw(line[..line.find("running").unwrap()].to_owned()).width();
    assert_eq!(columns(rows[1]), columns(rows[2]), "{shown}");
}

#[test]
fn facts_stay_when_the_daemon_does_not_answer() {
    let mut app = App::new(posted(usual()), PLAIN);
    let failed = Posted { problem: Some("no daemon answers on s".to_owned()), ..posted(usual()) };
    assert!(app.post(failed.clone()));
    assert!(!app.post(failed), "nothing changed");
    let shown = text(&mut app);
    assert!(shown.contains("NO ANSWER") && shown.contains("no daemon answers on s"), "{shown}");
    assert!(shown.contains("render"), "{shown}");
    assert!(app.post(posted(usual())));
    assert!(!text(&mut app).contains("NO ANSWER"));
}

#[test]
fn a_frame_is_drawn_again_only_after_a_change() {
    let mut app = App::new(posted(usual()), PLAIN);
    let at = |now| posted(miserly_view::Facts { now, ..usual() });
    assert!(!app.post(at(NOW + MINUTE - 1)) && app.post(at(NOW + MINUTE)));
    assert!(app.post(posted(facts(vec![]))));
    assert!(!app.tick(NOW + 1) && app.tick(NOW + MINUTE));
    assert!(text(&mut app).contains("12:01"));
}

/// A queue of likely starts does not hide the jobs that run.
#[test]
fn likely_starts_add_no_rows() {
    let likely = Some([NOW + 40 * MINUTE, NOW + 50 * MINUTE, NOW + 60 * MINUTE]);
    let queue = (10..200).map(|number| Job { likely, promised: None, ..waiting(number, "mesh", 0) });
    let jobs = [running(2, "solve", true)].into_iter().chain(queue).collect();
    let shown = frame(posted(facts(jobs)), false);
    let chart: Vec<&str> = shown.lines().skip(3).take_while(|line| !line.contains("[1 all]")).collect();
    assert_eq!(chart.len(), 4, "{shown}");
    assert!(chart.iter().any(|line| line.contains("2▓")), "{shown}");
    assert!(chart.iter().any(|line| line.contains('░')), "{shown}");
}
