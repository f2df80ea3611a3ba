//! The pages of the documentation site: their `console` blocks show what the program prints.
//!
//! `TRYCMD=overwrite` writes the present output into the pages.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{Lab, of_project};

/// A folder to run a page's commands in: new files stay there, and files of the project are found.
fn folder() -> Lab {
    let lab = Lab::new();
    for (from, to) in [("docs", "docs"), ("tests", "tests"), ("docs/how-to/march.sacct.gz", "march.sacct.gz")]
    {
        symlink(of_project(from), lab.path(to)).expect("a link");
    }
    lab
}

/// Returns what a command prints in a shell, with its errors.
fn printed(lab: &Lab, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_miserly")).parent().expect("a folder");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("exec 2>&1\n{command}")]).current_dir(lab.path(""));
    shell.env("PATH", path).env("COLUMNS", "80").env_remove("MISERLY_TRACES");
    String::from_utf8(shell.output().expect("a shell").stdout).expect("text")
}

/// Returns a page with the present output below each command of its `console` blocks.
fn renewed(page: &str, print: impl Fn(&str) -> String) -> String {
    let mut lines: Vec<String> = vec![];
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
            lines.push(line.to_owned());
        } else if !inside {
            lines.push(line.to_owned());
        } else if let Some(command) = line.strip_prefix("$ ") {
            lines.push(line.to_owned());
            lines.extend(print(command).trim_end().lines().map(|line| line.trim_end().to_owned()));
        }
    }
    lines.join("\n") + "\n"
}

#[track_caller]
fn check(page: &str) {
    let path = of_project(page);
    let text = fs::read_to_string(&path).expect("a page");
    assert!(text.contains("```console\n$ miserly "), "{page} shows no command");
    let lab = folder();
    let renewed = renewed(&text, |command| printed(&lab, command));
    if std::env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") {
        fs::write(&path, renewed).expect("a page that can be written");
    } else {
        assert_eq!(text, renewed, "{page}: TRYCMD=overwrite cargo test -p miserly --test cli site");
    }
}

#[test]
fn tutorial() {
    check("docs/tutorial/when-will-my-job-run.md");
}

#[test]
fn last_months_log() {
    check("docs/how-to/last-months-log.md");
}

#[test]
fn policies_compared() {
    check("docs/explanation/policies-compared.md");
}

#[test]
fn teach() {
    check("docs/teach.md");
}

#[test]
fn trust() {
    check("docs/explanation/trust.md");
}

#[test]
fn old_output_is_replaced_in_console_blocks_only() {
    let page = "a\n```console\n$ one\nold\n\n$ two\n```\n```sh\n$ three\nkept\n```\n";
    let expect = "a\n```console\n$ one\nONE\n$ two\nTWO\n```\n```sh\n$ three\nkept\n```\n";
    assert_eq!(renewed(page, |command| command.to_uppercase() + "\n\n"), expect);
}
