//! The frames of the view.

use miserly_follow::Posted;
use miserly_terminal::{App, Look, once};
use miserly_view::{Account, Facts, Job, PoolFacts, RUN_NUMBERS, State, plain};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Color;

use crate::support::{
    MINUTE, NOW, PLAIN, drawn, facts, frame, lines, posted, press, running, text, usual, waiting,
};

const FRAME: &str = "\
vm  day 2 12:00  promises: 1 late, 11 kept of 12  95 % bounds: 95 % held of 40
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
    let mut app = App::new(posted(many), PLAIN);
    assert!(text(&mut app).contains("and 27 more pools"));
    let low = lines(&drawn(&mut app, 80, 10)).join("\n");
    assert!(low.contains("30 pools") && !low.contains("more"), "{low}");
}

/// Returns the line of a pool on a terminal of this width.
fn pool_line(pool: PoolFacts, width: u16) -> String {
    let mut known = facts(vec![]);
    known.pools = vec![pool];
    lines(&drawn(&mut App::new(posted(known), PLAIN), width, 24))[1].trim_end().to_owned()
}

#[test]
fn numbers_of_a_pool_are_whole_beside_its_bar() {
    let pool = |name: &str| PoolFacts {
        name: name.to_owned(),
        cpus: 1_234_567,
        memory: 4096 << 30,
        memory_held: 100 << 20,
        ..PoolFacts::default()
    };
    assert_eq!(
        pool_line(pool("batch"), 80),
        "batch [···················] 0 held, 1234567 free of 1234567; memory 100MiB/4TiB"
    );
    assert_eq!(
        pool_line(pool("wide-nodes-with-memory"), 80),
        "wide-nodes-with… [··········] 0 held, 1234567 free of 1234567…"
    );
    assert_eq!(pool_line(pool("batch"), 40), "batch 0 held, 1234567 free of 1234567…");
    let stopped = PoolFacts { stopped: Some("a very long reason ".repeat(9)), ..pool("batch") };
    assert!(pool_line(stopped, 80).ends_with('…'));
}

#[test]
fn a_narrow_head_has_the_promises_first_that_were_not_kept() {
    let account = Account { promises: 29, kept: 12, late: 9, at_risk: 1, ..Account::default() };
    let mut app = App::new(posted(Facts { account, ..usual() }), PLAIN);
    let mut head = |width| lines(&drawn(&mut app, width, 24))[0].trim_end().to_owned();
    assert_eq!(head(80), "vm  day 2 12:00  promises: 9 late, 1 at risk, 12 kept of 29");
    assert_eq!(head(50), "vm  day 2 12:00  promises: 9 late, 1 at risk…");
    assert_eq!(head(40), "vm  day 2 12:00  promises: 9 late…");
    assert_eq!(head(20), "vm  day 2 12:00…");
    let failed = Posted { problem: Some("no daemon answers".to_owned()), ..posted(usual()) };
    let mut app = App::new(failed, PLAIN);
    assert!(lines(&drawn(&mut app, 40, 24))[0].starts_with("vm  day 2 12:00 NO ANSWER…"));
}

#[test]
fn the_chart_has_the_numbers_of_the_log() {
    let of_second_policy =
        Job { number: RUN_NUMBERS + 2, label: "2".to_owned(), ..running(2, "solve", true) };
    let later = Job { number: RUN_NUMBERS + 3, label: "3".to_owned(), ..waiting(3, "render", 30) };
    let long = |job: Job| Job { limit: 300 * MINUTE, end: job.end.map(|end| end + 300 * MINUTE), ..job };
    let shown = frame(posted(facts(vec![long(later), long(of_second_policy)])), false);
    assert!(shown.contains("2▓") && shown.contains("3▚") && !shown.contains("100000"), "{shown}");
}

#[test]
fn jobs_on_idle_processors_have_rows_only_if_one_is_visible() {
    let idle = |since: i64| Job {
        state: State::Opportunistic,
        start: Some(NOW - since * MINUTE),
        ..waiting(5, "early", 30)
    };
    let shown = |job: Job| frame(posted(facts(vec![job])), false);
    let visible = shown(idle(60));
    assert!(visible.contains("batch, on i…") && visible.contains('▒'), "{visible}");
    let new = shown(idle(1));
    assert!(!new.contains("on i…") && new.lines().nth(3).unwrap().starts_with("batch  "), "{new}");
    let mut app = App::new(posted(facts(vec![idle(60)])), PLAIN);
    for _ in 0..4 {
        press(&mut app, KeyCode::Right);
    }
    assert!(!text(&mut app).contains("on i…"), "{}", text(&mut app));
}

#[test]
fn the_table_names_the_pools_of_a_machine_with_several() {
    let one = facts(vec![running(2, "solve", true)]);
    assert!(!frame(posted(one.clone()), false).contains("POOL"));
    let mut two = Facts { jobs: vec![Job { pool: 1, ..running(2, "solve", true) }.into()], ..one };
    two.pools.push(PoolFacts { name: "night".to_owned(), ..two.pools[0].clone() });
    let shown = frame(posted(two), false);
    let column = |text: &str| {
        let mut lines = shown.lines().skip_while(|line| !line.starts_with("JOB"));
        lines.find_map(|line| line.find(text))
    };
    assert!(column("POOL").is_some() && column("POOL") == column("night"), "{shown}");
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
    let at = |now| posted(Facts { now, ..usual() });
    assert!(!app.post(at(NOW + MINUTE - 1)) && app.post(at(NOW + MINUTE)));
    assert!(app.post(posted(facts(vec![]))));
    assert!(!app.tick(NOW + 1) && app.tick(NOW + MINUTE));
    assert!(text(&mut app).contains("12:01"));
}

#[test]
fn a_long_error_has_two_lines() {
    let problem = "no daemon answers on /run/miserly/socket: Connection refused (os error 111); start it with miserly daemon";
    let failed = Posted { problem: Some(problem.to_owned()), ..posted(usual()) };
    let mut app = App::new(failed, PLAIN);
    let mut foot = |width, height: u16| {
        let shown = lines(&drawn(&mut app, width, height));
        shown[usize::from(height) - 2..].iter().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(foot(80, 24).join(" "), problem);
    assert_eq!(foot(40, 24)[1], "/run/miserly/socket: Connection refused…");
    assert_eq!(foot(80, 6)[1], format!("{}…", &problem[..79]));
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

#[test]
fn one_frame_has_colours_where_they_are_wanted() {
    let plain = once(App::new(posted(usual()), PLAIN), 80);
    let coloured = once(App::new(posted(usual()), Look { colour: true, ascii: false }), 80);
    assert!(!plain.contains('\x1b') && coloured.contains("\x1b[0;32m"), "{coloured:?}");
    let mut bare = String::new();
    for part in coloured.split('\x1b') {
        bare.push_str(
            part.strip_prefix('[').map_or(part, |rest| rest.split_once('m').map_or("", |(_, text)| text)),
        );
    }
    let text = |frame: &str| frame.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(text(&bare), text(&plain), "the same text");
    assert!(
        coloured.lines().all(|line| !line.contains('\x1b') || line.contains("\x1b[0m")),
        "no style goes on"
    );
}
