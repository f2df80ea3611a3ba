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
    let (own, usual, rows) = match entity.strip_suffix('s').unwrap_or(&entity) {
        "assoc" | "association" => ("", "cluster,account,user,partition,qos", of_accounts(&tables)),
        "account" => ("account", "account", of_accounts(&tables)),
        "user" => ("user", "user,account,admin", of_accounts(&tables)),
        "qo" => ("qos", "name", of_qos(&tables)),
        "cluster" => ("cluster", "cluster", vec![row("", "")]),
        _ => bail!("No valid entity in list command"),
    };
    let wanted = Wanted::new(rest, own)?;
    let rows: Vec<Row> = rows.into_iter().filter(|row| wanted.admits(row)).collect();
    let format = wanted.format.or(given.value("format")).unwrap_or(usual);
    print(&text(&rows, &columns(format)?, &given))?;
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

/// What a row has for a condition.
type Own = fn(&Row) -> &str;

/// The conditions: the name, the fewest letters of it, and what a row has for it.
const CONDITIONS: [(&str, usize, Own); 6] = [
    ("accounts", 2, |row| &row.account),
    ("acct", 4, |row| &row.account),
    ("clusters", 1, |_| CLUSTER),
    ("partitions", 3, |_| ""),
    ("qoslevel", 1, |row| &row.qos),
    ("users", 1, |row| &row.user),
];

/// The words that change nothing, and the fewest letters of each.
const WORDS: [(&str, usize); 10] = [
    ("where", 5),
    ("withassoc", 5),
    ("withclusters", 5),
    ("withcoordinators", 5),
    ("withdeleted", 5),
    ("withrawqoslevel", 5),
    ("withsubaccounts", 5),
    ("wolimits", 4),
    ("wopinfo", 4),
    ("woplimits", 4),
];

/// Returns whether a text is a name or its beginning, with at least so many letters.
fn begins(name: &str, least: usize, text: &str) -> bool {
    let head = name.get(..text.len()).filter(|_| text.len() >= least);
    head.is_some_and(|head| head.eq_ignore_ascii_case(text))
}

/// The words after the entity.
struct Wanted<'a> {
    format: Option<&'a str>,
    /// What a row has for each condition, and the names that the condition selects.
    conditions: Vec<(Own, &'a str)>,
}

impl<'a> Wanted<'a> {
    /// Parses `user=ann`, `account=a,b`, `format=account%20`, and names of the entity without a condition before them.
    ///
    /// # Errors
    /// A condition that is not known. Associations have no names.
    fn new(words: &'a [String], entity: &str) -> anyhow::Result<Wanted<'a>> {
        let condition = |name: &str| {
            let found = CONDITIONS.iter().find(|(full, least, _)| begins(full, *least, name));
            found.map(|(_, _, own)| *own)
        };
        let mut wanted = Wanted { format: None, conditions: vec![] };
        for word in words {
            let (name, names) = match word.split_once('=') {
                Some((name, format)) if begins("format", 1, name) => {
                    wanted.format = Some(format);
                    continue;
                }
                Some((name, names)) if begins("names", 1, name) => (entity, names),
                Some(pair) => pair,
                None if WORDS.iter().any(|(full, least)| begins(full, *least, word)) => continue,
                // The associations as a tree are the same ones.
                None if entity.is_empty() && begins("tree", 4, word) => continue,
                None => (entity, word.as_str()),
            };
            let own = condition(name).with_context(|| format!("Unknown condition: {word}"))?;
            wanted.conditions.push((own, names));
        }
        Ok(wanted)
    }

    /// Returns whether a row has a name of each condition. Slurm's names do not differ by the case of letters.
    fn admits(&self, row: &Row) -> bool {
        self.conditions.iter().all(|(own, names)| {
            let is_own = |name: &str| own(row).split(',').any(|own| own.eq_ignore_ascii_case(name.trim()));
            names.split(',').any(is_own)
        })
    }
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
        let row =
            Row { account: "physics".to_owned(), qos: "normal,long".to_owned(), user: "ann".to_owned() };
        // None is an error.
        let admits = |entity: &str, words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            Wanted::new(&words, entity).ok().map(|wanted| wanted.admits(&row))
        };
        for words in [
            "user=bob,ann",
            "acc=physics",
            "acct=Physics",
            "names=physics",
            "where name=physics",
            "physics",
            "withassoc physics",
            "WithDeleted withas withcoord wopi wopl wolimits",
            "qos=long cluster=miserly format=account",
        ] {
            assert_eq!(admits("account", words), Some(true), "{words}");
        }
        for words in [
            "user=bob",
            "account=art",
            "name=nosuch",
            "nosuch",
            "withassocs",
            "with",
            "user=ann account=art",
            "cluster=other",
            "partition=main",
        ] {
            assert_eq!(admits("account", words), Some(false), "{words}");
        }
        for words in ["nosuch=physics", "=physics", "a=physics", "organization=physics"] {
            assert_eq!(admits("account", words), None, "{words}");
        }
        assert_eq!(admits("user", "ann"), Some(true));
        assert_eq!(admits("user", "name=physics"), Some(false));
        assert_eq!(admits("qos", "name=normal"), Some(true));
        assert_eq!(admits("cluster", "name=other"), Some(false));
        assert_eq!((admits("", "physics"), admits("", "name=physics")), (None, None));
        assert_eq!(admits("", "tree user=ann"), Some(true));
        let words = ["form=account%20".to_owned()];
        assert_eq!(Wanted::new(&words, "account").unwrap().format, Some("account%20"));
        assert!(columns("acc%20,nosuch").is_err());
        assert_eq!(columns("acc%20").unwrap()[0].1, 20);
    }
}
