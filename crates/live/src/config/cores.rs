//! The processors for jobs that get whole cores.

use super::{Machine, Queue};

/// Checks that the policies of all queues leave the choice of processors to the daemon.
pub(super) fn check_queues(queues: &[Queue]) -> Result<(), String> {
    let counts = |queue: &&Queue| queue.policy.needs().named_processors || queue.policy.needs().resizing;
    queues.iter().find(counts).map_or(Ok(()), |queue| {
        let policy = queue.policy.descriptor().name;
        Err(format!(
            "whole-cores: the policy {policy} of queue {} chooses single processors and knows no cores",
            queue.name
        ))
    })
}

/// Returns the last cores of the machine with `most` processors together.
///
/// # Errors
/// `most` is no multiple of the processors of a core, or these cores differ in size.
pub(super) fn last(machine: &Machine, most: usize) -> Result<Vec<u32>, String> {
    let cores = machine.topology.cores_of(&machine.cpus);
    let mut cpus: Vec<u32> = vec![];
    let mut size = None;
    for core in cores.iter().rev() {
        if cpus.len() >= most {
            break;
        }
        let size = *size.get_or_insert(core.len());
        if core.len() != size {
            return Err(format!(
                "whole-cores: the core with cpu {} has {} cpus for jobs, and others have {size}; jobs need cores of one size",
                core[0],
                core.len()
            ));
        }
        cpus.extend(core);
    }
    if cpus.len() != most {
        let size = size.unwrap_or(1);
        return Err(format!(
            "whole-cores: the pool has {most} cpus, which is no multiple of a core's {size}"
        ));
    }
    cpus.sort_unstable();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use miserly_engine::Topology;

    use super::*;

    #[track_caller]
    fn check(cores: &[&[u32]], most: usize, expect: Result<&[u32], &str>) {
        let cores: Vec<Vec<u32>> = cores.iter().map(|core| core.to_vec()).collect();
        let mut cpus = cores.concat();
        cpus.sort_unstable();
        let topology = Topology { cores, nodes: vec![] };
        let machine = Machine { topology, ..Machine::new(cpus, 0) };
        match (last(&machine, most), expect) {
            (Ok(cpus), Ok(expect)) => assert_eq!(cpus, expect),
            (Err(error), Err(expect)) => assert!(error.contains(expect), "{error}"),
            (found, expect) => panic!("{found:?} {expect:?}"),
        }
    }

    #[test]
    fn the_last_cores_with_all_their_siblings() {
        check(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]], 4, Ok(&[2, 3, 6, 7]));
        check(&[&[0], &[1], &[2]], 2, Ok(&[1, 2]));
        check(&[&[0, 4], &[1, 5]], 3, Err("3 cpus, which is no multiple of a core's 2"));
        check(
            &[&[0, 1], &[2, 3], &[4], &[5]],
            4,
            Err("the core with cpu 2 has 2 cpus for jobs, and others have 1"),
        );
        check(&[&[0, 1], &[2, 3], &[4], &[5]], 2, Ok(&[4, 5]));
    }
}
