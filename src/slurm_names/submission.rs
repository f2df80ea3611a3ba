//! The submission of `sbatch`, `srun` and `salloc`: options of Slurm as those of this program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use jiff::Zoned;
use miserly_api::client::Client;
use miserly_api::model::{Condition, Filter, Submission, When};
use miserly_api::submit::{
    Cpus, Export, GpuRequest, SubmitOptions, after, array, early_signal, gpus, gres_gpus, mail_address,
    mail_events,
};
use miserly_units::slurm::kibibytes;

use super::options::{Given, Value};
use super::sinfo::queues;
use super::tables::queue_of_job;
use super::times::{instant, limit};
use super::{CLUSTER, host, jobs};

/// What a job requests, before the queue is known.
pub(super) struct Requested {
    pub(super) options: SubmitOptions,
    /// Whether it requests all processors of its queue.
    all_cpus: bool,
    /// Whether it requests all memory of its queue.
    all_memory: bool,
    /// Whether it waits for all earlier jobs of its name.
    singleton: bool,
}

impl Requested {
    /// Returns what the options request.
    ///
    /// # Errors
    /// A value that is none of the option, or that cannot be honoured.
    pub(super) fn new(given: &Given) -> Result<Requested, String> {
        let mut options = SubmitOptions::default();
        let mut requested_after = None;
        let mut singleton = false;
        let is_array = given.has("array");
        let now = Zoned::now();
        for (row, value) in given.options() {
            let value = value.unwrap_or_default();
            // Templates of programs leave values empty.
            if value.is_empty() && row.value == Value::Required {
                continue;
            }
            // The words of Slurm come first, because programs look for them.
            let words = match row.long {
                "array" => "Batch job submission failed: Invalid job array specification: ",
                "dependency" => "Batch job submission failed: Job dependency problem: ",
                _ => "",
            };
            let of = |message: String| format!("{words}--{}={value}: {message}", row.long);
            let submission = &mut options.submission;
            match row.long {
                "job-name" => submission.name = Some(value.to_owned()),
                "comment" => submission.comment = Some(comment(value)).filter(|text| !text.trim().is_empty()),
                "time" => options.time = Some(limit(value)?),
                "reservation" => options.reservation = Some(value.to_owned()),
                "begin" => submission.begin = Some(instant(value, &now, false)?),
                "immediate" => submission.start_within = Some(immediate(value)?),
                "deadline" => submission.deadline = Some(instant(value, &now, false)?),
                "dependency" => {
                    let parts: Vec<&str> = value.split(',').collect();
                    singleton = parts.contains(&"singleton");
                    let others: Vec<&str> =
                        parts.into_iter().filter(|part| *part != "singleton" && !part.is_empty()).collect();
                    requested_after =
                        if others.is_empty() { None } else { Some(after(&others.join(",")).map_err(of)?) };
                }
                "array" => submission.array = Some(array(value).map_err(of)?),
                "requeue" => submission.restartable = true,
                "no-requeue" => submission.restartable = false,
                "hold" => submission.hold = true,
                "signal" => {
                    let rest = value.strip_prefix("R:").unwrap_or(value).replacen("RB:", "B:", 1);
                    submission.signal = Some(early_signal(&rest.replacen("BR:", "B:", 1)).map_err(of)?);
                }
                "mail-type" => options.mail = Some(mail(value)?),
                "mail-user" => options.mail_to = Some(mail_address(value).map_err(of)?),
                "chdir" => options.directory = Some(PathBuf::from(value)),
                "export" => options.export = Some(export(value).map_err(of)?),
                "input" => submission.input = Some(pattern(value, is_array)?),
                "output" => submission.output = Some(pattern(value, is_array)?),
                "error" => submission.error = Some(pattern(value, is_array)?),
                "nodes" => check_nodes(value)?,
                "nodelist" => check_host(value, true)?,
                "exclude" => check_host(value, false)?,
                _ => {}
            }
        }
        options.after = requested_after;
        let all_memory = set_resources(given, &mut options)?;
        let all_cpus = given.has("exclusive");
        Ok(Requested { options, all_cpus, all_memory, singleton })
    }

    /// Returns the options, where the daemon has filled in what depends on its queues and jobs.
    ///
    /// # Errors
    /// If the daemon does not answer, or has no such queue. `context` is before the words of Slurm for an account.
    pub(super) fn finish(
        self,
        given: &Given,
        client: &Client,
        context: &str,
    ) -> anyhow::Result<SubmitOptions> {
        let Requested { mut options, all_cpus, all_memory, singleton } = self;
        // Lines of this program in a script may have a queue, too.
        options.submission.queue = queue_of_job(client, given, context)?.or(options.submission.queue);
        if all_cpus || all_memory {
            let queues = queues(client)?;
            let name = options.reservation.as_ref().or(options.submission.queue.as_ref());
            let queue =
                name.map_or_else(|| queues.first(), |name| queues.iter().find(|queue| queue.name == *name));
            let queue = queue.context("Invalid partition name specified")?;
            if all_cpus {
                options.cpus = Some(queue.cpus.into());
            }
            if all_memory {
                options.submission.memory = queue.memory;
            }
        }
        if singleton {
            let name = options.submission.name.clone().unwrap_or_default();
            let filter = Filter { uid: Some(jobs::own_uid()), ..Filter::default() };
            let before = jobs::all(client, &filter, |job| job.name == name)?;
            let conditions = before.iter().map(|job| Condition {
                when: When::Any,
                job: Some(job.number),
                ..Condition::default()
            });
            options.after.get_or_insert_default().extend(conditions);
        }
        Ok(options)
    }
}

/// Parses the variables of a job. `NIL` is that of Slurm for `NONE`.
pub(super) fn export(text: &str) -> Result<Export, String> {
    let word = |part: &str| match &part.to_ascii_uppercase()[..] {
        "NIL" | "NONE" => "NONE".to_owned(),
        "ALL" => "ALL".to_owned(),
        _ => part.to_owned(),
    };
    Export::parse(&text.split(',').map(word).collect::<Vec<_>>().join(","))
}

/// Returns a comment without characters that no comment has, and not too long.
fn comment(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(Submission::COMMENT_MOST / 4).collect()
}

/// Sets processors, tasks, GPUs and memory. Returns whether all memory of the queue is requested.
fn set_resources(given: &Given, options: &mut SubmitOptions) -> Result<bool, String> {
    let number = |long: &str| match given.value(long) {
        Some(text) => match text.parse::<u64>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("Invalid numeric value \"{text}\" for --{long}.")),
        },
        None => Ok(None),
    };
    let (cpus_per_task, per_gpu) = (number("cpus-per-task")?, number("cpus-per-gpu")?);
    let tasks = number("ntasks")?.or(number("ntasks-per-node")?);
    let of_gpus = |long: &str| match given.value(long) {
        Some(text) => gpus(text).map(Some).map_err(|message| format!("--{long}={text}: {message}")),
        None => Ok(None),
    };
    let per_task_gpus = of_gpus("gpus-per-task")?
        .map(|gpus| GpuRequest { count: gpus.count.saturating_mul(tasks.unwrap_or(1)), ..gpus });
    let gres = given.value("gres").map(gres).transpose()?;
    let request = of_gpus("gpus")?.or(of_gpus("gpus-per-node")?).or(per_task_gpus).or(gres);
    let gpus = request.as_ref().map(|request| request.count);
    let tasks = tasks.or(number("ntasks-per-gpu")?.map(|tasks| tasks.saturating_mul(gpus.unwrap_or(1))));
    let of_tasks = tasks.unwrap_or(1).checked_mul(cpus_per_task.unwrap_or(1));
    let mut cpus = of_tasks.ok_or("more tasks than can be counted")?;
    if let Some(per_gpu) = per_gpu {
        cpus = cpus.max(per_gpu.saturating_mul(gpus.unwrap_or(1)));
    }
    cpus = cpus.max(number("mincpus")?.unwrap_or(1));
    options.cpus = Some(Cpus::from(cpus));
    options.submission.tasks = tasks;
    options.gpus = request.filter(|request| request.count > 0);
    let amount = |long| amount(given, long);
    let (memory, of_each, of_gpu) = (amount("mem")?, amount("mem-per-cpu")?, amount("mem-per-gpu")?);
    if memory == Some(0) || (memory.is_none() && of_each == Some(0)) {
        return Ok(true);
    }
    options.submission.memory = memory;
    if memory.is_none() {
        options.memory_per_cpu = of_each;
    }
    if let Some(of_gpu) = of_gpu.filter(|_| memory.is_none() && of_each.is_none()) {
        options.submission.memory = Some(of_gpu.saturating_mul(gpus.unwrap_or(1)));
    }
    Ok(false)
}

/// Returns the bytes of an option with an amount of memory, which is MiB without a unit.
///
/// # Errors
/// Any other text, in the words of Slurm.
pub(super) fn amount(given: &Given, long: &str) -> Result<Option<u64>, String> {
    let Some(text) = given.value(long) else { return Ok(None) };
    let trimmed = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let bytes = kibibytes(trimmed).and_then(|kib| kib.checked_mul(1024));
    bytes.map(Some).ok_or_else(|| format!("Invalid --{long} specification: {text}"))
}

/// Parses generic resources: `gpu:2`, `gpu:a100:2`, `gpu`, `none`.
fn gres(text: &str) -> Result<GpuRequest, String> {
    let wrong = || {
        format!("Invalid generic resource (gres) specification: {text}; there are GPUs only, such as gpu:2")
    };
    let (mut sum, mut types) = (0_u64, BTreeSet::new());
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "none") {
        let part = part.strip_prefix("gres:").unwrap_or(part).replace("gres/", "").replace('=', ":");
        let request = match part.strip_prefix("gpu") {
            Some("") => 1.into(),
            Some(rest) => gres_gpus(rest.strip_prefix(':').ok_or_else(wrong)?).map_err(|_| wrong())?,
            None => return Err(wrong()),
        };
        sum = sum.checked_add(request.count).ok_or_else(wrong)?;
        types.insert(request.gpu_type);
    }
    if types.len() > 1 {
        return Err(format!(
            "Invalid generic resource (gres) specification: {text}; a job has GPUs of one type"
        ));
    }
    Ok(GpuRequest { count: sum, gpu_type: types.pop_first().flatten() })
}

fn check_nodes(text: &str) -> Result<(), String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let (Some(least), Some(_)) = (number(least), number(most)) else {
        return Err(format!("Invalid node count specification: \"{text}\""));
    };
    if least > 1 {
        return Err(format!(
            "Node count specification invalid: a job runs on one machine, and --nodes={text} needs {least}; write --nodes=1 and --ntasks"
        ));
    }
    Ok(())
}

/// Checks that this machine is, or is not, among the machines of a list.
fn check_host(list: &str, among: bool) -> Result<(), String> {
    let host = host();
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_among = names.iter().any(|name| *name == host || *name == "localhost");
    if is_among == among || names.is_empty() {
        return Ok(());
    }
    Err(format!("Invalid node name specified: the only machine is {host}"))
}

/// Returns the events of a mail. Those of Slurm that do not occur here are left out.
fn mail(text: &str) -> Result<Vec<miserly_api::model::MailEvent>, String> {
    const OTHERS: [&str; 9] = [
        "REQUEUE",
        "STAGE_OUT",
        "TIME_LIMIT",
        "TIME_LIMIT_90",
        "TIME_LIMIT_80",
        "TIME_LIMIT_50",
        "ARRAY_TASKS",
        "INVALID_DEPEND",
        "HETERO",
    ];
    let known: Vec<&str> =
        text.split(',').filter(|word| !OTHERS.contains(&word.to_ascii_uppercase().as_str())).collect();
    if known.is_empty() {
        return Ok(vec![]);
    }
    mail_events(&known.join(",")).map_err(|message| format!("--mail-type={text}: {message}"))
}

/// Returns a file name with the codes of Slurm that the daemon does not have.
///
/// # Errors
/// A code with a width.
fn pattern(text: &str, is_array: bool) -> Result<PathBuf, String> {
    let mut filled = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            filled.push(letter);
            continue;
        }
        match letters.next() {
            Some('u') => filled += &user(),
            Some('N') => filled += &host(),
            Some('n' | 't') => filled.push('0'),
            // As Slurm's NO_VAL.
            Some('a') if !is_array => filled += "4294967294",
            Some('s') => filled += "batch",
            Some('J') => filled += "%j",
            Some(digit) if digit.is_ascii_digit() => {
                return Err(format!("{text}: a code with a width, such as %4j, cannot be written; write %j"));
            }
            Some(other) => filled.extend(['%', other]),
            None => filled.push('%'),
        }
    }
    Ok(filled.into())
}

/// Returns the name of the user.
pub(super) fn user() -> String {
    let of_system = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    of_system.map_or_else(|| jobs::own_uid().to_string(), |user| user.name)
}

/// Sets the variables of Slurm that the daemon does not set, because they are the same in all jobs.
pub(super) fn set_variables(given: &Given, submission: &mut Submission) {
    let tasks_per_node = given.value("ntasks-per-node");
    let environment: &mut BTreeMap<String, String> = &mut submission.environment;
    // A job may submit jobs: nothing of its steps is that of another job.
    environment.retain(|name, _| !name.starts_with("SLURM_STEP") && !name.starts_with("SBATCH_"));
    let host = host();
    let tasks = submission.tasks.unwrap_or(1);
    let same = [
        ("SLURM_CLUSTER_NAME", CLUSTER.to_owned()),
        ("SLURM_JOB_NODELIST", host.clone()),
        ("SLURM_NODELIST", host.clone()),
        ("SLURMD_NODENAME", host.clone()),
        ("SLURM_SUBMIT_HOST", host),
        ("SLURM_JOB_NUM_NODES", "1".to_owned()),
        ("SLURM_NNODES", "1".to_owned()),
        ("SLURM_NODEID", "0".to_owned()),
        ("SLURM_PROCID", "0".to_owned()),
        ("SLURM_LOCALID", "0".to_owned()),
        ("SLURM_GTIDS", "0".to_owned()),
        ("SLURM_TASKS_PER_NODE", tasks.to_string()),
        ("SLURM_JOB_USER", user()),
        ("SLURM_JOB_UID", jobs::own_uid().to_string()),
        ("SLURM_JOB_GID", nix::unistd::getegid().to_string()),
        ("SLURM_PRIO_PROCESS", "0".to_owned()),
        ("SLURM_NODE_ALIASES", "(null)".to_owned()),
        ("SLURM_JOB_QOS", given.value("qos").unwrap_or("normal").to_owned()),
    ];
    environment.extend(same.map(|(name, value)| (name.to_owned(), value)));
    environment.remove("SLURM_JOB_ACCOUNT");
    if let Some(account) = given.value("account").filter(|account| !account.is_empty()) {
        environment.insert("SLURM_JOB_ACCOUNT".to_owned(), account.to_owned());
    }
    if let Some(tasks) = tasks_per_node {
        environment.insert("SLURM_NTASKS_PER_NODE".to_owned(), tasks.to_owned());
    }
    if let Some(memory) = submission.memory {
        environment.insert("SLURM_MEM_PER_NODE".to_owned(), (memory >> 20).to_string());
    }
    if let Some(gpus) = submission.gpus {
        environment.insert("SLURM_GPUS".to_owned(), gpus.to_string());
    }
}

/// Returns a script whose shell ignores the early signal: Slurm sends it to steps, and not to the shell of the script.
///
/// The line takes the place of a comment, so that no other line changes its number. Scripts of other interpreters do not change.
pub(super) fn without_signal(script: &str, signal: &str) -> String {
    let first = script.lines().next().unwrap_or_default();
    let is_shell =
        first.split(['/', ' ']).any(|word| ["sh", "bash", "dash", "ksh", "zsh", "ash"].contains(&word));
    if !is_shell {
        return script.to_owned();
    }
    let trap = format!("trap '' {signal}");
    let mut lines: Vec<&str> = script.split('\n').collect();
    let free = (1..lines.len()).find(|at| lines[*at].trim().is_empty() || lines[*at].starts_with('#'));
    match free.filter(|at| lines[1..*at].iter().all(|line| line.trim_start().starts_with('#'))) {
        Some(at) if at + 1 < lines.len() || !lines[at].is_empty() => lines[at] = &trap,
        _ => lines.insert(1, &trap),
    }
    lines.join("\n")
}

/// Returns the longest wait of `--immediate`, in seconds: none at all without a value.
///
/// # Errors
/// A text that is no number of seconds.
fn immediate(value: &str) -> Result<f64, String> {
    if value.is_empty() {
        return Ok(0.0);
    }
    value.parse::<u32>().map(f64::from).map_err(|_| format!("--immediate={value}: write a number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_of_a_script_ignores_the_early_signal_in_the_line_of_a_comment() {
        #[track_caller]
        fn check(script: &str, expect: &str) {
            assert_eq!(without_signal(script, "USR2"), expect);
        }
        check("#!/bin/bash\n#SBATCH --signal=USR2@9\necho\n", "#!/bin/bash\ntrap '' USR2\necho\n");
        check("#!/bin/bash\n\necho\n", "#!/bin/bash\ntrap '' USR2\necho\n");
        check("#!/usr/bin/env bash\necho\n", "#!/usr/bin/env bash\ntrap '' USR2\necho\n");
        check("#!/usr/bin/python3\n\nprint()\n", "#!/usr/bin/python3\n\nprint()\n");
    }

    #[test]
    fn only_a_whole_word_selects_the_variables() {
        let of = |text: &str| {
            let own = [("A".to_owned(), "1".to_owned())].into();
            let variables = export(text).unwrap().environment(own).into_iter();
            variables.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("VANILLA=1,B=VANILLA"), "B=VANILLA VANILLA=1");
        assert_eq!([of("all"), of("nil"), of("NIL,C=2")], ["A=1", "", "C=2"]);
    }

    #[test]
    fn generic_resources_are_gpus() {
        let a100 = |count| GpuRequest { count, gpu_type: Some("a100".to_owned()) };
        for (text, request) in [
            ("gpu", 1.into()),
            ("gpu:2", 2.into()),
            ("gpu:a100:4", a100(4)),
            ("gpu:a100", a100(1)),
            ("gpu:a100:1,gpu:a100:2", a100(3)),
            ("gres/gpu=3", 3.into()),
            ("none", 0.into()),
        ] {
            assert_eq!(gres(text), Ok(request), "{text}");
        }
        for text in [
            "mps:2",
            "gpu:1,mps:2",
            "gpu:a100:1,gpu:t4:1",
            "gpu:a100:1,gpu:1",
            "gpus",
            "gpu:99999999999999999999",
            "gpu:18446744073709551615,gpu:1",
        ] {
            assert!(gres(text).is_err(), "{text}");
        }
    }

    #[test]
    fn codes_in_file_names() {
        let shown = |text: &str| pattern(text, true).map(|path| path.display().to_string());
        assert_eq!(shown("a-%j-%x-%A_%a-%%"), Ok("a-%j-%x-%A_%a-%%".to_owned()));
        assert_eq!(shown("%J.%t.%n.%s"), Ok("%j.0.0.batch".to_owned()));
        assert_eq!(shown("%N"), Ok(host()));
        assert_eq!(shown("%u"), Ok(user()));
        assert!(shown("%4j").is_err());
        assert_eq!(pattern("%a", false), Ok("4294967294".into()));
    }

    #[test]
    fn more_nodes_than_one_are_refused() {
        for text in ["1", "1-1", "1-4"] {
            assert_eq!(check_nodes(text), Ok(()), "{text}");
        }
        for text in ["0", "4", "2-4", "x"] {
            assert!(check_nodes(text).is_err(), "{text}");
        }
    }
}
