//! The output of `sacct --json`, from Slurm 21.08 on.

use std::fmt;

use miserly_workload::Trace;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::accounting::Accounting;
use crate::error::{FieldError, ImportError};
use crate::format::Format;
use crate::log::Imported;
use crate::options::ImportOptions;
use crate::row::{Column, Row, Schema};
use crate::state::final_state;

/// Description of the format, for messages.
const FORMAT: &str = "the output of sacct --json is one JSON object with jobs";

/// The columns with their names in messages.
const COLUMNS: [(Column, &str); 17] = [
    (Column::Job, "job_id"),
    (Column::Tasks, "array"),
    (Column::Submit, "time.submission"),
    (Column::Eligible, "time.eligible"),
    (Column::Start, "time.start"),
    (Column::End, "time.end"),
    (Column::Elapsed, "time.elapsed"),
    (Column::Suspended, "time.suspended"),
    (Column::TotalCpu, "time.total"),
    (Column::TimeLimit, "time.limit"),
    (Column::Requested, "required.CPUs"),
    (Column::Nodes, "allocation_nodes"),
    (Column::Memory, "required.memory"),
    (Column::State, "state.current"),
    (Column::Partition, "partition"),
    (Column::AllocatedTres, "tres.allocated"),
    (Column::RequestedTres, "tres.requested"),
];

/// Bit of a memory request that is for each processor, up to Slurm 22.05.
const PER_CPU: u64 = 1 << 63;

/// Converts the output of `sacct --json`, one job at a time.
///
/// # Errors
/// See [`imported`](super::imported).
pub(super) fn slurm_json(trace: &Trace, options: &ImportOptions) -> Result<Imported, ImportError> {
    let columns =
        COLUMNS.into_iter().chain([(Column::User, "user"), (Column::Group, "group"), (Column::Qos, "qos")]);
    let schema = Schema::new(columns);
    let mut accounting = Accounting::new(Format::SlurmJson, options);
    let mut reader = JobReader { schema: &schema, accounting: &mut accounting, failed: None };
    let mut input = serde_json::Deserializer::from_reader(trace.unpacked()?);
    let read = Document(&mut reader).deserialize(&mut input).and_then(|()| input.end());
    if let Some((job, error)) = reader.failed {
        return Err(ImportError::Job { name: trace.name().into(), job, error });
    }
    read.map_err(|error| ImportError::of_json(trace, error, FORMAT))?;
    accounting.finish(trace.name())
}

/// Adds jobs to the accounting as they are read.
struct JobReader<'a, 'o> {
    schema: &'a Schema,
    accounting: &'a mut Accounting<'o>,
    failed: Option<(String, FieldError)>,
}

/// The document: an object of which only `jobs` is read.
struct Document<'r, 'a, 'o>(&'r mut JobReader<'a, 'o>);

/// The list of jobs.
struct Jobs<'r, 'a, 'o>(&'r mut JobReader<'a, 'o>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let mut has_jobs = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "jobs" {
                has_jobs = true;
                map.next_value_seed(Jobs(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if has_jobs { Ok(()) } else { Err(M::Error::missing_field("jobs")) }
    }
}

impl<'de> DeserializeSeed<'de> for Jobs<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Jobs<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a list of jobs")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        let JobReader { schema, accounting, failed } = self.0;
        while let Some(job) = seq.next_element::<JsonJob>()? {
            let id = || format!("job {}", job.job_id);
            if let Err(error) = accounting.add_at(Ok(job.row(schema)), id) {
                *failed = Some((job.job_id.to_string(), error));
                return Err(S::Error::custom("invalid job"));
            }
        }
        Ok(())
    }
}

/// The parts of a job that are read. Their types differ between versions.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct JsonJob {
    job_id: Value,
    array: Value,
    time: Value,
    required: Value,
    allocation_nodes: Value,
    state: Value,
    user: Value,
    group: Value,
    partition: Value,
    qos: Value,
    tres: Value,
}

impl JsonJob {
    fn row<'s>(&self, schema: &'s Schema) -> Row<'s> {
        let mut row = Row::new(schema);
        row.set(Column::Job, text(&self.job_id));
        row.set(Column::Tasks, self.waiting_tasks().unwrap_or_default());
        let times = [
            (Column::Submit, "submission"),
            (Column::Eligible, "eligible"),
            (Column::Start, "start"),
            (Column::End, "end"),
        ];
        for (column, name) in times {
            // 0 is unknown.
            let time = text(&self.time[name]);
            row.set(column, if time == "0" { String::new() } else { time });
        }
        row.set(Column::Elapsed, text(&self.time["elapsed"]));
        row.set(Column::Suspended, text(&self.time["suspended"]));
        row.set(Column::TotalCpu, text(&self.time["total"]["seconds"]));
        let limit = &self.time["limit"];
        let is_open = limit["infinite"].as_bool().unwrap_or(false);
        row.set(Column::TimeLimit, if is_open { "UNLIMITED".to_owned() } else { text(limit) });
        row.set(Column::Requested, text(&self.required["CPUs"]));
        row.set(Column::Nodes, text(&self.allocation_nodes));
        row.set(Column::Memory, self.memory());
        row.set(Column::State, self.state());
        for (column, value) in [
            (Column::User, &self.user),
            (Column::Group, &self.group),
            (Column::Partition, &self.partition),
            (Column::Qos, &self.qos),
        ] {
            row.set(column, value.as_str().unwrap_or_default().to_owned());
        }
        row.set(Column::AllocatedTres, tres(&self.tres["allocated"]));
        row.set(Column::RequestedTres, tres(&self.tres["requested"]));
        row
    }

    /// Returns the tasks of an array that wait together, as `7_[1-3]`.
    fn waiting_tasks(&self) -> Option<String> {
        let (array, tasks) = (text(&self.array["job_id"]), self.array["task"].as_str()?);
        let is_waiting = !tasks.is_empty() && text(&self.array["task_id"]).is_empty();
        is_waiting.then(|| format!("{array}_[{}]", tasks.trim_matches(['[', ']'])))
    }

    /// Returns the state: a word, or the first known one of a list of states and flags.
    fn state(&self) -> String {
        let current = if self.state.is_object() { &self.state["current"] } else { &self.state };
        let words: Vec<&str> = match current {
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
            word => word.as_str().into_iter().collect(),
        };
        let known = words.iter().find(|word| final_state(word).is_some());
        known.or(words.first()).map(|word| (*word).to_owned()).unwrap_or_default()
    }

    /// Returns the requested memory in MiB, for each processor or node.
    fn memory(&self) -> String {
        let raw = self.required["memory"].as_u64().filter(|memory| memory & PER_CPU != 0);
        if let Some(memory) = raw {
            return format!("{}Mc", memory & !PER_CPU);
        }
        let named = [("memory_per_cpu", "Mc"), ("memory_per_node", "Mn"), ("memory", "Mn")];
        let amounts = named.map(|(name, unit)| (text(&self.required[name]), unit));
        let found = amounts.iter().find(|(amount, _)| !amount.is_empty() && amount != "0");
        found.map(|(amount, unit)| format!("{amount}{unit}")).unwrap_or_default()
    }
}

/// Returns a value as text: plain, or as `{"set": true, "infinite": false, "number": 7}` from Slurm 23.02 on. An unset one is
/// empty.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(parts) if parts.get("set").and_then(Value::as_bool) == Some(false) => String::new(),
        Value::Object(parts) => parts.get("number").map(text).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// Returns trackable resources as `sacct` prints them: `cpu=4,mem=8192M,gres/gpu=1`.
fn tres(list: &Value) -> String {
    let one = |tres: &Value| {
        let (kind, name) = (tres["type"].as_str()?, tres["name"].as_str().unwrap_or_default());
        let (slash, unit) = (if name.is_empty() { "" } else { "/" }, if kind == "mem" { "M" } else { "" });
        Some(format!("{kind}{slash}{name}={}{unit}", text(&tres["count"])))
    };
    let all: Vec<String> = list.as_array().into_iter().flatten().filter_map(one).collect();
    all.join(",")
}
