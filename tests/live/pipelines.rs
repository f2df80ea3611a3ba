//! Pipelines: jobs that wait for the success or the failure of others, and arrays with a limit, while the daemon is killed.

use std::fs;
use std::thread;
use std::time::Duration;

use miserly_api::model::{Array, Condition, Exit, Failure, Phase, Submission, When};

use crate::kills::check_promises;
use crate::same::play;
use crate::support::{Daemon, Draws, rounds, sh};

/// Fails if another job of the array runs at the same time, and writes down what ran.
const ALONE: &str = "echo $SLURM_ARRAY_TASK_ID >> began; mkdir alone || { echo $MISERLY_JOB_ID >> together; exit 9; }; \
                     sleep 0.1; rmdir alone; [ $SLURM_ARRAY_TASK_ID != 1 ]";

fn on(when: When, job: i64) -> Vec<Condition> {
    vec![Condition { when, job: Some(job), ..Condition::default() }]
}

fn in_folder(daemon: &Daemon, script: &str) -> Submission {
    Submission { directory: daemon.path(""), ..sh(script, 20.0) }
}

/// The first jobs of a pipeline: an array of which the job with index 1 fails, and the jobs that wait for it.
struct Pipeline {
    prepare: i64,
    work: i64,
    each: i64,
    collect: i64,
    after_collect: i64,
    report: i64,
}

impl Pipeline {
    fn submit(daemon: &Daemon) -> Pipeline {
        let limited = Array { limit: Some(1), ..Array::range(0, 2, 1) };
        let prepare = daemon.submit(&in_folder(daemon, "sleep 0.2"));
        let work = in_folder(daemon, ALONE);
        let work =
            daemon.submit(&Submission { array: Some(limited), conditions: on(When::Ok, prepare), ..work });
        let each = in_folder(daemon, "true");
        let array = Some(Array::range(0, 2, 1));
        let each = daemon.submit(&Submission { array, conditions: on(When::EachOk, work), ..each });
        let after =
            |when, job| daemon.submit(&Submission { conditions: on(when, job), ..in_folder(daemon, "true") });
        let collect = after(When::Ok, work);
        let after_collect = after(When::Ok, collect);
        let report = after(When::NotOk, work + 1);
        Pipeline { prepare, work, each, collect, after_collect, report }
    }

    /// Waits for the end of all jobs and checks how they ended.
    fn check(&self, daemon: &Daemon) {
        let succeeds = |job: i64| {
            let phase = daemon.wait(job).phase;
            assert!(matches!(phase, Phase::Done { exit: Exit::Code(0), .. }), "job {job}: {phase:?}");
        };
        let never_runs = |job: i64, cause: &str| {
            let view = daemon.wait(job);
            let Phase::Failed { why: Failure::Dependency, message, .. } = &view.phase else {
                panic!("job {job}: {:?}", view.phase)
            };
            assert!(message.starts_with(cause), "{message}");
            assert_eq!(view.runs, 0);
        };
        for job in [self.prepare, self.work, self.work + 2, self.each, self.each + 2, self.report] {
            succeeds(job);
        }
        let failed = daemon.wait(self.work + 1).phase;
        assert!(matches!(failed, Phase::Done { exit: Exit::Code(1), .. }), "{failed:?}");
        let cause = format!("job {} ended with exit code 1", self.work + 1);
        never_runs(self.each + 1, &cause);
        never_runs(self.collect, &cause);
        never_runs(self.after_collect, &format!("job {} could not run", self.collect));
    }
}

#[test]
fn jobs_see_their_array_in_variables_of_slurm() {
    let daemon = Daemon::of_policy("miser");
    let script = "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN \
                  $SLURM_ARRAY_TASK_MAX ${SLURM_NTASKS-none} $SLURM_JOB_NAME";
    let array =
        serde_json::from_str(r#"{"first": 3, "last": 7, "step": 4, "more": [{"first": 1, "last": 1}]}"#);
    let array = Some(array.expect("an array"));
    let output = Some("out-%a".into());
    let name = Some("a b".into());
    let first = daemon.submit(&Submission { array, output, name, ..in_folder(&daemon, script) });
    for (job, index) in (first..).zip([1, 3, 7]) {
        daemon.wait(job);
        let text = fs::read_to_string(daemon.path(&format!("out-{index}"))).expect("an output");
        assert_eq!(text, format!("{first} {index} 3 1 7 none a b\n"));
    }
}

#[test]
fn a_pipeline_is_the_same_however_often_the_daemon_is_killed() {
    let mut daemon = Daemon::of_policy("miser");
    let mut draws = Draws::new(11);
    for _ in 0..rounds().div_ceil(5) {
        let pipeline = Pipeline::submit(&daemon);
        for _ in 0..4 {
            thread::sleep(Duration::from_micros(draws.below(200_000)));
            daemon.kill();
            daemon.start();
        }
        pipeline.check(&daemon);
        assert!(!daemon.path("together").exists());
        let began = fs::read_to_string(daemon.path("began")).expect("jobs began");
        assert!(began.ends_with("0\n1\n2\n"), "{began}");
    }
    check_promises(&mut daemon);
    let played = play(&daemon.state());
    assert!(played.get("difference").is_none(), "{played:#}");
}
