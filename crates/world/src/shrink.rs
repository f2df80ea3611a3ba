//! The shortest script that still fails in the same way.

use crate::step::{Script, Step};
use crate::world::{Failure, run};

/// Leaves out steps of a failing script, as long as it fails in the same way.
///
/// Steps that belong to nothing are dropped one by one and in runs of halving length, not only at the end.
pub fn shrink(script: &Script, failure: &Failure) -> Script {
    let kind = kind(&failure.what);
    let fails =
        |script: &Script| run(script).failure.is_some_and(|failure| self::kind(&failure.what) == kind);
    let mut best = script.clone();
    best.steps.truncate(failure.step);
    let mut length = best.steps.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut fewer = best.clone();
            fewer.steps.drain(at..(at + length).min(best.steps.len()));
            if fails(&fewer) { best = fewer } else { at += length }
        }
        length /= 2;
    }
    simplify(&mut best, &fails);
    best
}

/// Makes the jobs that are left simpler.
fn simplify(best: &mut Script, fails: &impl Fn(&Script) -> bool) {
    for at in 0..best.steps.len() {
        let Step::Submit { wish, .. } = &best.steps[at] else { continue };
        let plain = wish.clone();
        let variants: [fn(&mut crate::step::Wish); 13] = [
            |wish| wish.runs.truncate(1),
            |wish| (wish.members, wish.at_a_time) = (0, None),
            |wish| wish.begin = None,
            |wish| wish.deadline = None,
            |wish| wish.start_within = None,
            |wish| wish.overrun = false,
            |wish| wish.restartable = false,
            |wish| wish.retry = 0,
            |wish| wish.early = false,
            |wish| wish.hold = false,
            |wish| (wish.gpus, wish.gpu_type, wish.gpu_share) = (0, None, 0),
            |wish| wish.memory = None,
            |wish| (wish.resizable, wish.resize_signal) = (None, false),
        ];
        let mut wish = plain;
        for variant in variants {
            let mut simpler = wish.clone();
            variant(&mut simpler);
            let mut script = best.clone();
            if let Step::Submit { wish, .. } = &mut script.steps[at] {
                wish.clone_from(&simpler);
            }
            if simpler != wish && fails(&script) {
                (*best, wish) = (script, simpler);
            }
        }
    }
}

/// Returns the failure without its numbers: the same rule broken for another job is the same failure.
fn kind(what: &str) -> String {
    what.chars().filter(|char| !char.is_ascii_digit()).take(60).collect()
}
