//! The names of a page, with their types and defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Lines below headings, both in alphabetical order.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    /// Adds a heading with its lines, which may be Markdown.
    pub(super) fn add(&mut self, heading: &str, lines: impl IntoIterator<Item = String>) {
        let of_heading = self.0.entry(heading.to_owned()).or_default();
        of_heading.extend(lines.into_iter().map(|line| plain(&line)));
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (heading, lines) in &self.0 {
            writeln!(f, "{heading}")?;
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}

/// Returns Markdown without links, code and line breaks.
fn plain(text: &str) -> String {
    let mut parts = text.split("](#");
    let mut result = parts.next().unwrap_or_default().replace("[`", "`");
    for part in parts {
        result += &part.split_once(')').map_or("", |(_, rest)| rest).replace("[`", "`");
    }
    result.replace("<br>", "; ").replace('`', "").trim_end().to_owned()
}

#[test]
fn names_have_no_markdown_and_an_order() {
    let mut names = Names::default();
    names.add("b", ["`z` 2".to_owned(), "a [`Job`](#job)<br>`b[]?`: [`X`](#x) or null".to_owned()]);
    names.add("a", []);
    assert_eq!(names.to_string(), "a\nb\n  a Job; b[]?: X or null\n  z 2\n");
}
