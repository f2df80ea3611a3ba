//! Documents that are read back.

use miserly_machine_file::MachineSpec;
use miserly_run::{RunDoc, RunOptions, RunSetup};
use miserly_sim::{BatchRule, Grouping};
use miserly_workload::Trace;

/// Jobs that arrive faster than they end.
fn log() -> Trace {
    let line =
        |at: u32| format!("{at} {} -1 90 {} -1 -1 -1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n", at * 30, 1 + at % 4);
    let lines: String = (1..=40).map(line).collect();
    Trace::memory("log", format!("; MaxProcs: 4\n{lines}").into())
}

#[track_caller]
fn check(options: RunOptions, policy: &str) {
    let written_and_read = || -> anyhow::Result<[String; 2]> {
        let setup = RunSetup::new(log(), options)?.with_details(true);
        let setup = setup.grouped(&[Grouping::Category, Grouping::RuntimeBin]);
        let run = setup.outcome(&policy.parse()?, false, &mut [])?;
        let read: RunDoc = serde_json::from_value(serde_json::to_value(&run)?)?;
        Ok([serde_json::to_string(&run)?, serde_json::to_string(&read)?])
    };
    let [written, read] = written_and_read().expect("a run whose document is read back");
    assert_eq!(written, read);
}

#[test]
fn a_document_is_read_back() {
    check(RunOptions::default(), "easy");
    check(RunOptions::default(), "ss");
    let batches = Some(BatchRule { jobs: 5, count: 4, discard: 1 });
    check(RunOptions { batches, ..RunOptions::default() }, "gang");
    check(RunOptions { batches, ..RunOptions::default() }, "easy");
    let pools = "[[host]]\nname = \"a\"\ncpus = 4\n\n[pool]\ncpus = 4\n\n[[queue]]\nname = \"q\"\ncpus = 4\n";
    let machine = MachineSpec::parse("pools.toml", pools).unwrap();
    check(RunOptions { machine: Some(machine), ..RunOptions::default() }, "miser");
}
