//! What starts now.

use miserly_view::{Hole, Moment, PoolNow, counted, plain, span};
use ratatui::layout::Rect;

use super::pen::Pen;
use crate::App;
use crate::look::Role;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, app: &App) {
    pen.write(
        area,
        0,
        0,
        "What starts now: at most this many processors, for at most this time",
        Role::Title,
    );
    let texts = texts(&app.view.moment);
    let room = usize::from(area.height.saturating_sub(1));
    let more = texts.len().saturating_sub(room);
    // The last line has the number of those that do not fit.
    let shown = if more > 0 { room.saturating_sub(1) } else { room };
    for (line, text) in (1..area.height).zip(texts.iter().take(shown)) {
        pen.write_cut(area, line, 0, text, Role::Plain);
    }
    if more > 0 {
        let text = format!("and {} more", texts.len() - shown);
        pen.write(area, area.height.saturating_sub(1), 0, &text, Role::Dim);
    }
}

fn texts(moment: &Moment) -> Vec<String> {
    if moment.note.is_some() || !moment.live {
        return vec!["known for the present of a daemon only".to_owned()];
    }
    moment.pools.iter().flat_map(|pool| of_pool(moment.now, pool)).collect()
}

fn of_pool(now: i64, pool: &PoolNow) -> Vec<String> {
    let name = plain(&pool.facts.name);
    if pool.holes.is_empty() {
        return vec![format!("{name}: nothing; miserly submit --quote names the start of a job")];
    }
    pool.holes.iter().map(|hole| format!("{name}: {}", text(now, *hole))).collect()
}

fn text(now: i64, hole: Hole) -> String {
    let time = hole.until.map_or_else(|| "any time".to_owned(), |until| span(until.saturating_sub(now)));
    format!("{} for {time}", counted(hole.procs, "processor"))
}
