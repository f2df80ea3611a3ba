//! The pool and the queues, by the grammar of machine files.

use miserly_core::{Kind, Resources};
use miserly_machine_file::Pools;
use miserly_machine_file::file::{PoolFile, PoolsFile};
use toml::{Spanned, Value};

use super::Machine;
use super::error::Problem;
use super::file::File;
use super::gpus;

/// Returns the pool and its queues, in the order of the file. A file without queues gives one.
pub(super) fn pools(file: &File, machine: &Machine) -> Result<Pools, Problem> {
    let nothing = Spanned::new(0..0, PoolFile::default());
    let pool = file.pool.as_ref().unwrap_or(&nothing);
    let written = PoolsFile {
        utc_offset: file.utc_offset.clone(),
        pool: Some(Spanned::new(pool.span(), with_defaults(pool.get_ref(), file, machine))),
        queues: file.queues.clone(),
    };
    // The kernel may not know all of them: the configuration has their number.
    let gpus = written.pool.as_ref().and_then(|pool| pool.get_ref().gpus.as_ref());
    let gpus = gpus.and_then(|gpus| u64::try_from(*gpus.get_ref()).ok());
    let all = Resources::cpus(machine.count()).with(Kind::Memory, machine.memory);
    Pools::new(&written, &all.with(Kind::Gpus, gpus.unwrap_or(0)))
}

/// Returns the pool with half of the machine for each missing setting, and with all GPUs that the file lists.
fn with_defaults(written: &PoolFile, file: &File, machine: &Machine) -> PoolFile {
    let cpus = || Spanned::new(0..0, i64::try_from(machine.count() / 2).unwrap_or(i64::MAX).max(1));
    // Unknown memory is not accounted.
    let half = || Value::String(format!("{}KiB", machine.memory.saturating_sub(machine.huge_pages) / 2));
    let memory = || (machine.memory > 1).then(|| Spanned::new(0..0, half()));
    let listed = || gpus::count(file).map(|count| Spanned::new(0..0, count));
    PoolFile {
        cpus: Some(written.cpus.clone().unwrap_or_else(cpus)),
        memory: written.memory.clone().or_else(memory),
        gpus: written.gpus.clone().or_else(listed),
        calendar: written.calendar.clone(),
    }
}
