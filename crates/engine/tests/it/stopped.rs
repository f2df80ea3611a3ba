//! A policy that makes a mistake: its queue stops, and everything else goes on.

use miserly_api::model::{Phase, ProblemCode, PromiseChangeReason};
use miserly_core::{Context, Event, Ledger, Machine, Policy, StartReason, Time, Violation};
use miserly_engine::{Absence, Attempt, AttemptOutcome, DaemonRequest, Input};
use miserly_policies::{Params, PolicyDescriptor, Promises};

use super::life::{beside_calm, cause, job, of, seconds, wall};

/// A policy that promises every job a start in 100 s, starts jobs at once where they fit, starts a job of 13 s twice and panics
/// at a job of 23 s.
static HASTY: PolicyDescriptor =
    PolicyDescriptor::new("hasty", "starts a job of 13 seconds twice", |_| Ok(Box::new(Hasty)));

#[derive(Clone, Copy, Debug)]
struct Hasty;

impl Params for Hasty {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(*self)
    }

    fn promises(&self) -> Promises {
        Promises::EveryJob
    }
}

impl Policy for Hasty {
    fn name(&self) -> &'static str {
        "hasty"
    }

    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}

    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let waiting: Vec<_> = context.ledger().waiting().collect();
        for job in waiting {
            if context.ledger().entry(job).promise.is_none() {
                context.promise(job, seconds(100))?;
            }
            let planned = context.ledger().request(job).estimate.ticks() / 1_000_000;
            assert_ne!(planned, 24, "a defect of the policy");
            let twice = planned == 14;
            if let Some(placement) = context.ledger().fit_request(job) {
                context.start(job, placement.clone(), StartReason::Reserved)?;
                if twice {
                    context.start(job, placement, StartReason::Reserved)?;
                }
            }
        }
        Ok(())
    }
}

fn end(job: i64, second: i64) -> Input {
    let exit = miserly_api::model::Exit::Code(0);
    Input::AttemptEnded(
        Attempt { job, nth: 1 },
        AttemptOutcome::Ended { at: seconds(second), exit, by: None },
    )
}

#[test]
fn a_mistake_stops_its_queue_and_nothing_else() {
    let mut life = beside_calm(&HASTY);
    let runs = life.submit(2, of("hasty", job(2, 600)));
    let waits = life.submit(3, of("hasty", job(1, 20)));
    let calm = life.submit(3, of("calm", job(2, 10)));
    let next = life.submit(4, of("calm", job(2, 10)));
    // It begins with a job that waits, when there is room for it.
    life.submit(4, of("hasty", job(1, 13)));
    life.turn(8, vec![end(calm, 7), end(runs, 8)]);
    let status = life.status(8);
    let mistake = status.queues[0].stopped.clone().unwrap();
    assert!(mistake.contains("hasty") && mistake.contains("only a waiting job can start"), "{mistake}");
    assert!(status.queues[1].stopped.is_none());
    assert!(
        life.lines().iter().any(|line| line.contains("\"line\":\"stopped\"")),
        "the journal holds the case"
    );
    // The ends are facts, and the other queue went on.
    let Phase::Done { cpu_ranges, .. } = life.job(9, runs).phase else { panic!("it has ended") };
    assert_eq!(cpu_ranges, [(0, 1)]);
    assert!(matches!(life.job(9, next).phase, Phase::Running(_)));
    // Nothing starts here, and nobody is promised anything.
    let view = life.job(9, waits);
    assert_eq!(view.phase, Phase::Queued);
    assert_eq!(cause(&view), Some(PromiseChangeReason::Stopped));
    assert_eq!(view.promise.unwrap().now, None);
    let refused = life.ask(10, DaemonRequest::Submit(of("hasty", job(1, 5)))).unwrap_err();
    assert_eq!(refused.code, ProblemCode::Unavailable);
    assert!(refused.message.contains("queue hasty is stopped"), "{}", refused.message);
    life.turn(500, vec![]);
    assert_eq!(life.job(501, waits).phase, Phase::Queued, "past every promise");
}

#[test]
fn a_panic_of_a_policy_stops_its_queue_and_not_the_daemon() {
    let mut life = beside_calm(&HASTY);
    let runs = life.submit(2, of("hasty", job(2, 600)));
    let waits = life.submit(3, of("hasty", job(1, 20)));
    let calm = life.submit(3, of("calm", job(2, 10)));
    let refused = life.ask(4, DaemonRequest::Submit(of("hasty", job(1, 23)))).unwrap_err();
    assert_eq!(refused.code, ProblemCode::Internal, "{refused:?}");
    let mistake = life.status(5).queues[0].stopped.clone().unwrap();
    assert!(mistake.contains("without a panic"), "{mistake}");
    life.turn(8, vec![end(calm, 7), end(runs, 8)]);
    let next = life.submit(9, of("calm", job(2, 10)));
    assert!(matches!(life.job(9, next).phase, Phase::Running(_)));
    assert_eq!(life.job(9, waits).phase, Phase::Queued);
    life.begin(10, &Absence::default());
    assert!(matches!(life.job(11, waits).phase, Phase::Running(_)), "another daemon tries the policy again");
}

#[test]
fn a_running_job_of_a_stopped_queue_keeps_its_window() {
    let mut life = beside_calm(&HASTY);
    let runs = life.submit(2, of("hasty", job(1, 600)));
    let refused = life.ask(3, DaemonRequest::Submit(of("hasty", job(1, 13)))).unwrap_err();
    assert_eq!(refused.code, ProblemCode::Internal, "{refused:?}");
    let Phase::Running(window) = life.job(4, runs).phase else { panic!("it runs on") };
    assert_eq!(window.end, wall(602));
    // Another daemon gives the policy another chance.
    life.begin(5, &Absence::default());
    assert!(life.status(5).queues[0].stopped.is_none());
    assert!(matches!(life.job(5, runs).phase, Phase::Running(_)));
    let again = life.submit(6, of("hasty", job(1, 20)));
    assert!(matches!(life.job(6, again).phase, Phase::Running(_)));
}

#[test]
fn a_reload_gives_the_policy_another_chance() {
    let mut life = beside_calm(&HASTY);
    let runs = life.submit(2, of("hasty", job(2, 600)));
    let waits = life.submit(2, of("hasty", job(1, 20)));
    life.submit(2, of("hasty", job(1, 13)));
    life.turn(8, vec![end(runs, 8)]);
    assert_eq!(life.job(9, waits).phase, Phase::Queued);
    // The same mistake again: the configuration does not fit.
    let problem = life.set_up(10).unwrap_err();
    assert!(problem.message.contains("does not fit the jobs"), "{}", problem.message);
    life.setup.queues[0].policy = "miser".parse().unwrap();
    life.set_up(11).unwrap();
    let view = life.job(12, waits);
    assert!(matches!(view.phase, Phase::Running(_)), "{view:?}");
    let why: Vec<_> = view.promise.unwrap().history.iter().map(|change| change.why).collect();
    assert!(why.contains(&PromiseChangeReason::Stopped), "it stays on record: {why:?}");
}
