//! An engine, its journal, and the actions for its launcher.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use miserly_api::model::{Exit, JobView, Problem, PromiseChangeReason, Status, Submission};
use miserly_core::{Calendar, Kind, OpportunisticConfig, Resources, Span, Time};
use miserly_engine::{
    Absence, Action, Adoption, Attempt, AttemptOutcome, Caller, DaemonInfo, DaemonReply, DaemonRequest,
    Engine, EngineError, Input, Launcher, MemoryJournal, Now, Queue, QueueTerms, RequestError, Setup,
    SlotSchedule, Snapshot,
};
use miserly_policies::{PolicyDescriptor, PolicySpec, Registry};

use crate::support::{request, request_of};

/// The memory of the pool, kilobytes.
const MEMORY: u64 = 1000;
/// The cleanup time, in seconds.
pub(crate) const CLEANUP: i64 = 1;

pub(crate) fn seconds(seconds: i64) -> Time {
    Time::from_ticks(seconds * 1_000_000)
}

fn span(seconds: i64) -> Span {
    Span::from_ticks(seconds * 1_000_000)
}

/// The actions, in order.
type RecordedActions = Rc<RefCell<Vec<(Attempt, Action)>>>;

/// The slot schedules, by queue.
type Turning = Rc<RefCell<BTreeMap<String, SlotSchedule>>>;

pub(crate) struct Notes(RecordedActions, Turning);

impl Launcher for Notes {
    fn check(&self, submission: &Submission, _: &str) -> Result<(), Problem> {
        let fails = submission.command.is_empty();
        if fails { Err(Problem::with_field("command", "there is nothing to run")) } else { Ok(()) }
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        self.0.borrow_mut().push((attempt, action));
    }

    fn rotate_slots(&mut self, queue: &str, turns: Option<&SlotSchedule>) {
        match turns {
            Some(turns) => drop(self.1.borrow_mut().insert(queue.to_owned(), turns.clone())),
            None => drop(self.1.borrow_mut().remove(queue)),
        }
    }
}

/// A daemon's life without a daemon. Seconds begin with the state.
pub(crate) struct Life {
    pub(crate) journal: MemoryJournal,
    pub(crate) setup: Setup,
    /// The facts about the next daemon.
    pub(crate) info: DaemonInfo,
    engine: Option<Engine<Notes, MemoryJournal>>,
    actions: RecordedActions,
    turning: Turning,
}

impl Life {
    /// Returns a life with one `miser` queue over the first `pool` processors. Opportunistic jobs run on all processors.
    pub(crate) fn new(pool: u64, machine: u32) -> Life {
        Life::of_policy("miser", pool, machine)
    }

    /// The same with another policy.
    pub(crate) fn of_policy(policy: &str, pool: u64, machine: u32) -> Life {
        let mut life = Life::unborn(policy, pool, machine, MemoryJournal::default());
        life.begin(0, &Absence::default());
        life
    }

    /// Returns a life as [`new`](Life::new) that goes on with the state in a journal.
    pub(crate) fn of_journal(journal: MemoryJournal, pool: u64, machine: u32, second: i64) -> Life {
        let mut life = Life::unborn("miser", pool, machine, journal);
        life.begin(second, &Absence::default());
        life
    }

    /// Returns a life before its first daemon.
    pub(crate) fn unborn(policy: &str, pool: u64, machine: u32, journal: MemoryJournal) -> Life {
        let amount = Resources::cpus(pool).with(Kind::Memory, MEMORY);
        let queue = Queue { pool: Calendar::constant(amount), ..queue("batch", policy) };
        let whole = Resources::cpus(u64::from(machine)).with(Kind::Memory, MEMORY);
        let setup = Setup {
            queues: vec![queue],
            cpus: (0..machine).take(usize::try_from(pool).unwrap()).collect(),
            opportunistic_cpus: (0..machine).collect(),
            grace: span(1),
            cleanup_time: span(CLEANUP),
            orphan_resume_delay: span(60),
            waiting_shims: miserly_engine::WaitingShimLimits::NONE,
            keep_history: None,
            topology: miserly_engine::Topology::default(),
            whole_cores: false,
            gpus: 0,
            user_limits: miserly_engine::UserLimits::default(),
            reservations: vec![],
            opportunistic: Some(OpportunisticConfig { lead: span(2), machine: whole }),
        };
        Life {
            journal,
            setup,
            info: DaemonInfo::default(),
            engine: None,
            actions: RecordedActions::default(),
            turning: Turning::default(),
        }
    }

    /// The configuration is read again, and is the same.
    pub(crate) fn reread(&mut self, second: i64) {
        self.set_up(second).unwrap();
    }

    /// Reconfigures the engine with the present setup.
    pub(crate) fn set_up(&mut self, second: i64) -> Result<(), Problem> {
        let setup = self.setup.clone();
        match self.engine.as_mut().unwrap().reconfigure(Life::now(second), setup) {
            Ok(()) => Ok(()),
            Err(RequestError::Refused(problem)) => Err(problem),
            Err(RequestError::Fatal(error)) => panic!("{error}"),
        }
    }

    pub(crate) fn now(second: i64) -> Now {
        Now { ticks: seconds(second), wall: wall(second) }
    }

    /// Returns an instant some microseconds after a second.
    pub(crate) fn now_after_stall(second: i64, micros: i64) -> Now {
        let now = Life::now(second);
        let ticks = now.ticks + Span::from_ticks(micros);
        Now { ticks, wall: now.wall_at(ticks) }
    }

    /// The wall time of an instant, as second of this life.
    pub(crate) fn second(at: Timestamp) -> i64 {
        at.as_second() - 1_000_000_000
    }

    /// Sets the cleanup time of the next daemon.
    pub(crate) fn cleanup_time(&mut self, seconds: i64) {
        self.setup.cleanup_time = span(seconds);
    }

    /// A daemon begins, and the one before it is gone as if it had been killed.
    pub(crate) fn begin(&mut self, second: i64, meanwhile: &Absence) {
        let mut engine = self.opened(second).unwrap();
        engine.begin(Life::now(second), meanwhile).unwrap();
        self.engine = Some(engine);
    }

    /// As [`begin`](Life::begin), with attempts of which the state has no usable record.
    pub(crate) fn begin_with(&mut self, second: i64, meanwhile: &Absence, adoptions: Vec<Adoption>) {
        let mut engine = self.opened(second).unwrap();
        engine.adopt(adoptions);
        engine.begin(Life::now(second), meanwhile).unwrap();
        self.engine = Some(engine);
    }

    /// Opens the engine of another daemon, which has not begun yet.
    pub(crate) fn opened(&mut self, second: i64) -> Result<Engine<Notes, MemoryJournal>, EngineError> {
        self.engine = None;
        self.actions.borrow_mut().clear();
        self.turning.borrow_mut().clear();
        let notes = Notes(Rc::clone(&self.actions), Rc::clone(&self.turning));
        Engine::open(self.setup.clone(), self.info.clone(), self.journal.clone(), notes, Life::now(second))
    }

    /// Time passes, and this happens.
    pub(crate) fn turn(&mut self, second: i64, inputs: Vec<Input>) {
        self.turn_at(Life::now(second), inputs);
    }

    pub(crate) fn turn_at(&mut self, now: Now, inputs: Vec<Input>) {
        while let Some(due) = self.next_wakeup().filter(|due| *due < now.ticks) {
            let wall = now.wall_at(due);
            self.engine.as_mut().unwrap().process_batch(Now { ticks: due, wall }, vec![]).unwrap();
        }
        self.late_turn(now, inputs);
    }

    /// The same with a daemon that was stopped meanwhile: it woke for nothing that was due.
    pub(crate) fn late_turn(&mut self, now: Now, inputs: Vec<Input>) {
        self.engine.as_mut().unwrap().process_batch(now, inputs).unwrap();
    }

    /// Returns the instant at which the engine needs a batch.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.engine.as_ref().unwrap().next_wakeup()
    }

    pub(crate) fn ask(&mut self, second: i64, question: DaemonRequest) -> Result<DaemonReply, Problem> {
        let (input, reply) = request(question);
        self.turn(second, vec![input]);
        reply.try_recv().unwrap()
    }

    /// Asks as another user than root.
    pub(crate) fn ask_as(
        &mut self,
        caller: Caller,
        second: i64,
        question: DaemonRequest,
    ) -> Result<DaemonReply, Problem> {
        let (input, reply) = request_of(caller, question);
        self.turn(second, vec![input]);
        reply.try_recv().unwrap()
    }

    /// Submits a job that must be accepted.
    pub(crate) fn submit(&mut self, second: i64, submission: Submission) -> i64 {
        match self.ask(second, DaemonRequest::Submit(submission)).unwrap() {
            DaemonReply::Submitted(submitted) => submitted.jobs[0].number,
            other => panic!("{other:?}"),
        }
    }

    /// A job that ends by itself.
    pub(crate) fn end(&mut self, second: i64, job: i64) {
        self.end_attempt(second, Attempt { job, nth: 1 });
    }

    /// An attempt that ends by itself.
    pub(crate) fn end_attempt(&mut self, second: i64, attempt: Attempt) {
        let outcome = AttemptOutcome::Ended { at: seconds(second), exit: Exit::Code(0), by: None };
        self.turn(second, vec![Input::AttemptEnded(attempt, outcome)]);
    }

    pub(crate) fn job(&mut self, second: i64, job: i64) -> JobView {
        match self.ask(second, DaemonRequest::Job(job)).unwrap() {
            DaemonReply::Job(job) => *job,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn status(&mut self, second: i64) -> Status {
        match self.ask(second, DaemonRequest::Status).unwrap() {
            DaemonReply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the number of promises that are at risk, or were not kept.
    pub(crate) fn unkept(&mut self, second: i64) -> u64 {
        let status = self.status(second);
        status.at_risk + status.late + status.lost
    }

    /// Returns the latest snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.engine.as_ref().unwrap().snapshots().latest()
    }

    /// Returns what another engine would publish that loads the stored state.
    pub(crate) fn loaded(&self, second: i64) -> Arc<Snapshot> {
        let notes = Notes(Rc::default(), Rc::default());
        let (setup, info) = (self.setup.clone(), self.info.clone());
        let engine = Engine::open(setup, info, self.journal.clone(), notes, Life::now(second)).unwrap();
        engine.snapshots().latest()
    }

    /// Returns the answer of a snapshot, with the finished jobs as they are stored now.
    pub(crate) fn read(
        &self,
        snapshot: &Snapshot,
        second: i64,
        request: &DaemonRequest,
    ) -> Result<DaemonReply, Problem> {
        snapshot.answer(Life::now(second), &Caller::new(0), request, &self.journal, &|_, _| Ok(()))
    }

    /// Returns the lines of the journal.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.journal.contents().lines
    }

    /// Returns the slot schedule of a queue.
    pub(crate) fn turns(&self, queue: &str) -> Option<SlotSchedule> {
        self.turning.borrow().get(queue).cloned()
    }

    /// Takes the actions for a job since the last call.
    pub(crate) fn actions(&self, job: i64) -> Vec<Action> {
        let mut actions = self.actions.borrow_mut();
        let (its, others) = std::mem::take(&mut *actions).into_iter().partition(|(of, _)| of.job == job);
        *actions = others;
        its.into_iter().map(|(_, action)| action).collect()
    }
}

/// A job of the pool, which stays in its window.
pub(crate) fn job(cpus: u64, time: u32) -> Submission {
    Submission {
        command: vec!["/bin/true".into()],
        directory: "/".into(),
        cpus,
        time: time.into(),
        no_opportunistic: true,
        ..Submission::default()
    }
}

/// The same, where it may run ahead of its window.
pub(crate) fn early(cpus: u64, time: u32) -> Submission {
    Submission { no_opportunistic: false, ..job(cpus, time) }
}

/// A life with a queue of this policy, named like it, and the queue `calm`, of two processors each.
pub(crate) fn beside_calm(policy: &'static PolicyDescriptor) -> Life {
    let mut life = Life::new(4, 4);
    let pool = || Calendar::constant(Resources::cpus(2).with(Kind::Memory, 500));
    let registry = Registry::built_in().with(policy);
    let spec = PolicySpec::parse(policy.name, &registry).unwrap();
    life.setup.queues = vec![
        Queue { pool: pool(), policy: spec, ..queue(policy.name, "fcfs") },
        Queue { pool: pool(), ..queue("calm", "miser") },
    ];
    life.begin(1, &Absence::default());
    life
}

/// The job in a queue.
pub(crate) fn of(queue: &str, job: Submission) -> Submission {
    Submission { queue: Some(queue.into()), ..job }
}

/// A queue with an empty pool.
pub(crate) fn queue(name: &str, policy: &str) -> Queue {
    Queue {
        name: name.into(),
        policy: policy.parse().unwrap(),
        pool: Calendar::constant(Resources::cpus(0)),
        classes: None,
        charge: None,
        gpus: None,
        terms: QueueTerms { default_memory: 1, promise_slack: Span::ZERO, ..QueueTerms::default() },
    }
}

/// Returns the cause for which the promise to a job is at risk, or was not kept.
pub(crate) fn cause(view: &JobView) -> Option<PromiseChangeReason> {
    let open = view.promise.as_ref().and_then(|promise| promise.at_risk).map(|risk| risk.why);
    open.or(view.judged.last().and_then(|judged| judged.why))
}

/// The wall time of a second of a life.
pub(crate) fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}
