//! The facts about a job.

use serde::Serialize;

/// The distance between the numbers of jobs in several runs of one log: each run has numbers of its own.
pub const RUN_NUMBERS: i64 = 1_000_000_000_000;

/// The type of GPUs of a job that requests any.
pub const ANY_GPU: &str = "GPU";

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Job {
    /// The number.
    pub number: i64,
    /// The number, with the index in an array.
    pub label: String,
    /// The number of its array, and its index there.
    #[serde(skip)]
    pub array: Option<(i64, u32)>,
    /// The name, without control characters.
    pub name: String,
    /// The comment of its user, without control characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The name of the user, without control characters.
    pub user: String,
    /// The number of the user.
    pub uid: Option<u32>,
    /// The pool, by its place in [`Schedule::pools`](crate::Schedule::pools).
    pub pool: usize,
    /// The requested processors.
    pub procs: u64,
    /// The requested memory, bytes; 0 if it is not known.
    pub memory: u64,
    /// The type of the GPUs that it requests; `GPU` if it requests some of any type, and empty if it requests none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gpu: String,
    /// The requested GPUs; 0 if it requests none, or their number is not known.
    #[serde(skip)]
    pub gpus: u64,
    /// The time limit, milliseconds.
    pub limit: i64,
    /// The state.
    pub state: State,
    /// A word for the state.
    pub word: String,
    /// The submission.
    pub submitted: i64,
    /// The earliest start, if its user wants one.
    #[serde(skip)]
    pub begin: Option<i64>,
    /// The start, if it started.
    pub start: Option<i64>,
    /// The end: the actual one, or the latest of a job that runs.
    pub end: Option<i64>,
    /// The latest start by the present plan of a promised job.
    pub promised: Option<i64>,
    /// The latest start that was promised.
    pub promised_first: Option<i64>,
    /// Whether its promise is at risk, or was not kept.
    pub unkept: bool,
    /// Whether it never ran because a job before it did not end as required.
    #[serde(skip)]
    pub unmet: bool,
    /// The start that the policy plans. It is no promise.
    pub planned: Option<i64>,
    /// The likely start: the median, the bound of 80 % and that of 95 %. `None` if the bounds are not calibrated.
    pub likely: Option<[i64; 3]>,
    /// The processors by number, as ranges, if they are known.
    pub cpus: Vec<(u32, u32)>,
    /// The hosts by name, if the pool has several. They are in the map of the hosts.
    #[serde(skip)]
    pub hosts: Vec<String>,
    /// The word for the reason of its start; empty if that is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why it does not run.
    pub causes: Vec<Cause>,
    /// What it does here, if its bar is not the whole job.
    #[serde(skip)]
    pub part: Part,
    /// The whole job, if this is a part of it.
    #[serde(skip)]
    pub whole: Option<Whole>,
    /// The parts of its time, ascending, if it did not have the same processors from its start to its end.
    #[serde(skip)]
    pub stays: Vec<Stay>,
    /// The start of the same job in the schedule to which this one is compared.
    #[serde(skip)]
    pub compared: Option<i64>,
}

/// A part of the time of a job, with processors of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The begin.
    pub from: i64,
    /// The end.
    pub to: i64,
    /// What the job does in it.
    pub part: Part,
    /// The processors by number, as ranges.
    pub cpus: Vec<(u32, u32)>,
}

impl Job {
    /// Returns whether the job ended without success.
    pub fn has_failed(&self) -> bool {
        self.state == State::Ended && self.word != "done"
    }

    /// Returns whether the job ended without success by itself: not by a request, a stop of the daemon, its latest start, or a job
    /// before it.
    pub fn has_failed_by_itself(&self) -> bool {
        let by_others = self.unmet || matches!(&*self.word, "cancelled" | "given up" | "shut down");
        self.has_failed() && !by_others
    }

    /// Returns the first start of the job.
    pub fn first_start(&self) -> Option<i64> {
        let first = self.whole.map(|whole| whole.start).or_else(|| Some(self.stays.first()?.from));
        first.or(self.start)
    }

    /// Returns the whole job, if it has parts or is one.
    pub(crate) fn whole(&self) -> Option<Whole> {
        let (first, last) = (self.stays.first(), self.stays.last());
        let runs = self.stays.iter().filter(|stay| stay.part == Part::Run);
        let ran = runs.map(|stay| stay.to.saturating_sub(stay.from)).sum();
        let of_stays = first.zip(last).map(|(first, last)| Whole { start: first.from, end: last.to, ran });
        self.whole.or(of_stays)
    }

    /// Returns the parts of the job as jobs; none if it has none.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Job> {
        self.stays.iter().map(|stay| Job {
            start: Some(stay.from),
            end: Some(stay.to),
            procs: stay.cpus.iter().map(|(low, high)| u64::from(high.saturating_sub(*low)) + 1).sum(),
            cpus: stay.cpus.clone(),
            part: stay.part,
            whole: self.whole(),
            stays: vec![],
            ..self.clone()
        })
    }

    /// Returns the start of the window of a job that waits.
    pub fn window(&self) -> Option<i64> {
        let start = self.promised.or(self.planned);
        start.filter(|_| self.state.is_before_start() && self.state != State::Held)
    }

    /// Returns the number and the name; the user of a job of a log, which has no name but the reason of its start.
    pub fn title(&self) -> String {
        let name = if self.name == self.reason { &self.user } else { &self.name };
        format!("{} {name}", self.label).trim().to_owned()
    }
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits, and has no place in the queue.
    Held,
    /// It waits.
    #[default]
    Waiting,
    /// It runs on idle processors before its start.
    Opportunistic,
    /// It ran on idle processors before its start, and is stopped.
    Parked,
    /// It runs in its window.
    Running,
    /// It is suspended in its window.
    Suspended,
    /// It has ended.
    Ended,
}

/// The time of a job that was moved, suspended, resized or put back into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The first start.
    pub start: i64,
    /// The last end.
    pub end: i64,
    /// The time in which it ran.
    pub ran: i64,
}

/// What a job does in a part of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It runs.
    #[default]
    Run,
    /// It is swapped out or in.
    Swap,
    /// It runs in the slot of other jobs, which do not need its processors there.
    Alternate,
}

impl State {
    /// Returns whether the start is still to come.
    pub fn is_before_start(self) -> bool {
        matches!(self, State::Held | State::Waiting | State::Opportunistic | State::Parked)
    }

    /// Returns whether the job has resources of its own.
    pub fn holds(self) -> bool {
        matches!(self, State::Running | State::Suspended)
    }
}

/// Why a job does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// It is held.
    Held,
    /// Its earliest start has not come.
    Begin {
        /// The earliest start.
        at: i64,
    },
    /// Other jobs have to end first.
    After {
        /// The other jobs.
        jobs: Vec<i64>,
    },
    /// As many jobs of its array as may run at the same time have begun or have a promise.
    ArrayLimit {
        /// The number of these jobs.
        limit: u32,
    },
    /// Other jobs have all places under a limit of its user.
    UserLimit {
        /// The limit.
        limit: String,
        /// The most jobs or processors at the same time.
        most: u64,
    },
    /// Too few processors are free.
    Cpus {
        /// The number that is missing.
        missing: u64,
        /// The number that is free.
        #[serde(skip)]
        free: u64,
    },
    /// Too few GPUs are free.
    Gpus {
        /// The number that is missing.
        missing: u64,
        /// The number that is free.
        #[serde(skip)]
        free: u64,
    },
    /// Too little memory is free.
    Memory {
        /// The missing bytes.
        missing: u64,
        /// The free bytes.
        #[serde(skip)]
        free: u64,
    },
    /// No slot has room for it.
    Slots,
    /// The free resources are reserved for other jobs.
    Reserved,
    /// A reservation of an operator has the resources, or has not begun for its own job.
    Reservation {
        /// Its name.
        name: String,
        /// Its beginning.
        from: i64,
        /// Its end.
        to: i64,
    },
    /// The machine is short of memory.
    MemoryShort,
    /// There was room for it, and why it waited is not stored.
    Room {
        /// The processors that were free.
        free: u64,
    },
    /// Another scheduler gives a reason.
    Stated {
        /// The scheduler.
        by: String,
        /// Its word.
        reason: String,
    },
}
