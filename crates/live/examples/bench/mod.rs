//! An engine over a real store, with a launcher that starts no processes, for measurements.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use jiff::Timestamp;
use miserly_api::model::{Exit, Problem, Submission};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, Caller, DaemonInfo, DaemonReply, DaemonRequest, Engine, Input,
    Launcher, Now, Queue, QueueTerms, Requester, Setup, SlotSchedule,
};
use miserly_live::store::Store;

pub(crate) type Failure = Box<dyn Error>;

type Reply = Result<DaemonReply, Problem>;

/// The bytes of the environment of each job.
const ENVIRONMENT: usize = 1700;

/// A launcher that keeps the attempts that it would have launched.
struct Launched(Sender<Attempt>);

impl Launcher for Launched {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        if matches!(action, Action::Launch(_)) {
            let _ = self.0.send(attempt);
        }
    }

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

#[derive(Debug)]
struct Kept(Sender<Reply>);

impl Requester for Kept {
    fn reply(self: Box<Self>, reply: Reply) {
        let _ = self.0.send(reply);
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// The machine and the jobs.
#[derive(Clone)]
pub(crate) struct Load {
    /// The policy.
    pub(crate) policy: String,
    /// The processors, of which each running job has one.
    pub(crate) cpus: u32,
    /// Whether jobs differ in their time limits and processors. Else all have one processor for 10 s.
    pub(crate) mixed: bool,
    /// The time for which finished jobs are kept; `None` means forever.
    pub(crate) keep_history: Option<Span>,
}

/// An engine over a store, and its clock.
pub(crate) struct Bench {
    engine: Engine<Launched, Store>,
    launched: Receiver<Attempt>,
    load: Load,
    submitted: u32,
    pub(crate) now: i64,
}

impl Bench {
    /// Opens the engine of a state.
    pub(crate) fn open(folder: &Path, load: &Load, now: i64) -> Result<Bench, Failure> {
        let (sender, launched) = channel();
        let store = Store::open(folder)?;
        let info = DaemonInfo { highest: miserly_engine::highest(&store)?, ..DaemonInfo::default() };
        let mut engine = Engine::open(setup(load)?, info, store, Launched(sender), moment(now)?)?;
        engine.begin(moment(now)?, &Absence::default())?;
        Ok(Bench { engine, launched, load: load.clone(), submitted: 0, now })
    }

    pub(crate) fn ask(&mut self, request: DaemonRequest) -> Result<DaemonReply, Failure> {
        let (sender, reply) = channel();
        let (request, requester) = (Box::new(request), Box::new(Kept(sender)));
        let input = Input::Request { caller: Caller::new(0), request, requester };
        self.process(vec![input])?;
        Ok(reply.try_recv()?.map_err(|problem| problem.message)?)
    }

    /// Processes a batch, a millisecond after the one before.
    fn process(&mut self, inputs: Vec<Input>) -> Result<(), Failure> {
        self.now += 1000;
        self.engine.process_batch(moment(self.now)?, inputs)?;
        // As the daemon's loop does, which waits until then.
        let _ = self.engine.next_wakeup();
        Ok(())
    }

    /// Ends the attempt that was launched first. Returns whether there was one.
    pub(crate) fn end_one(&mut self) -> Result<bool, Failure> {
        let Ok(attempt) = self.launched.try_recv() else { return Ok(false) };
        let at = Time::from_ticks(self.now + 1000);
        let outcome = AttemptOutcome::Ended { at, exit: Exit::Code(0), by: None };
        self.process(vec![Input::AttemptEnded(attempt, outcome)])?;
        Ok(true)
    }

    pub(crate) fn submit(&mut self) -> Result<i64, Failure> {
        self.submitted += 1;
        match self.ask(DaemonRequest::Submit(self.submission()))? {
            DaemonReply::Submitted(submitted) => Ok(submitted.jobs[0].number),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// Returns the next job. The first ones occupy the machine.
    pub(crate) fn submission(&self) -> Submission {
        let (nth, mixed) = (self.submitted, self.load.mixed);
        let waits = nth > self.load.cpus;
        Submission {
            command: vec!["true".into()],
            directory: "/".into(),
            environment: [("SOME".to_owned(), "x".repeat(ENVIRONMENT))].into(),
            cpus: if mixed && waits { 1 + u64::from(nth * 7 % 16) } else { 1 },
            time: if mixed { 3600.0 * f64::from(1 + nth * 13 % 47) } else { 10.0 },
            ..Submission::default()
        }
    }
}

fn moment(ticks: i64) -> Result<Now, Failure> {
    let wall = Timestamp::from_microsecond(1_800_000_000_000_000 + ticks)?;
    Ok(Now { ticks: Time::from_ticks(ticks), wall })
}

fn setup(load: &Load) -> Result<Setup, Failure> {
    let memory = u64::from(load.cpus) << 20;
    let queue = Queue {
        name: "batch".into(),
        policy: load.policy.parse()?,
        pool: Calendar::constant(Resources::cpus(u64::from(load.cpus)).with(Kind::Memory, memory)),
        classes: None,
        charge: None,
        gpus: None,
        terms: QueueTerms { default_memory: 1024, ..QueueTerms::default() },
    };
    let second = Span::from_ticks(1_000_000);
    Ok(Setup {
        queues: vec![queue],
        cpus: (0..load.cpus).collect(),
        opportunistic_cpus: (0..load.cpus).collect(),
        grace: second,
        cleanup_time: second,
        orphan_resume_delay: second,
        opportunistic: None,
        waiting_shims: miserly_engine::WaitingShimLimits::NONE,
        keep_history: load.keep_history,
        topology: miserly_engine::Topology::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: miserly_engine::UserLimits::default(),
        reservations: vec![],
    })
}

/// Returns the size of the database and its log, in bytes.
pub(crate) fn size(folder: &Path) -> u64 {
    let store = folder.join("store");
    ["jobs.db", "jobs.db-wal"]
        .iter()
        .filter_map(|name| fs::metadata(store.join(name)).ok())
        .map(|file| file.len())
        .sum()
}

#[allow(clippy::disallowed_methods, reason = "elapsed time is the result")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
