//! `scontrol`: shows and changes jobs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::{Timestamp, Zoned};
use miserly_api::client::Client;
use miserly_api::model::{Filter, JobView, Modification};
use miserly_units::slurm::kibibytes;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::columns::{dependency, eligible, path, priority, tres, without_breaks};
use super::facts::{Facts, Part, long_clock, memory, stamp};
use super::jobs::{self, NamedJob};
use super::sacct::running_steps;
use super::sinfo::{Partition, clock, queues};
use super::squeue::MIN_JOB_AGE;
use super::step::KILL_WAIT;
use super::tables::{self, tables};
use super::times::{instant, limit};
use super::{CLUSTER, VERSION, client, given, host, hostlist, refused};
use crate::output::print;

/// The seconds for which a job waits to be ended by its own requeue.
const OWN_END: i64 = 60;

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("scontrol", words, false)? else { return Ok(ExitCode::SUCCESS) };
    let words: Vec<String> = given.words.iter().map(|word| word.display().to_string()).collect();
    let Some((command, rest)) = words.split_first() else {
        bail!("no command is given; this scontrol has no interactive mode");
    };
    let one_line = given.has("oneliner");
    match command.to_ascii_lowercase().as_str() {
        "show" => show(rest, one_line),
        "hold" | "uhold" => each(rest, |client, job| client.hold(job, false).map(drop)),
        "release" => each(rest, |client, job| client.release(job).map(drop)),
        "requeue" => requeue(rest),
        "requeuehold" => {
            requeue(rest)?;
            each(rest, |client, job| client.hold(job, false).map(drop))
        }
        "suspend" => each(rest, |client, job| client.pause(job).map(drop)),
        "resume" => each(rest, |client, job| client.resume(job).map(drop)),
        "update" => update(rest),
        "wait_job" => each(rest, |client, job| client.job(job).map(drop)),
        "ping" => ping(),
        "version" => print(&format!("{VERSION}\n")).map(|()| ExitCode::SUCCESS),
        "top" => bail!("top: write miserly modify JOB --before OTHER"),
        "reconfigure" => bail!("reconfigure: write miserly reload"),
        "shutdown" => bail!("shutdown: write miserly stop"),
        "create" | "delete" => bail!("{command}: write miserly reservation"),
        other => bail!("invalid keyword: {other}"),
    }
}

fn show(words: &[String], one_line: bool) -> anyhow::Result<ExitCode> {
    let (what, rest) =
        words.split_first().context("show: write job, node, partition, config or hostnames")?;
    let text = match what.to_ascii_lowercase().as_str() {
        "job" | "jobs" => return show_jobs(rest, one_line),
        "node" | "nodes" => {
            let wanted = rest.first().map(|list| hostlist::names(list)).transpose();
            let wanted = wanted.map_err(anyhow::Error::msg)?.unwrap_or_default();
            let is_other = |name: &&String| ![&host()[..], "localhost", "ALL"].contains(&&name[..]);
            if let Some(other) = wanted.iter().find(is_other) {
                // Slurm prints it as an answer.
                print(&format!("Node {other} not found\n"))?;
                return Ok(ExitCode::FAILURE);
            }
            show_node(&client()?)?
        }
        "partition" | "partitions" => {
            let name = rest.first().map(String::as_str);
            let text = show_partitions(&client()?, name)?;
            if text.is_empty() {
                print(&format!("Partition {} not found\n", name.unwrap_or_default()))?;
                return Ok(ExitCode::FAILURE);
            }
            text
        }
        "config" => config(&client()?)?,
        "hostnames" | "hostname" => {
            let list = rest.first().cloned().or_else(|| std::env::var("SLURM_JOB_NODELIST").ok());
            let names = hostlist::names(&list.unwrap_or_default()).map_err(anyhow::Error::msg)?;
            names.iter().map(|name| name.to_owned() + "\n").collect()
        }
        what @ ("hostlist" | "hostlistsorted") => host_list(rest, what == "hostlistsorted")?,
        "step" | "steps" => return show_steps(rest.first().map(String::as_str)),
        "licenses" => "No licenses configured in Slurm.\n".to_owned(),
        "reservation" | "reservations" => reservations(&client()?)?,
        other => bail!("invalid entity:{other} for keyword:show"),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn show_jobs(words: &[String], one_line: bool) -> anyhow::Result<ExitCode> {
    let client = client()?;
    let failed = |error| refused("slurm_load_jobs error", error);
    let named: Vec<String> = words
        .iter()
        .flat_map(|word| word.trim_start_matches("JobId=").split(','))
        .map(str::to_owned)
        .collect();
    let named = NamedJob::list(named.iter().map(String::as_str)).map_err(anyhow::Error::msg)?;
    let now = Timestamp::now();
    let found = if named.is_empty() {
        let is_recent = |job: &JobView| {
            job.phase.ended().is_none_or(|end| now.duration_since(end).as_secs() <= MIN_JOB_AGE)
        };
        let filter = Filter { all: true, details: true, ..Filter::default() };
        jobs::all(&client, &filter, is_recent).map_err(failed)?
    } else {
        jobs::named(&client, &named).map_err(failed)?
    };
    if found.is_empty() {
        if named.is_empty() {
            print("No jobs in the system\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        bail!("slurm_load_jobs error: Invalid job id specified");
    }
    let host = host();
    let mut text = String::new();
    for job in &found {
        let of = Facts { job: Cow::Borrowed(job), now, host: &host, indexes: None };
        text += &block(&job_lines(&of), one_line);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns lines of fields as a paragraph, or as one line.
fn block(lines: &[String], one_line: bool) -> String {
    if one_line { lines.join(" ") + "\n" } else { lines.join("\n   ") + "\n\n" }
}

fn job_lines(of: &Facts) -> Vec<String> {
    let job = &of.job;
    let path = |file: &Option<std::path::PathBuf>| path(file.as_deref());
    let array = match (job.array, job.index) {
        (Some(array), Some(index)) => format!(" ArrayJobId={array} ArrayTaskId={index}"),
        _ => String::new(),
    };
    let group = of.group().map_or_else(|| "N/A".to_owned(), |group| format!("{}({})", group.name, group.gid));
    let (code, signal) = of.exit();
    let limit = long_clock(of.limit());
    let deadline = job.deadline.map_or_else(|| "N/A".to_owned(), |at| stamp(Some(at)));
    let command = match (&job.command, job.script) {
        (Some(words), false) => words.join(" "),
        _ => "(null)".to_owned(),
    };
    let mut lines = vec![
        format!("JobId={}{array} JobName={}", job.number, job.name),
        format!("UserId={}({}) GroupId={group} MCS_label=N/A", job.user, job.uid),
        format!("Priority={} Nice=0 Account=(null) QOS=normal", priority(of)),
        format!("JobState={} Reason={} Dependency={}", of.state().name, of.reason(), dependency(of)),
        format!(
            "Requeue={} Restarts={} BatchFlag={} Reboot=0 ExitCode={code}:{signal}",
            u8::from(job.restartable),
            job.runs.saturating_sub(1),
            u8::from(job.script)
        ),
        format!("RunTime={} TimeLimit={limit} TimeMin=N/A", long_clock(of.elapsed())),
        format!("SubmitTime={} EligibleTime={}", stamp(Some(job.submitted)), eligible(of)),
        format!("AccrueTime={}", eligible(of)),
        format!("StartTime={} EndTime={} Deadline={deadline}", stamp(of.start()), stamp(of.end())),
        format!("SuspendTime=None SecsPreSuspend=0 LastSchedEval={} Scheduler=Main", stamp(Some(of.now))),
        format!("Partition={} AllocNode:Sid={}:0", job.queue, of.host),
        "ReqNodeList=(null) ExcNodeList=(null)".to_owned(),
        format!("NodeList={}", of.node()),
    ];
    if of.began().is_some() {
        lines.push(format!("BatchHost={}", of.host));
    }
    lines.extend([
        format!(
            "NumNodes=1 NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:*:*",
            job.cpus,
            of.tasks(),
            of.cpus_per_task()
        ),
        format!("TRES={}", tres(of)),
        "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*".to_owned(),
        format!("MinCPUsNode=1 MinMemoryNode={} MinTmpDiskNode=0", memory(job.memory)),
        "Features=(null) DelayBoot=00:00:00".to_owned(),
        "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)".to_owned(),
        format!("Command={}", without_breaks(&command)),
        format!("WorkDir={}", path(&job.directory)),
    ]);
    let comments: Vec<String> = job.comment.clone().into_iter().chain(of.promise()).collect();
    if !comments.is_empty() {
        lines.push(format!("Comment={}", comments.join("; ")));
    }
    lines.push(format!("StdErr={}", path(&job.error)));
    lines.push("StdIn=/dev/null".to_owned());
    lines.push(format!("StdOut={}", path(&job.output)));
    lines.push("Power=".to_owned());
    if job.gpus > 0 {
        lines.push(format!("TresPerNode=gres:gpu:{}", job.gpus));
    }
    lines
}

fn show_node(client: &Client) -> anyhow::Result<String> {
    let status = client.status().map_err(|error| refused("slurm_load_node error", error))?;
    let all = status.queues.iter();
    let (cpus, held): (u64, u64) =
        all.clone().fold((0, 0), |(cpus, held), queue| (cpus + queue.cpus, held + queue.cpus_held));
    let bytes: u64 = all.clone().filter_map(|queue| queue.memory).sum();
    let used: u64 = all.clone().map(|queue| queue.memory_held).sum();
    let gpus: u64 = all.clone().map(|queue| queue.gpus).sum();
    let names: Vec<&str> = all.map(|queue| queue.name.as_str()).collect();
    let state = match held {
        _ if status.draining => "DRAINED",
        0 => "IDLE",
        held if held >= cpus => "ALLOCATED",
        _ => "MIXED",
    };
    let host = host();
    let gres = if gpus > 0 { format!("gpu:{gpus}") } else { "(null)".to_owned() };
    Ok(block(
        &[
            format!("NodeName={host} Arch={} CoresPerSocket={cpus}", std::env::consts::ARCH),
            format!("CPUAlloc={held} CPUEfctv={cpus} CPUTot={cpus} CPULoad={}", load()),
            "AvailableFeatures=(null)".to_owned(),
            "ActiveFeatures=(null)".to_owned(),
            format!("Gres={gres}"),
            format!("NodeAddr={host} NodeHostName={host} Version=22.05.8"),
            format!(
                "RealMemory={} AllocMem={} FreeMem={} Sockets=1 Boards=1",
                bytes >> 20,
                used >> 20,
                free_memory()
            ),
            format!("State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A"),
            format!("Partitions={}", names.join(",")),
            format!("BootTime={} SlurmdStartTime={}", stamp(booted()), stamp(Some(status.since))),
            format!("CfgTRES=cpu={cpus},mem={},billing={cpus}", memory(bytes)),
            format!("AllocTRES=cpu={held},mem={}", memory(used)),
        ],
        false,
    ))
}

fn show_partitions(client: &Client, name: Option<&str>) -> anyhow::Result<String> {
    let queues = queues(client)?;
    let host = host();
    let mut text = String::new();
    for (at, queue) in
        queues.iter().enumerate().filter(|(_, queue)| name.is_none_or(|name| queue.name == name))
    {
        let one = Partition { queue, host: &host, usual: at == 0 };
        let usual = if at == 0 { "YES" } else { "NO" };
        let upper = |text: String| if text == "infinite" { "UNLIMITED".to_owned() } else { text };
        text += &block(
            &[
                format!("PartitionName={}", queue.name),
                "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL".to_owned(),
                format!("AllocNodes=ALL Default={usual} QoS=N/A"),
                format!(
                    "DefaultTime={} DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
                    queue.default_time.map_or_else(|| "NONE".to_owned(), clock)
                ),
                format!(
                    "MaxNodes=1 MaxTime={} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
                    upper(one.limit())
                ),
                format!("Nodes={host}"),
                "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO".to_owned(),
                "OverTimeLimit=NONE PreemptMode=OFF".to_owned(),
                format!(
                    "State={} TotalCPUs={} TotalNodes=1 SelectTypeParameters=NONE",
                    if queue.stopped.is_some() { "DOWN" } else { "UP" },
                    queue.cpus
                ),
                "JobDefaults=(null)".to_owned(),
                format!("DefMemPerNode=UNLIMITED MaxMemPerNode={}", queue.memory.unwrap_or(0) >> 20),
                format!(
                    "TRES=cpu={0},mem={1},node=1,billing={0}",
                    queue.cpus,
                    memory(queue.memory.unwrap_or(0))
                ),
            ],
            false,
        );
    }
    Ok(text)
}

fn config(client: &Client) -> anyhow::Result<String> {
    let status = client.status().map_err(|error| refused("slurm_load_ctl_conf error", error))?;
    let now = stamp(Some(Timestamp::now()));
    let rows = [
        ("AccountingStorageType", "accounting_storage/miserly".to_owned()),
        ("BOOT_TIME", stamp(Some(status.since))),
        ("ClusterName", CLUSTER.to_owned()),
        ("JobRequeue", "0".to_owned()),
        ("KillWait", format!("{} sec", KILL_WAIT.as_secs())),
        ("MaxArraySize", "10001".to_owned()),
        ("MaxJobCount", "1000000".to_owned()),
        ("MinJobAge", format!("{MIN_JOB_AGE} sec")),
        ("SelectType", "select/miserly".to_owned()),
        ("SLURM_VERSION", "22.05.8".to_owned()),
        ("SlurmctldHost[0]", host()),
        ("StateSaveLocation", status.state),
    ];
    let rows = rows.map(|(name, value)| format!("{name:<23} = {value}")).join("\n");
    Ok(format!("Configuration data as of {now}\n{rows}\n\nSlurmctld(primary) at {} is UP\n", host()))
}

fn reservations(client: &Client) -> anyhow::Result<String> {
    let all = client.reservations().map_err(|error| refused("slurm_load_reservations error", error))?;
    if all.is_empty() {
        return Ok("No reservations in the system\n".to_owned());
    }
    let names: Vec<String> = all.iter().map(|one| format!("ReservationName={}\n\n", one.name)).collect();
    Ok(names.concat())
}

fn ping() -> anyhow::Result<ExitCode> {
    let host = host();
    let is_up = client()?.status().is_ok();
    print(&format!("Slurmctld(primary) at {host} is {}\n", if is_up { "UP" } else { "DOWN" }))?;
    Ok(if is_up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the running steps of a job, or of all jobs.
fn show_steps(step: Option<&str>) -> anyhow::Result<ExitCode> {
    let client = client()?;
    let failed = |error| refused("slurm_get_job_steps error", error);
    let named = NamedJob::list(step.into_iter()).map_err(anyhow::Error::msg)?;
    let found = if named.is_empty() {
        jobs::all(&client, &Filter { details: true, ..Filter::default() }, |_| true).map_err(failed)?
    } else {
        jobs::named(&client, &named).map_err(failed)?
    };
    if found.is_empty() && !named.is_empty() {
        bail!("slurm_get_job_steps error: Invalid job id specified");
    }
    let is_named = |part: &Part| {
        named.is_empty()
            || named.iter().any(|one| one.step.as_ref().is_none_or(|step| part.suffix()[1..] == **step))
    };
    let (host, now) = (host(), Timestamp::now());
    let mut text = String::new();
    for job in &found {
        let of = Facts { job: Cow::Borrowed(job), now, host: &host, indexes: None };
        running_steps(&of).filter(is_named).for_each(|part| text += &step_block(&of, part));
    }
    if text.is_empty() && step.is_some_and(|step| step.contains('.')) {
        // Slurm prints it as an answer.
        print(&format!("Job step {} not found\n", step.unwrap_or_default()))?;
        return Ok(ExitCode::FAILURE);
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn step_block(of: &Facts, part: Part) -> String {
    let job = &of.job;
    block(
        &[
            format!(
                "StepId={}{} UserId={} StartTime={} TimeLimit={}",
                of.id(),
                part.suffix(),
                job.uid,
                stamp(of.began_of(part)),
                part.limit().map_or_else(|| "UNLIMITED".to_owned(), long_clock)
            ),
            format!("State={} Partition={} NodeList={}", of.state_of(part).name, job.queue, of.host),
            format!(
                "Nodes=1 CPUs={} Tasks={} Name={} Network=(null)",
                of.cpus_of(part),
                part.tasks(),
                part.name()
            ),
        ],
        false,
    )
}

/// Returns the load of the machine over a minute.
pub(super) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("N/A").to_owned()
}

/// Returns the memory of the machine that no program has, in MiB.
pub(super) fn free_memory() -> String {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemFree:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or_else(|| "N/A".to_owned(), |kib| (kib >> 10).to_string())
}

/// Returns the start of the machine.
fn booted() -> Option<Timestamp> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let secs = text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Timestamp::from_second(secs).ok()
}

/// Returns the list of names: of one word, or of the lines of a file.
fn host_list(words: &[String], sorted: bool) -> anyhow::Result<String> {
    let [word] = words else { bail!("invalid encode argument") };
    let text = if word.starts_with('/') {
        std::fs::read_to_string(word).with_context(|| format!("Can't open {word}"))?
    } else {
        word.clone()
    };
    let names = hostlist::names(&text).map_err(anyhow::Error::msg)?;
    Ok(hostlist::joined(&names, sorted) + "\n")
}

/// Returns the numbers of the jobs of some words.
fn numbers(client: &Client, words: &[String]) -> anyhow::Result<Vec<i64>> {
    if words.is_empty() {
        bail!("too few arguments for keyword: give the number of a job");
    }
    let words: Vec<String> = words.iter().flat_map(|word| word.split(',')).map(str::to_owned).collect();
    let mut numbers = vec![];
    for word in &words {
        let named = NamedJob::parse(word).map_err(anyhow::Error::msg)?;
        let found = jobs::named(client, std::slice::from_ref(&named));
        let found = found.map_err(|error| refused("slurm_load_jobs error", error))?;
        if found.is_empty() {
            bail!("Invalid job id specified for job {word}");
        }
        let many = found.len() > 1;
        numbers.extend(found.iter().filter(|job| !many || job.phase.ended().is_none()).map(|job| job.number));
    }
    Ok(numbers)
}

/// Sends a request for each job. A refusal does not stop the others.
fn each(
    words: &[String],
    request: impl Fn(&Client, i64) -> Result<(), miserly_api::client::ClientError>,
) -> anyhow::Result<ExitCode> {
    let client = client()?;
    let mut code = ExitCode::SUCCESS;
    for job in numbers(&client, words)? {
        if let Err(error) = request(&client, job) {
            let error = refused(&format!("job {job}"), error);
            note!("scontrol: error: {}", crate::failure::text(&error));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Queues running jobs again.
///
/// A job may request this for itself, and exit then, as programs with checkpoints do. An end by itself would be final, so this
/// command returns only when the daemon ends the job.
fn requeue(words: &[String]) -> anyhow::Result<ExitCode> {
    let mask: SigSet = [Signal::SIGTERM].into_iter().collect();
    mask.thread_block()?;
    let ends = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let code = each(words, |client, job| client.requeue(job, false).map(drop))?;
    let own = std::env::var("SLURM_JOB_ID").ok().and_then(|job| job.parse::<i64>().ok());
    let is_own = || Some(numbers(&client().ok()?, words).ok()?.contains(&own?));
    if code == ExitCode::SUCCESS && is_own() == Some(true) {
        let limit = Timespec { tv_sec: OWN_END, tv_nsec: 0 };
        // The signal means that the end has begun; without it the job may go on.
        let _ = poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&limit));
    }
    Ok(code)
}

fn update(words: &[String]) -> anyhow::Result<ExitCode> {
    let fields: BTreeMap<String, &str> = words
        .iter()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.trim_end_matches(['+', '-']).to_ascii_lowercase(), value))
        .collect();
    let job = fields
        .get("jobid")
        .or(fields.get("job"))
        .context("update: only jobs are changed; write JobId=NUMBER")?;
    let client = client()?;
    let mut code = ExitCode::SUCCESS;
    for number in numbers(&client, &[(*job).to_owned()])? {
        let view = client.job(number).map_err(|error| refused("slurm_update error", error))?;
        if let Err(error) = change(&client, &view, words) {
            note!("slurm_update error: {}", crate::failure::text(&error));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Changes one job by fields such as `TimeLimit=30`.
fn change(client: &Client, job: &JobView, words: &[String]) -> anyhow::Result<()> {
    let mut changes = Modification::default();
    let mut holds = false;
    let bytes = |value: &str| kibibytes(value)?.checked_mul(1024);
    let now = Zoned::now();
    for word in words {
        let (name, value) = word.split_once('=').with_context(|| format!("Invalid input: {word}"))?;
        match name.trim_end_matches(['+', '-']).to_ascii_lowercase().as_str() {
            "jobid" | "job" => {}
            "timelimit" => {
                let seconds = limit(value.trim_start_matches(['+', '-'])).map_err(anyhow::Error::msg)? as f64;
                let increases = name.ends_with('+') || value.starts_with('+');
                let decreases = name.ends_with('-') || value.starts_with('-');
                changes.time = Some(match (increases, decreases) {
                    (true, _) => job.time + seconds,
                    (false, true) => job.time - seconds,
                    (false, false) => seconds,
                });
            }
            "jobname" | "name" => changes.name = Some(value.to_owned()),
            "partition" => changes.queue = Some(tables::queue(&tables(client)?, value)),
            "numcpus" | "numtasks" | "mincpusnode" => {
                let least = value.split('-').next().unwrap_or_default();
                changes.cpus = Some(least.parse().with_context(|| format!("Invalid number: {word}"))?);
            }
            "minmemorynode" | "mem" => {
                changes.memory = Some(bytes(value).with_context(|| format!("Invalid memory: {word}"))?);
            }
            "minmemorycpu" => {
                let bytes = bytes(value).with_context(|| format!("Invalid memory: {word}"))?;
                changes.memory = Some(bytes.saturating_mul(changes.cpus.unwrap_or(job.cpus)));
            }
            "starttime" | "eligibletime" => {
                changes.begin = Some(instant(value, &now, false).map_err(anyhow::Error::msg)?);
            }
            "deadline" => changes.deadline = Some(instant(value, &now, false).map_err(anyhow::Error::msg)?),
            "priority" if value == "0" => holds = true,
            "numnodes" if value == "1" || value == "1-1" => {}
            "nice" | "priority" | "account" | "qos" | "features" | "comment" | "admincomment" => {
                note!("scontrol: {word} has no effect");
            }
            _ => bail!("Update of this parameter is not supported: {word}"),
        }
    }
    let runs = job.phase.started().is_some();
    if let Some(time) = changes.time.filter(|_| runs) {
        let more = time - job.time;
        if more < 0.0 {
            bail!("the time limit of a running job only grows");
        }
        client.extend(job.number, more).map_err(|error| refused("job", error))?;
        changes.time = None;
    }
    if changes != Modification::default() {
        client.modify(job.number, &changes, false).map_err(|error| refused("job", error))?;
    }
    if holds {
        client.hold(job.number, false)?;
    }
    Ok(())
}
