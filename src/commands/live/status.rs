//! `miserly status`: the state of the daemon.

use std::process::ExitCode;

use miserly_api::model::{
    AdoptedAttempt, ForecastRecord, Pressure, PressureOn, QueueStatus, SetAsideJob, Stall, Status,
};
use miserly_report::{count, decimals};
use miserly_units::memory;
use miserly_view::missed_promise;

use super::text::{local, numbers, plain, table};
use super::{client, print_answer};
use crate::args::AskArgs;

/// The most missed promises in the text.
const SHOWN_MISSED: usize = 10;

pub(crate) fn run(args: &AskArgs) -> anyhow::Result<ExitCode> {
    let status = client(&args.daemon)?.status()?;
    print_answer(args.json, &status, || shown(&status))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the outcomes of forecasts.
fn forecasts_text(record: &ForecastRecord) -> String {
    let share = |kept: u64| decimals(100.0 * kept as f64 / record.audited.max(1) as f64, 1);
    format!(
        "forecasts      95 % bounds kept: {} % of {}; 80 %: {} %; medians: {} %\n",
        share(record.kept_95),
        count(record.audited),
        share(record.kept_80),
        share(record.kept_50)
    )
}

/// Returns the judgements of promises in numbers.
fn promises_text(status: &Status) -> String {
    let Status { promises, kept, late, lost, withdrawn, open, at_risk, earlier, .. } = status;
    let risk = if *at_risk > 0 { format!(" ({at_risk} at risk)") } else { String::new() };
    let earlier =
        if *earlier > 0 { format!(", {earlier} not judged by an earlier version") } else { String::new() };
    format!(
        "{promises} given: {kept} kept, {late} late, {lost} lost, {withdrawn} withdrawn, {open} open{risk}{earlier}"
    )
}

/// Returns the last promises that were late or lost, the latest first.
fn missed_text(status: &Status) -> String {
    let mut text = String::new();
    for missed in status.missed.iter().rev().take(SHOWN_MISSED) {
        text += &format!("not kept       {}\n", missed_promise(missed, local));
    }
    let more = (status.late + status.lost).saturating_sub(SHOWN_MISSED as u64);
    if more > 0 && !status.missed.is_empty() {
        text += &format!("not kept       {more} earlier ones: miserly queue --missed\n");
    }
    text
}

fn shown(status: &Status) -> String {
    let Status { version, pid, cpus, .. } = status;
    let configuration = status.configuration.as_deref().unwrap_or("none: half the machine, one queue");
    let mut text = format!(
        "miserly {version}, process {pid}, since {}\nstate          {}\nconfiguration  {configuration}\ncpus for jobs  {cpus}\n\
         promises       {}\n",
        local(status.since),
        status.state,
        promises_text(status),
    );
    text += &missed_text(status);
    if let Some(record) = &status.forecasts {
        text += &forecasts_text(record);
    }
    if let Some(problem) = &status.configuration_problem {
        text += &format!(
            "not applied    the configuration: {problem}; the last one stays until a reload succeeds\n"
        );
    }
    for shared in &status.shared_cpus {
        text += &format!(
            "shared cpus    {}: the daemon of {} (process {}) has them, too\n",
            numbers(&shared.cpus),
            plain(&shared.user),
            shared.pid
        );
    }
    for adopted in &status.adopted {
        text += &format!("adopted        {}\n", adopted_text(adopted));
    }
    for damage in &status.damage {
        text += &format!("damage         {}: {}\n", plain(&damage.part), plain(&damage.problem));
    }
    for SetAsideJob { job, reason } in &status.set_aside {
        let next = format!("`miserly release {job}` tries it again, `miserly cancel {job}` gives it up");
        text += &format!("set aside      job {job}: {}; {next}\n", plain(reason));
    }
    if status.checking {
        text += "checking       the history; damage that is found is listed here\n";
    }
    for restriction in &status.launcher {
        text += &format!("launcher       {restriction}\n");
    }
    if let Some(priority) = &status.critical_priority {
        text += &format!("priority       {}\n", plain(&priority.sentence));
    }
    if let Some(pressure) = &status.pressure {
        text += &pressure_text(pressure);
    }
    if status.waiting_shims > 0 {
        let from = status
            .needs_daemon_from
            .map_or_else(String::new, |from| format!("; starts need the daemon from {} on", local(from)));
        text += &format!(
            "without daemon {} of the next promised jobs start by themselves{from}\n",
            status.waiting_shims
        );
    }
    if status.draining {
        text += "draining       no new jobs are accepted; undo with `miserly drain --undo`\n";
    }
    for queue in &status.queues {
        if let Some(mistake) = &queue.stopped {
            text += &format!(
                "stopped        queue {} starts nothing: {mistake}; a reload tries it again\n",
                queue.name
            );
        }
    }
    text + "\n" + &queues(&status.queues) + &unenforced(status)
}

/// Returns the pressure of the last 10 seconds.
fn pressure_text(pressure: &Pressure) -> String {
    let percent = |stall: Stall| format!("{:.1} %", stall.avg10);
    let parts = |on: &PressureOn| {
        let cpu = on.cpu.map(|stall| format!("cpu {}", percent(stall)));
        let full =
            on.memory_full.map_or_else(String::new, |full| format!(" (all processes {})", percent(full)));
        let memory = on.memory.map(|stall| format!("memory {}{full}", percent(stall)));
        cpu.into_iter().chain(memory).collect::<Vec<_>>().join(", ")
    };
    let on = |name: &str, on: &PressureOn| match parts(on).as_str() {
        "" => None,
        parts => Some(format!("{name}: {parts}")),
    };
    let jobs = pressure.jobs.as_ref().and_then(|jobs| on("jobs", jobs));
    let all: Vec<String> = on("machine", &pressure.machine).into_iter().chain(jobs).collect();
    if all.is_empty() { String::new() } else { format!("pressure       {}\n", all.join("; ")) }
}

/// Returns a description of an attempt without a record.
fn adopted_text(adopted: &AdoptedAttempt) -> String {
    let end =
        adopted.end.map_or_else(|| "without a known end".to_owned(), |end| format!("until {}", local(end)));
    let cpus = if adopted.cpus.is_empty() {
        "no cpus of its own".to_owned()
    } else {
        format!("cpus {}", numbers(&adopted.cpus))
    };
    format!("job {} runs {end}, {cpus}: {}", adopted.job, plain(&adopted.problem))
}

fn queues(queues: &[QueueStatus]) -> String {
    let header =
        ["QUEUE", "POLICY", "PROMISES", "CPUS", "HELD", "MEMORY", "HELD MEMORY", "RUNNING", "WAITING"];
    let row = |queue: &QueueStatus| {
        let held = if queue.memory.is_some() { memory(queue.memory_held) } else { "-".to_owned() };
        vec![
            queue.name.clone(),
            queue.policy.clone(),
            queue.promises.clone(),
            queue.cpus.to_string(),
            queue.cpus_held.to_string(),
            queue.memory.map_or("-".to_owned(), memory),
            held,
            queue.running.to_string(),
            queue.waiting.to_string(),
        ]
    };
    table(&header, &header[3..], queues.iter().map(row))
}

fn unenforced(status: &Status) -> String {
    if status.unenforced.is_empty() {
        return String::new();
    }
    let lines = status.unenforced.iter().map(|one| format!("  {}: {}\n", one.what, one.sentence));
    lines.fold("\nNot enforced on this machine:\n".to_owned(), |text, line| text + &line)
}
