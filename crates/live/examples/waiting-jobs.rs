//! Measures the engine over the real store with many waiting jobs, without processes.
//!
//! `cargo run --release -p miserly-live --example waiting-jobs -- miser 10000 3000`
//!
//! The arguments are the policy, the number of waiting jobs, and the number of jobs that run to
//! their early ends.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use miserly_api::model::{Exit, Filter, Problem, Submission};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, Caller, DaemonInfo, DaemonReply, DaemonRequest, Engine, Input,
    Launcher, Now, Queue, Requester, Setup, SlotSchedule,
};
use miserly_live::store::Store;

type Reply = Result<DaemonReply, Problem>;
type Failure = Box<dyn Error>;

/// The number of processors.
const CPUS: u32 = 2;
/// The bytes of the environment of each job.
const ENVIRONMENT: usize = 1700;
/// The number of repetitions of each request.
const REPEATED: usize = 9;

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

/// An engine over a store, and its clock.
struct Bench {
    engine: Engine<Launched, Store>,
    launched: Receiver<Attempt>,
    now: i64,
}

impl Bench {
    fn open(folder: &Path, policy: &str, now: i64) -> Result<Bench, Failure> {
        let (sender, launched) = channel();
        let store = Store::open(folder)?;
        let info = DaemonInfo { highest: miserly_engine::highest(&store)?, ..DaemonInfo::default() };
        let mut engine = Engine::open(setup(policy)?, info, store, Launched(sender), moment(now)?)?;
        engine.begin(moment(now)?, &Absence::default())?;
        Ok(Bench { engine, launched, now })
    }

    fn ask(&mut self, request: DaemonRequest) -> Result<DaemonReply, Failure> {
        let (sender, reply) = channel();
        let (request, requester) = (Box::new(request), Box::new(Kept(sender)));
        self.now += 1000;
        let input = Input::Request { caller: Caller::new(0), request, requester };
        self.engine.process_batch(moment(self.now)?, vec![input])?;
        Ok(reply.try_recv()?.map_err(|problem| problem.message)?)
    }

    /// Ends the attempt that was launched first. Returns whether there was one.
    fn end_one(&mut self) -> Result<bool, Failure> {
        let Ok(attempt) = self.launched.try_recv() else { return Ok(false) };
        self.now += 1000;
        let outcome = AttemptOutcome::Ended { at: Time::from_ticks(self.now), exit: Exit::Code(0), by: None };
        self.engine.process_batch(moment(self.now)?, vec![Input::AttemptEnded(attempt, outcome)])?;
        Ok(true)
    }

    fn submit(&mut self) -> Result<i64, Failure> {
        match self.ask(DaemonRequest::Submit(submission()))? {
            DaemonReply::Submitted(submitted) => Ok(submitted.jobs[0].number),
            other => Err(format!("{other:?}").into()),
        }
    }
}

fn moment(ticks: i64) -> Result<Now, Failure> {
    let wall = Timestamp::from_microsecond(1_800_000_000_000_000 + ticks)?;
    Ok(Now { ticks: Time::from_ticks(ticks), wall })
}

fn setup(policy: &str) -> Result<Setup, Failure> {
    let queue = Queue {
        name: "batch".into(),
        policy: policy.parse()?,
        pool: Calendar::constant(Resources::cpus(u64::from(CPUS)).with(Kind::Memory, 1 << 20)),
        default_time: None,
        most_time: None,
        default_memory: 1024,
        users: None,
    };
    let second = Span::from_ticks(1_000_000);
    Ok(Setup {
        queues: vec![queue],
        cpus: (0..CPUS).collect(),
        opportunistic_cpus: (0..CPUS).collect(),
        grace: second,
        cleanup_time: second,
        orphan_resume_delay: second,
        opportunistic: None,
        keep_history: None,
        user_limits: miserly_engine::UserLimits::default(),
    })
}

fn submission() -> Submission {
    Submission {
        command: vec!["true".into()],
        directory: "/".into(),
        environment: [("SOME".to_owned(), "x".repeat(ENVIRONMENT))].into(),
        cpus: 1,
        time: 10.0,
        ..Submission::default()
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let policy = arguments.next().unwrap_or_else(|| "miser".to_owned());
    let waiting: usize = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let short: usize = arguments.next().map_or(Ok(3000), |text| text.parse())?;
    let folder = tempfile::tempdir_in(".")?;
    crowd(&folder.path().join("crowd"), &policy, waiting)?;
    early_ends(&folder.path().join("short"), &policy, short)
}

/// Measures requests while many jobs wait.
fn crowd(folder: &Path, policy: &str, waiting: usize) -> Result<(), Failure> {
    let mut bench = Bench::open(folder, policy, 0)?;
    let mut times = vec![];
    let before = Written::now();
    for _ in 0..waiting {
        let began = now();
        bench.submit()?;
        times.push(began.elapsed());
    }
    print("submit", &mut times, before, folder);
    println!("memory: {} MB", resident() >> 10);
    let head = i64::from(CPUS) + 1;
    let heads = (head..).take(REPEATED);
    repeat("cancel at the head", folder, heads, |job| {
        bench.ask(DaemonRequest::Cancel { job, array: false }).map(drop)
    })?;
    repeat("early end", folder, 0..4, |_| bench.end_one().map(drop))?;
    let last = i64::try_from(waiting)?;
    repeat("cancel of the last", folder, (last - 8..=last).rev(), |job| {
        bench.ask(DaemonRequest::Cancel { job, array: false }).map(drop)
    })?;
    repeat("show", folder, 0..9, |_| bench.ask(DaemonRequest::Job(last / 2)).map(drop))?;
    repeat("list", folder, 0..3, |_| bench.ask(DaemonRequest::Jobs(Filter::default())).map(drop))?;
    repeat("status", folder, 0..9, |_| bench.ask(DaemonRequest::Status).map(drop))?;
    let now = bench.now;
    drop(bench);
    repeat("start", folder, 1..3, |nth| Bench::open(folder, policy, now + nth * 1000).map(drop))
}

/// Measures the ends of jobs that use little of their time.
fn early_ends(folder: &Path, policy: &str, jobs: usize) -> Result<(), Failure> {
    let mut bench = Bench::open(folder, policy, 0)?;
    for _ in 0..jobs {
        bench.submit()?;
    }
    let (before, began, mut ended) = (Written::now(), now(), 0_u32);
    while bench.end_one()? {
        ended += 1;
    }
    let rate = f64::from(ended) / began.elapsed().as_secs_f64();
    println!(
        "{ended} early ends: {rate:.0} jobs/s, {} kB written each, state {} MB, memory {} MB",
        before.kilobytes() / u64::from(ended.max(1)),
        size(folder) >> 20,
        resident() >> 10
    );
    Ok(())
}

fn repeat<T>(
    what: &str,
    folder: &Path,
    of: impl Iterator<Item = T>,
    mut act: impl FnMut(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut times, before) = (vec![], Written::now());
    for one in of {
        let began = now();
        act(one)?;
        times.push(began.elapsed());
    }
    print(what, &mut times, before, folder);
    Ok(())
}

/// Prints the times, and the bytes that were written each time.
fn print(what: &str, times: &mut [Duration], before: Written, folder: &Path) {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    println!(
        "{what}: p50 {:.2?}, p99 {:.2?}; {} kB written each; state {} MB",
        at(50),
        at(99),
        before.kilobytes() / times.len() as u64,
        size(folder) >> 20
    );
}

/// The bytes that this process had written at an instant.
#[derive(Clone, Copy)]
struct Written(u64);

impl Written {
    fn now() -> Written {
        let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let bytes = text.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok());
        Written(bytes.unwrap_or(0))
    }

    fn kilobytes(self) -> u64 {
        (Written::now().0 - self.0) / 1000
    }
}

/// Returns the size of the database and its log, in bytes.
fn size(folder: &Path) -> u64 {
    let store = folder.join("store");
    ["jobs.db", "jobs.db-wal"]
        .iter()
        .filter_map(|name| fs::metadata(store.join(name)).ok())
        .map(|file| file.len())
        .sum()
}

/// Returns the memory of this process, in kilobytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

#[allow(clippy::disallowed_methods, reason = "elapsed time is the result")]
fn now() -> Instant {
    Instant::now()
}
