//! The clock of the wall is set, an hour forward or back, while jobs run and wait: no window moves but as people read it.

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{JobView, KilledBy, Phase, Submission, Window};
use rustix::process::{Signal, kill_process};

use crate::support::{Daemon, SOON, cpus, exact_queue, is_over, kept_but_for_stalls, queue, sh, until};

/// Further than any two readings of a clock in one of these tests are apart.
const APART: SignedDuration = SignedDuration::from_secs(30);

/// Sets the wall clock, by hours from that of the machine.
fn set_wall(daemon: &Daemon, hours: i64) {
    daemon.set_faults(&format!("wall:{}\n", hours * 3600));
}

/// Returns the wall time, so many hours from that of the machine.
fn wall(hours: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(hours)
}

/// A job runs to the end of its window, which heeds no request to end; one waits for it; the wall steps.
#[test]
fn a_step_of_the_wall_moves_no_window() {
    let daemon = Daemon::with_faults(&queue("miser"));
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done";
    let runs = daemon.submit(&Submission { directory: daemon.path(""), ..all(script, 600.0) });
    let waits = daemon.submit(&all("true", 20.0));
    daemon.pid_in("pid");
    let before = shown(&daemon, runs, waits);
    for hours in [1, -1] {
        set_wall(&daemon, hours);
        let by = SignedDuration::from_hours(hours);
        for (before, after) in before.into_iter().zip(shown(&daemon, runs, waits)) {
            let moved = after.duration_since(before) - by;
            assert!(moved.abs() < SignedDuration::from_secs(1), "{before} was shown as {after}");
        }
    }
    // Its window passes, by a clock that nobody sets.
    daemon.set_faults("wall:-3000\nboot:600\n");
    let ended = over(&daemon, runs);
    assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::Time, .. }), "{:?}", ended.phase);
    let started = over(&daemon, waits);
    assert!(matches!(started.phase, Phase::Done { .. }), "{:?}", started.phase);
    kept_but_for_stalls(&started);
}

/// What people read of the window of one that runs, and of the promise to one that waits.
fn shown(daemon: &Daemon, runs: i64, waits: i64) -> [Timestamp; 4] {
    let Phase::Running(holding) = daemon.job(runs).phase else { panic!("job {runs} runs") };
    let promised = daemon.job(waits).promise.expect("miser promises").now.expect("a window");
    [holding.start, holding.end, promised.start, promised.end]
}

#[test]
fn an_instant_given_after_a_step_means_the_new_wall() {
    let daemon = Daemon::with_faults(&queue("miser"));
    set_wall(&daemon, 1);
    instants_are_of_the_wall(&daemon, 1);
    // What was half an hour ahead on the wall of before is past.
    let deadline = Some(Timestamp::now() + SignedDuration::from_mins(30));
    let refused = daemon.client().submit(&Submission { deadline, ..sh("true", 5.0) });
    assert!(refused.is_err(), "{refused:?}");
    set_wall(&daemon, -1);
    instants_are_of_the_wall(&daemon, -1);
    // What is now on the wall of before is an hour ahead.
    let waits = daemon.submit(&Submission { begin: Some(Timestamp::now()), ..sh("true", 5.0) });
    let ahead = promised(&daemon, waits).start.duration_since(wall(-1));
    assert!((ahead - SignedDuration::from_hours(1)).abs() < APART, "{ahead:?}");
}

/// `begin` and `deadline` are kept on the wall as it is, and nobody waits an hour for what is two seconds away.
fn instants_are_of_the_wall(daemon: &Daemon, hours: i64) {
    let begin = wall(hours) + SignedDuration::from_secs(1);
    let deadline = begin + SignedDuration::from_mins(1);
    let job = Submission { begin: Some(begin), deadline: Some(deadline), ..sh("true", 5.0) };
    let number = daemon.submit(&Submission { no_opportunistic: true, ..job });
    let promised = promised(daemon, number);
    assert!(promised.start.duration_since(begin) >= SignedDuration::from_millis(-500), "{promised:?}");
    assert!(promised.end <= deadline, "{promised:?}");
    let Phase::Done { start, .. } = over(daemon, number).phase else { panic!("it ends by itself") };
    assert!(start.duration_since(begin).abs() < APART, "it was to begin at {begin} and began at {start}");
}

#[track_caller]
fn promised(daemon: &Daemon, number: i64) -> Window {
    daemon.job(number).promise.expect("miser promises").now.expect("a window")
}

/// A calendar is about the wall as it was when the configuration was read; reading it again sets it by the wall as it is. It stays
/// as it was where a window that was promised behind it would lie in it by the new wall.
#[test]
fn a_calendar_keeps_its_instants_until_it_is_read_again_and_breaks_no_promise_then() {
    let hour = SignedDuration::from_hours(1);
    let (daemon, end) = with_an_hour_of_little();
    assert!(is_at(next_long_window(&daemon), end), "it does not fit before the hour of little memory");
    set_wall(&daemon, 1);
    assert!(is_at(next_long_window(&daemon), end + hour), "the same instant, read on the new wall");
    assert!(reread(&daemon).contains("was read again"));
    assert!(is_at(next_long_window(&daemon), end), "the calendar is by the new wall");

    let begin = end + SignedDuration::from_mins(10);
    let job = Submission {
        begin: Some(begin),
        memory: Some(32 << 20),
        no_opportunistic: true,
        ..sh("true", 600.0)
    };
    let number = daemon.submit(&job);
    set_wall(&daemon, 0);
    assert!(reread(&daemon).contains("stays as it was"));
    assert!(is_at(next_long_window(&daemon), end - hour), "the instants are those of before the step");
    let promise = daemon.job(number).promise.expect("miser promises");
    assert!(
        is_at(promise.now.as_ref().expect("a window").start, begin - hour) && promise.at_risk.is_none(),
        "{promise:?}"
    );
}

/// Makes the daemon read its configuration again. Returns what it says of that.
#[track_caller]
fn reread(daemon: &Daemon) -> String {
    let before = daemon.log().len();
    kill_process(daemon.pid().expect("it runs"), Signal::HUP).expect("a signal");
    until("it says something", SOON, || {
        let said = daemon.log().get(before..)?.to_owned();
        said.contains("the configuration ").then_some(said)
    })
}

/// A daemon that has next to no memory for an hour that begins in half an hour, every day; and when that ends.
fn with_an_hour_of_little() -> (Daemon, Timestamp) {
    let begin = minute_of(Timestamp::now() + SignedDuration::from_mins(30));
    let end = begin + SignedDuration::from_hours(1);
    let [from, to] = [begin, end].map(|at| at.strftime("%H:%M").to_string());
    let calendar = format!("calendar = [{{ from = \"{from}\", to = \"{to}\", memory = \"1MB\" }}]\n");
    (Daemon::with_faults(&format!("{}memory = \"64MB\"\n{calendar}", exact_queue("miser"))), end)
}

/// When a job could start that needs much memory for three quarters of an hour.
fn next_long_window(daemon: &Daemon) -> Timestamp {
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

/// The job, once it is over.
#[track_caller]
fn over(daemon: &Daemon, number: i64) -> JobView {
    let job = daemon.wait(number);
    assert!(is_over(&job.phase), "{:?}", job.phase);
    job
}
