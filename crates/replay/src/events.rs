//! The external events of rounds, for the simulator.

use std::collections::BTreeMap;

use miserly_core::devices::CellId;
use miserly_core::{EndHow, Fault, Span, State, Time};
use miserly_engine::{CheckpointLine, EffectLine, RoundLine, resources};
use miserly_sim::{ExternalEvents, ReplayLog, RunRecord};

use super::journal::Stretch;

/// Returns the external events of these rounds.
pub(crate) fn past(Stretch { rounds, changes, checkpoint, .. }: &Stretch) -> ReplayLog {
    let until = rounds.last().map_or(Time::ZERO, |round| round.at);
    let mut past = ReplayLog { until, ..ReplayLog::default() };
    let mut starts = checkpoint.as_deref().map(starts_before).unwrap_or_default();
    let mut last = checkpoint.as_ref().map(|checkpoint| checkpoint.at);
    for (nth, round) in rounds.iter().enumerate() {
        let change = changes.iter().position(|(before, _)| *before == nth);
        let mut opportunistic = vec![];
        for ended in &round.ended {
            if let Some(start) = starts.remove(&ended.job) {
                let ran = RunRecord { runtime: round.at - start, how: ended.how };
                past.runs.entry(ended.job).or_default().push_back(ran);
            } else {
                opportunistic.push((ended.job, ended.how));
            }
        }
        past.events.push_back(outside(round, change, last, opportunistic));
        for effect in &round.effects {
            match effect {
                EffectLine::Started { job, .. } => drop(starts.insert(*job, round.at)),
                // This start has no end: the policy ends it again, and starts the job later.
                EffectLine::Requeued { job } if starts.remove(job).is_some() => {
                    let ran = RunRecord { runtime: Span::MAX, how: EndHow::Done };
                    past.runs.entry(*job).or_default().push_back(ran);
                }
                _ => {}
            }
        }
        last = Some(round.at);
    }
    past
}

/// Returns the starts of the jobs that run at a checkpoint, by job.
fn starts_before(checkpoint: &CheckpointLine) -> BTreeMap<i64, Time> {
    let jobs = checkpoint.queues.iter().flat_map(|queue| &queue.jobs);
    let start = |job: &miserly_engine::SavedEntry| match job.entry().state {
        State::Running { start, .. } | State::Suspended { start, .. } => Some((job.request.number, start)),
        State::Waiting => None,
    };
    jobs.filter_map(start).collect()
}

/// Returns the external events of a round. There may be none: a job that waited for an instant has no place, and the policy decides
/// at that instant nevertheless.
fn outside(
    round: &RoundLine,
    change: Option<usize>,
    last: Option<Time>,
    ended: Vec<(i64, EndHow)>,
) -> ExternalEvents {
    let fault = match (round.capacity, round.lost) {
        _ if round.away => Some(Fault::Away),
        (Some((queue, amounts)), _) => Some(Fault::Capacity { queue, capacity: resources(amounts) }),
        (None, Some((queue, cell, gpus))) => Some(Fault::Devices { queue, cell: CellId(cell), lost: gpus }),
        (None, None) => None,
    };
    ExternalEvents {
        at: round.at,
        change,
        away_since: last.filter(|_| round.away),
        ended,
        withdrawn: round.withdrawn.clone(),
        amended: round.amended.iter().map(|line| (line.job, line.change())).collect(),
        fault,
        submitted: round.submitted.iter().map(miserly_engine::SavedRequest::request).collect(),
    }
}
