//! `miserly show`: a job's state, its promise, and the reasons why it waits.

use std::process::ExitCode;

use miserly_api::model::{
    Exit, Failure, JobView, KilledBy, LostBy, Phase, PromiseChange, PromiseChangeReason, PromiseView, Slots,
    WaitReason,
};
use miserly_units::{duration, duration_rounded, memory, span_of_seconds};

use super::text::{counted, jobs, local, numbers, plain};
use super::{client, tell};
use crate::args::JobArgs;

pub(crate) fn run(args: &JobArgs) -> anyhow::Result<ExitCode> {
    let job = client(&args.daemon)?.job(args.job)?;
    tell(args.json, &job, || shown(&job))?;
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
    if let Some(slots) = &job.slots {
        line("turns", &turns(slots));
    }
    for reason in &job.reasons {
        line("waits", &why(reason));
    }
    match &job.promise {
        Some(promise) => promised(promise, &mut line),
        None if !is_over(&job.phase) => {
            line("promised", "nothing: it is held or waits for another job, or its queue promises no start");
        }
        None => {}
    }
    if let Some(planned) = job.planned {
        line("planned", &format!("{}; binds nobody", local(planned)));
    }
    if let Some(late) = job.late {
        line(
            "late",
            &format!("by {}: {}", duration_rounded(span_of_seconds(late.by)), change_reason(late.why)),
        );
    }
    line("asks for", &asked(job));
    line("runs", &command(job));
    line("in", &plain(&job.directory.display().to_string()));
    line("output", &plain(&job.output.display().to_string()));
    if job.error != job.output {
        line("errors", &plain(&job.error.display().to_string()));
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
    if !job.unenforced.is_empty() {
        line("unenforced", &job.unenforced.join(", "));
    }
    text
}

/// Returns a word for the state of a job.
pub(super) fn state(phase: &Phase) -> &'static str {
    match phase {
        Phase::Held => "held",
        Phase::Queued => "queued",
        Phase::Opportunistic { parked: false, .. } => "opportunistic",
        Phase::Opportunistic { parked: true, .. } => "parked",
        Phase::Running(_) => "running",
        Phase::Suspended(_) => "suspended",
        Phase::Done { exit: Exit::Code(0), .. } => "done",
        Phase::Done { .. } => "done, failed",
        Phase::Killed { by: KilledBy::Time, .. } => "out of time",
        Phase::Killed { by: KilledBy::User, .. } => "cancelled",
        Phase::Failed { .. } => "not run",
        Phase::Lost { .. } => "lost",
    }
}

/// Returns a sentence for the state of a job.
pub(super) fn summary(job: &JobView) -> String {
    match &job.phase {
        Phase::Held => "held; `miserly release` lets it go on".to_owned(),
        Phase::Queued => "queued".to_owned(),
        Phase::Opportunistic { start, parked: false } => {
            format!("running ahead of its start on what is idle, since {}", local(*start))
        }
        Phase::Opportunistic { start, parked: true } => {
            format!("ran ahead of its start, since {}; stopped now, since nothing is idle", local(*start))
        }
        Phase::Running(holding) if takes_turns(job) => format!(
            "running in turns since {}, on cpus {}; as the slots are now, its time is over at about {}",
            local(holding.start),
            numbers(&holding.cpus),
            local(holding.end)
        ),
        Phase::Running(holding) if job.slots.is_some() => format!(
            "running since {}, on cpus {}; its time is over at {}, or later if others come to take turns with it",
            local(holding.start),
            numbers(&holding.cpus),
            local(holding.end)
        ),
        Phase::Running(holding) => format!(
            "running since {}, on cpus {}; ended at {} if it has not ended by then",
            local(holding.start),
            numbers(&holding.cpus),
            local(holding.end)
        ),
        Phase::Suspended(holding) => format!(
            "stopped for another job; its window began at {} and ends at {}",
            local(holding.start),
            local(holding.end)
        ),
        over => ended(over),
    }
}

/// Returns whether a job shares its processors with other slots at present.
pub(super) fn takes_turns(job: &JobView) -> bool {
    job.slots.as_ref().is_some_and(|slots| slots.used > 1)
}

/// Returns the share of the time in which a time-sliced job runs.
fn turns(slots: &Slots) -> String {
    let share = format!("{:.1} % of the time", 100.0 * slots.fraction);
    match slots.used {
        1 => format!("in slot {}, the only one: all of the time", slots.own),
        used => format!("in {} of {used} slots ({}), {share}", slots.runs_in.len(), numbers(&slots.runs_in)),
    }
}

/// Returns a sentence for the outcome of a job, or the word for the state of an unfinished one.
pub(super) fn ended(phase: &Phase) -> String {
    match phase {
        Phase::Done { start, end, exit } => {
            format!("{}, ran from {} to {}", exit_text(*exit), local(*start), local(*end))
        }
        Phase::Killed { start, end, by, .. } => {
            let ran =
                start.map_or_else(|| "never ran".to_owned(), |start| format!("ran from {}", local(start)));
            format!("{} at {}, {ran}", killed_by(*by), local(*end))
        }
        Phase::Failed { at, why, message } => {
            format!("could not be run at {}: {}: {}", local(*at), failure(*why), plain(message))
        }
        Phase::Lost { at, why } => {
            format!("lost, as was found at {}: {}; nobody knows how it ended", local(*at), lost_by(*why))
        }
        going => state(going).to_owned(),
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

const fn killed_by(by: KilledBy) -> &'static str {
    match by {
        KilledBy::Time => "ended at the end of its window: its time was over",
        KilledBy::User => "cancelled",
    }
}

const fn failure(why: Failure) -> &'static str {
    match why {
        Failure::Directory => "the folder that it is to run in is not there",
        Failure::Output => "its output cannot be opened",
        Failure::Program => "the program is not there, or cannot be run",
        Failure::Refused => "its queue's policy will never start it",
        Failure::System => "the system refused",
    }
}

const fn lost_by(why: LostBy) -> &'static str {
    match why {
        LostBy::Reboot => "the machine was started again under it",
        LostBy::Shim => "its shim was killed",
    }
}

/// Prints the promise and its history.
fn promised(promise: &PromiseView, line: &mut impl FnMut(&str, &str)) {
    let now = &promise.now;
    line("promised", &format!("starts by {}, has its resources until {}", local(now.start), local(now.end)));
    if let Some(broken) = promise.broken {
        line("broken", change_reason(broken));
    }
    let shown = |change: &PromiseChange| {
        format!("at {}: starts by {} ({})", local(change.at), local(change.start), change_reason(change.why))
    };
    for change in &promise.history {
        line("  promised", &shown(change));
    }
}

const fn change_reason(why: PromiseChangeReason) -> &'static str {
    match why {
        PromiseChangeReason::Submitted => "submitted",
        PromiseChangeReason::Earlier => "another job left room",
        PromiseChangeReason::Overdue => "a job did not end when it should have",
        PromiseChangeReason::Away => "the daemon was not there, or the machine slept",
        PromiseChangeReason::Capacity => "the machine lost capacity",
        PromiseChangeReason::Amended => "another request was amended",
    }
}

fn why(why: &WaitReason) -> String {
    match why {
        WaitReason::Held => "it is held".to_owned(),
        WaitReason::Begin { at } => format!("it is not to start before {}", local(*at)),
        WaitReason::After { jobs: others } => {
            format!("for {} {} to end", if others.len() == 1 { "job" } else { "jobs" }, jobs(others))
        }
        WaitReason::Resources { kind, requested, free } if kind == "memory" => {
            format!("it asks for {} of memory, and {} are free", memory(*requested), memory(*free))
        }
        WaitReason::Resources { kind, .. } if kind == "slots" => {
            "in each slot others are on its processors, and there may be no more slots".to_owned()
        }
        WaitReason::Resources { kind, requested, free } => {
            format!("it asks for {requested} {kind}, and {free} are free")
        }
        WaitReason::Reserved => "what is free is kept for other jobs until their starts".to_owned(),
    }
}

fn asked(job: &JobView) -> String {
    let mut parts = vec![counted(job.cpus, "cpu"), memory(job.memory), duration(span_of_seconds(job.time))];
    parts.extend(job.begin.map(|begin| format!("not before {}", local(begin))));
    parts.extend(job.deadline.map(|deadline| format!("over by {}", local(deadline))));
    if !job.after.is_empty() {
        parts.push(format!("after {}", jobs(&job.after)));
    }
    if job.restartable {
        parts.push("restartable".to_owned());
    }
    if !job.opportunistic {
        parts.push("not ahead of its start".to_owned());
    }
    parts.join(", ")
}

fn command(job: &JobView) -> String {
    let words: Vec<String> = job.command.iter().map(|word| plain(word)).collect();
    let script = if job.script { "its script " } else { "" };
    format!("{script}{}", words.join(" ")).trim_end().to_owned()
}
