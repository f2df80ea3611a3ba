//! Replies of every form.

use std::collections::BTreeMap;

use jiff::Timestamp;
use miserly_api::model::{
    Accepted, AdoptedAttempt, AtRisk, AttemptUsage, ChangedJobs, ConfigurationReading, CriticalPriority,
    DaemonEvent, Exit, Failure, ForecastRecord, ForecastView, ForecastsEvent, GroupUsage, JobAllocation,
    JobForecast, JobRef, JobUsage, JobView, JobsEvent, JudgedPromise, Judgement, KilledBy, LateStart,
    LimitUnit, LimitUse, LimitsReport, LostBy, Mail, MailEvent, MissedPromise, MovedPromise, Moves,
    NoPromise, Overdue, OverdueCause, Phase, Pool, Pools, Pressure, PressureOn, Problem, ProblemCode,
    PromiseChange, PromiseChangeReason, PromiseView, QueueStatus, Quote, RefusedJobs, Reservation,
    ReservedTime, ShadowGroup, ShadowReport, ShadowView, SharedCpus, SkippedJobs, Slice, Slots, SlurmTables,
    Stall, StartReason, StateDamage, Status, StepEnd, StepNumber, StepView, Unenforced, Usage, UsageSource,
    UserUsage, WaitReason, WhatIfAnswer, WhatIfDifference, WhatIfJob, Window,
};

/// Returns an instant, by minutes.
pub(crate) fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + 60 * minute).expect("an instant")
}

pub(crate) fn window() -> Window {
    Window { start: at(10), end: at(20) }
}

pub(crate) fn moves() -> Moves {
    let moved = |job, after| MovedPromise { job, before: at(5), after };
    let moved = vec![moved(8, Some(at(7))), moved(9, None)];
    Moves { job: 7, before: Some(window()), after: None, moved, count: 2, over: vec![10] }
}

pub(crate) fn accepted() -> Vec<Accepted> {
    vec![
        Accepted {
            number: 1,
            index: None,
            promise: Some(window()),
            no_promise: None,
            start_by: Some(at(9)),
            started: false,
        },
        Accepted {
            number: 2,
            index: Some(3),
            promise: None,
            no_promise: Some(NoPromise::Place),
            start_by: None,
            started: true,
        },
    ]
}

pub(crate) fn changed() -> ChangedJobs {
    let problem = Problem::new(ProblemCode::Forbidden, "job 7 is another user's");
    let range: JobRef = "1[3-5,8]".parse().expect("a range");
    ChangedJobs {
        jobs: vec![1, 2, 3],
        refused: vec![RefusedJobs { jobs: vec![JobRef::Range(7, 9)], problem }],
        skipped: vec![SkippedJobs { range, count: 2 }],
    }
}

/// Returns jobs with every field, in every state.
pub(crate) fn jobs() -> Vec<JobView> {
    let numbered = phases().into_iter().zip(1..);
    numbered.map(|(phase, number)| job(number, phase)).chain([bare(99)]).collect()
}

fn phases() -> Vec<Phase> {
    let holding = JobAllocation { start: at(10), end: at(20), cpus: vec![0, 3] };
    let killed =
        |by, exit| Phase::Killed { start: Some(at(10)), end: at(20), by, exit, cpu_ranges: vec![(0, 3)] };
    vec![
        Phase::Held,
        Phase::Queued,
        Phase::Opportunistic { start: at(1), parked: true },
        Phase::Running(holding.clone()),
        Phase::Suspended(holding),
        Phase::Done { start: at(10), end: at(12), exit: Exit::Code(3), cpu_ranges: vec![(0, 3), (7, 7)] },
        Phase::Done { start: at(10), end: at(12), exit: Exit::Signal(11), cpu_ranges: vec![] },
        killed(KilledBy::Time, Some(Exit::Signal(15))),
        killed(KilledBy::Shutdown, Some(Exit::Code(3))),
        Phase::Killed { start: None, end: at(20), by: KilledBy::User, exit: None, cpu_ranges: vec![] },
        Phase::Failed { at: at(10), why: Failure::Directory, message: "no such folder".to_owned() },
        Phase::Failed { at: at(10), why: Failure::Dependency, message: "job 7 was cancelled".to_owned() },
        Phase::Failed { at: at(10), why: Failure::NotInTime, message: "it had not started".to_owned() },
        killed(KilledBy::Idle, Some(Exit::Signal(15))),
        Phase::Lost { at: at(10), why: LostBy::Reboot },
    ]
}

fn used(stops: u32) -> Usage {
    let source = if stops == 0 { UsageSource::Processes } else { UsageSource::ControlGroup };
    let io = (stops > 0).then_some(4096);
    Usage { user: 1.5, system: 0.25, memory_peak: Some(1 << 20), io_read: io, io_written: io, stops, source }
}

fn job(number: i64, phase: Phase) -> JobView {
    let change = |minute, why| PromiseChange { at: at(minute), start: Some(at(10 - minute)), why };
    JobView {
        array: Some(1),
        index: Some(0),
        begin: Some(at(1)),
        deadline: Some(at(100)),
        start_by: Some(at(5)),
        start_reason: Some(StartReason::Backfilled),
        overrun_if_idle: true,
        overrun: Some(60.0),
        idle_since: Some(at(3)),
        after: vec![7],
        after_ok: vec![7],
        after_not_ok: vec![7],
        promise: Some(PromiseView {
            promised: window(),
            now: Some(window()),
            at_risk: Some(AtRisk { by: Some(1.5), why: PromiseChangeReason::Capacity }),
            history: vec![
                change(0, PromiseChangeReason::Submitted),
                change(1, PromiseChangeReason::Earlier),
                change(2, PromiseChangeReason::Retried),
            ],
        }),
        planned: Some(at(9)),
        forecast: Some(ForecastView { made: at(0), median: at(4), by_80: Some(at(6)), by_95: Some(at(9)) }),
        reasons: vec![
            WaitReason::Held,
            WaitReason::Begin { at: at(1) },
            WaitReason::After { jobs: vec![7] },
            WaitReason::ArrayLimit { limit: 4 },
            WaitReason::UserLimit { limit: "students.cpus".to_owned(), most: 32 },
            WaitReason::Resources { kind: "cpus".to_owned(), requested: 4, free: 2 },
            WaitReason::Reserved,
            WaitReason::Reservation { name: "course".to_owned(), from: at(2), to: at(4) },
            WaitReason::MemoryShort,
        ],
        slots: Some(Slots { own: 1, runs_in: vec![1, 2], used: 3, fraction: 2.0 / 3.0 }),
        judged: vec![JudgedPromise {
            promised: at(2),
            judgement: Judgement::Lost,
            by: Some(1.5),
            why: Some(PromiseChangeReason::Overdue),
        }],
        late: Some(LateStart { by: 1.5, why: PromiseChangeReason::Away }),
        overdue: Some(Overdue { since: at(20), cause: OverdueCause::Processes { pids: vec![77, 78] } }),
        paused: true,
        comment: Some("run 7, after the repair".to_owned()),
        mail: Some(Mail { on: vec![MailEvent::End], to: Some("ada@example.org".to_owned()) }),
        gpus: 2,
        gpu_type: Some("a100".to_owned()),
        gpu_memory: Some(40 << 30),
        gpu_share: true,
        has_gpus: vec![0, 3],
        capacity_lost: Some("1 of 4 processors are offline, or adopted jobs have them".to_owned()),
        epilog_failed: Some("exit 4".to_owned()),
        written_out: true,
        write_out_failed: Some("killed after 50 s".to_owned()),
        retried: vec![75],
        usage: Some(JobUsage { total: used(3), attempts: vec![AttemptUsage { attempt: 2, usage: used(0) }] }),
        tasks: Some(2),
        array_limit: Some(4),
        steps: vec![StepView {
            step: 1,
            name: "solve".to_owned(),
            tasks: 2,
            cpus: 4,
            started: at(3),
            limit: Some(60),
            ended: Some(StepEnd { at: at(4), exit: Exit::Signal(9), by_time: true }),
        }],
        unenforced: vec!["memory".to_owned()],
        phase,
        ..bare(number)
    }
}

/// Returns the number of a step.
pub(crate) fn step() -> StepNumber {
    StepNumber { step: 1 }
}

/// Returns a job without optional fields.
fn bare(number: i64) -> JobView {
    JobView {
        number,
        name: "tuple-count".to_owned(),
        uid: 1000,
        user: "ada".to_owned(),
        queue: "batch".to_owned(),
        cpus: 4,
        memory: 100 << 20,
        time: 600.0,
        command: Some(vec!["./tuple-count".to_owned()]),
        directory: Some("/home/ada".into()),
        output: Some("/home/ada/1.out".into()),
        error: Some("/home/ada/1.out".into()),
        submitted: at(0),
        opportunistic: true,
        ..JobView::default()
    }
}

/// Returns events, with their text in a stream.
pub(crate) fn events() -> Vec<(DaemonEvent, String)> {
    let text = |name: &str, data: String| format!("event: {name}\ndata: {data}\n\n");
    let jobs = JobsEvent { journal: 7, jobs: jobs(), gone: vec![] };
    let change = JobsEvent { journal: 8, jobs: vec![bare(9)], gone: vec![5, 6] };
    let forecast = ForecastView { made: at(0), median: at(4), by_80: Some(at(6)), by_95: Some(at(9)) };
    let forecasts = ForecastsEvent { forecasts: vec![JobForecast { job: 9, forecast }] };
    let json = |data: &dyn Fn() -> serde_json::Result<String>| data().expect("JSON");
    vec![
        (DaemonEvent::Snapshot(jobs.clone()), text("snapshot", json(&|| serde_json::to_string(&jobs)))),
        (DaemonEvent::Change(change.clone()), text("change", json(&|| serde_json::to_string(&change)))),
        (
            DaemonEvent::Forecasts(forecasts.clone()),
            text("forecasts", json(&|| serde_json::to_string(&forecasts))),
        ),
    ]
}

pub(crate) fn what_if() -> WhatIfAnswer {
    let difference = WhatIfDifference { median: 60.0, least: 0.0, largest: 120.0 };
    WhatIfAnswer {
        queue: "batch".to_owned(),
        futures: 20,
        quote: Some(Quote {
            windows: vec![Some(window())],
            forecast: Some(ForecastView {
                made: at(0),
                median: at(4),
                by_80: Some(at(6)),
                by_95: Some(at(9)),
            }),
        }),
        jobs: vec![WhatIfJob { number: 3, before: at(4), after: at(5), difference }],
        not_compared: 1,
        mean: Some(difference),
    }
}

pub(crate) fn shadow() -> ShadowReport {
    let group = |name: &str| ShadowGroup {
        name: name.to_owned(),
        jobs: 2,
        mean_wait: Some(60.0),
        shadow_mean_wait: Some(30.5),
        earlier: 1,
        ..ShadowGroup::default()
    };
    let shadow = ShadowView {
        queue: "batch".to_owned(),
        policy: "easy".to_owned(),
        real_policy: Some("miser".to_owned()),
        since: at(0),
        until: Some(at(8)),
        behind: 3,
        waits_for: Some(7),
        problem: None,
        all: group("all"),
        days: vec![group("2026-03-01")],
        users: vec![ShadowGroup { uid: Some(7), ..group("ann") }],
        sizes: vec![group("2-4")],
    };
    ShadowReport { shadows: vec![shadow] }
}

pub(crate) fn reservation() -> Reservation {
    Reservation {
        name: "course".to_owned(),
        queue: Some("batch".to_owned()),
        give_to: Some("night".into()),
        cpus: 8,
        memory: Some(1 << 30),
        gpus: 1,
        users: vec!["ada".to_owned()],
        groups: vec!["students".to_owned()],
        policy: Some("conservative".to_owned()),
        times: vec![ReservedTime { from: at(2), to: at(4) }],
        by: Some("root".to_owned()),
        jobs: 3,
    }
}

pub(crate) fn pools() -> Pools {
    let slice = |minute, cpus_free| Slice {
        from: at(minute),
        cpus: 8,
        cpus_free,
        memory_free: 1 << 30,
        gpus_free: 1,
    };
    Pools {
        pools: vec![Pool {
            queue: "batch".to_owned(),
            cpus: 8,
            cpu_numbers: (2..10).collect(),
            cpus_offline: vec![9],
            group_usage: vec![GroupUsage { group: "lab".to_owned(), gid: 100, share: 0.5, cpu_hours: 3.0 }],
            usage: vec![UserUsage { user: "ada".to_owned(), uid: 1000, share: 0.25, cpu_hours: 1.5 }],
            slices: vec![slice(0, 4), slice(10, 8)],
        }],
    }
}

pub(crate) fn limits() -> LimitsReport {
    let limit = |limit: &str, unit| LimitUse {
        limit: limit.to_owned(),
        together: false,
        unit,
        most: 100.0,
        used: 12.5,
        unfinished: None,
        days: None,
        less_at: None,
    };
    let hours = LimitUse {
        together: true,
        unfinished: Some(4.0),
        days: Some(30),
        less_at: Some(at(9)),
        ..limit("course.cpu-hours", LimitUnit::CpuHours)
    };
    let [jobs, bytes, cpus] = [LimitUnit::Jobs, LimitUnit::Bytes, LimitUnit::Cpus];
    let others = [limit("ann.jobs", jobs), limit("ann.bytes", bytes), limit("ann.cpus", cpus)];
    LimitsReport { user: "ann".to_owned(), uid: 1000, limits: others.into_iter().chain([hours]).collect() }
}

fn pressure() -> PressureOn {
    let stall = Some(Stall { avg10: 1.5, avg60: 0.25, avg300: 0.0 });
    PressureOn { cpu: stall, memory: stall, memory_full: stall }
}

pub(crate) fn status() -> Status {
    let queue = QueueStatus {
        name: "batch".to_owned(),
        policy: "miser".to_owned(),
        stopped: None,
        promises: "every job".to_owned(),
        cpus: 8,
        memory: Some(16 << 30),
        cpus_held: 4,
        memory_held: 100 << 20,
        gpus: 2,
        gpus_held: 1,
        default_time: Some(3600.0),
        max_time: Some(86_400.0),
        running: 1,
        waiting: 2,
    };
    Status {
        version: "0.1.0".to_owned(),
        pid: 17,
        since: at(0),
        now: at(5),
        state: "/home/ada/.local/state/miserly".to_owned(),
        configuration: Some("/home/ada/miserly.toml".to_owned()),
        configuration_problem: None,
        reading: Some(ConfigurationReading { count: 2, problem: Some("queue: there is none".to_owned()) }),
        mailer: Some(false),
        draining: false,
        waiting_shims: 3,
        needs_daemon_from: Some(at(70)),
        cpus: 16,
        shared_cpus: vec![SharedCpus { cpus: vec![1, 2], uid: 7, user: "bob".to_owned(), pid: 18 }],
        damage: vec![StateDamage {
            part: "job 3".to_owned(),
            job: Some(3),
            problem: "its checksum differs".to_owned(),
        }],
        checking: true,
        set_aside: vec![],
        adopted: vec![AdoptedAttempt {
            job: 4,
            attempt: 1,
            cpus: vec![3],
            end: Some(at(9)),
            problem: "the state does not have it".to_owned(),
        }],
        pressure: Some(Pressure { machine: pressure(), jobs: Some(PressureOn::default()) }),
        launcher: vec!["short of descriptors; 3 launches wait".to_owned()],
        queues: vec![queue],
        critical_priority: Some(CriticalPriority {
            means: "nice".to_owned(),
            sentence: "They are nice.".to_owned(),
        }),
        slurm: SlurmTables {
            partitions: BTreeMap::from([("main".to_owned(), "batch".to_owned())]),
            accounts: BTreeMap::from([("physics".to_owned(), "batch".to_owned())]),
            qos: BTreeMap::from([("debug".to_owned(), "batch".to_owned())]),
        },
        unenforced: vec![Unenforced { what: "memory".to_owned(), sentence: "It is not kept.".to_owned() }],
        promises: 9,
        kept: 2,
        late: 1,
        lost: 1,
        withdrawn: 1,
        open: 3,
        at_risk: 2,
        earlier: 1,
        broken: 1,
        missed: vec![MissedPromise {
            job: 4,
            at: at(3),
            promised: at(2),
            judgement: Judgement::Late,
            by: Some(60.0),
            why: PromiseChangeReason::Away,
        }],
        forecasts: Some(ForecastRecord { audited: 40, kept_50: 21, kept_80: 33, kept_95: 39 }),
    }
}
