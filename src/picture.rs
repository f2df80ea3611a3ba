//! Pictures as PNG, by a program that the machine has. A renderer of text in this program would bring some fifty crates and need fonts.

use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};

/// The programs, in the order in which they are tried, with the arguments that turn `picture.svg` into `picture.png` of twice its size.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("rsvg-convert", &["--zoom=2", "--output=picture.png", "picture.svg"]),
    ("inkscape", &["--export-dpi=192", "--export-filename=picture.png", "picture.svg"]),
    (
        "chromium",
        &[
            "--headless",
            "--window-size=1280,720",
            "--force-device-scale-factor=2",
            "--screenshot=picture.png",
            "picture.svg",
        ],
    ),
];

/// The error where none of the programs is in `PATH`.
pub(crate) const NO_PROGRAM: &str = "a .png needs one of these programs, and none is in PATH: rsvg-convert (of Debian's \
    package librsvg2-bin), inkscape, chromium; or write a .svg";

/// Returns whether one of the programs is in `PATH`.
pub(crate) fn has_program() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .any(|folder| PROGRAMS.iter().any(|(program, _)| folder.join(program).is_file()))
}

/// Returns an SVG picture as PNG, by the first program that succeeds.
///
/// # Errors
/// If no program succeeds, with the last line of each one's errors.
pub(crate) fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    fs::write(folder.path().join("picture.svg"), svg)?;
    let mut failures = Vec::new();
    for (program, args) in PROGRAMS {
        let run = Command::new(program).args(args).current_dir(folder.path()).stdin(Stdio::null()).output();
        match run {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => failures.push(format!("{program}: {error}")),
            Ok(output) => match fs::read(folder.path().join("picture.png")) {
                Ok(picture) if output.status.success() => return Ok(picture),
                _ => failures.push(format!("{program}: {}{}", output.status, last_line(&output))),
            },
        }
    }
    if failures.is_empty() {
        bail!(NO_PROGRAM)
    }
    bail!("{}", failures.join("; "))
}

/// Returns the last line of a program's errors, behind a comma.
fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().rfind(|line| !line.trim().is_empty()).map_or_else(String::new, |line| format!(", {line}"))
}
