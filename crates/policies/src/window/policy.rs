//! Miser's windows as a registered policy.

use miserly_core::{Machine, Policy, Span};

use super::first_fit;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError, Promises};

/// `miser`.
pub static MISER: PolicyDescriptor = PolicyDescriptor {
    name: "miser",
    title: "first-fit windows: each job gets a promised start and end at its submission, or is refused",
    paper: "Roussos, Bitar, English: Deterministic Batch Scheduling without Static Partitioning, 1999",
    promises: "every job, when it is submitted",
    needs: Needs {
        calendar: true,
        devices: true,
        begin_and_deadline: true,
        refusals: true,
        opportunistic: true,
        ..Needs::NONE
    },
    spellings: &[],
    examples: &[],
    read,
};

#[derive(Debug)]
struct MiserParams {
    horizon: Option<Span>,
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let doc = "the latest end of a window, from the submission of its job";
    Ok(Box::new(MiserParams { horizon: params.horizon("30d", doc)? }))
}

impl Params for MiserParams {
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        first_fit(machine, self.horizon.unwrap_or(Span::MAX))
    }

    fn promises(&self) -> Promises {
        Promises::EveryJob
    }
}
