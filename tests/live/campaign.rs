//! A campaign of mixed faults: every promise that was ever given is held against what the jobs wrote down.
//!
//! Each round submits and changes jobs while one fault happens: the daemon or a shim is killed or stopped for a while, the
//! daemon is terminated, its configuration is changed and read again, or both. `MISERLY_ROUNDS` is the number of rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, JobView, Phase, ProblemCode, Submission};
use rustix::process::{Pid, Signal, kill_process};

use crate::kills::{Accepted, check_promises};
use crate::support::{Daemon, Draws, SOON, is_over, processes, queue, rounds, sh, until_or_tell};

/// The delay between the instant of a start and the line that the job writes, on a machine that is busy with other tests.
const WRITES_WITHIN: f64 = 1.5;

/// A fault of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    KillDaemon,
    KillShim,
    KillBoth,
    StopDaemon,
    StopShim,
    Terminate,
    Reload,
    OtherPolicy,
}

impl Fault {
    const ALL: [Fault; 8] = [
        Fault::KillDaemon,
        Fault::KillShim,
        Fault::KillBoth,
        Fault::StopDaemon,
        Fault::StopShim,
        Fault::Terminate,
        Fault::Reload,
        Fault::OtherPolicy,
    ];
}

/// What clients were told and asked for.
#[derive(Default)]
struct Told {
    accepted: Accepted,
    /// The earliest start that each job was promised, when it was.
    starts: BTreeMap<i64, Timestamp>,
    /// The jobs that their user held or requeued, so that they have another promise.
    taken_back: BTreeSet<i64>,
}

impl Told {
    fn promised(&mut self, job: i64, start: Timestamp) {
        let earliest = self.starts.entry(job).or_insert(start);
        *earliest = start.min(*earliest);
    }

    fn extend(&mut self, other: Told) {
        self.accepted.jobs.extend(other.accepted.jobs);
        self.accepted.cancelled.extend(other.accepted.cancelled);
        self.taken_back.extend(other.taken_back);
        for (job, start) in other.starts {
            self.promised(job, start);
        }
    }
}

#[test]
fn every_promise_is_kept_or_its_breach_is_on_record_whatever_happens() {
    let mut daemon = Daemon::of_policy("miser");
    let mut draws = Draws::new(16);
    let mut told = Told::default();
    for round in 0..rounds() {
        let fault = draws.choice(&Fault::ALL);
        told.extend(round_with(&mut daemon, &mut draws, fault, round));
        assert!(!daemon.is_dead(), "round {round}: the daemon ended by itself after {fault:?}");
        if round % 10 == 9 {
            wait_for_all(&daemon);
        }
    }
    wait_for_all(&daemon);
    let jobs: BTreeMap<i64, JobView> = daemon.history().into_iter().map(|job| (job.number, job)).collect();
    let ran = Runs::read(&daemon);
    for number in &told.accepted.jobs {
        let job = jobs.get(number).unwrap_or_else(|| panic!("job {number} was lost"));
        assert!(is_over(&job.phase), "job {number}: {:?}", job.phase);
        check_start(job, &told, &ran);
    }
    ran.check(&jobs);
    check_promises(&mut daemon);
}

/// Waits for the end of all jobs. Releases those that are held since their daemon died before the release.
fn wait_for_all(daemon: &Daemon) {
    for job in daemon.client().jobs(&Filter::default()).unwrap_or_default() {
        if job.phase == Phase::Held {
            let _ = daemon.client().release(job.number);
        }
    }
    let left = || daemon.client().jobs(&Filter::default()).map_or(usize::MAX, |jobs| jobs.len());
    let mut fewest = left();
    while fewest > 0 {
        let fewer = || Some(left()).filter(|left| *left < fewest);
        let unfinished = || daemon.client().jobs(&Filter::default());
        fewest = until_or_tell(SOON, fewer, || format!("one of {fewest} jobs ends: {:#?}", unfinished()));
    }
}

/// Plays a round: a thread submits and changes jobs, and meanwhile the fault happens.
fn round_with(daemon: &mut Daemon, draws: &mut Draws, fault: Fault, round: u64) -> Told {
    let (client, folder) = (daemon.client(), daemon.path(""));
    let load = thread::spawn(move || {
        let mut told = Told::default();
        for nth in 0..8 {
            let job = Submission {
                directory: folder.clone(),
                restartable: nth % 3 == 0,
                // The line says who runs, from when.
                ..sh(
                    &format!("echo $MISERLY_JOB_ID $MISERLY_ATTEMPT $(date +%s.%N) >> ran; sleep 0.0{nth}"),
                    4.0,
                )
            };
            match submit_and_change(&client, &job, nth, &mut told) {
                Ok(()) => {}
                Err(ClientError::Gone { .. } | ClientError::NoDaemon { .. }) => break,
                // It is being terminated.
                Err(ClientError::Refused(problem)) if problem.code == ProblemCode::Unavailable => break,
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        told
    });
    thread::sleep(Duration::from_micros(draws.below(80_000)));
    happen(daemon, draws, fault);
    load.join().expect("submissions")
}

/// Submits a job and changes it in one of several ways.
fn submit_and_change(
    client: &Client,
    job: &Submission,
    nth: u64,
    told: &mut Told,
) -> Result<(), ClientError> {
    let accepted = client.submit(job)?;
    let number = accepted.jobs[0].number;
    told.accepted.jobs.push(number);
    if let Some(window) = &accepted.jobs[0].promise {
        told.promised(number, window.start);
    }
    match nth {
        1 => {
            told.accepted.cancelled.insert(number);
            let _ = client.cancel(number, false);
        }
        2 => drop(client.extend(number, 1.0)),
        3 => {
            told.taken_back.insert(number);
            drop(client.requeue(number, false));
        }
        5 => {
            told.taken_back.insert(number);
            let _ = client.hold(number, false).and_then(|_| client.release(number));
        }
        6 => {
            // Promises move earlier.
            for job in client.jobs(&Filter::default())? {
                if let Some(window) = job.promise.and_then(|promise| promise.now) {
                    told.promised(job.number, window.start);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn happen(daemon: &mut Daemon, draws: &mut Draws, fault: Fault) {
    let pause = Duration::from_millis(draws.below(1200));
    match fault {
        Fault::KillDaemon => {
            daemon.kill();
            thread::sleep(pause / 4);
            daemon.start();
        }
        Fault::KillShim => drop(signal_shim(daemon, draws, Signal::KILL)),
        Fault::KillBoth => {
            daemon.kill();
            signal_shim(daemon, draws, Signal::KILL);
            daemon.start();
        }
        Fault::StopDaemon => {
            let pid = daemon.pid().expect("it runs");
            stop_for_a_while(pid, pause);
        }
        Fault::StopShim => {
            if let Some(pid) = signal_shim(daemon, draws, Signal::STOP) {
                thread::sleep(pause);
                // It may have gone.
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        Fault::Terminate => {
            daemon.stop();
            daemon.start();
        }
        Fault::Reload => {
            daemon.configure(&configuration(draws));
            kill_process(daemon.pid().expect("it runs"), Signal::HUP).expect("a signal");
        }
        Fault::OtherPolicy => {
            daemon.kill();
            daemon.configure(&configuration(draws));
            daemon.start();
        }
    }
}

/// Returns a configuration, not always one that the promises admit.
fn configuration(draws: &mut Draws) -> String {
    queue(draws.choice(&["miser", "conservative", "fcfs", "easy", "miser(horizon=1d)"]))
}

fn stop_for_a_while(pid: Pid, pause: Duration) {
    kill_process(pid, Signal::STOP).expect("a signal");
    thread::sleep(pause);
    kill_process(pid, Signal::CONT).expect("a signal");
}

/// Sends a signal to one of the shims, if there are any. Returns the shim.
fn signal_shim(daemon: &Daemon, draws: &mut Draws, signal: Signal) -> Option<Pid> {
    let shims = processes::shims(&daemon.path(""));
    let shim = if shims.is_empty() { return None } else { draws.choice(&shims) };
    // It may have gone.
    let _ = kill_process(shim, signal);
    Some(shim)
}

/// The lines that jobs wrote: by job, each attempt and the instant at which it ran, in seconds since 1970.
struct Runs(BTreeMap<i64, Vec<(u32, f64)>>);

impl Runs {
    fn read(daemon: &Daemon) -> Runs {
        let mut runs: BTreeMap<i64, Vec<(u32, f64)>> = BTreeMap::new();
        for line in fs::read_to_string(daemon.path("ran")).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [job, attempt, at] = words[..] else { panic!("a line of a job: {line}") };
            let run = (attempt.parse().expect("a number"), at.parse().expect("an instant"));
            runs.entry(job.parse().expect("a number")).or_default().push(run);
        }
        Runs(runs)
    }

    /// No attempt runs twice, and only a restartable job, or one that a user requeued, has several.
    #[track_caller]
    fn check(&self, jobs: &BTreeMap<i64, JobView>) {
        for (number, runs) in &self.0 {
            let job = jobs.get(number).unwrap_or_else(|| panic!("job {number} ran, and is in no list"));
            let attempts: Vec<u32> = runs.iter().map(|(attempt, _)| *attempt).collect();
            assert!(attempts.is_sorted_by(|one, next| one < next), "job {number} ran twice: {attempts:?}");
            assert!(attempts.iter().all(|attempt| *attempt <= job.attempts), "job {number}: {attempts:?}");
        }
    }
}

/// A job ran by the start that it was promised, or its record has the breach. It never ran before its submission.
#[track_caller]
fn check_start(job: &JobView, told: &Told, ran: &Runs) {
    let Some((_, at)) = ran.0.get(&job.number).and_then(|runs| runs.first()) else {
        // A shim that was killed before it had begun leaves no line.
        let excused = matches!(job.phase, Phase::Lost { .. } | Phase::Failed { .. })
            || told.accepted.cancelled.contains(&job.number)
            || matches!(job.phase, Phase::Done { .. });
        assert!(excused, "job {} never ran: {:?}", job.number, job.phase);
        return;
    };
    assert!(*at + 0.01 >= job.submitted.as_duration().as_secs_f64(), "job {} ran early", job.number);
    let Some(start) = told.starts.get(&job.number).filter(|_| !told.taken_back.contains(&job.number)) else {
        return;
    };
    let by = at - start.as_duration().as_secs_f64();
    let recorded = job.late.is_some() || job.promise.as_ref().is_none_or(|promise| promise.broken.is_some());
    assert!(
        by < WRITES_WITHIN || recorded,
        "job {} was {by} s late, and nothing says so: {job:#?}",
        job.number
    );
}
