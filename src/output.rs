//! Standard output that may be a closed pipe, and output files that must not replace a log.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};

/// Prints a line to standard error, which may be closed.
macro_rules! note {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// Prints text.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).context("cannot write to standard output")
}

/// The width of tables that go to a file or a pipe.
const PIPE_WIDTH: usize = 80;

/// Returns the width of tables in characters: `COLUMNS`, else that of the terminal, else 80.
pub(crate) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
    columns.filter(|&columns| columns > 0).or_else(terminal).unwrap_or(PIPE_WIDTH)
}

/// Prints a JSON document and a line end.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&as_json(value)?)
}

/// Returns a JSON document and a line end.
pub(crate) fn as_json(value: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Returns the file of an option `-o FILE` whose default is standard output, or `None` for that, which is also `-`.
pub(crate) fn to_file(output: Option<&Path>) -> Option<&Path> {
    output.filter(|path| *path != Path::new("-"))
}

/// Checks that an output does not overwrite its input, which is data of the user.
pub(crate) fn refuse_the_input_itself(input: &Path, option: &str, output: &Path) -> anyhow::Result<()> {
    match (input.canonicalize(), output.canonicalize()) {
        (Ok(input), Ok(same)) if input == same => {
            bail!("{option} {}: this is the input log; choose another file", output.display())
        }
        _ => Ok(()),
    }
}

/// Returns whether the reader closed our output, which is not an error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<io::Error>().map(io::Error::kind);
    error.chain().any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}

/// Returns an instant in local time, ISO-like, to the second.
#[cfg(feature = "client")]
pub(crate) fn local(at: jiff::Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
