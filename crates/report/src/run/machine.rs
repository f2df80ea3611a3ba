//! The machine of a run, for documents and tables.

use miserly_units::memory;
use serde::Serialize;

use crate::numbers::count;

/// A machine: its hosts and the placement rules for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineDoc {
    /// Requested name: a built-in machine, a number of processors, or a file.
    pub name: String,
    /// Hosts per job: `one` or `any`.
    pub span: &'static str,
    /// `shared`, or `whole` if each job has its hosts to itself.
    pub sharing: &'static str,
    /// Hosts in the order of their numbers and of their processors' numbers.
    pub hosts: Vec<HostsDoc>,
    /// Pools, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<PoolsDoc>,
}

/// The batch share of a machine and the queues that divide it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolsDoc {
    /// Offset of the weekly calendar from UTC.
    pub utc_offset_minutes: i32,
    /// Capacity of batch over a week.
    pub week: Vec<StepDoc>,
    /// Queues in the order of their numbers.
    pub queues: Vec<PoolDoc>,
}

/// A queue and its pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolDoc {
    /// Name.
    pub name: String,
    /// Policy; null for the policy of the run.
    pub policy: Option<String>,
    /// Capacity of the pool over a week.
    pub week: Vec<StepDoc>,
}

/// A step of a weekly calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepDoc {
    /// Start of the step, such as `mon 08:00`.
    pub from: String,
    /// Processors.
    pub cpus: u64,
    /// Memory in kB; null if memory is not accounted.
    pub memory: Option<u64>,
}

/// A host, or several identical hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
}

impl MachineDoc {
    /// Returns whether the number of processors describes the machine completely.
    pub fn is_plain(&self) -> bool {
        let counted = |host: &HostsDoc| host.memory.is_none() && host.gpus.is_none();
        let one = matches!(&self.hosts[..], [host] if host.number() == 1 && counted(host));
        one && self.sharing == "shared" && self.pools.is_none()
    }

    /// Returns a one-line summary: `o2k: 8 hosts, 336GiB memory, span one, sharing shared`.
    pub(super) fn summary(&self) -> String {
        let number: u64 = self.hosts.iter().map(HostsDoc::number).sum();
        let mut text =
            format!("{}: {} {}", self.name, count(number), if number == 1 { "host" } else { "hosts" });
        // The total is checked to fit when the machine is read.
        let kilobytes: u64 = self.hosts.iter().map(|host| host.number() * host.memory.unwrap_or(0)).sum();
        if kilobytes > 0 {
            text.push_str(&format!(", {} memory", memory(kilobytes.saturating_mul(1024))));
        }
        text.push_str(&format!(", span {}, sharing {}", self.span, self.sharing));
        text + &self.pools.as_ref().map_or_else(String::new, PoolsDoc::summary)
    }
}

impl PoolsDoc {
    /// Returns the range of processors of each queue over a week: `; queues short 8, long 4 to 16`.
    fn summary(&self) -> String {
        let queue = |queue: &PoolDoc| {
            let cpus = || queue.week.iter().map(|step| step.cpus);
            let (least, most) = (cpus().min().unwrap_or(0), cpus().max().unwrap_or(0));
            let range =
                if least == most { count(most) } else { format!("{} to {}", count(least), count(most)) };
            format!("{} {range}", queue.name)
        };
        format!("; queues {}", self.queues.iter().map(queue).collect::<Vec<_>>().join(", "))
    }
}

impl HostsDoc {
    fn number(&self) -> u64 {
        self.count.map_or(1, u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(count: Option<u32>, memory: Option<u64>) -> HostsDoc {
        HostsDoc { name: "n".into(), count, cpus: 2, memory, gpus: None }
    }

    fn machine(span: &'static str, sharing: &'static str, hosts: Vec<HostsDoc>) -> MachineDoc {
        MachineDoc { name: "m.toml".into(), span, sharing, hosts, pools: None }
    }

    #[test]
    fn a_summary_is_one_line() {
        let nodes =
            machine("any", "whole", vec![hosts(Some(119), Some(1 << 20)), hosts(None, Some(1 << 21))]);
        assert_eq!(nodes.summary(), "m.toml: 120 hosts, 121GiB memory, span any, sharing whole");
        let one = machine("one", "shared", vec![hosts(None, Some(1536))]);
        assert_eq!(one.summary(), "m.toml: 1 host, 1.5MiB memory, span one, sharing shared");
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
