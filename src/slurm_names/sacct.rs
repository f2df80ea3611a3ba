//! `sacct`: the accounting of jobs.

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use jiff::{SignedDuration, Timestamp, Zoned};
use miserly_api::client::Client;
use miserly_api::model::{Filter, JobView};
use serde_json::{Value, json};

use super::columns::{ACCOUNTING, AccountingColumn, accounting_columns, cell, tres_by_name};
use super::facts::{Facts, Part, State, state};
use super::jobs::{self, NamedJob, is_of_user, own_uid};
use super::options::Given;
use super::squeue::meta;
use super::tables::queues_of_filter;
use super::times::instant;
use super::{CLUSTER, client, given, host, refused};
use crate::output::{print, print_json};

const USUAL: &str = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
const BRIEF: &str = "JobID,State,ExitCode";
const LONG: &str =
    "JobID,JobIDRaw,JobName,Partition,MaxRSS,AveRSS,NTasks,AllocCPUS,Elapsed,State,ExitCode,ReqMem,AllocTRES";

/// How cells are separated.
enum Separator {
    /// Columns of a fixed width.
    Width,
    /// A text between cells, and after the last one, too, if so.
    Text(String, bool),
}

/// A row: a job, and the part of it.
struct Row<'a> {
    of: Facts<'a>,
    part: Part<'a>,
}

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("sacct", words, false)? else { return Ok(ExitCode::SUCCESS) };
    if given.has("helpformat") {
        print(&names(ACCOUNTING.iter().map(|column| column.name)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(word) = given.words.first() {
        bail!("unrecognized argument {}", word.display());
    }
    let given = given.after(super::options::of_environment("sacct", "SACCT_").map_err(anyhow::Error::msg)?);
    let usual = match (given.has("brief"), given.has("long")) {
        (true, _) => BRIEF,
        (false, true) => LONG,
        (false, false) => USUAL,
    };
    let formats: Vec<&str> = given.all("format").collect();
    let format = if formats.is_empty() { usual.to_owned() } else { formats.join(",") };
    let columns = accounting_columns(&format).map_err(anyhow::Error::msg)?;
    let now = Zoned::now();
    let client = client()?;
    let queues = queues_of_filter(&client, &given)?;
    let wanted = Wanted::new(&given, queues, &now).map_err(anyhow::Error::msg)?;
    let found = wanted.find(&client)?;
    let host = host();
    let rows = rows(&found, &wanted, &given, now.timestamp(), &host);
    if given.has("json") {
        print_json(&document(&found, now.timestamp(), &host))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&text(&rows, &columns, &given))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns names in four columns, as Slurm lists them.
pub(super) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("{name:<19}")).collect();
    names.chunks(4).map(|line| line.join(" ") + "\n").collect()
}

/// The jobs that are wanted.
struct Wanted {
    jobs: Vec<NamedJob>,
    states: Vec<State>,
    users: Vec<String>,
    queues: Vec<String>,
    names: Vec<String>,
    cpus: Option<(u64, u64)>,
    from: Option<Timestamp>,
    until: Timestamp,
}

impl Wanted {
    fn new(given: &Given, queues: Vec<String>, now: &Zoned) -> Result<Wanted, String> {
        let mut users = given.list("user");
        users.extend(given.list("uid"));
        let jobs = NamedJob::list(given.all("jobs"))?;
        // As Slurm: without jobs and users the list has those of the user; root sees all.
        if users.is_empty() && !given.has("allusers") && jobs.is_empty() && own_uid() != 0 {
            users.push(own_uid().to_string());
        }
        if given.has("allusers") {
            users.clear();
        }
        let states: Vec<State> =
            given.list("state").iter().map(|state| State::parse(state)).collect::<Result<_, _>>()?;
        let at = |option| given.value(option).map(|text| instant(text, now, true)).transpose();
        let midnight = now.start_of_day().map(|zoned| zoned.timestamp()).ok();
        // Jobs that are named, and states without a period, count from the begin.
        let from = match at("starttime")? {
            Some(from) => Some(from),
            None if !jobs.is_empty() => None,
            None => midnight,
        };
        let range = |text: &str| {
            let (least, most) = text.split_once('-').unwrap_or((text, text));
            Some((least.parse().ok()?, most.parse().ok()?))
        };
        let cpus = given.value("ncpus").map(|text| range(text).ok_or("--ncpus: write a number or a range"));
        Ok(Wanted {
            jobs,
            states,
            users,
            queues,
            names: given.list("name"),
            cpus: cpus.transpose()?,
            from,
            until: at("endtime")?.unwrap_or(now.timestamp()),
        })
    }

    fn admits(&self, job: &JobView) -> bool {
        let ended = job.phase.ended();
        self.from.is_none_or(|from| ended.is_none_or(|end| end >= from))
            && (!self.jobs.is_empty() || job.submitted <= self.until)
            && (self.states.is_empty() || self.states.contains(&state(job)))
            && is_of_user(job, &self.users)
            && (self.queues.is_empty() || self.queues.contains(&job.queue))
            && (self.names.is_empty() || self.names.contains(&job.name))
            && self.cpus.is_none_or(|(least, most)| (least..=most).contains(&job.cpus))
    }

    fn find(&self, client: &Client) -> anyhow::Result<Vec<JobView>> {
        let failed = |error| refused("Problem talking to the database", error);
        if !self.jobs.is_empty() {
            let found = jobs::named(client, &self.jobs).map_err(failed)?;
            return Ok(found.into_iter().filter(|job| self.admits(job)).collect());
        }
        let uid = match &self.users[..] {
            [one] => one.parse().ok(),
            _ => None,
        };
        let filter = Filter { all: true, details: true, uid, ..Filter::default() };
        jobs::all(client, &filter, |job| self.admits(job)).map_err(failed)
    }

    /// Returns whether a part of a job is wanted.
    fn admits_part(&self, job: &JobView, part: Part) -> bool {
        let mut named = self.jobs.iter().filter(|named| named.admits(job)).peekable();
        let is_wanted = |step: &str| part.suffix().strip_prefix('.') == Some(step);
        named.peek().is_none() || named.any(|one| one.step.as_deref().is_none_or(is_wanted))
    }
}

/// Returns the parts of a job that its accounting has.
fn parts(job: &JobView) -> impl Iterator<Item = Part<'_>> {
    let has_script = job.script && job.attempts > 0;
    let steps = job.steps.iter().map(Part::Step);
    [Part::Job].into_iter().chain(has_script.then_some(Part::Script)).chain(steps)
}

/// Returns the steps of a job that run, in the order of its accounting.
pub(super) fn running_steps<'a>(of: &'a Facts) -> impl Iterator<Item = Part<'a>> {
    parts(&of.job).filter(|part| part.is_step() && of.ended_of(*part).is_none())
}

fn rows<'a>(
    found: &'a [JobView],
    wanted: &Wanted,
    given: &Given,
    now: Timestamp,
    host: &'a str,
) -> Vec<Row<'a>> {
    let mut rows = vec![];
    for job in found {
        let parts = parts(job)
            .filter(|part| !(part.is_step() && given.has("allocations")) && wanted.admits_part(job, *part));
        rows.extend(
            parts.map(|part| Row { of: Facts { job: Cow::Borrowed(job), now, host, indexes: None }, part }),
        );
    }
    rows
}

fn text(rows: &[Row], columns: &[(&AccountingColumn, isize)], given: &Given) -> String {
    let separator = match (given.has("parsable2"), given.has("parsable")) {
        (false, false) => Separator::Width,
        (_, after) => Separator::Text(given.value("delimiter").unwrap_or("|").to_owned(), after),
    };
    let line = |cells: &dyn Fn(&AccountingColumn) -> String| match &separator {
        Separator::Width => {
            let cells: String =
                columns.iter().map(|(column, width)| cell(&cells(column), *width) + " ").collect();
            cells + "\n"
        }
        Separator::Text(text, after) => {
            let cells: Vec<String> = columns.iter().map(|(column, _)| cells(column)).collect();
            cells.join(text) + if *after { text } else { "" } + "\n"
        }
    };
    let mut text = String::new();
    if !given.has("noheader") {
        text += &line(&|column| column.name.to_owned());
        if matches!(separator, Separator::Width) {
            let dashes: String =
                columns.iter().map(|(_, width)| "-".repeat(width.unsigned_abs()) + " ").collect();
            text += &format!("{dashes}\n");
        }
    }
    for row in rows {
        text += &line(&|column| (column.value)(&row.of, row.part));
    }
    text
}

/// Returns the jobs in the form of `sacct --json` of Slurm 22.05.
fn document(found: &[JobView], now: Timestamp, host: &str) -> Value {
    let facts = |job| Facts { job: Cow::Borrowed(job), now, host, indexes: None };
    let jobs: Vec<Value> = found.iter().map(|job| job_document(&facts(job), job)).collect();
    json!({"meta": meta(), "errors": [], "jobs": jobs})
}

/// Returns an exit code and a signal.
fn exit_document((code, signal): (i32, i32)) -> Value {
    if signal > 0 {
        json!({"status": "SIGNALED", "return_code": code, "signal": {"signal_id": signal}})
    } else {
        json!({"status": if code == 0 { "SUCCESS" } else { "ERROR" }, "return_code": code})
    }
}

fn seconds(at: Option<Timestamp>) -> i64 {
    at.map_or(0, Timestamp::as_second)
}

fn step_document(of: &Facts, part: Part) -> Value {
    let (id, name, tasks) = match part {
        Part::Step(step) => (json!(step.step), &step.name[..], step.tasks),
        Part::Job | Part::Script => (json!("batch"), "batch", 1),
    };
    json!({
        "step": {"id": {"job_id": of.job.number, "step_id": id}, "name": name},
        "state": of.state_of(part).name,
        "exit_code": exit_document(of.exit_of(part)),
        "nodes": {"count": 1, "range": of.node()},
        "tasks": {"count": tasks},
        "time": {
            "elapsed": of.elapsed_of(part).as_secs(),
            "start": seconds(of.began_of(part)),
            "end": seconds(of.ended_of(part)),
        },
    })
}

fn job_document(of: &Facts, job: &JobView) -> Value {
    let usage = job.usage.as_ref().map(|usage| usage.total);
    let cpu = |secs: f64| {
        let span = SignedDuration::try_from_secs_f64(secs).unwrap_or_default();
        json!({"seconds": span.as_secs(), "microseconds": span.subsec_micros()})
    };
    let (user, system) = usage.map_or((0.0, 0.0), |usage| (usage.user, usage.system));
    let steps: Vec<Value> =
        parts(job).filter(|part| part.is_step()).map(|part| step_document(of, part)).collect();
    json!({
        "account": "",
        "allocation_nodes": 1,
        "array": {"job_id": job.array.unwrap_or(0), "task_id": job.index},
        "association": {"account": "", "cluster": CLUSTER, "partition": null, "user": job.user},
        "cluster": CLUSTER,
        "comment": {"administrator": null, "job": job.comment, "system": of.promise()},
        "derived_exit_code": exit_document((0, 0)),
        "exit_code": exit_document(of.exit()),
        "group": of.group().map_or_else(String::new, |group| group.name),
        "job_id": job.number,
        "name": job.name,
        "nodes": if of.began().is_some() { of.host } else { "None assigned" },
        "partition": job.queue,
        "priority": 1,
        "qos": "",
        "required": {"CPUs": job.cpus, "memory": job.memory >> 20},
        "state": {"current": of.state().name, "reason": of.reason()},
        "steps": steps,
        "time": {
            "elapsed": of.elapsed().as_secs(),
            "eligible": seconds(Some(of.eligible())),
            "end": seconds(job.phase.ended()),
            "limit": of.limit().as_secs() / 60,
            "start": seconds(of.began()),
            "submission": seconds(Some(job.submitted)),
            "suspended": 0,
            "user": cpu(user),
            "system": cpu(system),
            "total": cpu(user + system),
        },
        "tres": {"requested": tres_by_name(of), "allocated": if of.began().is_some() { tres_by_name(of) } else { String::new() }},
        "constraints": "",
        "container": "",
        "flags": [],
        "het": {"job_id": 0, "job_offset": null},
        "kill_request_user": null,
        "mcs": {"label": ""},
        "reservation": {"id": 0, "name": 0},
        "user": job.user,
        "wckey": {"wckey": "", "flags": []},
        "working_directory": job.directory.as_ref().map(|path| path.display().to_string()),
    })
}
