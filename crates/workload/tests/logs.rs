//! What is read and written again is the same, line by line: for logs made up, and for real ones; and what slices and
//! shifted submissions make of a log.

#[path = "logs/made_up.rs"]
mod made_up;

#[path = "logs/submissions.rs"]
mod submissions;

#[path = "logs/machines.rs"]
mod machines;

#[path = "logs/real.rs"]
mod real;

use miserly_workload::swf::{Line, Record, Writer};
use miserly_workload::{Trace, TraceError};

/// A line as the reader gave it, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Comment(String),
    Job(Box<Record>),
    Blank,
}

impl Kept {
    fn of(line: &Line<'_>) -> Kept {
        match line {
            Line::Comment(comment) => Kept::Comment((*comment).to_owned()),
            Line::Job(record) => Kept::Job(Box::new((*record).clone())),
            Line::Blank => Kept::Blank,
        }
    }
}

/// All lines of a log, and its text as it is written again.
fn read_and_write(trace: &Trace) -> Result<(Vec<Kept>, Vec<u8>), TraceError> {
    let mut reader = trace.reader()?;
    let (mut lines, mut writer) = (Vec::new(), Writer::new(Vec::new()));
    while let Some(line) = reader.next_line().map_err(|error| trace.read_error(error))? {
        writer.line(&line).expect("memory takes whatever is written");
        lines.push(Kept::of(&line));
    }
    Ok((lines, writer.into_inner()))
}

/// Checks that a line and the one written for it say the same.
#[track_caller]
fn assert_same(original: &str, again: &str) {
    if original.trim_start().starts_with(';') {
        assert_eq!(original.trim_end_matches('\r'), again);
    } else {
        assert!(original.split_whitespace().eq(again.split_whitespace()), "{original:?} became {again:?}");
    }
}

/// Checks a log's text against what is written for it.
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
