//! Each promise is judged once: random lives against a reference that sees jobs only as their users do.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{
    Array, Exit, JobView, Judgement, KilledBy, LostBy, Modification, NoPromise, Phase, PromiseChangeReason,
    Retry, Submission,
};
use miserly_core::Span;
use miserly_engine::{
    Absence, Account, Action, Attempt, AttemptOutcome, Caller, DaemonReply, DaemonRequest, Input,
};

use super::life::{Life, cause, early, job, seconds, wall};

/// The user of the jobs. The caller of a life is root, an operator.
const USER: u32 = 1000;

/// Returns a life of a daemon that runs jobs as their users.
fn shared(policy: &str, cpus: u32, slack: Span) -> Life {
    let mut life = Life::of_policy(policy, cpus.into(), cpus);
    life.info.runs_as_users = true;
    life.setup.queues[0].terms.promise_slack = slack;
    life.begin(0, &Absence::default());
    life
}

fn user() -> Caller {
    let account = Account { name: "ada".into(), ..Account::default() };
    Caller { account: Some(account.into()), ..Caller::new(USER) }
}

/// A judged promise: its latest start, the judgement, and the delay in seconds.
type Judged = (Timestamp, Judgement, Option<f64>);

/// What a user sees of the promises to a job.
#[derive(Debug, Default)]
struct Seen {
    /// The latest start that is not judged yet.
    open: Option<Timestamp>,
    judged: Vec<Judged>,
    /// The attempt whose window has begun, and was judged.
    begun: u32,
    ended: bool,
}

/// The reference: it judges each promise from the phases of the job and the requests of its user.
#[derive(Debug, Default)]
struct Reference {
    jobs: BTreeMap<i64, Seen>,
    given: u64,
}

impl Reference {
    /// The user of a job takes it back, or an operator ends it.
    fn taken_back(&mut self, job: i64, judgement: Judgement) {
        let seen = self.jobs.entry(job).or_default();
        seen.judged.extend(seen.open.take().map(|latest| (latest, judgement, None)));
    }

    fn see(&mut self, view: &JobView) {
        let seen = self.jobs.entry(view.number).or_default();
        let attempt = view.attempts;
        let start = match &view.phase {
            // A job may have run ahead of its window, which has its whole time.
            Phase::Running(allocation) => Some(allocation.end - SignedDuration::from_secs_f64(view.time)),
            _ => None,
        };
        let begins = start.is_some() && seen.begun < attempt;
        let promise = view.promise.as_ref().map(|promise| promise.promised.start);
        let waits = view.phase.ended().is_none() && start.is_none();
        if let Some(latest) = promise.filter(|_| seen.open.is_none() && (waits || begins)) {
            self.given += 1;
            seen.open = Some(latest);
        }
        if let Some(latest) = seen.open.filter(|_| view.phase.ended().is_none()) {
            assert_eq!(promise, Some(latest), "an open promise never moves: {view:?}");
        }
        if let Some(start) = start.filter(|_| begins) {
            seen.begun = attempt;
            let judged = |latest: Timestamp| {
                let by = start.duration_since(latest);
                let late = by.is_positive();
                let judgement = if late { Judgement::Late } else { Judgement::Kept };
                (latest, judgement, late.then(|| by.as_micros() as f64 / 1e6))
            };
            seen.judged.extend(seen.open.take().map(judged));
        }
        if view.phase.ended().is_some() && !seen.ended {
            seen.ended = true;
            // It ran ahead of its window.
            let judgement = if attempt > 0 { Judgement::Kept } else { Judgement::Lost };
            seen.judged.extend(seen.open.take().map(|latest| (latest, judgement, None)));
        }
    }

    fn count(&self, judgement: Judgement) -> u64 {
        self.jobs.values().flat_map(|seen| &seen.judged).filter(|judged| judged.1 == judgement).count() as u64
    }
}

/// Compares the daemon with the reference.
#[track_caller]
fn compare(life: &mut Life, second: i64, reference: &mut Reference, what: &str) {
    for number in reference.jobs.keys().copied().collect::<Vec<_>>() {
        let view = life.job(second, number);
        reference.see(&view);
        let shown: Vec<Judged> =
            view.judged.iter().map(|judged| (judged.promised, judged.judgement, judged.by)).collect();
        assert_eq!(shown, reference.jobs[&number].judged, "{what} at {second}: {view:?}");
        for judged in &view.judged {
            let needs_cause = matches!(judged.judgement, Judgement::Late | Judgement::Lost);
            assert_eq!(judged.why.is_some(), needs_cause, "{view:?}");
        }
        let promise = view.promise.filter(|_| reference.jobs[&number].open.is_some());
        let plan = promise.as_ref().map(|promise| promise.now.map(|now| now.start));
        let is_behind = plan.is_some_and(|plan| {
            let slack = SignedDuration::from_micros(life.setup.queues[0].terms.promise_slack.ticks());
            plan.is_none_or(|plan| plan - slack > reference.jobs[&number].open.unwrap())
        });
        let at_risk = promise.as_ref().is_some_and(|promise| promise.at_risk.is_some());
        assert_eq!(at_risk, is_behind, "{what}: job {number} at {second}: {promise:?}");
    }
    let status = life.status(second);
    let all = [Judgement::Kept, Judgement::Late, Judgement::Lost, Judgement::Withdrawn];
    let expect = all.map(|judgement| reference.count(judgement));
    let open = reference.jobs.values().filter(|seen| seen.open.is_some()).count() as u64;
    let seen = [status.kept, status.late, status.lost, status.withdrawn];
    assert_eq!((status.promises, seen, status.open), (reference.given, expect, open), "{what} at {second}");
    assert_eq!(status.promises, seen.iter().sum::<u64>() + status.open, "{what} at {second}");
    let missed = status.missed.iter().filter(|missed| missed.judgement == Judgement::Late).count() as u64;
    assert_eq!(missed.min(50), status.late.min(missed), "{what}: each late promise is listed");
}

fn submission(draw: &mut impl FnMut(u64) -> u64) -> Submission {
    let (cpus, time) = (1 + draw(4), 3 + u32::try_from(draw(20)).unwrap());
    let wanted = if draw(3) == 0 { early(cpus, time) } else { job(cpus, time) };
    let retry = (draw(3) == 0).then(|| Retry { limit: 2, codes: vec![] });
    Submission { retry, restartable: draw(3) == 0, memory: Some(4096), ..wanted }
}

/// Ends of attempts that are due or happen by chance.
fn ends(
    life: &mut Life,
    second: i64,
    reference: &Reference,
    draw: &mut impl FnMut(u64) -> u64,
) -> Vec<Input> {
    let mut inputs = vec![];
    for number in reference.jobs.keys() {
        let view = life.job(second, *number);
        let is_due = matches!(&view.phase, Phase::Running(allocation) if allocation.end <= wall(second + 1));
        let ends = match &view.phase {
            Phase::Running(_) => is_due || draw(8) == 0,
            Phase::Opportunistic { .. } => draw(12) == 0,
            _ => false,
        };
        if !ends {
            continue;
        }
        let attempt = Attempt { job: *number, nth: view.attempts };
        let outcome = match draw(6) {
            0 => AttemptOutcome::Lost(LostBy::Shim),
            1 | 2 => AttemptOutcome::Ended { at: seconds(second + 1), exit: Exit::Code(3), by: None },
            _ => AttemptOutcome::Ended { at: seconds(second + 1), exit: Exit::Code(0), by: None },
        };
        inputs.push(Input::AttemptEnded(attempt, outcome));
    }
    inputs
}

/// Cancels, holds, releases or changes a job, as its user or as an operator.
fn change(life: &mut Life, second: i64, reference: &mut Reference, draw: &mut impl FnMut(u64) -> u64) {
    let numbers: Vec<i64> = reference.jobs.keys().copied().collect();
    let Some(number) = numbers.get(usize::try_from(draw(numbers.len().max(1) as u64)).unwrap()) else {
        return;
    };
    let number = *number;
    let is_own = draw(3) > 0;
    let ask = |life: &mut Life, request| {
        if is_own { life.ask_as(user(), second, request) } else { life.ask(second, request) }
    };
    let before = life.job(second, number);
    reference.see(&before);
    let judgement = if is_own { Judgement::Withdrawn } else { Judgement::Lost };
    match draw(4) {
        0 => {
            if ask(life, DaemonRequest::Cancel { job: number, array: false }).is_ok() {
                reference.taken_back(number, judgement);
                let ended = AttemptOutcome::Ended {
                    at: seconds(second),
                    exit: Exit::Signal(15),
                    by: Some(KilledBy::User),
                };
                let attempt = Attempt { job: number, nth: before.attempts };
                life.turn(second, vec![Input::AttemptEnded(attempt, ended)]);
            }
        }
        1 => {
            let held = ask(life, DaemonRequest::Hold { job: number, move_promises: true });
            if held.is_ok() && is_own {
                reference.taken_back(number, judgement);
            }
        }
        2 => drop(ask(life, DaemonRequest::Release(number))),
        _ => {
            let changes =
                Box::new(Modification { time: Some(2.0 + draw(30) as f64), ..Modification::default() });
            let request = DaemonRequest::Modify { job: number, changes, move_promises: false };
            let is_longer = |view: &JobView| view.time > before.time;
            // A job that requests less keeps its place and its promise.
            if ask(life, request).is_ok() && is_own && is_longer(&life.job(second, number)) {
                reference.taken_back(number, judgement);
            }
        }
    }
}

#[test]
fn random_lives_judge_each_promise_once() {
    let (mut late, mut withdrawn) = (0, 0);
    for (seed, policy) in (0..60u64).zip(["miser", "conservative", "easy"].into_iter().cycle()) {
        let slack = Span::from_ticks(i64::try_from(seed % 3).unwrap() * 2_000_000);
        let what = format!("{policy} with seed {seed}");
        let mut life = shared(policy, 4, slack);
        let mut draws = (0u64..).map(|nth| miserly_core::draw(seed, 46, nth));
        let mut draw = |below: u64| draws.next().unwrap() % below;
        let mut reference = Reference::default();
        let mut second = 1;
        while second < 260 {
            if draw(3) == 0 {
                let wanted = DaemonRequest::Submit(submission(&mut draw));
                if let Ok(DaemonReply::Submitted(submitted)) = life.ask_as(user(), second, wanted) {
                    reference.jobs.insert(submitted.jobs[0].number, Seen::default());
                }
            }
            compare(&mut life, second, &mut reference, &what);
            if draw(4) == 0 {
                change(&mut life, second, &mut reference, &mut draw);
                compare(&mut life, second, &mut reference, &what);
            }
            let inputs = ends(&mut life, second, &reference, &mut draw);
            // The daemon goes on, stalls, is killed, or loses processors.
            match draw(30) {
                0..=2 => {
                    second += 1 + i64::try_from(draw(5)).unwrap();
                    life.late_turn(Life::now(second), inputs);
                }
                3 => {
                    let ended = inputs.into_iter().filter_map(|input| match input {
                        Input::AttemptEnded(attempt, outcome) => Some((attempt, outcome)),
                        _ => None,
                    });
                    let absence = Absence { ended: ended.collect(), ..Absence::default() };
                    second += 1 + i64::try_from(draw(8)).unwrap();
                    life.begin(second, &absence);
                }
                4 => {
                    let online = (0..4).filter(|_| draw(4) > 0).collect();
                    second += 1;
                    life.turn(second, inputs);
                    life.turn(second, vec![Input::Online(online)]);
                }
                5 => {
                    second += 1;
                    life.turn(second, inputs);
                    life.turn(second, vec![Input::Online(vec![0, 1, 2, 3])]);
                }
                _ => {
                    second += 1;
                    life.turn(second, inputs);
                }
            }
            compare(&mut life, second, &mut reference, &what);
        }
        let judged = [Judgement::Kept, Judgement::Late, Judgement::Withdrawn].map(|of| reference.count(of));
        assert!(judged[0] > 10, "{what}: {judged:?}");
        (late, withdrawn) = (late + judged[1], withdrawn + judged[2]);
        // A daemon that loads the state counts the same.
        let before = life.status(second);
        life.begin(second, &Absence::default());
        let after = life.status(second);
        let counts = |of: &miserly_api::model::Status| {
            (of.promises, of.kept, of.late, of.lost, of.withdrawn, of.open, of.missed.clone())
        };
        assert_eq!(counts(&before), counts(&after), "{what}");
    }
    assert!(late > 10 && withdrawn > 10, "{late} late, {withdrawn} withdrawn");
}

/// The report of the daemon: a stall of 0.6 s broke the promises of jobs that were planned long before them.
#[test]
fn a_stall_within_the_slack_puts_no_promise_at_risk() {
    for (slack, at_risk) in [(0, 2), (2, 0)] {
        let mut life = Life::of_policy("miser", 1, 1);
        life.setup.queues[0].terms.promise_slack = Span::from_ticks(slack * 1_000_000);
        life.reread(0);
        let first = life.submit(1, job(1, 20));
        let [second, third] = [1, 1].map(|at| life.submit(at, job(1, 20)));
        let now = Life::now_after_stall(22, 600_000);
        let ended = AttemptOutcome::Ended { at: seconds(21), exit: Exit::Code(0), by: None };
        life.late_turn(now, vec![Input::AttemptEnded(Attempt { job: first, nth: 1 }, ended)]);
        let status = life.status(23);
        assert_eq!(status.late + status.at_risk, at_risk, "{slack}");
        assert_eq!(status.promises, 3);
        let views = [second, third].map(|number| life.job(23, number));
        assert_eq!(views.iter().filter(|view| cause(view).is_some()).count() as u64, at_risk);
        let promised = Life::second(views[1].promise.as_ref().unwrap().promised.start);
        assert_eq!(promised, 1 + 2 * 21 + slack, "the planned start and the slack");
    }
}

/// The page's report: the plan moved behind an earlier plan, and was minutes before the promise.
#[test]
fn a_plan_that_moves_later_and_stays_before_the_promise_is_no_risk() {
    let mut life = Life::new(1, 1);
    let first = life.submit(1, job(1, 100));
    let second = life.submit(1, job(1, 20));
    let third = life.submit(1, job(1, 20));
    life.end(5, first);
    let plan = life.job(5, third).promise.unwrap();
    assert!(plan.now.unwrap().start < plan.promised.start);
    let now = Life::now(30);
    let ended = AttemptOutcome::Ended { at: seconds(25), exit: Exit::Code(0), by: None };
    life.late_turn(now, vec![Input::AttemptEnded(Attempt { job: second, nth: 1 }, ended)]);
    let view = life.job(31, third);
    assert!(matches!(view.phase, Phase::Running(_)) && view.late.is_none(), "{view:?}");
    let status = life.status(31);
    assert_eq!((status.promises, status.kept, status.at_risk), (3, 3, 0));
}

/// D2: job 2 was the head of the queue under easy, failed, and waits behind another job.
#[test]
fn a_job_that_runs_again_has_no_stale_promise() {
    for (again, cause) in [
        ("retry", PromiseChangeReason::Retried),
        ("requeue", PromiseChangeReason::Requeued),
        ("loss", PromiseChangeReason::Lost),
    ] {
        let mut life = Life::of_policy("easy", 1, 1);
        let first = life.submit(1, job(1, 10));
        let retry = Some(Retry { limit: 2, codes: vec![] });
        let second = life.submit(1, Submission { retry, restartable: true, ..job(1, 10) });
        let third = life.submit(1, job(1, 50));
        assert!(life.job(2, second).promise.is_some(), "it is the head");
        life.end(3, first);
        let attempt = Attempt { job: second, nth: 1 };
        let outcome = match again {
            "retry" => AttemptOutcome::Ended { at: seconds(5), exit: Exit::Code(3), by: None },
            "loss" => AttemptOutcome::Lost(LostBy::Shim),
            _ => {
                life.ask(5, DaemonRequest::Requeue { job: second, move_promises: true }).unwrap();
                AttemptOutcome::Ended { at: seconds(5), exit: Exit::Signal(15), by: Some(KilledBy::User) }
            }
        };
        life.submit(4, job(1, 5));
        life.turn(5, vec![Input::AttemptEnded(attempt, outcome)]);
        assert!(matches!(life.job(6, third).phase, Phase::Running(_)), "{again}");
        let view = life.job(6, second);
        assert_eq!(view.phase, Phase::Queued, "{again}");
        let now = wall(6);
        assert!(
            view.promise.as_ref().is_none_or(|promise| promise.promised.start > now),
            "{again}: {view:?}"
        );
        assert_eq!(view.judged.len(), 1, "{again}: {cause:?}");
        // As head of the queue it gets a promise of its own.
        life.end(10, third);
        let status = life.status(11);
        assert_eq!(status.promises, status.kept + status.open, "{again}: {status:?}");
    }
}

/// The command begins later than the daemon recorded: the launch took its time.
#[test]
fn a_launch_after_the_promise_is_late_and_one_within_the_slack_is_kept() {
    for (launched, late) in [(1, None), (3, None), (4, Some(1.0))] {
        let mut life = Life::new(1, 1);
        life.setup.queues[0].terms.promise_slack = Span::from_ticks(2_000_000);
        life.reread(0);
        let number = life.submit(1, job(1, 20));
        let input = Input::Launched(Attempt { job: number, nth: 1 }, seconds(launched));
        life.turn(launched, vec![input]);
        let view = life.job(5, number);
        assert_eq!(view.late.map(|late| late.by), late, "{launched}");
        let status = life.status(5);
        let expect = if late.is_some() { (0, 1) } else { (1, 0) };
        assert_eq!((status.promises, (status.kept, status.late)), (1, expect), "{launched}");
        let missed: Vec<i64> = status.missed.iter().map(|missed| missed.job).collect();
        assert_eq!(missed.is_empty(), late.is_none());
    }
}

#[test]
fn a_deadline_counts_from_the_latest_start() {
    for policy in ["miser", "conservative"] {
        let mut life = Life::of_policy(policy, 1, 1);
        life.setup.queues[0].terms.promise_slack = Span::from_ticks(2_000_000);
        life.reread(0);
        life.submit(1, job(1, 20));
        let due = |second| Submission { deadline: Some(wall(second)), ..job(1, 20) };
        // It is planned for 22, promised for 24, and ends by 44.
        life.ask(1, DaemonRequest::Submit(due(43))).unwrap_err();
        let number = life.submit(1, due(44));
        let promise = life.job(1, number).promise.unwrap();
        assert_eq!([promise.promised.start, promise.promised.end].map(Life::second), [24, 44], "{policy}");
    }
}

#[test]
fn the_user_withdraws_and_an_operator_does_not() {
    for (is_own, judgement) in [(true, Judgement::Withdrawn), (false, Judgement::Lost)] {
        let mut life = shared("miser", 1, Span::ZERO);
        let wanted = |life: &mut Life| match life.ask_as(user(), 1, DaemonRequest::Submit(job(1, 20))) {
            Ok(DaemonReply::Submitted(submitted)) => submitted.jobs[0].number,
            other => panic!("{other:?}"),
        };
        let [first, second, third] = [0; 3].map(|_| wanted(&mut life));
        let ask = |life: &mut Life, request| {
            if is_own { life.ask_as(user(), 2, request) } else { life.ask(2, request) }.unwrap()
        };
        ask(&mut life, DaemonRequest::Cancel { job: second, array: false });
        assert_eq!(life.job(3, second).judged[0].judgement, judgement);
        ask(&mut life, DaemonRequest::Hold { job: third, move_promises: false });
        let view = life.job(3, third);
        let at_risk = view.promise.as_ref().and_then(|promise| promise.at_risk).map(|risk| risk.why);
        assert_eq!(at_risk, (!is_own).then_some(PromiseChangeReason::Operator), "{view:?}");
        life.end(30, first);
        life.ask(40, DaemonRequest::Release(third)).unwrap();
        assert!(life.actions(third).iter().any(|action| matches!(action, Action::Launch(_))));
        let judged: Vec<Judgement> =
            life.job(41, third).judged.iter().map(|judged| judged.judgement).collect();
        let expect = if is_own { vec![Judgement::Withdrawn, Judgement::Kept] } else { vec![Judgement::Kept] };
        assert_eq!(judged.len(), expect.len());
        let status = life.status(41);
        assert_eq!(status.promises, status.kept + status.late + status.lost + status.withdrawn + status.open);
    }
}

#[test]
fn a_submission_says_why_a_job_has_no_promise() {
    let mut life = Life::of_policy("miser", 1, 1);
    let accepted = |life: &mut Life, submission| match life.ask(1, DaemonRequest::Submit(submission)) {
        Ok(DaemonReply::Submitted(submitted)) => submitted.jobs,
        other => panic!("{other:?}"),
    };
    let held = accepted(&mut life, Submission { hold: true, ..job(1, 20) });
    let behind = accepted(&mut life, Submission { after: vec![held[0].number], ..job(1, 20) });
    let array = Some(Array { limit: Some(1), ..Array::range(1, 3, 1) });
    let array = accepted(&mut life, Submission { array, ..job(1, 20) });
    assert_eq!(held[0].no_promise, Some(NoPromise::Held));
    assert_eq!(behind[0].no_promise, Some(NoPromise::After));
    let why: Vec<Option<NoPromise>> = array.iter().map(|one| one.no_promise).collect();
    assert_eq!(why, [None, Some(NoPromise::Place), Some(NoPromise::Place)]);
    assert!(array[0].started && array[0].promise.is_some());
    let mut life = Life::of_policy("easy", 1, 1);
    life.submit(1, job(1, 20));
    life.submit(1, job(1, 20));
    assert_eq!(accepted(&mut life, job(1, 20))[0].no_promise, Some(NoPromise::Policy));
    let begin = Submission { begin: Some(wall(50)), ..job(1, 20) };
    assert_eq!(accepted(&mut life, begin)[0].no_promise, Some(NoPromise::Begin));
}

/// The machine was off at the promised start. The job runs after it, ahead of the window that it has now.
#[test]
fn a_job_that_runs_ahead_of_its_window_is_late_if_its_promise_has_passed() {
    let mut life = shared("easy", 4, Span::ZERO);
    let first = life.submit(1, job(2, 14));
    let ahead = life.submit(1, early(3, 31));
    let latest = life.job(1, ahead).promise.unwrap().promised.start;
    assert!(life.actions(ahead).iter().any(|action| matches!(action, Action::Launch(_))));
    let never_ran = |job| (Attempt { job, nth: 1 }, AttemptOutcome::NeverRan);
    life.begin(34, &Absence { ended: vec![never_ran(first), never_ran(ahead)], ..Absence::default() });
    assert!(matches!(life.job(35, ahead).phase, Phase::Opportunistic { .. }));
    let outcome = AttemptOutcome::Ended { at: seconds(45), exit: Exit::Code(0), by: None };
    life.turn(45, vec![Input::AttemptEnded(Attempt { job: ahead, nth: 2 }, outcome)]);
    let view = life.job(46, ahead);
    let start = view.phase.started().unwrap();
    assert_eq!(Life::second(start), 34, "the run that took place: {view:?}");
    let by = start.duration_since(latest).as_secs_f64();
    let judged: Vec<_> = view.judged.iter().map(|judged| (judged.judgement, judged.by)).collect();
    assert_eq!(judged, [(Judgement::Late, Some(by))]);
}

/// A plan that moves while the job is being ended gives no other promise.
#[test]
fn a_job_that_is_cancelled_ahead_of_its_window_has_one_promise() {
    let mut life = Life::new(1, 2);
    let first = life.submit(1, job(1, 49));
    let ahead = life.submit(1, early(1, 20));
    life.ask(2, DaemonRequest::Cancel { job: ahead, array: false }).unwrap();
    // Its window would begin now.
    life.end(3, first);
    let status = life.status(4);
    assert_eq!((status.promises, status.kept, status.withdrawn, status.open), (2, 1, 1, 0));
}
