//! `miserly replay`: a replay of a daemon's journal in the simulator.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use miserly_engine::EffectLine;
use miserly_live::store::{History, Segment};
use miserly_replay::{Cause, Difference, Lived, Missing, Played, Reader, compare};

use super::text::local;
use crate::args::ReplayArgs;
use crate::output::{print, print_json};

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let state = super::state_folder(args.state.as_deref())?;
    let played = compare(read(&state, args.from)?)?;
    (if args.json { print_json(&played) } else { print(&summary(&played)) })?;
    Ok(if played.difference.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the journal of a state, from the newest checkpoint at `from` or before, or else from its beginning.
fn read(state: &Path, from: Option<Timestamp>) -> anyhow::Result<Lived> {
    let history = History::open(state)?;
    let first = first_line(&history.segments()?, from);
    let mut reader = Reader::from_line(first);
    let mut problem = None;
    history.journal(first.unwrap_or(1), &mut |line| match reader.line(line.number, &line.body) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            problem = Some(error.context(format!("line {} of the journal", line.number)));
            ControlFlow::Break(())
        }
    })?;
    match problem {
        Some(problem) => Err(problem),
        None => reader.finish(),
    }
}

/// Returns the number of the line with which a replay begins.
fn first_line(segments: &[Segment], from: Option<Timestamp>) -> Option<i64> {
    let sealed = |segment: &&Segment| from.is_some_and(|from| segment.sealed <= from);
    let before = segments.iter().rfind(sealed).map(|segment| segment.last + 1);
    before.or_else(|| segments.first().map(|segment| segment.first))
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
        Cause::Gpus { queue } => format!("the types of the GPUs of queue {queue} changed"),
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
