//! The main loop of a shim over its children, its timer and the daemon.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, set_child_subreaper};

use super::alarm::Alarm;
use super::claim::{self, ClaimedAttempt};
use super::job_processes::{JobProcesses, set_session_nice};
use super::main_process::{MainProcess, Permission, SetupMessage};
use super::pending_end::PendingEnd;
use super::stop::PendingStop;
use super::timeline::{DueAction, Timeline};
use crate::connection::Connection;
use crate::cpus;
use crate::end::StartFailure;
use crate::folder::{self, StartRecord};
use crate::identity::{Identity, raw};
use crate::message::Handshake;
use crate::procfs;
use crate::spec::RunMode;
use crate::sys;
use crate::time::BootTime;

/// Nice value of the autogroup of an opportunistic job.
const OPPORTUNISTIC_NICE: i32 = 19;
/// Retry interval for the weight of a session and for scans of processes.
///
/// The kernel limits how often a weight may change. Scans cover processes whose exit is not
/// signalled and processes that could not be inspected.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(110);

/// The state of a shim.
pub(super) struct Supervisor {
    pub(super) attempt: ClaimedAttempt,
    pub(super) daemon: Option<Connection>,
    /// Whether the next reply carries the description of this shim.
    pub(super) greets: bool,
    pub(super) main: MainProcess,
    pub(super) processes: JobProcesses,
    pub(super) timeline: Timeline,
    /// Present mode of the job. Its end is in the timeline.
    pub(super) mode: RunMode,
    pub(super) stop: Option<PendingStop>,
    /// Whether the job is stopped and all its processes are in the main process group.
    pub(super) in_one_group: bool,
    /// Next scan for processes that are still to be resumed.
    pub(super) resume_at: Option<BootTime>,
    pub(super) pending_end: Option<PendingEnd>,
    /// Session weight that the kernel has not accepted yet, and the next attempt.
    pub(super) pending_nice: Option<(i32, BootTime)>,
    /// Next scan for processes whose exit is not signalled.
    scan_at: Option<BootTime>,
    signals: OwnedFd,
    alarm: Alarm,
}

/// Supervises the attempt in a folder until its end is recorded.
pub(super) fn supervise(dir: &Path) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let signals = sys::signals().map_err(text)?;
    let mut launcher = claim::launcher_connection().map_err(text)?;
    let attempt = claim::claim(dir);
    // The shim must not keep a file system mounted.
    std::env::set_current_dir("/").map_err(text)?;
    if let Some(connection) = &mut launcher {
        let message =
            attempt.as_ref().err().map_or(Handshake::Claimed, |refusal| Handshake::Refused(refusal.clone()));
        // A launcher that has died does not receive it; a later `find` will.
        if connection.send(&message).is_ok() && attempt.is_ok() {
            claim::wait_for_launcher(connection).map_err(text)?;
        }
    }
    let attempt = attempt.map_err(|refusal| refusal.to_string())?;
    Supervisor::new(attempt, launcher, signals).and_then(Supervisor::run).map_err(text)
}

impl Supervisor {
    fn new(attempt: ClaimedAttempt, daemon: Option<Connection>, signals: OwnedFd) -> io::Result<Supervisor> {
        set_child_subreaper(Some(getpid()))?;
        let main = MainProcess::start(attempt.folder.path())?;
        let spec = &attempt.spec;
        let mut timeline = match spec.run_limit {
            Some(limit) => Timeline::with_run_limit(limit, spec.grace, spec.orphan_resume_delay),
            None => Timeline::new(spec.mode.end(), spec.grace, spec.orphan_resume_delay),
        };
        timeline.set_start(spec.mode.window().map(|window| window.start));
        timeline.set_daemon_absent(daemon.is_none().then(BootTime::now));
        Ok(Supervisor {
            processes: JobProcesses::new(main.pid),
            mode: spec.mode.clone(),
            alarm: Alarm::new()?,
            stop: None,
            in_one_group: false,
            resume_at: None,
            pending_end: None,
            pending_nice: None,
            scan_at: None,
            attempt,
            daemon,
            greets: false,
            main,
            timeline,
            signals,
        })
    }

    /// Runs the main loop until the end is recorded.
    fn run(mut self) -> io::Result<()> {
        while !self.record_end(BootTime::now()) {
            self.alarm.set(self.next())?;
            self.wait()?;
            self.alarm.clear()?;
            // Messages of an exited process remain readable until it is reaped.
            while let Some(message) = self.main.next_message() {
                self.handle_setup(message);
            }
            if let Err(error) = self.reap_children().and_then(|()| self.run_due_actions(BootTime::now())) {
                // The system is out of files or memory. The shim keeps supervising the job.
                super::log(&error);
                self.scan_at = Some(BootTime::now().after(RETRY_INTERVAL));
            }
            self.accept();
            self.receive_commands();
        }
        Ok(())
    }

    /// Returns the next instant at which the loop must run.
    fn next(&self) -> Option<BootTime> {
        let stop = self.stop.as_ref().map(|stop| stop.scan_at);
        let pending_end = self.pending_end.as_ref().map(|pending_end| pending_end.write_at);
        let pending_nice = self.pending_nice.map(|(_, at)| at);
        let unread = self.daemon.as_ref().is_some_and(Connection::has_line).then_some(BootTime(0));
        [unread, self.timeline.next(), stop, pending_end, pending_nice, self.scan_at, self.resume_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Waits for an event or the timer.
    fn wait(&self) -> io::Result<()> {
        let connections = [self.daemon.as_ref(), self.main.connection.as_ref()];
        let mut polled = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.alarm, PollFlags::IN),
            PollFd::new(&self.attempt.listener, PollFlags::IN),
        ];
        polled.extend(
            connections
                .into_iter()
                .flatten()
                .map(|connection| PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN)),
        );
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a message of the preparing program. Permission follows the durable start record.
    fn handle_setup(&mut self, message: SetupMessage) {
        let failure = match message {
            SetupMessage::Here => self.permit_command().err(),
            SetupMessage::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            self.main.failure = Some(failure);
            // Without permission the program exits.
            self.main.connection = None;
        }
    }

    fn permit_command(&mut self) -> Result<(), StartFailure> {
        if self.timeline.ending().is_some() {
            return Err(StartFailure::Ended);
        }
        let pid = self.main.pid;
        let setup = StartFailure::setup;
        let main = Identity::from_pid(pid).map_err(|error| setup("its identity", &error))?;
        let started = StartRecord { main, sid: pid, autogroup: procfs::autogroup(pid), at: BootTime::now() };
        self.attempt.folder.write(folder::STARTED, &started).map_err(|error| setup("its start", &error))?;
        cpus::set_affinity(raw(pid), self.mode.cpus())
            .map_err(|error| setup(&format!("the cpus {:?}", self.mode.cpus()), &error))?;
        if matches!(self.mode, RunMode::Opportunistic { .. }) {
            sys::set_idle(raw(pid), true).map_err(|error| setup("the idle class", &error))?;
            self.set_nice(OPPORTUNISTIC_NICE, BootTime::now());
        }
        if self.timeline.is_stopped() {
            // The program becomes the command when it is resumed.
            self.stop_group();
        }
        self.main.is_permitted = true;
        match &mut self.main.connection {
            Some(connection) => {
                connection.send(&Permission).map_err(|error| setup("the permission to run", &error))
            }
            None => Ok(()),
        }
    }

    /// Sets the weight of the session, or schedules a retry.
    pub(super) fn set_nice(&mut self, nice: i32, now: BootTime) {
        let accepted = set_session_nice(self.main.pid, nice);
        self.pending_nice = (!accepted).then(|| (nice, now.after(RETRY_INTERVAL)));
    }

    /// Reaps exited children, kills remaining processes if due, and detects the end of the job.
    fn reap_children(&mut self) -> io::Result<()> {
        let (now, had_main) = (BootTime::now(), self.main.exit.is_none());
        let due = self.scan_at.is_some_and(|at| at <= now);
        let signals = sys::take_signals(&self.signals);
        if signals.shutdown {
            self.shut_down(now);
        }
        if !(signals.child || due) || self.pending_end.is_some() {
            return Ok(());
        }
        let children = self.main.reap()?;
        self.scan_at = None;
        if self.timeline.ending().is_some_and(|ending| ending.killed) {
            // Processes created since the last scan.
            self.processes.signal(Signal::KILL)?;
        }
        if self.main.exit.is_none() {
            return Ok(());
        }
        match (self.processes.living()?.is_empty(), children) {
            (true, false) => self.pending_end = Some(PendingEnd::new(self.end(now), now)),
            (_, true) if had_main => self.timeline.terminate_leftovers(now),
            (_, true) => {}
            // The exit of a process that is not a child is not signalled.
            (false, false) => self.scan_at = Some(now.after(RETRY_INTERVAL)),
        }
        Ok(())
    }

    /// Carries out all due actions.
    fn run_due_actions(&mut self, now: BootTime) -> io::Result<()> {
        while let Some(due) = self.timeline.due(now) {
            self.override_stop(due);
            match due {
                DueAction::Begin => self.begin_due_window(now),
                DueAction::Term => {
                    self.processes.signal(Signal::TERM)?;
                    // A stopped process receives the signal when it is resumed, before any other.
                    self.processes.signal(Signal::CONT)?;
                }
                DueAction::Kill => self.processes.signal(Signal::KILL)?,
                DueAction::Resume => self.resume_all()?,
            }
        }
        self.prove_stop(now);
        match self.pending_nice {
            Some((nice, at)) if at <= now => self.set_nice(nice, now),
            _ => {}
        }
        self.retry_resume(now)
    }
}
