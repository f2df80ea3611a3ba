//! `miserly show`: a job's state, its promise, and the reasons why it waits.

use std::cell::OnceCell;
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use miserly_api::client::find;
use miserly_api::model::{
    AtRisk, Exit, Failure, ForecastView, JobView, JudgedPromise, Judgement, KilledBy, LostBy, NoPromise,
    Overdue, OverdueCause, Phase, PromiseChange, PromiseView, Slots, Usage, UsageSource, WaitReason, Window,
    job_ranges,
};
use miserly_follow::follow;
use miserly_units::{duration, duration_rounded, memory, span_of_seconds};
use miserly_view::{Facts, Sentences, cause_text, details, job_of, promise_cause};

use super::job_lists::{self, Scope};
use super::job_requests::one_or_each;
use super::submit::no_promise_text;
use super::text::{Instants, counted, jobs, numbers, plain, ranges};
use super::{client, print_answer};
use crate::args::{DaemonArgs, JobList, JobsArgs, ShowArgs};

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let ShowArgs { jobs: JobsArgs { jobs, json, daemon }, long } = args;
    let client = client(daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(jobs), Scope::All, *json)?;
    let instants = Instants { now: Timestamp::now(), exact: *long };
    let facts = OnceCell::new();
    one_or_each(&numbers, *json, |job| {
        let job = client.job(job)?;
        let asked = !*json && waits(&job);
        let facts = if asked { facts.get_or_init(|| facts_of(daemon)).as_deref() } else { None };
        let sentence = facts.and_then(|facts| sentence(facts, job.number));
        print_answer(*json, &job, || shown(&job, sentence.as_deref(), instants))
    })
}

fn waits(job: &JobView) -> bool {
    !is_over(&job.phase) && !job.reasons.is_empty()
}

/// Returns the facts of the live views, if the daemon can still be asked.
fn facts_of(daemon: &DaemonArgs) -> Option<Arc<Facts>> {
    let following = follow(find(daemon.socket.as_deref()).ok()?).ok()?;
    Some(following.board().latest().facts)
}

/// Returns the sentence of the live views on a job: its start, and which jobs it waits for until when.
///
/// It has the reasons of the job.
fn sentence(facts: &Facts, number: i64) -> Option<String> {
    let job = facts.jobs.iter().find(|job| job.number == number)?;
    Some(Sentences::new(facts).sentence(job))
}

/// Returns the facts of a job as text. With short instants it leaves out those that are seldom wanted.
fn shown(job: &JobView, sentence: Option<&str>, instants: Instants) -> String {
    let long = instants.exact;
    let array = match (job.array, job.index) {
        (Some(array), Some(index)) => format!(", index {index} of the array {array}"),
        _ => String::new(),
    };
    let mut text = format!("job {}: {}{array}\n", job.number, plain(&job.name));
    let mut line = |key: &str, value: &str| text.push_str(&format!("  {key:<10} {value}\n"));
    line("state", &summary(job, instants));
    if let Some(sentence) = sentence {
        line("in words", sentence);
    }
    if let Some(overdue) = &job.overdue {
        line("overdue", &overdue_text(overdue, instants));
    }
    if let Some(since) = job.idle_since {
        line("idle", &format!("since {}: it uses almost no processor time", instants.text(since)));
    }
    if let Some(how) = &job.capacity_lost {
        line("capacity lost", how);
    }
    if let Some(why) = &job.set_aside {
        let next =
            format!("`miserly release {0}` tries it again, `miserly cancel {0}` gives it up", job.number);
        line("set aside", &format!("{}; {next}", plain(why)));
    }
    if let Some(why) = &job.epilog_failed {
        line("epilog", &format!("failed: {}", plain(why)));
    }
    if job.written_out {
        line(
            "memory",
            "written out: it has no process and no memory, and continues by the restart of its queue",
        );
    }
    if let Some(why) = &job.write_out_failed {
        line("checkpoint", &format!("failed: {}; the job began anew", plain(why)));
    }
    if let Some(slots) = &job.slots {
        line("slots", &share(slots));
    }
    for cause in job_of(job, 0).causes.iter().filter(|_| long || sentence.is_none()) {
        let text = |at| instants.text(Timestamp::from_millisecond(at).unwrap_or_default());
        line("why", &cause_text(cause, "", text));
    }
    match &job.promise {
        Some(promise) => promise_lines(job, promise, instants, &mut line),
        None if !is_over(&job.phase) => {
            line("promised", no_promise_text(Some(no_promise(job))));
        }
        None => {}
    }
    if let Some(forecast) = job.forecast.as_ref().filter(|_| long || sentence.is_none()) {
        line("likely", &likely(forecast, instants));
    }
    if let Some(planned) = job.planned.filter(|_| long || job.promise.is_none()) {
        line("planned", &format!("{}; not a promise", instants.text(planned)));
    }
    for judged in &job.judged {
        line("judged", &judged_text(job, judged, instants));
    }
    line("request", &request(job, instants));
    for (key, value) in details(job) {
        line(key, &value);
    }
    let uid = if long { format!(" ({})", job.uid) } else { String::new() };
    let submitted = instants.text(job.submitted);
    line("of", &format!("{}{uid}, in {}, submitted {submitted}", plain(&job.user), plain(&job.queue)));
    if job.runs > 1 {
        line("begun", &format!("{} times", job.runs));
    }
    if !job.retried.is_empty() {
        let codes: Vec<String> = job.retried.iter().map(i32::to_string).collect();
        line(
            "retried",
            &format!("after exit {} {}", if codes.len() == 1 { "code" } else { "codes" }, codes.join(", ")),
        );
    }
    if let Some(used) = &job.usage {
        line("used", &usage(&used.total));
        if let Some(efficiency) = efficiency(job, &used.total) {
            line("  that is", &efficiency);
        }
        for one in used.attempts.iter().filter(|_| long && used.attempts.len() > 1) {
            line("  attempt", &format!("{}: {}", one.attempt, usage(&one.usage)));
        }
    }
    if long && !job.unenforced.is_empty() {
        line("unenforced", &job.unenforced.join(", "));
    }
    text
}

/// Returns why a job has no promise.
fn no_promise(job: &JobView) -> NoPromise {
    let has = |is: fn(&WaitReason) -> bool| job.reasons.iter().any(is);
    // In the order of the answer to a submission.
    if has(|reason| matches!(reason, WaitReason::Held)) {
        NoPromise::Held
    } else if has(|reason| matches!(reason, WaitReason::After { .. })) {
        NoPromise::After
    } else if has(|reason| matches!(reason, WaitReason::Begin { .. })) {
        NoPromise::Begin
    } else if has(|reason| matches!(reason, WaitReason::ArrayLimit { .. } | WaitReason::UserLimit { .. })) {
        NoPromise::Place
    } else {
        NoPromise::Policy
    }
}

/// Returns how much of its request a job used in its only run.
pub(super) fn efficiency(job: &JobView, used: &Usage) -> Option<String> {
    let (start, end) = job.phase.started().zip(job.phase.ended())?;
    let ran = end.duration_since(start).as_secs_f64();
    if job.runs != 1 || ran <= 0.0 {
        return None;
    }
    let percent = |part: f64, whole: f64| format!("{:.0} %", 100.0 * part / whole.max(f64::MIN_POSITIVE));
    let mut parts = vec![format!("{} of its cpus", percent(used.user + used.system, ran * job.cpus as f64))];
    let memory = used.memory_peak.filter(|_| job.memory > 0);
    parts.extend(memory.map(|peak| format!("{} of its memory", percent(peak as f64, job.memory as f64))));
    parts.push(format!("{} of its time", percent(ran, job.time)));
    Some(parts.join(", "))
}

/// Returns the likely start of a job in words.
pub(super) fn likely(forecast: &ForecastView, instants: Instants) -> String {
    let Some([median, by_80, by_95]) = forecast.bounds().map(|bounds| bounds.map(|at| instants.text(at)))
    else {
        let median = instants.text(forecast.median);
        return format!("{median}, which is no promise; too few forecasts have come out for bounds");
    };
    format!("{median}, by {by_80} in 80 % and by {by_95} in 95 % of cases, which is no promise")
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
pub(super) fn summary(job: &JobView, instants: Instants) -> String {
    match &job.phase {
        Phase::Held => "held; `miserly release` releases it".to_owned(),
        Phase::Queued => "queued".to_owned(),
        Phase::Opportunistic { start, parked: false } => {
            format!("running opportunistically on idle resources since {}", instants.text(*start))
        }
        Phase::Opportunistic { start, parked: true } if job.reasons.contains(&WaitReason::MemoryShort) => {
            format!("parked: memory is short; ran opportunistically from {}", instants.text(*start))
        }
        Phase::Opportunistic { start, parked: true } => {
            format!("parked: no resources are idle; ran opportunistically from {}", instants.text(*start))
        }
        Phase::Running(holding) if is_time_sliced(job) => format!(
            "running in time slices since {}, on cpus {}; reaches its time limit at about {} with the present slots",
            instants.text(holding.start),
            numbers(&holding.cpus),
            instants.text(holding.end)
        ),
        Phase::Running(holding) if job.slots.is_some() => format!(
            "running since {}, on cpus {}; reaches its time limit at {}, or later if other slots are added",
            instants.text(holding.start),
            numbers(&holding.cpus),
            instants.text(holding.end)
        ),
        Phase::Running(holding) if job.paused => format!(
            "paused by its user, on cpus {}; killed at {} at the latest; `miserly resume` lets it continue",
            numbers(&holding.cpus),
            instants.text(holding.end)
        ),
        Phase::Running(holding) => format!(
            "running since {}, on cpus {}; killed at {} at the latest",
            instants.text(holding.start),
            numbers(&holding.cpus),
            instants.text(holding.end)
        ),
        Phase::Suspended(holding) => format!(
            "suspended for another job; its window began at {} and ends at {}",
            instants.text(holding.start),
            instants.text(holding.end)
        ),
        Phase::Adopted { end, cpus } => format!(
            "adopted: it runs{}, until {}, and the state does not have it",
            on_cpus(cpus),
            end.map_or_else(|| "it ends by itself".to_owned(), |end| instants.text(end))
        ),
        Phase::Unreadable { problem, cpus } if cpus.is_empty() => {
            format!("unreadable ({}): it does not run until its record can be read", plain(problem))
        }
        Phase::Unreadable { problem, cpus } => {
            format!("unreadable ({}): its attempt runs on{}", plain(problem), on_cpus(cpus))
        }
        over => {
            let cpus = over.cpus();
            let on = if cpus.is_empty() { String::new() } else { format!(", on cpus {}", ranges(&cpus)) };
            ended_text(over, instants) + &on
        }
    }
}

fn on_cpus(cpus: &[u32]) -> String {
    if cpus.is_empty() { String::new() } else { format!(" on cpus {}", numbers(cpus)) }
}

/// Returns a sentence for a job that still runs after its window.
fn overdue_text(overdue: &Overdue, instants: Instants) -> String {
    let why = match &overdue.cause {
        OverdueCause::Ending => "the daemon ends it".to_owned(),
        OverdueCause::ShimStopped => "its shim was stopped; the daemon ends it".to_owned(),
        OverdueCause::Processes { pids } => format!(
            "its processes {} do not die, as they wait in the kernel or have the rights of another user",
            numbers(pids)
        ),
    };
    format!("since {}: {why}; no other job starts on its resources", instants.text(overdue.since))
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
pub(super) fn ended_text(phase: &Phase, instants: Instants) -> String {
    match phase {
        Phase::Done { start, end, exit, .. } => {
            format!("{}, ran from {} to {}", exit_text(*exit), instants.text(*start), instants.text(*end))
        }
        Phase::Killed { start, end, by, .. } => {
            let ran = start
                .map_or_else(|| "never ran".to_owned(), |start| format!("ran from {}", instants.text(start)));
            format!("{} at {}, {ran}", killed_by_text(*by), instants.text(*end))
        }
        Phase::Failed { at, why, message } => {
            // The message is private: it has a path.
            let message = if message.is_empty() { String::new() } else { format!(": {}", plain(message)) };
            format!("failed to start at {}: {}{message}", instants.text(*at), failure(*why))
        }
        Phase::Lost { at, why } => {
            format!("lost, found at {}: {}; its result is unknown", instants.text(*at), lost_by_text(*why))
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
        KilledBy::Idle => "ended because it used almost no processor time",
    }
}

const fn failure(why: Failure) -> &'static str {
    match why {
        Failure::Directory => "its working folder does not exist",
        Failure::Input => "its input file cannot be opened",
        Failure::Output => "its output cannot be opened",
        Failure::Program => "the program does not exist or is not executable",
        Failure::Prolog => "prolog failed",
        Failure::Refused => "the policy of its queue rejects it",
        Failure::Dependency => "a job that it waits for did not end as required",
        Failure::NotInTime => "it did not start in time",
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
fn promise_lines(
    job: &JobView,
    promise: &PromiseView,
    instants: Instants,
    line: &mut impl FnMut(&str, &str),
) {
    let by = |window: &Window| {
        format!(
            "starts by {}, resources reserved until {}",
            instants.text(window.start),
            instants.text(window.end)
        )
    };
    line("promised", &by(&promise.promised));
    let has_begun = job.phase.started().is_some() && !matches!(job.phase, Phase::Opportunistic { .. });
    match &promise.now {
        _ if has_begun || is_over(&job.phase) => {}
        None => line("plan", "no start is planned any more"),
        Some(now) if *now != promise.promised => line("plan", &by(now)),
        Some(_) => {}
    }
    if let Some(risk) = promise.at_risk {
        line("at risk", &risk_text(risk));
    }
    let shown = |change: &PromiseChange| {
        let start = change
            .start
            .map_or_else(|| "no start".to_owned(), |at| format!("starts by {}", instants.text(at)));
        format!("at {}: {start} ({})", instants.text(change.at), promise_cause(change.why))
    };
    if instants.exact {
        promise.history.iter().for_each(|change| line("  plan", &shown(change)));
    } else if let [first, .., last] = &*promise.history {
        line("  at first", &shown(first));
        line("  last", &format!("{} of {}", shown(last), counted(promise.history.len() as u64, "plan")));
    }
}

/// Returns how far the plan is behind a promise, and why.
fn risk_text(risk: AtRisk) -> String {
    let by = risk.by.map(|by| format!("planned {} later: ", duration_rounded(span_of_seconds(by))));
    format!("{}{}", by.unwrap_or_default(), promise_cause(risk.why))
}

/// Returns a judged promise in words.
fn judged_text(job: &JobView, judged: &JudgedPromise, instants: Instants) -> String {
    let why = judged.why.map(|why| format!(": {}", promise_cause(why))).unwrap_or_default();
    let judgement = match judged.judgement {
        Judgement::Kept => "kept".to_owned(),
        Judgement::Late => {
            format!("late by {}{why}", duration_rounded(span_of_seconds(judged.by.unwrap_or_default())))
        }
        Judgement::Lost => format!("lost, no start{why}"),
        Judgement::Withdrawn if matches!(job.phase, Phase::Failed { why: Failure::NotInTime, .. }) => {
            "given up by then, as its user requested".to_owned()
        }
        Judgement::Withdrawn => "withdrawn by its user".to_owned(),
    };
    format!("a start by {}: {judgement}", instants.text(judged.promised))
}

fn request(job: &JobView, instants: Instants) -> String {
    let cpus = match (job.resizable, job.wanted) {
        (Some(least), Some(wanted)) if wanted < job.cpus => {
            format!("{least} to {} (wants {wanted} at most)", counted(job.cpus, "cpu"))
        }
        (Some(least), _) => format!("{least} to {}", counted(job.cpus, "cpu")),
        (None, _) => counted(job.cpus, "cpu"),
    };
    let mut parts = vec![cpus, memory(job.memory), duration(span_of_seconds(job.time))];
    if job.gpus > 0 {
        let has =
            if job.has_gpus.is_empty() { String::new() } else { format!(" ({})", numbers(&job.has_gpus)) };
        let of_type =
            job.gpu_type.as_ref().map(|name| format!(" of type {}", plain(name))).unwrap_or_default();
        let amount = job.gpu_memory.map(memory);
        let gpus = match &amount {
            Some(amount) if job.gpu_share => format!("{amount} of a GPU, not enforced"),
            Some(amount) => format!("{} with {amount}", counted(job.gpus, "GPU")),
            None => counted(job.gpus, "GPU"),
        };
        parts.insert(1, gpus + &of_type + &has);
    }
    parts.extend(job.begin.map(|begin| format!("not before {}", instants.text(begin))));
    parts.extend(job.deadline.map(|deadline| format!("end by {}", instants.text(deadline))));
    parts.extend(job.start_by.map(|by| format!("given up unless started by {}", instants.text(by))));
    parts.extend(job.overrun_if_idle.then(|| match job.overrun {
        Some(overrun) => format!("with {} past its own limit", duration_rounded(span_of_seconds(overrun))),
        None => "longer while its place is idle".to_owned(),
    }));
    if !job.after.is_empty() {
        parts.push(format!("after {}", jobs(&job_ranges(&job.after))));
    }
    for (others, end) in [(&job.after_ok, "success"), (&job.after_not_ok, "failure")] {
        if !others.is_empty() {
            parts.push(format!("only after the {end} of {}", jobs(&job_ranges(others))));
        }
    }
    if job.restartable {
        parts.push("restartable".to_owned());
    }
    if !job.opportunistic {
        parts.push("not opportunistic".to_owned());
    }
    parts.join(", ")
}
