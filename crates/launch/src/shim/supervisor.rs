//! The main loop of a shim over its children, its timer and the daemon.

use miserly_attempt::{
    BootTime, EarlySignal, Files as _, Handshake, ProgramKind, RunMode, ShimRefusal, StartFailure,
    StartRecord,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use miserly_cgroup::Capability;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, set_child_subreaper};

use super::alarm::Alarm;
use super::claim::{self, ClaimedAttempt};
use super::job_cgroup::JobCgroup;
use super::job_processes::{JobProcesses, set_session_nice};
use super::main_process::{MainProcess, SetupFailure, SetupMessage};
use super::pam_session;
use super::pending_end::PendingEnd;
use super::queue_programs::QueueProgramRuns;
use super::stop::PendingStop;
use super::timeline::{DueAction, Timeline};
use super::user_signals::UserSignals;
use crate::clock::MachineClock as _;
use crate::connection::Connection;
use crate::cpus;
use crate::identity::{self, raw};
use crate::procfs;
use crate::shortage::{is_shortage, is_shortage_of_record};
use crate::sys;

/// Time from the request of the permission to the permission after which the start record is corrected.
const LATE_PERMISSION: Duration = Duration::from_millis(100);
/// Of -1000, never killed, to 1000.
const OUT_OF_MEMORY_SCORE: &str = "-900";
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
    /// Signals of the user that are to be sent.
    pub(super) signals_to_send: UserSignals,
    /// Prolog and epilog.
    pub(super) programs: QueueProgramRuns,
    signals: OwnedFd,
    alarm: Alarm,
}

/// Supervises the attempt in a folder until its end is recorded.
pub(super) fn supervise(dir: &Path) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let signals = sys::signals();
    let mut launcher = claim::launcher_connection().map_err(text)?;
    let mut begun = begin(dir, signals, launcher.is_some());
    // The shim must not keep a file system mounted.
    std::env::set_current_dir("/").map_err(text)?;
    if let Some(connection) = &mut launcher {
        let message =
            begun.as_ref().err().map_or(Handshake::Claimed, |refusal| Handshake::Refused(refusal.clone()));
        // A launcher that has died does not receive it; a later `find` will.
        if connection.send(&message).is_ok() && begun.is_ok() {
            claim::wait_for_launcher(connection).map_err(text)?;
        }
    }
    if let Ok(supervisor) = &mut begun {
        supervisor.daemon = launcher;
    }
    begun.map_err(|refusal| refusal.to_string())?.run().map_err(text)
}

/// Claims the attempt and spawns the program that will become the command.
///
/// A failure leaves the attempt to the launcher, which declares it void.
fn begin(dir: &Path, signals: io::Result<OwnedFd>, has_daemon: bool) -> Result<Supervisor, ShimRefusal> {
    let failed = |error: io::Error| ShimRefusal::Begin { error: error.to_string() };
    let signals = signals.map_err(failed)?;
    let attempt = claim::claim(dir)?;
    Supervisor::new(attempt, has_daemon, signals).map_err(failed)
}

impl Supervisor {
    fn new(attempt: ClaimedAttempt, has_daemon: bool, signals: OwnedFd) -> io::Result<Supervisor> {
        set_child_subreaper(Some(getpid()))?;
        // Only root may become a late choice of the kernel's out-of-memory killer. The command resets it.
        let _ = std::fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
        let cgroup = JobCgroup::begin(&attempt.spec)?;
        let main = MainProcess::start(attempt.folder.path())?;
        let spec = &attempt.spec;
        let mut timeline = match spec.run_limit {
            Some(limit) => Timeline::with_run_limit(limit, spec.grace, spec.orphan_resume_delay),
            None => Timeline::new(spec.mode.end(), spec.grace, spec.orphan_resume_delay),
        };
        timeline.set_start(spec.mode.window().map(|window| window.start));
        timeline.set_warning(spec.early_signal.map(|signal| signal.before));
        timeline.set_daemon_absent((!has_daemon).then(BootTime::now));
        Ok(Supervisor {
            processes: JobProcesses::new(main.pid, cgroup),
            mode: spec.mode.clone(),
            alarm: Alarm::new()?,
            stop: None,
            in_one_group: false,
            resume_at: None,
            pending_end: None,
            pending_nice: None,
            scan_at: None,
            attempt,
            daemon: None,
            greets: false,
            main,
            timeline,
            signals_to_send: UserSignals::default(),
            programs: QueueProgramRuns::default(),
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
            self.send_user_signals();
        }
        if (self.main.is_permitted || self.programs.has_begun(ProgramKind::Prolog))
            && let Err(error) =
                pam_session::begin_close(self.attempt.folder.path(), self.attempt.spec.user.as_ref())
        {
            super::log(&format_args!("the session of PAM is not closed: {error}"));
        }
        Ok(())
    }

    /// Returns the next instant at which the loop must run.
    fn next(&self) -> Option<BootTime> {
        let stop = self.stop.as_ref().map(|stop| stop.scan_at);
        let pending_end = self.pending_end.as_ref().map(|pending_end| pending_end.write_at);
        let pending_nice = self.pending_nice.map(|(_, at)| at);
        let unread = self.daemon.as_ref().is_some_and(Connection::has_line).then_some(BootTime(0));
        let in_epilog = self.programs.has_begun(ProgramKind::Epilog);
        let due = self.timeline.next().filter(|_| !in_epilog);
        let program = self.programs.next();
        [unread, due, program, stop, pending_end, pending_nice, self.scan_at, self.resume_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Waits for an event or the timer.
    fn wait(&mut self) -> io::Result<()> {
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
        // The last one, so that its result is found.
        polled.extend(
            self.processes
                .watched_cgroup()
                .map(|cgroup| PollFd::from_borrowed_fd(cgroup.as_fd(), PollFlags::PRI)),
        );
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_events = polled.last().is_some_and(|last| last.revents().contains(PollFlags::PRI));
        if has_events && let Some(cgroup) = self.processes.watched_cgroup() {
            self.scan_at = Some(BootTime(0));
            cgroup.clear_events();
        }
        Ok(())
    }

    /// Handles a message of the preparing program. Permission follows the durable start record.
    fn handle_setup(&mut self, message: SetupMessage) {
        let failure = match message {
            SetupMessage::Doing(failure) => return self.main.note_step(failure),
            SetupMessage::Here => self.permit_command().err(),
            SetupMessage::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            if let SetupFailure::Shortage(what) = &failure {
                super::log(&format_args!("the command was not started, for lack of a resource: {what}"));
            }
            self.main.refuse(failure);
        }
    }

    fn permit_command(&mut self) -> Result<(), SetupFailure> {
        // The end of the window may be due, and not dealt with yet.
        if self.timeline.end().is_some_and(|end| end <= BootTime::now())
            && let Err(error) = self.run_due_actions(BootTime::now())
        {
            super::log(&error);
        }
        if self.timeline.ending().is_some() {
            return Err(StartFailure::Ended.into());
        }
        let (pid, asked) = (self.main.pid, BootTime::now());
        let setup = StartFailure::setup;
        let main = identity::of(pid)
            .map_err(|error| SetupFailure::new(setup("its identity", &error), is_shortage(&error)))?;
        let cgroup = self.processes.any_cgroup().map(|cgroup| cgroup.path().to_owned());
        let programs = self.attempt.spec.queue_programs.as_ref();
        let epilog = programs.and_then(|programs| Some(programs.epilog.as_ref()?.limit));
        let autogroup = procfs::autogroup(pid);
        // What the user made slow is part of the window.
        let at = self.main.begin_of_user_part().unwrap_or(asked);
        let started = StartRecord { main, sid: pid, autogroup, at, cgroup, epilog };
        self.attempt
            .folder
            .write_start(&started)
            .map_err(|error| SetupFailure::new(setup("its start", &error), is_shortage_of_record(&error)))?;
        self.place_main()?;
        if self.timeline.is_stopped() {
            // The program becomes the command when it is resumed.
            self.stop_group();
        }
        self.begin_prolog()?;
        self.correct_start(started, asked);
        Ok(())
    }

    /// Writes the start record again if the permission came much later than it was `asked` for, because this shim was stopped
    /// between the two.
    fn correct_start(&self, started: StartRecord, asked: BootTime) {
        let late = BootTime::now().since(asked);
        let at = started.at.after(late);
        if late > LATE_PERMISSION
            && let Err(error) = self.attempt.folder.write_start(&StartRecord { at, ..started })
        {
            super::log(&error);
        }
    }

    /// Gives the main process what its mode allows, before it becomes the command.
    fn place_main(&mut self) -> Result<(), StartFailure> {
        let (setup, pid) = (StartFailure::setup, self.main.pid);
        let on_cpus = |error: &dyn ToString| setup(&format!("the cpus {:?}", self.mode.cpus()), error);
        if let Some(cgroup) = self.processes.any_cgroup() {
            cgroup.apply(&self.mode).map_err(|error| {
                if error.is_about_cpus() { on_cpus(&error) } else { setup("its control group", &error) }
            })?;
        }
        if self.processes.cgroup(Capability::Cpus).is_none() {
            cpus::set_affinity(raw(pid), self.mode.cpus()).map_err(|error| on_cpus(&error))?;
            if self.attempt.spec.interaction.is_some() {
                // The relay has begun before its processors were known.
                self.processes.place(self.mode.cpus(), false).map_err(|error| on_cpus(&error))?;
            }
        }
        let is_opportunistic = matches!(self.mode, RunMode::Opportunistic { .. });
        if is_opportunistic && self.processes.cgroup(Capability::Idle).is_none() {
            sys::set_idle(raw(pid), true).map_err(|error| setup("the idle class", &error))?;
            self.set_nice(OPPORTUNISTIC_NICE, BootTime::now());
        }
        Ok(())
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
        let children = self.main.reap(&mut self.programs)?;
        self.scan_at = None;
        self.follow_up_program();
        let (epilog_runs, has_epilog) =
            (self.programs.runs(ProgramKind::Epilog), self.programs.has_begun(ProgramKind::Epilog));
        if epilog_runs {
            return Ok(());
        }
        if has_epilog || self.timeline.ending().is_some_and(|ending| ending.killed) {
            // Processes created since the last scan.
            self.processes.kill()?;
        }
        if self.main.exit.is_none() {
            return Ok(());
        }
        match children {
            true if had_main => {
                let has_relay = self.attempt.spec.interaction.is_some();
                self.timeline.terminate_leftovers(now, has_relay);
            }
            true => {}
            false if self.processes.are_gone()? => self.end_or_clean_up(now),
            // The exit of a process that is not a child is not signalled.
            false => self.scan_at = Some(now.after(RETRY_INTERVAL)),
        }
        Ok(())
    }

    /// Carries out all due actions.
    fn run_due_actions(&mut self, now: BootTime) -> io::Result<()> {
        self.kill_slow_program(now)?;
        // No deadline of the job applies to its epilog.
        let in_epilog = self.programs.has_begun(ProgramKind::Epilog);
        while let Some(due) = if in_epilog { None } else { self.timeline.due(now) } {
            self.override_stop(due);
            match due {
                DueAction::Begin => self.begin_due_window(now),
                DueAction::Warn => {
                    if let Some(EarlySignal { signal, main_only, .. }) = self.attempt.spec.early_signal {
                        self.signals_to_send.push(signal, main_only);
                    }
                }
                DueAction::Term => {
                    self.processes.signal(Signal::TERM)?;
                    // A stopped process receives the signal when it is resumed, before any other.
                    self.processes.signal(Signal::CONT)?;
                    self.thaw()?;
                }
                DueAction::Kill => self.processes.kill()?,
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
