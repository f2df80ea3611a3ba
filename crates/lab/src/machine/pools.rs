//! The pools of a machine: queues that divide it, each with a policy of its own (Miser §3.1, Figure 1).

use std::ops::Range;

use miserly_core::{Driver, Instants, Kind, Ledger, Machine, Resources, Sharing, Span, Spread, System, Time};
use miserly_policies::{Chosen, PolicyError};
use miserly_pools::{PoolsFile, Week, check, monday};
use miserly_report::{PoolDoc, PoolsDoc, StepDoc};
use toml::Spanned;

use super::MachineSpec;
use super::checked::Problem;

/// Batch's share of a machine, and the queues that divide it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pools {
    pool: Week,
    queues: Vec<Queue>,
}

/// A queue: a pool of its own, and its policy, where it is not that of the run.
#[derive(Clone, Debug, PartialEq)]
struct Queue {
    name: String,
    week: Week,
    policy: Option<Chosen>,
}

/// The pools that a file has, if it has any.
pub(super) fn pools(file: &PoolsFile, spec: &MachineSpec) -> Result<Option<Pools>, Problem> {
    let at = file.pool.as_ref().map(Spanned::span).or_else(|| file.queues.first().map(Spanned::span));
    let Some(at) = at else {
        return match &file.utc_offset {
            Some(offset) => {
                Err((offset.span(), "utc-offset is for calendars, and there is no [pool]".into()))
            }
            None => Ok(None),
        };
    };
    let has = of_one_host(spec).map_err(|problem| (at, problem))?;
    let checked = check(file, &has).map_err(|problem| (problem.at, problem.text))?;
    let queue = |queue: miserly_pools::QueueSpec| {
        let policy = queue.policy.map(chosen).transpose()?;
        Ok(Queue { name: queue.name, week: queue.week, policy })
    };
    let queues = checked.queues.into_iter().map(queue).collect::<Result<_, _>>()?;
    Ok(Some(Pools { pool: checked.pool, queues }))
}

/// The processors and the memory of a machine that can have pools.
fn of_one_host(spec: &MachineSpec) -> Result<Resources, String> {
    let machine = spec.machine();
    match machine.hosts() {
        [host] if spec.spread == Spread::One && spec.sharing == Sharing::Shared => {
            Ok(host.capacity.with(Kind::Gpus, 0))
        }
        _ => {
            Err("pools are of one host that jobs share: one [[host]] without count, span one, sharing shared"
                .into())
        }
    }
}

fn chosen((text, at): (String, Range<usize>)) -> Result<Chosen, Problem> {
    text.parse().map_err(|error: PolicyError| (at, error.to_string()))
}

impl Pools {
    /// The pools of the queues as machines, under a clock whose 0 is at `unix_start` seconds of Unix time, or the beginning
    /// of a Monday in UTC.
    pub(crate) fn machines(&self, unix_start: Option<i64>) -> Vec<Machine> {
        let passed = |secs: i64| Span::from_secs(secs).unwrap_or(Span::MAX);
        let monday = unix_start.map_or(Time::ZERO, |secs| monday(passed(secs)));
        self.queues.iter().map(|queue| queue.week.machine(&queue.name, monday)).collect()
    }

    /// The policies of the queues, where the run's is `run`.
    pub(crate) fn policies<'a>(&'a self, run: &'a Chosen) -> impl Iterator<Item = &'a Chosen> {
        self.queues.iter().map(move |queue| queue.policy.as_ref().unwrap_or(run))
    }

    /// The queues with nobody in them.
    ///
    /// # Errors
    /// If a policy does not run in its pool.
    pub(crate) fn system(
        &self,
        machines: &[Machine],
        run: &Chosen,
        seed: u64,
        instants: Instants,
    ) -> Result<System, PolicyError> {
        let driver = |(machine, policy): (&Machine, &Chosen)| {
            let policy = policy.build(machine, seed)?;
            Ok(Driver::new(Ledger::new(machine.clone()), policy, instants))
        };
        let queues: Result<_, PolicyError> = machines.iter().zip(self.policies(run)).map(driver).collect();
        Ok(System::new(queues?))
    }

    /// As documents tell them.
    pub(super) fn document(&self) -> PoolsDoc {
        let queue = |queue: &Queue| PoolDoc {
            name: queue.name.clone(),
            policy: queue.policy.as_ref().map(ToString::to_string),
            week: week(&queue.week),
        };
        PoolsDoc {
            utc_offset_minutes: self.pool.minutes_ahead(),
            week: week(&self.pool),
            queues: self.queues.iter().map(queue).collect(),
        }
    }
}

fn week(week: &Week) -> Vec<StepDoc> {
    let known = |amount: u64| (amount > 0).then_some(amount);
    let step = |(from, amount): (String, Resources)| StepDoc {
        from,
        cpus: amount.cpus_count().get(),
        memory: known(amount.get(Kind::Memory)),
    };
    week.steps().map(step).collect()
}
