use super::*;

/// Compares the findings of a log on four processors, as `name: lines`.
#[track_caller]
fn expect(log: &str, expected: &[(Anomaly, &[u64])]) {
    let trace = Trace::memory("toy", format!("; MaxProcs: 4\n{log}").into());
    let report = check(&trace, None, ProcsField::Allocated).unwrap();
    let found: Vec<_> =
        report.findings.iter().map(|(&anomaly, finding)| (anomaly, &finding.lines[..])).collect();
    assert_eq!(found, expected);
    for finding in report.findings.values() {
        assert!(finding.count >= finding.lines.len() as u64);
    }
}

/// Compares the findings of a job on line 2 with a single anomaly.
#[track_caller]
fn expect_one(job: &str, anomaly: Anomaly) {
    expect(job, &[(anomaly, &[2])]);
}

#[test]
fn a_clean_log() {
    expect("1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n2 9 1 10 4 11.00 -1 -1 10 -1 0 1 1 1 1 1 1 5", &[]);
}

#[test]
fn one_line_by_itself() {
    expect_one("1 -1 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::NoSubmitTime);
    expect_one("1 0 0 10 0 -1 -1 -1 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::NoProcessors);
    expect_one("1 0 -1 10 5 -1 -1 5 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::TooWide);
    expect_one("1 0 0 -1 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::NoRuntime);
    expect_one("1 0 0 0 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::ZeroRuntime);
    expect_one("1 0 0 10 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", Anomaly::NoEstimate);
    expect_one("1 0 0 10 4 -1 -1 4 0 -1 1 1 1 1 1 1 -1 -1", Anomaly::ZeroEstimate);
    expect_one("1 0 0 10 4 -1 -1 4 9 -1 1 1 1 1 1 1 -1 -1", Anomaly::RanPastEstimate);
    expect_one("1 0 0 10 4 -1 -1 3 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::SizesDiffer);
    expect_one("0 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::NoJobNumber);
    expect_one("1 0 0 10 4 -1 9 4 10 8 1 1 1 1 1 1 -1 -1", Anomaly::MemoryOverRequest);
    expect_one("1 0 0 10 4 11.01 -1 4 10 -1 1 1 1 1 1 1 -1 -1", Anomaly::CpuOverRuntime);
    expect_one("1 0 0 10 4 -1 -1 4 10 -1 -1 1 1 1 1 1 -1 -1", Anomaly::UnknownStatus);
    expect_one("1 0 0 10 4 -1 -1 4 10 -1 2 1 1 1 1 1 -1 -1", Anomaly::PartOfJob);
    expect_one("1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 7 -1", Anomaly::PrecedingUnknown);
    expect_one("1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 1 -1", Anomaly::PrecedingLater);
}

#[test]
fn order_and_numbers() {
    let job = |number: u64, submit: u64, preceding: i64| {
        format!("{number} {submit} -1 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 {preceding} -1\n")
    };
    let log = [job(3, 5, 5), job(3, 4, -1), job(2, 6, 3), job(5, 6, -1)].concat();
    expect(
        &log,
        &[
            (Anomaly::OutOfOrder, &[3]),
            (Anomaly::DuplicateJobNumber, &[3]),
            (Anomaly::NumbersDescend, &[4]),
            (Anomaly::PrecedingLater, &[2]),
        ],
    );
}

#[test]
fn more_at_once_than_the_machine_holds() {
    let job = |number: u64, submit: u64, wait: u64, procs: u64| {
        format!("{number} {submit} {wait} 10 {procs} -1 -1 -1 10 -1 1 1 1 1 1 1 -1 -1\n")
    };
    // 3 from 0 to 10, 2 from 9 to 19, 2 from 10 to 20, 1 from 10 to 20: over at 9, and again at 10.
    let log = [job(1, 0, 0, 3), job(2, 1, 8, 2), job(3, 2, 8, 2), job(4, 3, 7, 1)].concat();
    expect(&log, &[(Anomaly::OverCapacity, &[3, 5])]);
}

#[test]
fn the_header() {
    let found = |log: &str| {
        let report = check(&Trace::memory("toy", log.into()), None, ProcsField::Allocated).unwrap();
        report.findings.into_iter().map(|(anomaly, finding)| (anomaly, finding.lines)).collect::<Vec<_>>()
    };
    assert_eq!(found(""), [(Anomaly::NoJobs, vec![]), (Anomaly::NoMachineSize, vec![])]);
    let job = "1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1";
    assert_eq!(
        found(&format!("; MaxNodes: 8 (4 + 4)\n; MaxJobs: 2\n;MaxRecords: 1\n{job}")),
        [
            (Anomaly::SizeFromMaxNodes, vec![1]),
            (Anomaly::SizeNotPlain, vec![1]),
            (Anomaly::CountDiffers, vec![2])
        ]
    );
    let zones = "; MaxProcs: 8\n; UnixStartTime: 820090437\n; TimeZone: 0\n; TimeZoneString: ";
    assert_eq!(found(&format!("{zones}US/Pacific\n{job}")), [(Anomaly::ZonesDiffer, vec![3])]);
    assert_eq!(found(&format!("{zones}Europe/London\n{job}")), []);
    assert_eq!(found(&format!("{zones}Nowhere\n{job}")), [(Anomaly::UnknownZone, vec![4])]);
}

#[test]
fn what_a_simulation_leaves_out_is_counted_once() {
    let log = "; MaxProcs: 4\n1 2\n1 -1 0 -1 9 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n\n";
    let report = check(&Trace::memory("toy", log.into()), None, ProcsField::Allocated).unwrap();
    assert_eq!((report.lines, report.read, report.left_out), (4, 2, 2));
    assert_eq!(report.count(Severity::Skipped), 3);
    assert_eq!(report.findings[&Anomaly::Malformed].details, ["line 2: 2 fields where the format has 18"]);
}
