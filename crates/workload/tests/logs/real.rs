//! Tests on the logs in the folder `MISERLY_TRACES`, which are not part of the repository.
//!
//! Without the variable they report a skip, or fail under `MISERLY_REQUIRE_TRACES=1`.

use std::fs;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use miserly_test_support::Traces;
use miserly_workload::check::Anomaly;
use miserly_workload::describe::FEW_RUNS;
use miserly_workload::slice::{SliceError, SliceOptions, windows, write_window};
use miserly_workload::swf::Field;
use miserly_workload::{ProcsField, Trace, check, describe};

use super::assert_round_trip;

#[test]
fn round_trip() {
    let Some(traces) = Traces::find() else { return };
    for path in traces.all() {
        let mut bytes = Vec::new();
        let file = fs::File::open(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "gz") {
            MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        } else {
            { file }.read_to_end(&mut bytes).unwrap();
        }
        assert_round_trip(&String::from_utf8_lossy(&bytes), &Trace::open(&path).unwrap());
    }
}

/// Jobs, load in hundredths, and jobs past their estimate; each also counted by a line of awk.
#[test]
fn figures_of_the_logs() {
    let Some(traces) = Traces::find() else { return };
    let known = [
        ("KTH-SP2-1996-2", 28_489, 69, 475),
        ("CTC-SP2-1996-3.1-cln", 77_222, 84, 7_174),
        ("SDSC-SP2-1998-4.2-cln", 59_715, 83, 4_134),
        ("HPC2N-2002-2.2-cln", 202_871, 60, 14_817),
        ("NASA-iPSC-1993-3", 42_264, 47, 0),
        ("SDSC-Par-1996-3.1-cln", 32_135, 75, 0),
    ];
    for (path, &(name, jobs, load, ran_past)) in traces.existing(&known, |row| row.0) {
        let trace = Trace::open(&path).unwrap();
        let log = describe(&trace, None, ProcsField::Allocated).unwrap();
        assert_eq!((log.jobs, log.malformed), (jobs, 0), "{name}");
        assert_eq!(format!("{:.0}", log.load().unwrap() * 100.0), load.to_string(), "{name}");
        assert_eq!(log.estimates.ran_past.count, ran_past, "{name}");
        let report = check(&trace, None, ProcsField::Allocated).unwrap();
        let found = report.findings.get(&Anomaly::RanPastEstimate).map_or(0, |finding| finding.count);
        assert_eq!((report.read, found), (jobs, ran_past), "{name}");
    }
}

/// Runs of repetitions, the longest, and their order in hundredths; each also counted by a separate
/// script.
#[test]
fn repetitions_of_jobs() {
    let Some(traces) = Traces::find() else { return };
    let known = [
        ("NASA-iPSC-1993-3", true, 8_929, 3_473, 219),
        ("SDSC-Par-1996-3.1-cln", false, 12_008, 735, 218),
        ("KTH-SP2-1996-2", false, 9_345, 1_391, 212),
        ("CTC-SP2-1996-3.1-cln", true, 43_994, 502, 218),
        ("SDSC-SP2-1998-4.2-cln", true, 56_518, 63, 307),
        ("HPC2N-2002-2.2-cln", false, 22_530, 13_522, 185),
    ];
    for (path, &(name, by_executable, runs, longest, order)) in traces.existing(&known, |row| row.0) {
        let log = describe(&Trace::open(&path).unwrap(), None, ProcsField::Allocated).unwrap();
        let lengths = log.run_lengths;
        assert_eq!(lengths.by_executable, by_executable, "{name}");
        assert_eq!((lengths.all.count(), lengths.all.longest()), (runs, Some(longest)), "{name}");
        let found = format!("{:.0}", lengths.all.order(FEW_RUNS).unwrap() * 100.0);
        assert_eq!(found, order.to_string(), "{name}");
    }
}

/// Four weeks after four weeks, each log has the jobs of its window, and those in the system two seconds before it.
#[test]
fn windows_of_the_logs() {
    let Some(traces) = Traces::find() else { return };
    for path in traces.all() {
        let trace = Trace::open(&path).unwrap();
        let survey = trace.survey().unwrap();
        let options = SliceOptions {
            procs: survey.header.procs().unwrap(),
            procs_field: ProcsField::Allocated,
            length: 4 * 7 * 86_400,
            count: None,
            warmup: 0,
            cold: false,
            lenient: false,
        };
        let found = match windows(&trace, &survey, &options) {
            Ok(found) => found,
            // Generated logs have no recorded starts, or are short.
            Err(SliceError::NoStarts { .. } | SliceError::TooShort { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let mut reader = trace.reader().unwrap();
        let mut jobs = Vec::new();
        while let Some(job) = reader.next_job().unwrap() {
            jobs.push([Field::Submit, Field::Wait, Field::Runtime].map(|field| job.get(field)));
        }
        for window in &found {
            let begin = window.begin - 2;
            let inside = jobs.iter().filter(|job| (window.begin..window.end).contains(&job[0])).count();
            let known = jobs.iter().filter(|job| job.iter().all(|value| *value >= 0) && job[0] <= begin);
            let in_system = known.filter(|[submit, wait, runtime]| {
                // A job that waits at the begin may have no length.
                submit + wait > begin || submit + wait + runtime > begin
            });
            let mut text = Vec::new();
            let slice = write_window(&trace, &survey, &options, window, &mut text).unwrap();
            assert_eq!(inside as u64, window.jobs, "{}", trace.name());
            assert_eq!(slice.running + slice.waiting, in_system.count() as u64, "{}", trace.name());
            assert_eq!((slice.running, slice.waiting), (window.running, window.waiting));
            let part = Trace::memory("part", text);
            let measured = part.survey().unwrap();
            assert!(measured.in_order && measured.records == slice.jobs);
        }
    }
}
