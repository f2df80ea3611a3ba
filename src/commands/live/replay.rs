//! `miserly replay`: a replay of a daemon's journal in the simulator.

mod events;

mod journal;

mod queues;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use jiff::Timestamp;
use miserly_core::System;
use miserly_engine::EffectLine;
use miserly_sim::replay_over;
use serde::Serialize;

use self::journal::{Cause, Lived, Missing, Stretch};
use super::text::local;
use crate::args::ReplayArgs;
use crate::output::{print, print_json};

/// The result of a replay.
#[derive(Debug, Default, Serialize)]
struct Played {
    /// Rounds of the daemon.
    rounds: usize,
    /// Jobs that were started.
    starts: usize,
    /// Promises and their changes.
    promises: usize,
    /// All effects of the rounds.
    effects: usize,
    /// The time of the first checkpoint, if earlier rounds are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// Times without a comparison of rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
    /// The first effect that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// An effect that differs.
#[derive(Debug, Serialize)]
struct Difference {
    /// The index of the effect, from 0.
    nth: usize,
    /// The daemon's effect and its tick.
    daemon: Option<(i64, EffectLine)>,
    /// The simulator's effect and its tick.
    simulator: Option<(i64, EffectLine)>,
}

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let state = super::state_folder(args.state.as_deref())?;
    let played = compare(journal::read(&state, args.from)?)?;
    (if args.json { print_json(&played) } else { print(&summary(&played)) })?;
    Ok(if played.difference.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare(lived: Lived) -> anyhow::Result<Played> {
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
fn simulated(stretch: &Stretch) -> anyhow::Result<Vec<(i64, EffectLine)>> {
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

fn summary(played: &Played) -> String {
    let Played { rounds, starts, promises, effects, since, missing, difference } = played;
    let mut text =
        since.map_or_else(String::new, |since| format!("from the checkpoint of {} on\n", local(since)));
    text += &format!(
        "{rounds} rounds: {starts} starts, {promises} new or changed promises, {effects} effects in total\n"
    );
    text.extend(missing.iter().map(gap));
    text + &difference
        .as_ref()
        .map_or_else(|| "the simulator reproduced every effect exactly\n".to_owned(), difference_text)
}

/// Returns the line about a time that is not compared.
fn gap(Missing { from, until, cause }: &Missing) -> String {
    let from = from.map_or_else(|| "from the beginning".to_owned(), |from| format!("from {}", local(from)));
    let until = until.map_or_else(|| "to the end".to_owned(), |until| format!("to {}", local(until)));
    let cause = match cause {
        Cause::Lost(first, last) if first == last => format!("the journal lacks line {first}"),
        Cause::Lost(first, last) => format!("the journal lacks lines {first} to {last}"),
        Cause::Recovered => "the state was recovered after damage".to_owned(),
        Cause::SetAside { job, reason } => format!("job {job} was set aside: {reason}"),
        Cause::Stopped { queue, mistake } => format!("queue {queue} was stopped: {mistake}"),
    };
    format!("not compared {from} {until}: {cause}\n")
}

fn difference_text(Difference { nth, daemon, simulator }: &Difference) -> String {
    let shown = |side: &Option<(i64, EffectLine)>| match side {
        Some((at, effect)) => format!("at {at} us: {}", serde_json::to_string(effect).unwrap_or_default()),
        None => "no further effect".to_owned(),
    };
    format!("effect {nth} differs\n  daemon     {}\n  simulator  {}\n", shown(daemon), shown(simulator))
}
