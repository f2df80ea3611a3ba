//! The tables of policies in the documents are those of the registry.

use std::path::Path;

use miserly_policies::{Needs, PolicyDescriptor, Registry};

/// Returns the names of a policy: its own, and its spellings.
fn names(policy: &PolicyDescriptor) -> String {
    let spellings = policy.spellings.iter().map(|spelling| spelling.name);
    let names = std::iter::once(policy.name).chain(spellings).map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns a table with a row for each different row of cells, and the policies of each.
fn table(heads: &[&str], cells: impl Fn(&Needs) -> Vec<String>) -> String {
    let mut rows: Vec<(Vec<String>, Vec<String>)> = vec![];
    for policy in Registry::built_in().policies() {
        let cells = cells(&policy.needs);
        match rows.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, policies)) => policies.push(names(policy)),
            None => rows.push((cells, vec![names(policy)])),
        }
    }
    let row = |(cells, policies): (Vec<String>, Vec<String>)| {
        format!("| {} | {} |\n", policies.join(", "), cells.join(" | "))
    };
    let rules = "---|".repeat(heads.len());
    format!("| {} |\n|{rules}\n{}", heads.join(" | "), rows.into_iter().map(row).collect::<String>())
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Checks that a document has this table.
#[track_caller]
fn check(document: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = std::fs::read_to_string(&path).expect("the document is there");
    assert!(text.contains(table), "{document} should have this table:\n\n{table}");
}

#[test]
fn machines_of_each_policy() {
    let cells = |needs: &Needs| {
        vec![needs.hosts().to_owned(), yes(needs.calendar), yes(needs.named_processors), yes(needs.refusals)]
    };
    let heads = ["policy", "runs on", "calendars", "names processors", "may refuse a job that fits"];
    check("docs/machines.md", &table(&heads, cells));
}

#[test]
fn policies_in_the_daemon() {
    let cells = |needs: &Needs| {
        let runs = needs.unmet_in_daemon().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"));
        let drives =
            needs.unmet_on_slurm().map_or_else(|| "yes".to_owned(), |need| format!("no: it needs {need}"));
        let facts = [needs.suspension, needs.time_slices, needs.named_processors, needs.begin_and_deadline];
        [runs, drives].into_iter().chain(facts.map(yes)).collect()
    };
    let heads = [
        "policy",
        "runs in the daemon",
        "drives Slurm",
        "suspends jobs",
        "slices time",
        "has processors of its own",
        "heeds `begin` and `deadline`",
    ];
    check("docs/daemon-configuration.md", &table(&heads, cells));
}
