//! The reasons why a job waits, and why it starts.

use miserly_core::{Entry, Expected, JobId, JobNumber, Ledger, Procs, Span, State, System, Time};
use miserly_report::count;
use miserly_sim::Finished;
use miserly_units::duration_rounded;
use serde::Serialize;

/// The most jobs that a reason names.
const NAMED: usize = 3;

/// The reason why a job does not start at its submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// Fewer processors are free than it needs.
    TooFewFree {
        free: Procs,
        /// The running jobs that hold the most processors, and the expected ends of these.
        holders: Vec<Holder>,
        /// The time at which enough processors are free, if every job runs to its time limit.
        enough_at: Option<Time>,
    },
    /// It would still run at the reserved start of another job, and take processors that this job needs.
    Reservation { job: JobNumber, procs: Procs, start: Time, until: Time },
    /// The policy starts no job ahead of this one.
    Order { job: JobNumber, procs: Procs },
    /// The processors that it needs are free, and none of the above holds.
    Policy,
}

/// A running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) job: JobNumber,
    pub(super) procs: Procs,
    /// The end at its time limit; `None` if that is past.
    pub(super) until: Option<Time>,
}

/// A job that ended at the instant of the start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct EndedJob {
    pub(super) job: JobNumber,
    pub(super) procs: u64,
    /// The rest of its time limit, in seconds.
    pub(super) early: f64,
}

impl WaitReason {
    /// Returns the reason for a job that waits after an instant, or `None` if it does not wait.
    pub(super) fn find(now: Time, system: &System, number: JobNumber) -> Option<WaitReason> {
        system.queues().iter().find_map(|queue| {
            let ledger = queue.ledger();
            let job = ledger.waiting().find(|job| ledger.request(*job).number == number)?;
            Some(WaitReason::in_ledger(now, ledger, job))
        })
    }

    fn in_ledger(now: Time, ledger: &Ledger, job: JobId) -> WaitReason {
        let request = ledger.request(job);
        let free = ledger.free().cpus_count();
        if request.procs() > free {
            return WaitReason::too_few_free(ledger, request.procs(), free);
        }
        let others = || ledger.waiting().filter(|other| *other != job).map(|other| ledger.entry(other));
        let until = now + request.planned();
        let reserved = others().filter_map(|entry| Some((planned_start(entry)?, entry)));
        let in_the_way = reserved.filter(|(start, _)| *start < until).min_by_key(|(start, _)| *start);
        if let Some((start, entry)) = in_the_way {
            let (job, procs) = (entry.request.number, entry.request.procs());
            return WaitReason::Reservation { job, procs, start, until };
        }
        match others().next() {
            Some(first) => WaitReason::Order { job: first.request.number, procs: first.request.procs() },
            None => WaitReason::Policy,
        }
    }

    fn too_few_free(ledger: &Ledger, needed: Procs, free: Procs) -> WaitReason {
        let mut holders: Vec<Holder> = ledger.running().map(|job| Holder::new(ledger.entry(job))).collect();
        holders.sort_by_key(|holder| (holder.until.is_none(), holder.until));
        let mut sum = free;
        let enough_at = holders.iter().find_map(|holder| {
            sum += holder.procs;
            (sum >= needed).then_some(holder.until).flatten()
        });
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.procs));
        holders.truncate(NAMED);
        WaitReason::TooFewFree { free, holders, enough_at }
    }

    /// Returns the reason as text, with the time of the submission.
    pub(super) fn text(&self, now: Time) -> String {
        match self {
            WaitReason::TooFewFree { free, holders, enough_at } => {
                let named: Vec<String> = holders.iter().map(|holder| holder.text(now)).collect();
                let held = match &named[..] {
                    [] => String::new(),
                    named => format!("; {}", named.join("; ")),
                };
                let enough = enough_at.map_or_else(String::new, |at| {
                    format!("; enough are free within {} at the latest", duration_rounded(at - now))
                });
                format!("only {}{held}{enough}", are_free(*free))
            }
            WaitReason::Reservation { job, procs, start, until } => format!(
                "it may run for {}, but job {job} ({}) has a start in {} that it would delay",
                duration_rounded(*until - now),
                processors(*procs),
                duration_rounded(*start - now)
            ),
            WaitReason::Order { job, procs } => {
                format!("job {job} ({}) is ahead of it in the queue", processors(*procs))
            }
            WaitReason::Policy => "the policy does not start it yet".into(),
        }
    }
}

impl EndedJob {
    pub(super) fn new(job: &Finished) -> EndedJob {
        let limit = job.start + job.request.estimate;
        let early = (limit - job.end).max(Span::ZERO);
        EndedJob { job: job.request.number, procs: job.request.procs().get(), early: early.as_secs_f64() }
    }
}

impl Holder {
    fn new(entry: &Entry) -> Holder {
        let until = match entry.state {
            State::Running { expected, .. } => planned_end(expected),
            State::Waiting | State::Suspended { .. } => None,
        };
        Holder { job: entry.request.number, procs: entry.request.procs(), until }
    }

    fn text(&self, now: Time) -> String {
        let until = self.until.map_or_else(
            || "and is past its time limit".to_owned(),
            |until| format!("for up to {}", duration_rounded(until - now)),
        );
        format!("job {} holds {} {until}", self.job, count(self.procs.get()))
    }
}

fn planned_end(expected: Expected) -> Option<Time> {
    match expected {
        Expected::At(end) => Some(end),
        Expected::Overdue { .. } => None,
    }
}

/// Returns the start that a waiting job was promised or has in the plan.
fn planned_start(entry: &Entry) -> Option<Time> {
    entry.planned.or(entry.promise.map(|promise| promise.best)).filter(|start| *start < Time::MAX)
}

/// Returns the line on the jobs that made room for a start by their ends, if there were any.
pub(super) fn room_text(ended: &[EndedJob]) -> Option<String> {
    let named = ended.iter().take(NAMED).map(|ended| {
        let early = miserly_units::span_of_seconds(ended.early);
        let early = match early {
            Span::ZERO => "at its time limit".to_owned(),
            early => format!("{} before its time limit", duration_rounded(early)),
        };
        format!("job {} ended {early} and freed {}", ended.job, count(ended.procs))
    });
    let mut text: Vec<String> = named.collect();
    if ended.len() > NAMED {
        text.push(format!("{} more jobs ended", ended.len() - NAMED));
    }
    (!text.is_empty()).then(|| text.join("; "))
}

/// Returns `1 processor`, or `32 processors`.
pub(super) fn processors(procs: Procs) -> String {
    if procs == Procs::ONE { "1 processor".into() } else { format!("{} processors", count(procs.get())) }
}

fn are_free(procs: Procs) -> String {
    match procs {
        Procs::ZERO => "0 processors are free".into(),
        Procs::ONE => "1 processor is free".into(),
        procs => format!("{} processors are free", count(procs.get())),
    }
}
