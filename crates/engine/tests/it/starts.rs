//! A start from every state: jobs that run again after an absence past their windows, and jobs that cannot be placed.

use miserly_api::model::{
    Exit, KilledBy, LostBy, Phase, ProblemCode, Retry, StartReason as ApiReason, Submission,
};
use miserly_core::{
    Context, Culprit, Event, JobId, Ledger, Machine, Policy, Rule, StartReason, State, Time, Violation,
};
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, DaemonReply, DaemonRequest, Input, JobRow, Journal,
    JournalBatch,
};
use miserly_policies::{Params, PolicyDescriptor, Promises};
use serde_json::{Value, json};

use super::life::{Life, beside_calm, job, of, seconds};

const FIRST: u32 = 1;

/// Every policy that a daemon can have jobs run again under.
const POLICIES: [&str; 10] =
    ["miser", "conservative", "easy", "fcfs", "ss(sf=2)", "immediate", "soon", "gang", "slurm", "eqspatial"];

/// How a job comes to run again.
#[derive(Clone, Copy, Debug)]
enum Again {
    Failed,
    Lost,
    Requeued,
}

impl Again {
    const ALL: [Again; 3] = [Again::Failed, Again::Lost, Again::Requeued];

    fn outcome(self) -> AttemptOutcome {
        match self {
            Again::Failed => AttemptOutcome::Ended { at: seconds(2), exit: Exit::Code(3), by: None },
            Again::Lost => AttemptOutcome::Lost(LostBy::Shim),
            Again::Requeued => {
                AttemptOutcome::Ended { at: seconds(3), exit: Exit::Signal(15), by: Some(KilledBy::User) }
            }
        }
    }
}

fn ended(job: i64, outcome: AttemptOutcome) -> (Attempt, AttemptOutcome) {
    (Attempt { job, nth: FIRST }, outcome)
}

fn again(time: u32) -> Submission {
    let retry = Some(Retry { limit: 2, codes: vec![] });
    Submission { retry, restartable: true, ..job(1, time) }
}

#[test]
fn a_job_that_is_to_run_again_after_an_absence_past_its_window_runs_again() {
    for policy in POLICIES {
        for how in Again::ALL {
            for stalls in [false, true] {
                let case = format!("{policy}, {how:?}, stalled {stalls}");
                let mut life = Life::of_policy(policy, 2, 2);
                let first = life.submit(1, again(3));
                let other = life.submit(1, job(1, 100));
                if let Again::Requeued = how {
                    let requeue = DaemonRequest::Requeue { job: first, move_promises: true };
                    life.ask(2, requeue).unwrap();
                }
                let (attempt, outcome) = ended(first, how.outcome());
                if stalls {
                    life.late_turn(Life::now(20), vec![Input::AttemptEnded(attempt, outcome)]);
                } else {
                    life.begin(20, &Absence { ended: vec![(attempt, outcome)], ..Absence::default() });
                }
                let view = life.job(21, first);
                assert!(matches!(view.phase, Phase::Running(_)), "{case}: {:?}", view.phase);
                assert_eq!(view.attempts, 2, "{case}");
                assert!(matches!(life.job(21, other).phase, Phase::Running(_)), "{case}");
                assert!(life.status(21).queues[0].stopped.is_none(), "{case}");
                // The next start finds the same.
                life.begin(22, &Absence::default());
                life.end_attempt(22, Attempt { job: first, nth: 2 });
                assert!(matches!(life.job(22, first).phase, Phase::Done { .. }), "{case}");
            }
        }
    }
}

/// A policy that starts jobs where they fit, and for which jobs of 13 seconds break a rule as if an event for them did.
static BLAMING: PolicyDescriptor =
    PolicyDescriptor::new("blaming", "an event for a job of 13 seconds breaks a rule", |_| {
        Ok(Box::new(Blaming))
    });

#[derive(Clone, Copy, Debug)]
struct Blaming;

impl Params for Blaming {
    fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
        Box::new(*self)
    }

    fn promises(&self) -> Promises {
        Promises::Nothing
    }
}

impl Policy for Blaming {
    fn name(&self) -> &'static str {
        "blaming"
    }

    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}

    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let ledger = context.ledger();
        let jobs: Vec<JobId> = ledger.waiting().chain(ledger.running()).collect();
        for job in jobs {
            let (entry, now) = (context.ledger().entry(job), context.now());
            let (number, submit) = (entry.request.number, entry.request.submit);
            if is_blamed(&entry.request) && now > submit {
                let (policy, culprit) = (String::new(), Culprit::Event(Some(job)));
                let rule = Rule::NotRunning;
                return Err(Violation { queue: 0, policy, culprit, job: Some(number), now, rule });
            }
            let waits = entry.state == State::Waiting;
            if let Some(placement) = context.ledger().fit_request(job).filter(|_| waits) {
                context.start(job, placement, StartReason::Reserved)?;
            }
        }
        Ok(())
    }
}

/// Its planned time has a second of cleanup.
fn is_blamed(request: &miserly_core::Request) -> bool {
    request.estimate.ticks() / 1_000_000 == 14
}

fn done(second: i64) -> AttemptOutcome {
    AttemptOutcome::Ended { at: seconds(second), exit: Exit::Code(0), by: None }
}

#[test]
fn a_waiting_job_that_cannot_be_placed_is_held_and_nothing_else_is_disturbed() {
    let mut life = beside_calm(&BLAMING);
    let runs = life.submit(2, of("blaming", job(2, 600)));
    let calm = life.submit(2, of("calm", job(1, 600)));
    let bad = life.submit(3, of("blaming", job(1, 13)));
    life.turn(4, vec![Input::AttemptEnded(Attempt { job: runs, nth: 1 }, done(4))]);
    let view = life.job(5, bad);
    assert_eq!(view.phase, Phase::Held);
    let reason = view.set_aside.unwrap();
    assert!(reason.contains("only a running job can end"), "{reason}");
    assert!(matches!(life.job(5, runs).phase, Phase::Done { .. }), "the end is a fact");
    assert!(matches!(life.job(5, calm).phase, Phase::Running(_)));
    assert!(life.status(5).queues.iter().all(|queue| queue.stopped.is_none()));
    let next = life.submit(6, of("blaming", job(1, 20)));
    assert!(matches!(life.job(6, next).phase, Phase::Running(_)), "its queue goes on");
    // Also for later daemons.
    life.begin(7, &Absence::default());
    assert_eq!(life.job(8, bad).set_aside, Some(reason));
    // A release submits it again, and it is set aside again with the next round.
    life.ask(9, DaemonRequest::Release(bad)).unwrap();
    assert_eq!(life.job(9, bad).set_aside, None);
    life.ask(30, DaemonRequest::Release(bad)).unwrap_err();
    life.turn(31, vec![Input::AttemptEnded(Attempt { job: next, nth: 1 }, done(31))]);
    life.ask(32, DaemonRequest::Cancel { job: bad, array: false }).unwrap();
}

#[test]
fn a_running_job_that_cannot_be_placed_runs_on_and_its_end_decides() {
    let mut life = beside_calm(&BLAMING);
    let bad = life.submit(2, of("blaming", job(1, 13)));
    assert!(matches!(life.job(2, bad).phase, Phase::Running(_)));
    // The next round finds it at fault.
    let next = life.submit(4, of("calm", job(1, 20)));
    let other = life.ask(4, DaemonRequest::Submit(of("blaming", job(1, 20))));
    assert_eq!(other.unwrap_err().code, ProblemCode::Internal);
    let view = life.job(5, bad);
    assert!(matches!(view.phase, Phase::Adopted { ref cpus, .. } if cpus.len() == 1), "{:?}", view.phase);
    assert!(view.set_aside.is_some());
    let hold = DaemonRequest::Hold { job: bad, move_promises: false };
    assert_eq!(life.ask(5, hold).unwrap_err().code, ProblemCode::Conflict);
    assert!(matches!(life.job(5, next).phase, Phase::Running(_)));
    let free: u64 = life.status(5).queues.iter().map(|queue| queue.cpus).sum();
    assert_eq!(free, 3, "its processor is withheld");
    life.actions(bad);
    life.ask(6, DaemonRequest::Cancel { job: bad, array: false }).unwrap();
    assert!(matches!(life.actions(bad)[..], [Action::Kill { .. }]));
    life.turn(7, vec![Input::AttemptEnded(Attempt { job: bad, nth: 1 }, done(7))]);
    assert!(matches!(life.job(8, bad).phase, Phase::Killed { .. }), "{:?}", life.job(8, bad).phase);
    let free: u64 = life.status(9).queues.iter().map(|queue| queue.cpus).sum();
    assert_eq!(free, 4);
}

#[test]
fn of_stored_jobs_that_do_not_fit_the_pool_the_last_ones_are_set_aside() {
    let mut life = Life::new(2, 2);
    let [first, second] = [1, 2].map(|at| life.submit(at, again(100)));
    let waits = life.submit(3, job(1, 50));
    // Another row holds the processors of both.
    let row = life.journal.job(second).unwrap().unwrap();
    let mut body: Value = serde_json::from_str(&row.body).unwrap();
    body["entry"]["request"]["cpus"] = 2.into();
    body["entry"]["state"]["on"][0]["amount"][0] = 2.into();
    let rows = vec![JobRow { body: body.to_string(), ..row }];
    life.journal.commit(JournalBatch { rows, ..JournalBatch::default() }).unwrap();
    life.begin(4, &Absence::default());
    assert!(matches!(life.job(5, first).phase, Phase::Running(_)));
    let view = life.job(5, second);
    assert!(matches!(view.phase, Phase::Adopted { .. }), "{:?}", view.phase);
    assert!(view.set_aside.unwrap().contains("hold more than its pool has"));
    assert_eq!(life.job(5, waits).phase, Phase::Queued);
    // It failed and is to run again: it is held until a release.
    let outcome = AttemptOutcome::Ended { at: seconds(6), exit: Exit::Code(3), by: None };
    life.turn(6, vec![Input::AttemptEnded(Attempt { job: second, nth: 1 }, outcome)]);
    let view = life.job(7, second);
    assert_eq!((&view.phase, &view.retried), (&Phase::Held, &vec![3]));
    assert!(matches!(life.job(7, waits).phase, Phase::Running(_)), "its processor is free");
    life.ask(8, DaemonRequest::Release(second)).unwrap();
    life.end(9, first);
    let view = life.job(10, second);
    assert!(matches!(view.phase, Phase::Running(_)), "{:?}", view.phase);
    assert_eq!((view.attempts, view.set_aside), (2, None));
}

/// Its policy ended it after the quantum for its whole memory, and starts it before that attempt is over.
#[test]
fn the_start_of_a_displaced_attempt_is_none_of_the_next_one() {
    let mut life = Life::of_policy("eqspatial(quantum=5s, quantum_memory=100)", 4, 4);
    let first = life.submit(1, Submission { memory: Some(700 << 10), ..job(2, 9) });
    let again = Submission { memory: Some(700 << 10), resizable: Some(2), ..job(3, 53) };
    let again = life.submit(1, again);
    let attempt = Attempt { job: again, nth: FIRST };
    let launched = vec![(attempt, seconds(1))];
    life.begin(48, &Absence { ended: vec![ended(first, done(6))], launched, ..Absence::default() });
    let actions = life.actions(again);
    assert!(matches!(actions[..], [.., Action::Kill { .. }]), "{actions:?}");
    // The launcher of the new daemon reports it, too.
    life.turn(49, vec![Input::Launched(attempt, seconds(1))]);
    let killed = AttemptOutcome::Ended { at: seconds(50), exit: Exit::Signal(9), by: Some(KilledBy::User) };
    life.turn(50, vec![Input::AttemptEnded(attempt, killed)]);
    let view = life.job(51, again);
    let Phase::Running(allocation) = &view.phase else { panic!("{view:?}") };
    assert_eq!((view.attempts, Life::second(allocation.start)), (2, 48));
}

/// The state is older: there the job waits behind another one, and a restore found its attempt before the command began.
#[test]
fn the_start_of_an_attempt_that_a_restore_found_is_that_of_its_command() {
    let mut life = Life::new(1, 1);
    let [_, waits] = [1, 2].map(|at| life.submit(at, job(1, 50)));
    let row = life.journal.job(waits).unwrap().unwrap();
    let mut body: Value = serde_json::from_str(&row.body).unwrap();
    body["attempts"] = FIRST.into();
    body["run"] = json!({ "nth": FIRST, "cpus": [], "in_window": false, "stopped": false });
    let rows = vec![JobRow { body: body.to_string(), ..row }];
    life.journal.commit(JournalBatch { rows, ..JournalBatch::default() }).unwrap();
    let attempt = Attempt { job: waits, nth: FIRST };
    life.begin(10, &Absence::default());
    life.turn(11, vec![Input::Launched(attempt, seconds(11))]);
    life.end_attempt(20, attempt);
    let view = life.job(21, waits);
    let Phase::Done { start, .. } = view.phase else { panic!("{view:?}") };
    assert_eq!(Life::second(start), 11);
}

/// The reason is stored with the job, and a job that waits has none.
#[test]
fn a_job_has_the_reason_of_its_start() {
    let mut life = Life::of_policy("easy", 2, 2);
    let holder = life.submit(1, job(1, 100));
    let wide = life.submit(2, job(2, 50));
    let small = life.submit(3, job(1, 20));
    let reasons = |life: &mut Life, second| {
        [holder, wide, small].map(|number| life.job(second, number).start_reason.map(ApiReason::name))
    };
    assert_eq!(reasons(&mut life, 4), [Some("immediate"), None, Some("backfilled")]);
    life.end(6, small);
    life.end(8, holder);
    let all = [Some("immediate"), Some("reserved"), Some("backfilled")];
    assert_eq!(reasons(&mut life, 9), all);
    let loaded = life.loaded(9);
    let stored = life.read(&loaded, 9, &DaemonRequest::Job(wide)).unwrap();
    assert!(
        matches!(&stored, DaemonReply::Job(job) if job.start_reason.map(ApiReason::name) == all[1]),
        "{stored:?}"
    );
    // A requeued job waits behind those that were there before.
    life.submit(10, job(2, 20));
    let stored_reason = |life: &Life| {
        let row = life.journal.job(wide).unwrap().unwrap();
        let body: Value = serde_json::from_str(&row.body).unwrap();
        body["start_reason"].clone()
    };
    assert_eq!(stored_reason(&life), "reserved");
    life.ask(11, DaemonRequest::Requeue { job: wide, move_promises: false }).unwrap();
    let killed = AttemptOutcome::Ended { at: seconds(12), exit: Exit::Signal(15), by: Some(KilledBy::User) };
    life.turn(12, vec![Input::AttemptEnded(Attempt { job: wide, nth: FIRST }, killed)]);
    assert!(matches!(life.job(12, wide).phase, Phase::Queued), "{:?}", life.job(12, wide).phase);
    assert_eq!(stored_reason(&life), Value::Null);
}
