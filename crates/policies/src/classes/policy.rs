//! NCSA-LSF* as a registered policy.

use miserly_core::{Machine, Policy};

use super::Lsf;
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `lsf`.
pub static LSF: PolicyDescriptor = PolicyDescriptor {
    name: "lsf",
    title: "NCSA-LSF*: static job classes; each host has its own class order and limits",
    paper: "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPPS 2001, section 2.1",
    promises: "nothing",
    needs: Needs { one_host_per_job: true, host_table: true, refusals: true, ..Needs::NONE },
    spellings: &[],
    examples: &[],
    read,
};

#[derive(Debug)]
struct LsfParams {
    user_limit: Option<u32>,
    reserve: bool,
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let doc = "the number of jobs of a user that may execute at a time; 0: any number";
    let most = params.integer("user_limit", 0..=u64::from(u32::MAX), 0, doc)?;
    let user_limit = u32::try_from(most).ok().filter(|most| *most > 0);
    let reserve = params.flag("reserve", true, "keeps a host idle for a job that has waited for too long")?;
    Ok(Box::new(LsfParams { user_limit, reserve }))
}

impl Params for LsfParams {
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        Box::new(Lsf::new(machine, self.user_limit, self.reserve))
    }
}
