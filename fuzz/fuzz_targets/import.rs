//! Any bytes as accounting or as a workload: refused with a message, or every job is accounted for and the log that is
//! made can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use miserly_import::{BatsimOptions, ImportError, ImportedLog, SlurmOptions, RemarkEffect, batsim, slurm};
use miserly_workload::check::Anomaly;
use miserly_workload::{ProcsField, Trace, check};

/// The header of accounting, so that not all inputs have to find it.
const HEADER: &[u8] =
    b"JobIDRaw|Submit|Eligible|Start|End|ElapsedRaw|Suspended|AllocCPUS|ReqMem|TotalCPU|State\n";

fn judge(imported: Result<ImportedLog, ImportError>) {
    let log = match imported {
        Ok(log) => log,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let left_out: u64 = log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count).sum();
    assert_eq!(log.report.read, log.report.written + left_out);
    let mut text = Vec::new();
    log.write(&mut text).unwrap();
    let found = check(&Trace::memory("made", text), None, ProcsField::Allocated).unwrap();
    assert_eq!(found.read, log.report.written);
    assert!(!found.findings.contains_key(&Anomaly::Malformed));
}

fuzz_target!(|data: &[u8]| {
    let options = SlurmOptions { lenient: true, ..SlurmOptions::default() };
    for text in [data.to_vec(), [HEADER, data].concat()] {
        judge(slurm(&Trace::memory("fuzz.txt", text), &options));
    }
    judge(batsim(&Trace::memory("fuzz.json", data.to_vec()), &BatsimOptions::default()));
});
