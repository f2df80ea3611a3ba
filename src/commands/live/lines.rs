//! `miserly submit --lines`: a file of command lines as an array of jobs.

use std::path::Path;

use anyhow::{Context, bail};
use miserly_api::model::{Array, IndexRange, number_ranges};
use miserly_api::submit::directive_line;

/// The largest file, in bytes.
const LARGEST: u64 = 64 << 20;

/// Returns the array of a file: the numbers of its lines, from 1, without blank lines and comments.
pub(super) fn array(file: &Path, limit: Option<u32>) -> anyhow::Result<Array> {
    let shown = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("--lines {shown}: cannot read it"))?.len();
    if size > LARGEST {
        bail!("--lines {shown}: it is larger than {LARGEST} bytes");
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("--lines {shown}: cannot read it"))?;
    if let Some(line) = directive_line(&text) {
        bail!(
            "--lines {shown}: line {line} has options, which are not read of such a file; give them to submit"
        );
    }
    let commands = (1..).zip(text.lines()).filter(|(_, line)| is_command(line));
    let numbers: Vec<u32> = commands.map(|(number, _)| number).collect();
    let range = |&(first, last): &(u32, u32)| IndexRange { first, last, step: 1 };
    let ranges: Vec<IndexRange> = number_ranges(&numbers).iter().map(range).collect();
    let Some((first, more)) = ranges.split_first() else { bail!("--lines {shown}: it has no command line") };
    let array = Array::range(first.first, first.last, 1);
    Ok(Array { more: more.to_vec(), limit, ..array })
}

fn is_command(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Returns the script that runs the line of its own index with a shell.
pub(super) fn script(file: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(file).with_context(|| format!("--lines {}", file.display()))?;
    let Some(path) = path.to_str() else { bail!("--lines {}: its path is not UTF-8 text", path.display()) };
    let path = format!("'{}'", path.replace('\'', r"'\''"));
    Ok(format!(
        "#!/bin/sh\n\
         # Runs the line of a file whose number is the index of the job.\n\
         line=$(sed -n \"${{MISERLY_ARRAY_INDEX}}p\" < {path}) || exit 127\n\
         [ -n \"$line\" ] || {{ echo \"line $MISERLY_ARRAY_INDEX of\" {path} \"is empty now\" >&2; exit 127; }}\n\
         exec /bin/sh -c \"$line\"\n"
    ))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().prefix("it's $HOME ").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn lines_are_indexes() {
        let file = file("a\nb\n\n  # no\nc\n");
        let array = array(file.path(), Some(2)).unwrap();
        assert_eq!(array.indexes().into_iter().collect::<Vec<_>>(), [1, 2, 5]);
        assert_eq!(array.limit, Some(2));
        for text in ["", "\n \n", "# a\n", "#SBATCH -n 2\na\n"] {
            assert!(super::array(self::file(text).path(), None).is_err(), "{text:?}");
        }
    }

    #[test]
    fn each_job_runs_its_line() {
        let file = file("echo 'one  two' | tr o 0; exit 3\n\nexit 4\n");
        let script = script(file.path()).unwrap();
        let run = |index: &str| {
            let output =
                Command::new("/bin/sh").args(["-c", &script]).env("MISERLY_ARRAY_INDEX", index).output();
            let output = output.unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        };
        assert_eq!(run("1"), (Some(3), "0ne  tw0\n".to_owned()));
        assert_eq!(run("3"), (Some(4), String::new()));
        assert_eq!(run("2").0, Some(127));
    }
}
