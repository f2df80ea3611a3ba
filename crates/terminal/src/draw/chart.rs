//! The chart: the jobs in their time and their rows.

use miserly_view::{Group, Kind, RUN_NUMBERS, Tile, TileRequest};
use ratatui::layout::{Position, Rect};

use super::Areas;
use super::axis::times;
use super::cells::Cells;
use super::pen::{Pen, width};
use crate::App;
use crate::look::Role;

/// The most columns, and the most rows of a group.
const CELLS_MOST: u16 = 1024;

/// The part of the time that is drawn.
#[derive(Clone, Copy)]
struct Scale {
    from: i64,
    column: i64,
    columns: usize,
}

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    if area.height < 2 {
        return;
    }
    let layout = Layout::new(app, area);
    let scale = layout.scale;
    for (place, text) in times(&app.view.facts, scale.from, scale.column, scale.columns) {
        pen.write(layout.inner, 0, to_u16(place), &text, Role::Dim);
    }
    let gutter = layout.inner.x - area.x;
    for (group, rows) in &layout.groups {
        let line = rows.y - area.y;
        pen.write_cut(Rect { width: gutter.saturating_sub(1), ..area }, line, 0, &group.1.name, Role::Title);
        draw_group(pen, *rows, app, *group, scale);
    }
}

/// The groups in their places.
struct Layout<'a> {
    inner: Rect,
    scale: Scale,
    groups: Vec<((usize, &'a Group), Rect)>,
}

impl<'a> Layout<'a> {
    fn new(app: &'a App, area: Rect) -> Layout<'a> {
        let groups = groups(app, area.width);
        let gutter = gutter(groups.iter().map(|(_, group)| *group), area.width);
        let inner = Rect { x: area.x + gutter, width: (area.width - gutter).min(CELLS_MOST), ..area };
        let heights = heights(&groups, area.height.saturating_sub(1));
        let mut y = inner.y + 1;
        let mut rows = |height: u16| {
            y += height;
            Rect { y: y - height, height, ..inner }
        };
        let placed = groups.into_iter().zip(heights).map(|(group, height)| (group, rows(height))).collect();
        Layout { inner, scale: Scale::new(app, inner.width), groups: placed }
    }
}

/// Returns the job whose bar is at a place of the terminal.
pub(crate) fn job_at(app: &App, areas: &Areas, at: Position) -> Option<i64> {
    if areas.chart.height < 2 {
        return None;
    }
    let layout = Layout::new(app, areas.chart);
    let (&(place, group), rows) =
        layout.groups.iter().find(|(_, rows)| rows.contains(at)).map(|(group, rows)| (group, rows))?;
    let (request, tile) = tile(app, place, usize::from(rows.height), layout.scale)?;
    let cells = Cells::new(&tile, &request, group.rows, app.view.facts.now);
    let cell = cells.at(usize::from(at.x - rows.x), usize::from(rows.bottom() - 1 - at.y));
    Some(cell.job()).filter(|job| cell.kind().is_some() && *job != 0)
}

/// Returns the part of a group that is drawn.
fn tile(app: &App, group: usize, bands: usize, scale: Scale) -> Option<(TileRequest, Tile)> {
    let Scale { from, column, columns } = scale;
    let request = TileRequest { group, from, column, columns, bands, ..TileRequest::default() };
    Some((request, app.view.bars.tile(&request)?))
}

/// Returns the groups that a chart of this width shows, each with its place. The jobs on idle processors have rows only if one of
/// them is visible.
pub(super) fn groups(app: &App, width: u16) -> Vec<(usize, &Group)> {
    let all = &app.view.bars.groups;
    let scale = Scale::new(app, width - gutter(all.iter(), width));
    let mut pools = app.view.facts.pools.iter().peekable();
    let is_shown = |(place, group): &(usize, &Group)| {
        pools.next_if(|pool| pool.name == group.name).is_some() || !is_empty(app, *place, scale)
    };
    all.iter().enumerate().filter(is_shown).collect()
}

/// Returns whether a group has no visible bar. The line of the present hides the bars in its column.
fn is_empty(app: &App, place: usize, scale: Scale) -> bool {
    let Some((request, tile)) = tile(app, place, 1, scale) else { return true };
    let cells = Cells::new(&tile, &request, app.view.bars.groups[place].rows, app.view.facts.now);
    let now = scale.column_of(app.view.facts.now);
    (0..scale.columns).all(|column| Some(column) == now || cells.at(column, 0).kind().is_none())
}

/// Returns the columns of the names.
fn gutter<'a>(groups: impl Iterator<Item = &'a Group>, most: u16) -> u16 {
    let name = groups.map(|group| width(&group.name)).max().unwrap_or(0);
    to_u16(name).saturating_add(1).min(most / 6).min(17)
}

/// Divides the rows of the chart among the groups: each has one, and the others go to the group with the most processors for a row.
fn heights(groups: &[(usize, &Group)], rows: u16) -> Vec<u16> {
    let mut heights: Vec<u16> = groups.iter().zip(0..rows).map(|_| 1).collect();
    let mut left = rows.saturating_sub(to_u16(heights.len()));
    while left > 0 {
        let crowded = |at: &usize| groups[*at].1.rows > u32::from(heights[*at]);
        let density = |at: &usize| u64::from(groups[*at].1.rows) * 1024 / u64::from(heights[*at]);
        let Some(most) = (0..heights.len()).filter(crowded).max_by_key(density) else { break };
        heights[most] += 1;
        left -= 1;
    }
    heights
}

fn draw_group(pen: &mut Pen<'_>, area: Rect, app: &App, (place, group): (usize, &Group), scale: Scale) {
    let bands = usize::from(area.height);
    let Some((request, tile)) = tile(app, place, bands, scale) else { return };
    let cells = Cells::new(&tile, &request, group.rows, app.view.facts.now);
    let selected = app.list.selected();
    for band in 0..bands {
        let line = to_u16(bands - 1 - band);
        for column in 0..scale.columns {
            let cell = cells.at(column, band);
            if let Some((kind, most)) = cell.kind() {
                let chosen = selected == Some(cell.job());
                let (glyph, role) = if chosen { ("▚", Role::Own) } else { glyph(kind, most) };
                pen.write(area, line, to_u16(column), glyph, role);
            }
        }
    }
    let now = scale.column_of(app.view.facts.now);
    draw_now(pen, area, now);
    for bar in &tile.bars {
        label(pen, area, &cells, bar.job, (bar.from - scale.from).div_euclid(scale.column), now);
    }
}

/// Returns the character of a kind: a lighter one if less than half of the cell is taken.
fn glyph(kind: Kind, most: bool) -> (&'static str, Role) {
    match (kind, most) {
        (Kind::Ran, true) => ("█", Role::Ran),
        (Kind::Ran, false) => ("▄", Role::Ran),
        (Kind::Running | Kind::Suspended, true) => ("▓", Role::Running),
        (Kind::Running | Kind::Suspended, false) => ("▄", Role::Running),
        (Kind::Promised, true) => ("░", Role::Promised),
        (Kind::Planned | Kind::Likely, true) => ("░", Role::Planned),
        (Kind::Promised, false) => ("·", Role::Promised),
        (Kind::Planned | Kind::Likely, false) => ("·", Role::Planned),
        (Kind::Idle | Kind::Swapping | Kind::Alternate, _) => ("▒", Role::Idle),
    }
}

/// Writes the number of a job at the begin of its bar, beside the line of the present, if the bar has room there.
fn label(pen: &mut Pen<'_>, area: Rect, cells: &Cells, job: i64, begin: i64, now: Option<usize>) {
    let text = (job % RUN_NUMBERS).to_string();
    let first = usize::try_from(begin.saturating_add(1)).unwrap_or(0);
    let first = match now {
        Some(now) if (first..first + text.len()).contains(&now) => now + 1,
        _ => first,
    };
    let last = first + text.len();
    let has_room = |band: usize| (first..last).all(|column| cells.at(column, band).job() == job);
    let bands: Vec<usize> = (0..cells.bands).filter(|band| last < cells.columns && has_room(*band)).collect();
    if let Some(band) = bands.get(bands.len() / 2) {
        pen.write(area, to_u16(cells.bands - 1 - band), to_u16(first), &text, Role::Own);
    }
}

impl Scale {
    /// Returns the scale of a chart with so many columns.
    fn new(app: &App, columns: u16) -> Scale {
        let columns = usize::from(columns.clamp(1, CELLS_MOST));
        let (from, column) = app.span.columns(app.view.facts.now, columns);
        Scale { from, column, columns }
    }

    /// Returns the column of an instant, if it is shown.
    fn column_of(self, at: i64) -> Option<usize> {
        let column = at.saturating_sub(self.from).div_euclid(self.column);
        usize::try_from(column).ok().filter(|column| *column < self.columns)
    }
}

/// Draws a line at the present.
fn draw_now(pen: &mut Pen<'_>, area: Rect, now: Option<usize>) {
    for line in 0..area.height {
        if let Some(column) = now {
            pen.write(area, line, to_u16(column), "│", Role::Now);
        }
    }
}

fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
