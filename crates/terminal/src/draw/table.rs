//! The table of jobs.

use miserly_view::Line;
use ratatui::layout::Rect;

use super::pen::{Pen, cut, width};
use crate::App;
use crate::app::{Column, Tab};
use crate::look::Role;

/// The columns that are left out first on a narrow terminal.
const LEFT_OUT: [Column; 7] =
    [Column::Likely, Column::End, Column::User, Column::Pool, Column::Cpus, Column::State, Column::Start];

/// The least width of a name.
const NAME_LEAST: usize = 6;

/// The most width of a name.
const NAME_MOST: usize = 40;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    draw_tabs(pen, area, app);
    let columns = fitted(app, usize::from(area.width));
    let header: Vec<String> = columns.iter().map(|(column, width)| head(app, *column, *width)).collect();
    pen.write(area, 1, 0, &header.join(" "), Role::Title);
    let page = usize::from(area.height.saturating_sub(2));
    for (place, line) in app.list.rows(app.listed()).enumerate().skip(app.list.top).take(page) {
        let row = u16::try_from(place - app.list.top + 2).unwrap_or(u16::MAX);
        draw_row(pen, area, row, app, line, &columns);
    }
    if app.list.len() == 0 {
        pen.write(area, 2, 0, "no jobs", Role::Dim);
    }
}

fn draw_row(pen: &mut Pen<'_>, area: Rect, row: u16, app: &App, line: &Line, columns: &[(Column, usize)]) {
    let mut at = 0;
    for (column, width) in columns {
        let text = cell(*column, &column.text(line), *width);
        pen.write(area, row, at, &text, role(app, line, *column));
        at += u16::try_from(*width + 1).unwrap_or(u16::MAX);
    }
    if app.list.selected() == Some(line.job.number) {
        pen.paint(area, row, pen.look.style(Role::Selected));
    }
}

fn role(app: &App, line: &Line, column: Column) -> Role {
    match column {
        Column::Name | Column::Job | Column::User if app.list.matches(line) => Role::Chosen,
        Column::State if line.job.state.holds() => Role::Running,
        Column::Start if line.job.unkept => Role::Bad,
        _ if line.own => Role::Own,
        _ => Role::Plain,
    }
}

/// Writes the names of the tabs with their numbers of jobs, and how the table is sorted and limited.
fn draw_tabs(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let mut parts: Vec<(String, Role)> = Tab::ALL
        .into_iter()
        .map(|tab| (tab_text(app, tab), if tab == app.list.tab { Role::Chosen } else { Role::Plain }))
        .collect();
    if app.list.mine {
        parts.push((" my jobs only".to_owned(), Role::Chosen));
    }
    pen.write_parts(area, 0, &parts);
}

/// Returns the tab whose name is in a column of the terminal.
pub(crate) fn tab_at(app: &App, column: u16) -> Option<Tab> {
    let mut end = 0;
    Tab::ALL.into_iter().find(|tab| {
        end += width(&tab_text(app, *tab));
        usize::from(column) < end
    })
}

fn tab_text(app: &App, tab: Tab) -> String {
    let mark = if tab == app.list.tab { ["[", "]"] } else { [" ", " "] };
    format!("{}{} {}{}{}", mark[0], tab as usize + 1, tab.name(), counted(app, tab), mark[1])
}

fn counted(app: &App, tab: Tab) -> String {
    let moment = &app.view.moment;
    match tab {
        Tab::All => String::new(),
        Tab::Waiting => format!(" {}", moment.waiting_count),
        Tab::Running => format!(" {}", moment.running_count),
        Tab::Ended => {
            // The table lists the last ones only.
            let ended = app.view.facts.jobs.iter().filter(|job| Tab::Ended.admits(job.state)).count();
            format!(" {ended}")
        }
    }
}

/// Returns the heading of a column, with a mark if the table is sorted by it.
fn head(app: &App, column: Column, width: usize) -> String {
    let mark = match (app.list.sort == Some(column), app.list.reversed) {
        (false, _) => "",
        (true, false) => "▲",
        (true, true) => "▼",
    };
    cell(column, &format!("{}{mark}", column.name()), width)
}

/// Returns a text in the width of its column. Numbers are at its right end.
fn cell(column: Column, text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = " ".repeat(columns - width(&text));
    if column == Column::Cpus { blanks + &text } else { text + &blanks }
}

/// Returns the columns that fit, each with its width.
fn fitted(app: &App, room: usize) -> Vec<(Column, usize)> {
    let mut columns: Vec<(Column, usize)> =
        Column::ALL.into_iter().map(|column| (column, natural(app, column))).collect();
    columns.retain(|(column, _)| column.is_of(app.listed()));
    let taken = |columns: &[(Column, usize)]| columns.iter().map(|(_, width)| width + 1).sum::<usize>();
    let least = |columns: &[(Column, usize)]| {
        let name = columns.iter().find(|(column, _)| *column == Column::Name).map_or(0, |(_, width)| *width);
        taken(columns) - name.saturating_sub(NAME_LEAST)
    };
    for out in LEFT_OUT {
        if least(&columns) > room + 1 {
            columns.retain(|(column, _)| *column != out);
        }
    }
    let over = taken(&columns).saturating_sub(room + 1);
    for (column, width) in &mut columns {
        if *column == Column::Name {
            *width = width.saturating_sub(over).max(1);
        }
    }
    columns
}

/// Returns the width that shows all texts of a column.
fn natural(app: &App, column: Column) -> usize {
    let sorted = usize::from(app.list.sort == Some(column));
    let texts = app.list.rows(app.listed()).map(|line| width(&column.text(line)));
    let most = match column {
        Column::Name => NAME_MOST,
        Column::User | Column::Pool => 12,
        Column::State => 36,
        _ => 24,
    };
    texts.max().unwrap_or(0).min(most).max(column.name().len() + sorted)
}
