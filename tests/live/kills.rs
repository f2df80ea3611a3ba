//! Whatever is killed, and whenever: what was accepted ends in some state, nothing runs twice, and nothing runs that was not accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;
use std::time::Duration;

use miserly_api::client::ClientError;
use miserly_api::model::{
    Exit, Failure, JobView, JudgedPromise, Judgement, KilledBy, LostBy, Phase, PromiseChangeReason,
    Submission,
};
use miserly_core::{BreachCause, Span};
use miserly_engine::SavedBreachCause;
use rustix::process::{Signal, kill_process};

use crate::support::{Daemon, Draws, Promises, SOON, cpus, is_over, processes, queue, rounds, sh, until};

/// Says who ran: a line with the job and its attempt. Short lines that are appended do not mix.
pub(crate) const SIGN: &str = "echo $MISERLY_JOB_ID $MISERLY_ATTEMPT >> ran; sleep 0.0";

/// What is killed in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Daemon,
    Shim,
    Both,
}

/// What the daemon has accepted.
#[derive(Default)]
pub(crate) struct Accepted {
    pub(crate) jobs: Vec<i64>,
    /// Those of them that it was asked to cancel, whether it answered or not.
    pub(crate) cancelled: BTreeSet<i64>,
}

#[test]
fn nothing_accepted_is_lost_or_run_twice_whatever_is_killed() {
    let mut daemon = Daemon::new(&two_queues());
    let mut draws = Draws::new(4);
    let mut accepted = Accepted::default();
    for round in 0..rounds() {
        let victim = draws.choice(&[Victim::Daemon, Victim::Daemon, Victim::Shim, Victim::Both]);
        let more = load_and_kill(&mut daemon, &mut draws, victim, round);
        accepted.jobs.extend(more.jobs);
        accepted.cancelled.extend(more.cancelled);
    }
    daemon.wait_for_all();
    check(&daemon, &accepted);
    check_promises(&mut daemon);
}

/// A queue with promises, and one whose jobs take turns. Both are of one processor, where there are two.
fn two_queues() -> String {
    let pool = |cpus| format!("cleanup-time = 1\n[pool]\ncpus = {cpus}\nmemory = \"{}MB\"\n", 256 * cpus);
    let queue = |name, policy| {
        format!(
            "[[queue]]\nname = \"{name}\"\npolicy = \"{policy}\"\ncpus = 1\nmemory = \"256MB\"\n\
             default-memory = \"8MB\"\n"
        )
    };
    let (batch, turns) = (queue("batch", "miser"), queue("turns", "gang(quantum=1s)"));
    if cpus().len() < 2 { pool(1) + &batch } else { pool(2) + &batch + &turns }
}

/// Submits and changes jobs while something is killed at a random moment.
fn load_and_kill(daemon: &mut Daemon, draws: &mut Draws, victim: Victim, round: u64) -> Accepted {
    let client = daemon.client();
    let (folder, takes_turns) = (daemon.path(""), cpus().len() >= 2);
    let load = thread::spawn(move || {
        let mut accepted = Accepted::default();
        for nth in 0..12 {
            let job = Submission {
                directory: folder.clone(),
                restartable: nth % 3 == 0,
                queue: Some(if nth % 4 == 3 && takes_turns { "turns" } else { "batch" }.to_owned()),
                ..sh(&format!("{SIGN}{}", nth % 5), 5.0)
            };
            match client.submit(&job) {
                Ok(submitted) => {
                    let number = submitted.jobs[0].number;
                    accepted.jobs.push(number);
                    // Refused where it is over already, and not answered where the daemon is gone.
                    match nth % 6 {
                        1 => {
                            accepted.cancelled.insert(number);
                            let _ = client.cancel(number, false);
                        }
                        2 => drop(client.extend(number, 1.0)),
                        3 => drop(client.requeue(number, true)),
                        _ => {}
                    }
                }
                Err(ClientError::Gone { .. } | ClientError::NoDaemon { .. }) => break,
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        accepted
    });
    thread::sleep(Duration::from_micros(draws.below(150_000)));
    if victim != Victim::Shim {
        daemon.kill();
    }
    if victim != Victim::Daemon {
        kill_a_shim(daemon, draws);
    }
    let accepted = load.join().expect("submissions");
    if victim != Victim::Shim {
        daemon.start();
    }
    accepted
}

/// Kills one of the shims, if there are any.
fn kill_a_shim(daemon: &Daemon, draws: &mut Draws) {
    let shims = processes::shims(&daemon.path(""));
    if !shims.is_empty() {
        // It may have gone.
        let _ = kill_process(draws.choice(&shims), Signal::KILL);
    }
}

/// Every job is over, ran at most once for each of its attempts, and only a restartable one or one that never ran has several.
pub(crate) fn check(daemon: &Daemon, accepted: &Accepted) {
    let jobs: BTreeMap<i64, JobView> = daemon.history().into_iter().map(|job| (job.number, job)).collect();
    for number in &accepted.jobs {
        assert!(jobs.get(number).is_some_and(|job| is_over(&job.phase)), "job {number} was lost");
    }
    let mut ran: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for line in fs::read_to_string(daemon.path("ran")).unwrap_or_default().lines() {
        let (job, attempt) = line.split_once(' ').expect("a job and an attempt");
        ran.entry(job.parse().expect("a number")).or_default().push(attempt.parse().expect("a number"));
    }
    for (number, attempts) in &ran {
        let job = jobs.get(number).unwrap_or_else(|| panic!("job {number} ran, and nobody knows it"));
        assert!(attempts.is_sorted_by(|one, next| one < next), "job {number} ran twice: {attempts:?}");
        assert!(attempts.len() == 1 || job.restartable, "job {number} ran twice: {attempts:?}");
        assert!(attempts.iter().all(|attempt| *attempt <= job.runs), "job {number}: {attempts:?}");
    }
    for job in jobs.values() {
        let by_shim = matches!(job.phase, Phase::Lost { why: LostBy::Shim, .. });
        let done = matches!(job.phase, Phase::Done { .. });
        // A shim that was killed before it had begun, again and again. A restartable job may have run before that.
        let never = matches!(job.phase, Phase::Failed { why: Failure::System, .. });
        let may_have_run = !never || job.restartable || !ran.contains_key(&job.number);
        assert!(may_have_run, "job {} ran: {:?}", job.number, job.phase);
        let by_user = matches!(job.phase, Phase::Killed { by: KilledBy::User, .. });
        let cancelled = by_user && accepted.cancelled.contains(&job.number);
        assert!(done || by_shim || never || cancelled, "job {} came to {:?}", job.number, job.phase);
        // What is still the shim until it becomes the job's command may have been the one that was killed.
        let at_birth = matches!(job.phase, Phase::Done { exit: Exit::Signal(9), .. });
        let ran = ran.contains_key(&job.number);
        assert!(!done || ran || at_birth, "job {} never ran: {:?}", job.number, job.phase);
        assert!(
            job.late.is_none_or(|late| {
                late.why == PromiseChangeReason::Away || late.why == PromiseChangeReason::Lost
            }),
            "job {} {:?}",
            job.number,
            job.late
        );
    }
}

/// Every promise stands in the record of its job, with each breach and its cause; and the counts are those of the jobs.
pub(crate) fn check_promises(daemon: &mut Daemon) {
    for (job, _, why) in check_counts(daemon) {
        assert_eq!(why, SavedBreachCause(BreachCause::Away), "job {job} was late, and the daemon was there");
    }
}

/// As [`check_promises`]. Returns the late starts: the job, the delay in ticks, and the first cause.
pub(crate) fn check_counts(daemon: &mut Daemon) -> Vec<(i64, Span, SavedBreachCause)> {
    let status = daemon.client().status().expect("a status");
    let jobs: BTreeMap<i64, JobView> = daemon.history().into_iter().map(|job| (job.number, job)).collect();
    daemon.stop();
    let promises = Promises::read(&daemon.state());
    let given = |job: &&JobView| job.promise.is_some() || !job.judged.is_empty();
    let shown: BTreeSet<i64> = jobs.values().filter(given).map(|job| job.number).collect();
    assert_eq!(shown, promises.jobs, "none is erased");
    let judged = |judgement| {
        let all = jobs.values().flat_map(|job| &job.judged);
        all.filter(|judged| judged.judgement == judgement).count() as u64
    };
    let [kept, late, lost, withdrawn] =
        [Judgement::Kept, Judgement::Late, Judgement::Lost, Judgement::Withdrawn].map(judged);
    assert_eq!((status.kept, status.late, status.lost, status.withdrawn), (kept, late, lost, withdrawn));
    assert_eq!(status.promises, promises.given);
    assert_eq!(status.promises, kept + late + lost + withdrawn + status.open, "{status:?}");
    // One whose deadline had passed at its start did not run.
    let ran =
        |(job, ..): &&(i64, Span, _)| jobs[job].judged.iter().all(|one| one.judgement != Judgement::Lost);
    for (job, by, _) in promises.late.iter().filter(ran) {
        let is_it = |judged: &&JudgedPromise| judged.judgement == Judgement::Late;
        let shown = jobs[job].judged.iter().find(is_it).and_then(|judged| judged.by);
        let shown = shown.unwrap_or_else(|| panic!("job {job} was late, and nothing says so"));
        assert!((shown * 1e6).round() >= by.ticks() as f64, "job {job}: {shown}");
    }
    promises.late
}

#[test]
fn a_job_runs_on_without_its_daemon_and_the_next_one_adopts_it() {
    let mut daemon = Daemon::of_policy("miser");
    let script = "echo $$ >> pid; while [ ! -e go ]; do sleep 0.05; done; exit 7";
    let job = Submission { directory: daemon.path(""), ..sh(script, 600.0) };
    let number = daemon.submit(&job);
    let pid = || fs::read_to_string(daemon.path("pid")).ok().filter(|text| text.ends_with('\n'));
    let first = until("it runs", SOON, pid);
    for end in [Daemon::kill, Daemon::stop] {
        end(&mut daemon);
        daemon.start();
        assert!(matches!(daemon.job(number).phase, Phase::Running(_)), "{:?}", daemon.job(number).phase);
    }
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(number);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{:?}", ended.phase);
    assert_eq!(fs::read_to_string(daemon.path("pid")).ok(), Some(first));
}

#[test]
fn what_came_due_while_the_daemon_was_away_starts_first_thing_and_is_late_for_that() {
    let mut daemon = Daemon::with_faults(&queue("miser"));
    let cpus = u64::try_from(cpus().len()).expect("a number of processors");
    let all = |script: &str| Submission {
        cpus,
        directory: daemon.path(""),
        no_opportunistic: true,
        ..sh(script, 60.0)
    };
    let first = daemon.submit(&all("touch runs; while [ ! -e go ]; do sleep 0.05; done"));
    let second = daemon.submit(&all("true"));
    until("the first one runs", SOON, || daemon.path("runs").exists().then_some(()));
    daemon.kill();
    fs::write(daemon.path("go"), "").expect("a file");
    until("it ends without a daemon", SOON, || daemon.has_ended(first).then_some(()));
    // Its promised start is past, and that by an hour.
    daemon.set_ahead(3660.0);
    daemon.start();
    let second = daemon.wait(second);
    assert!(matches!(daemon.job(first).phase, Phase::Done { .. }), "{:?}", daemon.job(first).phase);
    assert!(matches!(second.phase, Phase::Done { .. }), "{:?}", second.phase);
    let late = second.late.expect("it is late");
    assert!(late.why == PromiseChangeReason::Away && late.by > 3500.0, "{late:?}");
    assert_eq!(daemon.client().status().expect("a status").late, 1);
    check_promises(&mut daemon);
}
