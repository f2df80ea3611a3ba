//! The reference pages of the documentation site, generated from the program, and the links of all documents.
//!
//! The pages are not in the repository: `write_pages` writes them for the site. Under test are the names, types and
//! defaults in them: `TRYCMD=overwrite` writes the present ones into `names/`.

mod names;

mod markdown;

mod commands;

mod json;

mod policies;

mod links;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use self::names::Names;

fn of_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the generated pages, by their paths in the project.
fn generated() -> BTreeMap<String, String> {
    let pages = [
        ("commands", commands::page()),
        ("json", json::page()),
        ("policies", policies::page().expect("the parameters of each policy")),
    ];
    pages.into_iter().map(|(page, text)| (format!("docs/reference/{page}.md"), text)).collect()
}

#[test]
#[ignore = "writes the pages of docs/reference, for the site"]
fn write_pages() {
    for (path, text) in generated() {
        fs::write(of_project(&path), text).expect("a page that can be written");
    }
}

/// Checks that a file of `names/` has these names.
#[track_caller]
fn check(page: &str, names: &Names) {
    let path = format!("src/reference/names/{page}.txt");
    let text = names.to_string();
    if std::env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") {
        fs::write(of_project(&path), text).expect("a file that can be written");
        return;
    }
    let present = fs::read_to_string(of_project(&path)).unwrap_or_default();
    let lines = || present.lines().zip(text.lines()).enumerate();
    let stale = lines().find(|(_, (present, text))| present != text);
    let line = stale.map_or(present.lines().count().min(text.lines().count()), |(index, _)| index) + 1;
    assert!(
        present == text,
        "{path} is stale from line {line} on; renew it: \
         TRYCMD=overwrite cargo test --features full -p miserly --bin miserly reference"
    );
}

#[test]
fn commands() {
    check("commands", &commands::names());
}

#[test]
fn policies() {
    check("policies", &policies::names().expect("the parameters of each policy"));
}

#[test]
fn json() {
    check("json", &json::names());
}
