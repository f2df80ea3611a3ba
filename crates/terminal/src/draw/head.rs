//! The first line: the machine, the time, and the record of promises and forecasts.

use miserly_view::{Account, ForecastAccount, plain, span};
use ratatui::layout::Rect;

use super::pen::Pen;
use crate::App;
use crate::look::Role;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let moment = &app.view.moment;
    let mut parts = vec![(plain(&moment.title), Role::Title), (format!("  {}", time(app)), Role::Plain)];
    if app.problem().is_some() {
        parts.push((" NO ANSWER".to_owned(), Role::Bad));
        parts.push((" from the daemon".to_owned(), Role::Bad));
    }
    if app.is_past() && !app.is_replay() {
        parts.push((" PAST".to_owned(), Role::Chosen));
    }
    if app.is_past() {
        parts.push((format!("  step {}", span(app.past_step())), Role::Plain));
    }
    parts.extend(account(&moment.account));
    pen.write_parts(area, 0, &parts);
}

/// Returns the instant, to the minute in the present.
fn time(app: &App) -> &str {
    let text = &*app.view.moment.text;
    if app.is_past() { text } else { text.get(..text.len().saturating_sub(3)).unwrap_or(text) }
}

/// Returns the record in parts, the promises that were not kept first: a narrow terminal leaves out the last parts.
fn account(account: &Account) -> Vec<(String, Role)> {
    let Account { promises, kept, late, lost, at_risk, forecasts, .. } = account;
    let bad = [(*late, "late"), (*lost, "lost"), (*at_risk, "at risk")];
    let bad = bad.into_iter().filter(|(number, _)| *number > 0);
    let mut parts: Vec<(String, Role)> =
        bad.map(|(number, word)| (format!("{number} {word}"), Role::Bad)).collect();
    let role = if parts.is_empty() { Role::Good } else { Role::Plain };
    parts.push((format!("{kept} kept of {promises}"), role));
    for (place, (text, _)) in parts.iter_mut().enumerate() {
        text.insert_str(0, if place == 0 { "  promises: " } else { ", " });
    }
    parts.extend(forecasts.as_ref().filter(|forecasts| forecasts.audited > 0).map(forecast));
    parts
}

/// Returns the share of the jobs that started by the bound of 95 %.
fn forecast(forecasts: &ForecastAccount) -> (String, Role) {
    let [.., kept] = forecasts.kept;
    let share = kept.saturating_mul(100) / forecasts.audited.max(1);
    (format!("  95 % bounds: {share} % held of {}", forecasts.audited), Role::Plain)
}
