//! The queues for partitions, accounts and qualities of service, by the tables of the daemon's configuration.

use miserly_api::client::Client;
use miserly_api::model::SlurmTables;

use super::options::Given;
use super::refused;

/// The options that name a queue.
const NAMING: [&str; 5] = ["partition", "account", "accounts", "qos", "reservation"];

/// Returns the tables of the daemon.
///
/// # Errors
/// If the daemon does not answer.
pub(super) fn tables(client: &Client) -> anyhow::Result<SlurmTables> {
    Ok(client.status().map_err(|error| refused("slurm_load_partitions", error))?.slurm)
}

/// Returns the tables, if an option needs them.
///
/// # Errors
/// If the daemon does not answer.
fn needed(client: &Client, given: &Given) -> anyhow::Result<SlurmTables> {
    if NAMING.iter().any(|long| given.has(long)) { tables(client) } else { Ok(SlurmTables::default()) }
}

/// Returns the queue of a job: by its partition, else by its quality of service, else by its account.
///
/// # Errors
/// A name that is not in a table, in the words of Slurm after `context`. Without a table, accounts and qualities of service
/// select nothing.
pub(super) fn queue_of_job(client: &Client, given: &Given, context: &str) -> anyhow::Result<Option<String>> {
    let tables = needed(client, given)?;
    let of = |long: &str| given.value(long).filter(|value| !value.is_empty());
    for (long, table) in [("account", &tables.accounts), ("qos", &tables.qos)] {
        if let Some(name) = of(long).filter(|_| table.is_empty() && given.has("verbose")) {
            note!("--{long}={name} has no effect: the configuration of the daemon has no such table");
        }
    }
    let failed = |words: &str, names: String| anyhow::anyhow!("{context}: Invalid {words}: {names}");
    let by_account = in_table(&tables.accounts, of("account"));
    let by_account =
        by_account.map_err(|names| failed("account or account/partition combination specified", names))?;
    let by_qos = in_table(&tables.qos, of("qos"));
    let by_qos = by_qos.map_err(|names| failed("qos specification", names))?;
    let partition = of("partition").and_then(|list| list.split(',').next());
    Ok(partition.map(|name| queue(&tables, name)).or(by_qos).or(by_account))
}

type Table = std::collections::BTreeMap<String, String>;

/// Returns the queue of a name, if there is a table and a name.
///
/// # Errors
/// The names of the table, if it does not have this one.
fn in_table(table: &Table, name: Option<&str>) -> Result<Option<String>, String> {
    let Some(name) = name.filter(|_| !table.is_empty()) else { return Ok(None) };
    let names =
        || format!("{name}; the configuration has {}", table.keys().cloned().collect::<Vec<_>>().join(", "));
    table.get(name).cloned().map(Some).ok_or_else(names)
}

/// Returns the queue for the name of a partition.
pub(super) fn queue(tables: &SlurmTables, name: &str) -> String {
    tables.partitions.get(name).map_or(name, String::as_str).to_owned()
}

/// Returns the queues of a filter by partitions, reservations, accounts and qualities of service; no queue means all.
///
/// A name that a table does not have selects no job.
///
/// # Errors
/// If the daemon does not answer.
pub(super) fn queues_of_filter(client: &Client, given: &Given) -> anyhow::Result<Vec<String>> {
    Ok(queues_by(&needed(client, given)?, given))
}

/// As [`queues_of_filter`], for jobs that are ended or signalled: no option may select more than it says.
///
/// # Errors
/// If the daemon does not answer, and as [`check_ended`].
pub(super) fn queues_of_ended(client: &Client, given: &Given) -> anyhow::Result<Vec<String>> {
    let tables = needed(client, given)?;
    check_ended(&tables, given)?;
    Ok(queues_by(&tables, given))
}

/// Checks that the accounts and qualities of service select no jobs of others.
///
/// # Errors
/// A name without a table, or one whose queue has jobs of a name that is not given.
fn check_ended(tables: &SlurmTables, given: &Given) -> anyhow::Result<()> {
    for (long, table) in [("account", &tables.accounts), ("qos", &tables.qos)] {
        if given.has(long) && table.is_empty() {
            anyhow::bail!(
                "--{long}: the configuration of the daemon has no such table, so it selects no job"
            );
        }
        let names = given.list(long);
        let is_shared = |name: &&String| {
            let queue = table.get(name.as_str());
            table.iter().any(|(other, of)| !names.contains(other) && Some(of) == queue)
        };
        if let Some(name) = names.iter().find(is_shared) {
            anyhow::bail!(
                "--{long}={name}: its queue has jobs of others of this table, too; name the partition"
            );
        }
    }
    Ok(())
}

fn queues_by(tables: &SlurmTables, given: &Given) -> Vec<String> {
    let mut queues: Vec<String> = given
        .list("partition")
        .iter()
        .map(|name| queue(tables, name))
        .chain(given.list("reservation"))
        .collect();
    let named = |longs: &[&str]| longs.iter().flat_map(|long| given.list(long)).collect::<Vec<String>>();
    for (table, names) in
        [(&tables.accounts, named(&["account", "accounts"])), (&tables.qos, named(&["qos"]))]
    {
        if table.is_empty() || names.is_empty() {
            continue;
        }
        let selected: Vec<String> = names.iter().filter_map(|name| table.get(name).cloned()).collect();
        if queues.is_empty() {
            queues = selected;
        } else {
            queues.retain(|queue| selected.contains(queue));
        }
        if queues.is_empty() {
            // No queue has this name.
            return vec![String::new()];
        }
    }
    queues
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::slurm_names::options;

    fn sample() -> SlurmTables {
        let table = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, queue)| ((*name).to_owned(), (*queue).to_owned())).collect()
        };
        SlurmTables {
            partitions: table(&[("main", "batch")]),
            accounts: table(&[("physics", "batch"), ("art", "gpu")]),
            qos: table(&[("debug", "short")]),
        }
    }

    #[track_caller]
    fn check(words: &[&str], expect: &[&str]) {
        let given = options::parse("squeue", words.iter().map(OsString::from), false).unwrap();
        assert_eq!(queues_by(&sample(), &given), expect, "{words:?}");
    }

    #[test]
    fn filters_select_queues() {
        check(&[], &[]);
        check(&["-p", "main,long"], &["batch", "long"]);
        check(&["-A", "physics,art"], &["batch", "gpu"]);
        check(&["-A", "physics", "-p", "main,gpu"], &["batch"]);
        check(&["-A", "physics", "-q", "debug"], &[""]);
        check(&["-A", "unknown"], &[""]);
        let given = options::parse("squeue", ["-Aphysics".into()], false).unwrap();
        assert_eq!(queues_by(&SlurmTables::default(), &given), [""; 0]);
    }

    #[test]
    fn jobs_of_others_are_not_ended() {
        let mut tables = sample();
        tables.accounts.insert("chem".to_owned(), "batch".to_owned());
        let is_refused = |tables: &SlurmTables, word: &str| {
            let given = options::parse("scancel", [word.into()], false).unwrap();
            check_ended(tables, &given).is_err()
        };
        assert!(is_refused(&tables, "-Achem") && is_refused(&tables, "-Aart,physics"));
        assert!(is_refused(&SlurmTables::default(), "-Achem"));
        for word in ["-Aart", "-Achem,physics", "-Aunknown", "-qdebug", "-pbatch"] {
            assert!(!is_refused(&tables, word), "{word}");
        }
    }

    #[test]
    fn names_are_those_of_a_table_if_there_is_one() {
        let table = sample().accounts;
        assert_eq!(in_table(&table, Some("art")), Ok(Some("gpu".to_owned())));
        assert_eq!(in_table(&table, Some("bio")), Err("bio; the configuration has art, physics".to_owned()));
        assert_eq!(in_table(&Table::new(), Some("bio")), Ok(None));
        assert_eq!(in_table(&table, None), Ok(None));
    }
}
