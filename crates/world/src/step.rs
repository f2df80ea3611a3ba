//! The steps of a script. A script alone determines all events: nothing else is drawn while it runs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One second, in ticks.
pub const SECOND: i64 = 1_000_000;

/// A step.
///
/// Jobs are named by the tag of their submission, so a step keeps its meaning when other steps are left out. A step about a job
/// that was not accepted does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Time passes.
    Wait {
        /// How long, in ticks.
        ticks: i64,
    },
    /// A user submits a job or an array.
    Submit {
        /// The tag.
        tag: u32,
        /// The user, by number.
        user: u32,
        /// The job.
        wish: Box<Wish>,
    },
    /// A user changes or asks.
    Request {
        /// The user, by number.
        user: u32,
        /// The request.
        request: Request,
    },
    /// The daemon ends by a signal.
    Stop,
    /// The daemon begins, if it does not run.
    Start,
    /// The daemon is killed after some more effects: commits, actions, replies, messages and operations on files.
    Kill {
        /// The number of effects before. 0 kills it now.
        after: u32,
    },
    /// The daemon is stopped for a while, and then goes on.
    Stall {
        /// How long, in ticks.
        ticks: i64,
    },
    /// The machine loses its power, and boots again.
    Reboot {
        /// How long it is off, in ticks.
        ticks: i64,
    },
    /// The machine shuts down in order: its processes are asked to end, and the power goes a while later.
    ShutDown {
        /// How long the processes have, in ticks.
        patience: i64,
        /// Whether the daemon ends first.
        daemon_first: bool,
        /// How long it is off, in ticks.
        ticks: i64,
    },
    /// The wall clock is set.
    SetWall {
        /// The step, in ticks.
        by: i64,
    },
    /// The disk of the state is full, or has room again.
    Full {
        /// Whether it is full.
        on: bool,
        /// Whether the database still has room, as its file is longer than its content.
        #[serde(default)]
        only_attempts: bool,
    },
    /// The next commit fails in a way that leaves its outcome unknown.
    FailCommit {
        /// Whether it is on disk nevertheless.
        stored: bool,
    },
    /// The shims of a submission's running jobs are killed.
    KillShim {
        /// The tag.
        tag: u32,
    },
    /// The shims of a submission's running jobs are stopped or continue.
    StopShim {
        /// The tag.
        tag: u32,
        /// Whether they are stopped.
        on: bool,
    },
    /// The main processes of a submission's jobs receive a signal from outside.
    SignalMain {
        /// The tag.
        tag: u32,
        /// The signal.
        signal: MainSignal,
    },
    /// Something happens a little later, even if the daemon is in the middle of a task then.
    Soon {
        /// When, ticks from now.
        ticks: i64,
        /// What.
        event: Event,
    },
    /// The configuration is read again.
    Reload {
        /// The new one.
        machine: Box<MachineSetup>,
    },
    /// The daemon is killed in the next commit, of which only a part is written. A journal in memory has nothing of it.
    TearCommit {
        /// The part, in thousandths.
        part: u16,
    },
    /// The disk fails when the next daemon opens its store.
    FailOpen,
    /// The operator copies the state.
    BackUp,
    /// The operator stops the daemon, and starts one with the last copy of the state.
    Restore {
        /// Whether attempts that the copy does not have are ended.
        sweep: bool,
    },
}

/// What can happen in the middle of a task of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "each is the step of the same name")]
pub enum Event {
    Request { user: u32, request: Request },
    KillShim { tag: u32 },
    StopShim { tag: u32, on: bool },
    SignalMain { tag: u32, signal: MainSignal },
}

impl Event {
    /// Returns the tag of the jobs that it is about.
    pub(crate) fn tag(&self) -> Option<u32> {
        match self {
            Event::Request { request, .. } => request.tag(),
            Event::KillShim { tag } | Event::StopShim { tag, .. } | Event::SignalMain { tag, .. } => {
                Some(*tag)
            }
        }
    }
}

/// A signal to the main process of a job alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MainSignal {
    /// `SIGSTOP`.
    Stop,
    /// `SIGCONT`.
    Continue,
    /// `SIGTERM`.
    Terminate,
    /// `SIGKILL`.
    Kill,
}

/// A request of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "each is the request of the same name of the daemon's API")]
pub enum Request {
    Cancel {
        tag: u32,
        array: bool,
    },
    Hold {
        tag: u32,
        move_promises: bool,
    },
    Release {
        tag: u32,
    },
    Requeue {
        tag: u32,
        move_promises: bool,
    },
    Extend {
        tag: u32,
        seconds: u32,
    },
    Pause {
        tag: u32,
        on: bool,
    },
    Signal {
        tag: u32,
    },
    /// A step of a job begins, or the step with this number ends.
    Step {
        tag: u32,
        ends: Option<u32>,
    },
    Modify {
        tag: u32,
        time: Option<u32>,
        cpus: Option<u64>,
        before: Option<u32>,
        move_promises: bool,
    },
    Resize {
        tag: u32,
        cpus: u64,
    },
    Reserve {
        name: u8,
        cpus: u64,
        from: i64,
        to: i64,
    },
    RemoveReservation {
        name: u8,
    },
    Drain {
        on: bool,
    },
    Quote {
        cpus: u64,
        time: u32,
    },
    Preview {
        tag: u32,
    },
    Pools,
    Limits,
}

impl Request {
    /// Returns the tag of the jobs that it is about.
    pub(crate) fn tag(&self) -> Option<u32> {
        match *self {
            Request::Cancel { tag, .. }
            | Request::Hold { tag, .. }
            | Request::Release { tag }
            | Request::Requeue { tag, .. }
            | Request::Extend { tag, .. }
            | Request::Pause { tag, .. }
            | Request::Signal { tag }
            | Request::Step { tag, .. }
            | Request::Modify { tag, .. }
            | Request::Resize { tag, .. }
            | Request::Preview { tag } => Some(tag),
            _ => None,
        }
    }
}

/// A submission of a user, with the habits of its processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of a submission")]
pub struct Wish {
    /// The queue, by place in the configuration; from 100 on, a reservation.
    pub queue: usize,
    /// Processors; of a resizable job the most.
    pub cpus: u64,
    /// The least processors of a resizable job.
    pub resizable: Option<u64>,
    /// Whether a signal tells it of other processors.
    pub resize_signal: bool,
    /// Memory in bytes, if it is not a little.
    pub memory: Option<u64>,
    /// GPUs.
    pub gpus: u64,
    /// The type of the GPUs, if it is not any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// The share of the memory of one GPU instead, GiB.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpu_share: u64,
    /// Time limit, seconds.
    pub time: u32,
    /// Earliest start, ticks from now.
    pub begin: Option<i64>,
    /// Latest end, ticks from now.
    pub deadline: Option<i64>,
    /// Longest wait, in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<i64>,
    /// Whether it runs on past its limit while no other job needs its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overrun: bool,
    /// Conditions on other submissions.
    pub after: Vec<(Condition, u32)>,
    /// Members of an array; 0 is no array.
    pub members: u32,
    /// The most members that run at a time.
    pub at_a_time: Option<u32>,
    /// Whether it runs again after a loss.
    pub restartable: bool,
    /// How often it runs again after a failure.
    pub retry: u32,
    /// Whether it may run ahead of its window.
    pub early: bool,
    /// Whether it is held at first.
    pub hold: bool,
    /// The habits of its runs, in order; the last one is repeated.
    pub runs: Vec<Habit>,
}

/// A condition on another submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Any end.
    Any,
    /// A success.
    Ok,
    /// A failure.
    NotOk,
}

/// The behaviour of a run of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Habit {
    /// The time for which it computes, in ticks.
    pub ticks: i64,
    /// Its exit code.
    pub code: i32,
    /// Whether it ignores the request to end.
    #[serde(default)]
    pub stubborn: bool,
    /// The signal by which it ends instead, if it is not 0.
    #[serde(default)]
    pub signal: u8,
    /// The time for which a child of it lives on, in ticks.
    #[serde(default)]
    pub leaves: i64,
    /// The version of its shim, if it is an earlier one: 0 or 1.
    #[serde(default)]
    pub version: Option<u32>,
    /// The prolog of its queue, if there is one.
    #[serde(default)]
    pub prolog: Option<ProgramHabit>,
    /// The epilog of its queue, if there is one.
    #[serde(default)]
    pub epilog: Option<ProgramHabit>,
    /// Whether its output blocks, so that its command never begins.
    #[serde(default)]
    pub blocks: bool,
    /// The checkpoint command of its queue, if there is one.
    #[serde(default)]
    pub checkpoint: Option<ProgramHabit>,
    /// Whether it waits and uses no processor time.
    #[serde(default)]
    pub lazy: bool,
}

/// The behaviour of a program of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramHabit {
    /// The time that it takes, in ticks.
    pub ticks: i64,
    /// Its exit code.
    pub code: i32,
}

/// The configuration of the machine and its queues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSetup {
    /// The queues: policy and processors of the pool.
    pub queues: Vec<(String, u64)>,
    /// GPUs, all in the first pool.
    pub gpus: u64,
    /// Whether the last of them is of another type, and the others are given in shares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpu_types: bool,
    /// Whether idle resources go to jobs ahead of their windows.
    pub opportunistic: bool,
    /// Time after a window until its resources are free, ticks.
    pub cleanup: i64,
    /// Time from the request to end to the end by force, ticks.
    pub grace: i64,
    /// Time from the planned start to the latest start that is promised, ticks.
    pub slack: i64,
    /// The most jobs of each user in ledgers.
    #[serde(default)]
    pub user_jobs: Option<u64>,
    /// The most processors of the jobs of each user in ledgers.
    #[serde(default)]
    pub user_cpus: Option<u64>,
    /// Whether shims wait for the windows of promised jobs.
    #[serde(default)]
    pub waits: bool,
    /// The time after which a job is idle, ticks, and whether it is ended then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<(i64, bool)>,
}

/// A script: a machine, and the steps of its life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The first configuration.
    pub machine: MachineSetup,
    /// Whether the journal is the store of the daemon, in a folder.
    #[serde(default)]
    pub stored: bool,
    /// Whether each attempt has a control group.
    #[serde(default)]
    pub groups: bool,
    /// Whether the rules hold, too, that are not complete yet: of replays and of reservations.
    #[serde(default)]
    pub wide: bool,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// Returns the script as JSON, a step on each line.
    pub fn to_json(&self) -> String {
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        let steps = self.steps.iter().map(|step| json(serde_json::to_string(step))).collect::<Vec<_>>();
        let machine = json(serde_json::to_string(&self.machine));
        let stored = if self.stored { "\"stored\":true,\n" } else { "" };
        let groups = if self.groups { "\"groups\":true,\n" } else { "" };
        let wide = if self.wide { "\"wide\":true,\n" } else { "" };
        format!("{{\"machine\":{machine},\n{stored}{groups}{wide}\"steps\":[\n{}\n]}}\n", steps.join(",\n"))
    }
}

/// A span in seconds, as text.
struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seconds(ticks) = *self;
        let sign = if ticks < 0 { "-" } else { "" };
        let ticks = ticks.unsigned_abs();
        let text = format!("{sign}{}.{:06}", ticks / 1_000_000, ticks % 1_000_000);
        write!(f, "{} s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Wait { ticks } => write!(f, "{} pass", Seconds(*ticks)),
            Step::Submit { tag, user, wish } => write!(f, "user {user} submits #{tag}: {wish}"),
            Step::Request { user, request } => write!(f, "user {user}: {request:?}"),
            Step::Stop => write!(f, "the daemon is stopped by a signal"),
            Step::Start => write!(f, "a daemon begins"),
            Step::Kill { after: 0 } => write!(f, "the daemon is killed"),
            Step::Kill { after } => write!(f, "the daemon is killed after {after} more effects"),
            Step::Stall { ticks } => write!(f, "the daemon stalls for {}", Seconds(*ticks)),
            Step::Reboot { ticks } => write!(f, "the power fails for {}", Seconds(*ticks)),
            Step::ShutDown { patience, daemon_first, ticks } => {
                let order = if *daemon_first { "after" } else { "before" };
                let (patience, ticks) = (Seconds(*patience), Seconds(*ticks));
                write!(f, "the machine shuts down {order} its daemon, in {patience}, for {ticks}")
            }
            Step::SetWall { by } => write!(f, "the wall clock is set by {}", Seconds(*by)),
            Step::Full { on: true, only_attempts: false } => write!(f, "the disk is full"),
            Step::Full { on: true, only_attempts: true } => write!(f, "the disk is full for attempts"),
            Step::Full { on: false, .. } => write!(f, "the disk has room"),
            Step::FailCommit { stored } => {
                write!(f, "the next commit fails and is {}on disk", if *stored { "" } else { "not " })
            }
            Step::KillShim { tag } => write!(f, "the shim of #{tag} is killed"),
            Step::StopShim { tag, on: true } => write!(f, "the shim of #{tag} is stopped"),
            Step::StopShim { tag, on: false } => write!(f, "the shim of #{tag} continues"),
            Step::SignalMain { tag, signal } => write!(f, "the main process of #{tag} receives {signal:?}"),
            Step::Soon { ticks, event } => write!(f, "in {}: {event:?}", Seconds(*ticks)),
            Step::Reload { machine } => write!(f, "the configuration becomes {machine}"),
            Step::TearCommit { part } => {
                write!(f, "the daemon is killed in the next commit, after {part} thousandths of its bytes")
            }
            Step::FailOpen => write!(f, "the store fails when it is opened next"),
            Step::BackUp => write!(f, "the state is copied"),
            Step::Restore { sweep: true } => write!(f, "the copy is restored, with --sweep"),
            Step::Restore { sweep: false } => write!(f, "the copy is restored"),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}, {} cpus, {} s", self.queue, self.cpus, self.time)?;
        if let Some(least) = self.resizable {
            let signal = if self.resize_signal { ", with a signal" } else { "" };
            write!(f, ", resizable from {least}{signal}")?;
        }
        if let Some(memory) = self.memory {
            write!(f, ", {memory} B of memory")?;
        }
        if self.gpus > 0 {
            write!(f, ", {} GPUs {}", self.gpus, self.gpu_type.as_deref().unwrap_or("of any type"))?;
        }
        if self.gpu_share > 0 {
            write!(f, ", {} GiB of a GPU", self.gpu_share)?;
        }
        let times =
            [("begin in", self.begin), ("deadline in", self.deadline), ("start within", self.start_within)];
        for (what, ticks) in times {
            if let Some(ticks) = ticks {
                write!(f, ", {what} {}", Seconds(ticks))?;
            }
        }
        for (condition, tag) in &self.after {
            write!(f, ", after {condition:?} #{tag}")?;
        }
        if self.members > 0 {
            write!(f, ", array of {}", self.members)?;
        }
        if let Some(most) = self.at_a_time {
            write!(f, ", {most} at a time")?;
        }
        let words = [
            ("restartable", self.restartable),
            ("early", self.early),
            ("held", self.hold),
            ("runs past its limit", self.overrun),
        ];
        for (word, _) in words.into_iter().filter(|(_, is)| *is) {
            write!(f, ", {word}")?;
        }
        if self.retry > 0 {
            write!(f, ", retry {}", self.retry)?;
        }
        for habit in &self.runs {
            write!(f, "; computes {}, exit {}", Seconds(habit.ticks), habit.code)?;
            if habit.stubborn {
                write!(f, ", ignores TERM")?;
            }
            if habit.lazy {
                write!(f, " lazily")?;
            }
            if habit.signal > 0 {
                write!(f, ", dies of signal {}", habit.signal)?;
            }
            if habit.leaves > 0 {
                write!(f, ", leaves a child for {}", Seconds(habit.leaves))?;
            }
            if let Some(version) = habit.version {
                write!(f, ", with a shim of version {version}")?;
            }
            let programs =
                [("prolog", habit.prolog), ("epilog", habit.epilog), ("checkpoint", habit.checkpoint)];
            for (name, program) in programs {
                if let Some(ProgramHabit { ticks, code }) = program {
                    write!(f, ", {name} of {} with exit {code}", Seconds(ticks))?;
                }
            }
            if habit.blocks {
                write!(f, ", its output blocks")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for MachineSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (policy, cpus) in &self.queues {
            write!(f, "{policy} on {cpus} cpus, ")?;
        }
        write!(f, "{} GPUs{}, ", self.gpus, if self.gpu_types { " of two types" } else { "" })?;
        let early = if self.opportunistic { "" } else { "no " };
        write!(f, "{early}early runs, cleanup {}, grace {}", Seconds(self.cleanup), Seconds(self.grace))?;
        write!(f, ", slack {}", Seconds(self.slack))?;
        for (most, what) in [(self.user_jobs, "jobs"), (self.user_cpus, "processors")] {
            if let Some(most) = most {
                write!(f, ", {most} {what} of a user")?;
            }
        }
        if let Some((after, ends)) = self.idle {
            write!(f, ", idle after {}: {}", Seconds(after), if ends { "end" } else { "warn" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = if self.stored { ", with a store" } else { "" };
        let groups = if self.groups { ", with control groups" } else { "" };
        writeln!(f, "machine: {}{store}{groups}", self.machine)?;
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:4}. {step}", number + 1)?;
        }
        Ok(())
    }
}
