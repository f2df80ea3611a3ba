//! The machine of a run, as documents and tables tell it.

use miserly_units::memory;
use serde::Serialize;

use crate::numbers::count;

/// A machine: its hosts, and how jobs lie on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineDoc {
    /// What it was asked for by: a built-in name, the number of its processors, or a file.
    pub name: String,
    /// `one` or `any`: over how many hosts a job may lie.
    pub span: &'static str,
    /// `shared`, or `whole` where a job has its hosts to itself.
    pub sharing: &'static str,
    /// The hosts, in the order in which they and their processors are numbered.
    pub hosts: Vec<HostsDoc>,
    /// The pools, where it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<PoolsDoc>,
}

/// Batch's share of a machine, and the queues that divide it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolsDoc {
    /// How far the clock of the weeks is ahead of UTC.
    pub utc_offset_minutes: i32,
    /// What batch has over a week.
    pub week: Vec<StepDoc>,
    /// The queues, in the order of their numbers.
    pub queues: Vec<PoolDoc>,
}

/// A queue and its part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolDoc {
    /// Its name.
    pub name: String,
    /// Its policy; null where that is the run's.
    pub policy: Option<String>,
    /// What it has over a week.
    pub week: Vec<StepDoc>,
}

/// From when in a week there is how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepDoc {
    /// Such as `mon 08:00`.
    pub from: String,
    /// Processors.
    pub cpus: u64,
    /// Memory, kB; null where it is not accounted.
    pub memory: Option<u64>,
}

/// One host, or several that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostsDoc {
    /// Its name, or what their names begin with.
    pub name: String,
    /// How many, numbered from 1; null for one that is named just so.
    pub count: Option<u32>,
    /// The processors of each.
    pub cpus: u64,
    /// The memory of each, kB; null where it is not accounted.
    pub memory: Option<u64>,
    /// The GPUs of each; null where there are none.
    pub gpus: Option<u64>,
}

impl MachineDoc {
    /// Whether it is one shared host of processors and nothing else, of which the number says all.
    pub fn is_plain(&self) -> bool {
        let counted = |host: &HostsDoc| host.memory.is_none() && host.gpus.is_none();
        let one = matches!(&self.hosts[..], [host] if host.number() == 1 && counted(host));
        one && self.sharing == "shared" && self.pools.is_none()
    }

    /// In a line, for people: `o2k: 8 hosts, 336GiB memory, span one, sharing shared`.
    pub(super) fn told(&self) -> String {
        let number: u64 = self.hosts.iter().map(HostsDoc::number).sum();
        let mut text =
            format!("{}: {} {}", self.name, count(number), if number == 1 { "host" } else { "hosts" });
        // The memory of a machine is checked to be a number.
        let kilobytes: u64 = self.hosts.iter().map(|host| host.number() * host.memory.unwrap_or(0)).sum();
        if kilobytes > 0 {
            text.push_str(&format!(", {} memory", memory(kilobytes.saturating_mul(1024))));
        }
        text.push_str(&format!(", span {}, sharing {}", self.span, self.sharing));
        text + &self.pools.as_ref().map_or_else(String::new, PoolsDoc::told)
    }
}

impl PoolsDoc {
    /// `; queues short 8, long 4 to 16`: the processors of each, over a week.
    fn told(&self) -> String {
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
    fn told_in_a_line() {
        let nodes =
            machine("any", "whole", vec![hosts(Some(119), Some(1 << 20)), hosts(None, Some(1 << 21))]);
        assert_eq!(nodes.told(), "m.toml: 120 hosts, 121GiB memory, span any, sharing whole");
        let one = machine("one", "shared", vec![hosts(None, Some(1536))]);
        assert_eq!(one.told(), "m.toml: 1 host, 1.5MiB memory, span one, sharing shared");
    }

    #[test]
    fn plain_is_what_the_number_of_processors_says() {
        assert!(machine("one", "shared", vec![hosts(None, None)]).is_plain());
        assert!(machine("any", "shared", vec![hosts(Some(1), None)]).is_plain());
        assert!(!machine("one", "whole", vec![hosts(None, None)]).is_plain());
        assert!(!machine("one", "shared", vec![hosts(None, Some(1))]).is_plain());
        assert!(!machine("one", "shared", vec![hosts(Some(2), None)]).is_plain());
    }
}
