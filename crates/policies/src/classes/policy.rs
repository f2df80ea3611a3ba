//! NCSA-LSF* as a registered policy.

use miserly_core::{Machine, Policy};

use super::{Limits, Lsf};
use crate::registry::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError};

/// `lsf`.
pub static LSF: PolicyDescriptor = PolicyDescriptor {
    name: "lsf",
    title: "NCSA-LSF*: twelve job classes; each host has its own class order and limits",
    paper: "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPPS 2001, section 2.1",
    promises: "nothing",
    needs: Needs { one_host_per_job: true, host_table: true, refusals: true, ..Needs::NONE },
    spellings: &[],
    read,
};

#[derive(Debug)]
struct LsfParams {
    limits: Limits,
    reserve: bool,
}

fn read(params: &mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError> {
    let user = limit(
        params,
        "user_limit",
        0,
        "the number of jobs of a user that may execute at a time; 0: any number",
    )?;
    let medium = limit(
        params,
        "mt_limit",
        48,
        "the number of jobs of over 50 up to 200 requested hours that may execute at a time; 0: any number",
    )?;
    let long = limit(
        params,
        "lt_limit",
        20,
        "the number of jobs of over 200 requested hours that may execute at a time; 0: any number",
    )?;
    let reserve = params.flag("reserve", true, "keeps a host idle for a job that has waited for too long")?;
    Ok(Box::new(LsfParams { limits: Limits { user, medium, long }, reserve }))
}

/// Reads a number of jobs; 0 is no limit.
fn limit(
    params: &mut ParamReader<'_>,
    name: &'static str,
    default: u64,
    doc: &'static str,
) -> Result<Option<u32>, PolicyError> {
    let most = params.integer(name, 0..=u64::from(u32::MAX), default, doc)?;
    Ok(u32::try_from(most).ok().filter(|most| *most > 0))
}

impl Params for LsfParams {
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        Box::new(Lsf::new(machine, self.limits, self.reserve))
    }
}
