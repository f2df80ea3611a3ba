//! Random requests under limits, against a plain count of all jobs.

use std::collections::BTreeMap;

use miserly_api::model::{Filter, JobView, Modification, Phase, Submission};
use miserly_engine::{Absence, CpuHours, DaemonReply, DaemonRequest, Limits};
use miserly_test_support::Draws;

use super::count::{Count, Counted, Drawn, State, members};
use super::{ANN, BOB, EVE, NON, course, daemon, report, submit, user};
use crate::life::{Life, job, wall};

const USERS: [u32; 4] = [ANN, BOB, EVE, NON];

fn views(life: &mut Life, second: i64) -> BTreeMap<i64, JobView> {
    match life.ask(second, DaemonRequest::Jobs(Filter::default())).unwrap() {
        DaemonReply::Jobs(jobs) => jobs.into_iter().map(|job| (job.number, job)).collect(),
        other => panic!("{other:?}"),
    }
}

fn state_of(job: &JobView) -> State {
    match &job.phase {
        Phase::Held => State::Held,
        Phase::Running(of) => State::Runs { since: of.start.as_microsecond() },
        Phase::Queued if job.promise.as_ref().is_some_and(|of| of.now.is_some()) => State::HasPlace,
        Phase::Queued => State::Waits,
        other => panic!("{other:?}"),
    }
}

/// Compares all jobs and all reports with the count. Takes over which jobs run, which is up to the policy.
fn compare(life: &mut Life, second: i64, limits: &Drawn, count: &mut Count) {
    count.give_places(limits);
    let views = views(life, second);
    assert!(views.keys().eq(count.jobs.keys()), "{:?}\n{:?}", views.keys(), count.jobs.keys());
    for (number, counted) in &mut count.jobs {
        let state = state_of(&views[number]);
        match (counted.state, state) {
            (State::HasPlace, State::Runs { .. }) => counted.state = state,
            (expected, found) => assert_eq!(expected, found, "job {number} at {second}"),
        }
    }
    for uid in USERS {
        for limit in report(life, second, uid).limits {
            let users = members((!limit.together).then_some(uid));
            let (jobs, cpus) = count.placed(&users);
            let expected = match limit.limit.split_once('.').unwrap().1 {
                "jobs" => count.unfinished(&users) as f64,
                "queued" => count.waiting(&users) as f64,
                "running" => jobs as f64,
                "cpus" => cpus as f64,
                "cpu-hours" => count.time(&users) as f64 / 3.6e9,
                other => panic!("{other}"),
            };
            let counts = limit.used + limit.unfinished.unwrap_or(0.0);
            assert!((counts - expected).abs() < 1e-9, "{limit:?} of {uid}: {expected} at {second}");
        }
    }
}

fn drawn(draws: &mut Draws) -> Drawn {
    let mut most = |from: u64, to: u64| (draws.below(3) > 0).then(|| from + draws.below(to - from + 1));
    let each = Limits {
        jobs: most(4, 9),
        queued: most(3, 7),
        running: most(1, 4),
        cpus: most(2, 8),
        ..Limits::default()
    };
    let course =
        Limits { jobs: most(8, 16), queued: most(6, 12), running: most(2, 7), cpus: most(4, 10), ..each };
    let hours = |most: Option<u64>| {
        most.map(|hours| CpuHours { most: i64::try_from(hours).unwrap() * 3_600_000_000, days: 30 })
    };
    let [own, together] = [most(1, 3), most(3, 8)];
    Drawn {
        each: Limits { cpu_hours: hours(own), ..each },
        course: Limits { cpu_hours: hours(together), ..course },
    }
}

/// The numbers of what was drawn, so that the test shows that each occurred.
#[derive(Debug, Default)]
struct Tally {
    accepted: u32,
    refused: u32,
    ended: u32,
    released: u32,
    resized: u32,
    kept: u32,
    waited: u32,
}

fn step(
    life: &mut Life,
    draws: &mut Draws,
    second: i64,
    limits: &Drawn,
    count: &mut Count,
    tally: &mut Tally,
) {
    // Jobs may have begun since.
    compare(life, second, limits, count);
    let numbers: Vec<i64> = count.jobs.keys().copied().collect();
    let chosen = if numbers.is_empty() { None } else { Some(draws.choice(&numbers)) };
    let state = chosen.map(|number| count.jobs[&number].state);
    let end = wall(second).as_microsecond();
    match (draws.below(10), chosen.zip(state)) {
        (0..5, _) | (_, None) => {
            let (uid, cpus, time) = (draws.choice(&USERS), 1 + draws.below(4), 1000 + draws.below(1000));
            let hold = draws.below(5) == 0;
            let what = Submission { hold, ..job(cpus, u32::try_from(time).unwrap()) };
            let expected = count.admits(limits, uid, cpus, time);
            let result = submit(life, second, uid, what);
            assert_eq!(result.is_ok(), expected, "{uid} {cpus} {time} at {second}: {result:?}");
            let state = if hold { State::Held } else { State::Waits };
            match result {
                Ok(number) => {
                    tally.accepted += 1;
                    count.jobs.insert(number, Counted { uid, cpus, time, state });
                }
                Err(_) => tally.refused += 1,
            }
        }
        (5..7, Some((number, State::Runs { .. }))) => {
            tally.ended += 1;
            life.end(second, number);
            count.remove(number, end);
        }
        (7, Some((number, State::Held))) => {
            tally.released += 1;
            life.ask(second, DaemonRequest::Release(number)).unwrap();
            count.jobs.get_mut(&number).unwrap().state = State::Waits;
        }
        (7, Some((number, State::Waits | State::HasPlace))) => {
            life.ask(second, DaemonRequest::Hold { job: number, move_promises: true }).unwrap();
            count.jobs.get_mut(&number).unwrap().state = State::Held;
        }
        (8, Some((number, State::Waits | State::HasPlace | State::Held))) => {
            let before = count.jobs[&number].clone();
            let cpus = 1 + draws.below(4);
            let fits = count.admits_change(limits, number, cpus);
            let changes = Box::new(Modification { cpus: Some(cpus), ..Modification::default() });
            let request = DaemonRequest::Modify { job: number, changes, move_promises: false };
            let result = life.ask_as(user(before.uid), second, request);
            assert_eq!(result.is_ok(), fits, "{number} {before:?} {cpus} at {second}: {result:?}");
            if fits {
                tally.resized += u32::from(cpus != before.cpus);
                count.jobs.get_mut(&number).unwrap().cpus = cpus;
            } else {
                tally.kept += 1;
            }
        }
        (9, Some((number, State::Waits | State::HasPlace | State::Held))) => {
            life.ask(second, DaemonRequest::Cancel { job: number, array: false }).unwrap();
            count.remove(number, end);
        }
        _ => {}
    }
    compare(life, second, limits, count);
    tally.waited += u32::from(count.jobs.values().any(|job| job.state == State::Waits));
}

#[test]
fn random_requests_under_limits() {
    let mut tally = Tally::default();
    for seed in 0..40 {
        let mut draws = Draws::new(seed);
        let mut limits = drawn(&mut draws);
        let mut life = daemon(limits.each, vec![course(true, limits.course)]);
        let mut count = Count::default();
        for second in (2..500).step_by(2) {
            step(&mut life, &mut draws, second, &limits, &mut count, &mut tally);
            match draws.below(40) {
                0 => life.begin(second + 1, &Absence::default()),
                1 => {
                    // Processor time has the same limits, so that no counter begins later.
                    let Drawn { each, course: together } = drawn(&mut draws);
                    let (own, all) = (limits.each.cpu_hours, limits.course.cpu_hours);
                    limits = Drawn {
                        each: Limits { cpu_hours: own, ..each },
                        course: Limits { cpu_hours: all, ..together },
                    };
                    life.setup.user_limits.each = limits.each;
                    life.setup.user_limits.tables = vec![course(true, limits.course)];
                    life.set_up(second + 1).unwrap();
                }
                _ => {}
            }
        }
    }
    let Tally { accepted, refused, ended, released, resized, kept, waited } = tally;
    let least = [accepted, refused, ended, released, resized, kept, waited].into_iter().min();
    assert!(least > Some(50), "too little of something was drawn: {tally:?}");
}
