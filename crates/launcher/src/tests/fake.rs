//! A machine without processes, for tests: time passes only by the waits of the launcher.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use miserly_engine::{Attempt, Input, Usage};
use miserly_executor::{FindFailure, LaunchFailure, LaunchRequest};
use miserly_launch::{
    AttemptEnd, AttemptPhase, AttemptSpec, AttemptState, BootTime, CommandError, Exit, KillResult, LossCause,
    ProgramKind, ReplyMessage, ShimCommand, ShimReply, StoredInstant,
};

use crate::clock::tests::FakeClocks;
use crate::tasks::{PendingLaunch, Task, TaskResult};
use crate::{
    Begin, BootClock, CrashPoint, Found, Host, LoopMessage, Readiness, ShimHandle, ShimLoop, Site, Started,
    Supervisor, run_launch, run_task,
};

/// An attempt of the fake machine.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct FakeAttempt {
    /// Whether its shim lives.
    pub(super) lives: bool,
    /// Whether its shim is stopped.
    pub(super) is_stopped: bool,
    /// Whether a stopped shim can be continued.
    pub(super) stays_stopped: bool,
    /// Whether its state cannot be found out now.
    pub(super) is_unclear: bool,
    pub(super) started: Option<StoredInstant>,
    pub(super) end: Option<AttemptEnd>,
    /// The commands that its shim has.
    pub(super) commands: Vec<ShimCommand>,
    pub(super) answered: usize,
    pub(super) number: Option<u64>,
}

/// The fake machine. Copies are the same machine.
#[derive(Clone, Debug)]
pub(super) struct FakeHost {
    clocks: FakeClocks,
    clock: BootClock<FakeClocks>,
    attempts: Rc<RefCell<BTreeMap<Attempt, FakeAttempt>>>,
    /// The failures of the next launches.
    pub(super) failures: Rc<RefCell<VecDeque<LaunchFailure>>>,
    /// The effects on shims, by name.
    pub(super) effects: Rc<RefCell<Vec<&'static str>>>,
}

impl FakeHost {
    pub(super) fn new() -> FakeHost {
        let clocks = FakeClocks::default();
        let clock = BootClock::start("one".into(), clocks.clone());
        let (attempts, failures, effects) = <_>::default();
        FakeHost { clocks, clock, attempts, failures, effects }
    }

    /// Returns an attempt, which is made if it does not exist.
    pub(super) fn attempt(&self, attempt: Attempt) -> RefMut<'_, FakeAttempt> {
        RefMut::map(self.attempts.borrow_mut(), |all| all.entry(attempt).or_default())
    }

    pub(super) fn instant(&self) -> StoredInstant {
        StoredInstant::new(self.clock.boot_now(), "one".into())
    }

    pub(super) fn end(&self, exit: Exit) -> AttemptEnd {
        AttemptEnd {
            exit,
            cause: None,
            at: self.instant(),
            late: None,
            usage: None,
            processes: None,
            stops: 0,
            prolog: None,
            epilog: None,
            checkpoint: None,
        }
    }

    fn shim(&self, attempt: Attempt) -> FakeShim {
        FakeShim { attempt, host: self.clone() }
    }
}

impl Host for FakeHost {
    type Shim = FakeShim;
    type Clocks = FakeClocks;

    fn clock(&self) -> &BootClock<FakeClocks> {
        &self.clock
    }

    fn pass(&self, _point: CrashPoint) {}

    fn pause(&self, time: Duration) {
        self.clocks.pass(i64::try_from(time.as_micros()).unwrap());
    }

    fn attempts(&self) -> io::Result<Vec<Attempt>> {
        Ok(self.attempts.borrow().keys().copied().collect())
    }

    fn highest_job(&self) -> io::Result<i64> {
        Ok(self.attempts.borrow().keys().next_back().map_or(0, |attempt| attempt.job))
    }

    fn started(&self, attempt: Attempt) -> Option<StoredInstant> {
        self.attempts.borrow().get(&attempt)?.started.clone()
    }

    fn online_cpus(&self) -> Option<Vec<u32>> {
        None
    }

    fn folder(&self, attempt: Attempt) -> PathBuf {
        format!("{}.{}", attempt.job, attempt.nth).into()
    }

    fn has_folder(&self, attempt: Attempt) -> bool {
        self.attempts.borrow().contains_key(&attempt)
    }

    fn spec(&self, _attempt: Attempt) -> Option<AttemptSpec> {
        None
    }

    fn launch(&self, request: LaunchRequest) -> Result<FakeShim, LaunchFailure> {
        let attempt = Attempt { job: request.attempt.job, nth: request.attempt.nth };
        assert!(!self.has_folder(attempt), "its folder is that of another attempt");
        let instant = self.instant();
        let mut made = self.attempt(attempt);
        if let Some(failure) = self.failures.borrow_mut().pop_front() {
            return Err(failure);
        }
        (made.lives, made.started) = (true, Some(instant));
        Ok(self.shim(attempt))
    }

    fn find(&self, attempt: Attempt, _wait: Duration) -> Result<Found<FakeShim>, FindFailure> {
        let all = self.attempts.borrow();
        Ok(match all.get(&attempt) {
            Some(FakeAttempt { is_unclear: true, .. }) => {
                return Err(FindFailure::Temporary("its record is a folder".to_owned()));
            }
            Some(found) if found.lives => Found::Alive(self.shim(attempt)),
            Some(FakeAttempt { end: Some(end), .. }) => Found::Ended(Box::new(end.clone())),
            Some(FakeAttempt { started: Some(_), .. }) => Found::Lost(LossCause::Kill),
            Some(_) | None => Found::NeverRan,
        })
    }

    fn kill_job(&self, _attempt: Attempt, _wait: Duration) -> io::Result<KillResult> {
        self.effects.borrow_mut().push("kill job");
        Ok(KillResult::All(vec![7]))
    }

    fn retire(&self, attempt: Attempt) {
        self.remove(attempt);
    }

    fn remove(&self, attempt: Attempt) {
        self.attempts.borrow_mut().remove(&attempt);
    }

    fn wake(&self, attempt: Attempt, _shim: &FakeShim) -> io::Result<()> {
        let mut attempt = self.attempt(attempt);
        attempt.is_stopped = attempt.stays_stopped;
        self.effects.borrow_mut().push("wake");
        Ok(())
    }

    fn kill_shim(&self, attempt: Attempt, _shim: &FakeShim) -> io::Result<()> {
        self.attempt(attempt).lives = false;
        self.effects.borrow_mut().push("kill shim");
        Ok(())
    }

    fn end_partition(&self, _attempt: Attempt) {}

    fn usage(&self, _attempt: Attempt) -> Option<Usage> {
        None
    }

    fn count_failure(&self, _kind: ProgramKind) {}
}

#[derive(Debug)]
pub(super) struct FakeShim {
    attempt: Attempt,
    host: FakeHost,
}

impl FakeShim {
    fn get(&self) -> RefMut<'_, FakeAttempt> {
        self.host.attempt(self.attempt)
    }
}

impl ShimHandle for FakeShim {
    fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError> {
        let mut attempt = self.get();
        if !attempt.lives {
            return Err(CommandError::Gone);
        }
        attempt.commands.push(command.clone());
        Ok(attempt.commands.len() as u64)
    }

    /// Answers each command, in a window until instant 9 on processor 1.
    fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError> {
        let mut attempt = self.get();
        if !attempt.lives {
            return Err(CommandError::Gone);
        }
        if attempt.is_stopped || attempt.answered == attempt.commands.len() {
            return Ok(None);
        }
        attempt.answered += 1;
        let (cpus, end) = (vec![1], Some(BootTime(9)));
        let phase = AttemptPhase::Running;
        let state = AttemptState {
            phase,
            idle: false,
            affinity: cpus.clone(),
            cpus,
            end,
            window: None,
            activity: None,
        };
        let number = attempt.answered as u64;
        Ok(Some(ReplyMessage { number, reply: ShimReply::Done(state), hello: None }))
    }

    fn reconnect(&mut self) -> io::Result<()> {
        if self.get().lives { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
    }

    fn version(&self) -> u32 {
        0
    }

    fn is_stopped(&self) -> bool {
        self.get().is_stopped
    }

    fn start(&self) -> Option<Started> {
        Some(Started { at: self.get().started.clone()?, epilog: None })
    }

    fn end(&self) -> Option<AttemptEnd> {
        self.get().end.clone()
    }
}

/// The surroundings of the loop. Tasks are carried out between its turns.
pub(super) struct FakeSite {
    host: FakeHost,
    launches: RefCell<VecDeque<(Attempt, PendingLaunch)>>,
    tasks: RefCell<VecDeque<(Attempt, Task)>>,
    reports: RefCell<Vec<String>>,
    is_short: Cell<bool>,
}

impl Site for FakeSite {
    type Host = FakeHost;
    type Partition = ();

    fn host(&self) -> &FakeHost {
        &self.host
    }

    fn report(&self, input: Input) {
        self.reports.borrow_mut().push(format!("{input:?}"));
    }

    fn launch(&self, attempt: Attempt, pending: PendingLaunch) {
        self.launches.borrow_mut().push_back((attempt, pending));
    }

    fn submit(&self, attempt: Attempt, task: Task) {
        self.tasks.borrow_mut().push_back((attempt, task));
    }

    fn watch_exit(&self, number: u64, shim: &FakeShim) -> io::Result<()> {
        shim.get().number = Some(number);
        Ok(())
    }

    fn unwatch_exit(&self, shim: &FakeShim) {
        shim.get().number = None;
    }

    fn watch_connection(&self, _number: u64, _shim: &FakeShim) -> io::Result<()> {
        Ok(())
    }

    fn unwatch_connection(&self, _shim: &FakeShim) {}

    fn watch_partition(&self, _number: u64, _attempt: Attempt) -> Option<()> {
        None
    }

    fn partition_state(&self, _partition: &()) -> Option<String> {
        None
    }

    fn unwatch_partition(&self, _partition: ()) {}

    fn is_short_of_descriptors(&self) -> bool {
        self.is_short.get()
    }

    fn set_waiting(&self, _launches: usize) {}

    fn note_shim(&self) {}
}

/// The attempts that a start passes on.
#[derive(Clone, Default)]
pub(super) struct FakeSupervisor(pub(super) Rc<RefCell<Vec<Attempt>>>);

impl Supervisor<FakeShim> for FakeSupervisor {
    fn supervise(&self, attempt: Attempt, _begin: Begin<FakeShim>) {
        self.0.borrow_mut().push(attempt);
    }
}

/// A loop on the fake machine.
pub(super) struct FakeDaemon {
    pub(super) host: FakeHost,
    shims: ShimLoop<FakeSite>,
}

impl FakeDaemon {
    pub(super) fn new() -> FakeDaemon {
        let host = FakeHost::new();
        let (launches, tasks, reports, is_short) = <_>::default();
        let site = FakeSite { host: host.clone(), launches, tasks, reports, is_short };
        FakeDaemon { host, shims: ShimLoop::new(site) }
    }

    pub(super) fn handle(&mut self, message: LoopMessage<FakeShim>) {
        self.shims.handle(message);
    }

    pub(super) fn set_short_of_descriptors(&self, is_short: bool) {
        self.shims.site().is_short.set(is_short);
    }

    /// Lets this time pass. Returns the reports meanwhile.
    pub(super) fn run(&mut self, time: Duration) -> Vec<String> {
        let until = self.host.clock.boot_now().after(time);
        loop {
            self.turn();
            let now = self.host.clock.boot_now();
            let next = self.shims.next().map_or(until, |at| at.max(now.after(Duration::from_micros(1))));
            self.host.pause(next.min(until).since(now));
            if next >= until {
                return self.shims.site().reports.take();
            }
        }
    }

    /// Takes turns at this instant until nothing is left to do.
    fn turn(&mut self) {
        self.shims.advance();
        loop {
            let (exited, results) = (self.exited(), self.results());
            if exited.is_empty() && results.is_empty() {
                return;
            }
            for number in exited {
                self.shims.ready(Readiness::Exit(number));
            }
            for (attempt, result) in results {
                self.shims.handle(LoopMessage::Finished(attempt, result));
            }
            self.shims.advance();
        }
    }

    /// Returns the numbers of watched shims that have exited.
    fn exited(&self) -> Vec<u64> {
        let all = self.host.attempts.borrow();
        all.values().filter(|attempt| !attempt.lives).filter_map(|attempt| attempt.number).collect()
    }

    /// Carries out the tasks of the last turn.
    fn results(&self) -> Vec<(Attempt, TaskResult<FakeShim>)> {
        let site = self.shims.site();
        let launched = site.launches.take().into_iter();
        let launched = launched.map(|(attempt, pending)| (attempt, run_launch(&self.host, attempt, pending)));
        let done = site.tasks.take().into_iter();
        let done = done.filter_map(|(attempt, task)| Some((attempt, run_task(&self.host, attempt, task)?)));
        launched.chain(done).collect()
    }
}
