//! The page of the daemon's configuration, from the list of its fields.

use miserly_live::config::fields::{DefaultValue, Field, TABLES, Table};

use super::markdown::{code, table};
use super::names::Names;

pub(super) fn page() -> String {
    format!(
        "# The daemon's configuration, field by field\n\n\
         `miserly daemon --config FILE` reads a TOML file with these fields.\n\
         Every field but the name of a queue is optional.\n\
         [The daemon's configuration](../daemon-configuration.md) explains them with examples,\n\
         and [units.md](../units.md) defines times and amounts of memory.\n{}",
        TABLES.iter().map(section).collect::<String>()
    )
}

/// Returns each field with its type and its default.
pub(super) fn names() -> Names {
    let mut names = Names::default();
    for Table { name, title, fields } in &TABLES {
        let lines =
            fields.iter().map(row).map(|[field, takes, _, default]| format!("{field} {takes} = {default}"));
        names.add(if name.is_empty() { title } else { name }, lines);
    }
    names
}

fn section(of: &Table) -> String {
    let name = if of.name.is_empty() { String::new() } else { format!("`{}`: ", of.name) };
    let rows = of.fields.iter().map(row);
    format!("\n## {name}{}\n\n{}", of.title, table(["field", "value", "meaning", "default"], rows))
}

fn row(field: &Field) -> [String; 4] {
    let default = match field.default {
        DefaultValue::Is(value) => code(value),
        DefaultValue::Described(words) => words.to_owned(),
    };
    [code(field.name), field.takes.to_owned(), field.meaning.to_owned(), default]
}
