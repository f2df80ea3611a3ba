//! What the file says of pools, in the words of machine files, so that both mean the same and are refused alike.

use miserly_core::{Kind, Resources};
use miserly_pools::{Pools, PoolsFile, check};
use toml::{Spanned, Value};

use super::Machine;
use super::error::Problem;
use super::file::{File, PoolFile, QueueFile};

/// The pool and the queues' parts of it, in the order of the file: one part, if it names no queue.
pub(super) fn pools(file: &File, machine: &Machine) -> Result<Pools, Problem> {
    let pool = file.pool.as_ref().map_or_else(
        || Spanned::new(0..0, of_pool(&PoolFile::default(), machine)),
        |written| Spanned::new(written.span(), of_pool(written.get_ref(), machine)),
    );
    let queue = |queue: &Spanned<QueueFile>| Spanned::new(queue.span(), of_queue(queue.get_ref()));
    let written = PoolsFile {
        utc_offset: file.utc_offset.clone(),
        pool: Some(pool),
        queues: file.queues.iter().map(queue).collect(),
    };
    check(&written, &Resources::cpus(machine.count()).with(Kind::Memory, machine.memory))
}

/// The pool; what is not written is half of the machine.
fn of_pool(written: &PoolFile, machine: &Machine) -> miserly_pools::PoolFile {
    let cpus = || Spanned::new(0..0, i64::try_from(machine.count() / 2).unwrap_or(i64::MAX).max(1));
    // Memory of which nobody knows is not accounted.
    let half = || Value::String(format!("{}KiB", machine.memory / 2));
    let memory = || (machine.memory > 1).then(|| Spanned::new(0..0, half()));
    miserly_pools::PoolFile {
        cpus: written.cpus.clone().unwrap_or_else(cpus),
        memory: written.memory.clone().or_else(memory),
        calendar: written.calendar.clone(),
    }
}

fn of_queue(written: &QueueFile) -> miserly_pools::QueueFile {
    miserly_pools::QueueFile {
        name: written.name.clone(),
        cpus: written.cpus.clone(),
        memory: written.memory.clone(),
        calendar: written.calendar.clone(),
        policy: written.policy.clone(),
        users: written.users.clone(),
        groups: written.groups.clone(),
    }
}
