//! A bar for each pool.

use miserly_units::memory;
use miserly_view::{PoolNow, plain};
use ratatui::layout::Rect;

use super::pen::{Pen, width};
use crate::App;
use crate::look::Role;

/// The most columns of a bar.
const BAR_MOST: usize = 60;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    let pools = &app.view.moment.pools;
    let shown =
        if pools.len() > usize::from(area.height) { area.height.saturating_sub(1) } else { area.height };
    let name = pools.iter().map(|pool| width(&plain(&pool.name))).max().unwrap_or(0).min(16);
    for (line, pool) in (0..shown).zip(pools) {
        pool_line(pen, area, line, pool, name);
    }
    let more = pools.len().saturating_sub(usize::from(shown));
    if more > 0 {
        pen.write(area, shown, 0, &format!("and {more} more pools"), Role::Dim);
    }
}

fn pool_line(pen: &mut Pen<'_>, area: Rect, line: u16, pool: &PoolNow, name: usize) {
    let text = text(pool);
    let room = usize::from(area.width).saturating_sub(name + 5 + width(&text));
    let mut column = pen.write(area, line, 0, &format!("{:name$} ", plain(&pool.name)), Role::Title);
    if let Some(mistake) = &pool.stopped {
        pen.write(area, line, column, &format!("stopped: {}", plain(mistake)), Role::Bad);
        return;
    }
    if room >= 8 {
        column = pen.write(area, line, column, "[", Role::Plain);
        for (part, role) in bar(pool, room.min(BAR_MOST)) {
            column = pen.write(area, line, column, &part, role);
        }
        column = pen.write(area, line, column, "] ", Role::Plain);
    }
    pen.write(area, line, column, &text, Role::Plain);
}

fn text(pool: &PoolNow) -> String {
    let reserved =
        if pool.reserved == 0 { String::new() } else { format!(", {} free until reserved", pool.reserved) };
    let memory = if pool.memory == 0 {
        String::new()
    } else {
        format!("; memory {}/{}", memory(pool.memory_held), memory(pool.memory))
    };
    format!("{} held{reserved}, {} free of {}{memory}", pool.held, pool.free, pool.cpus)
}

/// Returns the parts of a bar of `columns` columns: held, reserved within an hour, free.
fn bar(pool: &PoolNow, columns: usize) -> [(String, Role); 3] {
    let total = pool.cpus.max(pool.held).max(1);
    let up_to = |cpus: u64| {
        let cells = u128::from(cpus.min(total)) * columns as u128;
        usize::try_from(cells.div_ceil(u128::from(total))).unwrap_or(columns)
    };
    let held = up_to(pool.held);
    let taken = up_to(pool.held.saturating_add(pool.reserved)).max(held);
    [
        ("█".repeat(held), Role::Running),
        ("▒".repeat(taken - held), Role::Promised),
        ("·".repeat(columns - taken), Role::Dim),
    ]
}
