//! The sentence of the selected job, and the last line.

use ratatui::layout::Rect;

use super::pen::{Pen, wrapped};
use crate::App;
use crate::app::Mode;
use crate::look::Role;

/// The keys that the last line names.
const KEYS: &str = "? help  l log  / find  p cpus  w fits now  t past  c cancel  h hold  e extend  q";

/// The keys in the past.
const PAST_KEYS: &str = "← → move in time  + - step  Home End  t instant  p cpus  ? help";

/// The keys beside the map of the processors.
const MAP_KEYS: &str = "p chart  Up Down select a job  PageUp PageDown scroll  ? help  l log  t past  q";

/// Writes the sentence of the selected job, or the effect of the request that is to be confirmed.
pub(super) fn sentence(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let role = if matches!(app.mode, Mode::Confirm(_)) { Role::Bad } else { Role::Plain };
    for (line, text) in (0..area.height).zip(lines(app, area.width)) {
        pen.write(area, line, 0, &text, role);
    }
}

/// Returns the lines of the sentence.
pub(super) fn sentence_lines(app: &App, width: u16) -> u16 {
    u16::try_from(lines(app, width).len()).unwrap_or(u16::MAX)
}

fn lines(app: &App, width: u16) -> Vec<String> {
    let text = match (&app.mode, app.selected()) {
        (Mode::Confirm(request), _) => request.effect(&app.view.facts),
        (_, Some(line)) => {
            let no_forecast = app.view.facts.earlier && line.job.state.is_before_start();
            let note = if no_forecast { "; no forecast at an earlier instant" } else { "" };
            format!("job {}: {}{note}", line.job.label, line.sentence)
        }
        (_, None) => String::new(),
    };
    wrapped(&text, usize::from(width))
}

/// Writes the last line: a question, a message, or the keys.
pub(super) fn keys(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let (text, role) = match (&app.mode, &app.notice, app.problem()) {
        (Mode::Confirm(_), ..) => ("y: yes, any other key: no".to_owned(), Role::Chosen),
        (Mode::Extend(_) | Mode::Instant(_), Some(notice), _) => (notice.text.clone(), Role::Bad),
        (Mode::Extend(text), ..) => (format!("extend by (such as 30min, 2h): {text}_"), Role::Chosen),
        (Mode::Instant(text), ..) => {
            (format!("show the instant (such as 08:00, -2h): {text}_"), Role::Chosen)
        }
        (Mode::Search(_, text), ..) => (format!("/{text}_"), Role::Chosen),
        (_, Some(notice), _) => (notice.text.clone(), if notice.bad { Role::Bad } else { Role::Good }),
        (_, None, Some(problem)) => (problem.to_owned(), Role::Bad),
        (Mode::Holes, ..) => ("any key leads back".to_owned(), Role::Dim),
        (Mode::Help(_), ..) => ("arrows move, any other key leads back".to_owned(), Role::Dim),
        (Mode::Detail(..), ..) => {
            ("arrows move  c cancel  h hold  r release  e extend  q back".to_owned(), Role::Dim)
        }
        (Mode::List, ..) if app.is_replay() => (format!("{PAST_KEYS}  / find  q"), Role::Chosen),
        (Mode::List, ..) if app.is_past() => (format!("{PAST_KEYS}  f present"), Role::Chosen),
        (Mode::List, ..) if app.processors => (MAP_KEYS.to_owned(), Role::Dim),
        (Mode::List, ..) => (KEYS.to_owned(), Role::Dim),
    };
    pen.write(area, 0, 0, &text, role);
}
