//! The world: a machine, its daemon and its users, under a virtual clock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::task::{Context, Poll, Waker};

use jiff::Timestamp;
use miserly_api::model::{
    Array, BeginStepRequest, Condition as JobCondition, EndStepRequest, Exit, JobChange, JobSignal,
    Modification, Problem, ProblemCode, Quote, Reservation, ReservedTime, Retry, SignalRequest, Submission,
    When,
};
use miserly_core::{Calendar, Kind, OpportunisticConfig, Resources, Span, Time};
use miserly_engine::{
    DaemonInfo, DaemonReply, DaemonRequest, EngineError, GpuGroup, IdleTerms, Input, JobRow, JobState,
    JournalError, Limits, Now, Queue, QueueGpus, QueueTerms, Record, RequestError, Requester, Setup,
    Topology, UserLimits, WaitingShimLimits,
};
use miserly_launcher::{BootClock, StartError, StartOptions, UnknownAttempts, start};
use miserly_marks::{mark, mark_variant};
use miserly_policies::PolicySpec;

use crate::asked::{caller, check_reply, secret};
use crate::checks::absence::Alone;
use crate::checks::{REPORTED, Watch};
use crate::daemon::{BATCH, Daemon, Ended};
use crate::effects::{Effects, Killed, panic_text};
use crate::journals::{CommitFault, WorldJournal};
use crate::limits::Places;
use crate::restored::Restorable;
use crate::site::{Beside as _, Home, Machine, MachineClocks, Shims};
use crate::step::{Condition, Event, MachineSetup, Request, SECOND, Script, Step, Wish};

/// The time within which the daemon tries a commit again that had no room.
const RETRY: i64 = 5 * SECOND;
/// The most batches without a wait between them.
const RESTLESS: u32 = 2000;
/// The steps from one comparison of the state with its stored form to the next.
const EVERY: usize = 10;
/// The time after the end of the faults within which everything must have come to an end.
const SETTLE: i64 = 3600 * 24 * SECOND;
/// The time between a quote and its submission.
const TICKS: jiff::SignedDuration = jiff::SignedDuration::from_micros(BATCH);
/// The number of the first reservation, as a queue of a wish.
pub(crate) const RESERVED: usize = 100;
/// The first of the users.
pub(crate) const USERS: u32 = 1000;

/// A broken rule, with its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the step, from 1. One more than the number of steps stands for the end.
    pub step: usize,
    /// The rule that was broken.
    pub what: String,
}

/// The outcome of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The broken rule, if there is one.
    pub failure: Option<Failure>,
    /// The events, one on each line.
    pub trace: String,
    /// Accepted jobs.
    pub jobs: usize,
    /// Batches of the engine.
    pub batches: u64,
}

/// Runs a script.
pub fn run(script: &Script) -> Outcome {
    let mut world = World::new(script);
    let failure = world.play(script);
    let World { trace, watch, batches, .. } = world;
    Outcome { failure, trace, jobs: watch.count(), batches: batches.get() }
}

/// The failure of a start.
enum StartFailed {
    NoRoom,
    Failed(StartError),
}

impl From<StartError> for StartFailed {
    fn from(error: StartError) -> StartFailed {
        match error {
            StartError::Engine(EngineError::Journal(JournalError::Full(_))) => StartFailed::NoRoom,
            error => StartFailed::Failed(error),
        }
    }
}

/// The world.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct World {
    pub(crate) now: i64,
    pub(crate) wall_was_set: bool,
    /// Whether a policy ends jobs to run them again.
    pub(crate) preempts: bool,
    /// Whether a policy stops jobs and lets them continue.
    pub(crate) suspends: bool,
    /// Whether a policy resizes jobs.
    pub(crate) divides: bool,
    setup: MachineSetup,
    effects: Effects,
    pub(crate) journal: WorldJournal,
    /// The last copy of the state that the operator made.
    pub(crate) backup: Option<Restorable>,
    /// Whether all rules are checked.
    pub(crate) wide: bool,
    /// The places that users had at the last check.
    pub(crate) places: Places,
    /// The instant from which the daemon is present: it began, or goes on after a stall.
    pub(crate) began: i64,
    /// What the next daemon does with attempts that its state does not have.
    pub(crate) unknown: UnknownAttempts,
    pub(crate) machine: Rc<Machine>,
    /// The clock of the last daemon.
    clock: Option<BootClock<MachineClocks>>,
    daemon: Option<Rc<Daemon>>,
    /// The instant at which the last daemon ended.
    gone_at: i64,
    pub(crate) alone: Alone,
    stalled_until: i64,
    /// The end of the last stall of a daemon.
    pub(crate) last_stall: i64,
    /// The instant from which nothing is late for an earlier fault.
    quiet_from: i64,
    pub(crate) full: bool,
    /// The batches since the daemon last waited.
    restless: u32,
    /// The jobs of each submission.
    tags: BTreeMap<u32, Vec<i64>>,
    trace: String,
    pub(crate) watch: Watch,
    batches: Rc<Cell<u64>>,
    /// The replies to requests that were made a while ago.
    replies: Vec<Reply>,
}

/// A requester that keeps its reply.
#[derive(Debug)]
struct Kept(Sender<Result<DaemonReply, Problem>>, Effects);

impl Requester for Kept {
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>) {
        self.1.pass();
        let _ = self.0.send(reply);
        self.1.pass();
    }

    fn is_gone(&self) -> bool {
        false
    }
}

type Reply = Receiver<Result<DaemonReply, Problem>>;

/// The failure of a rule.
pub(crate) type Checked = Result<(), String>;

/// The memory of a GPU that is given in shares, kB.
pub(crate) const SHARED_MEMORY: u64 = 16 << 20;

impl World {
    fn new(script: &Script) -> World {
        let effects = Effects::default();
        World {
            now: 0,
            wall_was_set: false,
            preempts: false,
            suspends: false,
            divides: false,
            setup: script.machine.clone(),
            journal: WorldJournal::new(script.stored, effects.clone()),
            wide: script.wide,
            backup: None,
            places: Places::new(),
            began: 0,
            unknown: UnknownAttempts::Adopt,
            machine: Machine::new(effects.clone(), script.groups),
            clock: None,
            effects,
            daemon: None,
            gone_at: 0,
            alone: Alone::default(),
            stalled_until: 0,
            last_stall: 0,
            quiet_from: 0,

            full: false,
            restless: 0,
            tags: BTreeMap::new(),
            trace: String::new(),
            watch: Watch::default(),
            batches: Rc::default(),
            replies: vec![],
        }
    }

    fn play(&mut self, script: &Script) -> Option<Failure> {
        let reloaded = script.steps.iter().filter_map(|step| match step {
            Step::Reload { machine } => Some(&**machine),
            _ => None,
        });
        let mut queues = reloaded.chain([&script.machine]).flat_map(|machine| &machine.queues);
        let is_any_of = |policy: &str, names: &[&str]| names.iter().any(|name| policy.starts_with(name));
        self.preempts =
            queues.clone().any(|(policy, _)| is_any_of(policy, &["immediate", "eqspatial(quantum=5s"]));
        self.divides = queues.clone().any(|(policy, _)| policy.starts_with("eqspatial"));
        let suspending = ["ss(", "tss(", "is(", "immediate", "gang"];
        self.suspends = queues.any(|(policy, _)| policy == "ss" || is_any_of(policy, &suspending));
        let steps = script.steps.iter().map(Some).chain([None]);
        let mut last = None;
        if let Err(what) = self.start() {
            return Some(Failure { step: 0, what });
        }
        for (number, step) in steps.enumerate() {
            let done = match step {
                Some(step) => self.take(step),
                None => self.settle(),
            };
            let every = number % EVERY == EVERY - 1 || step.is_none();
            let replays = self.wide && (step.is_none() || number == script.steps.len() / 2);
            let checked = done.and_then(|()| self.take_replies()).and_then(|()| self.check(every));
            if let Err(what) = checked.and_then(|()| if replays { self.check_replay() } else { Ok(()) }) {
                self.note(&format!("FAILS: {what}"));
                last = Some(Failure { step: number + 1, what });
                break;
            }
        }
        last
    }

    fn write_notes(&mut self) {
        for (at, note) in self.machine.take_notes() {
            let _ = writeln!(self.trace, "{at:>14}   {note}");
        }
    }

    pub(crate) fn note(&mut self, what: &str) {
        self.write_notes();
        let _ = writeln!(self.trace, "{:>14} {what}", self.now);
    }

    /// Returns the present moment.
    pub(crate) fn moment(&self) -> Now {
        let without = || Now { ticks: Time::from_ticks(self.now), wall: self.machine.wall() };
        self.clock.as_ref().map_or_else(without, BootClock::read)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.daemon.is_some() && self.stalled_until <= self.now
    }

    /// Returns since when no daemon runs, if none does.
    pub(crate) fn gone_at(&self) -> Option<i64> {
        self.daemon.is_none().then_some(self.gone_at)
    }

    /// Returns the number of batches of all daemons.
    pub(crate) fn batches(&self) -> u64 {
        self.batches.get()
    }

    pub(crate) const fn cleanup(&self) -> i64 {
        self.setup.cleanup
    }

    pub(crate) const fn slack(&self) -> i64 {
        self.setup.slack
    }

    /// Returns whether nothing disturbs the daemon.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && !self.full && self.quiet_from <= self.now
    }

    /// Returns the instant since which nothing disturbs the daemon.
    pub(crate) fn quiet_since(&self) -> i64 {
        self.quiet_from.max(self.stalled_until).max(self.began)
    }

    fn take(&mut self, step: &Step) -> Checked {
        self.note(&format!("* {step}"));
        mark_step(step);
        self.alone.note(step);
        match step {
            Step::Wait { ticks } => self.pass(*ticks),
            Step::Submit { tag, user, wish } => self.submit(*tag, *user, wish),
            Step::Request { user, request } => self.request(*user, request),
            Step::Stop => self.stop(),
            Step::Start => self.start(),
            Step::Kill { after: 0 } => {
                self.die("it was killed");
                Ok(())
            }
            Step::Kill { after } => {
                self.effects.kill_after(Some(*after));
                Ok(())
            }
            Step::Stall { ticks } => {
                self.stalled_until = self.now + ticks;
                self.last_stall = self.stalled_until;
                self.began = self.stalled_until;
                self.quiet_from = self.quiet_from.max(self.stalled_until + REPORTED);
                self.pass(*ticks)
            }
            Step::Reboot { ticks } => self.reboot("the power failed", *ticks),
            Step::ShutDown { patience, daemon_first, ticks } => {
                if *daemon_first {
                    self.stop()?;
                }
                self.machine.shut_down();
                self.pass(*patience)?;
                self.stop()?;
                self.reboot("the machine is off", *ticks)
            }
            Step::SetWall { by } => {
                self.machine.set_wall(*by);
                self.wall_was_set = true;
                Ok(())
            }
            Step::Full { on, only_attempts } => {
                self.full = *on;
                self.quiet_from = self.now + RETRY;
                self.journal.set_full(*on && !only_attempts);
                self.machine.set_full(*on);
                Ok(())
            }
            Step::FailCommit { stored } => {
                let fault = if *stored { CommitFault::Unflushed } else { CommitFault::Unwritten };
                self.journal.fail_commit(Some(fault));
                Ok(())
            }
            Step::KillShim { tag } => {
                self.machine.kill_shims(&self.jobs_of(*tag));
                self.pass(0)
            }
            Step::StopShim { tag, on } => {
                self.machine.stop_shims(&self.jobs_of(*tag), *on);
                self.pass(0)
            }
            Step::SignalMain { tag, signal } => {
                self.machine.signal_main(&self.jobs_of(*tag), *signal);
                self.pass(0)
            }
            Step::Soon { ticks, event } => {
                self.soon(*ticks, event);
                Ok(())
            }
            Step::Reload { machine } => self.reload(machine),
            Step::TearCommit { part } => {
                self.journal.tear_commit(Some(*part));
                Ok(())
            }
            Step::FailOpen => {
                self.journal.fail_open(true);
                Ok(())
            }
            Step::BackUp => self.back_up(),
            Step::Restore { sweep } => self.restore(*sweep),
        }
    }

    fn reboot(&mut self, why: &str, ticks: i64) -> Checked {
        self.die(why);
        self.machine.lose_power();
        self.machine.boot_after(ticks);
        self.watch.boot();
        self.now = self.machine.now();
        self.start()
    }

    /// Lets time pass, with everything that is due in it.
    fn pass(&mut self, ticks: i64) -> Checked {
        let until = self.now + ticks;
        self.restless = 0;
        loop {
            let next = self.machine.next().into_iter().chain(self.daemon_next()).min();
            let next = next.map(|next| next.max(self.now));
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.restless = if next == self.now { self.restless + 1 } else { 0 };
            if self.restless > RESTLESS {
                return Err("the daemon never rests".into());
            }
            self.set_now(next);
            self.machine.advance();
            self.turn()?;
        }
        self.set_now(until);
        Ok(())
    }

    fn set_now(&mut self, now: i64) {
        self.machine.set_now(now);
        self.now = self.machine.now();
    }

    /// Returns the instant at which the daemon does something.
    fn daemon_next(&self) -> Option<i64> {
        self.daemon.as_ref()?.next().map(|at| at.max(self.stalled_until))
    }

    /// Runs the due steps of the daemon.
    fn turn(&mut self) -> Checked {
        if self.daemon_next().is_none_or(|at| at > self.now) {
            return Ok(());
        }
        let Some(daemon) = self.daemon.clone() else { return Ok(()) };
        let done = guarded(|| daemon.turn());
        self.after(done)
    }

    /// Goes on after a call of the engine, which may have killed or ended the daemon.
    fn after(&mut self, done: Called<Result<(), EngineError>>) -> Checked {
        match done {
            Called::Killed => {
                mark!("killed at an effect");
                self.die("it was killed");
            }
            Called::Panicked(text) => return Err(format!("the daemon panics: {text}")),
            Called::Returned(Ok(())) => {}
            Called::Returned(Err(EngineError::Journal(JournalError::Failed(_))))
            | Called::Ended(EngineError::Journal(JournalError::Failed(_))) => {
                mark!("ended by its journal");
                self.die("its journal failed");
            }
            Called::Returned(Err(error)) | Called::Ended(error) => {
                return Err(format!("the daemon ends by itself: {error}"));
            }
        }
        self.now = self.machine.now();
        self.write_notes();
        self.machine.take_broken().map_or(Ok(()), Err)
    }

    fn die(&mut self, why: &str) {
        self.note(&format!("  the daemon is gone: {why}"));
        self.effects.kill_after(None);
        (self.daemon, self.gone_at) = (None, self.now);
        self.journal.close();
        self.stalled_until = 0;
    }

    pub(crate) fn stop(&mut self) -> Checked {
        let Some(daemon) = self.daemon.take() else { return Ok(()) };
        let now = self.moment();
        let done = guarded(|| daemon.engine.borrow_mut().shutdown(now));
        if let Called::Returned(Err(error)) = done
            && !matches!(error, EngineError::Journal(JournalError::Full(_) | JournalError::Failed(_)))
        {
            return Err(format!("the daemon cannot end: {error}"));
        }
        self.die("it was stopped");
        Ok(())
    }

    /// Starts a daemon unless one runs, in the order of the real one.
    pub(crate) fn start(&mut self) -> Checked {
        if self.daemon.is_some() {
            return Ok(());
        }
        if !self.journal.open()? {
            self.die("its state cannot be opened");
            return Ok(());
        }
        let unknown = self.unknown;
        let (machine, mut journal, setup) = (&self.machine, self.journal.clone(), self.setup_now());
        let (watch, batches) = (&mut self.watch, Rc::clone(&self.batches));
        let begun = guarded(move || {
            let clock = BootClock::of_state(&mut journal, machine.boot(), machine.clocks())
                .map_err(StartError::from)?;
            if machine.follow(clock.now().ticks()) < 0 {
                watch.lose_clock();
            }
            let (home, inputs) = (Home::new(machine, clock.clone()), Rc::default());
            let (processes, shims) = Shims::new(home.clone(), Rc::clone(&inputs));
            let options = StartOptions {
                setup,
                info: DaemonInfo { runs_as_users: true, ..DaemonInfo::default() },
                unknown,
                observer: Box::new(|_| {}),
            };
            let wait = async |_: &EngineError| Err(StartFailed::NoRoom);
            let started = pin!(start(&home, journal, processes, options, wait));
            match started.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(engine) => {
                    let (engine, machine) = (RefCell::new(engine?), Rc::clone(machine));
                    Ok(Daemon { engine, shims, inputs, clock, machine, batches })
                }
                Poll::Pending => Err(StartFailed::NoRoom),
            }
        });
        let begun = match begun {
            Called::Returned(Ok(daemon)) => {
                let daemon = Rc::new(daemon);
                self.machine.set_daemon(&daemon);
                self.clock = Some(daemon.clock.clone());
                self.daemon = Some(daemon);
                Called::Returned(Ok(()))
            }
            Called::Returned(Err(StartFailed::NoRoom)) => {
                mark!("no room for a start");
                self.die("there is no room");
                return Ok(());
            }
            Called::Returned(Err(StartFailed::Failed(StartError::Engine(error)))) => {
                Called::Returned(Err(error))
            }
            Called::Returned(Err(StartFailed::Failed(error))) => {
                return Err(format!("no daemon starts: {error}"));
            }
            Called::Killed => Called::Killed,
            Called::Ended(error) => Called::Ended(error),
            Called::Panicked(text) => Called::Panicked(text),
        };
        self.set_now(self.machine.now() + BATCH);
        self.began = self.now;
        self.after(begun)
    }

    fn reload(&mut self, machine: &MachineSetup) -> Checked {
        let setup = World::setup(machine);
        let now = self.moment();
        self.places = self.places_now();
        let Some(daemon) = self.daemon.clone() else { return Ok(()) };
        let mut refused = None;
        let done = guarded(|| match daemon.engine.borrow_mut().reconfigure(now, setup) {
            Ok(()) => Ok(()),
            Err(RequestError::Refused(problem)) => {
                refused = Some(problem.message);
                Ok(())
            }
            Err(RequestError::Fatal(error)) => Err(error),
        });
        match refused {
            Some(why) => self.note(&format!("  refused: {why}")),
            // A daemon that died in the middle reads the new file at its next start.
            None => self.setup = machine.clone(),
        }
        self.set_now(self.now + BATCH);
        self.after(done)
    }

    fn submit(&mut self, tag: u32, user: u32, wish: &Wish) -> Checked {
        self.rest()?;
        let Some(submission) = self.submission(user, tag, wish) else { return Ok(()) };
        self.machine.set_habits(tag, wish.runs.clone());
        let (quote, before) = (self.quoted(user, &submission), self.journal.rows());
        let Some(reply) = self.ask(user, DaemonRequest::Submit(submission))? else { return Ok(()) };
        // A held job has no window yet.
        if let Some(quote) = quote.filter(|_| !wish.hold) {
            check_quote(&quote, &reply)?;
        }
        match reply {
            Ok(DaemonReply::Submitted(submitted)) => {
                let numbers: Vec<i64> = submitted.jobs.iter().map(|job| job.number).collect();
                self.note(&format!("  accepted as {numbers:?}"));
                self.watch.accept(&numbers, user, wish, self.now)?;
                self.tags.insert(tag, numbers);
            }
            Ok(other) => return Err(format!("a submission is answered by {other:?}")),
            Err(problem) => self.refused(&problem, &before)?,
        }
        Ok(())
    }

    /// Lets something happen after some ticks, even if the daemon is in the middle of a task then.
    fn soon(&mut self, ticks: i64, event: &Event) {
        let jobs = event.tag().map(|tag| self.jobs_of(tag)).unwrap_or_default();
        match *event {
            Event::Request { user, ref request } => {
                let Some(question) = self.question(user, request) else { return };
                let Some((input, reply)) = self.input(user, question) else { return };
                let Some(daemon) = &self.daemon else { return };
                self.watch.asked(&self.tags, user, request);
                let inputs = Rc::clone(&daemon.inputs);
                self.machine.after(ticks, move |_| inputs.borrow_mut().push_back(input));
                self.replies.push(reply);
            }
            Event::KillShim { .. } => self.machine.after(ticks, move |machine| machine.kill_shims(&jobs)),
            Event::StopShim { on, .. } => {
                self.machine.after(ticks, move |machine| machine.stop_shims(&jobs, on));
            }
            Event::SignalMain { signal, .. } => {
                self.machine.after(ticks, move |machine| machine.signal_main(&jobs, signal));
            }
        }
    }

    /// Returns the quote for a submission.
    fn quoted(&self, user: u32, submission: &Submission) -> Option<Result<Quote, Problem>> {
        let snapshot = self.latest().filter(|_| self.is_quiet())?;
        let question = DaemonRequest::Quote(submission.clone());
        match snapshot.answer(self.moment(), &caller(user), &question, &self.journal, &|_, _| Ok(())) {
            Ok(DaemonReply::Quote(quote)) => Some(Ok(quote)),
            Ok(_) => None,
            Err(problem) => Some(Err(problem)),
        }
    }

    /// Lets the daemon do all that is due, so that the next batch has one request.
    fn rest(&mut self) -> Checked {
        for _ in 0..RESTLESS {
            let next = self.machine.next().into_iter().chain(self.daemon_next()).min();
            if next.is_none_or(|next| next > self.now) {
                break;
            }
            self.pass(0)?;
        }
        Ok(())
    }

    /// Looks at the replies to requests that were made a while ago.
    fn take_replies(&mut self) -> Checked {
        for reply in std::mem::take(&mut self.replies) {
            match reply.try_recv() {
                Ok(Err(problem)) => check_refusal(&problem)?,
                Err(TryRecvError::Empty) => self.replies.push(reply),
                Ok(Ok(_)) | Err(TryRecvError::Disconnected) => {}
            }
        }
        Ok(())
    }

    /// A request is refused: there is no further job, and none is another one than before.
    ///
    /// The round of the request may have other effects: a reservation has ended, or a policy plans anew.
    fn refused(&mut self, problem: &Problem, before: &BTreeMap<i64, JobRow>) -> Checked {
        let now = self.journal.rows();
        // After a full disk the batch has earlier changes, too.
        let mut changed = now.iter().filter(|(number, row)| is_other(before.get(number), row));
        if let Some((number, _)) = changed.next().filter(|_| self.is_quiet()) {
            return Err(format!("a refused request changed job {number}: {}", problem.message));
        }
        self.note(&format!("  refused: {}", problem.message));
        check_refusal(problem)
    }

    fn request(&mut self, user: u32, request: &Request) -> Checked {
        let Some(question) = self.question(user, request) else { return Ok(()) };
        // It may be carried out without a reply.
        self.watch.asked(&self.tags, user, request);
        self.rest()?;
        let before = self.journal.rows();
        let owner = request.tag().and_then(|tag| self.job_of(tag)).and_then(|job| self.watch.owner(job));
        match self.ask(user, question)? {
            Some(Err(problem)) => self.refused(&problem, &before),
            Some(Ok(_)) if user != 0 && owner.is_some_and(|owner| owner != user) => {
                Err(format!("user {user} changes a job of user {owner:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Asks the daemon. Returns `None` if no reply came.
    pub(crate) fn ask(
        &mut self,
        user: u32,
        question: DaemonRequest,
    ) -> Result<Option<Result<DaemonReply, Problem>>, String> {
        let Some(reply) = self.post(user, question) else { return Ok(None) };
        self.pass(0)?;
        let reply = reply.try_recv().ok();
        reply.as_ref().map_or(Ok(()), |reply| check_reply(user, reply))?;
        Ok(reply)
    }

    fn post(&mut self, user: u32, question: DaemonRequest) -> Option<Reply> {
        let (input, reply) = self.input(user, question)?;
        self.daemon.as_ref()?.inputs.borrow_mut().push_back(input);
        Some(reply)
    }

    /// Returns the input that a request is to the daemon, if it answers.
    fn input(&mut self, user: u32, question: DaemonRequest) -> Option<(Input, Reply)> {
        if !self.is_up() {
            self.note("  no daemon answers");
            return None;
        }
        let (sender, reply) = channel();
        let requester = Box::new(Kept(sender, self.effects.clone()));
        let mut caller = caller(user);
        if let DaemonRequest::Submit(submission) = &question {
            let name = caller.account.as_ref().map_or("root", |account| &account.name);
            caller.credential = self.machine.seal(user, name, submission).map(Into::into);
        }
        let input = Input::Request { caller, request: Box::new(question), requester };
        Some((input, reply))
    }

    fn jobs_of(&self, tag: u32) -> Vec<i64> {
        self.tags.get(&tag).cloned().unwrap_or_default()
    }

    fn job_of(&self, tag: u32) -> Option<i64> {
        self.tags.get(&tag)?.first().copied()
    }

    fn question(&self, user: u32, request: &Request) -> Option<DaemonRequest> {
        mark_variant!(
            request,
            Request {
                Cancel,
                Hold,
                Release,
                Requeue,
                Extend,
                Pause,
                Signal,
                Step,
                Modify,
                Resize,
                Reserve,
                RemoveReservation,
                Drain,
                Quote,
                Preview,
                Pools,
                Limits,
            }
        );
        Some(match *request {
            Request::Cancel { tag, array } => DaemonRequest::Cancel { job: self.job_of(tag)?, array },
            Request::Hold { tag, move_promises } => {
                DaemonRequest::Hold { job: self.job_of(tag)?, move_promises }
            }
            Request::Release { tag } => DaemonRequest::Release(self.job_of(tag)?),
            Request::Requeue { tag, move_promises } => {
                DaemonRequest::Requeue { job: self.job_of(tag)?, move_promises }
            }
            Request::Extend { tag, seconds } => {
                DaemonRequest::Extend { job: self.job_of(tag)?, by: f64::from(seconds) }
            }
            Request::Pause { tag, on } => DaemonRequest::Pause { job: self.job_of(tag)?, on },
            Request::Signal { tag } => DaemonRequest::Signal {
                job: self.job_of(tag)?,
                signal: SignalRequest { signal: JobSignal::Usr1, main: false },
            },
            Request::Step { tag, ends: None } => DaemonRequest::BeginStep {
                job: self.job_of(tag)?,
                step: BeginStepRequest { name: "step".to_owned(), tasks: 1, cpus: 1, limit: None },
            },
            Request::Step { tag, ends: Some(step) } => DaemonRequest::EndStep {
                job: self.job_of(tag)?,
                end: EndStepRequest { step, exit: Exit::Code(0), by_time: false },
            },
            Request::Modify { tag, time, cpus, before, move_promises } => DaemonRequest::Modify {
                job: self.job_of(tag)?,
                changes: Box::new(Modification {
                    time: time.map(f64::from),
                    cpus,
                    before: before.and_then(|before| self.job_of(before)),
                    ..Modification::default()
                }),
                move_promises,
            },
            Request::Resize { tag, cpus } => DaemonRequest::Resize { job: self.job_of(tag)?, cpus },
            Request::Reserve { name, cpus, from, to } => DaemonRequest::Reserve(Box::new(Reservation {
                name: format!("r{name}"),
                queue: Some("q0".into()),
                cpus,
                users: vec![format!("user{USERS}")],
                times: vec![ReservedTime { from: self.wall_in(from), to: self.wall_in(to) }],
                ..Reservation::default()
            })),
            Request::RemoveReservation { name } => DaemonRequest::RemoveReservation(format!("r{name}")),
            Request::Drain { on } => DaemonRequest::Drain(on),
            Request::Quote { cpus, time } => DaemonRequest::Quote(Submission {
                cpus,
                time: time.into(),
                ..self.submission(user, 0, &Wish::default())?
            }),
            Request::Preview { tag } => {
                DaemonRequest::Preview { job: self.job_of(tag)?, change: Box::new(JobChange::Hold) }
            }
            Request::Pools => DaemonRequest::Pools,
            Request::Limits => DaemonRequest::Limits,
        })
    }

    /// Returns the wall time after some ticks.
    fn wall_in(&self, ticks: i64) -> Timestamp {
        let now = self.moment();
        now.wall_at(now.ticks + Span::from_ticks(ticks))
    }

    /// Returns the submission of a wish; `None` if it depends on one that was not accepted.
    pub(crate) fn submission(&self, user: u32, tag: u32, wish: &Wish) -> Option<Submission> {
        let condition = |(condition, tag): &(Condition, u32)| {
            let when = match condition {
                Condition::Any => When::Any,
                Condition::Ok => When::Ok,
                Condition::NotOk => When::NotOk,
            };
            Some(JobCondition { when, job: Some(self.job_of(*tag)?), ..JobCondition::default() })
        };
        let array = (wish.members > 0)
            .then(|| Array { limit: wish.at_a_time, ..Array::range(0, wish.members - 1, 1) });
        Some(Submission {
            command: vec!["/bin/work".into(), secret(user), tag.to_string()],
            environment: [("SECRET".into(), secret(user))].into(),
            directory: "/".into(),
            cpus: wish.cpus,
            gpus: (wish.gpus > 0).then_some(wish.gpus),
            gpu_type: wish.gpu_type.clone(),
            gpu_memory: (wish.gpu_share > 0).then_some(wish.gpu_share << 30),
            resizable: wish.resizable,
            resize_signal: wish
                .resize_signal
                .then_some(SignalRequest { signal: JobSignal::Usr1, main: true }),
            memory: Some(wish.memory.unwrap_or(4096)),
            time: wish.time.into(),
            queue: Some(match wish.queue.checked_sub(RESERVED) {
                Some(reservation) => format!("r{reservation}"),
                None => format!("q{}", wish.queue),
            }),
            begin: wish.begin.map(|ticks| self.wall_in(ticks)),
            deadline: wish.deadline.map(|ticks| self.wall_in(ticks)),
            start_within: wish.start_within.map(|ticks| Span::from_ticks(ticks).as_secs_f64()),
            overrun_if_idle: wish.overrun,
            conditions: wish.after.iter().map(condition).collect::<Option<_>>()?,
            array,
            restartable: wish.restartable,
            retry: (wish.retry > 0).then(|| Retry { limit: wish.retry, codes: vec![] }),
            no_opportunistic: !wish.early,
            hold: wish.hold,
            ..Submission::default()
        })
    }

    /// Returns the configuration of the present daemon.
    pub(crate) fn setup_now(&self) -> Setup {
        World::setup(&self.setup)
    }

    pub(crate) fn latest(&self) -> Option<std::sync::Arc<miserly_engine::Snapshot>> {
        Some(self.daemon.as_ref()?.engine.borrow().snapshots().latest())
    }

    fn setup(machine: &MachineSetup) -> Setup {
        let all: u64 = machine.queues.iter().map(|(_, cpus)| *cpus).sum();
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let memory = 1 << 20;
        let parsed = |policy: &String| -> PolicySpec {
            policy.parse().unwrap_or_else(|error| panic!("{policy}: {error}"))
        };
        let queue = |(place, (policy, cpus)): (usize, &(String, u64))| Queue {
            name: format!("q{place}"),
            policy: parsed(policy),
            pool: Calendar::constant(
                Resources::cpus(*cpus)
                    .with(Kind::Memory, memory)
                    .with(Kind::Gpus, if place == 0 { machine.gpus } else { 0 }),
            ),
            classes: None,
            charge: None,
            gpus: (place == 0 && machine.gpu_types)
                .then(|| gpus_of_two_types(machine.gpus, parsed(policy).needs().devices).into()),
            terms: QueueTerms {
                promise_slack: Span::from_ticks(machine.slack),
                idle: machine.idle.map(|(after, ends)| IdleTerms { after: Span::from_ticks(after), ends }),
                ..QueueTerms::default()
            },
        };
        let whole = Resources::cpus(u64::from(all)).with(Kind::Memory, memory * machine.queues.len() as u64);
        Setup {
            queues: machine.queues.iter().enumerate().map(queue).collect(),
            cpus: (0..all).collect(),
            gpus: machine.gpus,
            topology: Topology::default(),
            whole_cores: false,
            opportunistic_cpus: (0..all).collect(),
            grace: Span::from_ticks(machine.grace),
            cleanup_time: Span::from_ticks(machine.cleanup),
            orphan_resume_delay: Span::from_ticks(60 * SECOND),
            opportunistic: machine
                .opportunistic
                .then_some(OpportunisticConfig { lead: Span::from_ticks(2 * SECOND), machine: whole }),
            waiting_shims: WaitingShimLimits { most: if machine.waits { 256 } else { 0 }, per_cpu: 2 },
            keep_history: None,
            user_limits: UserLimits {
                each: Limits { running: machine.user_jobs, cpus: machine.user_cpus, ..Limits::default() },
                tables: vec![],
            },
            reservations: vec![],
        }
    }

    /// Faults cease, and everything comes to an end.
    fn settle(&mut self) -> Checked {
        self.note("* faults cease");
        self.effects.kill_after(None);
        self.journal.fail_commit(None);
        self.journal.tear_commit(None);
        self.journal.fail_open(false);
        self.journal.set_full(false);
        self.machine.set_full(false);
        self.machine.calm();
        (self.full, self.stalled_until) = (false, 0);
        self.start()?;
        if self.daemon.is_none() {
            return Err("no daemon starts although nothing fails any more".into());
        }
        self.ask(0, DaemonRequest::Drain(true))?;
        let until = self.now + SETTLE;
        while self.now < until {
            let open = self.open_jobs()?;
            if open.is_empty() {
                return Ok(());
            }
            for number in open.held {
                // A job that can never run is not released.
                if let Some(Err(_)) = self.ask(0, DaemonRequest::Release(number))? {
                    self.ask(0, DaemonRequest::Cancel { job: number, array: false })?;
                }
            }
            for number in open.oversized {
                self.ask(0, DaemonRequest::Cancel { job: number, array: false })?;
            }
            for number in open.paused {
                self.ask(0, DaemonRequest::Pause { job: number, on: false })?;
            }
            self.pass(20 * SECOND)?;
            self.check(false)?;
        }
        let left = self.open_jobs()?;
        Err(format!("a day after the last fault these jobs have not ended: {left:?}"))
    }
}

/// Returns whether users have another job than before.
fn is_other(before: Option<&JobRow>, now: &JobRow) -> bool {
    let record = |row: &JobRow| serde_json::from_str::<Record>(&row.body).ok();
    let of_users =
        |row| record(row).map(|of| (of.own_limit(), of.submission, of.held_by, of.state == JobState::Held));
    before.is_none_or(|before| before != now && of_users(before) != of_users(now))
}

/// A submission is answered as its quote.
fn check_quote(quote: &Result<Quote, Problem>, reply: &Result<DaemonReply, Problem>) -> Checked {
    let starts = match (quote, reply) {
        (Ok(quote), Ok(DaemonReply::Submitted(submitted))) => {
            let promised = submitted.jobs.iter().map(|job| job.promise.as_ref());
            quote.windows.iter().map(Option::as_ref).zip(promised).find(|(quoted, promised)| {
                let [quoted, promised] = [quoted, promised].map(|window| window.map(|window| window.start));
                quoted.zip(promised).is_some_and(|(quoted, promised)| promised > quoted + TICKS)
            })
        }
        (Err(problem), Ok(_)) => {
            return Err(format!("it is accepted, and its quote is refused: {}", problem.message));
        }
        _ => None,
    };
    starts.map_or(Ok(()), |(quoted, promised)| {
        Err(format!("it is quoted {quoted:?}, and promised {promised:?}"))
    })
}

fn mark_step(step: &Step) {
    mark_variant!(
        step,
        Step {
            Wait,
            Submit,
            Request,
            Stop,
            Start,
            Kill,
            Stall,
            Reboot,
            ShutDown,
            SetWall,
            Full,
            FailCommit,
            KillShim,
            StopShim,
            SignalMain,
            Soon,
            Reload,
            TearCommit,
            FailOpen,
            BackUp,
            Restore,
        }
    );
}

/// A request is refused for what it asks, and not for a defect.
fn check_refusal(problem: &Problem) -> Checked {
    if problem.code == ProblemCode::Internal || problem.message.contains("broke a rule") {
        return Err(format!("a request is refused for a defect: {}", problem.message));
    }
    Ok(())
}

/// The outcome of a call of the engine.
enum Called<T> {
    Returned(T),
    /// The daemon was killed in it.
    Killed,
    /// The daemon ended beside one of its tasks.
    Ended(EngineError),
    /// It panicked.
    Panicked(String),
}

/// Calls the engine.
fn guarded<T>(call: impl FnOnce() -> T) -> Called<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Called::Returned(value),
        Err(payload) if payload.is::<Killed>() => Called::Killed,
        Err(payload) => match payload.downcast::<Ended>() {
            Ok(ended) => Called::Ended(ended.0),
            Err(payload) => Called::Panicked(panic_text(&*payload)),
        },
    }
}

/// Returns GPUs of which the last one is of another type, and the others are given in shares.
fn gpus_of_two_types(count: u64, by_class: bool) -> QueueGpus {
    let last = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
    let group = |name: &str, gibibytes: u64, shares: bool, indexes: Vec<u32>| GpuGroup {
        name: name.to_owned(),
        memory: Some(gibibytes << 20),
        part_of: None,
        shares,
        parts: 1,
        indexes,
    };
    let shared = group("t4", SHARED_MEMORY >> 20, true, (0..last).collect());
    QueueGpus { groups: vec![shared, group("a100", 80, false, vec![last])], by_class }
}
