//! The page of the keys, and the detail of a job.

use ratatui::layout::Rect;

use super::Areas;
use super::pen::{Pen, width, wrapped};
use crate::look::Role;
use crate::{App, Detail};

/// The keys, which fill a usual terminal, and the characters of the chart.
const HELP: [&str; 32] = [
    "Up Down k j         select a job          PageUp PageDown  a page of jobs",
    "Home End g G        first and last job    m                only my jobs, or all",
    "Tab 1-4 F2-F5       list all, waiting, running or ended jobs",
    "a                   arrays as one row each, or their jobs one by one",
    "s S                 sort by the next column; reverse the order",
    "/                   search name, number, user; n, N: next and previous match",
    "l Enter             detail of the job, with the end of its output",
    "",
    "c                   cancel the job        h                hold the waiting job",
    "r                   release the held job  e                extend its time limit",
    "                    Each shows its effect first, and waits for y.",
    "Left Right          move the chart        + -              zoom in and out",
    "p                   map of processors, or chart and jobs; PageUp PageDown scroll",
    "w                   what starts now      b                promises late or lost",
    "t                   stop the time; then in the past:",
    "Left Right          a step back or ahead        + -  a shorter or longer step",
    "Home End            the first and the last known instant",
    "t                   type an instant, such as 08:00, 2026-03-01T08:00, -2h",
    "f                   back to the present",
    "Mouse               a click selects a row, a bar or a tab; the wheel scrolls",
    "? F1                this page             Ctrl-L           redraw the terminal",
    "q Esc F10 Ctrl-C    end",
    "Pools:  █ held by jobs   ▒ free, but reserved within an hour   · free",
    "Chart:  each row is one processor or several, from the bottom",
    "        █ ran   ▓ runs, up to its latest end   ░ promised or planned window",
    "        ▄ · less than half of the place   ▒ on idle processors",
    "        ▚ the selected job   │ now",
    "Map:    a letter for each job, named beside it; the selected job is reversed",
    "        ▒ idle, but reserved within an hour   · idle   x offline   █ held",
    "Table:  START: by = promised at the latest, plan = planned and not promised",
    "        LIKELY: the median of the forecast   END: by = at the latest",
    "        The last 50 ended jobs are listed.",
];

/// Returns the help in lines of at most so many columns. Lines that fit keep their blanks.
fn help_lines(columns: u16) -> Vec<String> {
    let columns = usize::from(columns);
    let lines =
        |text: &&str| if width(text) > columns { wrapped(text, columns) } else { vec![(*text).to_owned()] };
    HELP.iter().flat_map(lines).collect()
}

/// Returns the first line of the last part of the help.
pub(crate) fn help_end(app: &App) -> usize {
    let body = Areas::new(app, app.size).body;
    help_lines(body.width).len().saturating_sub(usize::from(body.height))
}

/// Returns the lines of an output that the detail of a job shows at a time.
pub(crate) fn output_room(app: &App, detail: &Detail) -> usize {
    let body = Areas::new(app, app.size).body;
    usize::from(body.height).saturating_sub(heading(app, detail, body.width).len() + 1)
}

pub(super) fn help(pen: &mut Pen<'_>, area: Rect, app: &App, top: usize) {
    let lines = help_lines(area.width);
    for (line, text) in (0..area.height).zip(lines.iter().skip(top.min(help_end(app)))) {
        pen.write(area, line, 0, text, Role::Plain);
    }
}

/// Draws the promises that were late or lost, the latest first, from one of them on.
pub(super) fn missed(pen: &mut Pen<'_>, area: Rect, app: &App, top: usize) {
    let missed = &app.view.moment.account.missed;
    let title =
        if missed.is_empty() { "No promise was late or lost." } else { "Promises that were late or lost:" };
    pen.write(area, 0, 0, title, Role::Title);
    let sentences = missed.iter().skip(top);
    let lines = sentences.flat_map(|missed| wrapped(&missed.sentence, usize::from(area.width)));
    for (line, text) in (1..area.height).zip(lines) {
        pen.write(area, line, 0, &text, Role::Plain);
    }
}

pub(super) fn detail(pen: &mut Pen<'_>, area: Rect, app: &App, detail: &Detail, below: usize) {
    let mut line = 0;
    for (text, role) in heading(app, detail, area.width) {
        pen.write_cut(area, line, 0, &text, role);
        line += 1;
    }
    if !app.daemon {
        return;
    }
    let title =
        if below > 0 { format!("output, up to {below} lines before its end:") } else { "output:".to_owned() };
    pen.write(area, line, 0, &title, Role::Title);
    line += 1;
    let room = usize::from(area.height.saturating_sub(line));
    let last = detail.log.len().saturating_sub(below);
    for (text, line) in detail.log[last.saturating_sub(room)..last].iter().zip(line..area.height) {
        pen.write(area, line, 0, text, Role::Plain);
    }
}

/// Returns the lines above the output.
fn heading(app: &App, detail: &Detail, width: u16) -> Vec<(String, Role)> {
    let mut lines = vec![];
    let found = app.view.lines.iter().find(|line| line.job.number == detail.number);
    if let Some(line) = found {
        let title =
            format!("job {}  {}  {}  {}", line.job.label, line.job.name, line.job.user, line.job.word);
        lines.push((title, Role::Title));
        let sentence = wrapped(&line.sentence, usize::from(width));
        lines.extend(sentence.into_iter().map(|text| (text, Role::Plain)));
    }
    let head = detail.head.iter().flat_map(|text| wrapped(text, usize::from(width)));
    lines.extend(head.map(|text| (text, Role::Plain)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_into_a_usual_terminal() {
        for line in HELP {
            assert!(width(line) <= 80, "{line}");
        }
        assert!(HELP[21].ends_with("end"), "a page has all keys");
        assert!(help_lines(40).iter().all(|line| width(line) <= 40));
    }
}
