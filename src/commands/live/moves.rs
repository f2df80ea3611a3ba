//! The text of the promises that a change of a job moves.

use miserly_api::model::Moves;
use miserly_view::moved_promises;

use super::text::Instants;

/// The most other jobs that the text names.
const NAMED: usize = 10;

/// Returns the text of moved promises: one line for the job, and those for all others.
pub(super) fn moves_text(moves: &Moves, instants: Instants) -> String {
    let mut text = moved_promises(moves, instants.now, NAMED, |at| instants.text(at)).join("\n");
    if moves.count > NAMED as u64 {
        text += &format!(" (--json lists up to {})", Moves::SHOWN);
    }
    text + "\n"
}
