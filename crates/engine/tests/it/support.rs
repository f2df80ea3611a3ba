//! A journal in memory, a launcher that does nothing, and a requester that keeps its reply.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};

use jiff::Timestamp;
use miserly_api::model::{Problem, Submission};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_engine::{
    Action, Attempt, Caller, Checkpoint, DaemonReply, DaemonRequest, EndedFilter, Input, JobRow, Journal,
    JournalBatch, JournalError, Launcher, Now, Queue, QueueTerms, Requester, Setup, SlotSchedule,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// One minute, in ticks.
pub(crate) const MINUTE: i64 = 60_000_000;

/// A journal in memory. Clones share its contents, so a second engine loads the state of the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryJournal(Rc<RefCell<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    rows: BTreeMap<i64, JobRow>,
    lines: Vec<String>,
    /// The sealed segments: the number of lines, and the wall time.
    segments: Vec<(usize, i64)>,
    values: BTreeMap<String, String>,
    /// Commits fail for lack of space.
    full: bool,
    commits: usize,
}

impl MemoryJournal {
    /// Lets commits fail for lack of space, or succeed again.
    pub(crate) fn set_full(&self, full: bool) {
        self.0.borrow_mut().full = full;
    }

    /// Makes the stored row of a job that of a finished one that cannot be read.
    pub(crate) fn damage(&self, job: i64) {
        if let Some(row) = self.0.borrow_mut().rows.get_mut(&job) {
            row.ended = true;
            (row.body, row.problem) = (String::new(), Some("its checksum is wrong".into()));
        }
    }

    /// Returns the number of successful commits.
    pub(crate) fn commits(&self) -> usize {
        self.0.borrow().commits
    }

    /// Returns the journal's lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.borrow().lines.clone()
    }

    /// Returns the contents as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let contents = self.0.borrow();
        let row = |row: &JobRow| {
            let JobRow { number, ended, uid, queue, array, body, problem: _ } = row;
            json!({ "number": number, "ended": ended, "uid": uid, "queue": queue, "array": array, "body": body })
        };
        let rows: Vec<Value> = contents.rows.values().map(row).collect();
        json!({ "rows": rows, "lines": contents.lines, "segments": contents.segments, "values": contents.values })
    }

    /// Returns a journal with the contents that [`to_json`](MemoryJournal::to_json) returned.
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
        MemoryJournal(Rc::new(RefCell::new(Contents {
            rows,
            lines: read(&json["lines"]),
            segments: read(&json["segments"]),
            values: read(&json["values"]),
            ..Contents::default()
        })))
    }

    fn ended(&self, admits: impl Fn(&JobRow) -> bool) -> Vec<JobRow> {
        let contents = self.0.borrow();
        contents.rows.values().filter(|row| row.ended && admits(row)).cloned().collect()
    }
}

impl Journal for MemoryJournal {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        Ok(self.0.borrow().rows.values().filter(|row| !row.ended).cloned().collect())
    }

    fn job(&self, number: i64) -> Result<Option<JobRow>, JournalError> {
        Ok(self.0.borrow().rows.get(&number).cloned())
    }

    fn ended_jobs(&self, filter: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        let mut rows = self.ended(|row| {
            filter.uid.is_none_or(|uid| uid == row.uid)
                && filter.queue.as_ref().is_none_or(|queue| *queue == row.queue)
                && filter.array.is_none_or(|array| row.number == array || row.array == Some(array))
        });
        let limit = filter.limit.map_or(rows.len(), |limit| limit as usize);
        Ok(rows.split_off(rows.len().saturating_sub(limit)))
    }

    fn ended_from(&self, from: i64, limit: u32) -> Result<Vec<JobRow>, JournalError> {
        let mut rows = self.ended(|row| row.number >= from);
        rows.truncate(limit as usize);
        Ok(rows)
    }

    fn highest_job(&self) -> Result<i64, JournalError> {
        Ok(self.0.borrow().rows.keys().next_back().copied().unwrap_or(0))
    }

    fn last_commit(&self) -> i64 {
        i64::try_from(self.0.borrow().commits).expect("few commits")
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.0.borrow().values.get(key).cloned())
    }

    fn visit_lines(&self, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        for line in &self.0.borrow().lines {
            if visit(line).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        let mut contents = self.0.borrow_mut();
        if contents.full {
            return Err(JournalError::Full("no space".into()));
        }
        contents.lines.extend(batch.lines);
        if let Some(Checkpoint { line, wall }) = batch.checkpoint {
            let sealed: usize = contents.segments.iter().map(|(lines, _)| lines).sum();
            let lines = contents.lines.len() - sealed;
            contents.segments.push((lines, wall.as_microsecond()));
            contents.lines.push(line);
        }
        contents.rows.extend(batch.rows.into_iter().map(|row| (row.number, row)));
        contents.values.extend(batch.values);
        contents.values.retain(|_, text| !text.is_empty());
        contents.commits += 1;
        Ok(())
    }

    fn forget(&mut self, numbers: &[i64]) -> Result<(), JournalError> {
        self.0.borrow_mut().rows.retain(|number, row| !row.ended || !numbers.contains(number));
        Ok(())
    }

    fn forget_segment(&mut self, before: Timestamp) -> Result<bool, JournalError> {
        let before = before.as_microsecond();
        let mut contents = self.0.borrow_mut();
        let Some((lines, _)) = contents.segments.first().copied().filter(|(_, wall)| *wall < before) else {
            return Ok(false);
        };
        contents.segments.remove(0);
        contents.lines.drain(..lines);
        Ok(contents.segments.first().is_some_and(|(_, wall)| *wall < before))
    }
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
