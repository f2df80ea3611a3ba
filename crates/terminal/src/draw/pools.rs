//! A bar for each pool.

use miserly_units::memory;
use miserly_view::{PoolNow, counted, plain};
use ratatui::layout::Rect;

use super::pen::{Pen, cut, width};
use crate::App;
use crate::look::Role;

/// The most columns of a bar.
const BAR_MOST: usize = 60;

/// The least columns of a bar where the text leaves room for it.
const BAR_LEAST: usize = 8;

/// The least columns of any bar on a terminal of the usual width.
const BAR_USUAL: usize = 10;

/// The usual width of a terminal.
const USUAL: u16 = 80;

/// The most columns of the name of a pool.
const NAME_MOST: usize = 16;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let pools = &app.view.moment.pools;
    let shown =
        if pools.len() > usize::from(area.height) { area.height.saturating_sub(1) } else { area.height };
    let name = pools.iter().map(|pool| width(&plain(&pool.facts.name))).max().unwrap_or(0).min(NAME_MOST);
    for (line, pool) in (0..shown).zip(pools) {
        pool_line(pen, area, line, pool, name);
    }
    let more = pools.len().saturating_sub(usize::from(shown));
    if more > 0 {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let text =
            if shown == 0 { counted(more, "pool") } else { format!("and {}", counted(more, "more pool")) };
        pen.write_cut(area, shown, 0, &text, Role::Dim);
    }
}

fn pool_line(pen: &mut Pen<'_>, area: Rect, line: u16, pool: &PoolNow, name: usize) {
    let shown = cut(&plain(&pool.facts.name), name);
    let blanks = " ".repeat(name + 1 - width(&shown));
    let mut column = pen.write(area, line, 0, &format!("{shown}{blanks}"), Role::Title);
    if let Some(mistake) = &pool.facts.stopped {
        pen.write_cut(area, line, column, &format!("stopped: {}", plain(mistake)), Role::Bad);
        return;
    }
    let texts = texts(pool);
    let needed: usize = texts.iter().map(|(text, _)| width(text)).sum();
    let left = usize::from(area.width).saturating_sub(name + 5 + needed);
    let room = if area.width < USUAL { left } else { left.max(BAR_USUAL) };
    if room >= BAR_LEAST {
        column = pen.write(area, line, column, "[", Role::Plain);
        for (part, role) in bar(pool, room.min(BAR_MOST)) {
            column = pen.write(area, line, column, &part, role);
        }
        column = pen.write(area, line, column, "] ", Role::Plain);
    }
    let column = column.min(area.width);
    let rest = Rect { x: area.x + column, width: area.width - column, ..area };
    pen.write_parts(rest, line, &texts);
}

/// Returns the amounts of a pool in parts, from the most important one on.
fn texts(pool: &PoolNow) -> Vec<(String, Role)> {
    let mut texts = vec![format!("{} held", pool.facts.held)];
    if pool.reserved > 0 {
        texts.push(format!(", {} free until reserved", pool.reserved));
    }
    texts.push(format!(", {} free of {}", pool.free, pool.facts.cpus));
    if pool.facts.memory > 0 {
        texts.push(format!("; memory {}/{}", memory(pool.facts.memory_held), memory(pool.facts.memory)));
    }
    texts.into_iter().map(|text| (text, Role::Plain)).collect()
}

/// Returns the parts of a bar of `columns` columns: held, reserved within an hour, free.
fn bar(pool: &PoolNow, columns: usize) -> [(String, Role); 3] {
    let total = pool.facts.cpus.max(pool.facts.held).max(1);
    let up_to = |cpus: u64| {
        let cells = u128::from(cpus.min(total)) * columns as u128;
        usize::try_from(cells.div_ceil(u128::from(total))).unwrap_or(columns)
    };
    let held = up_to(pool.facts.held);
    let taken = up_to(pool.facts.held.saturating_add(pool.reserved)).max(held);
    [
        ("█".repeat(held), Role::Running),
        ("▒".repeat(taken - held), Role::Promised),
        ("·".repeat(columns - taken), Role::Dim),
    ]
}
