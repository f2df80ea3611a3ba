//! The detail of a job, with the end of its output.

use std::io;
use std::path::Path;

use miserly_api::model::JobView;
use miserly_follow::Tail;
use miserly_units::{duration, memory, span_of_seconds};
use miserly_view::{counted, details, plain};

/// The detail of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The number of the job.
    pub number: i64,
    /// The facts about it.
    pub head: Vec<String>,
    /// The last lines of its output, or the reason why there are none.
    pub log: Vec<String>,
}

impl Detail {
    /// Returns the detail of a job, and reads its output.
    pub(crate) fn new(job: &JobView) -> Detail {
        Detail { number: job.number, head: head(job), log: log(job) }
    }
}

fn head(job: &JobView) -> Vec<String> {
    let mut lines = vec![format!(
        "queue {}, {}, {} of memory, limit {}, runs {}",
        plain(&job.queue),
        counted(job.cpus, "cpu"),
        memory(job.memory),
        duration(span_of_seconds(job.time)),
        job.runs
    )];
    lines.extend(details(job).into_iter().map(|(key, value)| format!("{key}: {value}")));
    let parts = [
        ("capacity lost", &job.capacity_lost),
        ("set aside", &job.set_aside),
        ("epilog failed", &job.epilog_failed),
        ("not written out, began anew", &job.write_out_failed),
    ];
    for (name, value) in parts {
        lines.extend(value.iter().map(|value| format!("{name}: {}", plain(value))));
    }
    lines
}

fn log(job: &JobView) -> Vec<String> {
    match &job.output {
        None => vec!["(the output of another user's job is not shown)".to_owned()],
        Some(path) => tail(path).unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => vec!["(no output yet, or its file is gone)".to_owned()],
            _ => vec![format!("(the output cannot be read: {error})")],
        }),
    }
}

/// Returns the last lines of a file, without control characters.
fn tail(path: &Path) -> io::Result<Vec<String>> {
    let Some(Tail { text, cut, .. }) = miserly_follow::tail(path)? else {
        return Ok(vec!["(the output is no regular file)".to_owned()]);
    };
    // The first line is a part of one.
    Ok(text.lines().skip(usize::from(cut)).map(shown).collect())
}

/// Returns a line as a terminal would leave it: after the last return to its begin.
fn shown(line: &str) -> String {
    let last = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    plain(&last.replace('\t', "    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, text).unwrap();
        tail(&path).unwrap()
    }

    #[test]
    fn an_output_moves_no_cursor() {
        assert_eq!(lines(b"a\tb\r\n10 %\r20 %\n\x1b[2Jx\xff"), ["a    b", "20 %", "\u{fffd}[2Jx\u{fffd}"]);
        assert_eq!(lines(b""), [""; 0]);
    }

    #[test]
    fn a_long_output_is_read_from_its_end() {
        let text: String = (0..20_000).fold(String::new(), |text, line| text + &format!("line {line}\n"));
        let read = lines(text.as_bytes());
        assert!((5_000..8_000).contains(&read.len()), "{}", read.len());
        assert_eq!(read.last().unwrap(), "line 19999");
        assert!(read[0].starts_with("line "));
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        assert_eq!(tail(Path::new("/dev/null")).unwrap(), ["(the output is no regular file)"]);
        assert!(tail(Path::new("/nowhere")).is_err());
    }
}
