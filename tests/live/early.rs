//! Jobs ahead of their windows, on what is idle, and the windows that begin with no daemon there.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{Exit, JobAllocation, JobView, Phase, PromiseChangeReason, Submission};
use miserly_test_support::Requirement;

use crate::same::play;
use crate::support::{Daemon, SOON, cpus, has_two_cpus, kept_but_for_stalls, processes, sh, until};

/// Writes the number of its process, and ends with 7 when there is a file `go`.
const WAITS: &str = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; exit 7";

/// Further than two readings of a clock in one of these tests are apart. An extension is longer.
const APART: SignedDuration = SignedDuration::from_secs(10);

/// A daemon whose pool leaves a processor idle, and whose pool a job has for ten minutes; `None` where there is no early work.
fn with_the_pool_taken() -> Option<Daemon> {
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
    let daemon = Daemon::with_faults(&format!("{text}[[queue]]\nname = \"batch\"\npolicy = \"miser\"\n"));
    daemon.submit(&Submission { no_opportunistic: true, ..wide(&daemon, "sleep 600", 600.0) });
    Some(daemon)
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
    job: i64,
    pid: u32,
    start: Timestamp,
    end: Timestamp,
}

/// Returns a job of a minute that runs ahead of its window, or `None` where there is no early work.
fn early() -> Option<Early> {
    let daemon = with_the_pool_taken()?;
    let job = daemon.submit(&wide(&daemon, WAITS, 60.0));
    let pid = daemon.pid_in("pid");
    let view = daemon.job(job);
    let (start, window) = (view.planned.expect("a plan"), view.promise.expect("miser promises").now);
    let window = window.expect("a window");
    assert!(processes::is_idle(pid));
    Some(Early { daemon, job, pid, start, end: start + window.end.duration_since(window.start) })
}

impl Early {
    /// Sets the clocks to two seconds before the window. Returns how far they are ahead.
    fn go_to_start(&self) -> SignedDuration {
        let ahead = self.start.duration_since(Timestamp::now()) - SignedDuration::from_secs(2);
        self.daemon.set_ahead(ahead.as_secs_f64());
        ahead
    }
}

fn holding(job: &JobView) -> JobAllocation {
    match &job.phase {
        Phase::Running(holding) => holding.clone(),
        other => panic!("job {} is {other:?}", job.number),
    }
}

#[test]
fn at_its_start_an_early_job_gets_processors_of_its_own_and_a_normal_class() {
    let Some(early) = early() else { return };
    let ahead = early.go_to_start();
    let Early { daemon, job, pid, .. } = early;
    let critical = until("its window begins", SOON, || {
        let job = daemon.job(job);
        matches!(job.phase, Phase::Running(_)).then_some(job)
    });
    assert!(Timestamp::now() + ahead >= critical.planned.expect("a plan"), "{critical:?}");
    kept_but_for_stalls(&critical);
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
    let Some(daemon) = with_the_pool_taken() else { return };
    let early = daemon.submit(&wide(&daemon, WAITS, 300.0));
    daemon.pid_in("pid");
    let later = daemon.submit(&Submission { no_opportunistic: true, ..wide(&daemon, "true", 10.0) });
    let (start, told) = (promised_start(&daemon.job(early)), promised_start(&daemon.job(later)));
    fs::write(daemon.path("go"), "").expect("a file");
    let Phase::Done { exit, end, .. } = daemon.wait(early).phase else { panic!("it ends by itself") };
    assert_eq!(exit, Exit::Code(7));
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
fn a_daemon_that_returns_agrees_with_a_window_that_began_without_it() {
    let Some(mut early) = early() else { return };
    early.daemon.kill();
    let ahead = early.go_to_start();
    let Early { mut daemon, job, pid, start, end } = early;
    until("its window begins", SOON, || {
        let class = processes::class(pid).expect("the job runs until its window begins");
        (!processes::is_idle_class(&class)).then_some(())
    });
    assert!(Timestamp::now() + ahead >= start);
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
    let by = self::holding(&longer).end.duration_since(holding.end) - SignedDuration::from_secs(30);
    assert!(by.abs() < APART, "{longer:?}");
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(job);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    assert_eq!(ended.runs, 1);
    daemon.wait_for_all();
    daemon.stop();
    let played = play(&daemon.state());
    assert!(played["difference"].is_null(), "{played:#}");
}
