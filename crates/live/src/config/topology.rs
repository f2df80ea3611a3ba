//! The cores and memory nodes of the machine, as the kernel lists them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use miserly_cgroup::parse_cpus;
use miserly_engine::Topology;

/// Returns the topology below a folder such as `/sys/devices/system`. What the kernel does not list is left out.
pub(super) fn read(system: &Path) -> Topology {
    let cores = lists(&system.join("cpu"), "cpu", "topology/thread_siblings_list");
    let nodes = lists(&system.join("node"), "node", "cpulist");
    Topology { cores: cores.into_iter().collect(), nodes: nodes.into_iter().collect() }
}

/// Returns the lists of processors in a file of each numbered folder, each list once.
fn lists(folder: &Path, prefix: &str, file: &str) -> BTreeSet<Vec<u32>> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    let is_numbered = |name: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    let numbered = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_numbered));
    let list = |entry: fs::DirEntry| parse_cpus(&fs::read_to_string(entry.path().join(file)).ok()?).ok();
    numbered.filter_map(list).filter(|cpus| !cpus.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_and_nodes() {
        let system = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = system.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3"), (10, "10")] {
            write(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &format!("{siblings}\n"));
        }
        write("cpu/cpufreq/topology/thread_siblings_list", "7\n");
        // An offline processor has no topology, and a node may have no processor.
        write("cpu/cpu11/online", "0\n");
        write("node/node0/cpulist", "0,2\n");
        write("node/node1/cpulist", "1,3,10\n");
        write("node/node2/cpulist", "\n");
        let expect = Topology {
            cores: vec![vec![0, 2], vec![1, 3], vec![10]],
            nodes: vec![vec![0, 2], vec![1, 3, 10]],
        };
        assert_eq!(read(system.path()), expect);
        assert_eq!(read(&system.path().join("none")), Topology::default());
    }

    #[test]
    fn this_machine_has_every_processor_in_one_core() {
        let topology = read(Path::new("/sys/devices/system"));
        let all: Vec<u32> = topology.cores.concat();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{topology:?}");
    }
}
