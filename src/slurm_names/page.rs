//! The tables of docs/how-to/slurm-names.md, which are those of the parser.

use std::path::Path;

use super::options::{Class, OptionRow, Value, rows};

/// The page.
const PAGE: &str = "docs/how-to/slurm-names.md";

/// The line before the tables, and the one after them.
const MARKS: [&str; 2] = ["<!-- The tables of options: begin -->\n", "<!-- The tables of options: end -->\n"];

/// The commands, in the order of the page.
const PARTS: [&str; 11] = [
    "sbatch", "srun", "salloc", "squeue", "scancel", "sacct", "sinfo", "scontrol", "sstat", "sacctmgr",
    "sshare",
];

fn tables() -> String {
    let shared = |row: &OptionRow| ["srun", "salloc"].iter().all(|other| rows(other).any(|one| one == *row));
    let mut text = table("All of sbatch, srun and salloc", rows("sbatch").filter(shared));
    for command in PARTS {
        let is_job = ["sbatch", "srun", "salloc"].contains(&command);
        let own =
            rows(command).filter(|row| !is_job || !rows("sbatch").filter(shared).any(|one| one == *row));
        text += &table(&format!("`{command}`"), own);
    }
    text
}

fn table(title: &str, rows: impl Iterator<Item = OptionRow>) -> String {
    let rows: Vec<OptionRow> = rows.collect();
    let mut text = format!("### {title}\n\n");
    for (class, head) in [
        (Class::Works, "| works | |\n|---|---|\n"),
        (Class::NoEffect, "| accepted without effect | because |\n|---|---|\n"),
        (Class::Refused, "| refused | because |\n|---|---|\n"),
    ] {
        let of_class: Vec<&OptionRow> = rows.iter().filter(|row| row.class == class).collect();
        if of_class.is_empty() {
            continue;
        }
        text += head;
        for row in of_class {
            let letter = row.letter.map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
            let value = match row.value {
                Value::None => "",
                Value::Required => "=",
                Value::Optional => "[=]",
            };
            text += &format!("| {letter}`--{}{value}` | {} |\n", row.long, row.note.replace('|', "\\|"));
        }
        text.push('\n');
    }
    text
}

/// With `TRYCMD=overwrite`, writes the tables into the page.
#[test]
fn the_page_has_the_options_of_the_parser() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let expect = format!("{before}{}\n{}{}{after}", MARKS[0], tables(), MARKS[1]);
    if std::env::var_os("TRYCMD").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &expect).unwrap();
    }
    assert!(page == expect, "{PAGE} has other options than the parser; TRYCMD=overwrite writes them");
}

/// No command has two options of one name or letter, and each has a note.
#[test]
fn each_option_is_one() {
    for command in PARTS {
        let all: Vec<OptionRow> = rows(command).collect();
        assert!(all.len() > 7, "{command}");
        for (at, row) in all.iter().enumerate() {
            let same = |other: &OptionRow| {
                other.long == row.long || (other.letter.is_some() && other.letter == row.letter)
            };
            assert!(!all[at + 1..].iter().any(same), "{command}: {row:?}");
            assert!(!row.note.is_empty(), "{command}: {row:?}");
        }
    }
}
