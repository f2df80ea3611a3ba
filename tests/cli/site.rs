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

/// Returns the files that a page lets the reader save: the name, and the block below it.
fn files(page: &str) -> Vec<(&str, &str)> {
    page.split("Save this as `")
        .skip(1)
        .filter_map(|part| {
            let (name, rest) = part.split_once('`')?;
            let (_, block) = rest.split_once("```")?;
            let (_, block) = block.split_once('\n')?;
            Some((name, block.split_once("```")?.0))
        })
        .collect()
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
    check_after("true", page);
}

/// Checks a page whose reader ran another command before.
#[track_caller]
fn check_after(before: &str, page: &str) {
    let path = of_project(page);
    let text = fs::read_to_string(&path).expect("a page");
    assert!(text.contains("```console\n$ miserly "), "{page} shows no command");
    let lab = folder();
    for (name, block) in files(&text) {
        lab.write(name, block);
    }
    printed(&lab, before);
    let renewed = renewed(&text, |command| printed(&lab, command));
    if std::env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") {
        fs::write(&path, renewed).expect("a page that can be written");
    } else {
        assert_eq!(
            text, renewed,
            "{page}: TRYCMD=overwrite cargo test --features full -p miserly --test cli site"
        );
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
fn guides_that_begin_with_last_months_log() {
    let before = "miserly workload convert slurm march.sacct.gz --procs 256 -o march.swf";
    for page in ["what-if", "slurm-conf", "thesis"] {
        check_after(before, &format!("docs/how-to/{page}.md"));
    }
}

#[test]
fn experiments() {
    check("docs/experiments.md");
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
fn reproduce_a_paper() {
    check("docs/how-to/reproduce-a-paper.md");
}

/// Returns a page of the project.
fn read(page: &str) -> String {
    fs::read_to_string(of_project(page)).expect("a page")
}

/// The runs need a real log. `.ci/reproduce` compares the report with a run.
#[test]
fn excerpts_of_a_report_are_lines_of_it() {
    let (page, report) =
        (read("docs/how-to/reproduce-a-paper.md"), read("docs/reproduction/zotkin-2000/report.md"));
    let excerpts: Vec<&str> =
        page.split("\n```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("text\n")).collect();
    assert_eq!(excerpts.len(), 2);
    for line in excerpts.iter().flat_map(|excerpt| excerpt.lines()) {
        assert!(report.lines().any(|of_report| of_report == line), "{line}");
    }
}

#[test]
fn the_claims_of_each_paper_are_those_of_its_report() {
    let page = read("docs/how-to/reproduce-a-paper.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once("/report.md) |"));
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let rows: Vec<(&str, Vec<u32>)> = rows
        .map(|(paper, row)| {
            (paper.split('`').next().expect("a name"), row.split('|').filter_map(number).collect())
        })
        .collect();
    assert_eq!(rows.len(), 4);
    for (paper, row) in rows {
        let report = read(&format!("docs/reproduction/{paper}/report.md"));
        let summary = report.lines().last().expect("a line");
        // The number before these words; none is 0.
        let before = |words: &str| {
            let (text, _) = summary.split_once(words)?;
            number(text.rsplit([' ', ';', ',']).next()?)
        };
        let [holds, fails, other, undecided, untestable] =
            [" of ", " do not hold", " of those", " are not decided", " cannot be tested"]
                .map(|words| before(words).unwrap_or(0));
        assert_eq!(row, [holds, fails, other, undecided, untestable], "{paper}");
    }
}

#[test]
fn trust() {
    check("docs/explanation/trust.md");
}

#[test]
fn files_are_the_blocks_below_their_names() {
    let page = "Save this as `a.toml`.\nText.\n\n```toml\nx = 1\n```\n\n```sh\nnot this\n```\n";
    assert_eq!(files(page), [("a.toml", "x = 1\n")]);
}

#[test]
fn old_output_is_replaced_in_console_blocks_only() {
    let page = "a\n```console\n$ one\nold\n\n$ two\n```\n```sh\n$ three\nkept\n```\n";
    let expect = "a\n```console\n$ one\nONE\n$ two\nTWO\n```\n```sh\n$ three\nkept\n```\n";
    assert_eq!(renewed(page, |command| command.to_uppercase() + "\n\n"), expect);
}
