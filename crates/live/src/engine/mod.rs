//! The daemon's core: feeds the library's [`System`] with what happens on the machine, writes down what comes of it, and only
//! then has it done and tells it.
//!
//! No clock, no process and no socket is in here: instants come with the calls, actions go to [`Hands`], and what is answered
//! goes back to whoever asked. So all of it can be played under any clock, as the tests do.

mod amounts;

mod saved;

mod journal;

mod record;

mod setup;

mod hands;

mod cpus;

mod rounds;

mod effects;

mod ends;

mod asks;

mod submit;

mod change;

mod capacity;

mod reload;

mod places;

mod views;

mod pools;

mod paths;

mod prune;

mod start;

mod ahead;

mod turns;

mod again;

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{JobId, Span, System, Time, Violation};
use tokio::sync::oneshot;

pub use amounts::{Amounts, amounts, resources};
pub use hands::{Action, Ahead, Attempt, Critical, Hands, Launch, Meanwhile, Outcome, Turns};
pub use journal::{
    AmendedLine, EarlyLine, EffectLine, EndedLine, HowLine, JournalLine, QueueLine, ReasonLine, RefusalLine,
    RoundLine,
};
pub use record::{Ending, Record, Run, Stands, ToldAhead, ToldAt};
pub use saved::{SavedBroken, SavedEntry, SavedLedgerState, SavedRequest};
pub use setup::{Kept, Queue, Setup};
pub use start::{About, attempts, highest};

use self::cpus::Cpus;
use self::prune::Pruning;
use crate::clock::Now;
use crate::model::{Problem, ProblemCode};
use crate::service::{Caller, Question, Reply};
use crate::store::{Batch, Row, Store, StoreError};

/// Where an answer goes.
pub type Answer = oneshot::Sender<Result<Reply, Problem>>;

/// What happens to the engine.
#[derive(Debug)]
pub enum Input {
    /// Somebody asks something.
    Asked {
        /// Who.
        caller: Caller,
        /// What.
        question: Box<Question>,
        /// Where the answer goes.
        answer: Answer,
    },
    /// An attempt is over.
    Over(Attempt, Outcome),
    /// These processors are online now, by number.
    Online(Vec<u32>),
    /// The machine slept until now.
    Slept,
    /// Nothing: a moment that was asked for has come.
    Moment,
}

/// Why the engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The state cannot be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A policy made a mistake.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// What is written down of a job makes no sense.
    #[error("job {job}: {problem}; start with --recover to go on without what is damaged")]
    Record {
        /// The job.
        job: i64,
        /// What is wrong.
        problem: String,
    },
    /// A job cannot stay where it is, or go on, as the configuration is now.
    #[error(
        "job {job} {problem}; start with the configuration as it was for its queue until the job has ended, or has been cancelled"
    )]
    Place {
        /// The job.
        job: i64,
        /// What is wrong.
        problem: String,
    },
    /// The jobs that run hold more than their pool now has.
    #[error(
        "queue {queue}: the jobs that run hold more than its pool has now; let them end first, or give it more"
    )]
    Pool {
        /// The queue.
        queue: String,
    },
}

/// The daemon's core.
pub struct Engine<H> {
    setup: Setup,
    store: Store,
    hands: H,
    system: System,
    /// Jobs that are not over.
    records: BTreeMap<i64, Record>,
    /// The number of the job of each handle in use.
    numbers: Vec<Option<i64>>,
    handles: BTreeMap<i64, JobId>,
    /// Jobs that run in their windows.
    running: BTreeSet<i64>,
    /// Jobs that are kept back until an instant or until others end, and jobs in the ledger whose begin is another's end.
    tied: BTreeSet<i64>,
    cpus: Cpus,
    next_number: i64,
    /// The last instant that was played.
    last: Time,
    draining: bool,
    counts: Counts,
    /// Who waits for the end of a job.
    waiting: Vec<(i64, Caller, Answer)>,
    /// What this turn is about to write down and do.
    turn: Turn,
    /// What is a fact and could not be written down.
    unwritten: Vec<(Attempt, Outcome)>,
    /// When to try again to write.
    retry: Option<Time>,
    pruning: Pruning,
    /// What the hands were told of who takes turns, by queue.
    turns_told: BTreeMap<String, Turns>,
    began: i64,
    owner: u32,
    about: About,
    unenforced: Vec<crate::model::Unenforced>,
}

/// What was promised and not kept, since the state was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct Counts {
    promises: u64,
    broken: u64,
    late: u64,
}

/// What one turn is about to write down, and to do once it is.
#[derive(Default)]
struct Turn {
    lines: Vec<String>,
    touched: BTreeSet<i64>,
    /// Records that are over, which leave the memory when they are on disk.
    over: BTreeMap<i64, Record>,
    actions: Vec<(Attempt, Action)>,
    /// Jobs whose windows began by themselves, until the system has started them.
    begun: BTreeMap<i64, Critical>,
    answers: Vec<(Answer, Result<Reply, Problem>)>,
    /// Something is to be written down that is in no row.
    meta_changed: bool,
}

/// When the disk does not take what is to be written, try again so much later.
const RETRY: Span = Span::from_ticks(1_000_000);

impl<H: Hands> Engine<H> {
    /// Plays all that happened up to now, writes it down, has it done, and answers.
    ///
    /// # Errors
    /// If a policy makes a mistake, or the state cannot be read. That it cannot be written is no error: nothing has happened
    /// then, and what is a fact all the same is played again later.
    pub fn turn(&mut self, now: Now, inputs: Vec<Input>) -> Result<(), EngineError> {
        self.retry = None;
        let mut overs = std::mem::take(&mut self.unwritten);
        let mut rest = vec![];
        for input in inputs {
            match input {
                Input::Over(attempt, outcome) => overs.push((attempt, outcome)),
                other => rest.push(other),
            }
        }
        self.play_all(now, overs.clone(), rest)?;
        self.tell_ahead();
        match self.write_down(now) {
            Ok(()) => self.carry_out(now),
            Err(error @ StoreError::Full) => return self.take_back(now, &error, overs),
            Err(error) => return Err(error.into()),
        }
        self.prune(now)
    }

    /// When the engine wants a turn, if nothing happens before.
    pub fn next_moment(&self) -> Option<Time> {
        self.retry.or_else(|| self.next_due().into_iter().chain(self.next_pruning()).min())
    }

    /// When something is due next, if nothing happens before.
    fn next_due(&self) -> Option<Time> {
        let ends = self.running.iter().filter_map(|number| self.expected_end(*number));
        let back = self.tied.iter().filter_map(|number| self.records.get(number)?.back_until());
        ends.chain(back).chain(self.system.wake()).min()
    }

    /// Plays what happened, at the instants at which it did, and what was due between.
    fn play_all(
        &mut self,
        now: Now,
        overs: Vec<(Attempt, Outcome)>,
        rest: Vec<Input>,
    ) -> Result<(), EngineError> {
        if rest.iter().any(|input| matches!(input, Input::Slept)) {
            self.away(now, Meanwhile { over: overs, critical: vec![] })?;
        } else {
            let at = |outcome: &Outcome| outcome.at().unwrap_or(now.ticks).min(now.ticks);
            let mut overs: Vec<_> = overs.into_iter().map(|(attempt, o)| (at(&o), attempt, o)).collect();
            overs.sort_by_key(|(at, attempt, _)| (*at, *attempt));
            self.play_due(now, overs)?;
        }
        for input in rest {
            match input {
                Input::Asked { caller, question, answer } => self.answer(now, caller, *question, answer)?,
                Input::Online(cpus) => self.online(&cpus),
                Input::Over(..) | Input::Slept | Input::Moment => {}
            }
        }
        self.fit_pools(now)?;
        self.retie(now)
    }

    /// Has on disk what this turn came to.
    fn write_down(&mut self, now: Now) -> Result<(), StoreError> {
        let known = |record: &Record| !record.is_in() || record.entry.is_some();
        debug_assert!(self.records.values().all(known), "a job in a ledger is written down as it is there");
        let Turn { lines, touched, over, meta_changed, .. } = &self.turn;
        if lines.is_empty() && touched.is_empty() && over.is_empty() && !meta_changed {
            return Ok(());
        }
        let live = self.turn.touched.iter().filter_map(|number| self.records.get(number));
        let rows = live.chain(self.turn.over.values()).map(Self::row).collect();
        let meta: Vec<(String, String)> = vec![
            ("next_number".into(), self.next_number.to_string()),
            ("last".into(), self.last.ticks().to_string()),
            ("draining".into(), self.draining.to_string()),
            ("counts".into(), serde_json::to_string(&self.counts).unwrap_or_default()),
            ("queues".into(), serde_json::to_string(&self.kept()).unwrap_or_default()),
        ];
        let meta = meta.into_iter().chain(self.clock_mark(now)).collect();
        self.store.commit(&Batch { lines: std::mem::take(&mut self.turn.lines), rows, meta })
    }

    /// What the queues have beside their jobs.
    fn kept(&self) -> BTreeMap<String, Kept> {
        let queues = self.setup.queues.iter().zip(self.system.queues());
        let kept = |setup: &Queue, ledger| Kept::of(setup, self.cpus.own(&setup.name), ledger);
        queues.map(|(setup, queue)| (setup.name.clone(), kept(setup, queue.ledger()))).collect()
    }

    fn row(record: &Record) -> Row {
        Row {
            number: record.number,
            ended: record.is_over(),
            uid: record.uid,
            queue: record.queue.clone(),
            array: record.array.map(|(first, _)| first),
            body: serde_json::to_string(record).unwrap_or_default(),
        }
    }

    /// How far the clock is, so that it goes on from there when the machine is started again.
    fn clock_mark(&self, now: Now) -> Option<(String, String)> {
        let mark = self.about.mark.as_ref()?.at(self.last, now);
        Some(("clock".into(), serde_json::to_string(&mark).ok()?))
    }

    /// The daemon goes away in order.
    ///
    /// # Errors
    /// As [`turn`](Engine::turn).
    pub fn go(&mut self, now: Now) -> Result<(), EngineError> {
        self.last = self.last.max(now.ticks);
        self.turn.lines.push(rounds::json(&JournalLine::Went { at: self.last.ticks() }));
        self.write_down(now)?;
        self.carry_out(now);
        Ok(())
    }

    /// What was written down is done, and told.
    fn carry_out(&mut self, now: Now) {
        let turn = std::mem::take(&mut self.turn);
        for (attempt, action) in turn.actions {
            self.hands.act(attempt, action);
        }
        if !turn.touched.is_empty() || !turn.over.is_empty() {
            self.hand_turns();
        }
        for (answer, reply) in turn.answers {
            // Whoever asked may have gone.
            let _ = answer.send(reply);
        }
        let waiting = std::mem::take(&mut self.waiting);
        for (number, caller, answer) in waiting {
            match turn.over.get(&number) {
                Some(record) => {
                    let _ = answer.send(Ok(Reply::Job(Box::new(self.view(now, record)))));
                }
                None => self.waiting.push((number, caller, answer)),
            }
        }
        self.waiting.retain(|(.., answer)| !answer.is_closed());
    }

    /// What could not be written down has not happened: everybody is told so, and all is again as it is on disk. What is a
    /// fact all the same, the ends of processes, is found again there.
    fn take_back(
        &mut self,
        now: Now,
        error: &StoreError,
        facts: Vec<(Attempt, Outcome)>,
    ) -> Result<(), EngineError> {
        tracing::error!("nothing can be written down, so nothing is done: {error}");
        let turn = std::mem::take(&mut self.turn);
        for (answer, reply) in turn.answers {
            // Whatever was told of this turn is not on disk; what was refused is refused.
            let told = format!("it cannot be written down, so it is not done: {error}");
            let _ = answer.send(reply.and_then(|_| Err(problem(ProblemCode::Storage, told))));
        }
        self.reload()?;
        self.unwritten = facts;
        self.retry = Some(now.ticks + RETRY);
        Ok(())
    }
}

fn problem(code: ProblemCode, message: impl Into<String>) -> Problem {
    Problem::new(code, message)
}
