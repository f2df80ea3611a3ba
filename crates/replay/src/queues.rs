//! The queues of a replay: empty, from a checkpoint, or after a change of the setup.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use miserly_core::devices::{CellId, DeviceTable};
use miserly_core::{
    Driver, Entry, EventOrder, JobId, Ledger, LedgerState, Machine, Request, Resources, Sizes, System,
};
use miserly_engine::{CheckpointLine, QueueLine, resources};
use miserly_policies::PolicySpec;

use super::journal::Began;

/// Returns the queues of a setup without jobs.
pub(crate) fn empty(began: &Began) -> anyhow::Result<System> {
    system(began, |_| Ok(Contents::default()))
}

/// Returns the queues at a checkpoint.
pub(crate) fn at_checkpoint(began: &Began, checkpoint: &CheckpointLine) -> anyhow::Result<System> {
    let mut handles = (0..).map(JobId);
    let mut queues = checkpoint.queues.iter();
    let mut contents = |_: &QueueLine| {
        let queue = queues.next().context("a queue without its jobs")?;
        let entries = queue.jobs.iter().map(miserly_engine::SavedEntry::entry);
        Ok(Contents {
            jobs: handles.by_ref().zip(entries).collect(),
            capacity: queue.capacity.map(resources),
            lost: queue.lost.iter().map(|(cell, names)| (CellId(*cell), *names)).collect(),
            state: queue.state.state(),
        })
    };
    let mut system = system(began, &mut contents)?;
    system.resume(checkpoint.at, &checkpoint.wake_ups());
    Ok(system)
}

/// Returns the queues after a change of the setup, with their jobs.
pub(crate) fn changed(last: &Began, began: &Began, before: &System) -> anyhow::Result<System> {
    let place = |name: &str| began.queues.iter().position(|queue| queue.name == name);
    system(began, |queue| {
        let place = place(&queue.name).and_then(|place| u32::try_from(place).ok());
        let found = before.queues().iter().find(|old| old.ledger().machine().hosts()[0].name == queue.name);
        let Some(ledger) = found.map(Driver::ledger) else { return Ok(Contents::default()) };
        // A capacity loss persists as long as the pool is the same.
        let same = last.queues.iter().any(|old| old.name == queue.name && old.pool == queue.pool);
        let capacity = Some(ledger.machine().capacity()).filter(|_| same);
        let resizes = queue.policy.parse::<PolicySpec>()?.needs().resizing;
        let jobs = ledger.waiting().chain(ledger.running()).chain(ledger.suspended());
        let entry = |job| {
            let entry = ledger.entry(job).clone();
            // A job that came under a policy that resizes none has a fixed size, unless its request says otherwise.
            let fixed = Sizes { least: entry.request.procs(), most: entry.request.procs() };
            let sizes = entry.request.sizes.or(resizes.then_some(fixed));
            (job, Entry { request: Request { queue: place, sizes, ..entry.request }, ..entry })
        };
        let lost_gpus = ledger.machine().devices().map(DeviceTable::lost).unwrap_or_default();
        Ok(Contents { jobs: jobs.map(entry).collect(), capacity, lost: lost_gpus, state: ledger.state() })
    })
}

/// The content of a queue.
#[derive(Default)]
struct Contents {
    jobs: Vec<(JobId, Entry)>,
    /// The present capacity of its pool, if it is not the full one.
    capacity: Option<Resources>,
    /// The lost devices of its cells.
    lost: Vec<(CellId, u64)>,
    /// The state of its policy besides that of jobs.
    state: LedgerState,
}

/// Returns the queues of a setup, with these contents.
fn system(
    began: &Began,
    mut contents: impl FnMut(&QueueLine) -> anyhow::Result<Contents>,
) -> anyhow::Result<System> {
    let mut queue = |queue: &QueueLine| -> anyhow::Result<Driver> {
        let machine = machine(queue)?;
        let policy: PolicySpec = queue.policy.parse()?;
        let policy = policy.build(&machine, 0)?;
        let Contents { jobs, capacity, lost, state } = contents(queue)?;
        let table = machine.devices().map(|table| Arc::new(table.clone().with_lost(&lost)));
        let machine = machine.with_devices(table);
        let ledger = Ledger::restored(machine, jobs).and_then(|ledger| match capacity {
            Some(capacity) => ledger.with_capacity(capacity),
            None => Ok(ledger),
        });
        let ledger = ledger.map(|ledger| ledger.with_state(state));
        let ledger =
            ledger.map_err(|rule| anyhow!("queue {}: its jobs exceed its pool: {rule:?}", queue.name))?;
        Ok(Driver::new(ledger, policy, EventOrder::Batched))
    };
    let system = System::new(began.queues.iter().map(&mut queue).collect::<Result<_, _>>()?);
    Ok(match began.opportunistic {
        Some(config) => system.with_opportunistic(config.into()),
        None => system,
    })
}

fn machine(queue: &QueueLine) -> anyhow::Result<Machine> {
    queue.machine().with_context(|| format!("the pool of queue {} is not a valid calendar", queue.name))
}
