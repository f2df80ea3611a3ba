//! The sentence of the selected job, and the last line.

use std::iter;

use ratatui::layout::Rect;

use super::pen::{Pen, wrapped, wrapped_up_to};
use crate::App;
use crate::app::Mode;
use crate::look::Role;

/// The keys that the last line names.
const KEYS: &str = "? help  l log  / find  p cpus  w fits now  t past  c cancel  h hold  e extend  q";

/// The keys without a daemon, which takes requests and knows outputs and free processors.
const NO_DAEMON_KEYS: &str = "? help  l detail  / find  p cpus  t past  q";

/// The keys in the past.
const PAST_KEYS: &str = "← → move in time  + - step  Home End  t instant  p cpus  ? help";

/// The keys beside the map of the processors.
const MAP_KEYS: &str = "p chart  Up Down select a job  PageUp PageDown scroll  ? help  l log  t past  q";

/// Writes the sentence of the selected job, or the effect of the request that is to be confirmed.
pub(super) fn sentence(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let role = if matches!(app.mode, Mode::Confirm(..)) { Role::Bad } else { Role::Plain };
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
        (Mode::Confirm(request, moves), _) => {
            let unknown = moves.is_empty().then_some("the daemon is asked which promises move");
            let effect = request.effect(&app.view.facts);
            let lines = iter::once(effect.as_str()).chain(moves.iter().map(String::as_str)).chain(unknown);
            return lines.flat_map(|line| wrapped(line, usize::from(width))).collect();
        }
        (_, Some(line)) => {
            let no_forecast = app.view.facts.earlier && line.job.state.is_before_start();
            let note = if no_forecast { "; no forecast at an earlier instant" } else { "" };
            format!("job {}: {}{note}", line.job.label, line.sentence)
        }
        (_, None) => String::new(),
    };
    wrapped(&text, usize::from(width))
}

/// The most lines of a question or a message.
const LINES_MOST: usize = 2;

/// Writes the last lines: a question, a message, or the keys.
pub(super) fn keys(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let (text, role) = keys_text(app);
    let lines = wrapped_up_to(&text, usize::from(area.width), usize::from(area.height));
    for (line, text) in (0..area.height).zip(lines) {
        pen.write(area, line, 0, &text, role);
    }
}

/// Returns the number of the last lines. The keys have only one.
pub(super) fn keys_lines(app: &App, width: u16) -> u16 {
    let (text, role) = keys_text(app);
    let most = if role == Role::Dim { 1 } else { LINES_MOST };
    u16::try_from(wrapped_up_to(&text, usize::from(width), most).len()).unwrap_or(1)
}

fn keys_text(app: &App) -> (String, Role) {
    match (&app.mode, &app.notice, app.problem()) {
        (Mode::Confirm(..), ..) => ("y: yes, any other key: no".to_owned(), Role::Chosen),
        (Mode::Extend(_) | Mode::Instant(_), Some(notice), _) => (notice.text.clone(), Role::Bad),
        (Mode::Extend(text), ..) => (format!("extend by (such as 30min, 2h): {text}_"), Role::Chosen),
        (Mode::Instant(text), ..) => {
            (format!("show the instant (such as 08:00, -2h): {text}_"), Role::Chosen)
        }
        (Mode::Search(_, text), ..) => (format!("/{text}_"), Role::Chosen),
        (_, Some(notice), _) => (notice.text.clone(), if notice.bad { Role::Bad } else { Role::Good }),
        (_, None, Some(problem)) => (problem.to_owned(), Role::Bad),
        (Mode::Holes, ..) => ("any key leads back".to_owned(), Role::Dim),
        (Mode::Help(_) | Mode::Missed(_), ..) => {
            ("Up Down k j PageUp PageDown Space Home End scroll; any other key closes".to_owned(), Role::Dim)
        }
        (Mode::Detail(..), ..) if !app.daemon => ("q back".to_owned(), Role::Dim),
        (Mode::Detail(..), ..) if app.is_past() => ("Up Down scroll  q back".to_owned(), Role::Dim),
        (Mode::Detail(..), ..) => {
            ("Up Down scroll  c cancel  h hold  r release  e extend  q back".to_owned(), Role::Dim)
        }
        (Mode::List, ..) if app.is_replay() => (format!("{PAST_KEYS}  / find  q"), Role::Chosen),
        (Mode::List, ..) if app.is_past() => (format!("{PAST_KEYS}  f present"), Role::Chosen),
        (Mode::List, ..) if app.processors => (MAP_KEYS.to_owned(), Role::Dim),
        (Mode::List, ..) if !app.daemon => (NO_DAEMON_KEYS.to_owned(), Role::Dim),
        (Mode::List, ..) => (KEYS.to_owned(), Role::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::pen::width;

    #[test]
    fn the_keys_fit_into_a_usual_terminal() {
        let past = [format!("{PAST_KEYS}  / find  q"), format!("{PAST_KEYS}  f present")];
        for keys in [KEYS, NO_DAEMON_KEYS, MAP_KEYS, &past[0], &past[1]] {
            assert!(width(keys) <= 80, "{keys}");
        }
    }
}
