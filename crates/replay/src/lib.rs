//! The journal of a daemon, compared with the same rounds in the simulator.
//!
//! A [`Reader`] puts the lines together as stretches of rounds. [`compare`] plays the external events of each stretch again, and
//! compares the effects with those of the journal. Nothing here reads a file.

mod events;

mod journal;

mod queues;

#[cfg(test)]
mod tests;

use anyhow::Result;
use jiff::Timestamp;
use miserly_core::System;
use miserly_engine::EffectLine;
use miserly_sim::replay_over;
use serde::Serialize;

pub use self::journal::{Cause, Lived, Missing, Reader};

use self::journal::Stretch;

/// The result of a replay.
#[derive(Debug, Default, Serialize)]
pub struct Played {
    /// Rounds of the daemon.
    pub rounds: usize,
    /// Jobs that were started.
    pub starts: usize,
    /// Promises and their changes.
    pub promises: usize,
    /// All effects of the rounds.
    pub effects: usize,
    /// The time of the first checkpoint, if earlier rounds are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Times without a comparison of rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// The first effect that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// An effect that differs.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The index of the effect, from 0.
    pub nth: usize,
    /// The daemon's effect and its tick.
    pub daemon: Option<(i64, EffectLine)>,
    /// The simulator's effect and its tick.
    pub simulator: Option<(i64, EffectLine)>,
}

/// Plays the stretches of a journal in the simulator, and compares their effects.
///
/// # Errors
/// If a line has a policy, a pool or a job that this version does not know, or a policy makes a mistake.
pub fn compare(lived: Lived) -> Result<Played> {
    let mut played = Played { since: lived.since, missing: lived.missing, ..Played::default() };
    for stretch in &lived.stretches {
        played.add(stretch, &simulated(stretch)?);
    }
    Ok(played)
}

impl Played {
    /// Adds a stretch of rounds and its result in the simulator.
    fn add(&mut self, Stretch { rounds, .. }: &Stretch, simulated: &[(i64, EffectLine)]) {
        let effects: Vec<_> = rounds
            .iter()
            .flat_map(|round| round.effects.iter().map(|effect| (round.at.ticks(), *effect)))
            .collect();
        let longer = effects.len().max(simulated.len());
        let nth = (0..longer).find(|nth| effects.get(*nth) != simulated.get(*nth));
        let difference = nth.map(|nth| Difference {
            nth: self.effects + nth,
            daemon: effects.get(nth).copied(),
            simulator: simulated.get(nth).copied(),
        });
        self.difference = self.difference.take().or(difference);
        let count = |of: fn(&EffectLine) -> bool| effects.iter().filter(|(_, effect)| of(effect)).count();
        self.rounds += rounds.len();
        self.starts += count(|effect| matches!(effect, EffectLine::Started { .. }));
        self.promises +=
            count(|effect| matches!(effect, EffectLine::Promised { .. } | EffectLine::Broken { .. }));
        self.effects += effects.len();
    }
}

/// Returns the effects of the rounds in the simulator, with their ticks.
fn simulated(stretch: &Stretch) -> Result<Vec<(i64, EffectLine)>> {
    let Stretch { first, changes, checkpoint, .. } = stretch;
    let mut problem = None;
    let setup = |nth: Option<usize>| nth.map_or(first, |nth| &changes[nth].1);
    let mut change = |nth: usize, before: System| match queues::changed(
        setup(nth.checked_sub(1)),
        setup(Some(nth)),
        &before,
    ) {
        Ok(system) => system,
        Err(error) => {
            problem.get_or_insert(error);
            before
        }
    };
    let system = match checkpoint {
        Some(checkpoint) => queues::at_checkpoint(first, checkpoint)?,
        None => queues::empty(first)?,
    };
    let came = replay_over(system, events::past(stretch), &mut change)?;
    match problem {
        Some(problem) => Err(problem),
        None => {
            Ok(came.iter().map(|came| (came.at.ticks(), EffectLine::new(&came.effect, came.job))).collect())
        }
    }
}
