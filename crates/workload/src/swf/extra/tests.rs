use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::swf::{LineError, LogLine, ReadError, Reader, Record, SwfWriter};

const PLAIN: &str = "1 0 -1 30 2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

/// Returns the jobs of a log, and the log as it is written again.
fn read(log: &str) -> Result<(Vec<Record>, String), ReadError> {
    let (mut reader, mut writer, mut jobs) =
        (Reader::new(log.as_bytes()), SwfWriter::new(Vec::new()), Vec::new());
    while let Some(line) = reader.next_line()? {
        writer.line(&line).unwrap();
        if let LogLine::Job(job) = line {
            jobs.push(job.clone());
        }
    }
    assert_eq!(reader.deviations().extra_fields, 0);
    Ok((jobs, String::from_utf8(writer.into_inner()).unwrap()))
}

#[track_caller]
fn check(columns: &str, values: &str, expect: Result<&[(Extra, &str)], &str>) {
    let log = format!("; Extra: {columns}\n{PLAIN} {values}\n");
    let got = read(&log).map(|(jobs, _)| jobs[0].extras().clone());
    match (got, expect) {
        (Ok(got), Ok(expect)) => {
            let had = Extra::ALL.into_iter().filter_map(|extra| Some((extra, got.text(extra)?.into_owned())));
            let expect: Vec<_> = expect.iter().map(|(extra, text)| (*extra, (*text).to_owned())).collect();
            assert_eq!(had.collect::<Vec<_>>(), expect);
            assert_eq!(got.is_empty(), expect.is_empty());
        }
        (Err(got), Err(expect)) => assert_eq!(got.to_string(), format!("line 2: {expect}")),
        (got, expect) => panic!("{got:?} where {expect:?} was expected"),
    }
}

#[test]
fn values_of_columns() {
    use Extra::{Features, Gpus, JobMemory, Name, Nodes};
    check("nodes gpus", "007 1.50", Ok(&[(Nodes, "7"), (Gpus, "1.5")]));
    check("gpus", "12", Ok(&[(Gpus, "12")]));
    check("gpus nodes", "0.005", Ok(&[(Gpus, "0.005")]));
    check("colour name nodes", "%zz a%20b 3", Ok(&[(Nodes, "3"), (Name, "a b")]));
    check("name features", "%2D %c3%BC", Ok(&[(Name, "-"), (Features, "ü")]));
    check("job_memory name", "- -", Ok(&[]));
    check("job_memory", "999999999999999", Ok(&[(JobMemory, "999999999999999")]));
    let whole = "which is not a whole number of at most 15 digits";
    check("nodes", "1.5", Err(&format!("field 19 (nodes) is \"1.5\", {whole}")));
    let error = format!("field 20 (job_memory) is \"9999999999999999\", {whole}");
    check("nodes job_memory", "1 9999999999999999", Err(&error));
    for gpus in ["1.0001", "1.", ".5", "x", "-1", "9999999999999"] {
        let wanted = "which is not a number of at most 12 digits and three decimals";
        check("nodes gpus", &format!("- {gpus}"), Err(&format!("field 20 (gpus) is {gpus:?}, {wanted}")));
    }
    for name in ["100%", "%+1", "%ff"] {
        let wanted = "which is not a text in which % begins two hexadecimal digits of UTF-8";
        check("name", name, Err(&format!("field 19 (name) is {name:?}, {wanted}")));
    }
}

#[test]
fn further_fields_deviate_and_fields_18_are_checked() {
    let log = format!("; Extra: nodes\n{PLAIN} 4 5 6\n{PLAIN}\n{PLAIN}x 4\n");
    let mut reader = Reader::new(log.as_bytes());
    assert_eq!(reader.next_job().unwrap().unwrap().extras().number(Extra::Nodes), Some(4));
    assert!(reader.next_job().unwrap().unwrap().extras().is_empty());
    let found = reader.deviations();
    assert_eq!((found.extra_fields, found.most_fields), (1, 21));
    let error = reader.next_job().unwrap_err();
    assert!(
        matches!(error, ReadError::Malformed { line: 4, error: LineError::NotANumber { .. } }),
        "{error}"
    );
}

#[test]
fn a_plain_line_has_no_extras_in_a_pointer() {
    assert_eq!(size_of::<Extras>(), size_of::<usize>());
    let log = format!("; Extra: nodes\n{PLAIN} 4\n; Extra:\n{PLAIN}\n");
    let (jobs, again) = read(&log).unwrap();
    assert_eq!(again, log);
    assert!(!jobs[0].extras().is_empty() && jobs[1].extras().is_empty());
}

#[test]
fn values_that_are_set() {
    let mut extras = Extras::default();
    assert_eq!(extras.set(Extra::Gpus, "half"), Err(ExtraError { extra: Extra::Gpus, text: "half".into() }));
    assert!(extras.is_empty());
    extras.set_number(Extra::Gpus, 500);
    extras.set_number(Extra::Account, 17);
    extras.set_number(Extra::JobMemory, u64::MAX);
    assert_eq!(extras.text(Extra::Gpus).unwrap(), "0.5");
    assert_eq!((extras.text(Extra::Account).unwrap(), extras.number(Extra::Account)), ("17".into(), None));
    assert_eq!(extras.number(Extra::JobMemory), Some(NUMBER_MAX));
    for extra in [Extra::Gpus, Extra::Account, Extra::JobMemory] {
        extras.set(extra, "").unwrap();
    }
    assert_eq!(extras, Extras::default());
}

/// The values of one job, for all fields.
type Values = (Option<u32>, Option<u64>, Option<u64>, [Option<String>; 4]);

fn values() -> impl Strategy<Value = Values> {
    let text = || prop::option::of(prop_oneof!["-|%|[a-z ;%\t\n]{1,9}", "\\PC{1,60}", any::<String>()]);
    let texts = [text(), text(), text(), text()];
    (any::<Option<u32>>(), prop::option::of(0..10_000_000_u64), prop::option::of(0..NUMBER_MAX), texts)
}

/// Returns the values of a job as texts without encoding.
fn plain_texts((nodes, gpus, memory, texts): &Values) -> Vec<(Extra, String)> {
    let [gpu_type, name, account, features] = texts;
    // Parts of GPUs have three decimals here.
    let gpus = gpus.map(|milli| format!("{}.{:03}", milli / 1000, milli % 1000));
    let all = [
        (Extra::Nodes, nodes.map(|nodes| nodes.to_string())),
        (Extra::Gpus, gpus),
        (Extra::GpuType, gpu_type.clone()),
        (Extra::JobMemory, memory.map(|memory| memory.to_string())),
        (Extra::Name, name.clone()),
        (Extra::Account, account.clone()),
        (Extra::Features, features.clone()),
    ];
    all.into_iter().filter_map(|(extra, text)| Some((extra, text.filter(|text| !text.is_empty())?))).collect()
}

/// Encodes every byte that is not a letter or a digit.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02x}").unwrap();
        }
    }
    encoded
}

proptest! {
    #[test]
    fn jobs_come_back(
        jobs in prop::collection::vec(values(), 1..4),
        columns in prop::sample::subsequence(Extra::ALL.to_vec(), 0..=7).prop_shuffle(),
        unknown in 0..3_usize,
    ) {
        let mut log = format!("; Extra:{}\n", " other".repeat(unknown));
        for extra in &columns {
            log.insert_str(log.len() - 1, &format!(" {extra}"));
        }
        let mut expect = Vec::new();
        for job in &jobs {
            let mut texts = plain_texts(job);
            texts.retain(|(extra, _)| columns.contains(extra));
            log += PLAIN;
            log += &" x%y".repeat(unknown);
            for column in &columns {
                let text = texts.iter().find(|(extra, _)| extra == column);
                log += &text.map_or(" -".into(), |(extra, text)| match extra.kind() {
                    ExtraKind::Text => format!(" {}", encoded(text)),
                    _ => format!(" {text}"),
                });
            }
            log += "\n";
            expect.push(texts);
        }
        let (read_jobs, written) = read(&log).unwrap();
        let (again, twice) = read(&written).unwrap();
        prop_assert_eq!(&read_jobs, &again);
        prop_assert_eq!(&written, &twice);
        for (job, (record, texts)) in jobs.iter().zip(read_jobs.iter().zip(expect)) {
            let mut set = record.extras().clone();
            for (extra, text) in &texts {
                set.set(*extra, text).unwrap();
                if extra.kind() == ExtraKind::Text {
                    prop_assert_eq!(record.extras().text(*extra).unwrap(), &text[..]);
                }
            }
            prop_assert_eq!(&set, record.extras());
            let has = |extra: Extra| texts.iter().any(|(known, _)| *known == extra);
            prop_assert!(Extra::ALL.into_iter().all(|extra| has(extra) == record.extras().has(extra)));
            if has(Extra::Gpus) {
                prop_assert_eq!(record.extras().number(Extra::Gpus), job.1);
            }
        }
    }
}
