//! `miserly replay`: a replay of a daemon's journal in the simulator.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use miserly_core::{
    Change, Driver, EndHow, Entry, EventOrder, Fault, JobId, Ledger, LedgerState, Machine, Request,
    Resources, Span, System, Time,
};
use miserly_engine::{EffectLine, JournalLine, OpportunisticLine, QueueLine, RoundLine, resources};
use miserly_live::store::History;
use miserly_policies::PolicySpec;
use miserly_sim::{ExternalEvents, ReplayLog, RunRecord, replay_over};
use serde::Serialize;

use crate::args::ReplayArgs;
use crate::output::{print, print_json};

/// The setup of the daemon.
#[derive(PartialEq)]
struct Began {
    queues: Vec<QueueLine>,
    opportunistic: Option<OpportunisticLine>,
}

/// The content of the journal.
struct Lived {
    first: Began,
    /// Later setups, each with the number of rounds before it.
    changes: Vec<(usize, Began)>,
    rounds: Vec<RoundLine>,
    /// The stop of a queue, after which the state was read anew from the store.
    stopped: Option<String>,
}

/// The result of a replay.
#[derive(Debug, Serialize)]
struct Played {
    /// Rounds of the daemon.
    rounds: usize,
    /// Jobs that were started.
    starts: usize,
    /// Promises and their changes.
    promises: usize,
    /// All effects of the rounds.
    effects: usize,
    /// The mistake of a policy, at which the comparison ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
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
    let played = compare(&read(&state)?)?;
    (if args.json { print_json(&played) } else { print(&summary(&played)) })?;
    Ok(if played.difference.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the setups of the daemon, and the rounds under them.
fn read(state: &std::path::Path) -> anyhow::Result<Lived> {
    let history = History::open(state)?;
    let (mut setups, mut rounds, mut bad): (Vec<(usize, Began)>, Vec<_>, _) = (vec![], vec![], None);
    let mut stopped = None;
    history.journal(1, &mut |line| {
        match serde_json::from_str(&line.body) {
            Ok(JournalLine::Began { queues, opportunistic, .. }) => {
                let began = Began { queues, opportunistic };
                // Each start of a daemon writes it again.
                if setups.last().is_none_or(|(_, last)| *last != began) {
                    setups.push((rounds.len(), began));
                }
            }
            Ok(JournalLine::Round(round)) => rounds.push(*round),
            Ok(JournalLine::Ended { .. }) => {}
            Ok(JournalLine::Stopped { queue, mistake, .. }) => {
                stopped = Some(format!("queue {queue} was stopped: {mistake}"));
                return ControlFlow::Break(());
            }
            Err(error) => {
                bad = Some(format!("line {} of the journal: {error}", line.number));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    if let Some(bad) = bad {
        bail!(bad);
    }
    let mut setups = setups.into_iter();
    let first = setups.next().context("the journal is empty: no daemon has run with this state")?;
    Ok(Lived { first: first.1, changes: setups.collect(), rounds, stopped })
}

fn compare(lived: &Lived) -> anyhow::Result<Played> {
    let (rounds, simulated) = (&lived.rounds, simulated(lived)?);
    let effects: Vec<_> =
        rounds.iter().flat_map(|round| round.effects.iter().map(|effect| (round.at, *effect))).collect();
    let longer = effects.len().max(simulated.len());
    let nth = (0..longer).find(|nth| effects.get(*nth) != simulated.get(*nth));
    let difference = nth.map(|nth| Difference {
        nth,
        daemon: effects.get(nth).copied(),
        simulator: simulated.get(nth).copied(),
    });
    let count = |of: fn(&EffectLine) -> bool| effects.iter().filter(|(_, effect)| of(effect)).count();
    Ok(Played {
        rounds: rounds.len(),
        starts: count(|effect| matches!(effect, EffectLine::Started { .. })),
        promises: count(|effect| matches!(effect, EffectLine::Promised { .. } | EffectLine::Broken { .. })),
        effects: effects.len(),
        stopped: lived.stopped.clone(),
        difference,
    })
}

/// Returns the effects of the rounds in the simulator, with their ticks.
fn simulated(Lived { first, changes, rounds, .. }: &Lived) -> anyhow::Result<Vec<(i64, EffectLine)>> {
    let mut problem = None;
    let setup = |nth: Option<usize>| nth.map_or(first, |nth| &changes[nth].1);
    let mut change =
        |nth: usize, before: System| match changed(setup(nth.checked_sub(1)), setup(Some(nth)), &before) {
            Ok(system) => system,
            Err(error) => {
                problem.get_or_insert(error);
                before
            }
        };
    let came = replay_over(system(first, |_| Ok(Contents::default()))?, past(rounds, changes), &mut change)?;
    match problem {
        Some(problem) => Err(problem),
        None => {
            Ok(came.iter().map(|came| (came.at.ticks(), EffectLine::new(&came.effect, came.job))).collect())
        }
    }
}

/// Returns the queues after a change of the setup, with their jobs.
fn changed(last: &Began, began: &Began, before: &System) -> anyhow::Result<System> {
    let place = |name: &str| began.queues.iter().position(|queue| queue.name == name);
    system(began, |queue| {
        let place = place(&queue.name).and_then(|place| u32::try_from(place).ok());
        let found = before.queues().iter().find(|old| old.ledger().machine().hosts()[0].name == queue.name);
        let Some(ledger) = found.map(Driver::ledger) else { return Ok(Contents::default()) };
        // A capacity loss persists as long as the pool is the same.
        let same = last.queues.iter().any(|old| old.name == queue.name && old.pool == queue.pool);
        let capacity = Some(ledger.machine().capacity()).filter(|_| same);
        let jobs = ledger.waiting().chain(ledger.running()).chain(ledger.suspended());
        let entry = |job| {
            let entry = ledger.entry(job).clone();
            (job, Entry { request: Request { queue: place, ..entry.request }, ..entry })
        };
        Ok(Contents { jobs: jobs.map(entry).collect(), capacity, state: ledger.state() })
    })
}

/// The content of a queue.
#[derive(Default)]
struct Contents {
    jobs: Vec<(JobId, Entry)>,
    /// The present capacity of its pool, if it is not the full one.
    capacity: Option<Resources>,
    /// The state of its policy besides that of jobs.
    state: LedgerState,
}

/// Returns the queues of a setup, with these contents.
fn system(
    began: &Began,
    contents: impl Fn(&QueueLine) -> anyhow::Result<Contents>,
) -> anyhow::Result<System> {
    let queue = |queue: &QueueLine| -> anyhow::Result<Driver> {
        let machine = machine(queue)?;
        let policy: PolicySpec = queue.policy.parse()?;
        let policy = policy.build(&machine, 0)?;
        let Contents { jobs, capacity, state } = contents(queue)?;
        let ledger = Ledger::restored(machine, jobs).and_then(|ledger| match capacity {
            Some(capacity) => ledger.with_capacity(capacity),
            None => Ok(ledger),
        });
        let ledger = ledger.map(|ledger| ledger.with_state(state));
        let ledger =
            ledger.map_err(|rule| anyhow!("queue {}: its jobs exceed its pool: {rule:?}", queue.name))?;
        Ok(Driver::new(ledger, policy, EventOrder::Batched))
    };
    let system = System::new(began.queues.iter().map(queue).collect::<Result<_, _>>()?);
    Ok(match began.opportunistic {
        Some(config) => system.with_opportunistic(config.into()),
        None => system,
    })
}

fn machine(queue: &QueueLine) -> anyhow::Result<Machine> {
    queue.machine().with_context(|| format!("the pool of queue {} is not a valid calendar", queue.name))
}

/// Returns the external events of these rounds.
fn past(rounds: &[RoundLine], changes: &[(usize, Began)]) -> ReplayLog {
    let until = rounds.last().map_or(Time::ZERO, |round| Time::from_ticks(round.at));
    let mut past = ReplayLog { until, ..ReplayLog::default() };
    let mut starts: BTreeMap<i64, i64> = BTreeMap::new();
    let mut last = None;
    for (nth, round) in rounds.iter().enumerate() {
        let change = changes.iter().position(|(before, _)| *before == nth);
        let mut opportunistic = vec![];
        for ended in &round.ended {
            if let Some(start) = starts.remove(&ended.job) {
                let ran = RunRecord { runtime: Span::from_ticks(round.at - start), how: ended.how };
                past.runs.entry(ended.job).or_default().push_back(ran);
            } else {
                opportunistic.push((ended.job, ended.how));
            }
        }
        past.events.extend(outside(round, change, last, opportunistic));
        for effect in &round.effects {
            if let EffectLine::Started { job, .. } = effect {
                starts.insert(*job, round.at);
            }
        }
        last = Some(Time::from_ticks(round.at));
    }
    past
}

/// Returns the external events of a round, if there are any.
fn outside(
    round: &RoundLine,
    change: Option<usize>,
    last: Option<Time>,
    ended: Vec<(i64, EndHow)>,
) -> Option<ExternalEvents> {
    let fault = match round.capacity {
        _ if round.away => Some(Fault::Away),
        Some((queue, amounts)) => Some(Fault::Capacity { queue, capacity: resources(amounts) }),
        None => None,
    };
    let amended = |line: &miserly_engine::AmendedLine| match line.estimate {
        Some(estimate) => (line.job, Change::Estimate(Span::from_ticks(estimate))),
        None => (line.job, Change::Begin(line.begin.map(Time::from_ticks))),
    };
    let outside = ExternalEvents {
        at: Time::from_ticks(round.at),
        change,
        away_since: last.filter(|_| round.away),
        ended,
        withdrawn: round.withdrawn.clone(),
        amended: round.amended.iter().map(amended).collect(),
        fault,
        submitted: round.submitted.iter().map(miserly_engine::SavedRequest::request).collect(),
    };
    let any = !(outside.withdrawn.is_empty() && outside.amended.is_empty() && outside.submitted.is_empty());
    (any || change.is_some() || !outside.ended.is_empty() || outside.fault.is_some()).then_some(outside)
}

fn summary(played: &Played) -> String {
    let Played { rounds, starts, promises, effects, stopped, difference } = played;
    let mut text = format!(
        "{rounds} rounds: {starts} starts, {promises} new or changed promises, {effects} effects in total\n"
    );
    if let Some(stopped) = stopped {
        text += &format!("compared up to a mistake of a policy: {stopped}\n");
    }
    match difference {
        None => text += "the simulator reproduced every effect exactly\n",
        Some(Difference { nth, daemon, simulator }) => {
            let shown = |side: &Option<(i64, EffectLine)>| match side {
                Some((at, effect)) => {
                    format!("at {at} us: {}", serde_json::to_string(effect).unwrap_or_default())
                }
                None => "no further effect".to_owned(),
            };
            text += &format!(
                "effect {nth} differs\n  daemon     {}\n  simulator  {}\n",
                shown(daemon),
                shown(simulator)
            );
        }
    }
    text
}
