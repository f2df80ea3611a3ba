//! Any bytes as accounting or as a workload: refused with a message, or every job is accounted for and the log that is
//! made can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

use miserly_import::{ColumnMap, Format, ImportError, ImportOptions, ImportedLog, RemarkEffect, converted, import, propose};
use miserly_workload::check::Anomaly;
use miserly_workload::{ProcsField, Trace, check};

/// Starts of each format, so that not all inputs have to find them.
const STARTS: [&[u8]; 8] = [
    b"",
    b"id,s,e,r,p,m\n1,2024-03-01T12:00:00Z,,1:00:00,4,2\n",
    b"[{\"id\": 1, \"s\": 5, \"r\": \"1:00:00\", \"p\": 4}, {",
    b"JobIDRaw|Submit|Eligible|Start|End|ElapsedRaw|Suspended|AllocCPUS|ReqMem|TotalCPU|State\n",
    b"JobID,Submit,Start,End,AllocTRES,ReqTRES,NNodes,State\n",
    b"03/01/2013 00:00:00;E;7.s;ctime=1 start=2 end=3 Resource_List.ncpus=4\n03/01/2013 00:00:00;E;",
    b"\"JOB_FINISH\" \"10.1\" 170 7 500 1 4 100 0 0 110 \"u\" \"q\"",
    b"{\"meta\": {}, \"jobs\": [{\"job_id\": 7, \"time\": {\"submission\": 1, \"start\": 2, \"end\": 3}}, {",
];

/// A map of the columns of these tables.
const MAP: &str = "[table]\nzone = 'Europe/Berlin'\n[columns]\njob = 'id'\nsubmit = 's'\nend = 'e'\n\
                   runtime = { column = 'r', unit = 'dhms' }\nprocs = 'p'\nmemory = { column = 'm', unit = 'slurm' }\n\
                   [rules]\ndrop = ['end < submit', \"p == 'x'\"]\nsame_job = 'gang'\n";

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
    let options = ImportOptions { lenient: true, cpus_per_node: Some(4), ..ImportOptions::default() };
    let columns = ColumnMap::parse("map", MAP).unwrap();
    let of_table = ImportOptions { columns: Some(Arc::new(columns)), ..options.clone() };
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = ColumnMap::parse("map", text).map_err(|error| assert!(!error.to_string().is_empty()));
    }
    for start in STARTS {
        let text = [start, data].concat();
        for format in Format::ALL {
            judge(import(&Trace::memory("fuzz", text.clone()), format, &options));
        }
        judge(import(&Trace::memory("fuzz", text.clone()), Format::Table, &of_table));
        let _ = propose(&Trace::memory("fuzz", text.clone()), &options);
        let _ = converted(Trace::memory("fuzz", text), &options);
    }
});
