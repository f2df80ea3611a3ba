//! `sinfo`: queues, and the machine.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use jiff::{SignedDuration, Zoned};
use miserly_api::client::Client;
use miserly_api::model::QueueStatus;
use serde_json::json;

use super::columns::cell_width;
use super::facts::short_clock;
use super::options::Given;
use super::scontrol::{free_memory, load};
use super::squeue::{fitted, meta};
use super::{client, given, host, refused, repeat};
use crate::output::{print, print_json};

const USUAL: &str = "%9P %.5a %.10l %.6D %.6t %N";
const LONG: &str = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
const NODES: &str = "%N %.6D %.9P %6t";
const LONG_NODES: &str = "%N %.6D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E";
const SUMMARY: &str = "%9P %.5a %.10l %.16F %N";
const REASONS: &str = "%20E %9u %19H %N";

/// A queue, and the machine as it sees it.
pub(super) struct Partition<'a> {
    pub(super) queue: &'a QueueStatus,
    pub(super) host: &'a str,
    /// Whether it is the queue of jobs that name none.
    pub(super) usual: bool,
}

impl Partition<'_> {
    /// Returns the state of the machine as the queue sees it.
    pub(super) fn state(&self) -> &'static str {
        match (self.queue.cpus_held, &self.queue.stopped) {
            (_, Some(_)) => "drained",
            (0, None) => "idle",
            (held, None) if held >= self.queue.cpus => "allocated",
            (_, None) => "mixed",
        }
    }

    pub(super) fn limit(&self) -> String {
        self.queue.max_time.map_or_else(|| "infinite".to_owned(), clock)
    }

    fn memory(&self) -> u64 {
        self.queue.memory.unwrap_or(0) >> 20
    }

    fn value(&self, letter: char) -> Option<(&'static str, String)> {
        let queue = self.queue;
        let (held, idle) = (queue.cpus_held, queue.cpus.saturating_sub(queue.cpus_held));
        let short = |state: &str| match state {
            "allocated" => "alloc".to_owned(),
            "mixed" => "mix".to_owned(),
            "drained" => "drain".to_owned(),
            state => state.to_owned(),
        };
        let gpus = || if queue.gpus > 0 { format!("gpu:{}", queue.gpus) } else { "(null)".to_owned() };
        Some(match letter {
            'P' => ("PARTITION", format!("{}{}", queue.name, if self.usual { "*" } else { "" })),
            'R' => ("PARTITION", queue.name.clone()),
            'a' => ("AVAIL", if queue.stopped.is_some() { "down" } else { "up" }.to_owned()),
            'l' => ("TIMELIMIT", self.limit()),
            'L' => ("DEFAULTTIME", queue.default_time.map_or_else(|| "n/a".to_owned(), clock)),
            'D' => ("NODES", "1".to_owned()),
            't' => ("STATE", short(self.state())),
            'T' => ("STATE", self.state().to_owned()),
            'N' => ("NODELIST", self.host.to_owned()),
            'n' => ("HOSTNAMES", self.host.to_owned()),
            'o' => ("NODE_ADDR", self.host.to_owned()),
            'c' => ("CPUS", queue.cpus.to_string()),
            'C' => ("CPUS(A/I/O/T)", format!("{held}/{idle}/0/{}", queue.cpus)),
            'm' => ("MEMORY", self.memory().to_string()),
            'e' => ("FREE_MEM", free_memory()),
            'G' => ("GRES", gpus()),
            'A' => ("NODES(A/I)", if held > 0 { "1/0" } else { "0/1" }.to_owned()),
            'F' => ("NODES(A/I/O/T)", if held > 0 { "1/0/0/1" } else { "0/1/0/1" }.to_owned()),
            'E' => ("REASON", queue.stopped.clone().unwrap_or_else(|| "none".to_owned())),
            'u' | 'U' => ("USER", "Unknown".to_owned()),
            'H' => ("TIMESTAMP", "Unknown".to_owned()),
            'X' => ("SOCKETS", "1".to_owned()),
            'Y' => ("CORES", queue.cpus.to_string()),
            'Z' => ("THREADS", "1".to_owned()),
            'z' => ("S:C:T", format!("1:{}:1", queue.cpus)),
            'd' => ("TMP_DISK", "0".to_owned()),
            'f' | 'b' => {
                (if letter == 'f' { "AVAIL_FEATURES" } else { "ACTIVE_FEATURES" }, "(null)".to_owned())
            }
            'g' => ("GROUPS", "all".to_owned()),
            'h' => ("OVERSUBSCRIBE", "NO".to_owned()),
            'I' => ("PRIO_JOB_FACTOR", "1".to_owned()),
            'p' => ("PRIO_TIER", "1".to_owned()),
            'r' => ("ROOT", "no".to_owned()),
            's' => ("JOB_SIZE", "1".to_owned()),
            'B' => ("MAX_CPUS_PER_NODE", "UNLIMITED".to_owned()),
            'O' => ("CPU_LOAD", load()),
            'w' => ("WEIGHT", "1".to_owned()),
            'v' => ("VERSION", "22.05.8".to_owned()),
            'M' => ("PREEMPT_MODE", "OFF".to_owned()),
            'S' => ("ALLOCNODES", "all".to_owned()),
            _ => return None,
        })
    }
}

/// The columns that `-O` selects by name.
const NAMES: &[(&str, char)] = &[
    ("partition", 'P'),
    ("partitionname", 'R'),
    ("available", 'a'),
    ("time", 'l'),
    ("defaulttime", 'L'),
    ("nodes", 'D'),
    ("statecompact", 't'),
    ("statelong", 'T'),
    ("statecomplete", 'T'),
    ("nodelist", 'N'),
    ("nodehost", 'n'),
    ("nodeaddr", 'o'),
    ("cpus", 'c'),
    ("cpusstate", 'C'),
    ("memory", 'm'),
    ("freemem", 'e'),
    ("gres", 'G'),
    ("nodeai", 'A'),
    ("nodeaiot", 'F'),
    ("reason", 'E'),
    ("sockets", 'X'),
    ("cores", 'Y'),
    ("threads", 'Z'),
    ("socketcorethread", 'z'),
    ("disk", 'd'),
    ("features", 'f'),
    ("features_act", 'b'),
    ("groups", 'g'),
    ("maxcpuspernode", 'B'),
    ("cpusload", 'O'),
    ("size", 's'),
    ("root", 'r'),
    ("oversubscribe", 'h'),
    ("weight", 'w'),
    ("version", 'v'),
];

/// A part of a line: a column and its width, and the text after it.
struct Part {
    letter: char,
    width: Option<usize>,
    right: bool,
    after: String,
}

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("sinfo", words, false)? else { return Ok(ExitCode::SUCCESS) };
    let given = given.after(super::options::of_environment("sinfo", "SINFO_").map_err(anyhow::Error::msg)?);
    let client = client()?;
    repeat(&given, || once(&client, &given))
}

fn once(client: &Client, given: &Given) -> anyhow::Result<ExitCode> {
    let status = client.status().map_err(|error| refused("slurm_load_partitions", error))?;
    let wanted = given.list("partition");
    let host = host();
    let queues = status.queues.iter().enumerate();
    let all: Vec<Partition> =
        queues.map(|(at, queue)| Partition { queue, host: &host, usual: at == 0 }).collect();
    let mut partitions: Vec<&Partition> =
        all.iter().filter(|one| wanted.is_empty() || wanted.contains(&one.queue.name)).collect();
    if given.has("list-reasons") {
        partitions.retain(|one| one.queue.stopped.is_some());
    }
    if given.has("json") {
        let nodes = json!([{"name": host, "hostname": host, "cpus": status.cpus, "state": "idle", "partitions":
            partitions.iter().map(|one| one.queue.name.clone()).collect::<Vec<_>>()}]);
        print_json(&json!({"meta": meta(), "errors": [], "nodes": nodes}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let parts = format(given).map_err(anyhow::Error::msg)?;
    let line = |cell: &dyn Fn(char) -> String| {
        let cells: String = parts
            .iter()
            .map(|part| fitted(&cell(part.letter), part.width, part.right) + &part.after)
            .collect();
        cells + "\n"
    };
    let mut text = String::new();
    if !given.has("noheader")
        && let Some(any) = all.first()
    {
        if given.has("long") {
            text += &Zoned::now().strftime("%a %b %d %H:%M:%S %Y\n").to_string();
        }
        text += &line(&|letter| any.value(letter).map_or_else(String::new, |(header, _)| header.to_owned()));
    }
    for partition in partitions {
        text += &line(&|letter| partition.value(letter).map_or_else(String::new, |(_, value)| value));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn format(given: &Given) -> Result<Vec<Part>, String> {
    if let Some(names) = given.value("Format") {
        let part = |part: &str| {
            let (name, width) = part.split_once(':').unwrap_or((part, "20"));
            let found = NAMES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
            let (_, letter) = found.ok_or_else(|| format!("Invalid node format specification: {name}"))?;
            Ok(Part {
                letter: *letter,
                width: cell_width(width.trim_matches('.')),
                right: false,
                after: String::new(),
            })
        };
        return names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(part).collect();
    }
    let usual = if given.has("summarize") {
        SUMMARY
    } else if given.has("list-reasons") {
        REASONS
    } else if given.has("Node") {
        if given.has("long") { LONG_NODES } else { NODES }
    } else if given.has("long") {
        LONG
    } else {
        USUAL
    };
    let format = given.value("format").unwrap_or(usual);
    let mut pieces = format.split('%');
    let before = pieces.next().unwrap_or_default();
    let mut parts = if before.is_empty() {
        vec![]
    } else {
        vec![Part { letter: ' ', width: None, right: false, after: before.to_owned() }]
    };
    for piece in pieces {
        let right = piece.starts_with('.');
        let rest = piece.trim_start_matches(['.', '-']);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (width, rest) = rest.split_at(digits);
        let letter = rest.chars().next().ok_or("a format ends with %")?;
        if probe().value(letter).is_none() {
            return Err(format!("Invalid node format specification: {letter}"));
        }
        parts.push(Part {
            letter,
            width: cell_width(width),
            right,
            after: rest[letter.len_utf8()..].to_owned(),
        });
    }
    Ok(parts)
}

/// Returns a queue of which only the columns matter.
fn probe() -> Partition<'static> {
    static NONE: QueueStatus = QueueStatus {
        name: String::new(),
        policy: String::new(),
        stopped: None,
        promises: String::new(),
        cpus: 0,
        memory: None,
        cpus_held: 0,
        memory_held: 0,
        gpus: 0,
        gpus_held: 0,
        default_time: None,
        max_time: None,
        running: 0,
        waiting: 0,
    };
    Partition { queue: &NONE, host: "", usual: false }
}

/// Returns seconds as sinfo prints a time limit.
pub(super) fn clock(secs: f64) -> String {
    short_clock(SignedDuration::try_from_secs_f64(secs).unwrap_or(SignedDuration::MAX))
}

/// Returns the queues of the daemon, the first one of which is that of jobs that name none.
pub(super) fn queues(client: &Client) -> anyhow::Result<Vec<QueueStatus>> {
    let status = client.status().map_err(|error| refused("slurm_load_partitions", error))?;
    if status.queues.is_empty() {
        bail!("the daemon has no queue");
    }
    Ok(status.queues)
}
