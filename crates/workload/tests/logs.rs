//! Round trips of generated and real logs, line by line, and the effects of slices and shifted
//! submissions.

#[path = "logs/generated.rs"]
mod generated;

#[path = "logs/submissions.rs"]
mod submissions;

#[path = "logs/machines.rs"]
mod machines;

#[path = "logs/real.rs"]
mod real;

use miserly_workload::swf::{LogLine, Record, SwfWriter};
use miserly_workload::{Trace, TraceError};

/// An owned line of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedLine {
    Comment(String),
    Job(Box<Record>),
    Blank,
}

impl OwnedLine {
    fn from_line(line: &LogLine<'_>) -> OwnedLine {
        match line {
            LogLine::Comment(comment) => OwnedLine::Comment((*comment).to_owned()),
            LogLine::Job(record) => OwnedLine::Job(Box::new((*record).clone())),
            LogLine::Blank => OwnedLine::Blank,
        }
    }
}

/// Returns all lines of a log and its rewritten text.
fn read_and_write(trace: &Trace) -> Result<(Vec<OwnedLine>, Vec<u8>), TraceError> {
    let mut reader = trace.reader()?;
    let (mut lines, mut writer) = (Vec::new(), SwfWriter::new(Vec::new()));
    while let Some(line) = reader.next_line().map_err(|error| trace.read_error(error))? {
        writer.line(&line).expect("memory takes whatever is written");
        lines.push(OwnedLine::from_line(&line));
    }
    Ok((lines, writer.into_inner()))
}

/// Checks that a line and its rewritten form are equivalent.
#[track_caller]
fn assert_same(original: &str, again: &str) {
    if original.trim_start().starts_with(';') {
        assert_eq!(original.trim_end_matches('\r'), again);
    } else {
        assert!(original.split_whitespace().eq(again.split_whitespace()), "{original:?} became {again:?}");
    }
}

/// Checks a log's text against its rewritten form.
#[track_caller]
fn assert_round_trip(text: &str, trace: &Trace) {
    let (lines, again) = read_and_write(trace).expect("the log can be read");
    let again = String::from_utf8(again).expect("comments are made text");
    assert_eq!(text.lines().count(), lines.len());
    assert_eq!(text.lines().count(), again.lines().count());
    text.split_terminator('\n')
        .zip(again.split_terminator('\n'))
        .for_each(|(old, new)| assert_same(old, new));
    let (lines_again, _) =
        read_and_write(&Trace::memory("again", again.into())).expect("what was written can be read");
    assert_eq!(lines, lines_again);
}
