//! `miserly show`: a job's state, its promise, and the reasons why it waits.

use std::path::Path;
use std::process::ExitCode;

use miserly_api::model::{
    Exit, Failure, ForecastView, JobView, KilledBy, LostBy, Overdue, OverdueCause, Phase, PromiseChange,
    PromiseChangeReason, PromiseView, Slots, Usage, UsageSource, WaitReason,
};
use miserly_units::{duration, duration_rounded, memory, span_of_seconds};

use super::text::{counted, jobs, local, numbers, plain};
use super::{client, print_answer};
use crate::args::JobArgs;

pub(crate) fn run(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let job = client(&args.daemon)?.job(args.job)?;
    print_answer(args.json, &job, || shown(&job))?;
    Ok(ExitCode::SUCCESS)
}

fn shown(job: &JobView) -> String {
    let array = match (job.array, job.index) {
        (Some(array), Some(index)) => format!(", index {index} of the array {array}"),
        _ => String::new(),
    };
    let mut text = format!("job {}: {}{array}\n", job.number, plain(&job.name));
    let mut line = |key: &str, value: &str| text.push_str(&format!("  {key:<10} {value}\n"));
    line("state", &summary(job));
    if let Some(overdue) = &job.overdue {
        line("overdue", &overdue_text(overdue));
    }
    if let Some(how) = &job.capacity_lost {
        line("capacity lost", how);
    }
    if let Some(slots) = &job.slots {
        line("slots", &share(slots));
    }
    for reason in &job.reasons {
        line("waits", &why(reason));
    }
    match &job.promise {
        Some(promise) => promise_lines(promise, &mut line),
        None if !is_over(&job.phase) => {
            line(
                "promised",
                "no promise: the job is held or waits for another job, or the queue makes no promises",
            );
        }
        None => {}
    }
    if let Some(forecast) = &job.forecast {
        line("likely", &likely(forecast));
    }
    if let Some(planned) = job.planned {
        line("planned", &format!("{}; not a promise", local(planned)));
    }
    if let Some(late) = job.late {
        line(
            "late",
            &format!("by {}: {}", duration_rounded(span_of_seconds(late.by)), change_reason(late.why)),
        );
    }
    line("request", &request(job));
    for (key, value) in detail_lines(job) {
        line(key, &value);
    }
    line(
        "of",
        &format!(
            "{} ({}), in {}, submitted {}",
            plain(&job.user),
            job.uid,
            plain(&job.queue),
            local(job.submitted)
        ),
    );
    if job.attempts > 1 {
        line("attempts", &job.attempts.to_string());
    }
    if let Some(used) = &job.usage {
        line("used", &usage(&used.total));
        for one in used.attempts.iter().filter(|_| used.attempts.len() > 1) {
            line("  attempt", &format!("{}: {}", one.attempt, usage(&one.usage)));
        }
    }
    if !job.unenforced.is_empty() {
        line("unenforced", &job.unenforced.join(", "));
    }
    text
}

/// Returns the likely start of a job in words.
pub(super) fn likely(forecast: &ForecastView) -> String {
    let ForecastView { median, by_80, by_95, .. } = *forecast;
    format!(
        "{}, by {} in 80 % and by {} in 95 % of cases, which is no promise",
        local(median),
        local(by_80),
        local(by_95)
    )
}

/// Returns the resources that a job used.
fn usage(used: &Usage) -> String {
    let time = |seconds: f64| duration_rounded(span_of_seconds(seconds));
    let mut parts = vec![format!(
        "{} of cpu time ({} user, {} system)",
        time(used.user + used.system),
        time(used.user),
        time(used.system)
    )];
    let of = match used.source {
        UsageSource::ControlGroup => "",
        UsageSource::Processes => " in its largest process",
    };
    parts.extend(used.memory_peak.map(|bytes| format!("at most {} of memory{of}", memory(bytes))));
    parts.extend(used.io_read.map(|bytes| format!("{} read", memory(bytes))));
    parts.extend(used.io_written.map(|bytes| format!("{} written", memory(bytes))));
    match used.stops {
        0 => {}
        1 => parts.push("stopped once".to_owned()),
        times => parts.push(format!("stopped {times} times")),
    }
    parts.join(", ")
}

/// Returns a sentence for the state of a job.
pub(super) fn summary(job: &JobView) -> String {
    match &job.phase {
        Phase::Held => "held; `miserly release` releases it".to_owned(),
        Phase::Queued => "queued".to_owned(),
        Phase::Opportunistic { start, parked: false } => {
            format!("running opportunistically on idle resources since {}", local(*start))
        }
        Phase::Opportunistic { start, parked: true } if job.reasons.contains(&WaitReason::MemoryShort) => {
            format!("parked: memory is short; ran opportunistically from {}", local(*start))
        }
        Phase::Opportunistic { start, parked: true } => {
            format!("parked: no resources are idle; ran opportunistically from {}", local(*start))
        }
        Phase::Running(holding) if is_time_sliced(job) => format!(
            "running in time slices since {}, on cpus {}; reaches its time limit at about {} with the present slots",
            local(holding.start),
            numbers(&holding.cpus),
            local(holding.end)
        ),
        Phase::Running(holding) if job.slots.is_some() => format!(
            "running since {}, on cpus {}; reaches its time limit at {}, or later if other slots are added",
            local(holding.start),
            numbers(&holding.cpus),
            local(holding.end)
        ),
        Phase::Running(holding) => format!(
            "running since {}, on cpus {}; killed at {} at the latest",
            local(holding.start),
            numbers(&holding.cpus),
            local(holding.end)
        ),
        Phase::Suspended(holding) => format!(
            "suspended for another job; its window began at {} and ends at {}",
            local(holding.start),
            local(holding.end)
        ),
        Phase::Adopted { end, cpus } => format!(
            "adopted: it runs{}, until {}, and the state does not have it",
            on_cpus(cpus),
            end.map_or_else(|| "it ends by itself".to_owned(), local)
        ),
        Phase::Unreadable { problem, cpus } if cpus.is_empty() => {
            format!("unreadable ({}): it does not run until its record can be read", plain(problem))
        }
        Phase::Unreadable { problem, cpus } => {
            format!("unreadable ({}): its attempt runs on{}", plain(problem), on_cpus(cpus))
        }
        over => ended_text(over),
    }
}

fn on_cpus(cpus: &[u32]) -> String {
    if cpus.is_empty() { String::new() } else { format!(" on cpus {}", numbers(cpus)) }
}

/// Returns a sentence for a job that still runs after its window.
fn overdue_text(overdue: &Overdue) -> String {
    let why = match &overdue.cause {
        OverdueCause::Ending => "the daemon ends it".to_owned(),
        OverdueCause::ShimStopped => "its shim was stopped; the daemon ends it".to_owned(),
        OverdueCause::Processes { pids } => format!(
            "its processes {} do not die, as they wait in the kernel or have the rights of another user",
            numbers(pids)
        ),
    };
    format!("since {}: {why}; no other job starts on its resources", local(overdue.since))
}

/// Returns whether a job shares its processors with other slots at present.
pub(super) fn is_time_sliced(job: &JobView) -> bool {
    job.slots.as_ref().is_some_and(|slots| slots.used > 1)
}

/// Returns the share of the time in which a time-sliced job runs.
fn share(slots: &Slots) -> String {
    let share = format!("{:.1} % of the time", 100.0 * slots.fraction);
    match slots.used {
        1 => format!("in slot {}, the only one: 100 % of the time", slots.own),
        used => format!("in {} of {used} slots ({}), {share}", slots.runs_in.len(), numbers(&slots.runs_in)),
    }
}

/// Returns a sentence for the outcome of a job that has ended.
pub(super) fn ended_text(phase: &Phase) -> String {
    match phase {
        Phase::Done { start, end, exit } => {
            format!("{}, ran from {} to {}", exit_text(*exit), local(*start), local(*end))
        }
        Phase::Killed { start, end, by, .. } => {
            let ran =
                start.map_or_else(|| "never ran".to_owned(), |start| format!("ran from {}", local(start)));
            format!("{} at {}, {ran}", killed_by_text(*by), local(*end))
        }
        Phase::Failed { at, why, message } => {
            // The message is private: it has a path.
            let message = if message.is_empty() { String::new() } else { format!(": {}", plain(message)) };
            format!("failed to start at {}: {}{message}", local(*at), failure(*why))
        }
        Phase::Lost { at, why } => {
            format!("lost, found at {}: {}; its result is unknown", local(*at), lost_by_text(*why))
        }
        _ => "not ended".to_owned(),
    }
}

fn is_over(phase: &Phase) -> bool {
    phase.ended().is_some()
}

fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    }
}

const fn killed_by_text(by: KilledBy) -> &'static str {
    match by {
        KilledBy::Time => "killed at its time limit",
        KilledBy::User => "cancelled",
        KilledBy::Shutdown => "killed by the shutdown of the machine or the session",
        KilledBy::Memory => "killed because it needed more memory than it had requested",
    }
}

const fn failure(why: Failure) -> &'static str {
    match why {
        Failure::Directory => "its working folder does not exist",
        Failure::Output => "its output cannot be opened",
        Failure::Program => "the program does not exist or is not executable",
        Failure::Refused => "the policy of its queue rejects it",
        Failure::System => "the system rejected the call",
    }
}

const fn lost_by_text(why: LostBy) -> &'static str {
    match why {
        LostBy::Reboot => "the machine was rebooted",
        LostBy::Shim => "its shim was killed",
        LostBy::Restored => "the state was restored, and its attempt left no record on this machine",
    }
}

/// Prints the promise and its history.
fn promise_lines(promise: &PromiseView, line: &mut impl FnMut(&str, &str)) {
    let now = promise.now.as_ref().map_or_else(
        || "no start is promised any more".to_owned(),
        |now| format!("starts by {}, resources reserved until {}", local(now.start), local(now.end)),
    );
    line("promised", &now);
    if let Some(broken) = promise.broken {
        line("broken", change_reason(broken));
    }
    let shown = |change: &PromiseChange| {
        let start =
            change.start.map_or_else(|| "no start".to_owned(), |at| format!("starts by {}", local(at)));
        format!("at {}: {start} ({})", local(change.at), change_reason(change.why))
    };
    for change in &promise.history {
        line("  promised", &shown(change));
    }
}

const fn change_reason(why: PromiseChangeReason) -> &'static str {
    match why {
        PromiseChangeReason::Submitted => "submitted",
        PromiseChangeReason::Earlier => "another job freed resources",
        PromiseChangeReason::Overdue => "a running job is overdue",
        PromiseChangeReason::Away => "the daemon did not run or stalled, or the machine was suspended",
        PromiseChangeReason::Shutdown => "the machine or the session shut down",
        PromiseChangeReason::Capacity => "the machine lost capacity",
        PromiseChangeReason::Amended => "another request was amended",
        PromiseChangeReason::Lost => "its attempt was lost, and it runs again",
        PromiseChangeReason::Stopped => "its queue was stopped after a mistake of its policy",
        PromiseChangeReason::Held => "the job was held",
        PromiseChangeReason::Released => "the job was released",
        PromiseChangeReason::Requeued => "its user requested another run",
    }
}

fn why(why: &WaitReason) -> String {
    match why {
        WaitReason::Held => "the job is held".to_owned(),
        WaitReason::Begin { at } => format!("its earliest start is {}", local(*at)),
        WaitReason::After { jobs: others } => {
            format!("for {} {} to end", if others.len() == 1 { "job" } else { "jobs" }, jobs(others))
        }
        WaitReason::Resources { kind, requested, free } if kind == "memory" => {
            format!("it requests {} of memory; {} are free", memory(*requested), memory(*free))
        }
        WaitReason::Resources { kind, .. } if kind == "slots" => {
            "its processors are in use in every slot, and no slot may be added".to_owned()
        }
        WaitReason::Resources { kind, requested, free } => {
            format!("it requests {requested} {kind}; {free} are free")
        }
        WaitReason::Reserved => "the free resources are reserved for other jobs".to_owned(),
        WaitReason::MemoryShort => {
            "the memory of the machine is short; its window is not affected".to_owned()
        }
    }
}

fn request(job: &JobView) -> String {
    let mut parts = vec![counted(job.cpus, "cpu"), memory(job.memory), duration(span_of_seconds(job.time))];
    parts.extend(job.begin.map(|begin| format!("not before {}", local(begin))));
    parts.extend(job.deadline.map(|deadline| format!("end by {}", local(deadline))));
    if !job.after.is_empty() {
        parts.push(format!("after {}", jobs(&job.after)));
    }
    if job.restartable {
        parts.push("restartable".to_owned());
    }
    if !job.opportunistic {
        parts.push("not opportunistic".to_owned());
    }
    parts.join(", ")
}

/// Returns the lines of the command and the paths, or the reason why there are none.
fn detail_lines(job: &JobView) -> Vec<(&'static str, String)> {
    let path = |path: &Path| plain(&path.display().to_string());
    let (Some(command), Some(directory), Some(output), Some(error)) =
        (&job.command, &job.directory, &job.output, &job.error)
    else {
        return vec![("runs", "private; shown to the job's user, root and the daemon's user".to_owned())];
    };
    let words: Vec<String> = command.iter().map(|word| plain(word)).collect();
    let script = if job.script { "its script " } else { "" };
    let command = format!("{script}{}", words.join(" ")).trim_end().to_owned();
    let mut lines = vec![("runs", command), ("in", path(directory)), ("output", path(output))];
    if error != output {
        lines.push(("errors", path(error)));
    }
    lines
}
