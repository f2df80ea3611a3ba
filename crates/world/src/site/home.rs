//! The machine as the daemon's launcher uses it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::files::{SPEC, STARTED};
use miserly_attempt::retire::{Remains as _, retire};
use miserly_attempt::{
    AttemptEnd, AttemptSpec, BootId, BootTime, CgroupSpec, CommandError, ConnectedShim, CriticalPriority,
    DaemonHost, Files, FoundAttempt, Identity, KillResult, LaunchError, OutputFile, ProgramKind,
    QueuePrograms, RecordError, ReplyMessage, ResizeNotice, ResourceLimits, RunMode, ShimCommand,
    StartRecord, StoredInstant, find, launch,
};
use miserly_cgroup::Capability;
use miserly_core::draw;
use miserly_engine::{Attempt, Usage};
use miserly_executor::{AttemptId, FindFailure, LaunchChecks, LaunchFailure, LaunchRequest};
use miserly_launcher::{BootClock, CrashPoint, Found, Host, ShimHandle, Started};

use super::disk::{OpenFolder, User, path};
use super::programs::programs;
use super::seals::{ONLINE, UsedFile};
use super::wire::{End, Inbox};
use super::{Machine, MachineClocks, Place, ticks};
use crate::step::Habit;

/// The least time that it takes to start a shim.
const SPAWN: i64 = 1_500;

/// The machine under the launcher of one daemon.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(super) machine: Rc<Machine>,
    clock: BootClock<MachineClocks>,
    pub(super) checks: Rc<LaunchChecks<UsedFile>>,
}

impl Home {
    pub(crate) fn new(machine: &Rc<Machine>, clock: BootClock<MachineClocks>) -> Home {
        Home { machine: Rc::clone(machine), clock, checks: Rc::new(machine.new_checks()) }
    }

    fn task(&self, attempt: Attempt) -> TaskHost {
        TaskHost {
            machine: Rc::clone(&self.machine),
            attempt,
            habit: Habit::default(),
            gpus: vec![],
            gpu_share: None,
        }
    }

    pub(super) fn open(&self, attempt: Attempt) -> Option<OpenFolder> {
        self.task(attempt).opened()
    }

    fn shim(&self, attempt: Attempt, shim: ConnectedShim<Rc<Place>, End>) -> Shim {
        Shim { machine: Rc::clone(&self.machine), attempt, connected: shim }
    }
}

impl Host for Home {
    type Shim = Shim;
    type Clocks = MachineClocks;

    fn clock(&self) -> &BootClock<MachineClocks> {
        &self.clock
    }

    fn pass(&self, _point: CrashPoint) {
        self.machine.effects.pass();
    }

    fn pause(&self, time: Duration) {
        self.machine.pause(ticks(time));
    }

    fn attempts(&self) -> io::Result<Vec<Attempt>> {
        let places = self.machine.places.borrow();
        let with_folder = places.values().filter(|place| place.folder.borrow().is_some());
        Ok(with_folder.map(|place| place.attempt).collect())
    }

    fn highest_job(&self) -> io::Result<i64> {
        let ended = self.machine.ended.borrow();
        let all = self.attempts()?.into_iter().chain(ended.keys().copied());
        Ok(all.map(|attempt| attempt.job).max().unwrap_or(0))
    }

    fn started(&self, attempt: Attempt) -> Option<StoredInstant> {
        Some(self.open(attempt)?.read::<StartRecord>(STARTED).ok()??.instant())
    }

    fn online_cpus(&self) -> Option<Vec<u32>> {
        Some((0..ONLINE).collect())
    }

    fn folder(&self, attempt: Attempt) -> PathBuf {
        path(attempt)
    }

    fn has_folder(&self, attempt: Attempt) -> bool {
        self.open(attempt).is_some()
    }

    fn spec(&self, attempt: Attempt) -> Option<AttemptSpec> {
        self.open(attempt)?.read(SPEC).ok()?
    }

    fn launch(&self, request: LaunchRequest) -> Result<Shim, LaunchFailure> {
        let AttemptId { job, nth } = request.attempt;
        let attempt = Attempt { job, nth };
        let tag = request.submission.command.last().and_then(|tag| tag.parse().ok());
        let mut habit = self.machine.habit(attempt, tag);
        if matches!(request.mode, RunMode::Waiting { .. }) {
            // No earlier version waits.
            habit.version = None;
        }
        if request.restart {
            habit.ticks = self.machine.rest_of(attempt);
        } else {
            self.machine.begin_anew(job);
        }
        let (programs, gpus) = (programs(&habit, &request), request.gpus.clone().unwrap_or_default());
        let gpu_share = request.submission.gpu_memory.filter(|_| request.submission.is_gpu_share());
        let mut task = TaskHost { habit, gpus, gpu_share, ..self.task(attempt) };
        let spec = AttemptSpec { cgroup: self.machine.cgroup(), ..spec(request.clone(), programs) };
        let shim = self.checked(&request, || Ok(launch(&mut task, &spec)?))?;
        Ok(self.shim(attempt, shim))
    }

    fn find(&self, attempt: Attempt, wait: Duration) -> Result<Found<Shim>, FindFailure> {
        let found = find(&mut self.task(attempt), self.clock.boot_now().after(wait))?;
        Ok(match found {
            FoundAttempt::Alive(shim) => Found::Alive(self.shim(attempt, shim)),
            FoundAttempt::Ended(end) => Found::Ended(Box::new(end)),
            FoundAttempt::NeverRan => Found::NeverRan,
            FoundAttempt::Lost(lost) => Found::Lost(lost.cause),
        })
    }

    fn kill_job(&self, attempt: Attempt, _wait: Duration) -> io::Result<KillResult> {
        let mut task = self.task(attempt);
        let Some(files) = task.opened() else { return Ok(KillResult::All(vec![])) };
        match files.read::<StartRecord>(STARTED).map_err(io::Error::other)? {
            Some(started) => task.kill_job(&files, &started, BootTime(0)),
            None => Ok(KillResult::All(vec![])),
        }
    }

    fn retire(&self, attempt: Attempt) {
        self.note_end(attempt);
        if let Some(folder) = self.open(attempt) {
            retire(&folder);
        }
        self.remove(attempt);
    }

    fn remove(&self, attempt: Attempt) {
        self.note_end(attempt);
        if let Some(folder) = self.open(attempt) {
            // It was there a moment ago.
            let _ = folder.remove_all();
        }
    }

    fn wake(&self, _attempt: Attempt, shim: &Shim) -> io::Result<()> {
        self.machine.effects.pass();
        if shim.lives() {
            shim.connected.process.is_shim_stopped.set(false);
        }
        Ok(())
    }

    fn kill_shim(&self, _attempt: Attempt, shim: &Shim) -> io::Result<()> {
        self.machine.effects.pass();
        if shim.lives() {
            self.machine.kill_shim_now(&shim.connected.process);
        }
        Ok(())
    }

    fn end_partition(&self, _attempt: Attempt) {}

    fn usage(&self, _attempt: Attempt) -> Option<Usage> {
        None
    }

    fn count_failure(&self, _kind: ProgramKind) {}
}

impl Machine {
    /// Returns the control group of an attempt, if attempts have one.
    fn cgroup(&self) -> Option<CgroupSpec> {
        self.has_groups.get().then(|| CgroupSpec {
            tree: "/groups".into(),
            shims: None,
            can: vec![Capability::Freeze, Capability::Kill, Capability::Cpus, Capability::Idle],
            memory: None,
            pids: None,
            early_on_all: false,
            raises: false,
            strict: false,
            hides_devices: false,
        })
    }
}

/// Returns the variable by which a later daemon finds the GPUs of an attempt.
fn gpu_variable(gpus: &[u32]) -> (OsString, OsString) {
    let indexes = gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    ("MISERLY_GPUS".into(), indexes.into())
}

/// Returns the specification of an attempt without a control group.
fn spec(request: LaunchRequest, queue_programs: Option<QueuePrograms>) -> AttemptSpec {
    let resize_notice = request.resize_notice().map(|notice| ResizeNotice { file: true, ..notice });
    AttemptSpec {
        job: request.attempt.job.unsigned_abs(),
        attempt: request.attempt.nth,
        argv: request.submission.command.iter().map(Into::into).collect(),
        script: None,
        cwd: request.submission.directory.clone(),
        env: request.gpus.as_deref().map(gpu_variable).into_iter().collect(),
        stdin: None,
        interaction: None,
        stdout: OutputFile { path: "out".into(), append: request.append },
        stderr: None,
        umask: 0o77,
        limits: ResourceLimits::default(),
        mode: request.mode,
        critical_priority: CriticalPriority::Off,
        grace: request.grace,
        orphan_resume_delay: request.orphan_resume_delay,
        run_limit: request.run_limit,
        idle: request.idle,
        early_signal: None,
        resize_notice,
        cgroup: None,
        user: None,
        private_folders: None,
        queue_programs,
    }
}

/// The machine of a daemon that launches or finds one attempt.
struct TaskHost {
    machine: Rc<Machine>,
    attempt: Attempt,
    /// The habit of an attempt that is launched.
    habit: Habit,
    /// Its GPUs.
    gpus: Vec<u32>,
    /// Its share of the memory of its GPU, bytes.
    gpu_share: Option<u64>,
}

impl TaskHost {
    fn place(&self) -> Option<Rc<Place>> {
        self.machine.place(self.attempt).filter(|place| place.folder.borrow().is_some())
    }

    fn opened(&self) -> Option<OpenFolder> {
        self.place().map(|place| OpenFolder::new(&self.machine, &place, User::Daemon))
    }

    /// Returns the error of a full disk, if it is full.
    fn check_room(&self) -> io::Result<()> {
        if self.machine.full.get() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl DaemonHost for TaskHost {
    type Files = OpenFolder;
    type Connection = End;
    type Process = Rc<Place>;

    fn now(&self) -> BootTime {
        self.machine.boot_time()
    }

    fn boot(&self) -> io::Result<BootId> {
        Ok(self.machine.boot())
    }

    fn pause(&mut self, length: Duration) {
        self.machine.pause(ticks(length));
    }

    fn wait_for(&mut self, connection: &End, until: BootTime) -> io::Result<bool> {
        let until = until.0.saturating_add(self.machine.boot_at.get());
        self.machine.run_until(until, || connection.inbox().is_ready());
        self.machine.effects.pass();
        Ok(connection.inbox().is_ready())
    }

    fn create(&mut self) -> Result<OpenFolder, RecordError> {
        self.machine.effects.pass();
        let failed = |error| RecordError::Io { what: "create", path: path(self.attempt), error };
        self.check_room().map_err(failed)?;
        if self.place().is_some() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        let place = Rc::new(Place::new(self.attempt));
        place.habit.set(self.habit);
        place.gpus.replace(self.gpus.clone());
        place.gpu_share.set(self.gpu_share);
        place.folder.replace(Some(<_>::default()));
        self.machine.places.borrow_mut().insert(self.attempt, Rc::clone(&place));
        self.machine.effects.pass();
        Ok(OpenFolder::new(&self.machine, &place, User::Daemon))
    }

    fn open(&mut self) -> Result<Option<OpenFolder>, RecordError> {
        Ok(self.opened())
    }

    fn spawn(&mut self, files: &OpenFolder) -> Result<End, LaunchError> {
        self.machine.effects.pass();
        // Of the log.
        self.check_room().map_err(|error| LaunchError::Spawn { exe: "miserly".into(), error })?;
        let (ours, theirs) = End::pair();
        let latency = draw(3, self.attempt.job, self.attempt.nth.into()) % 3_000;
        self.machine.pause(SPAWN + latency.cast_signed());
        self.machine.begin_shim(files.place(), theirs);
        self.machine.effects.pass();
        Ok(ours)
    }

    fn log(&self, _files: &OpenFolder) -> String {
        String::new()
    }

    fn connect(&mut self, files: &OpenFolder) -> io::Result<End> {
        connect(&self.machine, files.place())
    }

    fn process(&mut self, identity: &Identity) -> io::Result<Option<Rc<Place>>> {
        let place = self.place().filter(|place| place.shim_pid.get() == Some(identity.pid));
        Ok(place.filter(|_| identity.boot_id == self.machine.boot()))
    }

    fn kill_job(
        &mut self,
        files: &OpenFolder,
        _started: &StartRecord,
        _until: BootTime,
    ) -> io::Result<KillResult> {
        self.machine.effects.pass();
        files.place().kill_runner();
        Ok(KillResult::All(files.place().kill_main(self.machine.now())))
    }
}

/// Connects to the shim at a place.
fn connect(machine: &Machine, place: &Place) -> io::Result<End> {
    machine.effects.pass();
    let (ours, theirs) = End::pair();
    let mut listener = place.listener.borrow_mut();
    listener.as_mut().ok_or(io::ErrorKind::ConnectionRefused)?.push_back(theirs);
    Ok(ours)
}

/// The daemon's handle of a shim.
pub(crate) struct Shim {
    machine: Rc<Machine>,
    pub(super) attempt: Attempt,
    connected: ConnectedShim<Rc<Place>, End>,
}

impl fmt::Debug for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the shim of {:?}", self.connected.process)
    }
}

impl Shim {
    /// Returns an observer of the exit of the process.
    pub(super) fn exit(&self) -> ShimExit {
        ShimExit { place: Rc::clone(&self.connected.process), pid: self.connected.identity.pid }
    }

    pub(super) fn lives(&self) -> bool {
        !self.exit().has_exited()
    }

    pub(super) fn inbox(&self) -> &Inbox {
        self.connected.commands.connection().inbox()
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        OpenFolder::new(&self.machine, &self.connected.process, User::Daemon).read(name).ok()?
    }
}

/// A watched shim process.
#[derive(Debug)]
pub(super) struct ShimExit {
    place: Rc<Place>,
    pid: u32,
}

impl ShimExit {
    pub(super) fn has_exited(&self) -> bool {
        self.place.shim_pid.get() != Some(self.pid)
    }
}

impl ShimHandle for Shim {
    fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError> {
        self.machine.effects.pass();
        let sent = self.connected.commands.send(command);
        self.machine.effects.pass();
        sent
    }

    fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError> {
        self.connected.commands.receive()
    }

    fn reconnect(&mut self) -> io::Result<()> {
        let connection = connect(&self.machine, &self.connected.process)?;
        self.connected.commands.reconnect(connection);
        Ok(())
    }

    fn version(&self) -> u32 {
        self.connected.commands.hello().map_or(0, |hello| hello.version)
    }

    fn is_stopped(&self) -> bool {
        self.lives() && self.connected.process.is_shim_stopped.get()
    }

    fn start(&self) -> Option<Started> {
        let record: StartRecord = self.read(STARTED)?;
        Some(Started { at: record.instant(), epilog: record.epilog })
    }

    fn end(&self) -> Option<AttemptEnd> {
        OpenFolder::new(&self.machine, &self.connected.process, User::Daemon).read_end().ok()?
    }
}
