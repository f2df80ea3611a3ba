//! The state of a shim, and its duties after each event.

use std::io;
use std::time::Duration;

use miserly_cgroup::Capability;
use miserly_marks::{mark, mark_variant};

use super::claim::ClaimedAttempt;
use super::daemon_link::DaemonLink;
use super::host::{Events, Host, Recipients, Signal, ThreadClass};
use super::idle::{IdleAction, IdleWatch};
use super::main_process::{MainProcess, SetupFailure, SetupMessage};
use super::pending_end::PendingEnd;
use super::queue_programs::QueueProgramRuns;
use super::stop::PendingStop;
use super::timeline::{DueAction, Timeline};
use super::user_signals::UserSignals;
use crate::end::StartFailure;
use crate::files::{Files, RecordError, StartRecord};
use crate::queue_program::ProgramKind;
use crate::spec::{AttemptSpec, CriticalPriority, EarlySignal, IdleRule, ResizeNotice, RunMode};
use crate::time::BootTime;

/// Time from the request of the permission to the permission after which the start record is corrected.
const LATE_PERMISSION: Duration = Duration::from_millis(100);
/// Nice value of the autogroup of an opportunistic job.
const OPPORTUNISTIC_NICE: i32 = 19;
/// Nice value of the processes and the autogroups of a job with a priority in its window: the one with the highest weight.
pub const CRITICAL_NICE: i32 = -20;
/// Retry interval for the weight of a session and for scans of processes.
///
/// The kernel limits how often a weight may change. Scans cover processes whose exit is not
/// signalled and processes that could not be inspected.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(110);

/// A shim from the start of the preparing program on: it supervises the attempt until its end is recorded.
pub(super) struct Supervisor<H: Host> {
    pub(super) host: H,
    pub(super) attempt: ClaimedAttempt<H::Files>,
    pub(super) daemon: DaemonLink<H::Connection>,
    pub(super) main: MainProcess<H::Connection>,
    pub(super) timeline: Timeline,
    /// Present mode of the job. Its end is in the timeline.
    pub(super) mode: RunMode,
    /// Next attempt to give the job the processors of its window, which has begun without them.
    pub(super) place_at: Option<BootTime>,
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
    pub(super) programs: QueueProgramRuns<H::Connection>,
    /// The activity of the job, if it has a rule for idle jobs.
    pub(super) idle: Option<IdleWatch>,
    pub(super) is_over: bool,
}

/// A claimed attempt whose preparing program could not be started.
pub(super) struct NotStarted<H: Host> {
    pub(super) host: H,
    pub(super) attempt: ClaimedAttempt<H::Files>,
    pub(super) daemon: DaemonLink<H::Connection>,
    pub(super) error: io::Error,
}

impl<H: Host> Supervisor<H> {
    /// Starts the preparing program of a claimed attempt.
    ///
    /// # Errors
    /// No program was started.
    pub(super) fn new(
        mut host: H,
        attempt: ClaimedAttempt<H::Files>,
        daemon: DaemonLink<H::Connection>,
    ) -> Result<Supervisor<H>, Box<NotStarted<H>>> {
        let (pid, connection) = match host.start_main(&attempt.spec) {
            Ok(started) => started,
            Err(error) => return Err(Box::new(NotStarted { host, attempt, daemon, error })),
        };
        let idle = attempt.spec.idle.map(|rule| IdleWatch::new(rule, host.now()));
        Ok(Supervisor {
            mode: attempt.spec.mode.clone(),
            place_at: None,
            stop: None,
            in_one_group: false,
            resume_at: None,
            pending_end: None,
            pending_nice: None,
            scan_at: None,
            timeline: timeline(&attempt.spec, daemon.absent_since()),
            attempt,
            daemon,
            main: MainProcess::new(pid, connection),
            signals_to_send: UserSignals::default(),
            programs: QueueProgramRuns::default(),
            idle,
            is_over: false,
            host,
        })
    }

    /// Returns the next instant at which a step is due. It may be past. `None`: only an event is a reason.
    pub(super) fn next(&self) -> Option<BootTime> {
        let stop = self.stop.as_ref().map(|stop| stop.scan_at);
        let pending_end = self.pending_end.as_ref().map(|pending_end| pending_end.write_at);
        let pending_nice = self.pending_nice.map(|(_, at)| at);
        let unread = self.daemon.has_line().then_some(BootTime(0));
        let in_epilog = self.programs.has_begun(ProgramKind::Epilog);
        let due = self.timeline.next().filter(|_| !in_epilog);
        let program = self.programs.next();
        let look_at = self.idle.as_ref().filter(|_| self.pending_end.is_none()).map(IdleWatch::look_at);
        [
            look_at,
            unread,
            due,
            program,
            stop,
            pending_end,
            pending_nice,
            self.place_at,
            self.scan_at,
            self.resume_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Handles all events, due actions and commands, and records the end if it is due.
    pub(super) fn step(&mut self) {
        // Messages of an exited process remain readable until it is reaped.
        while let Some(message) = self.main.next_message() {
            self.handle_setup(message);
        }
        if let Err(error) = self.reap_children().and_then(|()| self.run_due_actions(self.host.now())) {
            // The system is out of files or memory. The shim keeps supervising the job.
            self.host.log(&error);
            self.scan_at = Some(self.host.now().after(RETRY_INTERVAL));
        }
        self.accept();
        self.receive_commands();
        self.send_user_signals();
        self.record_end(self.host.now());
    }

    /// Handles a message of the preparing program. Permission follows the durable start record.
    fn handle_setup(&mut self, message: SetupMessage) {
        mark_variant!(&message, SetupMessage { Doing, Here, Failed });
        let failure = match message {
            SetupMessage::Doing(failure) => {
                return self.main.note_step(failure, self.host.now(), self.host.awake());
            }
            SetupMessage::Here => self.permit_command().err(),
            SetupMessage::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            if let SetupFailure::Shortage(what) = &failure {
                self.host.log(&format_args!("the command was not started, for lack of a resource: {what}"));
            }
            self.main.refuse(failure);
        }
    }

    fn permit_command(&mut self) -> Result<(), SetupFailure> {
        // The end of the window may be due, and not dealt with yet.
        if self.timeline.end().is_some_and(|end| end <= self.host.now())
            && let Err(error) = self.run_due_actions(self.host.now())
        {
            self.host.log(&error);
        }
        if self.timeline.ending().is_some() {
            mark!("no start after the end of the window");
            return Err(StartFailure::Ended.into());
        }
        let asked = self.host.now();
        let started = self.start_record(asked)?;
        self.attempt.files.write_start(&started).map_err(|error| {
            let is_shortage = matches!(&error, RecordError::Io { error, .. } if self.host.is_shortage(error));
            SetupFailure::new(StartFailure::setup("its start", &error), is_shortage)
        })?;
        mark!("started");
        self.place_main()?;
        if self.timeline.is_stopped() {
            mark!("started while stopped");
            // The program becomes the command when it is resumed.
            self.stop_group();
        }
        // Not after it: the command may keep this shim from running at once.
        let permitted = self.host.now();
        self.begin_prolog()?;
        self.correct_start(started, permitted.since(asked));
        Ok(())
    }

    fn start_record(&self, asked: BootTime) -> Result<StartRecord, SetupFailure> {
        let (main, autogroup) = self
            .host
            .main_identity()
            .map_err(|error| self.failure(StartFailure::setup("its identity", &error), &error))?;
        let programs = self.attempt.spec.queue_programs.as_ref();
        Ok(StartRecord {
            main,
            sid: self.main.pid,
            autogroup,
            // What the user made slow is part of the window.
            at: self.main.begin_of_user_part().unwrap_or(asked),
            cgroup: self.host.cgroup(),
            epilog: programs.and_then(|programs| Some(programs.epilog.as_ref()?.limit)),
        })
    }

    /// Returns the failure that an error of the system is.
    pub(super) fn failure(&self, failure: StartFailure, error: &io::Error) -> SetupFailure {
        SetupFailure::new(failure, self.host.is_shortage(error))
    }

    /// Writes the start record again if the permission came much later than it was asked for, because this shim was stopped
    /// between the two.
    fn correct_start(&self, started: StartRecord, late: Duration) {
        let at = started.at.after(late);
        if late > LATE_PERMISSION
            && let Err(error) = self.attempt.files.write_start(&StartRecord { at, ..started })
        {
            self.host.log(&error);
        }
    }

    /// Tells a resizable job on which processors it is: by its file, and by its signal if they have `changed`.
    pub(super) fn tell_cpus(&mut self, changed: bool) {
        let Some(ResizeNotice { file, signal, main_only }) = self.attempt.spec.resize_notice else { return };
        if file && let Err(error) = self.attempt.files.write_cpus(self.mode.cpus()) {
            self.host.log(&format_args!("the file of its processors: {error}"));
        }
        if let Some(signal) = signal.filter(|_| changed) {
            mark!("a job learns of its processors");
            self.signals_to_send.push(signal, main_only);
        }
    }

    /// Gives the main process what its mode allows, before it becomes the command.
    fn place_main(&mut self) -> Result<(), StartFailure> {
        self.tell_cpus(false);
        let (setup, mode) = (StartFailure::setup, self.mode.clone());
        let on_cpus = |error: &dyn ToString| setup(&format!("the cpus {:?}", mode.cpus()), error);
        self.limit(&mode).map_err(|error| {
            if error.is_about_cpus() { on_cpus(&error) } else { setup("its control group", &error) }
        })?;
        if !self.can(Capability::Cpus) {
            self.host.place_main(mode.cpus()).map_err(|error| on_cpus(&error))?;
            if self.attempt.spec.interaction.is_some() {
                // The relay has begun before its processors were known.
                self.host.place(mode.cpus(), None).map_err(|error| on_cpus(&error))?;
            }
        }
        if matches!(mode, RunMode::Reserved { .. }) {
            if self.class() != ThreadClass::Normal {
                self.host.set_class(self.class());
                self.set_nice(self.window_nice(), self.host.now());
            }
            self.raise_group();
        } else if !self.can(Capability::Idle) {
            self.host.set_idle().map_err(|error| setup("the idle class", &error))?;
            self.set_nice(OPPORTUNISTIC_NICE, self.host.now());
        }
        Ok(())
    }

    /// Returns the class of the job's threads in its window. A control group with a weight needs no nice values.
    pub(super) fn class(&self) -> ThreadClass {
        match self.attempt.spec.critical_priority {
            CriticalPriority::RealTime => ThreadClass::RealTime,
            CriticalPriority::Auto if !self.can(Capability::Idle) => ThreadClass::High,
            CriticalPriority::Auto | CriticalPriority::Off => ThreadClass::Normal,
        }
    }

    /// Returns the nice value of the autogroup of the job in its window.
    pub(super) fn window_nice(&self) -> i32 {
        if self.class() == ThreadClass::Normal { 0 } else { CRITICAL_NICE }
    }

    /// Gives the control group of the job its weight in its window.
    pub(super) fn raise_group(&mut self) {
        if self.raises_group() {
            self.host.set_weight(true);
        }
    }

    /// Returns whether the control group of the job has a weight in its window.
    pub(super) fn raises_group(&self) -> bool {
        let AttemptSpec { cgroup, critical_priority, .. } = &self.attempt.spec;
        *critical_priority != CriticalPriority::Off && cgroup.as_ref().is_some_and(|cgroup| cgroup.raises)
    }

    /// Sets the weight of the session, or schedules a retry.
    pub(super) fn set_nice(&mut self, nice: i32, now: BootTime) {
        let accepted = self.host.set_nice(nice);
        self.pending_nice = (!accepted).then(|| (nice, now.after(RETRY_INTERVAL)));
    }

    /// Reaps exited children, kills remaining processes if due, and detects the end of the job.
    fn reap_children(&mut self) -> io::Result<()> {
        let (now, had_main) = (self.host.now(), self.main.exit.is_none());
        let due = self.scan_at.is_some_and(|at| at <= now);
        let Events { child, shutdown, cgroup } = self.host.take_events();
        if shutdown {
            mark!("the machine shuts down");
            self.shut_down(now);
        }
        if !(child || cgroup || due) || self.pending_end.is_some() {
            return Ok(());
        }
        let children = self.reap()?;
        self.scan_at = None;
        self.follow_up_program();
        let (epilog_runs, has_epilog) =
            (self.programs.runs(ProgramKind::Epilog), self.programs.has_begun(ProgramKind::Epilog));
        if epilog_runs {
            return Ok(());
        }
        if has_epilog || self.timeline.ending().is_some_and(|ending| ending.killed) {
            mark!("leftovers are killed");
            // Processes created since the last scan.
            self.host.kill()?;
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
            false if self.host.are_gone()? => self.end_or_clean_up(now),
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
            mark_variant!(due, DueAction { Begin, Warn, Term, Kill, Resume });
            match due {
                DueAction::Begin => self.begin_due_window(now),
                DueAction::Warn => {
                    if let Some(EarlySignal { signal, main_only, .. }) = self.attempt.spec.early_signal {
                        self.signals_to_send.push(signal, main_only);
                    }
                }
                DueAction::Term => {
                    self.host.signal(Signal::Terminate, Recipients::All)?;
                    // A stopped process receives the signal when it is resumed, before any other.
                    self.host.signal(Signal::Continue, Recipients::All)?;
                    self.thaw()?;
                }
                DueAction::Kill => self.host.kill()?,
                DueAction::Resume => self.resume_all()?,
            }
        }
        self.prove_stop(now);
        self.retry_place(now);
        match self.pending_nice {
            Some((nice, at)) if at <= now => self.set_nice(nice, now),
            _ => {}
        }
        self.look_for_idle(now);
        self.retry_resume(now)
    }

    /// Looks at the activity of the job if that is due. Only time in its window counts: before, others have its processors.
    fn look_for_idle(&mut self, now: BootTime) {
        let is_counted = self.runs_in_window();
        let Some(watch) = self.idle.as_mut().filter(|watch| watch.look_at() <= now) else { return };
        let used = if is_counted { self.host.cpu_times() } else { Ok(vec![]) };
        if !is_counted || used.is_err() {
            watch.begin_again(now);
        }
        let (job, rule) = (self.attempt.spec.job, watch.rule());
        match used {
            Ok(used) if is_counted => match watch.look(now, used) {
                Some(IdleAction::Warn) => {
                    mark!("an idle job is warned");
                    self.tell_job(&idle_text(job, rule));
                }
                Some(IdleAction::End) => {
                    mark!("an idle job is ended");
                    self.tell_job(&format!("job {job} is ended because it is idle"));
                    self.timeline.end_idle(now);
                }
                None => {}
            },
            Ok(_) => {}
            Err(error) => self.host.log(&format_args!("its activity is unknown: {error}")),
        }
    }

    /// Returns whether the command runs in its window.
    fn runs_in_window(&self) -> bool {
        let is_free = self.timeline.ending().is_none() && !self.timeline.is_stopped() && self.stop.is_none();
        let in_command = self.main.exit.is_none() && !self.programs.runs(ProgramKind::Prolog);
        is_free && in_command && self.place_at.is_none() && matches!(self.mode, RunMode::Reserved { .. })
    }

    /// Writes a line to the job.
    fn tell_job(&mut self, line: &str) {
        // A terminal may be in raw mode.
        if let Err(error) = self.host.write_to_job(&format!("\r\nmiserly: {line}\r\n")) {
            self.host.log(&format_args!("not written to the job: {line}: {error}"));
        }
    }
}

/// Returns the warning of an idle job.
fn idle_text(job: u64, rule: IdleRule) -> String {
    let left = rule.after.saturating_sub(rule.warn_after());
    let consequence = if rule.ends {
        format!("it is ended in {} unless it works", time_text(left))
    } else {
        "its processors could serve others".to_owned()
    };
    let idle = time_text(rule.warn_after());
    format!("job {job} has used almost no processor time for {idle}; {consequence}")
}

/// Returns a time in whole minutes, or in seconds if it is short.
fn time_text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{} s", seconds.max(1)),
        seconds => format!("{} min", seconds / 60),
    }
}

/// Returns the deadlines of an attempt. No daemon is connected since `absent_since`.
fn timeline(spec: &AttemptSpec, absent_since: Option<BootTime>) -> Timeline {
    let mut timeline = match spec.run_limit {
        Some(limit) => Timeline::with_run_limit(limit, spec.grace, spec.orphan_resume_delay),
        None => Timeline::new(spec.mode.end(), spec.grace, spec.orphan_resume_delay),
    };
    timeline.set_start(spec.mode.window().map(|window| window.start));
    timeline.set_warning(spec.early_signal.map(|signal| signal.before));
    timeline.set_daemon_absent(absent_since);
    timeline
}
