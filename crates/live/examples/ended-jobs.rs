//! Measures the start over a state with many ended jobs: the check of the whole state, the start of
//! a daemon's engine, and the check in the background.
//!
//! `cargo run --release --workspace --example ended-jobs -- 1000000`
//!
//! With a folder as second argument, the state is written there and kept.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use miserly_api::model::{Problem, Submission};
use miserly_core::{Calendar, Resources, Span, Time};
use miserly_engine::{
    Absence, Action, Attempt, DaemonInfo, Engine, JobRow, JournalBatch, Launcher, Now, Queue, QueueTerms,
    Setup, SlotSchedule,
};
use miserly_live::store::{StateCheck, Store, verify};

type Failure = Box<dyn Error>;

/// The number of jobs of a commit.
const TOGETHER: i64 = 5000;

struct NoProcesses;

impl Launcher for NoProcesses {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, _: Attempt, _: Action) {}

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let jobs: i64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let kept = arguments.next().map(PathBuf::from);
    let temporary = tempfile::tempdir_in(".")?;
    let folder = kept.as_deref().unwrap_or(temporary.path());
    if !folder.join("store").exists() {
        write(folder, jobs)?;
    }
    println!("{jobs} jobs, {} MB", fs::metadata(folder.join("store/jobs.db"))?.len() >> 20);
    let began = now();
    let damages = verify(folder)?.len();
    println!("the check of the whole state: {:.1?}, {damages} damages", began.elapsed());
    let began = now();
    let engine = start(folder)?;
    println!("the start: {:.2?}", began.elapsed());
    let began = now();
    let check = StateCheck::start(folder.to_owned())?;
    while !check.is_over() {
        thread::sleep(Duration::from_millis(20));
    }
    println!("the check in the background: {:.1?}, {} damages", began.elapsed(), check.damages().len());
    drop(engine);
    Ok(())
}

/// Writes a state with ended jobs, and two lines of the journal for each.
fn write(folder: &Path, jobs: i64) -> Result<(), Failure> {
    let mut store = Store::open(folder)?;
    for first in (1..=jobs).step_by(usize::try_from(TOGETHER)?) {
        let rows = (first..=jobs.min(first + TOGETHER - 1)).map(row).collect();
        let lines = vec![format!("{{\"line\":\"none\",\"text\":\"{}\"}}", "x".repeat(270)); 10_000];
        let values = vec![("next_number".to_owned(), (jobs + 1).to_string())];
        store.commit(&JournalBatch { rows, lines, values, ..JournalBatch::default() })?;
    }
    Ok(())
}

/// Returns a job of 800 bytes that ended, as the engine stores it without environment and script.
fn row(number: i64) -> JobRow {
    let submission = serde_json::json!({
        "command": ["./simulate", "--seed", number.to_string(), "x".repeat(300)],
        "directory": "/home/user/runs", "environment": {}, "umask": 18, "cpus": 1, "time": 60.0
    });
    let ended = "2026-01-01T00:00:00Z";
    let phase = serde_json::json!({ "state": "done", "start": ended, "end": ended, "exit": { "code": 0 } });
    let body = serde_json::json!({
        "number": number, "uid": 1000, "name": "simulate", "queue": "batch", "submitted": 1_767_225_600_000_000_i64,
        "time": 60_000_000, "memory": 1024, "state": { "is": "finished", "state": phase },
        "attempts": 1, "started": number * 1000, "submission": submission
    });
    let body = body.to_string();
    JobRow { number, ended: true, uid: 1000, queue: "batch".into(), body, ..JobRow::default() }
}

/// Starts the engine of a daemon over the state.
fn start(folder: &Path) -> Result<Engine<NoProcesses, Store>, Failure> {
    let store = Store::open(folder)?;
    let info = DaemonInfo { highest: miserly_engine::highest(&store)?, ..DaemonInfo::default() };
    let wall = Timestamp::from_microsecond(1_800_000_000_000_000)?;
    let now = Now { ticks: Time::from_ticks(1), wall };
    let mut engine = Engine::open(setup()?, info, store, NoProcesses, now)?;
    engine.begin(now, &Absence::default())?;
    Ok(engine)
}

fn setup() -> Result<Setup, Failure> {
    let second = Span::from_ticks(1_000_000);
    Ok(Setup {
        queues: vec![Queue {
            name: "batch".into(),
            policy: "miser".parse()?,
            pool: Calendar::constant(Resources::cpus(2)),
            classes: None,
            charge: None,
            gpus: None,
            terms: QueueTerms::default(),
        }],
        cpus: vec![0, 1],
        opportunistic_cpus: vec![0, 1],
        grace: second,
        cleanup_time: second,
        orphan_resume_delay: second,
        opportunistic: None,
        waiting_shims: miserly_engine::WaitingShimLimits::NONE,
        keep_history: None,
        topology: miserly_engine::Topology::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: miserly_engine::UserLimits::default(),
        reservations: vec![],
    })
}

#[allow(clippy::disallowed_methods, reason = "elapsed time is the result")]
fn now() -> Instant {
    Instant::now()
}
