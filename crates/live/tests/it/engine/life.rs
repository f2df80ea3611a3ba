//! An engine, its state in a folder, and what it has its hands do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use miserly_core::{Calendar, Filler, Kind, Resources, Span, Time};
use miserly_live::clock::Now;
use miserly_live::engine::{
    About, Action, Attempt, Engine, EngineError, Hands, Input, Meanwhile, Outcome, Queue, Setup, Turns,
};
use miserly_live::model::{Exit, JobView, Problem, Status, Submission};
use miserly_live::service::{Caller, Question, Reply};
use miserly_live::store::Store;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The memory of the pool, kilobytes.
const MEMORY: u64 = 1000;
/// So long after the end of a window its resources are kept.
pub(crate) const HAND_OVER: i64 = 1;

pub(crate) fn seconds(seconds: i64) -> Time {
    Time::from_ticks(seconds * 1_000_000)
}

fn span(seconds: i64) -> Span {
    Span::from_ticks(seconds * 1_000_000)
}

/// What hands were told, in order.
type Told = Rc<RefCell<Vec<(Attempt, Action)>>>;

/// Who takes turns, by queue, as hands were told last.
type Turning = Rc<RefCell<BTreeMap<String, Turns>>>;

pub(crate) struct Notes(Told, Turning);

impl Hands for Notes {
    fn act(&mut self, attempt: Attempt, action: Action) {
        self.0.borrow_mut().push((attempt, action));
    }

    fn take_turns(&mut self, queue: &str, turns: Option<&Turns>) {
        match turns {
            Some(turns) => drop(self.1.borrow_mut().insert(queue.to_owned(), turns.clone())),
            None => drop(self.1.borrow_mut().remove(queue)),
        }
    }
}

/// A daemon's life without a daemon. Seconds begin with the state.
pub(crate) struct Life {
    folder: TempDir,
    pub(crate) setup: Setup,
    engine: Option<Engine<Notes>>,
    told: Told,
    turning: Turning,
}

impl Life {
    /// With one queue of `miser` over the first `pool` of so many processors; jobs run ahead of their windows on all of them.
    pub(crate) fn new(pool: u64, machine: u32) -> Life {
        Life::of_policy("miser", pool, machine)
    }

    /// The same with another policy.
    pub(crate) fn of_policy(policy: &str, pool: u64, machine: u32) -> Life {
        let amount = Resources::cpus(pool).with(Kind::Memory, MEMORY);
        let queue = Queue { pool: Calendar::constant(amount), ..queue("batch", policy) };
        let whole = Resources::cpus(u64::from(machine)).with(Kind::Memory, MEMORY);
        let setup = Setup {
            queues: vec![queue],
            cpus: (0..machine).take(usize::try_from(pool).unwrap()).collect(),
            early_cpus: (0..machine).collect(),
            grace: span(1),
            handover: span(HAND_OVER),
            alone: span(60),
            keep_history: None,
            early: Some(Filler { lead: span(2), machine: whole }),
        };
        let mut life = Life {
            folder: TempDir::new().unwrap(),
            setup,
            engine: None,
            told: Told::default(),
            turning: Turning::default(),
        };
        life.begin(0, Meanwhile::default());
        life
    }

    /// The configuration is read again, and is the same.
    pub(crate) fn reread(&mut self, second: i64) {
        self.set_up(second).unwrap();
    }

    /// The configuration is read again, and is what the set-up says now; or why it stays as it was.
    pub(crate) fn set_up(&mut self, second: i64) -> Result<(), Problem> {
        let setup = self.setup.clone();
        self.engine.as_mut().unwrap().set_up(Life::now(second), setup).unwrap()
    }

    fn now(second: i64) -> Now {
        Now { ticks: seconds(second), wall: wall(second) }
    }

    /// The wall time of an instant, as second of this life.
    pub(crate) fn second(at: Timestamp) -> i64 {
        at.as_second() - 1_000_000_000
    }

    /// From the next daemon on resources are kept so long after the end of a window.
    pub(crate) fn hand_over(&mut self, seconds: i64) {
        self.setup.handover = span(seconds);
    }

    /// A daemon begins, and the one before it is gone as if it had been killed.
    pub(crate) fn begin(&mut self, second: i64, meanwhile: Meanwhile) {
        let mut engine = self.opened(second).unwrap();
        engine.begin(Life::now(second), meanwhile).unwrap();
        self.engine = Some(engine);
    }

    /// The engine of another daemon, which has not begun yet, if what is on disk lets it.
    pub(crate) fn opened(&mut self, second: i64) -> Result<Engine<Notes>, EngineError> {
        self.engine = None;
        self.told.borrow_mut().clear();
        self.turning.borrow_mut().clear();
        let (store, notes) = (
            Store::open(self.folder.path()).unwrap(),
            Notes(Rc::clone(&self.told), Rc::clone(&self.turning)),
        );
        Engine::open(self.setup.clone(), About::default(), store, notes, Life::now(second))
    }

    /// Time passes, and this happens.
    pub(crate) fn turn(&mut self, second: i64, inputs: Vec<Input>) {
        self.turn_at(Life::now(second), inputs);
    }

    pub(crate) fn turn_at(&mut self, now: Now, inputs: Vec<Input>) {
        self.engine.as_mut().unwrap().turn(now, inputs).unwrap();
    }

    pub(crate) fn ask(&mut self, second: i64, question: Question) -> Result<Reply, Problem> {
        let (answer, mut answered) = oneshot::channel();
        let input = Input::Asked { caller: Caller { uid: 0 }, question: Box::new(question), answer };
        self.turn(second, vec![input]);
        answered.try_recv().unwrap()
    }

    /// Submits a job that must be accepted.
    pub(crate) fn submit(&mut self, second: i64, submission: Submission) -> i64 {
        match self.ask(second, Question::Submit(submission)).unwrap() {
            Reply::Submitted(submitted) => submitted.jobs[0].number,
            other => panic!("{other:?}"),
        }
    }

    /// A job that ends by itself.
    pub(crate) fn end(&mut self, second: i64, job: i64) {
        let outcome = Outcome::Ended { at: seconds(second), exit: Exit::Code(0), by: None };
        self.turn(second, vec![Input::Over(Attempt { job, nth: 1 }, outcome)]);
    }

    pub(crate) fn job(&mut self, second: i64, job: i64) -> JobView {
        match self.ask(second, Question::Job(job)).unwrap() {
            Reply::Job(job) => *job,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn status(&mut self, second: i64) -> Status {
        match self.ask(second, Question::Status).unwrap() {
            Reply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// Who takes turns in a queue, as was told last.
    pub(crate) fn turns(&self, queue: &str) -> Option<Turns> {
        self.turning.borrow().get(queue).cloned()
    }

    /// What was to be done for a job since this was asked last.
    pub(crate) fn told(&self, job: i64) -> Vec<Action> {
        let mut told = self.told.borrow_mut();
        let (its, others) = std::mem::take(&mut *told).into_iter().partition(|(of, _)| of.job == job);
        *told = others;
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

/// A queue with an empty pool.
pub(crate) fn queue(name: &str, policy: &str) -> Queue {
    Queue {
        name: name.into(),
        policy: policy.parse().unwrap(),
        pool: Calendar::constant(Resources::cpus(0)),
        default_time: None,
        most_time: None,
        default_memory: 1,
        users: vec![],
    }
}

/// The wall time of a second of a life.
pub(crate) fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}
