//! What the help, the README and the pages of tests/cmd show is what the program prints.

use miserly_formula::presets::PRESETS;
use trycmd::TestCases;
use trycmd::schema::Bin;

use crate::support::{Lab, of_project};

fn cases(columns: &str) -> TestCases {
    let cases = TestCases::new();
    cases.register_bin("miserly", Bin::Path(env!("CARGO_BIN_EXE_miserly").into())).env("COLUMNS", columns);
    cases
}

#[test]
fn pages() {
    cases("100").case("tests/cmd/*.md");
}

/// Blocks marked `console` run; what needs a log that is not in the project is marked `console,ignore`.
#[test]
fn readme() {
    assert!(of_project("README.md").is_file(), "trycmd passes where a file is missing");
    // Building the program is not tried again.
    cases("80").register_bin("cargo", Bin::Ignore).register_bin("git", Bin::Ignore).case("README.md");
}

/// The manual's table of the orders of the literature has them all, with their formulas.
#[test]
fn orders_of_the_literature() {
    let manual = std::fs::read_to_string(of_project("docs/orders.md")).expect("a part of the manual");
    for preset in PRESETS {
        let row = format!("| `{}` | `{}` | {} |", preset.name, preset.formula, preset.first.as_str());
        assert!(manual.contains(&row), "{row}");
    }
}

#[test]
fn completions_for_every_shell() {
    let lab = Lab::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = lab.stdout(&format!("completions {shell}"));
        assert!(script.contains("simulate") && script.contains("procs-field"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let lab = Lab::new();
    let program = lab.stdout("man");
    assert!(program.contains(".TH") && program.contains("simulate"), "{program}");
    for command in
        ["simulate", "compare", "explain", "policies", "workload", "submit", "queue", "completions", "man"]
    {
        let page = lab.stdout(&format!("man {command}"));
        assert!(page.contains(&format!(".TH miserly-{command}")), "{page}");
    }
    assert!(lab.stdout("man workload generate").contains(".TH miserly-workload-generate"));
    assert!(lab.stdout("man simulate").contains("procs\\-field"));
}
