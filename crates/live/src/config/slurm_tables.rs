//! The queues for partitions, accounts and qualities of service of Slurm.

use std::collections::BTreeMap;

use miserly_api::model::{SlurmTables, is_blank, is_invisible};
use toml::Spanned;

use super::error::{Problem, of_field};
use super::file::SlurmFile;
use super::queue::Queue;

/// Returns the tables, whose queues exist.
pub(super) fn checked(written: &SlurmFile, queues: &[Queue]) -> Result<SlurmTables, Problem> {
    let table = |field: &str, written: &BTreeMap<String, Spanned<String>>| {
        let pairs = written.iter().map(|(name, queue)| pair(field, name, queue, queues));
        pairs.collect::<Result<BTreeMap<_, _>, _>>()
    };
    if let Some((name, queue)) =
        written.partitions.iter().find(|(name, _)| queues.iter().any(|queue| queue.name == **name))
    {
        let problem = format!("{name} is the name of a queue; leave it out, or choose another name");
        return Err(of_field(queue, "slurm.partitions", &problem));
    }
    Ok(SlurmTables {
        partitions: table("slurm.partitions", &written.partitions)?,
        accounts: table("slurm.accounts", &written.accounts)?,
        qos: table("slurm.qos", &written.qos)?,
    })
}

fn pair(
    field: &str,
    name: &str,
    queue: &Spanned<String>,
    queues: &[Queue],
) -> Result<(String, String), Problem> {
    // Lists of Slurm have commas between names, and one name in a line.
    if is_blank(name) || name.contains([',', '|', ' ']) || name.contains(is_invisible) {
        return Err(of_field(queue, field, &format!("{name:?} is no name of Slurm")));
    }
    if !queues.iter().any(|own| own.name == *queue.get_ref()) {
        let names: Vec<&str> = queues.iter().map(|queue| &queue.name[..]).collect();
        let problem =
            format!("there is no queue {} for {name}; the queues are {}", queue.get_ref(), names.join(", "));
        return Err(of_field(queue, field, &problem));
    }
    Ok((name.to_owned(), queue.get_ref().clone()))
}
