//! Spatial equipartitioning as a registered policy.

use miserly_core::{Machine, Policy, Span};

use super::{Equipartition, Rules};
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `eqspatial`.
pub static EQSPATIAL: PolicyDescriptor = PolicyDescriptor {
    name: "eqspatial",
    title: "spatial equipartitioning: the jobs of a host divide its processors as equally as their requests allow",
    paper: "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPDPS 2001",
    promises: "nothing",
    needs: Needs { one_host_per_job: true, shared_hosts: true, resizing: true, requeue: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read,
};

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let min_interval =
        params.duration("min_interval", 0, "0", "the least time between two repartitionings of a host")?;
    let long_job_after = params.duration_or_none(
        "long_job_after",
        1,
        "none",
        "after this running time a job gets its requested processors, if each other job of the host has one",
    )?;
    let quantum = params.duration(
        "quantum",
        0,
        "1m",
        "the quantum of a new job that has to wait for memory; 0: none",
    )?;
    let doc = "the most memory of a job in its quantum, kB";
    let quantum_memory = params.integer("quantum_memory", 0..=u64::MAX, 1_048_576, doc)?;
    let doc = "the work of a quantum is kept if the job did not end in it";
    let keep_work = params.flag("keep_work", false, doc)?;
    let long_job_after = long_job_after.unwrap_or(Span::MAX);
    Ok(Box::new(Rules { min_interval, long_job_after, quantum, quantum_memory, keep_work }))
}

impl Params for Rules {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(Equipartition::new(*self))
    }

    fn needs(&self, needs: Needs) -> Needs {
        Needs { checkpoints: self.keep_work, ..needs }
    }
}
