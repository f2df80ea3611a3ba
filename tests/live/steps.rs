//! The clock of the wall is set, an hour forward or back, while jobs run and wait: no window moves but as people read it.

use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{JobView, KilledBy, Phase, Submission};

use crate::support::{SOON, Stepping, cpus, exact_queue, is_over, queue, sh, until};

/// Further than any two readings of a clock in one of these tests are apart.
const APART: SignedDuration = SignedDuration::from_secs(30);

#[test]
fn a_step_forward_moves_no_window() {
    windows_stay(SignedDuration::from_hours(1));
}

#[test]
fn a_step_back_moves_no_window() {
    windows_stay(SignedDuration::from_hours(-1));
}

/// A job runs to the end of its window, which heeds no request to end; one waits for it; the wall steps.
#[track_caller]
fn windows_stay(by: SignedDuration) {
    let daemon = Stepping::new(&queue("miser"));
    let runs = submit(&daemon, &all("trap '' TERM; while :; do sleep 1; done", 4.0));
    let waits = submit(&daemon, &all("true", 20.0));
    until("the first one runs", SOON, || matches!(daemon.job(runs).phase, Phase::Running(_)).then_some(()));
    let before = shown(&daemon, runs, waits);
    daemon.step(by);
    let after = shown(&daemon, runs, waits);
    for (before, after) in before.into_iter().zip(after) {
        let moved = after.duration_since(before) - by;
        assert!(moved.abs() < SignedDuration::from_secs(1), "{before} was shown as {after}");
    }

    let ended = over(&daemon, runs);
    let Phase::Killed { start: Some(start), end, by: KilledBy::Time, .. } = ended.phase else {
        panic!("the end of its window ends it: {:?}", ended.phase)
    };
    let ran = end.duration_since(start).as_secs_f64();
    assert!((3.5..10.0).contains(&ran), "it had 4 s and ran for {ran} s");
    let started = over(&daemon, waits);
    assert!(matches!(started.phase, Phase::Done { .. }), "{:?}", started.phase);
    assert_eq!((started.late, started.promise.expect("a promise").at_risk), (None, None));
    let status = daemon.client().status().expect("a status");
    assert_eq!((status.lost, status.late), (0, 0));
}

/// What people read of the window of one that runs, and of the promise to one that waits.
fn shown(daemon: &Stepping, runs: i64, waits: i64) -> [Timestamp; 4] {
    let Phase::Running(holding) = daemon.job(runs).phase else { panic!("job {runs} runs") };
    let promised = daemon.job(waits).promise.expect("miser promises").now.expect("a window");
    [holding.start, holding.end, promised.start, promised.end]
}

#[test]
fn an_instant_given_after_a_step_forward_means_the_new_wall() {
    let daemon = Stepping::new(&queue("miser"));
    daemon.step(SignedDuration::from_hours(1));
    instants_are_of_the_wall(&daemon);
    // What was half an hour ahead on the wall of before is past.
    let deadline = Some(Timestamp::now() + SignedDuration::from_mins(30));
    let refused = daemon.client().submit(&Submission { deadline, ..sh("true", 5.0) });
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn an_instant_given_after_a_step_back_means_the_new_wall() {
    let daemon = Stepping::new(&queue("miser"));
    daemon.step(SignedDuration::from_hours(-1));
    instants_are_of_the_wall(&daemon);
    // What is now on the wall of before is an hour ahead.
    let waits = submit(&daemon, &Submission { begin: Some(Timestamp::now()), ..sh("true", 5.0) });
    let ahead = daemon
        .job(waits)
        .promise
        .expect("miser promises")
        .now
        .expect("a window")
        .start
        .duration_since(daemon.wall());
    assert!((ahead - SignedDuration::from_hours(1)).abs() < APART, "{ahead:?}");
}

/// `begin` and `deadline` are kept on the wall as it is, and nobody waits an hour for what is two seconds away.
fn instants_are_of_the_wall(daemon: &Stepping) {
    let begin = daemon.wall() + SignedDuration::from_secs(2);
    let deadline = begin + SignedDuration::from_mins(1);
    let job = Submission { begin: Some(begin), deadline: Some(deadline), ..sh("true", 5.0) };
    let number = submit(daemon, &Submission { no_opportunistic: true, ..job });
    let promised = daemon.job(number).promise.expect("miser promises").now.expect("a window");
    assert!(promised.start.duration_since(begin) >= SignedDuration::from_millis(-500), "{promised:?}");
    assert!(promised.end <= deadline, "{promised:?}");
    let Phase::Done { start, .. } = over(daemon, number).phase else { panic!("it ends by itself") };
    assert!(start.duration_since(begin).abs() < APART, "it was to begin at {begin} and began at {start}");
}

/// A calendar is about the wall as it was when the configuration was read; reading it again sets it by the wall as it is.
#[test]
fn a_calendar_keeps_its_instants_until_it_is_read_again() {
    let hour = SignedDuration::from_hours(1);
    let (daemon, end) = with_an_hour_of_little();
    assert!(is_at(next_long_window(&daemon), end), "it does not fit before the hour of little memory");
    daemon.step(hour);
    assert!(is_at(next_long_window(&daemon), end + hour), "the same instant, read on the new wall");
    daemon.reread();
    let read = || is_at(next_long_window(&daemon), end).then_some(());
    until("the calendar is by the new wall", SOON, read);
}

/// A window that was promised behind the hour would lie in it by the new wall.
#[test]
fn a_calendar_that_would_break_a_promise_stays_as_it_was() {
    let hour = SignedDuration::from_hours(1);
    let (daemon, end) = with_an_hour_of_little();
    let begin = end + SignedDuration::from_mins(10);
    let job = Submission {
        begin: Some(begin),
        memory: Some(32 << 20),
        no_opportunistic: true,
        ..sh("true", 600.0)
    };
    let number = submit(&daemon, &job);
    daemon.step(-hour);
    daemon.reread();
    // Long enough for it to be read, and for a promise to be seen broken.
    thread::sleep(Duration::from_secs(2));
    assert!(is_at(next_long_window(&daemon), end - hour), "the instants are those of before the step");
    let promise = daemon.job(number).promise.expect("miser promises");
    assert!(
        is_at(promise.now.as_ref().expect("a window").start, begin - hour) && promise.at_risk.is_none(),
        "{promise:?}"
    );
}

/// A daemon that has next to no memory for an hour that begins in half an hour, every day; and when that ends.
fn with_an_hour_of_little() -> (Stepping, Timestamp) {
    let begin = minute_of(Timestamp::now() + SignedDuration::from_mins(30));
    let end = begin + SignedDuration::from_hours(1);
    let [from, to] = [begin, end].map(|at| at.strftime("%H:%M").to_string());
    let calendar = format!("calendar = [{{ from = \"{from}\", to = \"{to}\", memory = \"1MB\" }}]\n");
    (Stepping::new(&format!("{}memory = \"64MB\"\n{calendar}", exact_queue("miser"))), end)
}

/// When a job could start that needs much memory for three quarters of an hour.
fn next_long_window(daemon: &Stepping) -> Timestamp {
    let job = Submission { memory: Some(32 << 20), ..sh("true", 45.0 * 60.0) };
    let quote = daemon.client().quote(&job).expect("a quote");
    quote.windows[0].expect("miser promises").start
}

fn is_at(one: Timestamp, other: Timestamp) -> bool {
    one.duration_since(other).abs() < SignedDuration::from_secs(1)
}

/// The minute in which an instant lies.
fn minute_of(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() / 60 * 60).expect("an instant of our time")
}

fn all(script: &str, time: f64) -> Submission {
    let cpus = u64::try_from(cpus().len()).expect("a number of processors");
    Submission { cpus, no_opportunistic: true, ..sh(script, time) }
}

#[track_caller]
fn submit(daemon: &Stepping, job: &Submission) -> i64 {
    daemon.client().submit(job).expect("it is accepted").jobs[0].number
}

/// The job, once it is over.
#[track_caller]
fn over(daemon: &Stepping, number: i64) -> JobView {
    let job = daemon.client().wait(number).expect("it ends");
    assert!(is_over(&job.phase), "{:?}", job.phase);
    job
}
