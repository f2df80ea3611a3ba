//! The facts about a daemon.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::{
    Exit, Failure, JobView, KilledBy, Phase, Pool, Pools, QueueStatus, StartReason, Status, WaitReason,
    number_ranges,
};

use crate::{ANY_GPU, Account, Cause, Clock, Facts, Job, PoolFacts, State, plain};

/// The answers of a daemon, of which its facts are made.
#[derive(Clone, Debug)]
pub struct DaemonFacts<'a> {
    /// The state of the daemon.
    pub status: &'a Status,
    /// The free capacity of its pools.
    pub pools: &'a Pools,
    /// The jobs, each made by [`job_of`]. Jobs in no queue are in the pool after those of the queues.
    pub jobs: Vec<Arc<Job>>,
    /// The instant.
    pub now: Timestamp,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// The calling user, by number.
    pub uid: u32,
    /// The name of the machine.
    pub machine: &'a str,
}

impl From<DaemonFacts<'_>> for Facts {
    fn from(daemon: DaemonFacts<'_>) -> Facts {
        let DaemonFacts { status, pools, jobs, now, zone, uid, machine } = daemon;
        let mut in_pools: Vec<PoolFacts> =
            status.queues.iter().map(|queue| pool_of(queue, &pools.pools)).collect();
        if jobs.iter().any(|job| job.pool == in_pools.len()) {
            in_pools.push(PoolFacts { name: "in no queue".to_owned(), ..PoolFacts::default() });
        }
        Facts {
            now: now.as_millisecond(),
            clock: Clock::Wall(zone.clone()),
            title: machine.to_owned(),
            live: true,
            earlier: false,
            uid: Some(uid),
            pools: in_pools,
            jobs,
            account: Account::new(status, &Clock::Wall(zone)),
        }
    }
}

fn pool_of(queue: &QueueStatus, pools: &[Pool]) -> PoolFacts {
    let capacity = pools.iter().find(|pool| pool.queue == queue.name);
    PoolFacts {
        name: plain(&queue.name),
        policy: queue.policy.clone(),
        promises: queue.promises.clone(),
        stopped: queue.stopped.clone(),
        cpus: queue.cpus,
        held: queue.cpus_held,
        memory: queue.memory.unwrap_or(0),
        memory_held: queue.memory_held,
        offline: capacity.map_or(0, |pool| pool.cpus.saturating_sub(queue.cpus)),
        numbers: capacity.map(|pool| number_ranges(&pool.cpu_numbers)).unwrap_or_default(),
        numbers_offline: capacity.map(|pool| number_ranges(&pool.cpus_offline)).unwrap_or_default(),
        slices: capacity.map(|pool| pool.slices.clone()).unwrap_or_default(),
        ..PoolFacts::default()
    }
}

/// Returns a job of a daemon, in this pool.
pub fn job_of(job: &JobView, pool: usize) -> Job {
    let promise = job.promise.as_ref();
    let window = promise.and_then(|promise| promise.now);
    let Course { state, start, end } = course(&job.phase);
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
    let limit = (job.time * 1000.0) as i64;
    Job {
        number: job.number,
        label: job.label(),
        array: job.array.zip(job.index),
        name: plain(&job.name),
        comment: job.comment.as_deref().map(plain).unwrap_or_default(),
        user: plain(&job.user),
        uid: Some(job.uid),
        pool,
        procs: job.cpus,
        memory: job.memory,
        gpu: match &job.gpu_type {
            _ if job.gpus == 0 => String::new(),
            Some(name) => plain(name),
            None => ANY_GPU.to_owned(),
        },
        // Jobs with shares have one GPU together.
        gpus: if job.gpu_share { 0 } else { job.gpus },
        limit,
        state,
        word: word(job).to_owned(),
        submitted: job.submitted.as_millisecond(),
        begin: job.begin.map(Timestamp::as_millisecond),
        start: start.map(Timestamp::as_millisecond),
        end: end.map(Timestamp::as_millisecond),
        promised: window.map(|window| window.start.as_millisecond()),
        promised_first: promise.map(|promise| promise.promised.start.as_millisecond()),
        unkept: promise.is_some_and(|promise| promise.at_risk.is_some()) || job.missed_promise(),
        unmet: matches!(job.phase, Phase::Failed { why: Failure::Dependency, .. }),
        planned: job.planned.map(Timestamp::as_millisecond),
        likely: job
            .forecast
            .filter(|_| state.is_before_start())
            .and_then(|likely| likely.bounds())
            .map(|bounds| bounds.map(Timestamp::as_millisecond)),
        cpus: job.phase.cpus(),
        reason: start_reason(job, state).to_owned(),
        causes: job.reasons.iter().map(cause).collect(),
        ..Job::default()
    }
}

/// Returns the word for the reason of the start of a job: one that ran and has none ran on idle processors only.
fn start_reason(job: &JobView, state: State) -> &'static str {
    let is_idle = matches!(state, State::Opportunistic | State::Parked);
    job.start_reason
        .filter(|_| !is_idle)
        .map_or(if is_idle { "opportunistic" } else { "" }, StartReason::name)
}

/// Returns the comment of a job, and its command and its paths or the reason why they are not there: keys and texts.
pub fn details(job: &JobView) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&str, String)> = job.comment.iter().map(|text| ("comment", plain(text))).collect();
    let Some(command) = &job.command else {
        lines.push(("runs", "private; shown to the job's user, root and the daemon's user".to_owned()));
        return lines;
    };
    let words: Vec<String> = command.iter().map(|word| plain(word)).collect();
    let script = if job.script { "its script " } else { "" };
    lines.push(("runs", format!("{script}{}", words.join(" ")).trim_end().to_owned()));
    let error = job.error.as_ref().filter(|error| Some(*error) != job.output.as_ref());
    let paths = [("in", job.directory.as_ref()), ("output", job.output.as_ref()), ("errors", error)];
    lines
        .extend(paths.into_iter().filter_map(|(key, path)| Some((key, plain(&path?.display().to_string())))));
    lines
}

/// The state of a job and its times.
struct Course {
    state: State,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

fn course(phase: &Phase) -> Course {
    let course = |state, start, end| Course { state, start, end };
    match phase {
        Phase::Held => course(State::Held, None, None),
        Phase::Queued => course(State::Waiting, None, None),
        Phase::Opportunistic { start, parked } => {
            course(if *parked { State::Parked } else { State::Opportunistic }, Some(*start), None)
        }
        Phase::Running(held) => course(State::Running, Some(held.start), Some(held.end)),
        Phase::Suspended(held) => course(State::Suspended, Some(held.start), Some(held.end)),
        Phase::Done { start, end, .. } => course(State::Ended, Some(*start), Some(*end)),
        Phase::Killed { start, end, .. } => course(State::Ended, *start, Some(*end)),
        Phase::Failed { at, .. } | Phase::Lost { at, .. } => course(State::Ended, None, Some(*at)),
        Phase::Adopted { end, .. } => course(State::Running, None, *end),
        Phase::Unreadable { cpus, .. } if cpus.is_empty() => course(State::Held, None, None),
        Phase::Unreadable { .. } => course(State::Running, None, None),
    }
}

/// Returns a word for the state of a job.
pub fn word(job: &JobView) -> &'static str {
    match &job.phase {
        _ if job.overdue.is_some() => "overdue",
        _ if job.paused => "paused",
        Phase::Running(_) if job.idle_since.is_some() => "idle",
        Phase::Held => "held",
        Phase::Queued => "queued",
        Phase::Opportunistic { parked: false, .. } => "opportunistic",
        Phase::Opportunistic { parked: true, .. } => "parked",
        Phase::Running(_) => "running",
        Phase::Suspended(_) => "suspended",
        Phase::Done { exit, .. } => word_of_exit(*exit),
        Phase::Killed { by, .. } => word_of_kill(*by),
        Phase::Failed { why: Failure::NotInTime, .. } => "given up",
        Phase::Failed { .. } => "not run",
        Phase::Lost { .. } => "lost",
        Phase::Adopted { .. } => "adopted",
        Phase::Unreadable { .. } => "unreadable",
    }
}

/// Returns the word for a job that exited by itself.
pub fn word_of_exit(exit: Exit) -> &'static str {
    if exit == Exit::Code(0) { "done" } else { "done, failed" }
}

/// Returns the word for a job that was ended.
pub fn word_of_kill(by: KilledBy) -> &'static str {
    match by {
        KilledBy::Time => "out of time",
        KilledBy::User => "cancelled",
        KilledBy::Shutdown => "shut down",
        KilledBy::Memory => "out of memory",
        KilledBy::Idle => "ended, idle",
    }
}

fn cause(reason: &WaitReason) -> Cause {
    match reason {
        WaitReason::Held => Cause::Held,
        WaitReason::Begin { at } => Cause::Begin { at: at.as_millisecond() },
        WaitReason::ArrayLimit { limit } => Cause::ArrayLimit { limit: *limit },
        WaitReason::UserLimit { limit, most } => Cause::UserLimit { limit: limit.clone(), most: *most },
        WaitReason::After { jobs } => Cause::After { jobs: jobs.clone() },
        WaitReason::Resources { kind, requested, free } => {
            let (missing, free) = (requested.saturating_sub(*free), *free);
            match kind.as_str() {
                "memory" => Cause::Memory { missing, free },
                "gpus" => Cause::Gpus { missing, free },
                "slots" => Cause::Slots,
                _ => Cause::Cpus { missing, free },
            }
        }
        WaitReason::Reserved => Cause::Reserved,
        WaitReason::Reservation { name, from, to } => {
            Cause::Reservation { name: plain(name), from: from.as_millisecond(), to: to.as_millisecond() }
        }
        WaitReason::MemoryShort => Cause::MemoryShort,
    }
}
