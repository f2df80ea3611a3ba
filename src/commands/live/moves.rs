//! The text of the promises that a change of a job moves.

use jiff::Timestamp;
use miserly_api::model::{MovedPromise, Moves, Window};

use super::text::{Instants, counted};

/// The most other jobs that the text names.
const NAMED: usize = 10;

/// Returns the text of moved promises: one line for the job, and one for all others.
pub(super) fn moves_text(moves: &Moves, instants: Instants) -> String {
    let window = |window: Option<Window>| {
        window.map_or_else(
            || "no promise".to_owned(),
            |window| {
                format!("starts by {}, ends by {}", instants.text(window.start), instants.text(window.end))
            },
        )
    };
    let mut text = if moves.before == moves.after {
        format!("job {}: {}, as before\n", moves.job, window(moves.after))
    } else {
        format!("job {}: {}; before: {}\n", moves.job, window(moves.after), window(moves.before))
    };
    if moves.count > 0 {
        text += &others_text(moves, instants);
    }
    text
}

fn others_text(moves: &Moves, instants: Instants) -> String {
    let start =
        |start: Option<Timestamp>| start.map_or_else(|| "no promise".to_owned(), |at| instants.text(at));
    let one = |moved: &MovedPromise| {
        format!("  job {}: from {} to {}\n", moved.job, instants.text(moved.before), start(moved.after))
    };
    let mut text = format!("other promises that move: {}\n", moves.count);
    text.extend(moves.moved.iter().take(NAMED).map(one));
    let rest = moves.count.saturating_sub(NAMED as u64);
    if rest > 0 {
        text += &format!("  and {} (--json lists up to {})\n", counted(rest, "job"), Moves::SHOWN);
    }
    text
}
