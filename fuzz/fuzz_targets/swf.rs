//! Any bytes as a log: nothing panics, nothing is lost in silence, and what is written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use miserly_core::Procs;
use miserly_workload::swf::{LogLine, ReadError, Record, SwfWriter};
use miserly_workload::{LineCounts, JobOptions, Jobs, Overrun, ProcsField, Survey, Trace, check, describe};

/// A line without its borrow.
#[derive(Debug, PartialEq)]
enum Kept {
    Comment(String),
    Job(Box<Record>),
    Blank,
}

/// Whether the log has a malformed line, and what is written of the others.
struct Written {
    lines: Vec<Kept>,
    text: Vec<u8>,
    malformed: bool,
}

/// Reads until the end, or an error that is final, and writes each line.
fn read_and_write(trace: &Trace) -> Written {
    let (mut lines, mut writer, mut malformed) = (vec![], SwfWriter::new(vec![]), false);
    let Ok(mut reader) = trace.reader() else { return Written { lines, text: vec![], malformed } };
    loop {
        match reader.next_line() {
            Ok(None) => break,
            Ok(Some(line)) => {
                writer.line(&line).unwrap();
                lines.push(match line {
                    LogLine::Comment(comment) => Kept::Comment(comment.to_owned()),
                    LogLine::Job(record) => Kept::Job(Box::new(record.clone())),
                    LogLine::Blank => Kept::Blank,
                });
            }
            Err(ReadError::Malformed { .. }) => malformed = true,
            Err(ReadError::TooLong { .. } | ReadError::Io { .. }) => break,
        }
    }
    Written { lines, text: writer.into_inner(), malformed }
}

fn round_trip(trace: &Trace) -> bool {
    let first = read_and_write(trace);
    let again = read_and_write(&Trace::memory("again", first.text.clone()));
    assert!(!again.malformed, "what was written cannot be read");
    assert_eq!(first.lines, again.lines);
    assert_eq!(first.text, again.text);
    first.malformed
}

/// Reads the jobs to the end or the first error, and returns the counts if it was the end.
fn jobs(trace: &Trace, survey: &Survey, options: JobOptions) -> Option<LineCounts> {
    let (procs, overrun) = (options.procs, options.overrun);
    let mut jobs = Jobs::new(trace, survey.in_order, options).ok()?;
    let mut latest = None;
    let mut handed_out = 0;
    while let Some(job) = jobs.next() {
        let job = job.ok()?;
        handed_out += 1;
        assert!(latest <= Some(job.request.submit), "jobs come in the order of their submission");
        latest = Some(job.request.submit);
        assert!((Procs::ONE..=procs).contains(&job.request.procs()));
        assert!(job.request.estimate.ticks() >= 0 && job.runtime.0.ticks() >= 0);
        assert!(overrun == Overrun::Kill || !job.killed);
    }
    let counts = jobs.counts().clone();
    assert_eq!(counts.used, handed_out);
    assert_eq!(counts.read, counts.used + counts.skipped.values().sum::<u64>());
    Some(counts)
}

fn options(procs: Procs) -> [JobOptions; 4] {
    let plain = JobOptions { procs, ..JobOptions::default() };
    let lenient = JobOptions { lenient: true, keep_records: true, ..plain.clone() };
    let narrowed = JobOptions {
        procs: Procs::new(8),
        procs_field: ProcsField::Requested,
        drop: vec!["runtime<=0".parse().unwrap(), "user=3".parse().unwrap()],
        overrun: Overrun::Extend,
        estimates: "uniform:5".parse().unwrap(),
        seed: 7,
        from: Some(10),
        to: Some(10_000),
        ..lenient.clone()
    };
    let stretched = JobOptions {
        overrun: Overrun::Run,
        estimates: "trace*999999.999999".parse().unwrap(),
        ..lenient.clone()
    };
    [plain, lenient, narrowed, stretched]
}

fuzz_target!(|data: &[u8]| {
    let trace = Trace::memory("fuzz.swf", data.to_vec());
    let malformed = round_trip(&trace);
    round_trip(&Trace::memory("fuzz.swf", data.to_vec()).filling_missing_fields(true));
    let Ok(survey) = trace.survey() else { return };
    let procs = survey.header.procs().unwrap_or(Procs::MAX);
    let [plain, others @ ..] = options(procs);
    assert!(!malformed || jobs(&trace, &survey, plain).is_none(), "a malformed line went unnoticed");
    for options in others {
        let counts = jobs(&trace, &survey, options).expect("nothing stops a lenient reader");
        assert_eq!(counts.read, survey.records);
    }
    let _ = check(&trace, None, ProcsField::Allocated);
    let _ = describe(&trace, None, ProcsField::Requested);
});
