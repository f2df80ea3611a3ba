//! Reservations of operators: parts of a pool for some users, at some times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miserly_api::model::{
    JobView, Phase, Possible, Problem, ProblemCode, Reservation, ReservedTime, Submission, WaitReason, Window,
};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_engine::{
    Absence, Account, Action, Attempt, AttemptOutcome, Caller, DaemonReply, DaemonRequest, Input, Queue,
};

use super::life::{CLEANUP, Life, early, job, queue, wall};

/// A reservation of 6 processors for Ada.
fn course(times: &[(i64, i64)]) -> Reservation {
    Reservation {
        name: "course".to_owned(),
        cpus: 6,
        users: vec!["ada".to_owned()],
        times: times.iter().map(|(from, to)| ReservedTime { from: wall(*from), to: wall(*to) }).collect(),
        ..Reservation::default()
    }
}

fn reserve(life: &mut Life, second: i64, wanted: Reservation) -> Result<Reservation, Problem> {
    match life.ask(second, DaemonRequest::Reserve(Box::new(wanted)))? {
        DaemonReply::Reservations(mut made) => Ok(made.remove(0)),
        other => panic!("{other:?}"),
    }
}

fn reservations(life: &mut Life, second: i64) -> Vec<Reservation> {
    match life.ask(second, DaemonRequest::Reservations).unwrap() {
        DaemonReply::Reservations(all) => all,
        other => panic!("{other:?}"),
    }
}

fn in_course(cpus: u64, time: u32) -> Submission {
    Submission { queue: Some("course".to_owned()), ..job(cpus, time) }
}

/// Returns the latest start of a job.
#[track_caller]
fn start(view: &JobView) -> i64 {
    Life::second(view.promise.as_ref().and_then(|promise| promise.now).expect("it has a promise").start)
}

fn ada() -> Caller {
    let account = Account { name: "ada".to_owned(), groups: vec![] };
    Caller { account: Some(Arc::new(account)), ..Caller::new(1001) }
}

#[test]
fn other_jobs_are_planned_around_it_and_its_own_within_it() {
    let mut life = Life::new(8, 8);
    let running = life.submit(1, job(8, 80));
    let made = reserve(&mut life, 2, course(&[(100, 200)])).unwrap();
    assert_eq!((made.queue.as_deref(), made.memory), (Some("batch"), Some(750 * 1024)));
    let [wide, small, own, second] = [
        life.submit(3, job(8, 120)),
        life.submit(3, Submission { memory: Some(4096), ..job(2, 40) }),
        life.submit(3, in_course(6, 60)),
        life.submit(3, in_course(6, 30)),
    ];
    let starts = [wide, small, own, second].map(|job| start(&life.job(4, job)));
    assert_eq!(starts, [200, 80 + CLEANUP + 1, 100, 160 + CLEANUP]);
    let reason = WaitReason::Reservation { name: "course".to_owned(), from: wall(100), to: wall(200) };
    life.end(5, running);
    assert_eq!(life.job(6, own).reasons, [reason]);
    assert!(matches!(life.job(7, small).phase, Phase::Running(_)));
    assert_eq!(life.job(101, own).phase, life.job(102, own).phase);
    assert!(matches!(life.job(102, own).phase, Phase::Running(_)));
    // The rules of the queue of the configuration apply, such as its prolog.
    let launched = life.actions(own).into_iter().find_map(|action| match action {
        Action::Launch(launch) => Some((launch.queue, launch.configured_queue)),
        _ => None,
    });
    assert_eq!(launched, Some(("course".to_owned(), "batch".to_owned())));
    assert_eq!(life.unkept(103), 0);
}

#[test]
fn only_its_users_and_operators_use_it_and_only_operators_make_it() {
    let mut life = Life::new(8, 8);
    life.info.runs_as_users = true;
    life.begin(1, &Absence::default());
    let wanted = DaemonRequest::Reserve(Box::new(course(&[(100, 200)])));
    let problem = life.ask_as(ada(), 1, wanted).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Forbidden);
    reserve(&mut life, 2, course(&[(100, 200)])).unwrap();
    life.ask_as(ada(), 3, DaemonRequest::Submit(in_course(1, 5))).unwrap();
    let bob = Caller {
        account: Some(Arc::new(Account { name: "bob".to_owned(), groups: vec![] })),
        ..Caller::new(1002)
    };
    let problem = life.ask_as(bob, 3, DaemonRequest::Submit(in_course(1, 5))).unwrap_err();
    assert_eq!((problem.code, problem.field.as_deref()), (ProblemCode::Forbidden, Some("queue")));
    let problem = life.ask_as(ada(), 4, DaemonRequest::RemoveReservation("course".to_owned())).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Forbidden);
}

#[test]
fn a_promise_or_a_running_job_in_its_way_refuses_it() {
    let mut life = Life::new(8, 8);
    life.submit(1, job(4, 120));
    let problem = reserve(&mut life, 2, course(&[(100, 200)])).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Refused);
    // The running job ends at 121, and its cleanup time a second later.
    let free = 121 + CLEANUP;
    let window = |start| Some(Possible::Reservation(Window { start: wall(start), end: wall(start + 100) }));
    assert_eq!(problem.possible, window(free));
    assert_eq!(reservations(&mut life, 3), []);
    reserve(&mut life, 4, course(&[(free, free + 100)])).unwrap();
    // No two reservations have the same processors.
    let other = Reservation { name: "other".to_owned(), ..course(&[(300, 400)]) };
    reserve(&mut life, 5, other.clone()).unwrap();
    let third = Reservation { name: "third".to_owned(), ..course(&[(210, 310)]) };
    let problem = reserve(&mut life, 5, third).unwrap_err();
    assert!(problem.message.contains("of the pool of queue batch, 2 cpus"), "{problem}");
    assert_eq!(problem.possible, window(400));
    // A promise.
    life.submit(6, job(8, 30));
    let wide = life.submit(6, job(8, 30));
    let at = start(&life.job(7, wide));
    let fourth = Reservation { name: "fourth".to_owned(), ..course(&[(at + 5, at + 6)]) };
    assert_eq!(reserve(&mut life, 7, fourth).unwrap_err().code, ProblemCode::Refused);
    assert_eq!(life.unkept(8), 0);
}

#[test]
fn a_running_job_is_not_extended_into_it() {
    for policy in ["miser", "easy", "conservative"] {
        let mut life = Life::of_policy(policy, 8, 8);
        let running = life.submit(1, job(4, 50));
        reserve(&mut life, 2, course(&[(100, 200)])).unwrap();
        let extend = |by| DaemonRequest::Extend { job: running, by };
        let problem = life.ask(3, extend(60.0)).unwrap_err();
        // It may last until 99 and its cleanup time until 100, which is 48 seconds more.
        assert_eq!(
            (problem.code, problem.possible),
            (ProblemCode::Refused, Some(Possible::Extension(48))),
            "{policy}"
        );
        life.ask(4, extend(48.0)).unwrap();
        let own = life.submit(5, in_course(6, 90));
        assert_eq!(start(&life.job(6, own)), 100);
    }
}

#[test]
fn what_is_no_reservation() {
    let mut life = Life::new(8, 8);
    let good = course(&[(100, 200)]);
    let bad = |field: &str, wanted: Reservation, life: &mut Life| {
        let problem = reserve(life, 1, wanted).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(field), "{problem}");
    };
    bad("name", Reservation { name: "a b".to_owned(), ..good.clone() }, &mut life);
    bad("name", Reservation { name: "batch".to_owned(), ..good.clone() }, &mut life);
    bad("queue", Reservation { queue: Some("none".to_owned()), ..good.clone() }, &mut life);
    bad("cpus", Reservation { cpus: 9, ..good.clone() }, &mut life);
    bad("cpus", Reservation { cpus: 0, ..good.clone() }, &mut life);
    bad("memory", Reservation { memory: Some(4095), ..good.clone() }, &mut life);
    bad("gpus", Reservation { gpus: 1, ..good.clone() }, &mut life);
    bad("users", Reservation { users: vec![], ..good.clone() }, &mut life);
    bad("policy", Reservation { policy: Some("gang".to_owned()), ..good.clone() }, &mut life);
    bad("policy", Reservation { policy: Some("none".to_owned()), ..good.clone() }, &mut life);
    bad("times", course(&[]), &mut life);
    bad("times", course(&[(200, 100)]), &mut life);
    bad("times", course(&[(-5, 1)]), &mut life);
    bad("times", course(&[(100, 200), (150, 250)]), &mut life);
    let mut gang = Life::of_policy("gang", 8, 8);
    bad("queue", good, &mut gang);
}

#[test]
fn it_survives_a_restart_and_a_reload_and_goes_when_it_is_over() {
    let mut life = Life::new(8, 8);
    reserve(&mut life, 1, course(&[(100, 200), (300, 400)])).unwrap();
    // No time of it is so long.
    let problem = life.ask(2, DaemonRequest::Submit(in_course(6, 150))).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Refused);
    let own = life.submit(3, in_course(6, 90));
    life.begin(5, &Absence::default());
    life.reread(6);
    assert_eq!(start(&life.job(7, own)), 100);
    let listed = reservations(&mut life, 8).remove(0);
    assert_eq!((listed.times.len(), listed.jobs), (2, 1));
    let problem = life.ask(9, DaemonRequest::RemoveReservation("course".to_owned())).unwrap_err();
    assert_eq!((problem.code, problem.job), (ProblemCode::Conflict, Some(own)));
    life.turn(120, vec![]);
    assert!(matches!(life.job(120, own).phase, Phase::Running(_)));
    life.begin(130, &Absence::default());
    life.end(150, own);
    let wide = life.submit(250, job(8, 80));
    assert_eq!(start(&life.job(250, wide)), 400);
    life.turn(401, vec![]);
    assert_eq!(reservations(&mut life, 402), []);
    let problem = life.ask(402, DaemonRequest::Submit(in_course(1, 5))).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
    assert!(matches!(life.job(403, wide).phase, Phase::Running(_)));
    // What has ended is still there.
    assert_eq!(&*life.job(403, own).queue, "course");
    reserve(&mut life, 404, course(&[(500, 600)])).unwrap();
}

#[test]
fn a_removed_reservation_gives_its_part_back() {
    let mut life = Life::new(8, 8);
    reserve(&mut life, 1, course(&[(10, 200)])).unwrap();
    let wide = life.submit(2, job(8, 50));
    let view = life.job(3, wide);
    let reason = WaitReason::Reservation { name: "course".to_owned(), from: wall(10), to: wall(200) };
    assert_eq!((start(&view), view.reasons), (200, vec![reason]));
    life.ask(4, DaemonRequest::RemoveReservation("course".to_owned())).unwrap();
    assert!(matches!(life.job(5, wide).phase, Phase::Running(_)), "{:?}", life.job(5, wide));
    let problem = life.ask(6, DaemonRequest::RemoveReservation("course".to_owned())).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

/// Its start was recorded early, no command followed it, and the reservation leaves no room for a later window before it.
#[test]
fn a_start_that_was_lost_before_a_reservation_leaves_the_promise_open() {
    let mut life = Life::of_policy("conservative", 8, 8);
    reserve(&mut life, 1, course(&[(60, 200)])).unwrap();
    let first = life.submit(1, job(8, 40));
    let second = life.submit(1, job(8, 25));
    let promised = |life: &mut Life, at| life.job(at, second).promise.map(|promise| promise.promised.start);
    assert_eq!(promised(&mut life, 2), Some(wall(200)));
    life.end(5, first);
    assert!(matches!(life.job(6, second).phase, Phase::Running(_)));
    let lost = Attempt { job: second, nth: 1 };
    life.turn(40, vec![Input::AttemptEnded(lost, AttemptOutcome::NeverRan)]);
    let view = life.job(41, second);
    assert_eq!((view.phase, view.judged), (Phase::Queued, vec![]));
    assert_eq!(promised(&mut life, 42), Some(wall(200)));
    let counts = |life: &mut Life, at| {
        let status = life.status(at);
        (status.promises, status.kept, status.open, status.at_risk)
    };
    assert_eq!(counts(&mut life, 43), (2, 1, 1, 0));
    life.turn(200, vec![]);
    assert_eq!(counts(&mut life, 201), (2, 2, 0, 0));
}

#[test]
fn without_space_nothing_is_reserved() {
    let mut life = Life::new(8, 8);
    life.submit(1, job(8, 50));
    life.journal.set_full(true);
    let problem = reserve(&mut life, 2, course(&[(100, 200)])).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Storage);
    life.journal.set_full(false);
    let wide = life.submit(3, job(8, 80));
    assert_eq!(start(&life.job(4, wide)), 52);
    assert_eq!(reservations(&mut life, 5), []);
    let late = course(&[(200, 300)]);
    reserve(&mut life, 6, late).unwrap();
    assert_eq!(reservations(&mut life, 7).len(), 1);
}

/// Day and night have the same processors, so together the pools have more than there are.
#[test]
fn pools_that_take_turns_lose_nothing_while_all_processors_are_there() {
    let mut life = Life::new(8, 8);
    let amount = |cpus: u64| Resources::cpus(cpus).with(Kind::Memory, 500);
    let half = |first, second| {
        let steps = vec![(Span::ZERO, amount(first)), (Span::from_ticks(50_000_000), amount(second))];
        Calendar::repeating(Time::ZERO, Span::from_ticks(100_000_000), steps).unwrap()
    };
    life.setup.queues[0] = Queue { pool: half(8, 2), ..queue("day", "conservative") };
    life.setup.queues.push(Queue { pool: half(0, 6), ..queue("night", "conservative") });
    life.begin(1, &Absence::default());
    life.turn(2, vec![Input::Online((0..8).collect())]);
    let cpus =
        |life: &mut Life, second| life.status(second).queues.iter().map(|one| one.cpus).collect::<Vec<_>>();
    assert_eq!((cpus(&mut life, 3), cpus(&mut life, 51)), (vec![8, 0], vec![2, 6]));
    let night = life.submit(52, Submission { queue: Some("night".to_owned()), ..job(6, 20) });
    assert!(matches!(life.job(53, night).phase, Phase::Running(_)));
    life.end(60, night);
    // Two are gone: the last queue has fewer at night, and the first one by day.
    life.turn(61, vec![Input::Online((0..6).collect())]);
    assert_eq!((cpus(&mut life, 62), cpus(&mut life, 101)), (vec![2, 4], vec![6, 0]));
    life.turn(102, vec![Input::Online((0..8).collect())]);
    assert_eq!((cpus(&mut life, 103), cpus(&mut life, 151)), (vec![8, 0], vec![2, 6]));
}

/// The day gives the night 4 processors for a time.
fn gift(times: &[(i64, i64)]) -> Reservation {
    let (queue, give_to) = (Some("day".to_owned()), Some("night".to_owned()));
    Reservation { name: "gift".to_owned(), cpus: 4, queue, give_to, users: vec![], ..course(times) }
}

#[test]
fn a_queue_gives_processors_to_another_one_for_a_time() {
    let mut life = Life::new(8, 8);
    let pool = |cpus: u64| Calendar::constant(Resources::cpus(cpus).with(Kind::Memory, 500));
    life.setup.queues[0] = Queue { pool: pool(6), ..queue("day", "conservative") };
    life.setup.queues.push(Queue { pool: pool(2), ..queue("night", "conservative") });
    life.begin(1, &Absence::default());
    let in_queue = |queue: &str, cpus, time| Submission {
        queue: Some(queue.to_owned()),
        memory: Some(4096),
        ..job(cpus, time)
    };
    let refused = |life: &mut Life, wanted| reserve(life, 2, wanted).unwrap_err().message;
    let to = |queue: &str| Reservation { give_to: Some(queue.to_owned()), ..gift(&[(100, 200)]) };
    assert!(refused(&mut life, to("noon")).contains("no queue \"noon\""));
    assert!(refused(&mut life, to("day")).contains("has them already"));
    let with_users = Reservation { users: vec!["ada".to_owned()], ..gift(&[(100, 200)]) };
    assert!(refused(&mut life, with_users).contains("users"));
    let made = reserve(&mut life, 3, gift(&[(100, 200)])).unwrap();
    assert_eq!((made.give_to.as_deref(), made.policy), (Some("night"), None));
    let wide = life.submit(4, in_queue("night", 6, 50));
    let day = life.submit(4, in_queue("day", 6, 99));
    assert_eq!((start(&life.job(5, wide)), start(&life.job(5, day))), (100, 200));
    // A job that is longer than the gift.
    let long = life.ask(6, DaemonRequest::Submit(in_queue("night", 6, 120)));
    assert!(long.is_err(), "{long:?}");
    // The next daemon has it, too.
    life.begin(7, &Absence::default());
    let remove = || DaemonRequest::RemoveReservation("gift".to_owned());
    assert!(life.ask(8, remove()).unwrap_err().message.contains("promised jobs of queue night need"));
    life.end(101, wide);
    life.ask(102, remove()).unwrap();
    assert_eq!(reservations(&mut life, 103), []);
    assert!(matches!(life.job(104, day).phase, Phase::Running(_)));
}

/// Reservations come and go among jobs, restarts and readings of the configuration.
#[test]
fn no_promise_breaks_and_no_processor_is_given_twice() {
    let mut life = Life::of_policy("conservative", 8, 8);
    let mut draws = (0u64..).map(|draw| miserly_core::draw(11, 7, draw));
    let mut draw = |below: u64| draws.next().unwrap() % below;
    let (mut jobs, mut names, mut made, mut used) = (vec![], 0, 0, 0);
    let mut first_promises = BTreeMap::new();
    for second in 2i64..900 {
        for number in jobs.clone() {
            let view = life.job(second, number);
            let mut is_due = |end| end <= wall(second) || draw(12) == 0;
            if matches!(&view.phase, Phase::Running(allocation) if is_due(allocation.end)) {
                life.end_attempt(second, Attempt { job: number, nth: view.attempts });
            }
        }
        if draw(6) == 0 {
            let (cpus, time) = (1 + draw(6), 1 + u32::try_from(draw(30)).unwrap());
            let mut wanted = if draw(2) == 0 { job(cpus, time) } else { early(cpus, time) };
            let there = reservations(&mut life, second);
            wanted.queue = there.get(usize::try_from(draw(4)).unwrap()).map(|one| one.name.clone());
            wanted.memory = Some(4096);
            if let Ok(DaemonReply::Submitted(submitted)) = life.ask(second, DaemonRequest::Submit(wanted)) {
                jobs.extend(submitted.jobs.iter().map(|one| one.number));
                let promise = |one: &miserly_api::model::Accepted| Some((one.number, one.promise?));
                first_promises.extend(submitted.jobs.iter().filter_map(promise));
            }
        }
        if draw(8) == 0 {
            names += 1;
            let from = second + i64::try_from(draw(80)).unwrap();
            let to = from + 1 + i64::try_from(draw(60)).unwrap();
            let wanted = Reservation {
                name: format!("r{names}"),
                cpus: 1 + draw(4),
                ..course(&[(from, to), (to + 20, to + 40)])
            };
            made += usize::from(reserve(&mut life, second, wanted).is_ok());
        }
        if draw(25) == 0 {
            let name = format!("r{}", 1 + draw(names.max(1)));
            let _ = life.ask(second, DaemonRequest::RemoveReservation(name));
        }
        match draw(30) {
            0 => life.begin(second, &Absence::default()),
            1 => life.reread(second),
            _ => {}
        }
        let mut held = BTreeSet::new();
        for number in jobs.clone() {
            let view = life.job(second, number);
            match &view.phase {
                Phase::Running(allocation) => {
                    for cpu in &allocation.cpus {
                        assert!(held.insert(*cpu), "processor {cpu} at {second}");
                    }
                    if let Some(first) = first_promises.get(&number) {
                        assert!(allocation.start <= first.start, "job {number} is late");
                    }
                    used += usize::from(view.queue != "batch");
                }
                phase if phase.ended().is_some() => jobs.retain(|one| *one != number),
                _ => {}
            }
        }
    }
    let status = life.status(901);
    assert_eq!((status.at_risk, status.late, status.lost), (0, 0, 0));
    assert!(made > 20 && used > 50 && status.kept > 25, "{made} {used} {}", status.kept);
}
