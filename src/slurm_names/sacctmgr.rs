//! `sacctmgr list` and `sshare`: the accounts of the daemon's configuration, which each user has.
//!
//! Programs ask with these commands whether an account exists.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, bail};
use miserly_api::model::SlurmTables;

use super::columns::cell;
use super::options::Given;
use super::submission::user;
use super::tables::tables;
use super::{CLUSTER, client, given};
use crate::output::print;

/// A column: its name, its width, and its value in a row.
type Column = (&'static str, isize, fn(&Row) -> String);

/// A row: an account or a quality of service with the user of this process.
struct Row {
    account: String,
    qos: String,
    user: String,
}

const COLUMNS: [Column; 9] = [
    ("Cluster", 10, |_| CLUSTER.to_owned()),
    ("Account", 10, |row| row.account.clone()),
    ("User", 10, |row| row.user.clone()),
    ("Partition", 10, |_| String::new()),
    ("Name", 10, |row| row.qos.clone()),
    ("QOS", 20, |row| row.qos.clone()),
    ("DefaultAccount", 10, |_| String::new()),
    ("Def Acct", 10, |_| String::new()),
    ("Admin", 9, |_| "None".to_owned()),
];

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("sacctmgr", words, false)? else { return Ok(ExitCode::SUCCESS) };
    let words: Vec<String> = given.words.iter().map(|word| word.display().to_string()).collect();
    let [command, entity, rest @ ..] = &words[..] else {
        bail!("too few arguments: write sacctmgr list account, association, qos or user");
    };
    if !["list", "show"].contains(&&command.to_ascii_lowercase()[..]) {
        bail!("{command}: accounts are in the configuration of the daemon, in the table [slurm]");
    }
    let tables = tables(&client()?)?;
    let entity = entity.to_ascii_lowercase();
    let (usual, rows) = match entity.strip_suffix('s').unwrap_or(&entity) {
        "assoc" | "association" => ("cluster,account,user,partition,qos", of_accounts(&tables)),
        "account" => ("account", of_accounts(&tables)),
        "user" => ("user,account,admin", of_accounts(&tables)),
        "qo" => ("name", of_qos(&tables)),
        "cluster" => ("cluster", vec![row("", "")]),
        _ => bail!("No valid entity in list command"),
    };
    let mut format = given.value("format").unwrap_or(usual).to_owned();
    let mut wanted = vec![];
    for word in rest {
        match word.split_once('=') {
            Some((name, value)) if "format".starts_with(&name.to_ascii_lowercase()) => {
                value.clone_into(&mut format);
            }
            Some((name, value)) => wanted.push((name.to_ascii_lowercase(), value.to_owned())),
            // A name after the entity, or a word such as `withassoc`.
            None if word.to_ascii_lowercase().starts_with("where") || word.starts_with("with") => {}
            None => wanted.push((entity.clone(), word.clone())),
        }
    }
    let rows: Vec<Row> = rows.into_iter().filter(|row| wanted.iter().all(|one| admits(row, one))).collect();
    print(&text(&rows, &columns(&format)?, &given))?;
    Ok(ExitCode::SUCCESS)
}

/// `sshare`: the accounts. Shares are those of the policies of queues.
pub(super) fn shares(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("sshare", words, false)? else { return Ok(ExitCode::SUCCESS) };
    let rows = of_accounts(&tables(&client()?)?);
    let columns = columns(given.value("format").unwrap_or("account%20,user"))?;
    print(&text(&rows, &columns, &given))?;
    Ok(ExitCode::SUCCESS)
}

fn row(account: &str, qos: &str) -> Row {
    Row { account: account.to_owned(), qos: qos.to_owned(), user: user() }
}

fn of_accounts(tables: &SlurmTables) -> Vec<Row> {
    let qos = tables.qos.keys().cloned().collect::<Vec<_>>().join(",");
    let qos = if qos.is_empty() { "normal".to_owned() } else { qos };
    tables.accounts.keys().map(|account| row(account, &qos)).collect()
}

fn of_qos(tables: &SlurmTables) -> Vec<Row> {
    if tables.qos.is_empty() {
        return vec![row("", "normal")];
    }
    tables.qos.keys().map(|qos| row("", qos)).collect()
}

/// Returns whether a row has a name: `user=ann`, `account=a,b`. Other conditions select all.
fn admits(row: &Row, (what, names): &(String, String)) -> bool {
    let own = match what.trim_end_matches('s') {
        "user" => &row.user,
        "account" => &row.account,
        "qo" | "name" if row.account.is_empty() => &row.qos,
        _ => return true,
    };
    names.split(',').any(|name| name == own)
}

/// Returns the columns of `account%20,user`, with their widths.
fn columns(format: &str) -> anyhow::Result<Vec<(&'static Column, isize)>> {
    let parts = format.split(',').map(str::trim).filter(|part| !part.is_empty());
    let column = |part: &str| {
        let (name, width) = part.split_once('%').map_or((part, None), |(name, width)| (name, Some(width)));
        let begins =
            |of: &&Column| of.0.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        let column = COLUMNS.iter().find(begins).with_context(|| format!("Unknown field '{name}'"))?;
        let width = width.and_then(|width| width.parse::<isize>().ok());
        Ok((column, width.map_or(column.1, |width| width.clamp(-4096, 4096))))
    };
    parts.map(column).collect()
}

fn text(rows: &[Row], columns: &[(&Column, isize)], given: &Given) -> String {
    let line = |value: &dyn Fn(&Column) -> String| {
        if given.has("parsable") || given.has("parsable2") {
            let cells: Vec<String> = columns.iter().map(|(column, _)| value(column)).collect();
            return cells.join("|") + if given.has("parsable") { "|\n" } else { "\n" };
        }
        columns.iter().map(|(column, width)| cell(&value(column), *width) + " ").collect::<String>() + "\n"
    };
    let mut text = String::new();
    if !given.has("noheader") {
        text += &line(&|column| column.0.to_owned());
        if !given.has("parsable") && !given.has("parsable2") {
            let dashes: String =
                columns.iter().map(|(_, width)| "-".repeat(width.unsigned_abs()) + " ").collect();
            text += &format!("{dashes}\n");
        }
    }
    for row in rows {
        text += &line(&|column| (column.2)(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_selects_rows() {
        let row = Row { account: "physics".to_owned(), qos: "normal".to_owned(), user: "ann".to_owned() };
        let admits = |what: &str, name: &str| admits(&row, &(what.to_owned(), name.to_owned()));
        assert!(admits("user", "bob,ann") && admits("accounts", "physics") && admits("cluster", "x"));
        assert!(!admits("user", "bob") && !admits("account", "art"));
        assert!(columns("acc%20,nosuch").is_err());
        assert_eq!(columns("acc%20").unwrap()[0].1, 20);
    }
}
