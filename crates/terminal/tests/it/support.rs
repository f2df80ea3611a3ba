//! A machine with four jobs, and a terminal.

use std::sync::Arc;

use miserly_follow::Posted;
use miserly_terminal::{Action, App, Look, once};
use miserly_view::{Account, Cause, Clock, Facts, ForecastAccount, Job, PoolFacts, State};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(crate) const MINUTE: i64 = 60_000;

/// The present: 12:00 of the second day.
pub(crate) const NOW: i64 = 36 * 60 * MINUTE;

pub(crate) const PLAIN: Look = Look { colour: false, ascii: false };

/// Returns a job of user 7, or of another user.
pub(crate) fn job(number: i64, name: &str, own: bool) -> Job {
    let (user, uid) = if own { ("anna", 7) } else { ("berta", 8) };
    Job {
        number,
        label: number.to_string(),
        name: name.to_owned(),
        user: user.to_owned(),
        uid: Some(uid),
        procs: 2,
        limit: 60 * MINUTE,
        word: "queued".to_owned(),
        submitted: NOW - 300 * MINUTE,
        ..Job::default()
    }
}

pub(crate) fn running(number: i64, name: &str, own: bool) -> Job {
    let (start, end) = (Some(NOW - 30 * MINUTE), Some(NOW + 30 * MINUTE));
    Job { state: State::Running, word: "running".to_owned(), start, end, ..job(number, name, own) }
}

pub(crate) fn ended(number: i64, name: &str) -> Job {
    let (start, end) = (Some(NOW - 110 * MINUTE), Some(NOW - 50 * MINUTE));
    Job { state: State::Ended, word: "done".to_owned(), start, end, ..job(number, name, true) }
}

pub(crate) fn waiting(number: i64, name: &str, minutes: i64) -> Job {
    let promised = Some(NOW + minutes * MINUTE);
    Job { promised, causes: vec![Cause::Cpus { missing: 1, free: 0 }], ..job(number, name, true) }
}

/// Returns the facts of a machine with these jobs and a pool of 4 processors.
pub(crate) fn facts(jobs: Vec<Job>) -> Facts {
    let held = jobs.iter().filter(|job| job.state == State::Running).map(|job| job.procs).sum();
    let forecasts = Some(ForecastAccount { audited: 40, kept: [20, 33, 38] });
    Facts {
        now: NOW,
        clock: Clock::SinceStart,
        title: "vm".to_owned(),
        live: true,
        earlier: false,
        uid: Some(7),
        pools: vec![PoolFacts {
            name: "batch".to_owned(),
            cpus: 4,
            held,
            memory: 8 << 30,
            ..PoolFacts::default()
        }],
        jobs: jobs.into_iter().map(Into::into).collect(),
        account: Account { promises: 12, kept: 11, late: 1, forecasts, ..Account::default() },
    }
}

/// Returns the facts of the machine of most tests.
pub(crate) fn usual() -> Facts {
    facts(vec![
        ended(1, "archive"),
        running(2, "solve", true),
        waiting(3, "render", 30),
        waiting(4, "mesh", 90),
    ])
}

pub(crate) fn posted(facts: Facts) -> Posted {
    Posted { version: 0, facts: Arc::new(facts), problem: None }
}

/// Returns one frame of 80 columns as text.
pub(crate) fn frame(posted: Posted, ascii: bool) -> String {
    once(App::new(posted, Look { colour: false, ascii }), 80)
}

/// Returns the frame on a terminal of this size.
pub(crate) fn drawn(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the lines of a buffer.
pub(crate) fn lines(buffer: &Buffer) -> Vec<String> {
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect();
    buffer.content.chunks(usize::from(buffer.area.width)).map(line).collect()
}

/// Returns the frame on a usual terminal, as text.
pub(crate) fn text(app: &mut App) -> String {
    lines(&drawn(app, 80, 24)).join("\n")
}

/// Presses a key.
pub(crate) fn press(app: &mut App, code: KeyCode) -> Option<Action> {
    app.key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Types letters. Returns the action of the last one.
pub(crate) fn type_in(app: &mut App, letters: &str) -> Option<Action> {
    letters.chars().map(|letter| press(app, KeyCode::Char(letter))).last().flatten()
}
