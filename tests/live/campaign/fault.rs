//! The faults of a campaign.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use miserly_api::client::ClientError;
use miserly_api::model::{Filter, ProblemCode};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use super::clocks::{Clocks, Shared};
use super::configuration;
use crate::support::{Daemon, Draws, SOON, processes, sh, until};

/// A fault of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    KillDaemon,
    KillShim,
    KillBoth,
    /// A shim is killed, and another process takes its lock.
    ReplaceShim,
    StopDaemon,
    StopShim,
    /// A shim is stopped, and nobody but the daemon continues it.
    LeaveShimStopped,
    /// The daemon, its shims and their jobs stop.
    StopAll,
    Terminate,
    Reload,
    OtherPolicy,
    /// The disk has no room for anything.
    FullDisk,
    /// The disk has no room for one kind of file.
    FullForSome,
    /// The file system of the state is full.
    FullFileSystem,
    /// A commit fails, and is on disk or not.
    FailedCommit,
    /// A daemon starts on a full disk.
    StartOnFullDisk,
    /// Files of attempts cannot be written.
    FailedRecord,
    SetClock,
    Sleep,
}

impl Fault {
    /// The faults that need no file system of their own.
    pub(super) const ALL: [Fault; 18] = [
        Fault::KillDaemon,
        Fault::KillShim,
        Fault::KillBoth,
        Fault::ReplaceShim,
        Fault::StopDaemon,
        Fault::StopShim,
        Fault::LeaveShimStopped,
        Fault::StopAll,
        Fault::Terminate,
        Fault::Reload,
        Fault::OtherPolicy,
        Fault::FullDisk,
        Fault::FullForSome,
        Fault::FailedCommit,
        Fault::StartOnFullDisk,
        Fault::FailedRecord,
        Fault::SetClock,
        Fault::Sleep,
    ];

    /// Returns whether requests may be refused for lack of room.
    pub(super) fn fills_the_disk(self) -> bool {
        matches!(self, Fault::FullDisk | Fault::FullForSome | Fault::FullFileSystem | Fault::StartOnFullDisk)
    }
}

/// Lets a fault happen, and ends it.
pub(super) fn happen(daemon: &mut Daemon, clocks: &Shared, draws: &mut Draws, fault: Fault) {
    let pause = Duration::from_millis(draws.below(1200));
    match fault {
        Fault::KillShim
        | Fault::ReplaceShim
        | Fault::StopShim
        | Fault::LeaveShimStopped
        | Fault::StopDaemon
        | Fault::StopAll => {
            disturb_processes(daemon, draws, fault, pause);
        }
        Fault::KillDaemon | Fault::KillBoth | Fault::Terminate | Fault::Reload | Fault::OtherPolicy => {
            restart(daemon, draws, fault, pause);
        }
        Fault::SetClock => {
            let minutes = draws.choice(&[
                -5_256_000.0,
                -525_600.0,
                -60.0,
                -1.0,
                0.0,
                1.0,
                60.0,
                525_600.0,
                5_256_000.0,
            ]);
            change(clocks, |clocks| clocks.set(minutes * 60.0));
        }
        Fault::Sleep => {
            let seconds = draws.choice(&[0.1, 1.0, 3.0, 10.0, 3600.0]);
            change(clocks, |clocks| clocks.sleep(seconds));
        }
        _ => fail_disk(daemon, clocks, draws, fault, pause),
    }
}

/// Stops or kills processes of a daemon that runs on.
fn disturb_processes(daemon: &Daemon, draws: &mut Draws, fault: Fault, pause: Duration) {
    match fault {
        Fault::KillShim => drop(signal_shim(daemon, draws, Signal::KILL)),
        Fault::ReplaceShim => replace_shim(daemon, draws, pause),
        Fault::StopShim => {
            if let Some(pid) = signal_shim(daemon, draws, Signal::STOP) {
                thread::sleep(pause);
                // It may have gone.
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        Fault::LeaveShimStopped => {
            // Before its record a shim has no supervisor that could continue it.
            let shim = any_shim(daemon, draws).filter(|shim| {
                processes::argument(*shim, 2)
                    .is_some_and(|folder| Path::new(&folder).join("shim.json").exists())
            });
            if let Some(shim) = shim {
                let _ = kill_process(shim, Signal::STOP);
            }
        }
        Fault::StopDaemon => {
            let pid = daemon.pid().expect("it runs");
            stop_for_a_while(&[pid], pause);
        }
        Fault::StopAll => {
            let all = processes::of_daemon(&daemon.path(""));
            let runs = |pid: &Pid| {
                processes::state(pid.as_raw_nonzero().get().unsigned_abs()).is_some_and(|state| state != "T")
            };
            stop_for_a_while(&all.into_iter().filter(runs).collect::<Vec<_>>(), pause);
        }
        _ => unreachable!("{fault:?}"),
    }
}

/// Ends the daemon, or changes its configuration.
fn restart(daemon: &mut Daemon, draws: &mut Draws, fault: Fault, pause: Duration) {
    match fault {
        Fault::KillDaemon => {
            daemon.kill();
            thread::sleep(pause / 4);
            daemon.start();
        }
        Fault::KillBoth => {
            daemon.kill();
            signal_shim(daemon, draws, Signal::KILL);
            daemon.start();
        }
        Fault::Terminate => {
            daemon.stop();
            daemon.start();
        }
        Fault::Reload => {
            daemon.configure(&configuration::any(draws));
            kill_process(daemon.pid().expect("it runs"), Signal::HUP).expect("a signal");
        }
        Fault::OtherPolicy => {
            daemon.kill();
            daemon.configure(&configuration::any(draws));
            daemon.start();
        }
        _ => unreachable!("{fault:?}"),
    }
}

/// Lets the disk of the daemon fail for a while.
fn fail_disk(daemon: &mut Daemon, clocks: &Shared, draws: &mut Draws, fault: Fault, pause: Duration) {
    match fault {
        Fault::FullDisk => {
            fail(
                clocks,
                &[
                    "commit:enospc",
                    "folder:enospc",
                    "record:enospc",
                    "room:enospc",
                    "backup:enospc",
                    "script:enospc",
                ],
            );
            is_refused_and_reads_on(daemon);
            thread::sleep(pause);
            mend(clocks);
        }
        Fault::FullForSome => {
            let points = ["commit", "folder", "record", "room", "script", "end"];
            fail(clocks, &[&format!("{}:enospc", draws.choice(&points))]);
            thread::sleep(pause);
            mend(clocks);
        }
        Fault::FullFileSystem => super::small_disk::fill_for(daemon, pause),
        Fault::FailedCommit => {
            let point = draws.choice(&["commit", "flush"]);
            fail(clocks, &[&format!("{point}:eio:{}", 1 + draws.below(6))]);
            thread::sleep(pause / 2);
            mend(clocks);
            start_if_it_ended(daemon);
        }
        Fault::StartOnFullDisk => {
            fail(clocks, &["open:enospc", "commit:enospc"]);
            daemon.kill();
            daemon.start_unready();
            thread::sleep(pause);
            assert!(!daemon.is_dead(), "it waits for room");
            mend(clocks);
            daemon.wait_until_ready();
        }
        Fault::FailedRecord => {
            let points = ["folder", "record", "record-flush", "room", "script", "start", "end", "output"];
            fail(clocks, &[&format!("{}:eio", draws.choice(&points))]);
            thread::sleep(pause / 2);
            mend(clocks);
        }
        _ => unreachable!("{fault:?}"),
    }
}

fn change(clocks: &Shared, change: impl FnOnce(&mut Clocks)) {
    change(&mut clocks.write().expect("clocks"));
}

fn fail(clocks: &Shared, faults: &[&str]) {
    change(clocks, |clocks| clocks.fail(faults));
}

fn mend(clocks: &Shared) {
    fail(clocks, &[]);
}

/// A request that changes something is refused for lack of room, and questions are answered.
#[track_caller]
fn is_refused_and_reads_on(daemon: &Daemon) {
    let client = daemon.client();
    match client.submit(&sh("true", 4.0)) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Storage, "{problem}"),
        other => panic!("{other:?}"),
    }
    client.status().expect("a status");
    client.jobs(&Filter { all: true, ..Filter::default() }).expect("a list");
}

/// Starts the daemon again if an error of its disk has ended it.
#[track_caller]
fn start_if_it_ended(daemon: &mut Daemon) {
    // Its answer comes after every commit that failed.
    if daemon.client().status().is_err() {
        until("the daemon ends", SOON, || daemon.is_dead().then_some(()));
        daemon.start();
    }
}

/// Kills a shim and takes its lock for a while, as a process that is no shim may.
fn replace_shim(daemon: &Daemon, draws: &mut Draws, pause: Duration) {
    let Some(shim) = any_shim(daemon, draws) else { return };
    let Some(folder) = processes::argument(shim, 2) else { return };
    let Ok(lock) = File::options().write(true).open(Path::new(&folder).join("lock")) else {
        return;
    };
    let _ = kill_process(shim, Signal::KILL);
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        thread::sleep(pause);
    }
}

fn stop_for_a_while(all: &[Pid], pause: Duration) {
    let send = |signal| {
        for pid in all {
            // It may have gone.
            let _ = kill_process(*pid, signal);
        }
    };
    send(Signal::STOP);
    thread::sleep(pause);
    send(Signal::CONT);
}

/// Returns one of the shims, if there are any.
fn any_shim(daemon: &Daemon, draws: &mut Draws) -> Option<Pid> {
    let shims = processes::shims(&daemon.path(""));
    (!shims.is_empty()).then(|| draws.choice(&shims))
}

/// Sends a signal to one of the shims, if there are any. Returns the shim.
fn signal_shim(daemon: &Daemon, draws: &mut Draws, signal: Signal) -> Option<Pid> {
    let shim = any_shim(daemon, draws)?;
    // It may have gone.
    let _ = kill_process(shim, signal);
    Some(shim)
}
