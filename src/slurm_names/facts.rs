//! A job of the daemon in Slurm's terms: state, reason, exit code, times.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{Exit, Failure, JobView, KilledBy, Phase, StepView, WaitReason};
use nix::unistd::{Group, Uid, User};

use super::columns::without_breaks;

/// A state of Slurm: its name and its short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) name: &'static str,
    pub(super) short: &'static str,
}

/// The states, in the order in which squeue sorts them. A job has one of the first nine.
const STATES: [State; 22] = [
    State { name: "PENDING", short: "PD" },
    State { name: "RUNNING", short: "R" },
    State { name: "SUSPENDED", short: "S" },
    State { name: "COMPLETED", short: "CD" },
    State { name: "CANCELLED", short: "CA" },
    State { name: "FAILED", short: "F" },
    State { name: "TIMEOUT", short: "TO" },
    State { name: "NODE_FAIL", short: "NF" },
    State { name: "OUT_OF_MEMORY", short: "OOM" },
    State { name: "PREEMPTED", short: "PR" },
    State { name: "BOOT_FAIL", short: "BF" },
    State { name: "DEADLINE", short: "DL" },
    State { name: "COMPLETING", short: "CG" },
    State { name: "CONFIGURING", short: "CF" },
    State { name: "RESIZING", short: "RS" },
    State { name: "REQUEUED", short: "RQ" },
    State { name: "REQUEUE_FED", short: "RF" },
    State { name: "REQUEUE_HOLD", short: "RH" },
    State { name: "SPECIAL_EXIT", short: "SE" },
    State { name: "STOPPED", short: "ST" },
    State { name: "REVOKED", short: "RV" },
    State { name: "SIGNALING", short: "SI" },
];

const PENDING: State = STATES[0];
pub(super) const RUNNING: State = STATES[1];
const SUSPENDED: State = STATES[2];

impl State {
    /// Returns the state with this name or short form.
    ///
    /// # Errors
    /// Any other text, in the words of squeue.
    pub(super) fn parse(text: &str) -> Result<State, String> {
        let upper = text.trim().to_ascii_uppercase();
        let found = STATES.into_iter().find(|state| state.name == upper || state.short == upper);
        found.ok_or_else(|| {
            let names: Vec<String> = STATES.iter().map(|state| state.name.to_ascii_lowercase()).collect();
            format!("Invalid job state specified: {text}\nValid job states include: {}", names.join(","))
        })
    }

    /// Returns the position in the order of squeue.
    pub(super) fn position(self) -> usize {
        STATES.iter().position(|state| *state == self).unwrap_or(STATES.len())
    }

    /// Returns whether a job in this state has not ended.
    pub(super) fn is_active(self) -> bool {
        self.position() < 3
    }
}

/// A job, with the machine and the instant of the command.
pub(super) struct Facts<'a> {
    pub(super) job: Cow<'a, JobView>,
    pub(super) now: Timestamp,
    pub(super) host: &'a str,
    /// The indexes of waiting jobs of one array that are one line, as `4-8%2`.
    pub(super) indexes: Option<String>,
}

/// What a row of the accounting is about.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// The whole job.
    Job,
    /// Its script.
    Script,
    /// Tasks that it started by `srun`.
    Step(&'a StepView),
}

impl Part<'_> {
    /// Returns whether Slurm counts it as a step.
    pub(super) fn is_step(self) -> bool {
        !matches!(self, Part::Job)
    }

    /// Returns the name of a step.
    pub(super) fn name(self) -> String {
        match self {
            Part::Job => String::new(),
            Part::Script => "batch".to_owned(),
            Part::Step(step) => without_breaks(&step.name),
        }
    }

    /// Returns the tasks of a part that runs.
    pub(super) fn tasks(self) -> u64 {
        if let Part::Step(step) = self { step.tasks } else { 1 }
    }

    /// Returns the time limit of a step that has one of its own.
    pub(super) fn limit(self) -> Option<SignedDuration> {
        let limit = if let Part::Step(step) = self { step.limit } else { None };
        limit.map(|secs| SignedDuration::from_secs(i64::try_from(secs).unwrap_or(i64::MAX)))
    }

    /// Returns what follows the number of the job.
    pub(super) fn suffix(self) -> String {
        match self {
            Part::Job => String::new(),
            Part::Script => ".batch".to_owned(),
            Part::Step(step) => format!(".{}", step.step),
        }
    }
}

impl Facts<'_> {
    /// Returns the state of a part of the job.
    pub(super) fn state_of(&self, part: Part) -> State {
        let step = match part {
            // A script that a signal ended counts as cancelled.
            Part::Script if self.state().name == "FAILED" && self.exit_of(part).1 > 0 => {
                return named("CANCELLED");
            }
            Part::Job | Part::Script => return self.state(),
            Part::Step(step) => step,
        };
        if step.ended.is_some_and(|end| end.by_time) {
            return named("TIMEOUT");
        }
        match (step.ended.map(|end| end.exit), self.job.phase.ended()) {
            (Some(Exit::Code(0)), _) => named("COMPLETED"),
            (Some(Exit::Code(_)), _) => named("FAILED"),
            (Some(Exit::Signal(_)), _) | (None, Some(_)) => named("CANCELLED"),
            (None, None) => RUNNING,
        }
    }

    /// Returns the start of a part of the job.
    pub(super) fn began_of(&self, part: Part) -> Option<Timestamp> {
        if let Part::Step(step) = part { Some(step.started) } else { self.began() }
    }

    /// Returns the end of a part of the job. A step ends with its job at the latest.
    pub(super) fn ended_of(&self, part: Part) -> Option<Timestamp> {
        let of_step = if let Part::Step(step) = part { step.ended.map(|end| end.at) } else { None };
        of_step.or(self.job.phase.ended())
    }

    /// Returns the time since the start of a part of the job, up to its end.
    pub(super) fn elapsed_of(&self, part: Part) -> SignedDuration {
        let until = self.ended_of(part).unwrap_or(self.now);
        let elapsed = self.began_of(part).map(|began| until.duration_since(began));
        elapsed.unwrap_or_default().max(SignedDuration::ZERO)
    }

    /// Returns the exit code and the signal of a part of the job.
    pub(super) fn exit_of(&self, part: Part) -> (i32, i32) {
        match part {
            Part::Job => self.exit(),
            Part::Script => self.exit_of_script(),
            Part::Step(step) => match step.ended.map(|end| end.exit) {
                Some(Exit::Code(code)) => (code, 0),
                Some(Exit::Signal(signal)) => (0, signal),
                None => (0, 0),
            },
        }
    }

    /// Returns the processors of a part of the job.
    pub(super) fn cpus_of(&self, part: Part) -> u64 {
        if let Part::Step(step) = part { step.cpus } else { self.job.cpus }
    }

    /// Returns the instant from which it may start.
    pub(super) fn eligible(&self) -> Timestamp {
        self.job.begin.unwrap_or(self.job.submitted)
    }

    /// Returns the tasks.
    pub(super) fn tasks(&self) -> u64 {
        self.job.tasks.unwrap_or(1).max(1)
    }

    /// Returns the processors for each task.
    pub(super) fn cpus_per_task(&self) -> u64 {
        (self.job.cpus / self.tasks()).max(1)
    }

    /// Returns the first group of the user, if it is known here.
    pub(super) fn group(&self) -> Option<Group> {
        let user = User::from_uid(Uid::from_raw(self.job.uid)).ok()??;
        Group::from_gid(user.gid).ok()?
    }

    pub(super) fn state(&self) -> State {
        state(&self.job)
    }

    /// Returns the number as Slurm writes it: `12`, or `12_3` in an array.
    pub(super) fn id(&self) -> String {
        match (self.job.array, self.job.index, &self.indexes) {
            (Some(array), _, Some(indexes)) => format!("{array}_[{indexes}]"),
            (Some(array), Some(index), None) => format!("{array}_{index}"),
            _ => self.job.number.to_string(),
        }
    }

    /// Returns the start of a job that has begun, also before its window.
    pub(super) fn began(&self) -> Option<Timestamp> {
        match self.job.phase {
            Phase::Opportunistic { start, .. } => Some(start),
            ref phase => phase.started(),
        }
    }

    /// Returns the start, or the promised or planned start of a job that waits.
    pub(super) fn start(&self) -> Option<Timestamp> {
        let promise = self.job.promise.as_ref();
        let window = promise.and_then(|promise| promise.now).or(promise.map(|promise| promise.promised));
        let waits = self.job.phase.ended().is_none();
        self.began().or_else(|| window.map(|window| window.start).or(self.job.planned).filter(|_| waits))
    }

    /// Returns the end, or the latest end of a job that has not ended.
    pub(super) fn end(&self) -> Option<Timestamp> {
        if let Some(end) = self.job.phase.ended() {
            return Some(end);
        }
        match &self.job.phase {
            Phase::Running(window) | Phase::Suspended(window) => Some(window.end),
            _ => self.start()?.checked_add(self.limit()).ok(),
        }
    }

    /// Returns the time limit.
    pub(super) fn limit(&self) -> SignedDuration {
        SignedDuration::try_from_secs_f64(self.job.time).unwrap_or(SignedDuration::MAX)
    }

    /// Returns the time since the start, up to the end.
    pub(super) fn elapsed(&self) -> SignedDuration {
        self.elapsed_of(Part::Job)
    }

    /// Returns why the job waits, or why it ended as it did.
    pub(super) fn reason(&self) -> &'static str {
        if self.state() == PENDING {
            return self.job.reasons.first().map_or("Priority", wait_reason);
        }
        match &self.job.phase {
            Phase::Done { exit: Exit::Code(0), .. } => "None",
            Phase::Done { exit: Exit::Code(_), .. } => "NonZeroExitCode",
            Phase::Done { exit: Exit::Signal(_), .. } => "RaisedSignal",
            Phase::Killed { by: KilledBy::Time, .. } => "TimeLimit",
            Phase::Killed { by: KilledBy::Memory, .. } => "OutOfMemory",
            Phase::Killed { by: KilledBy::Shutdown, .. } | Phase::Lost { .. } => "NodeDown",
            Phase::Failed { why: Failure::Dependency, .. } => "DependencyNeverSatisfied",
            Phase::Failed { why: Failure::Prolog, .. } => "Prolog",
            Phase::Failed { why: Failure::Refused | Failure::NotInTime, .. } => "DeadLine",
            Phase::Killed { by: KilledBy::Idle, .. } => "InactiveLimit",
            Phase::Failed { .. } => "JobLaunchFailure",
            _ => "None",
        }
    }

    /// Returns the exit code and the signal, of the job as Slurm records it.
    pub(super) fn exit(&self) -> (i32, i32) {
        match &self.job.phase {
            Phase::Done { exit: Exit::Code(code), .. } => (*code, 0),
            Phase::Done { exit: Exit::Signal(signal), .. } => (0, *signal),
            Phase::Killed { by: KilledBy::Memory, .. } => (0, 125),
            Phase::Failed { why: Failure::Dependency | Failure::NotInTime, .. } => (0, 0),
            Phase::Failed { .. } | Phase::Lost { .. } => (1, 0),
            _ => (0, 0),
        }
    }

    /// Returns the exit code and the signal of the script of the job.
    fn exit_of_script(&self) -> (i32, i32) {
        match &self.job.phase {
            Phase::Killed { exit: Some(Exit::Signal(signal)), .. } => (0, *signal),
            Phase::Killed { exit: Some(Exit::Code(code)), .. } => (*code, 0),
            _ => self.exit(),
        }
    }

    /// Returns the machine of a job that has begun.
    pub(super) fn node(&self) -> &str {
        if self.began().is_some() { self.host } else { "" }
    }

    /// Returns the promise in words, for the comment of a job.
    pub(super) fn promise(&self) -> Option<String> {
        let promise = self.job.promise.as_ref()?;
        Some(format!("starts by {} (promised)", stamp(Some(promise.promised.start))))
    }
}

fn named(name: &str) -> State {
    STATES.into_iter().find(|state| state.name == name).unwrap_or(PENDING)
}

/// Returns the state of a job.
pub(super) fn state(job: &JobView) -> State {
    match &job.phase {
        Phase::Held | Phase::Queued => PENDING,
        Phase::Suspended(_) | Phase::Opportunistic { parked: true, .. } => SUSPENDED,
        Phase::Running(_) if job.paused => SUSPENDED,
        Phase::Running(_)
        | Phase::Opportunistic { .. }
        | Phase::Adopted { .. }
        | Phase::Unreadable { .. } => RUNNING,
        Phase::Done { exit: Exit::Code(0), .. } => named("COMPLETED"),
        Phase::Killed { by: KilledBy::Time, .. } => named("TIMEOUT"),
        Phase::Killed { by: KilledBy::Memory, .. } => named("OUT_OF_MEMORY"),
        Phase::Killed { by: KilledBy::Shutdown, .. } | Phase::Lost { .. } => named("NODE_FAIL"),
        Phase::Killed { by: KilledBy::User | KilledBy::Idle, .. }
        | Phase::Failed { why: Failure::Dependency, .. } => named("CANCELLED"),
        Phase::Failed { why: Failure::NotInTime, .. } => named("DEADLINE"),
        Phase::Done { .. } | Phase::Failed { .. } => named("FAILED"),
    }
}

const fn wait_reason(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Held => "JobHeldUser",
        WaitReason::Begin { .. } => "BeginTime",
        WaitReason::After { .. } => "Dependency",
        WaitReason::ArrayLimit { .. } => "JobArrayTaskLimit",
        WaitReason::UserLimit { .. } => "QOSMaxJobsPerUserLimit",
        WaitReason::Resources { .. } => "Resources",
        WaitReason::Reserved => "Priority",
        WaitReason::Reservation { .. } => "Reservation",
        WaitReason::MemoryShort => "None",
    }
}

/// Returns an instant as Slurm prints it: local time, to the second.
pub(super) fn stamp(at: Option<Timestamp>) -> String {
    let local = |at: Timestamp| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    at.map_or_else(|| "Unknown".to_owned(), local)
}

/// Returns a duration as squeue prints it: `0:05`, `1:00:00`, `2-03:00:00`.
pub(super) fn short_clock(span: SignedDuration) -> String {
    let secs = span.as_secs();
    let (days, hours, minutes, secs) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60, secs % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{secs:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{secs:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{secs:02}"),
    }
}

/// Returns a duration as sacct prints it: `00:00:05`, `2-03:00:00`.
pub(super) fn long_clock(span: SignedDuration) -> String {
    let secs = span.as_secs();
    let (days, hours, minutes, secs) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60, secs % 60);
    let day = if days > 0 { format!("{days}-") } else { String::new() };
    format!("{day}{hours:02}:{minutes:02}:{secs:02}")
}

/// Returns an amount of memory as Slurm prints it: `100M`, `4G`, `1.50G`.
pub(super) fn memory(bytes: u64) -> String {
    let units = [(1_u64 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(unit) => format!("{}{name}", bytes / unit),
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / unit as f64),
        None => format!("{bytes}"),
    }
}
