//! The gate refuses policies that peek, and accepts all others.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use miserly_gym::JobLog;
use miserly_gym::gate::{GateCase, GateJob, PolicyKind, check};
use miserly_gym::score::run_window;
use miserly_gym::study::StudyError;
use miserly_policies::backfill::{BackfillRules, ReservationDepth, backfill};
use miserly_policies::{Needs, Order, PolicySpec};
use miserly_run::RunSetup;
use miserly_sim::{Job, JobColumns};
use miserly_test_support::Traces;
use miserly_workload::Trace;

fn gate(kind: PolicyKind, mut policy: impl FnMut(&RunSetup) -> PolicySpec) -> Result<(), String> {
    let mut run =
        |setup: &Arc<RunSetup>| -> Result<JobColumns, StudyError> { Ok(run_window(setup, &policy(setup))?) };
    check("mine", kind, &mut run).map_err(|error| error.to_string())
}

/// EASY in the order of a value of a job, which may see all of the log.
fn by(setup: &RunSetup, value: impl Fn(&Job, &[Job]) -> f64) -> PolicySpec {
    let jobs: Vec<Job> = setup.jobs().expect("jobs").map(|job| job.expect("a job")).collect();
    let values: BTreeMap<i64, f64> = jobs.iter().map(|job| (job.request.number, value(job, &jobs))).collect();
    let order = Order::by_values(values);
    PolicySpec::from_fn("mine", Needs::NONE, move |machine, _| {
        backfill("easy", machine, BackfillRules::recomputed(order.clone(), ReservationDepth::First(1)))
    })
}

#[track_caller]
fn refused(result: Result<(), String>, why: &str) {
    let message = result.expect_err("the gate refuses it");
    assert!(message.contains(why), "{message}");
}

#[test]
fn policies_that_see_only_what_is_known_pass() {
    for name in [
        "fcfs",
        "easy",
        "conservative",
        "sorted",
        "sorted(guarantee=2)",
        "miser",
        "selective-backfill",
        "slurm",
        "priority-backfill",
        "sjf-backfill",
        "immediate(policy=easy)",
        "ss",
        "tss",
        "is",
        "eqspatial",
        "gang",
        "easy(order=f1)",
        "easy(order=wfp3)",
        "easy(order=random)",
        "easy(predict=similar)",
        "easy(backfill=shortest, predict=last2, book=guarded)",
    ] {
        let spec: PolicySpec = name.parse().expect("a policy");
        assert_eq!(gate(PolicyKind::Written, |_| spec.clone()), Ok(()), "{name}");
    }
    assert_eq!(
        gate(PolicyKind::Program, |setup| by(setup, |job, _| job.request.estimate.as_secs_f64())),
        Ok(())
    );
}

#[test]
fn a_clairvoyant_policy_is_refused() {
    let spec: PolicySpec = "easy(predict=exact)".parse().expect("a policy");
    refused(
        gate(PolicyKind::Written, |_| spec.clone()),
        "the end of the running job 1, which is hidden until 150",
    );
}

#[test]
fn an_order_by_runtimes_is_refused() {
    refused(gate(PolicyKind::Program, |setup| by(setup, |job, _| job.runtime.0.as_secs_f64())), "it peeks");
}

#[test]
fn an_order_by_later_arrivals_is_refused() {
    let by_later = |job: &Job, jobs: &[Job]| {
        let until = job.request.submit + job.request.estimate;
        let arrives = |other: &&Job| (job.request.submit..until).contains(&other.request.submit);
        let wide = jobs.iter().filter(arrives).filter(|other| other.request.procs().get() > 8).count();
        (wide % 3) as f64
    };
    refused(gate(PolicyKind::Program, |setup| by(setup, by_later)), "the arrival");
}

#[test]
fn a_policy_with_global_state_is_refused() {
    let mut runs = 0_i64;
    let counted =
        |setup: &RunSetup| {
            runs += 1;
            let turn = (runs / 2) % 2 == 0;
            by(setup, |job, _| {
                if turn { job.request.estimate.as_secs_f64() } else { -job.request.estimate.as_secs_f64() }
            })
        };
    refused(gate(PolicyKind::Program, counted), "it ");
}

#[test]
fn a_table_of_known_jobs_is_refused() {
    let looked_up = |job: &Job, _: &[Job]| (job.request.number * 7919 % 101) as f64;
    refused(gate(PolicyKind::Program, |setup| by(setup, looked_up)), "it decides by the numbers of jobs");
    assert_eq!(gate(PolicyKind::Written, |setup| by(setup, looked_up)), Ok(()));
}

/// The litmus files of the shared folder have the small cases.
#[test]
fn the_small_cases_are_those_of_the_litmus_files() {
    let Some(traces) = Traces::find() else { return };
    let folder = traces.folder().join("../litmus");
    let cases = GateCase::all().expect("the cases");
    for (file, case, log) in [("L4.swf", 0, 0), ("L3.swf", 0, 1), ("L6.swf", 1, 0), ("L1.swf", 1, 1)] {
        let Ok(text) = fs::read(folder.join(file)) else { return };
        let read = JobLog::read(&Trace::memory(file, text)).expect("a log");
        let jobs: Vec<GateJob> =
            read.jobs.iter().map(|job| (job.submit, job.runtime, job.procs, job.estimate)).collect();
        assert_eq!(cases[case].logs[log], jobs, "{file}");
        assert_eq!(cases[case].procs, read.procs);
    }
}
