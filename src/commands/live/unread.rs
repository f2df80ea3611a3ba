//! Options in a file that `submit` would not read: the file does not begin with `#!`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::bail;
use miserly_api::submit::{BYTE_ORDER_MARK, directive_line};

use crate::colour::message_head;

/// The most bytes of a file that are searched.
const LARGEST: u64 = 2 << 20;

/// Programs that run the script in their first argument.
const INTERPRETERS: [&str; 14] = [
    "sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "tcsh", "fish", "perl", "ruby", "Rscript", "julia",
    "tclsh",
];

/// Refuses a text file that has options and does not begin with `#!`. The job would run without them.
///
/// # Errors
/// The line of the first options, and what is before `#!`.
pub(super) fn refuse(input: impl Read, name: &str) -> anyhow::Result<()> {
    let Some((line, text)) = first_directive(input) else { return Ok(()) };
    let reason = match text.find("#!") {
        _ if text.starts_with(BYTE_ORDER_MARK) => {
            "it begins with a byte order mark; save it as UTF-8 without one"
        }
        Some(at) if text[..at].trim().is_empty() => "there are blank lines or spaces before #!; remove them",
        Some(_) => "it begins with other text; move the line with #! to the begin",
        None => "it begins with other text; write a first line such as #!/bin/sh",
    };
    bail!("{name}:{line}: these options would not be read. A script begins with #!: {reason}")
}

/// Refuses a program with options in it: they are read only of a script that is given by its path.
///
/// # Errors
/// The line of the first options.
pub(super) fn refuse_program(path: &Path) -> anyhow::Result<()> {
    let Some((line, _)) = File::open(path).ok().and_then(first_directive) else { return Ok(()) };
    let path = path.display();
    bail!(
        "{path}:{line}: these options would not be read, because the script was not given by its path; submit {path}"
    )
}

/// Warns of a script with options that is the argument of its interpreter, such as `bash job.sh`.
pub(super) fn warn_of_argument(command: &[OsString]) {
    let [program, arguments @ ..] = command else { return };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !INTERPRETERS.contains(&name) && !name.starts_with("python") {
        return;
    }
    let Some(script) = arguments.iter().find(|word| !word.as_encoded_bytes().starts_with(b"-")) else {
        return;
    };
    if let Some((line, _)) = File::open(script).ok().and_then(first_directive) {
        let script = Path::new(script).display();
        note!(
            "{} {script}:{line}: these options are not read, because {script} is an argument of {name}; write `miserly submit {script}`",
            message_head("warning")
        );
    }
}

/// Returns the line of the first directive of a text file, and its text. A binary file has none.
fn first_directive(input: impl Read) -> Option<(usize, String)> {
    let mut bytes = vec![];
    input.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let text = decoded(&bytes)?;
    Some((directive_line(&text)?, text))
}

/// Returns the text of a file in UTF-8, in UTF-16 with a mark, or in a character set with ASCII in it.
fn decoded(bytes: &[u8]) -> Option<String> {
    let units = |from: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes.chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => Some(String::from_utf16_lossy(&units(u16::from_le_bytes))),
        [0xfe, 0xff, ..] => Some(String::from_utf16_lossy(&units(u16::from_be_bytes))),
        _ if bytes.contains(&0) => None,
        _ => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(bytes: &[u8], says: &str) {
        let problem = refuse(bytes, "job.sh").unwrap_err().to_string();
        assert!(problem.contains(says), "{problem}");
    }

    #[test]
    fn a_text_with_options_is_refused_with_its_reason() {
        refused(
            b"\n#!/bin/sh\n#SBATCH -n 2\n",
            "job.sh:3: these options would not be read. A script begins with #!: there are blank",
        );
        refused(b" #!/bin/sh\n#MISERLY -t 5\n", "job.sh:2:");
        refused(b"\r\n#!/bin/sh\r\n#MISERLY -t 5\r\n", "job.sh:3:");
        refused(b"\xef\xbb\xbf#!/bin/sh\n#SBATCH -n 2\n", "byte order mark");
        refused(b"\xef\xbb\xbf#SBATCH -n 2\n", "job.sh:1:");
        refused(b"# a comment\n#!/bin/sh\n#SBATCH -n 2\n", "other text; move");
        refused(b"#SBATCH -n 2\necho \xe9\n", "write a first line");
        let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(bytes).collect()
        };
        let text = "\u{feff}#!/bin/sh\n#SBATCH -n 2\n";
        refused(&wide(text, u16::to_le_bytes), "byte order mark");
        refused(&wide(text, u16::to_be_bytes), "byte order mark");
    }

    #[test]
    fn programs_and_texts_without_options_are_not() {
        for bytes in [&b"\x7fELF\0\n#SBATCH -n 2\n"[..], b"\nprint()\n", b"", b"# SBATCH\n##SBATCH -n 2\n"] {
            assert!(refuse(bytes, "prog").is_ok(), "{bytes:?}");
        }
    }
}
