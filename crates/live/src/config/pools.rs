//! The pool and the queues, by the grammar of machine files.

use miserly_core::{Kind, Resources};
use miserly_machine_file::Pools;
use miserly_machine_file::file::{PoolFile, PoolsFile};
use toml::{Spanned, Value};

use super::Machine;
use super::error::Problem;
use super::file::File;

/// Returns the pool and its queues, in the order of the file. A file without queues gives one.
pub(super) fn pools(file: &File, machine: &Machine) -> Result<Pools, Problem> {
    let nothing = Spanned::new(0..0, PoolFile::default());
    let pool = file.pool.as_ref().unwrap_or(&nothing);
    let written = PoolsFile {
        utc_offset: file.utc_offset.clone(),
        pool: Some(Spanned::new(pool.span(), with_defaults(pool.get_ref(), machine))),
        queues: file.queues.clone(),
    };
    // The system does not tell how many there are: the configuration does.
    let gpus = pool.get_ref().gpus.as_ref().and_then(|gpus| u64::try_from(*gpus.get_ref()).ok());
    let all = Resources::cpus(machine.count()).with(Kind::Memory, machine.memory);
    Pools::new(&written, &all.with(Kind::Gpus, gpus.unwrap_or(0)))
}

/// Returns the pool with half of the machine for each missing setting.
fn with_defaults(written: &PoolFile, machine: &Machine) -> PoolFile {
    let cpus = || Spanned::new(0..0, i64::try_from(machine.count() / 2).unwrap_or(i64::MAX).max(1));
    // Unknown memory is not accounted.
    let half = || Value::String(format!("{}KiB", machine.memory.saturating_sub(machine.huge_pages) / 2));
    let memory = || (machine.memory > 1).then(|| Spanned::new(0..0, half()));
    PoolFile {
        cpus: Some(written.cpus.clone().unwrap_or_else(cpus)),
        memory: written.memory.clone().or_else(memory),
        gpus: written.gpus.clone(),
        calendar: written.calendar.clone(),
    }
}
