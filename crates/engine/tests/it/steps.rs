//! Steps that jobs record.

use miserly_api::model::{BeginStepRequest, EndStepRequest, Exit, KilledBy, ProblemCode, StepNumber};
use miserly_engine::{Absence, Attempt, AttemptOutcome, Caller, DaemonReply, DaemonRequest, Input};

use super::life::{Life, job, seconds};

fn begin(job: i64) -> DaemonRequest {
    DaemonRequest::BeginStep {
        job,
        step: BeginStepRequest { name: "solve".to_owned(), tasks: 2, cpus: 2, limit: None },
    }
}

fn end(job: i64, step: u32) -> DaemonRequest {
    DaemonRequest::EndStep { job, end: EndStepRequest { step, exit: Exit::Code(3), by_time: false } }
}

#[test]
fn steps_of_a_job_have_numbers_and_ends_and_outlast_the_daemon() {
    let mut life = Life::new(2, 2);
    let running = life.submit(1, job(2, 20));
    let waiting = life.submit(1, job(2, 20));
    let number = |step| DaemonReply::Step(StepNumber { step });
    assert_eq!(life.ask(2, begin(running)).unwrap(), number(0));
    assert_eq!(life.ask(3, begin(running)).unwrap(), number(1));
    life.begin(4, &Absence::default());
    assert_eq!(life.ask(5, end(running, 0)).unwrap(), number(0));
    let steps = life.job(6, running).steps;
    let ends: Vec<_> = steps.iter().map(|step| (step.step, step.ended.map(|end| end.exit))).collect();
    assert_eq!(ends, [(0, Some(Exit::Code(3))), (1, None)]);
    assert!(steps[0].started < steps[1].started && steps[0].ended.unwrap().at > steps[1].started);

    let code = |life: &mut Life, question| life.ask(7, question).unwrap_err().code;
    assert_eq!(code(&mut life, end(running, 0)), ProblemCode::Conflict, "it has ended");
    assert_eq!(code(&mut life, end(running, 9)), ProblemCode::Conflict, "it never began");
    assert_eq!(code(&mut life, begin(waiting)), ProblemCode::Conflict);
    assert_eq!(code(&mut life, begin(99)), ProblemCode::NotFound);
    let other = life.ask_as(Caller::new(7), 7, begin(running)).unwrap_err();
    assert_eq!(other.code, ProblemCode::Forbidden);
}

#[test]
fn a_job_that_runs_again_has_new_steps() {
    let mut life = Life::new(1, 1);
    let running = life.submit(1, job(1, 20));
    life.ask(2, begin(running)).unwrap();
    life.ask(3, DaemonRequest::Requeue { job: running, move_promises: false }).unwrap();
    assert_eq!(life.ask(3, begin(running)).unwrap_err().code, ProblemCode::Conflict, "it is ending");
    let killed = AttemptOutcome::Ended { at: seconds(4), exit: Exit::Signal(15), by: Some(KilledBy::User) };
    life.turn(4, vec![Input::AttemptEnded(Attempt { job: running, nth: 1 }, killed)]);
    assert!(life.job(5, running).steps.is_empty(), "{:?}", life.job(5, running));
    assert_eq!(life.ask(6, begin(running)).unwrap(), DaemonReply::Step(StepNumber { step: 0 }));
}
