//! Jobs ahead of their windows, on what is idle, and the windows that begin with no daemon there.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::model::{Exit, JobAllocation, JobView, KilledBy, Phase, PromiseChangeReason, Submission};
use miserly_test_support::Requirement;

use crate::same::play;
use crate::support::{Daemon, SOON, cpus, has_two_cpus, processes, sh, until};

/// Writes the number of its process, and ends with 7 when there is a file `go`.
const WAITS: &str = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; exit 7";

/// Further than two readings of a clock in one of these tests are apart. An extension is longer.
const APART: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// A daemon whose pool leaves a processor idle, and a job that has all of the pool for so many seconds and does nothing; or the
/// reason why there is no early work here.
fn with_the_pool_taken(time: f64) -> Option<(Daemon, i64)> {
    let most = cpus().len();
    let leaves_idle = miserly_launch::leaves_idle();
    if !has_two_cpus()
        || !Requirement::IdleClass.is_met(leaves_idle, "needs the right to leave the idle class")
    {
        return None;
    }
    let pool = most - 1;
    let text =
        format!("cleanup-time = 1\npreempt-lead-time = 1\norphan-resume-delay = 1\n[pool]\ncpus = {pool}\n");
    let daemon = Daemon::new(&format!("{text}[[queue]]\nname = \"batch\"\npolicy = \"miser\"\n"));
    let first = daemon.submit(&Submission { no_opportunistic: true, ..wide(&daemon, "sleep 600", time) });
    Some((daemon, first))
}

/// A job on all processors of the pool, with little of its memory: early work needs some that nobody has.
fn wide(daemon: &Daemon, script: &str, time: f64) -> Submission {
    let cpus = cpus().len() as u64 - 1;
    Submission { cpus, memory: Some(1 << 20), directory: daemon.path(""), ..sh(script, time) }
}

fn promised_start(job: &JobView) -> Timestamp {
    job.promise.as_ref().expect("miser promises").now.as_ref().expect("a window").start
}

/// A job that runs ahead of its window.
struct Early {
    daemon: Daemon,
    /// The job that has the pool until the window starts.
    first: i64,
    job: i64,
    pid: u32,
    start: Timestamp,
    end: Timestamp,
}

/// Returns a job of `time` seconds that runs ahead of its window, or `None` where there is no early work.
///
/// The window starts after 3 seconds. On a machine too busy for that, after 12, and then after 48.
fn early(time: f64) -> Option<Early> {
    for taken in [3.0, 12.0, 48.0] {
        let (daemon, first) = with_the_pool_taken(taken)?;
        let job = daemon.submit(&wide(&daemon, WAITS, time));
        let pid = daemon.pid_in("pid");
        let view = daemon.job(job);
        let (start, window) = (view.planned.expect("a plan"), view.promise.expect("miser promises").now);
        let window = window.expect("a window");
        if processes::is_idle(pid) && Timestamp::now() < start {
            let end = start + window.end.duration_since(window.start);
            return Some(Early { daemon, first, job, pid, start, end });
        }
    }
    panic!("no job ran early within 48 s");
}

fn holding(job: &JobView) -> JobAllocation {
    match &job.phase {
        Phase::Running(holding) => holding.clone(),
        other => panic!("job {} is {other:?}", job.number),
    }
}

/// Kills the daemon and waits until the window of the job with this process begins at its start.
#[track_caller]
fn killed_until(daemon: &mut Daemon, start: Timestamp, pid: u32) {
    daemon.kill();
    until("the start of its window", SOON, || (Timestamp::now() >= start).then_some(()));
    until("its window begins", SOON, || {
        let class = processes::class(pid).expect("the job runs until its window begins");
        (!processes::is_idle_class(&class)).then_some(())
    });
}

/// Processes of the normal class that keep every processor busy: several for each, so that none idles while the kernel evens them out.
///
/// Each has a session of its own. So its weight is the usual one, also if the session of the tests has another one (autogroups).
struct Busy(Vec<Child>);

impl Busy {
    fn everywhere() -> Busy {
        let spin = |_| {
            let mut command = Command::new("setsid");
            command
                .args(["/bin/sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .expect("a shell")
        };
        Busy((0..3 * cpus().len()).map(spin).collect())
    }

    fn ticks(&self) -> u64 {
        self.0.iter().map(|child| processes::ticks(child.id())).sum()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have gone.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What all processors have spent on nothing, in clock ticks.
fn idle_ticks() -> u64 {
    let all = fs::read_to_string("/proc/stat").expect("/proc/stat");
    all.split_whitespace().nth(4).expect("the idle time").parse().expect("a number")
}

#[test]
fn early_work_gets_next_to_nothing_of_busy_processors_and_all_of_idle_ones() {
    let Some((daemon, _)) = with_the_pool_taken(600.0) else { return };
    let busy = Busy::everywhere();
    let spins = cpus().len();
    let script =
        format!("for i in $(seq {spins}); do sh -c 'echo $$ >> pids; while :; do :; done' & done; wait");
    let early = daemon.submit(&wide(&daemon, &script, 300.0));
    let pids: Vec<u32> = until("it runs early", SOON, || {
        let text = fs::read_to_string(daemon.path("pids")).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == spins).then_some(pids)
    });
    let phase = daemon.job(early).phase;
    assert!(matches!(phase, Phase::Opportunistic { parked: false, .. }), "{phase:?}");
    assert!(pids.iter().all(|pid| processes::is_idle(*pid)));
    let spent = || pids.iter().map(|pid| processes::ticks(*pid)).sum::<u64>();

    let (early_before, busy_before) = (spent(), busy.ticks());
    let beside =
        until("what is busy has run", SOON, || Some(busy.ticks() - busy_before).filter(|t| *t >= 400));
    let starved = spent() - early_before;
    assert!(starved * 10 <= beside, "{starved} ticks beside {beside}");

    drop(busy);
    // What other programs leave of the processors is the early job's: on a busy machine that takes a while to count.
    let (early_before, idle_before) = (spent(), idle_ticks());
    let (fed, idle) = until("other programs leave some time", SOON, || {
        let (fed, idle) = (spent() - early_before, idle_ticks() - idle_before);
        (fed + idle >= 60).then_some((fed, idle))
    });
    assert!(idle * 4 <= fed + idle, "{idle} ticks idle beside {fed} of the early job");
}

#[test]
fn at_its_start_an_early_job_gets_processors_of_its_own_and_a_normal_class() {
    let Some(Early { daemon, job, pid, .. }) = early(60.0) else { return };
    let critical = until("its window begins", SOON, || {
        let job = daemon.job(job);
        matches!(job.phase, Phase::Running(_)).then_some(job)
    });
    assert!(Timestamp::now() >= critical.planned.expect("a plan") && critical.late.is_none(), "{critical:?}");
    let cpus: Vec<String> = holding(&critical).cpus.iter().map(u32::to_string).collect();
    until("it is out of the idle class", SOON, || (!processes::is_idle(pid)).then_some(()));
    assert_eq!(processes::allowed(pid), list(&cpus));
    assert_ne!(processes::state(pid).as_deref(), Some("T"));
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(job).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

/// As the kernel lists neighbours.
fn list(cpus: &[String]) -> String {
    match cpus {
        [first, .., last] => format!("{first}-{last}"),
        _ => cpus.concat(),
    }
}

#[test]
fn a_job_that_is_done_early_ends_before_its_window_and_later_promises_move_earlier_only() {
    let Some((daemon, _)) = with_the_pool_taken(600.0) else { return };
    let early = daemon.submit(&wide(&daemon, "sleep 1; exit 3", 300.0));
    let later = daemon.submit(&Submission { no_opportunistic: true, ..wide(&daemon, "true", 10.0) });
    let (start, told) = (promised_start(&daemon.job(early)), promised_start(&daemon.job(later)));
    let Phase::Done { exit, end, .. } = daemon.wait(early).phase else { panic!("it ends by itself") };
    assert_eq!(exit, Exit::Code(3));
    assert!(end < start, "{end} is not before {start}");
    let promise = daemon.job(later).promise.expect("miser promises");
    assert!(promise.now.as_ref().expect("a window").start < told, "{promise:?}");
    assert!(promise.history.windows(2).all(|pair| pair[1].start < pair[0].start), "{promise:?}");
    assert!(
        promise.history.iter().skip(1).all(|told| told.why == PromiseChangeReason::Earlier),
        "{promise:?}"
    );
}

#[test]
fn with_no_daemon_a_window_begins_and_ends_by_itself() {
    let Some(Early { mut daemon, first, job, pid, start, end }) = early(10.0) else { return };
    killed_until(&mut daemon, start, pid);
    until("it ends", SOON, || processes::stat(pid, 3).is_none().then_some(()));
    let grace = jiff::SignedDuration::from_secs(1);
    assert!(Timestamp::now() >= end - grace, "it was ended before {end}");
    daemon.start();
    for number in [first, job] {
        let ended = daemon.wait(number);
        assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
        assert!(ended.late.is_none(), "{ended:?}");
    }
}

#[test]
fn a_daemon_that_returns_agrees_with_a_window_that_began_without_it() {
    let Some(Early { mut daemon, job, pid, start, end, .. }) = early(60.0) else { return };
    killed_until(&mut daemon, start, pid);
    let allowed = processes::allowed(pid);
    daemon.start();
    let adopted = daemon.job(job);
    let holding = holding(&adopted);
    assert_eq!(list(&holding.cpus.iter().map(u32::to_string).collect::<Vec<_>>()), allowed);
    assert_eq!(processes::allowed(pid), allowed);
    // The engine's tests have the same instants to the tick; here two readings of two clocks are between.
    let off = holding.end.duration_since(end).abs();
    assert!(off < APART, "{} is not {end}", holding.end);
    let promise = adopted.promise.expect("miser promised");
    assert!(adopted.late.is_none() && promise.at_risk.is_none(), "{promise:?}");
    assert_eq!(daemon.client().status().expect("a status").at_risk, 0);
    let longer = daemon.client().extend(job, 30.0).expect("nobody waits behind it");
    let by = self::holding(&longer).end.duration_since(holding.end) - jiff::SignedDuration::from_secs(30);
    assert!(by.abs() < APART, "{longer:?}");
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(job);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    assert_eq!(ended.attempts, 1);
    daemon.wait_for_all();
    daemon.stop();
    let played = play(&daemon.state());
    assert!(played["difference"].is_null(), "{played:#}");
}

#[test]
fn a_window_that_was_moved_earlier_begins_then_with_no_daemon() {
    let Some((mut daemon, first)) = with_the_pool_taken(600.0) else { return };
    let second = daemon.submit(&Submission { no_opportunistic: true, ..wide(&daemon, "sleep 60", 3.0) });
    let job = daemon.submit(&wide(&daemon, WAITS, 60.0));
    let pid = daemon.pid_in("pid");
    let told = promised_start(&daemon.job(job));
    daemon.client().cancel(first, false).expect("it can be cancelled");
    let moved = until("its window moves", SOON, || {
        let earlier = told - jiff::SignedDuration::from_secs(300);
        Some(promised_start(&daemon.job(job))).filter(|start| *start < earlier)
    });
    until("the one before it runs", SOON, || {
        matches!(daemon.job(second).phase, Phase::Running(_)).then_some(())
    });
    // What is decided reaches a shim a moment after it is on disk.
    thread::sleep(Duration::from_millis(500));
    killed_until(&mut daemon, moved, pid);
    assert!(Timestamp::now() < told);
    daemon.start();
    assert!(daemon.job(job).late.is_none());
    fs::write(daemon.path("go"), "").expect("a file");
    assert!(matches!(daemon.wait(job).phase, Phase::Done { exit: Exit::Code(7), .. }));
}
