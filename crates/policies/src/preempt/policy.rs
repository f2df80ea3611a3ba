//! Immediate service around any backfill policy, as a registered policy (Chiang and Vernon §2.4,
//! §4.3).

use miserly_core::{Machine, Policy};

use super::{Immediate, Service};
use crate::backfill::policies::CHIANG;
use crate::registry::{
    InnerPolicy, Needs, ParamReader, Params, PolicyDescriptor, PolicyError, Promises, Spelling,
};

/// `immediate`.
pub static IMMEDIATE: PolicyDescriptor = PolicyDescriptor {
    name: "immediate",
    title: "immediate service: each new job runs for a quantum at once, by preempting others; else a backfill policy decides",
    paper: CHIANG,
    promises: "nothing; with keep_promises=true the promises of the inner policy",
    needs: Needs {
        one_host_per_job: true,
        shared_hosts: true,
        suspension: true,
        requeue: true,
        quanta: true,
        ..Needs::NONE
    },
    spellings: &[Spelling {
        name: "soon",
        means: "preempt=false",
        title: "immediate service without preemption: each job gets its quantum as soon as a host has room",
    }],
    examples: &[],
    read,
};

#[derive(Debug)]
struct ImmediateParams {
    inner: InnerPolicy,
    service: Service,
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let inner = params.inner("policy", "lxf&w-bf", "the inner policy, a backfill policy")?;
    let quantum = params.duration("quantum", 1, "1m", "the length of the quantum")?;
    let memory = params.integer(
        "memory",
        0..=u64::MAX,
        1_048_576,
        "the most memory of a job in its quantum, in kB",
    )?;
    let preempt = params.flag(
        "preempt",
        true,
        "false: no job is preempted; a job gets its quantum as soon as a host has room",
    )?;
    let after = params.duration(
        "after",
        0,
        "10m",
        "a job is preempted only if it has run for this time without interruption",
    )?;
    let keep_promises = params.flag(
        "keep_promises",
        false,
        "a quantum is given only if no promised start moves, and the promises of the inner policy hold",
    )?;
    let keep_work =
        params.flag("keep_work", false, "the work of a quantum is kept if the job did not end in it")?;
    let preempt_after = preempt.then_some(after);
    let service = Service { quantum, memory, preempt_after, keep_promises, keep_work };
    Ok(Box::new(ImmediateParams { inner, service }))
}

impl Params for ImmediateParams {
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        let inner = self.inner.point.clone().inner(machine);
        Box::new(Immediate::new("immediate", inner, self.service))
    }

    fn promises(&self) -> Promises {
        if self.service.keep_promises { self.inner.params.promises() } else { Promises::Nothing }
    }

    fn needs(&self, needs: Needs) -> Needs {
        Needs {
            suspension: self.service.preempt_after.is_some(),
            checkpoints: self.service.keep_work,
            ..needs
        }
    }
}
