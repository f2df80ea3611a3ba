//! The settings of a run, as documents have them.

use miserly_core::{Kind, Resources};
use miserly_machine_file::{Hosts, MachineSpec, Pools, Queue, SHARINGS, SPANS, Week, word_of};
use miserly_report::{BatchSettings, HostsDoc, MachineDoc, PoolDoc, PoolsDoc, SettingsDoc, StepDoc};
use miserly_workload::ArrivalScaling;

use crate::options::RunOptions;
use crate::setup::RunSetup;

impl RunSetup {
    /// Returns the settings of the run, as documents have them.
    pub fn settings(&self) -> SettingsDoc {
        let RunOptions { jobs, event_order, warmup, batches, .. } = &self.options;
        SettingsDoc {
            procs: u32::try_from(jobs.procs).unwrap_or(u32::MAX),
            machine: machine(&self.spec),
            event_order: event_order.to_string(),
            overrun: jobs.overrun.to_string(),
            estimates: jobs.estimates.to_string(),
            procs_field: jobs.procs_field.to_string(),
            drop: jobs.drop.iter().map(ToString::to_string).collect(),
            from: jobs.from,
            to: jobs.to,
            users: jobs.users.clone(),
            queues: jobs.queues.clone(),
            scale_load: if let ArrivalScaling::Scaled(factor) = jobs.arrivals {
                factor.as_f64()
            } else {
                1.0
            },
            load_is_scaled: matches!(jobs.arrivals, ArrivalScaling::Scaled(_)),
            offline: jobs.arrivals == ArrivalScaling::Offline,
            shake: Some(jobs.shake).filter(|secs| *secs > 0),
            warmup: *warmup,
            batches: batches.map(BatchSettings::from),
            seed: jobs.seed,
            idle_use: self.spec.pools.as_ref().map(|_| self.options.opportunistic.document()),
            lenient: jobs.lenient,
        }
    }
}

fn machine(spec: &MachineSpec) -> MachineDoc {
    MachineDoc {
        name: spec.name.clone(),
        span: word_of(&SPANS, spec.spread),
        sharing: word_of(&SHARINGS, spec.sharing),
        hosts: spec.hosts.iter().map(hosts).collect(),
        pools: spec.pools.as_ref().map(pools),
    }
}

fn hosts(hosts: &Hosts) -> HostsDoc {
    HostsDoc {
        name: hosts.name.clone(),
        count: hosts.count,
        cpus: hosts.each.cpus_count().get(),
        memory: accounted(hosts.each.get(Kind::Memory)),
        gpus: accounted(hosts.each.get(Kind::Gpus)),
    }
}

fn pools(pools: &Pools) -> PoolsDoc {
    let queue = |queue: &Queue| PoolDoc {
        name: queue.name.clone(),
        policy: queue.policy.as_ref().map(ToString::to_string),
        week: week(&queue.week),
    };
    PoolsDoc {
        utc_offset_minutes: pools.pool.minutes_ahead(),
        week: week(&pools.pool),
        queues: pools.queues.iter().map(queue).collect(),
    }
}

fn week(week: &Week) -> Vec<StepDoc> {
    let step = |(from, amount): (String, Resources)| StepDoc {
        from,
        cpus: amount.cpus_count().get(),
        memory: accounted(amount.get(Kind::Memory)),
    };
    week.steps().map(step).collect()
}

/// Returns an amount; `None` if it is not accounted.
fn accounted(amount: u64) -> Option<u64> {
    (amount > 0).then_some(amount)
}
