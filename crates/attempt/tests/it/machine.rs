//! A machine in memory with one attempt, whose processes run when the daemon waits for them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use miserly_attempt::files::{Flush, STARTED};
use miserly_attempt::shim::{
    self, CpuTime, CpuTimes, Events, Host, Reaped, Recipients, SetupMessage, Signal, StopScan, ThreadClass,
};
use miserly_attempt::{
    AttemptSpec, BootId, BootTime, Connection, CriticalPriority, DaemonHost, Exit, Files, FindError,
    FoundAttempt, Identity, JobUser, KillResult, LaunchError, OutputFile, ProcessUsage, ProgramKind,
    RecordError, ResourceLimits, RunMode, ShimOf, ShimRefusal, StartRecord, find, launch,
};
use miserly_cgroup::{CgroupError, Limits, Usage};

const SHIM: u32 = 6;
const MAIN: u32 = 7;
const MILLISECOND: Duration = Duration::from_millis(1);

pub(crate) type Found = FoundAttempt<ShimOf<Daemon>>;

/// Returns an instant in seconds since the start.
pub(crate) fn at(second: i64) -> BootTime {
    BootTime(second * 1_000_000)
}

/// Returns an attempt with a window of 100 seconds, of which 10 are its grace.
pub(crate) fn spec() -> AttemptSpec {
    AttemptSpec {
        job: 17,
        attempt: 1,
        argv: vec!["job".into()],
        script: None,
        cwd: "/".into(),
        env: vec![],
        stdin: None,
        interaction: None,
        stdout: OutputFile { path: "out".into(), append: false },
        stderr: None,
        umask: 0o77,
        limits: ResourceLimits::default(),
        mode: RunMode::Reserved { cpus: vec![0], end: at(100) },
        critical_priority: CriticalPriority::Off,
        grace: Duration::from_secs(10),
        orphan_resume_delay: Duration::from_secs(5),
        run_limit: None,
        early_signal: None,
        idle: None,
        resize_notice: None,
        cgroup: None,
        user: None,
        private_folders: None,
        queue_programs: None,
    }
}

/// The main process of the job.
enum Main {
    None,
    Preparing(End),
    Command { ends: BootTime },
    Exited(Exit),
    Reaped,
}

pub(crate) struct Machine {
    now: Cell<BootTime>,
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    is_locked: Cell<bool>,
    /// Until then another process holds the lock.
    held_until: Cell<BootTime>,
    /// Until then the lock of the attempt 16.1 is held.
    earlier_until: Cell<BootTime>,
    main: RefCell<Main>,
    /// How long the command runs; `None` until it is killed.
    length: Option<Duration>,
    has_child_event: Cell<bool>,
    starts: Cell<u32>,
    sent: RefCell<Vec<String>>,
    waiting: RefCell<VecDeque<End>>,
    shim: RefCell<Option<shim::Shim<Shim>>>,
    /// The effects of shims, and the one before which the shim is killed.
    effects: Cell<u32>,
    kill_at: Cell<u32>,
    /// How long the shim does not run after it has given the permission.
    starved: Cell<Duration>,
    /// How often the kernel still refuses processors.
    refusals: Cell<u32>,
    /// Until then the command computes.
    busy_until: Cell<BootTime>,
    /// What the shim has written to the command.
    written: RefCell<Vec<String>>,
}

impl Machine {
    pub(crate) fn new(length: Option<Duration>) -> Rc<Machine> {
        Rc::new(Machine {
            now: Cell::new(at(0)),
            files: RefCell::default(),
            is_locked: Cell::default(),
            held_until: Cell::new(at(0)),
            earlier_until: Cell::new(at(0)),
            main: RefCell::new(Main::None),
            length,
            has_child_event: Cell::default(),
            starts: Cell::default(),
            sent: RefCell::default(),
            waiting: RefCell::default(),
            shim: RefCell::default(),
            effects: Cell::default(),
            kill_at: Cell::default(),
            starved: Cell::default(),
            refusals: Cell::default(),
            busy_until: Cell::new(at(i64::MAX / 1_000_000)),
            written: RefCell::default(),
        })
    }

    /// Lets the command wait from an instant on.
    pub(crate) fn wait_from(&self, at: BootTime) {
        self.busy_until.set(at);
    }

    /// Returns what the shim has written to the command.
    pub(crate) fn written(&self) -> Vec<String> {
        self.written.borrow().clone()
    }

    pub(crate) fn hold_lock(&self, length: Duration) {
        self.held_until.set(self.now.get().after(length));
    }

    /// Lets the attempt 16.1 live until an instant.
    pub(crate) fn hold_earlier(&self, until: BootTime) {
        self.earlier_until.set(until);
    }

    pub(crate) fn kill_shim_at(&self, effect: u32) {
        self.kill_at.set(effect);
    }

    pub(crate) fn starve_shim(&self, length: Duration) {
        self.starved.set(length);
    }

    /// Lets the kernel refuse processors some times.
    pub(crate) fn refuse_places(&self, count: u32) {
        self.refusals.set(count);
    }

    /// Returns the start of the command, as it is recorded.
    pub(crate) fn recorded_start(&self) -> BootTime {
        let files = self.files.borrow();
        serde_json::from_slice::<StartRecord>(&files[STARTED]).expect("a start record").instant().parts().0
    }

    pub(crate) fn effects(&self) -> u32 {
        self.effects.get()
    }

    /// Returns how often the command was started.
    pub(crate) fn starts(&self) -> u32 {
        self.starts.get()
    }

    /// Returns the signals of the shim, each after the second at which it was sent.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.sent.borrow().clone()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.borrow().contains_key(name)
    }

    pub(crate) fn launch(self: &Rc<Machine>, spec: &AttemptSpec) -> Result<ShimOf<Daemon>, LaunchError> {
        launch(&mut Daemon(Rc::clone(self)), spec)
    }

    pub(crate) fn find(self: &Rc<Machine>) -> Result<Found, FindError> {
        find(&mut Daemon(Rc::clone(self)), self.now.get().after(MILLISECOND))
    }

    /// Begins a shim. It may be killed.
    pub(crate) fn begin_shim(self: &Rc<Machine>, launcher: Option<End>) -> Result<(), ShimRefusal> {
        let (host, folder) = (Shim(Rc::clone(self)), Folder { machine: Rc::clone(self), is_of_shim: true });
        let begun = catch_unwind(AssertUnwindSafe(|| shim::Shim::begin(Ok((host, folder)), launcher)));
        if let Ok(begun) = begun {
            *self.shim.borrow_mut() = Some(begun?);
        }
        Ok(())
    }

    /// Lets all processes run without a pause. Returns whether the shim lives.
    pub(crate) fn turn(&self) -> bool {
        self.run_main();
        let Some(mut shim) = self.shim.take() else { return false };
        let stepped = catch_unwind(AssertUnwindSafe(|| shim.step()));
        let lives = stepped.is_ok() && shim.host().is_some();
        self.shim.replace(lives.then_some(shim));
        self.run_main();
        lives
    }

    pub(crate) fn pause(&self, length: Duration) {
        self.now.set(self.now.get().after(length));
        self.turn();
    }

    /// Runs the shim until it exits.
    pub(crate) fn run_shim(&self) {
        while self.turn() {
            let next = self.shim.borrow().as_ref().and_then(|shim| {
                let has_line = shim.connections().any(Connection::has_line);
                if has_line { Some(self.now.get()) } else { shim.next() }
            });
            let ends = match *self.main.borrow() {
                Main::Command { ends } => Some(ends),
                _ => None,
            };
            if let Some(next) = next.into_iter().chain(ends).min().filter(|_| !self.has_child_event.get()) {
                self.now.set(next.max(self.now.get()));
            }
        }
    }

    fn run_main(&self) {
        let mut main = self.main.borrow_mut();
        let next = match &mut *main {
            Main::Preparing(shim) => match shim.receive_line() {
                Ok(None) => return,
                Ok(Some(_)) => {
                    self.starts.set(self.starts() + 1);
                    let ends = self.length.map_or(BootTime::MAX, |length| self.now.get().after(length));
                    Main::Command { ends }
                }
                Err(_) => Main::Exited(Exit::Code(0)),
            },
            Main::Command { ends } if *ends <= self.now.get() => Main::Exited(Exit::Code(0)),
            _ => return,
        };
        self.has_child_event.set(matches!(next, Main::Exited(_)));
        *main = next;
    }

    /// Counts an effect of the shim, or kills the shim before it.
    fn effect(&self) {
        self.effects.set(self.effects() + 1);
        if self.effects() == self.kill_at.get() {
            resume_unwind(Box::new("killed"));
        }
    }

    fn send(&self, signal: &str) {
        self.sent.borrow_mut().push(format!("{} {signal}", self.now.get().0 / 1_000_000));
    }

    fn kill_main(&self) -> Vec<u32> {
        let mut main = self.main.borrow_mut();
        if !matches!(*main, Main::Preparing(_) | Main::Command { .. }) {
            return vec![];
        }
        *main = Main::Exited(Exit::Signal { signal: 9, core: false });
        self.has_child_event.set(true);
        vec![MAIN]
    }
}

/// The folder of the attempt.
pub(crate) struct Folder {
    machine: Rc<Machine>,
    is_of_shim: bool,
}

impl Folder {
    fn effect(&self) {
        if self.is_of_shim {
            self.machine.effect();
        }
    }
}

/// The lock of the attempt.
pub(crate) struct Lock(Rc<Machine>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.is_locked.set(false);
    }
}

impl Files for Folder {
    type Lock = Lock;

    fn path(&self) -> &Path {
        Path::new("/attempts/17.1")
    }

    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.machine.files.borrow().get(name).cloned())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.machine.has(name))
    }

    fn store(&self, name: &str, temporary: &str, content: &[u8], _flush: Flush) -> io::Result<()> {
        self.effect();
        let mut files = self.machine.files.borrow_mut();
        files.remove(temporary);
        files.insert(name.to_owned(), content.to_owned());
        Ok(())
    }

    fn preallocate(&self, name: &str) -> io::Result<()> {
        self.effect();
        self.machine.files.borrow_mut().insert(name.to_owned(), vec![]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.effect();
        self.machine.files.borrow_mut().remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.effect();
        let mut files = self.machine.files.borrow_mut();
        let content = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn make_lock(&self) -> io::Result<()> {
        Ok(())
    }

    fn take_lock(&self) -> io::Result<Option<Lock>> {
        self.effect();
        let is_held = self.machine.held_until.get() > self.machine.now.get();
        let is_free = !is_held && !self.machine.is_locked.replace(true);
        Ok(is_free.then(|| Lock(Rc::clone(&self.machine))))
    }

    fn is_locked(&self, folder: &str) -> io::Result<bool> {
        Ok(folder == "16.1" && self.machine.now.get() < self.machine.earlier_until.get())
    }

    fn is_removed(&self) -> bool {
        false
    }
}

/// The lines to one end of a connection, and whether the other end is closed.
type Inbox = Rc<RefCell<(VecDeque<Vec<u8>>, bool)>>;

/// An end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    inbox: Inbox,
    outbox: Inbox,
}

fn connection() -> (End, End) {
    let (one, two) = (Inbox::default(), Inbox::default());
    (End { inbox: Rc::clone(&one), outbox: Rc::clone(&two) }, End { inbox: two, outbox: one })
}

impl Drop for End {
    fn drop(&mut self) {
        (self.inbox.borrow_mut().1, self.outbox.borrow_mut().1) = (true, true);
    }
}

impl Connection for End {
    fn receive_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (lines, is_closed) = &mut *self.inbox.borrow_mut();
        match lines.pop_front() {
            None if *is_closed => Err(io::ErrorKind::UnexpectedEof.into()),
            line => Ok(line),
        }
    }

    fn has_line(&self) -> bool {
        !self.inbox.borrow().0.is_empty()
    }

    fn send_line(&mut self, line: &[u8]) -> io::Result<()> {
        let (lines, is_closed) = &mut *self.outbox.borrow_mut();
        if *is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        lines.push_back(line.to_owned());
        Ok(())
    }
}

/// The machine of the shim.
pub(crate) struct Shim(Rc<Machine>);

impl Host for Shim {
    type Files = Folder;
    type Connection = End;

    fn now(&self) -> BootTime {
        if let Main::Preparing(end) = &*self.0.main.borrow()
            && end.has_line()
        {
            self.0.now.set(self.0.now.get().after(self.0.starved.take()));
        }
        self.0.now.get()
    }

    fn awake(&self) -> Duration {
        self.now().since(at(0))
    }

    fn pause(&mut self, length: Duration) {
        self.0.now.set(self.now().after(length));
    }

    fn wait_for(&mut self, _connection: &End, _until: BootTime) -> io::Result<()> {
        Ok(())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity(SHIM))
    }

    fn is_shortage(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::StorageFull
    }

    fn log(&self, message: &dyn Display) {
        let message = message.to_string();
        assert!(message.starts_with("cannot run on the processors"), "{message}");
    }

    fn listen(&mut self, _files: &Folder) -> io::Result<()> {
        self.0.effect();
        Ok(())
    }

    fn accept(&mut self) -> Option<End> {
        self.0.waiting.borrow_mut().pop_front()
    }

    fn start_main(&mut self, _spec: &AttemptSpec) -> io::Result<(u32, End)> {
        self.0.effect();
        let (ours, mut theirs) = connection();
        theirs.send(&SetupMessage::Here)?;
        self.0.main.replace(Main::Preparing(theirs));
        Ok((MAIN, ours))
    }

    fn main_identity(&self) -> io::Result<(Identity, Option<String>)> {
        Ok((identity(MAIN), None))
    }

    fn start_program(&mut self, _kind: ProgramKind, _lock: &Lock) -> io::Result<(u32, End)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn kill_program(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn close_session(&mut self, _user: &JobUser) -> io::Result<()> {
        Ok(())
    }

    fn take_events(&mut self) -> Events {
        Events { child: self.0.has_child_event.take(), ..Events::default() }
    }

    fn reap(&mut self) -> io::Result<Reaped> {
        self.0.effect();
        let exit = match &*self.0.main.borrow() {
            Main::Exited(exit) => exit.clone(),
            Main::None | Main::Reaped => return Ok(Reaped::NoChild),
            _ => return Ok(Reaped::Nothing),
        };
        self.0.main.replace(Main::Reaped);
        Ok(Reaped::Child { pid: MAIN, exit, usage: ProcessUsage::default() })
    }

    fn signal(&mut self, signal: Signal, to: Recipients) -> io::Result<()> {
        self.0.effect();
        self.0.send(&format!("{signal:?} {to:?}"));
        Ok(())
    }

    fn kill(&mut self) -> io::Result<()> {
        self.0.effect();
        if !self.0.kill_main().is_empty() {
            self.0.send("Kill");
        }
        Ok(())
    }

    fn stop(&mut self, _sent: &mut BTreeSet<(u32, u64)>) -> io::Result<StopScan> {
        Ok(StopScan { stopped: true, in_one_group: true })
    }

    fn running(&self) -> io::Result<Vec<u32>> {
        Ok(vec![])
    }

    fn are_gone(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn place(&mut self, cpus: &[u32], class: Option<ThreadClass>) -> io::Result<()> {
        if let Some(left) = self.0.refusals.get().checked_sub(1) {
            self.0.refusals.set(left);
            self.0.send("Refuse");
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if class.is_some() {
            self.0.send(&format!("Place {cpus:?}"));
        }
        Ok(())
    }

    fn place_main(&mut self, _cpus: &[u32]) -> io::Result<()> {
        self.0.effect();
        Ok(())
    }

    fn affinity(&self) -> Vec<u32> {
        vec![]
    }

    fn set_idle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_class(&mut self, _class: ThreadClass) {}

    fn is_idle(&self) -> bool {
        false
    }

    fn set_nice(&mut self, _nice: i32) -> bool {
        true
    }

    fn cgroup(&self) -> Option<PathBuf> {
        None
    }

    fn limit(&mut self, _limits: &Limits) -> Vec<CgroupError> {
        vec![]
    }

    fn set_weight(&mut self, _raised: bool) {}

    fn freeze(&mut self, _on: bool) -> io::Result<()> {
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        None
    }

    fn cpu_times(&self) -> io::Result<CpuTimes> {
        let used = self.0.now.get().min(self.0.busy_until.get()).since(at(0));
        Ok(vec![((2, 1), CpuTime::own(used))])
    }

    fn write_to_job(&mut self, text: &str) -> io::Result<()> {
        self.0.written.borrow_mut().push(text.trim().to_owned());
        Ok(())
    }
}

fn identity(pid: u32) -> Identity {
    Identity { pid, start_time: 1, boot_id: "boot".into() }
}

/// The machine of the daemon.
pub(crate) struct Daemon(Rc<Machine>);

impl Daemon {
    fn folder(&self) -> Folder {
        Folder { machine: Rc::clone(&self.0), is_of_shim: false }
    }
}

impl DaemonHost for Daemon {
    type Files = Folder;
    type Connection = End;
    type Process = ();

    fn now(&self) -> BootTime {
        self.0.now.get()
    }

    fn boot(&self) -> io::Result<BootId> {
        Ok("boot".into())
    }

    fn pause(&mut self, length: Duration) {
        self.0.pause(length);
    }

    fn wait_for(&mut self, _connection: &End, until: BootTime) -> io::Result<bool> {
        self.0.turn();
        Ok(self.now() < until)
    }

    fn create(&mut self) -> Result<Folder, RecordError> {
        Ok(self.folder())
    }

    fn open(&mut self) -> Result<Option<Folder>, RecordError> {
        Ok(Some(self.folder()))
    }

    fn spawn(&mut self, _files: &Folder) -> Result<End, LaunchError> {
        let (ours, theirs) = connection();
        // The launcher receives the refusal.
        let _ = self.0.begin_shim(Some(theirs));
        Ok(ours)
    }

    fn log(&self, _files: &Folder) -> String {
        String::new()
    }

    fn connect(&mut self, _files: &Folder) -> io::Result<End> {
        let (ours, theirs) = connection();
        self.0.waiting.borrow_mut().push_back(theirs);
        Ok(ours)
    }

    fn process(&mut self, _identity: &Identity) -> io::Result<Option<()>> {
        Ok(self.0.shim.borrow().is_some().then_some(()))
    }

    fn kill_job(
        &mut self,
        _files: &Folder,
        _started: &StartRecord,
        _until: BootTime,
    ) -> io::Result<KillResult> {
        Ok(KillResult::All(self.0.kill_main()))
    }
}
