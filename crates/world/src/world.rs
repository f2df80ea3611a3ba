//! The world: a machine, its daemon and its users, under a virtual clock.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use jiff::Timestamp;
use miserly_api::model::{
    Array, Condition as JobCondition, JobChange, JobSignal, Modification, Problem, ProblemCode, Reservation,
    ReservedTime, Retry, SignalRequest, Submission, When,
};
use miserly_core::{Calendar, Kind, OpportunisticConfig, Resources, Span, Time};
use miserly_engine::{
    Account, Caller, DaemonInfo, DaemonReply, DaemonRequest, Engine, EngineError, Input, JournalError, Now,
    Queue, QueueTerms, RequestError, Requester, Setup, StoredJobs, Topology, UserLimits, highest,
};

use crate::checks::Watch;
use crate::effects::{Effects, Killed};
use crate::journal::MemoryJournal;
use crate::site::Site;
use crate::step::{Condition, MachineSetup, Request, SECOND, Script, Step, Wish};

/// The time that a batch takes, in ticks.
const BATCH: i64 = 60;
/// The time within which the daemon tries a commit again that had no room.
const RETRY: i64 = 5 * SECOND;
/// The most batches without a wait between them.
const RESTLESS: u32 = 2000;
/// The steps from one comparison of the state with its stored form to the next.
const EVERY: usize = 10;
/// The time after the end of the faults within which everything must have come to an end.
const SETTLE: i64 = 3600 * 24 * SECOND;
/// The wall time at which a world begins, seconds since 1970.
const BEGIN: i64 = 1_000_000_000;
/// The first of the users.
pub(crate) const USERS: u32 = 1000;

/// What broke a rule, and at which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the step, from 1. One more than the number of steps stands for the end.
    pub step: usize,
    /// The rule that was broken.
    pub what: String,
}

/// What became of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What broke a rule.
    pub failure: Option<Failure>,
    /// What happened, line by line.
    pub trace: String,
    /// Accepted jobs.
    pub jobs: usize,
    /// Batches of the engine.
    pub batches: u64,
}

/// Runs a script.
pub fn run(script: &Script) -> Outcome {
    let mut world = World::new(script.machine.clone());
    let failure = world.play(script);
    let World { trace, watch, batches, .. } = world;
    Outcome { failure, trace, jobs: watch.count(), batches }
}

type Daemon = Engine<Site, MemoryJournal>;

/// The world.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct World {
    pub(crate) now: i64,
    /// The wall clock beside the other one.
    wall: i64,
    pub(crate) wall_was_set: bool,
    /// Whether a policy ends jobs to run them again.
    pub(crate) preempts: bool,
    /// Whether a policy stops jobs and lets them continue.
    pub(crate) suspends: bool,
    machine: MachineSetup,
    effects: Effects,
    pub(crate) journal: MemoryJournal,
    pub(crate) site: Site,
    daemon: Option<Daemon>,
    stalled_until: i64,
    /// The instant from which nothing is late for an earlier fault.
    quiet_from: i64,
    full: bool,
    /// The batches since the daemon last waited.
    restless: u32,
    /// The jobs of each submission.
    tags: BTreeMap<u32, Vec<i64>>,
    waiting: VecDeque<Input>,
    trace: String,
    pub(crate) watch: Watch,
    batches: u64,
}

/// A requester that keeps its reply.
#[derive(Debug)]
struct Kept(Sender<Result<DaemonReply, Problem>>);

impl Requester for Kept {
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>) {
        let _ = self.0.send(reply);
    }

    fn is_gone(&self) -> bool {
        false
    }
}

type Reply = Receiver<Result<DaemonReply, Problem>>;

/// The failure of a rule.
pub(crate) type Checked = Result<(), String>;

impl World {
    fn new(machine: MachineSetup) -> World {
        let effects = Effects::default();
        World {
            now: SECOND,
            wall: 0,
            wall_was_set: false,
            preempts: false,
            suspends: false,
            machine,
            journal: MemoryJournal::new(effects.clone()),
            site: Site(std::rc::Rc::default(), effects.clone()),
            effects,
            daemon: None,
            stalled_until: 0,
            quiet_from: 0,
            full: false,
            restless: 0,
            tags: BTreeMap::new(),
            waiting: VecDeque::new(),
            trace: String::new(),
            watch: Watch::default(),
            batches: 0,
        }
    }

    fn play(&mut self, script: &Script) -> Option<Failure> {
        let reloaded = script.steps.iter().filter_map(|step| match step {
            Step::Reload { machine } => Some(&**machine),
            _ => None,
        });
        let mut queues = reloaded.chain([&script.machine]).flat_map(|machine| &machine.queues);
        self.preempts = queues.clone().any(|(policy, _)| policy.starts_with("immediate"));
        self.suspends = self.preempts || queues.any(|(policy, _)| policy == "ss");
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
            if let Err(what) = done.and_then(|()| self.check(every)) {
                self.note(&format!("FAILS: {what}"));
                last = Some(Failure { step: number + 1, what });
                break;
            }
        }
        last
    }

    pub(crate) fn note(&mut self, what: &str) {
        let _ = writeln!(self.trace, "{:>14} {what}", self.now);
    }

    /// Returns the present moment.
    pub(crate) fn moment(&self) -> Now {
        let wall = BEGIN * SECOND + self.now + self.wall;
        Now {
            ticks: Time::from_ticks(self.now),
            wall: Timestamp::from_microsecond(wall).unwrap_or(Timestamp::MAX),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.daemon.is_some() && self.stalled_until <= self.now
    }

    /// Returns whether nothing disturbs the daemon.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_up() && !self.full && self.quiet_from <= self.now
    }

    fn take(&mut self, step: &Step) -> Checked {
        self.note(&format!("* {step}"));
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
                self.pass(*ticks)
            }
            Step::Reboot { ticks } => {
                self.die("the power failed");
                self.site.0.borrow_mut().reboot();
                self.now += ticks;
                self.start()
            }
            Step::SetWall { by } => {
                self.wall += by;
                self.wall_was_set = true;
                Ok(())
            }
            Step::Full { on } => {
                self.full = *on;
                self.quiet_from = self.now + RETRY;
                self.journal.set_full(*on);
                Ok(())
            }
            Step::FailCommit { stored } => {
                self.journal.fail_next(Some(*stored));
                Ok(())
            }
            Step::KillShim { tag } => {
                let jobs = self.tags.get(tag).cloned().unwrap_or_default();
                let attempts: Vec<_> = self.site.0.borrow().all.keys().copied().collect();
                for attempt in attempts.into_iter().filter(|attempt| jobs.contains(&attempt.job)) {
                    self.site.0.borrow_mut().kill_shim(attempt);
                }
                self.pass(0)
            }
            Step::Reload { machine } => self.reload(machine),
        }
    }

    /// Lets time pass, with everything that is due in it.
    fn pass(&mut self, ticks: i64) -> Checked {
        let until = self.now + ticks;
        self.restless = 0;
        loop {
            let site = self.site.0.borrow().next();
            let next = site.into_iter().chain(self.daemon_next()).min().map(|next| next.max(self.now));
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.restless = if next == self.now { self.restless + 1 } else { 0 };
            if self.restless > RESTLESS {
                return Err("the daemon never rests".into());
            }
            self.now = next;
            self.site.0.borrow_mut().advance(self.now);
            self.turn()?;
        }
        self.now = until.max(self.now);
        self.site.0.borrow_mut().now = self.now;
        self.turn()
    }

    /// Returns the instant at which the daemon does something.
    fn daemon_next(&self) -> Option<i64> {
        let engine = self.daemon.as_ref()?;
        let has_inputs = !self.site.0.borrow().reports.is_empty() || !self.waiting.is_empty();
        let due = engine.next_wakeup().map(Time::ticks);
        let at = if has_inputs { Some(self.now) } else { due };
        at.map(|at| at.max(self.stalled_until))
    }

    /// Lets the daemon process what it has, if something is due.
    fn turn(&mut self) -> Checked {
        if self.daemon_next().is_none_or(|at| at > self.now) {
            return Ok(());
        }
        let mut inputs: Vec<Input> = self.site.0.borrow_mut().reports.drain(..).collect();
        inputs.extend(self.waiting.drain(..));
        for input in &inputs {
            if !matches!(input, Input::Request { .. }) {
                let _ = writeln!(self.trace, "{:>14}   {input:?}", self.now);
            }
        }
        let now = self.moment();
        self.batches += 1;
        self.now += BATCH;
        let Some(mut engine) = self.daemon.take() else { return Ok(()) };
        let done = guarded(|| engine.process_batch(now, inputs).map(|()| engine));
        self.after(done)
    }

    /// Goes on after a call of the engine, which may have killed or ended the daemon.
    fn after(&mut self, done: Called<Result<Daemon, EngineError>>) -> Checked {
        match done {
            Called::Killed => self.die("it was killed"),
            Called::Panicked(text) => return Err(format!("the daemon panics: {text}")),
            Called::Returned(Ok(engine)) => self.daemon = Some(engine),
            Called::Returned(Err(EngineError::Journal(JournalError::Failed(_)))) => {
                self.die("its journal failed");
            }
            Called::Returned(Err(error)) => return Err(format!("the daemon ends by itself: {error}")),
        }
        let acted = std::mem::take(&mut self.site.0.borrow_mut().acted);
        for action in acted {
            let _ = writeln!(self.trace, "{:>14}   -> {action}", self.now);
        }
        self.site.0.borrow_mut().now = self.now;
        let broken = std::mem::take(&mut self.site.0.borrow_mut().broken);
        broken.into_iter().next().map_or(Ok(()), Err)
    }

    fn die(&mut self, why: &str) {
        self.note(&format!("  the daemon is gone: {why}"));
        self.effects.kill_after(None);
        self.daemon = None;
        self.stalled_until = 0;
        self.waiting.clear();
        self.site.0.borrow_mut().lose_daemon();
    }

    fn stop(&mut self) -> Checked {
        let Some(mut engine) = self.daemon.take() else { return Ok(()) };
        let now = self.moment();
        let done = guarded(|| engine.shutdown(now));
        if let Called::Returned(Err(error)) = done
            && !matches!(error, EngineError::Journal(JournalError::Full(_) | JournalError::Failed(_)))
        {
            return Err(format!("the daemon cannot end: {error}"));
        }
        self.die("it was stopped");
        Ok(())
    }

    /// Starts a daemon unless one runs, in the order of the real one.
    fn start(&mut self) -> Checked {
        if self.daemon.is_some() {
            return Ok(());
        }
        self.site.0.borrow_mut().now = self.now;
        let failed = |error: EngineError| format!("no daemon starts: {error}");
        let stored = StoredJobs::load(&self.journal).map_err(failed)?;
        let absence = self.site.0.borrow_mut().take_up(&stored.attempts);
        self.note(&format!("  takes up {absence:?}"));
        let info = DaemonInfo {
            highest: highest(&self.journal).map_err(failed)?,
            runs_as_users: true,
            ..DaemonInfo::default()
        };
        let (journal, site, setup, now) =
            (self.journal.clone(), self.site.clone(), World::setup(&self.machine), self.moment());
        let begun = guarded(move || {
            // More than any configuration has.
            let online: Vec<u32> = (0..64).collect();
            let mut engine = Engine::open(setup, info, journal, site, now)?;
            engine.set_online(&online);
            engine.begin(now, &absence)?;
            Ok(engine)
        });
        self.now += BATCH;
        if let Called::Returned(Err(EngineError::Journal(JournalError::Full(_)))) = &begun {
            self.die("there is no room");
            return Ok(());
        }
        self.after(begun)
    }

    fn reload(&mut self, machine: &MachineSetup) -> Checked {
        let setup = World::setup(machine);
        let now = self.moment();
        let Some(mut engine) = self.daemon.take() else { return Ok(()) };
        let mut refused = None;
        let done = guarded(|| match engine.reconfigure(now, setup) {
            Ok(()) => Ok(engine),
            Err(RequestError::Refused(problem)) => {
                refused = Some(problem.message);
                Ok(engine)
            }
            Err(RequestError::Fatal(error)) => Err(error),
        });
        match refused {
            Some(why) => self.note(&format!("  refused: {why}")),
            // A daemon that died in the middle reads the new file at its next start.
            None => self.machine = machine.clone(),
        }
        self.now += BATCH;
        self.after(done)
    }

    fn submit(&mut self, tag: u32, user: u32, wish: &Wish) -> Checked {
        let Some(submission) = self.submission(tag, wish) else { return Ok(()) };
        self.site.0.borrow_mut().habits.insert(tag, wish.runs.clone());
        let Some(reply) = self.ask(user, DaemonRequest::Submit(submission))? else { return Ok(()) };
        match reply {
            Ok(DaemonReply::Submitted(submitted)) => {
                let numbers: Vec<i64> = submitted.jobs.iter().map(|job| job.number).collect();
                self.note(&format!("  accepted as {numbers:?}"));
                self.watch.accept(&numbers, wish, self.now)?;
                self.tags.insert(tag, numbers);
            }
            Ok(other) => return Err(format!("a submission is answered by {other:?}")),
            Err(problem) => self.refused(&problem)?,
        }
        Ok(())
    }

    fn refused(&mut self, problem: &Problem) -> Checked {
        self.note(&format!("  refused: {}", problem.message));
        if problem.code == ProblemCode::Internal || problem.message.contains("broke a rule") {
            return Err(format!("a request is refused for a defect: {}", problem.message));
        }
        Ok(())
    }

    fn request(&mut self, user: u32, request: &Request) -> Checked {
        let Some(question) = self.question(request) else { return Ok(()) };
        // It may be carried out without a reply.
        self.watch.asked(&self.tags, user, request);
        match self.ask(user, question)? {
            Some(Err(problem)) => self.refused(&problem),
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
        Ok(reply.try_recv().ok())
    }

    fn post(&mut self, user: u32, question: DaemonRequest) -> Option<Reply> {
        if !self.is_up() {
            self.note("  no daemon answers");
            return None;
        }
        let (sender, reply) = channel();
        let account = Account { name: format!("user{user}"), ..Account::default() };
        let caller = match user {
            0 => Caller::new(0),
            user => Caller { account: Some(account.into()), ..Caller::new(user) },
        };
        let requester = Box::new(Kept(sender));
        self.waiting.push_back(Input::Request { caller, request: Box::new(question), requester });
        Some(reply)
    }

    fn job_of(&self, tag: u32) -> Option<i64> {
        self.tags.get(&tag)?.first().copied()
    }

    fn question(&self, request: &Request) -> Option<DaemonRequest> {
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
                ..self.submission(0, &Wish::default())?
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
    fn submission(&self, tag: u32, wish: &Wish) -> Option<Submission> {
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
            command: vec!["/bin/work".into(), tag.to_string()],
            directory: "/".into(),
            cpus: wish.cpus,
            gpus: (wish.gpus > 0).then_some(wish.gpus),
            memory: Some(4096),
            time: wish.time.into(),
            queue: Some(format!("q{}", wish.queue)),
            begin: wish.begin.map(|ticks| self.wall_in(ticks)),
            deadline: wish.deadline.map(|ticks| self.wall_in(ticks)),
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
        World::setup(&self.machine)
    }

    pub(crate) fn latest(&self) -> Option<std::sync::Arc<miserly_engine::Snapshot>> {
        Some(self.daemon.as_ref()?.snapshots().latest())
    }

    fn setup(machine: &MachineSetup) -> Setup {
        let all: u64 = machine.queues.iter().map(|(_, cpus)| *cpus).sum();
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let memory = 1 << 20;
        let queue = |(place, (policy, cpus)): (usize, &(String, u64))| Queue {
            name: format!("q{place}"),
            policy: policy.parse().unwrap_or_else(|error| panic!("{policy}: {error}")),
            pool: Calendar::constant(
                Resources::cpus(*cpus)
                    .with(Kind::Memory, memory)
                    .with(Kind::Gpus, if place == 0 { machine.gpus } else { 0 }),
            ),
            terms: QueueTerms { promise_slack: Span::from_ticks(machine.slack), ..QueueTerms::default() },
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
            keep_history: None,
            user_limits: UserLimits::default(),
            reservations: vec![],
        }
    }

    /// Faults cease, and everything comes to an end.
    fn settle(&mut self) -> Checked {
        self.note("* faults cease");
        self.effects.kill_after(None);
        self.journal.fail_next(None);
        self.journal.set_full(false);
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

/// What became of a call of the engine.
enum Called<T> {
    Returned(T),
    /// The daemon was killed in it.
    Killed,
    /// It panicked.
    Panicked(String),
}

/// Calls the engine.
fn guarded<T>(call: impl FnOnce() -> T) -> Called<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Called::Returned(value),
        Err(payload) if payload.is::<Killed>() => Called::Killed,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Called::Panicked(text.unwrap_or_default())
        }
    }
}
