//! The reference pages of the documentation site, generated from the program.
//!
//! `TRYCMD=overwrite` writes the present pages.

mod markdown;

mod commands;

mod configuration;

mod json;

mod policies;

use std::fs;
use std::path::Path;

/// Checks that a page of docs/reference is the generated one.
#[track_caller]
fn check(page: &str, text: &str) {
    let note = "<!-- Generated from the program. The tests of src/reference renew it. -->";
    let (title, content) = text.split_once('\n').expect("a title");
    let text = format!("{title}\n\n{note}\n{content}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(page);
    if std::env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") {
        fs::write(&path, text).expect("a page that can be written");
        return;
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    let lines = || present.lines().zip(text.lines()).enumerate();
    let stale = lines().find(|(_, (present, text))| present != text);
    let line = stale.map_or(present.lines().count().min(text.lines().count()), |(index, _)| index) + 1;
    assert!(
        present == text,
        "docs/reference/{page} is stale from line {line} on; renew it: \
         TRYCMD=overwrite cargo test --features full -p miserly --bin miserly reference"
    );
}

#[test]
fn commands() {
    check("commands.md", &commands::page());
}

#[test]
fn policies() {
    check("policies.md", &policies::page().expect("the parameters of each policy"));
}

#[test]
fn configuration() {
    check("configuration.md", &configuration::page());
}

#[test]
fn json() {
    check("json.md", &json::page());
}
