//! The line with the times of the chart.

use miserly_view::{Clock, Facts};

use super::pen::width;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The distances of times, milliseconds.
const STEPS: [i64; 14] = [
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    28 * DAY,
];

/// The columns between two times, at least.
const APART: i64 = 12;

/// Returns the times below a chart, each with its column.
pub(super) fn times(facts: &Facts, from: i64, column: i64, columns: usize) -> Vec<(usize, String)> {
    let least = APART.saturating_mul(column);
    let step = STEPS.into_iter().find(|step| *step >= least).unwrap_or(least);
    let to = from.saturating_add(column.saturating_mul(i64::try_from(columns).unwrap_or(0)));
    let mut times = vec![];
    let mut free = 0;
    for at in facts.clock.ticks(step, from, to) {
        let place = at.saturating_sub(from).div_euclid(column);
        let Ok(place) = usize::try_from(place) else { continue };
        if place >= columns {
            break;
        }
        let text = text(&facts.clock, at, facts.now, step);
        if place >= free && place + width(&text) <= columns {
            free = place + width(&text) + 1;
            times.push((place, text));
        }
    }
    times
}

fn text(clock: &Clock, at: i64, now: i64, step: i64) -> String {
    let exact = clock.exact(at);
    match exact.rsplit_once(' ') {
        Some((_, time)) if step < MINUTE => time.to_owned(),
        Some((date, _)) if step >= DAY => date.to_owned(),
        _ => clock.instant(at, now),
    }
}
