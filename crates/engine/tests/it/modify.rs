//! Changes of waiting jobs, and the promises that they move.

use std::sync::Arc;

use miserly_api::model::{
    Condition, JobChange, Modification, Moves, NewEnvironment, Problem, ProblemCode, PromiseChangeReason,
    RawVariable, Submission, TimeBound, When,
};
use miserly_engine::{
    Absence, Account, Action, Caller, Credential, DaemonReply, DaemonRequest, Limits, UserLimits,
};

use super::life::{CLEANUP, Life, job, queue, wall};

/// Returns a user with an account.
fn user(uid: u32) -> Caller {
    let account = Some(Arc::new(Account { name: format!("user{uid}"), ..Account::default() }));
    Caller { account, credential: Some(Credential::from("a seal".to_owned())), ..Caller::new(uid) }
}

fn modify(life: &mut Life, second: i64, job: i64, changes: Modification) -> Result<Moves, Problem> {
    let question = DaemonRequest::Modify { job, changes: Box::new(changes), move_promises: false };
    life.ask(second, question).map(moves)
}

fn preview(life: &mut Life, second: i64, job: i64, change: JobChange) -> Result<Moves, Problem> {
    life.ask(second, DaemonRequest::Preview { job, change: Box::new(change) }).map(moves)
}

fn moves(reply: DaemonReply) -> Moves {
    match reply {
        DaemonReply::Moves(moves) => *moves,
        other => panic!("{other:?}"),
    }
}

fn time(time: f64) -> Modification {
    Modification { time: Some(time), ..Modification::default() }
}

fn cpus(cpus: u64) -> Modification {
    Modification { cpus: Some(cpus), ..Modification::default() }
}

fn before(job: i64) -> Modification {
    Modification { before: Some(job), ..Modification::default() }
}

/// Returns the second at which a job is promised to start at the latest.
#[track_caller]
fn promised(life: &mut Life, second: i64, job: i64) -> i64 {
    Life::second(life.job(second, job).promise.unwrap().now.unwrap().start)
}

/// Checks the latest starts of a job before and after a change, and those of all others that move.
#[track_caller]
fn check(moves: &Moves, own: (i64, i64), others: &[(i64, i64, i64)]) {
    let start = |window: Option<miserly_api::model::Window>| Life::second(window.unwrap().start);
    assert_eq!((start(moves.before), start(moves.after)), own);
    let other = |one: &miserly_api::model::MovedPromise| {
        (one.job, Life::second(one.before), Life::second(one.after.unwrap()))
    };
    assert_eq!(moves.moved.iter().map(other).collect::<Vec<_>>(), others);
    assert_eq!(moves.count, others.len() as u64);
}

/// Three jobs of a processor: one runs until 21, the second is promised 22, the third 33.
fn three() -> (Life, [i64; 3]) {
    let mut life = Life::new(1, 1);
    let jobs = [20, 10, 10].map(|time| life.submit(1, job(1, time)));
    assert_eq!((promised(&mut life, 1, jobs[1]), promised(&mut life, 1, jobs[2])), (22, 33));
    (life, jobs)
}

#[test]
fn a_shorter_job_keeps_its_place_and_others_move_up() {
    let (mut life, [_, second, third]) = three();
    let expected = preview(&mut life, 2, second, JobChange::Modify(Box::new(time(4.0)))).unwrap();
    assert_eq!(promised(&mut life, 2, third), 33, "a preview changes nothing");
    let found = modify(&mut life, 2, second, time(4.0)).unwrap();
    assert_eq!(found, expected);
    check(&found, (22, 22), &[(third, 33, 27)]);
    let view = life.job(2, second);
    assert!((view.time - 4.0).abs() < 1e-9);
    assert_eq!(view.promise.unwrap().history.len(), 1, "it keeps its promise");
    // It starts with its new limit, and once only.
    life.end(21, 1);
    let launches = |life: &Life| {
        life.actions(second).iter().filter(|action| matches!(action, Action::Launch(_))).count()
    };
    assert_eq!(launches(&life), 1);
    assert_eq!(life.unkept(21), 0);
}

/// The first job ends when it was planned to, so no earlier place is found for the smaller one.
#[test]
fn a_narrower_job_starts_in_its_place_with_its_own_processors() {
    let mut life = Life::of_policy("conservative", 4, 4);
    let first = life.submit(1, job(4, 20));
    let second = life.submit(2, job(4, 20));
    modify(&mut life, 3, second, cpus(3)).unwrap();
    let end = 21 + CLEANUP;
    life.end(end, first);
    life.actions(first);
    let actions = life.actions(second);
    assert!(matches!(&actions[..], [Action::Launch(launch)] if launch.cpus == [0, 1, 2]), "{actions:?}");
}

#[test]
fn a_larger_job_gets_another_promise_and_moves_no_other() {
    let (mut life, [_, second, third]) = three();
    let last = life.submit(1, job(1, 10));
    // Its place is too small now. The others move up after it has its new window.
    let found = modify(&mut life, 2, second, time(15.0)).unwrap();
    check(&found, (22, 44), &[(third, 33, 22), (last, 44, 33)]);
    // At last it moves up itself.
    let history = life.job(2, second).promise.unwrap().history;
    let reasons: Vec<PromiseChangeReason> = history.iter().map(|change| change.why).collect();
    let expected =
        [PromiseChangeReason::Submitted, PromiseChangeReason::Modified, PromiseChangeReason::Earlier];
    assert_eq!(reasons, expected);
    assert_eq!(life.unkept(2), 0);
}

/// Changes of all kinds never break a promise, and every job starts by the promise that it had last.
#[test]
fn no_sequence_of_changes_breaks_a_promise() {
    for (nth, policy) in
        ["miser", "conservative", "easy", "conservative(keep_reservations=false)"].iter().enumerate()
    {
        let mut draws = (0u64..).map(|draw| miserly_core::draw(nth as u64, 7, draw));
        let mut draw = |below: u64| draws.next().unwrap() % below;
        let mut life = Life::of_policy(policy, 4, 4);
        let mut jobs = vec![];
        let mut count = 0;
        for second in 1..600 {
            for number in jobs.clone() {
                let view = life.job(second, number);
                let Some(start) = view.phase.started() else { continue };
                if (second - Life::second(start)) as f64 >= view.time || draw(8) == 0 {
                    life.end(second, number);
                    jobs.retain(|job| *job != number);
                }
            }
            match draw(4) {
                0 => {
                    let (cpus, time) = (1 + draw(4), 1 + draw(30));
                    jobs.push(life.submit(second, job(cpus, u32::try_from(time).unwrap())));
                }
                1 if !jobs.is_empty() => {
                    let number = jobs[usize::try_from(draw(jobs.len() as u64)).unwrap()];
                    let other = jobs[usize::try_from(draw(jobs.len() as u64)).unwrap()];
                    let changes = match draw(5) {
                        0 => cpus(1 + draw(4)),
                        1 => time((1 + draw(30)) as f64),
                        2 => before(other),
                        3 => Modification { begin: Some(wall(second + 10)), ..cpus(1 + draw(4)) },
                        _ => Modification { remove: vec![TimeBound::Begin], ..Modification::default() },
                    };
                    let expected =
                        preview(&mut life, second, number, JobChange::Modify(Box::new(changes.clone())));
                    let found = modify(&mut life, second, number, changes);
                    assert_eq!(found, expected, "{policy}");
                    if let Ok(moves) = found {
                        count += 1;
                        let window = life.job(second, number).promise.and_then(|promise| promise.now);
                        assert_eq!(window, moves.after.filter(|_| window.is_some()), "{policy}");
                    }
                }
                _ => {}
            }
            life.turn(second, vec![]);
            assert_eq!(life.unkept(second), 0, "{policy} at {second}");
        }
        assert!(count > 20, "{policy}: {count} changes");
    }
}

#[test]
fn a_running_job_is_not_changed() {
    let (mut life, [first, ..]) = three();
    let problem = modify(&mut life, 2, first, time(5.0)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Conflict);
    assert!(problem.message.contains("miserly extend"), "{problem}");
}

#[test]
fn a_job_takes_the_place_of_another_of_its_user() {
    let (mut life, [_, second, third]) = three();
    let found = modify(&mut life, 2, third, before(second)).unwrap();
    check(&found, (33, 22), &[(second, 22, 33)]);
    assert_eq!((promised(&mut life, 2, third), promised(&mut life, 2, second)), (22, 33));
    for (one, other, reason) in
        [(third, second, "already"), (third, third, "already"), (second, 1, "same queue")]
    {
        let problem = modify(&mut life, 3, one, before(other)).unwrap_err();
        assert!(problem.code == ProblemCode::Conflict && problem.message.contains(reason), "{problem}");
    }
    // The next daemon has the same state.
    life.begin(4, &Absence::default());
    assert_eq!((promised(&mut life, 4, third), promised(&mut life, 4, second)), (22, 33));
}

#[test]
fn the_places_of_other_users_stay() {
    let mut life = Life::of_policy("easy", 1, 1);
    life.info.runs_as_users = true;
    life.begin(1, &Absence::default());
    life.submit(1, job(1, 20));
    let submit = |life: &mut Life, uid| {
        let question = DaemonRequest::Submit(job(1, 10));
        match life.ask_as(user(uid), 1, question).unwrap() {
            DaemonReply::Submitted(submitted) => submitted.jobs[0].number,
            other => panic!("{other:?}"),
        }
    };
    let [mine, others, again] = [0, 7, 0].map(|uid| submit(&mut life, uid));
    modify(&mut life, 2, again, before(mine)).unwrap();
    let mut order = vec![];
    for second in [21, 31, 41] {
        let running = if order.is_empty() { 1 } else { order[order.len() - 1] };
        life.end(second, running);
        let started = [mine, others, again]
            .into_iter()
            .find(|job| !order.contains(job) && life.job(second, *job).phase.started().is_some());
        order.extend(started);
    }
    assert_eq!(order, [again, others, mine]);
}

#[test]
fn more_resources_cost_the_place() {
    let mut life = Life::of_policy("fcfs", 2, 2);
    life.submit(1, job(2, 20));
    let [first, second] = [1, 1].map(|_| life.submit(1, job(2, 10)));
    modify(&mut life, 2, first, time(11.0)).unwrap();
    life.end(21, 1);
    assert!(life.job(21, second).phase.started().is_some());
    let third = life.submit(22, job(2, 10));
    modify(&mut life, 22, first, time(10.0)).unwrap();
    life.end(31, second);
    assert!(life.job(31, first).phase.started().is_some());
    assert!(life.job(31, third).phase.started().is_none());
}

#[test]
fn held_and_deferred_jobs_are_changed_without_a_round() {
    let mut life = Life::of_policy("easy", 2, 2);
    let held = life.submit(1, Submission { hold: true, ..job(1, 10) });
    let later = life.submit(1, Submission { begin: Some(wall(50)), ..job(1, 10) });
    for number in [held, later] {
        let found = modify(&mut life, 2, number, cpus(2)).unwrap();
        assert_eq!((found.before, found.after), (None, None));
        assert_eq!(life.job(2, number).cpus, 2);
    }
    // Without its earliest start it begins at once.
    let remove = Modification { remove: vec![TimeBound::Begin], ..Modification::default() };
    modify(&mut life, 3, later, remove).unwrap();
    let view = life.job(3, later);
    assert!(view.phase.started().is_some() && view.begin.is_none());
    life.ask(4, DaemonRequest::Release(held)).unwrap();
    life.end(5, later);
    assert!(life.job(5, held).phase.started().is_some());
}

#[test]
fn a_job_changes_its_queue() {
    let mut life = Life::new(2, 2);
    let calendar = life.setup.queues[0].pool.clone();
    life.setup.queues.push(miserly_engine::Queue { pool: calendar, ..queue("other", "fcfs") });
    life.setup.queues[0].pool = miserly_core::Calendar::constant(miserly_core::Resources::cpus(1));
    life.setup.queues[1].pool = miserly_core::Calendar::constant(miserly_core::Resources::cpus(1));
    life.reread(1);
    let [_, second] = [20, 10].map(|time| life.submit(1, Submission { memory: Some(4096), ..job(1, time) }));
    let to = |queue: &str| Modification { queue: Some(queue.to_owned()), ..Modification::default() };
    let problem = modify(&mut life, 2, second, to("nowhere")).unwrap_err();
    assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::NotFound, Some("queue")));
    let found = modify(&mut life, 2, second, to("other")).unwrap();
    assert!(found.before.is_some());
    let view = life.job(2, second);
    assert_eq!(view.queue, "other");
    assert!(view.phase.started().is_some(), "{view:?}");
}

#[test]
fn deadlines_and_limits_hold_for_changes() {
    let (mut life, [_, second, third]) = three();
    let deadline = |at| Modification { deadline: Some(wall(at)), ..Modification::default() };
    let problem = modify(&mut life, 2, third, deadline(30)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Refused);
    modify(&mut life, 2, third, deadline(60)).unwrap();
    assert_eq!(life.job(2, third).deadline, Some(wall(60)));
    for (changes, field) in [(cpus(2), "cpus"), (time(-1.0), "time"), (time(0.0), "time")] {
        let problem = modify(&mut life, 2, second, changes).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(field), "{problem}");
    }
    let problem = modify(&mut life, 2, second, Modification::default()).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Malformed);
    let other = Caller::new(5);
    let question = DaemonRequest::Modify { job: second, changes: Box::new(time(3.0)), move_promises: false };
    assert_eq!(life.ask_as(other.clone(), 2, question).unwrap_err().code, ProblemCode::Forbidden);
    assert_eq!((promised(&mut life, 2, second), promised(&mut life, 2, third)), (22, 33));
}

#[test]
fn limits_of_a_user_count_the_changed_job_once() {
    let mut life = Life::new(1, 1);
    let each = Limits { cpu_time: Some(25_000_000), ..Limits::default() };
    life.setup.user_limits = UserLimits { each, tables: vec![] };
    life.info.runs_as_users = true;
    life.begin(1, &Absence::default());
    let user = user(5);
    let mut submitted = vec![];
    for time in [10, 10] {
        match life.ask_as(user.clone(), 1, DaemonRequest::Submit(job(1, time))).unwrap() {
            DaemonReply::Submitted(reply) => submitted.push(reply.jobs[0].number),
            other => panic!("{other:?}"),
        }
    }
    let mut change = |seconds: f64| {
        let changes = Box::new(time(seconds));
        life.ask_as(
            user.clone(),
            2,
            DaemonRequest::Modify { job: submitted[1], changes, move_promises: false },
        )
    };
    assert!(change(15.0).is_ok());
    assert_eq!(change(16.0).unwrap_err().code, ProblemCode::Refused);
    assert!(change(5.0).is_ok() && change(15.0).is_ok());
}

#[test]
fn a_later_end_is_refused_while_a_promise_depends_on_it() {
    let mut life = Life::new(1, 1);
    life.submit(1, job(1, 20));
    let first = life.submit(1, job(1, 10));
    let dependent = life.submit(1, Submission { after: vec![first], ..job(1, 5) });
    assert_eq!(promised(&mut life, 1, dependent), 33);
    let problem = modify(&mut life, 2, first, time(12.0)).unwrap_err();
    assert_eq!((problem.code, problem.job), (ProblemCode::Refused, Some(dependent)));
    let expected = preview(&mut life, 2, first, JobChange::Modify(Box::new(time(12.0)))).unwrap();
    assert_eq!((expected.count, expected.moved[0].job, expected.moved[0].after), (1, dependent, None));
    let changes = Box::new(time(12.0));
    life.ask(2, DaemonRequest::Modify { job: first, changes, move_promises: true }).unwrap();
    assert_eq!(promised(&mut life, 2, dependent), 35);
}

#[test]
fn previews_of_hold_requeue_and_extend_change_nothing() {
    let (mut life, [first, second, third]) = three();
    let lines = life.lines().len();
    let hold = preview(&mut life, 2, second, JobChange::Hold).unwrap();
    assert!(hold.before.is_some() && hold.after.is_none());
    let extend = preview(&mut life, 2, third, JobChange::Extend(7.0)).unwrap();
    check(&extend, (33, 33), &[]);
    assert_eq!(Life::second(extend.after.unwrap().end), 50);
    let problem = preview(&mut life, 2, first, JobChange::Extend(7.0)).unwrap_err();
    assert_eq!((problem.code, problem.job), (ProblemCode::Refused, Some(second)));
    let requeue = preview(&mut life, 2, first, JobChange::Requeue).unwrap();
    assert_eq!(Life::second(requeue.before.unwrap().start), 1);
    assert!(Life::second(requeue.after.unwrap().start) >= 24, "{requeue:?}");
    assert_eq!(preview(&mut life, 2, second, JobChange::Requeue).unwrap_err().code, ProblemCode::Conflict);
    assert_eq!(life.lines().len(), lines);
    assert_eq!((promised(&mut life, 2, second), promised(&mut life, 2, third)), (22, 33));
}

#[test]
fn previews_of_cancel_and_release_are_what_then_happens() {
    let (mut life, [first, second, third]) = three();
    let lines = life.lines().len();
    let waiting = preview(&mut life, 2, second, JobChange::Cancel).unwrap();
    assert_eq!((waiting.before.map(|window| Life::second(window.start)), waiting.after), (Some(22), None));
    let moved: Vec<_> = waiting.moved.iter().map(|one| (one.job, one.after.map(Life::second))).collect();
    assert_eq!(moved, [(third, Some(22))]);
    let running = preview(&mut life, 2, first, JobChange::Cancel).unwrap();
    assert_eq!(running.after, None);
    assert_eq!(running.moved.iter().map(|moved| moved.job).collect::<Vec<_>>(), [second, third]);
    assert_eq!(preview(&mut life, 2, second, JobChange::Release).unwrap_err().code, ProblemCode::Conflict);
    assert_eq!(life.lines().len(), lines);
    life.ask(2, DaemonRequest::Hold { job: second, move_promises: false }).unwrap();
    assert_eq!(promised(&mut life, 2, third), 22);
    let released = preview(&mut life, 3, second, JobChange::Release).unwrap();
    assert_eq!((released.before, released.count), (None, 0));
    life.ask(3, DaemonRequest::Release(second)).unwrap();
    assert_eq!(promised(&mut life, 3, second), Life::second(released.after.unwrap().start));
}

#[test]
fn a_cancel_tells_which_dependents_never_run() {
    let (mut life, [_, second, third]) = three();
    let after = |life: &mut Life, of: i64, when: When| {
        let conditions = vec![Condition { when, job: Some(of), ..Condition::default() }];
        life.submit(1, Submission { conditions, ..job(1, 5) })
    };
    let needs = after(&mut life, second, When::Ok);
    let needs_that = after(&mut life, needs, When::Ok);
    let any = after(&mut life, second, When::Any);
    let moves = preview(&mut life, 2, second, JobChange::Cancel).unwrap();
    assert_eq!(moves.over, [needs, needs_that]);
    let has = |number: i64| moves.moved.iter().any(|moved| moved.job == number);
    assert!(has(third) && !has(needs) && !has(needs_that), "{moves:?}");
    life.ask(2, DaemonRequest::Cancel { job: second, array: false }).unwrap();
    for number in [needs, needs_that] {
        assert!(life.job(3, number).phase.ended().is_some());
    }
    assert!(life.job(3, any).phase.ended().is_none());
}

#[test]
fn a_release_without_a_window_leaves_the_job_held() {
    let (mut life, [_, _, third]) = three();
    let hold = DaemonRequest::Hold { job: third, move_promises: false };
    life.ask(2, hold).unwrap();
    let deadline = Modification { deadline: Some(wall(20)), ..Modification::default() };
    modify(&mut life, 2, third, deadline).unwrap();
    let refused = preview(&mut life, 2, third, JobChange::Release).unwrap_err();
    assert_eq!(refused.code, ProblemCode::Refused);
    assert_eq!(life.ask(2, DaemonRequest::Release(third)).unwrap_err().code, ProblemCode::Refused);
    assert!(life.job(2, third).phase.ended().is_none(), "it is held");
}

#[test]
fn jobs_of_an_array_keep_their_order_behind_one_that_moves_forward() {
    for policy in ["conservative", "easy"] {
        let mut life = Life::of_policy(policy, 1, 1);
        let array = Some(miserly_api::model::Array::range(0, 5, 1));
        let first = life.submit(1, Submission { array, ..job(1, 10) });
        // The first runs. The fifth takes the place of the third.
        modify(&mut life, 2, first + 4, before(first + 2)).unwrap();
        let expected = [0, 1, 4, 2, 3, 5].map(|index| first + index);
        for (nth, number) in (0..).zip(expected) {
            assert!(life.job(2 + 10 * nth, number).phase.started().is_some(), "{policy}: {number}");
            life.end(11 + 10 * nth, number);
        }
    }
}

#[test]
fn a_job_that_is_passed_keeps_the_promises_to_its_dependents() {
    let mut life = Life::of_policy("conservative", 1, 1);
    life.submit(1, job(1, 20));
    let [passed, last] = [10, 10].map(|time| life.submit(1, job(1, time)));
    let dependent = life.submit(1, Submission { after: vec![passed], ..job(1, 5) });
    promised(&mut life, 1, dependent);
    let problem = modify(&mut life, 2, last, before(passed)).unwrap_err();
    assert_eq!((problem.code, problem.job), (ProblemCode::Refused, Some(dependent)));
    let moves = preview(&mut life, 2, last, JobChange::Modify(Box::new(before(passed)))).unwrap();
    let jobs: Vec<i64> = moves.moved.iter().map(|moved| moved.job).collect();
    assert_eq!((jobs, moves.count), (vec![passed, dependent], 2));
    assert_eq!(life.unkept(2), 0);
}

#[test]
fn an_extension_beyond_the_calendar_is_shown_with_its_last_day() {
    let mut life = Life::of_policy("easy", 1, 1);
    let running = life.submit(1, job(1, 20));
    let moves = preview(&mut life, 2, running, JobChange::Extend(3e11)).unwrap();
    assert_eq!(moves.after.unwrap().end, jiff::Timestamp::MAX);
}

#[test]
fn a_repeated_submission_finds_a_job_that_was_changed() {
    let (mut life, _) = three();
    let named = Submission { request_id: Some("once".to_owned()), ..job(1, 10) };
    let number = life.submit(2, named.clone());
    modify(&mut life, 3, number, time(5.0)).unwrap();
    assert_eq!(life.submit(4, named), number);
}

#[test]
fn a_deferred_job_that_enters_another_queue_is_tried_first() {
    let mut life = Life::of_policy("easy", 2, 2);
    let half = || miserly_core::Calendar::constant(miserly_core::Resources::cpus(1));
    life.setup.queues[0].pool = half();
    life.setup.queues.push(miserly_engine::Queue { pool: half(), ..queue("other", "conservative") });
    life.reread(1);
    let later = Submission { begin: Some(wall(50)), memory: Some(4096), ..job(1, 10) };
    let number = life.submit(1, later);
    let changes = |deadline| Modification {
        queue: Some("other".to_owned()),
        deadline: Some(wall(deadline)),
        ..Modification::default()
    };
    assert_eq!(modify(&mut life, 2, number, changes(55)).unwrap_err().code, ProblemCode::Refused);
    let view = life.job(2, number);
    assert!(view.phase.ended().is_none() && view.queue == "batch", "{view:?}");
    assert!(modify(&mut life, 2, number, changes(100)).unwrap().after.is_some());
    assert_eq!(promised(&mut life, 2, number), 50);
}

#[test]
fn a_new_environment_keeps_the_place_and_the_job_starts_with_it() {
    let (mut life, [_, second, _]) = three();
    let raw = || vec![RawVariable { name: b"B".to_vec(), value: vec![0xff] }];
    let environment = NewEnvironment { text: [("A".to_owned(), "1".to_owned())].into(), bytes: raw() };
    let changes = Modification { environment: Some(Box::new(environment)), ..Modification::default() };
    check(&modify(&mut life, 2, second, changes).unwrap(), (22, 22), &[]);
    life.end(21, 1);
    let launched = life.actions(second).into_iter().find_map(|action| match action {
        Action::Launch(launch) => Some(launch.submission.clone()),
        _ => None,
    });
    let launched = launched.expect("a launch");
    assert_eq!(
        (launched.environment.get("A").map(String::as_str), launched.environment_bytes.clone()),
        (Some("1"), raw())
    );
    let running = Modification { environment: Some(Box::default()), ..Modification::default() };
    assert!(modify(&mut life, 22, second, running).unwrap_err().message.contains("has begun to run"));
}
