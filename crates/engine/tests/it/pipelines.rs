//! Random pipelines: whatever ends, is cancelled, held, released or restarted, the conditions and the limit hold.

use miserly_api::model::{Array, Condition, Exit, Failure, JobView, Phase, Submission, When};
use miserly_engine::{Absence, Attempt, AttemptOutcome, DaemonRequest, Input};
use proptest::prelude::*;

use super::life::{Life, job, seconds};

/// The number of single jobs, before the array.
const SINGLE: i64 = 5;
/// The number of jobs of the array.
const IN_ARRAY: i64 = 4;
/// The number of all jobs: one waits for the array.
const JOBS: i64 = SINGLE + IN_ARRAY + 1;

#[derive(Clone, Debug)]
struct Pipeline {
    policy: &'static str,
    /// The number of processors.
    pool: u32,
    /// For each single job and the array: the earlier single jobs that it waits for.
    conditions: Vec<Vec<(i64, When)>>,
    limit: u32,
    last: When,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A running job ends with this exit code.
    End(i64, i32),
    Cancel(i64),
    Hold(i64),
    Release(i64),
    /// The daemon is killed, and the next one begins.
    Restart,
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![Just(When::Any), Just(When::Ok), Just(When::NotOk)]
}

fn step() -> impl Strategy<Value = Step> {
    let job = || 1..=JOBS;
    prop_oneof![
        6 => (job(), 0..2_i32).prop_map(|(job, code)| Step::End(job, code)),
        1 => job().prop_map(Step::Cancel),
        1 => job().prop_map(Step::Hold),
        1 => job().prop_map(Step::Release),
        1 => Just(Step::Restart),
    ]
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    let conditions = (1..=SINGLE + 1).map(|job| {
        let other = (1..job.max(2), when()).prop_map(move |(other, when)| (other.min(job - 1), when));
        prop::collection::vec(other, 0..3)
            .prop_map(|all| all.into_iter().filter(|(other, _)| *other > 0).collect::<Vec<_>>())
    });
    let policy = prop_oneof![Just("miser"), Just("easy"), Just("conservative")];
    let steps = prop::collection::vec(step(), 0..30);
    (policy, 1..8_u32, conditions.collect::<Vec<_>>(), 1..4_u32, when(), steps).prop_map(
        |(policy, pool, conditions, limit, last, steps)| Pipeline {
            policy,
            pool,
            conditions,
            limit,
            last,
            steps,
        },
    )
}

/// What a job waits for, as a plain list.
fn waits(pipeline: &Pipeline, job: i64) -> Vec<(i64, When)> {
    if job == JOBS {
        return (SINGLE + 1..JOBS).map(|other| (other, pipeline.last)).collect();
    }
    pipeline.conditions[usize::try_from(job.min(SINGLE + 1) - 1).unwrap()].clone()
}

fn submit(life: &mut Life, pipeline: &Pipeline) {
    let on = |(job, when): (i64, When)| Condition { when, job: Some(job), ..Condition::default() };
    for number in 1..=SINGLE {
        let conditions = waits(pipeline, number).into_iter().map(on).collect();
        assert_eq!(life.submit(1, Submission { conditions, ..job(1, 10_000) }), number);
    }
    let array = Some(Array { limit: Some(pipeline.limit), ..Array::range(1, 4, 1) });
    let conditions = waits(pipeline, SINGLE + 1).into_iter().map(on).collect();
    life.submit(1, Submission { array, conditions, ..job(1, 10_000) });
    let conditions = vec![on((SINGLE + 1, pipeline.last))];
    assert_eq!(life.submit(1, Submission { conditions, ..job(1, 10_000) }), JOBS);
}

fn succeeded(view: &JobView) -> bool {
    matches!(view.phase, Phase::Done { exit: Exit::Code(0), .. })
}

fn is_running(view: &JobView) -> bool {
    matches!(view.phase, Phase::Running(_))
}

/// Checks all jobs against their conditions, one by one.
fn check(pipeline: &Pipeline, jobs: &[JobView]) {
    let of = |number: i64| &jobs[usize::try_from(number - 1).unwrap()];
    for view in jobs {
        let holds = |(other, when): &(i64, When)| {
            let other = of(*other);
            let ok = succeeded(other);
            other.phase.ended().map(|_| match when {
                When::Ok | When::EachOk => ok,
                When::NotOk => !ok,
                When::Any => true,
            })
        };
        let all: Vec<_> = waits(pipeline, view.number).iter().map(holds).collect();
        let failed = matches!(view.phase, Phase::Failed { why: Failure::Dependency, .. });
        if is_running(view) || matches!(view.phase, Phase::Done { .. }) {
            assert!(all.iter().all(|holds| *holds == Some(true)), "{view:?}");
        }
        if all.contains(&Some(false)) {
            assert!(view.phase.ended().is_some(), "it can never run: {view:?}");
        }
        assert!(!failed || all.contains(&Some(false)), "it could run: {view:?}");
        // A held job moves the promises of jobs that wait for it.
        let risk = view.promise.as_ref().and_then(|promise| promise.at_risk);
        let held = pipeline.steps.iter().any(|step| matches!(step, Step::Hold(_)));
        assert!(risk.is_none() || held, "{view:?}");
    }
    let array = jobs.iter().filter(|view| view.index.is_some());
    let running = array.filter(|view| is_running(view)).count();
    assert!(running <= pipeline.limit as usize, "{running} of {} run", pipeline.limit);
}

fn end(life: &mut Life, second: i64, view: &JobView, code: i32) {
    let outcome = AttemptOutcome::Ended { at: seconds(second), exit: Exit::Code(code), by: None };
    let attempt = Attempt { job: view.number, nth: view.attempts };
    life.turn(second, vec![Input::AttemptEnded(attempt, outcome)]);
}

fn views(life: &mut Life, second: i64) -> Vec<JobView> {
    (1..=JOBS).map(|number| life.job(second, number)).collect()
}

fn run(pipeline: &Pipeline) {
    let mut life = Life::of_policy(pipeline.policy, pipeline.pool.into(), pipeline.pool);
    submit(&mut life, pipeline);
    let mut second = 1;
    for step in &pipeline.steps {
        second += 1;
        match *step {
            Step::End(job, code) => {
                let view = life.job(second, job);
                if is_running(&view) {
                    end(&mut life, second, &view, code);
                }
            }
            Step::Cancel(job) => {
                let view = life.job(second, job);
                let cancelled = life.ask(second, DaemonRequest::Cancel { job, array: false }).is_ok();
                if cancelled && is_running(&view) {
                    end(&mut life, second, &view, 143);
                }
            }
            // Refused for a job that runs or has ended.
            Step::Hold(job) => drop(life.ask(second, DaemonRequest::Hold { job, move_promises: true })),
            Step::Release(job) => drop(life.ask(second, DaemonRequest::Release(job))),
            Step::Restart => life.begin(second, &Absence::default()),
        }
        let jobs = views(&mut life, second);
        check(pipeline, &jobs);
    }
    // Nothing waits for ever.
    for _ in 0..=2 * JOBS {
        second += 1;
        for view in views(&mut life, second) {
            match view.phase {
                Phase::Held => drop(life.ask(second, DaemonRequest::Release(view.number))),
                Phase::Running(_) => end(&mut life, second, &view, 0),
                _ => {}
            }
        }
    }
    let jobs = views(&mut life, second);
    check(pipeline, &jobs);
    assert!(jobs.iter().all(|view| view.phase.ended().is_some()), "{jobs:?}");
}

proptest! {
    #[test]
    fn conditions_and_limits_hold(pipeline in pipeline()) {
        run(&pipeline);
    }
}
