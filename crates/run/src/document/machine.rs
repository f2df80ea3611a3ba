//! The machine of a run.

use miserly_core::devices::{DeviceClass, DeviceGroup};
use miserly_core::{Kind, Resources};
use miserly_machine_file::{ClassesDoc, Hosts, MachineSpec, Pools, Queue, Week};
use serde::{Deserialize, Serialize};

/// A machine: its hosts and the placement rules for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct MachineDoc {
    /// Requested name: a built-in machine, a number of processors, or a file.
    pub name: String,
    /// Hosts per job: `one` or `any`.
    pub span: String,
    /// `shared`, or `whole` if each job has its hosts to itself.
    pub sharing: String,
    /// Hosts in the order of their numbers and of their processors' numbers.
    pub hosts: Vec<HostsDoc>,
    /// Pools, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<PoolsDoc>,
    /// Job classes of policy `lsf`, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassesDoc>,
    /// Choice of GPUs for a job: `best` or `gradient`; only of a machine with typed GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_fit: Option<String>,
}

/// The batch share of a machine and the queues that divide it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PoolsDoc {
    /// Offset of the weekly calendar from UTC.
    pub utc_offset_minutes: i32,
    /// Capacity of batch over a week.
    pub week: Vec<StepDoc>,
    /// Queues in the order of their numbers.
    pub queues: Vec<PoolDoc>,
}

/// A queue and its pool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PoolDoc {
    /// Name.
    pub name: String,
    /// Policy; null for the policy of the run.
    pub policy: Option<String>,
    /// Capacity of the pool over a week.
    pub week: Vec<StepDoc>,
}

/// A step of a weekly calendar.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StepDoc {
    /// Start of the step, such as `mon 08:00`.
    pub from: String,
    /// Processors.
    pub cpus: u64,
    /// Memory in kB; null if memory is not accounted.
    pub memory: Option<u64>,
}

/// A host, or several identical hosts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HostsDoc {
    /// Name, or common prefix of the names.
    pub name: String,
    /// Number of hosts, numbered from 1; null for a single host with exactly this name.
    pub count: Option<u32>,
    /// Processors per host.
    pub cpus: u64,
    /// Memory per host in kB; null if memory is not accounted.
    pub memory: Option<u64>,
    /// GPUs per host; null if there are none.
    pub gpus: Option<u64>,
    /// Types of these GPUs and parts of GPUs, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_types: Vec<GpusDoc>,
}

/// GPUs of a host that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct GpusDoc {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number.
    pub count: u32,
    /// Memory of each in kB; null if it is unknown.
    pub memory: Option<u64>,
    /// Type of the GPU of which each is a part; null for whole GPUs.
    pub part_of: Option<String>,
    /// Whether jobs may share one.
    pub shares: bool,
}

impl MachineDoc {
    pub(super) fn new(spec: &MachineSpec) -> MachineDoc {
        MachineDoc {
            name: spec.name.clone(),
            span: spec.spread.to_string(),
            sharing: spec.sharing.to_string(),
            hosts: spec.hosts.iter().map(HostsDoc::new).collect(),
            pools: spec.pools.as_ref().map(PoolsDoc::new),
            classes: spec.classes.as_ref().map(|classes| ClassesDoc::new(classes)),
            gpu_fit: spec.devices.as_ref().map(|_| spec.gpu_fit.to_string()),
        }
    }

    /// Returns whether the number of processors describes the machine completely.
    pub fn is_plain(&self) -> bool {
        let counted = |host: &HostsDoc| host.memory.is_none() && host.gpus.is_none();
        let one = matches!(&self.hosts[..], [host] if host.number() == 1 && counted(host));
        one && self.sharing == "shared" && self.pools.is_none()
    }
}

impl PoolsDoc {
    fn new(pools: &Pools) -> PoolsDoc {
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
}

impl GpusDoc {
    fn new(group: &DeviceGroup) -> GpusDoc {
        let DeviceClass { name, memory, part_of, shares } = group.class.clone();
        GpusDoc { kind: name, count: group.count, memory, part_of, shares }
    }
}

impl HostsDoc {
    fn new(hosts: &Hosts) -> HostsDoc {
        HostsDoc {
            name: hosts.name.clone(),
            count: hosts.count,
            cpus: hosts.each.cpus_count().get(),
            memory: accounted(hosts.each.get(Kind::Memory)),
            gpus: accounted(
                hosts.each.get(Kind::Gpus)
                    + hosts.devices.iter().map(|group| u64::from(group.count)).sum::<u64>(),
            ),
            gpu_types: hosts.devices.iter().map(GpusDoc::new).collect(),
        }
    }

    /// Returns the number of hosts.
    pub fn number(&self) -> u64 {
        self.count.map_or(1, u64::from)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(count: Option<u32>, memory: Option<u64>) -> HostsDoc {
        HostsDoc { name: "n".into(), count, cpus: 2, memory, gpus: None, gpu_types: vec![] }
    }

    fn machine(span: &'static str, sharing: &'static str, hosts: Vec<HostsDoc>) -> MachineDoc {
        let (name, span, sharing) = ("m.toml".into(), span.into(), sharing.into());
        MachineDoc { name, span, sharing, hosts, pools: None, classes: None, gpu_fit: None }
    }

    #[test]
    fn a_plain_machine_is_described_by_its_processors() {
        assert!(machine("one", "shared", vec![hosts(None, None)]).is_plain());
        assert!(machine("any", "shared", vec![hosts(Some(1), None)]).is_plain());
        assert!(!machine("one", "whole", vec![hosts(None, None)]).is_plain());
        assert!(!machine("one", "shared", vec![hosts(None, Some(1))]).is_plain());
        assert!(!machine("one", "shared", vec![hosts(Some(2), None)]).is_plain());
    }
}
