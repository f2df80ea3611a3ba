//! The machine of a run, in one line.

use miserly_run::{HostsDoc, MachineDoc, PoolDoc, PoolsDoc};
use miserly_units::memory;

use crate::numbers::count;

/// Returns a one-line summary: `o2k: 8 hosts, 336GiB memory, span one, sharing shared`.
pub(super) fn machine_summary(machine: &MachineDoc) -> String {
    let number: u64 = machine.hosts.iter().map(HostsDoc::number).sum();
    let mut text =
        format!("{}: {} {}", machine.name, count(number), if number == 1 { "host" } else { "hosts" });
    // The total is checked to fit when the machine is read.
    let kilobytes: u64 = machine.hosts.iter().map(|host| host.number() * host.memory.unwrap_or(0)).sum();
    if kilobytes > 0 {
        text.push_str(&format!(", {} memory", memory(kilobytes.saturating_mul(1024))));
    }
    text.push_str(&format!(", span {}, sharing {}", machine.span, machine.sharing));
    text + &machine.pools.as_ref().map_or_else(String::new, pools_summary)
}

/// Returns the range of processors of each queue over a week: `; queues short 8, long 4 to 16`.
fn pools_summary(pools: &PoolsDoc) -> String {
    let queue = |queue: &PoolDoc| {
        let cpus = || queue.week.iter().map(|step| step.cpus);
        let (least, most) = (cpus().min().unwrap_or(0), cpus().max().unwrap_or(0));
        let range = if least == most { count(most) } else { format!("{} to {}", count(least), count(most)) };
        format!("{} {range}", queue.name)
    };
    format!("; queues {}", pools.queues.iter().map(queue).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(count: Option<u32>, memory: Option<u64>) -> HostsDoc {
        HostsDoc { name: "n".into(), count, cpus: 2, memory, gpus: None, gpu_types: vec![] }
    }

    #[track_caller]
    fn check(span: &'static str, sharing: &'static str, hosts: Vec<HostsDoc>, expect: &str) {
        let machine = MachineDoc {
            name: "m.toml".into(),
            span: span.into(),
            sharing: sharing.into(),
            hosts,
            pools: None,
            classes: None,
            gpu_fit: None,
        };
        assert_eq!(machine_summary(&machine), expect);
    }

    #[test]
    fn a_summary_is_one_line() {
        let nodes = vec![hosts(Some(119), Some(1 << 20)), hosts(None, Some(1 << 21))];
        check("any", "whole", nodes, "m.toml: 120 hosts, 121GiB memory, span any, sharing whole");
        let one = vec![hosts(None, Some(1536))];
        check("one", "shared", one, "m.toml: 1 host, 1.5MiB memory, span one, sharing shared");
    }
}
