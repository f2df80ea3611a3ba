//! The queues of a machine with pools (Miser §3.1, Figure 1), as a system of drivers.

use miserly_core::{Driver, EventOrder, Ledger, Machine, Span, System, Time};
use miserly_machine_file::{MachineSpec, Pools, Queue, monday};
use miserly_policies::{PolicyError, PolicySpec};

/// Returns the pools of the queues as machines; none if the machine has no pools.
///
/// The clock shows 0 at `unix_start` seconds of Unix time, or else at the beginning of a Monday in UTC.
pub(crate) fn machines(spec: &MachineSpec, unix_start: Option<i64>) -> Vec<Machine> {
    let passed = |secs: i64| Span::from_secs(secs).unwrap_or(Span::MAX);
    let monday = unix_start.map_or(Time::ZERO, |secs| monday(passed(secs)));
    let machine = |queue: &Queue| queue.week.machine(&queue.name, monday).with_classes(spec.classes.clone());
    spec.pools.iter().flat_map(|pools| &pools.queues).map(machine).collect()
}

/// Returns the policies of the queues; `run` for a queue without one.
pub(crate) fn policies<'a>(pools: &'a Pools, run: &'a PolicySpec) -> impl Iterator<Item = &'a PolicySpec> {
    pools.queues.iter().map(move |queue| queue.policy.as_ref().unwrap_or(run))
}

/// Returns the queues without any jobs.
///
/// # Errors
/// If a policy does not run in its pool.
pub(crate) fn system(
    pools: &Pools,
    machines: &[Machine],
    run: &PolicySpec,
    seed: u64,
    event_order: EventOrder,
) -> Result<System, PolicyError> {
    let driver = |(machine, policy): (&Machine, &PolicySpec)| {
        let policy = policy.build(machine, seed)?;
        Ok(Driver::new(Ledger::new(machine.clone()), policy, event_order))
    };
    let queues: Result<_, PolicyError> = machines.iter().zip(policies(pools, run)).map(driver).collect();
    Ok(System::new(queues?))
}
