//! Helpers for journals in memory, a launcher that does nothing, and a requester that keeps its reply.

use std::sync::mpsc::{Receiver, Sender, channel};

use jiff::Timestamp;
use miserly_api::model::{Problem, Submission};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_engine::{
    Action, Attempt, Caller, DaemonReply, DaemonRequest, Input, JobRow, JournalContents, Launcher,
    MemoryJournal, Now, Queue, QueueTerms, Requester, Setup, SlotSchedule, WaitingShimLimits,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// One minute, in ticks.
pub(crate) const MINUTE: i64 = 60_000_000;

/// Makes the stored row of a job that of a finished one that cannot be read.
pub(crate) fn damage(journal: &MemoryJournal, job: i64) {
    journal.change(|contents| {
        if let Some(row) = contents.rows.get_mut(&job) {
            row.ended = true;
            (row.body, row.problem) = (String::new(), Some("its checksum is wrong".into()));
        }
    });
}

/// Returns the contents of a journal as JSON.
pub(crate) fn to_json(journal: &MemoryJournal) -> Value {
    let contents = journal.contents();
    let row = |row: &JobRow| {
        let JobRow { number, ended, uid, queue, array, body, problem: _ } = row;
        json!({ "number": number, "ended": ended, "uid": uid, "queue": queue, "array": array, "body": body })
    };
    let rows: Vec<Value> = contents.rows.values().map(row).collect();
    let segments: Vec<_> =
        contents.segments.iter().map(|(lines, wall)| (lines, wall.as_microsecond())).collect();
    json!({ "rows": rows, "lines": contents.lines, "segments": segments, "values": contents.values })
}

/// Returns a journal with the contents that [`to_json`] returned.
pub(crate) fn from_json(json: &Value) -> MemoryJournal {
    fn read<T: DeserializeOwned>(json: &Value) -> T {
        serde_json::from_value(json.clone()).unwrap()
    }
    let row = |row: &Value| JobRow {
        number: read(&row["number"]),
        ended: read(&row["ended"]),
        uid: read(&row["uid"]),
        queue: read(&row["queue"]),
        array: read(&row["array"]),
        body: read(&row["body"]),
        problem: None,
    };
    let rows = json["rows"].as_array().unwrap().iter().map(row).map(|row| (row.number, row)).collect();
    let segments: Vec<(usize, i64)> = read(&json["segments"]);
    let wall = |micros| Timestamp::from_microsecond(micros).unwrap();
    MemoryJournal::new(JournalContents {
        rows,
        lines: read(&json["lines"]),
        segments: segments.into_iter().map(|(lines, micros)| (lines, wall(micros))).collect(),
        values: read(&json["values"]),
        ..JournalContents::default()
    })
}

/// A launcher that does nothing.
pub(crate) struct Idle;

impl Launcher for Idle {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, _: Attempt, _: Action) {}

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

/// A requester that keeps its reply.
#[derive(Debug)]
struct Kept(Sender<Result<DaemonReply, Problem>>);

impl Requester for Kept {
    fn reply(self: Box<Self>, reply: Result<DaemonReply, Problem>) {
        self.0.send(reply).unwrap();
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// Returns a request of root, and the receiver of its reply.
pub(crate) fn request(question: DaemonRequest) -> (Input, Receiver<Result<DaemonReply, Problem>>) {
    request_of(Caller::new(0), question)
}

/// Returns a request of a user, and the receiver of its reply.
pub(crate) fn request_of(
    caller: Caller,
    question: DaemonRequest,
) -> (Input, Receiver<Result<DaemonReply, Problem>>) {
    let (sender, reply) = channel();
    let requester = Box::new(Kept(sender));
    (Input::Request { caller, request: Box::new(question), requester }, reply)
}

/// Returns one `miser` queue with four processors.
pub(crate) fn setup() -> Setup {
    let queue = Queue {
        name: "batch".into(),
        policy: "miser".parse().expect("a policy"),
        pool: Calendar::constant(Resources::cpus(4).with(Kind::Memory, 1 << 20)),
        classes: None,
        charge: None,
        gpus: None,
        terms: QueueTerms { promise_slack: Span::ZERO, ..QueueTerms::default() },
    };
    Setup {
        queues: vec![queue],
        cpus: vec![0, 1, 2, 3],
        opportunistic_cpus: vec![0, 1, 2, 3],
        grace: Span::ZERO,
        cleanup_time: Span::ZERO,
        orphan_resume_delay: Span::ZERO,
        opportunistic: None,
        waiting_shims: WaitingShimLimits::NONE,
        keep_history: None,
        topology: miserly_engine::Topology::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: miserly_engine::UserLimits::default(),
        reservations: vec![],
    }
}

/// Returns an instant in minutes since the state was created, with the wall time at that instant.
pub(crate) fn at(minutes: i64, wall: Timestamp) -> Now {
    Now { ticks: Time::from_ticks(minutes * MINUTE), wall }
}
