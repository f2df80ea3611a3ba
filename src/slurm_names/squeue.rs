//! `squeue`: jobs that wait or run.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::Timestamp;
use miserly_api::client::Client;
use miserly_api::model::{Filter, JobView, WaitReason, job_ranges};
use serde_json::{Value, json};

use super::columns::{Column, QUEUE, QueueColumn, STEPS, cell_width, dependency, selected, tres};
use super::facts::{Facts, Part, State, state};
use super::jobs::{self, NamedJob, check_users, is_of_user, own_uid};
use super::options::Given;
use super::sacct::running_steps;
use super::tables::queues_of_filter;
use super::{CLUSTER, client, given, host, refused, repeat};
use crate::output::{print, print_json};

const USUAL: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
const LONG: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
const STEP: &str = "%.15i %.8j %.9P %.8u %.9M %N";
const START: &str = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";

/// The seconds for which an ended job is shown, if its state is requested; that of Slurm by default.
pub(super) const MIN_JOB_AGE: i64 = 300;

/// The jobs that are wanted.
struct Wanted {
    jobs: Vec<NamedJob>,
    /// The states; `None` for all.
    states: Option<Vec<State>>,
    users: Vec<String>,
    queues: Vec<String>,
    names: Vec<String>,
    now: Timestamp,
}

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("squeue", words, false)? else { return Ok(ExitCode::SUCCESS) };
    // The value of --steps may be a word of its own.
    let is_steps = given.has("steps") && given.list("steps").is_empty();
    if let Some(word) = given.words.get(usize::from(is_steps)) {
        bail!("Unrecognized option: {}", word.display());
    }
    let given = given.after(super::options::of_environment("squeue", "SQUEUE_").map_err(anyhow::Error::msg)?);
    let client = client()?;
    repeat(&given, || once(&client, &given))
}

fn once(client: &Client, given: &Given) -> anyhow::Result<ExitCode> {
    let queues = queues_of_filter(client, given)?;
    let wanted = Wanted::new(given, queues).map_err(anyhow::Error::msg)?;
    let host = host();
    // With JSON, Slurm shows jobs, too.
    if given.has("steps") && !given.has("json") {
        let format = Format::new(given, STEPS, STEP).map_err(anyhow::Error::msg)?;
        let found = wanted.find(client, true)?;
        print(&steps(&found, &format, given, &wanted, &host)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let usual = match (given.has("start"), given.has("long")) {
        (true, _) => START,
        (false, true) => LONG,
        (false, false) => USUAL,
    };
    let format = Format::new(given, QUEUE, usual).map_err(anyhow::Error::msg)?;
    let found = wanted.find(client, format.has_details() || given.has("json"))?;
    let mut facts = facts(&found, given, wanted.now, &host);
    if given.has("json") {
        print_json(&document(&facts))?;
        return Ok(ExitCode::SUCCESS);
    }
    sort(&mut facts, given)?;
    print(&text(&facts, &format, given, wanted.now))?;
    Ok(ExitCode::SUCCESS)
}

impl Wanted {
    fn new(given: &Given, queues: Vec<String>) -> Result<Wanted, String> {
        let mut states: Vec<String> = given.list("states");
        states.extend(given.list("state"));
        let is_all = states.iter().any(|state| state.eq_ignore_ascii_case("all"));
        let states: Vec<State> = if is_all {
            vec![]
        } else {
            states.iter().map(|state| State::parse(state)).collect::<Result<_, _>>()?
        };
        let usual = || ["PD", "R", "S"].iter().map(|state| State::parse(state)).collect::<Result<_, _>>();
        let states = match (is_all, given.has("start")) {
            (true, _) => None,
            (false, true) => Some(vec![State::parse("PD")?]),
            (false, false) if states.is_empty() => Some(usual()?),
            (false, false) => Some(states),
        };
        let mut users = given.list("user");
        users.extend(given.list("users"));
        check_users(&users)?;
        if given.has("me") {
            users.push(own_uid().to_string());
        }
        Ok(Wanted {
            jobs: NamedJob::list(given.all("jobs").chain(given.all("job")))?,
            states,
            users,
            queues,
            names: given.list("name"),
            now: Timestamp::now(),
        })
    }

    fn admits(&self, job: &JobView) -> bool {
        let ended = job.phase.ended();
        let is_recent = ended.is_none_or(|end| self.now.duration_since(end).as_secs() <= MIN_JOB_AGE);
        is_recent
            && self.states.as_ref().is_none_or(|states| states.contains(&state(job)))
            && is_of_user(job, &self.users)
            && (self.queues.is_empty() || self.queues.contains(&job.queue))
            && (self.names.is_empty() || self.names.contains(&job.name))
    }

    fn find(&self, client: &Client, details: bool) -> anyhow::Result<Vec<JobView>> {
        let failed = |error| refused("slurm_load_jobs error", error);
        if !self.jobs.is_empty() {
            let found = jobs::named(client, &self.jobs).map_err(failed)?;
            if found.is_empty() && self.jobs.len() == 1 {
                bail!("slurm_load_jobs error: Invalid job id specified");
            }
            return Ok(found.into_iter().filter(|job| self.admits(job)).collect());
        }
        let all = self.states.as_ref().is_none_or(|states| states.iter().any(|state| !state.is_active()));
        let uid = match &self.users[..] {
            [one] => one.parse().ok(),
            _ => None,
        };
        let queue = match &self.queues[..] {
            [one] => Some(one.clone()),
            _ => None,
        };
        let filter = Filter { all, uid, queue, details, ..Filter::default() };
        jobs::all(client, &filter, |job| self.admits(job)).map_err(failed)
    }
}

/// Returns the jobs with one line each; jobs of an array that wait for their turns have one together.
fn facts<'a>(found: &'a [JobView], given: &Given, now: Timestamp, host: &'a str) -> Vec<Facts<'a>> {
    let each = given.has("array") || given.has("array-unique") || given.has("json");
    let single = |job: &'a JobView| Facts { job: Cow::Borrowed(job), now, host, indexes: None };
    let waits = |job: &JobView| state(job).name == "PENDING";
    let mut facts: Vec<Facts<'a>> = vec![];
    let mut rest = found;
    while let [first, ..] = rest {
        let is_alike = |job: &&JobView| {
            waits(job)
                && job.array == first.array
                && own_wait(job).map(std::mem::discriminant) == own_wait(first).map(std::mem::discriminant)
        };
        let alike = if each || first.array.is_none() || !waits(first) {
            1
        } else {
            rest.iter().take_while(is_alike).count().max(1)
        };
        let (group, others) = rest.split_at(alike);
        let mut one = single(first);
        if !each && first.array.is_some() && waits(first) {
            let indexes: Vec<i64> = group.iter().filter_map(|job| job.index).map(i64::from).collect();
            let ranges: Vec<String> = job_ranges(&indexes).iter().map(ToString::to_string).collect();
            let limit = first.array_limit.map(|limit| format!("%{limit}")).unwrap_or_default();
            one.indexes = Some(ranges.join(",") + &limit);
        }
        facts.push(one);
        rest = others;
    }
    facts
}

/// Returns why a job waits for something of its own. Slurm has one line for all jobs of an array that wait for their turns.
fn own_wait(job: &JobView) -> Option<&WaitReason> {
    job.reasons.first().filter(|reason| {
        matches!(
            reason,
            WaitReason::Held
                | WaitReason::Begin { .. }
                | WaitReason::After { .. }
                | WaitReason::Reservation { .. }
        )
    })
}

/// The columns of a list.
enum Format<F: 'static> {
    /// Text with columns by letter.
    Letters(Vec<(String, Option<Cell<F>>)>),
    /// Columns by name, each with its width.
    Names(Vec<(&'static Column<F>, Option<usize>, String)>),
}

/// A column with its width, and whether it is aligned to the right.
struct Cell<F: 'static> {
    column: &'static Column<F>,
    width: Option<usize>,
    right: bool,
}

impl<F> Format<F> {
    /// Returns the format of the options, from the columns of a table.
    fn new(given: &Given, table: &'static [Column<F>], usual: &str) -> Result<Format<F>, String> {
        let what = if given.has("steps") { "job step" } else { "job" };
        match given.value("Format") {
            Some(names) => Format::of_names(names, table, what),
            None => Format::of_letters(given.value("format").unwrap_or(usual), table, what),
        }
    }

    fn of_letters(format: &str, table: &'static [Column<F>], what: &str) -> Result<Format<F>, String> {
        let mut cells = vec![];
        let mut parts = format.split('%');
        if let Some(prefix) = parts.next().filter(|prefix| !prefix.is_empty()) {
            cells.push((prefix.to_owned(), None));
        }
        for part in parts {
            let right = part.starts_with('.');
            let rest = part.trim_start_matches(['.', '-']);
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (width, rest) = rest.split_at(digits);
            let mut letters = rest.chars();
            let letter = letters.next().ok_or("a format ends with %")?;
            let column = selected(table, Some(letter), "")
                .ok_or_else(|| format!("Invalid {what} format specification: {letter}"))?;
            let cell = Cell { column, width: cell_width(width), right };
            cells.push((letters.as_str().to_owned(), Some(cell)));
        }
        Ok(Format::Letters(cells))
    }

    fn of_names(names: &str, table: &'static [Column<F>], what: &str) -> Result<Format<F>, String> {
        let mut columns = vec![];
        for part in names.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, width) =
                part.split_once(':').map_or((part, None), |(name, width)| (name, Some(width)));
            let digits = width.map(|width| width.trim_start_matches('.'));
            let size = digits.map_or(0, |text| text.bytes().take_while(u8::is_ascii_digit).count());
            let (size, suffix) = digits.unwrap_or_default().split_at(size);
            let width = if digits.is_none() { Some(20) } else { cell_width(size).filter(|width| *width > 0) };
            let column = selected(table, None, name).ok_or_else(|| {
                let names: Vec<&str> = table.iter().map(|column| column.name).collect();
                format!("Invalid {what} format specification: {name}; columns: {}", names.join(", "))
            })?;
            columns.push((column, width, suffix.to_owned()));
        }
        Ok(Format::Names(columns))
    }

    fn header(&self) -> String {
        self.line(|column| column.header.to_owned())
    }

    fn line(&self, value: impl Fn(&Column<F>) -> String) -> String {
        let mut line = String::new();
        match self {
            Format::Letters(cells) => {
                for (text, cell) in cells {
                    if let Some(Cell { column, width, right }) = cell {
                        line += &fitted(&value(column), *width, *right);
                    }
                    line += text;
                }
            }
            Format::Names(columns) => {
                for (column, width, suffix) in columns {
                    line += &fitted(&value(column), *width, false);
                    line += suffix;
                }
            }
        }
        line + "\n"
    }

    /// Returns whether a column is part of the details of a job.
    fn has_details(&self) -> bool {
        let is_detail = |column: &Column<F>| "oZ".contains(column.letter) || column.name.starts_with("std");
        match self {
            Format::Letters(cells) => {
                cells.iter().filter_map(|(_, cell)| cell.as_ref()).any(|cell| is_detail(cell.column))
            }
            Format::Names(columns) => columns.iter().any(|(column, ..)| is_detail(column)),
        }
    }
}

/// Returns a text in a width, cut if it is longer.
pub(super) fn fitted(text: &str, width: Option<usize>, right: bool) -> String {
    let Some(width) = width.filter(|width| *width > 0) else { return text.to_owned() };
    let text: String = text.chars().take(width).collect();
    if right { format!("{text:>width$}") } else { format!("{text:<width$}") }
}

/// Returns the head of a list.
fn head<F>(format: &Format<F>, given: &Given, now: Timestamp) -> String {
    if given.has("noheader") {
        return String::new();
    }
    let zoned = now.to_zoned(jiff::tz::TimeZone::system());
    let date =
        if given.has("long") { zoned.strftime("%a %b %d %H:%M:%S %Y\n").to_string() } else { String::new() };
    date + &format.header()
}

fn text(facts: &[Facts], format: &Format<fn(&Facts) -> String>, given: &Given, now: Timestamp) -> String {
    let lines = facts.iter().map(|of| format.line(|column| (column.value)(of)));
    head(format, given, now) + &lines.collect::<String>()
}

/// Returns the running steps of jobs.
fn steps(
    found: &[JobView],
    format: &Format<fn(&Facts, Part) -> String>,
    given: &Given,
    wanted: &Wanted,
    host: &str,
) -> anyhow::Result<String> {
    let words = given.words.iter().flat_map(|word| word.to_str().unwrap_or_default().split(','));
    let ids: Vec<String> = given.list("steps").into_iter().chain(words.map(str::to_owned)).collect();
    if let Some(id) = ids.iter().find(|id| !id.contains('.')) {
        bail!("Invalid job_step id: {id}.??");
    }
    let mut text = head(format, given, wanted.now);
    for job in found {
        let of = Facts { job: Cow::Borrowed(job), now: wanted.now, host, indexes: None };
        let mut running: Vec<Part> = running_steps(&of).collect();
        running.sort_by_key(|part| matches!(part, Part::Script));
        for part in running {
            if ids.is_empty() || ids.contains(&(of.id() + &part.suffix())) {
                text += &format.line(|column| (column.value)(&of, part));
            }
        }
    }
    Ok(text)
}

/// Sorts by `--sort`; else by queue, state, and start.
fn sort(facts: &mut [Facts], given: &Given) -> anyhow::Result<()> {
    let Some(keys) = given.value("sort").or(given.has("start").then_some("S")) else {
        facts.sort_by_cached_key(|of| {
            let start = of.start();
            (of.job.queue.clone(), of.state().position(), start.is_none(), start, of.job.number)
        });
        return Ok(());
    };
    let mut order = vec![];
    for key in keys.split(',').map(str::trim).filter(|key| !key.is_empty()) {
        let (reverse, letter) = match (key.strip_prefix('-'), key.strip_prefix('+')) {
            (Some(letter), _) => (true, letter),
            (None, letter) => (false, letter.unwrap_or(key)),
        };
        let column = selected(QUEUE, letter.chars().next(), "")
            .with_context(|| format!("Invalid sort specification: {key}"))?;
        order.push((column, reverse));
    }
    facts.sort_by(|one, other| {
        let by = |(column, reverse): &(&QueueColumn, bool)| {
            let order = compare(column, one, other);
            if *reverse { order.reverse() } else { order }
        };
        order.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    Ok(())
}

fn compare(column: &QueueColumn, one: &Facts, other: &Facts) -> Ordering {
    match column.letter {
        'i' | 'A' => one.job.number.cmp(&other.job.number),
        't' | 'T' => one.state().position().cmp(&other.state().position()),
        'S' => (one.start().is_none(), one.start()).cmp(&(other.start().is_none(), other.start())),
        'e' => (one.end().is_none(), one.end()).cmp(&(other.end().is_none(), other.end())),
        'V' => one.job.submitted.cmp(&other.job.submitted),
        'M' => one.elapsed().cmp(&other.elapsed()),
        'l' => one.limit().cmp(&other.limit()),
        'm' => one.job.memory.cmp(&other.job.memory),
        'C' => one.job.cpus.cmp(&other.job.cpus),
        // Later jobs have a lower priority.
        'p' | 'Q' => other.start().cmp(&one.start()),
        _ => (column.value)(one).cmp(&(column.value)(other)),
    }
}

/// Returns the jobs in the form of `squeue --json` of Slurm 22.05.
pub(super) fn document(facts: &[Facts]) -> Value {
    let jobs: Vec<Value> = facts.iter().map(job_document).collect();
    json!({"meta": meta(), "errors": [], "jobs": jobs})
}

/// Returns the head of a document.
pub(super) fn meta() -> Value {
    json!({
        "plugin": {"type": "openapi/v0.0.38", "name": "miserly"},
        "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
    })
}

/// A value that all jobs have.
#[derive(Clone, Copy)]
enum Same {
    Text,
    Zero,
    Null,
    No,
    List,
}

impl Same {
    fn document(self) -> Value {
        match self {
            Same::Text => json!(""),
            Same::Zero => json!(0),
            Same::Null => Value::Null,
            Same::No => json!(false),
            Same::List => json!([]),
        }
    }
}

/// The fields that have the same value in all jobs.
const SAME: [(&[&str], Same); 5] = [
    (
        &[
            "account",
            "admin_comment",
            "batch_features",
            "burst_buffer",
            "burst_buffer_state",
            "cluster_features",
            "container",
            "excluded_nodes",
            "features",
            "federation_origin",
            "licenses",
            "mcs_label",
            "required_nodes",
            "resv_name",
            "wckey",
            "cpus_per_tres",
            "federation_siblings_active",
            "federation_siblings_viable",
            "het_job_id_set",
            "memory_per_tres",
            "prefer",
            "tres_bind",
            "tres_freq",
            "tres_per_job",
            "tres_per_socket",
            "tres_per_task",
        ],
        Same::Text,
    ),
    (
        &[
            "association_id",
            "delay_boot",
            "derived_exit_code",
            "het_job_id",
            "het_job_offset",
            "max_cpus",
            "max_nodes",
            "minimum_tmp_disk_per_node",
            "pre_sus_time",
            "preempt_time",
            "resize_time",
            "suspend_time",
            "tasks_per_node",
            "time_minimum",
            "sockets_per_board",
            "tasks_per_board",
        ],
        Same::Zero,
    ),
    (
        &[
            "core_spec",
            "cores_per_socket",
            "memory_per_cpu",
            "nice",
            "profile",
            "shared",
            "sockets_per_node",
            "threads_per_core",
            "cpu_frequency_governor",
            "cpu_frequency_maximum",
            "cpu_frequency_minimum",
            "tasks_per_core",
            "tasks_per_socket",
            "thread_spec",
        ],
        Same::Null,
    ),
    (&["contiguous", "reboot"], Same::No),
    (&["flags", "gres_detail", "show_flags"], Same::List),
];

fn job_document(of: &Facts) -> Value {
    let job = &of.job;
    let secs = |at: Option<Timestamp>| at.map_or(0, Timestamp::as_second);
    let group = of.group();
    let mut document = json!({
        "array_job_id": job.array.unwrap_or(0),
        "array_max_tasks": job.array_limit.unwrap_or(0),
        "array_task_id": job.index,
        "array_task_string": of.indexes.clone().unwrap_or_default(),
        "batch_flag": job.script,
        "billable_tres": job.cpus as f64,
        "cluster": CLUSTER,
        "command": job.command.as_ref().map(|words| words.join(" ")).unwrap_or_default(),
        "comment": job.comment.clone().unwrap_or_default(),
        "cpus": job.cpus,
        "cpus_per_task": if job.tasks.is_some() { json!(of.cpus_per_task()) } else { Value::Null },
        "current_working_directory": job.directory.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        "dependency": if job.after.is_empty() { String::new() } else { dependency(of) },
        "group_id": group.as_ref().map(|group| group.gid.as_raw()),
        "group_name": group.as_ref().map(|group| group.name.clone()).unwrap_or_default(),
        "job_id": job.number,
        "memory_per_node": job.memory >> 20,
        "minimum_cpus_per_node": 1,
        "name": job.name,
        "node_count": 1,
        "partition": job.queue,
        "qos": "normal",
        "standard_error": job.error.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        "standard_input": "/dev/null",
        "standard_output": job.output.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        "system_comment": of.promise().unwrap_or_default(),
        "tasks": of.tasks(),
        "tres_alloc_str": if of.began().is_some() { tres(of) } else { String::new() },
        "tres_per_node": if job.gpus > 0 { format!("gres:gpu:{}", job.gpus) } else { String::new() },
        "tres_req_str": tres(of),
        "user_id": job.uid,
        "user_name": job.user,
    });
    let state = json!({
        "accrue_time": secs(Some(of.eligible())),
        "batch_host": of.node(),
        "deadline": secs(job.deadline),
        "eligible_time": secs(Some(of.eligible())),
        "end_time": secs(of.end()),
        "exit_code": of.exit().0 << 8 | of.exit().1,
        "job_state": of.state().name,
        "last_sched_evaluation": secs(Some(of.now)),
        "nodes": of.node(),
        "priority": 1,
        "requeue": job.restartable,
        "restart_cnt": job.runs.saturating_sub(1),
        "start_time": secs(of.start()),
        "state_description": of.promise().unwrap_or_default(),
        "state_reason": of.reason(),
        "submit_time": secs(Some(job.submitted)),
        "time_limit": of.limit().as_secs() / 60,
    });
    if let (Some(fields), Value::Object(state)) = (document.as_object_mut(), state) {
        fields.extend(state);
        for (names, value) in SAME {
            fields.extend(names.iter().map(|name| ((*name).to_owned(), value.document())));
        }
    }
    document
}
