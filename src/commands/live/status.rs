//! `miserly status`: the state of the daemon.

use std::process::ExitCode;

use miserly_api::model::{QueueStatus, Status};
use miserly_units::memory;

use super::text::{local, numbers, plain, table};
use super::{client, print_answer};
use crate::args::AskArgs;

pub(crate) fn run(args: &AskArgs) -> anyhow::Result<ExitCode> {
    let status = client(&args.daemon)?.status()?;
    print_answer(args.json, &status, || shown(&status))?;
    Ok(ExitCode::SUCCESS)
}

fn shown(status: &Status) -> String {
    let Status { version, pid, cpus, .. } = status;
    let configuration = status.configuration.as_deref().unwrap_or("none: half the machine, one queue");
    let mut text = format!(
        "miserly {version}, process {pid}, since {}\nstate          {}\nconfiguration  {configuration}\ncpus for jobs  {cpus}\n\
         promises       {} given, {} kept, {} broken; {} late\n",
        local(status.since),
        status.state,
        status.promises,
        status.kept,
        status.broken,
        match status.late {
            1 => "1 job".to_owned(),
            late => format!("{late} jobs"),
        },
    );
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
