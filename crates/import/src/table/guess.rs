//! Tables without a column map: recognised by their header, and a map proposed from names and first rows.

use std::fmt::Write;

use miserly_workload::Trace;
use miserly_workload::swf::Record;

use super::bind::Bound;
use super::cell::{Cell, Clock, Reading, number};
use super::field::{TableField, TableFormat, Unit};
use super::map::{ColumnMap, TableForm};
use super::presets::PRESETS;
use super::source::{Source, Wanted, format_of};
use crate::error::ImportError;
use crate::options::ImportOptions;
use crate::state::final_state;

/// Separators of CSV.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// Rows that a proposal is made of.
const SAMPLE: u64 = 1_000;

/// Rows that are shown.
const SHOWN: u64 = 10;

/// A column map that is proposed for a table.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The map as TOML, with comments on what to check.
    pub toml: String,
    /// Names of the presets that have the columns of the table.
    pub presets: Vec<&'static str>,
    /// Columns of the table: name, kind and an example.
    pub columns: Vec<[String; 3]>,
    /// The first jobs as they would be read, or why none can be.
    pub jobs: Result<Vec<Record>, String>,
}

/// Returns the separator of a table in CSV by its first line.
pub(crate) fn delimiter(trace: &Trace) -> Result<Option<u8>, ImportError> {
    let start = trace.start(1 << 16)?;
    if format_of(&start) != TableFormat::Csv {
        return Ok(None);
    }
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(delimiter_of(line))
}

fn delimiter_of(line: &[u8]) -> Option<u8> {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    // Of equal counts, the first applies.
    DELIMITERS
        .into_iter()
        .rev()
        .max_by_key(|&delimiter| count(delimiter))
        .filter(|&delimiter| count(delimiter) > 0)
}

fn names_of(line: &str) -> Vec<String> {
    let Some(delimiter) = delimiter_of(line.as_bytes()) else { return vec![] };
    let trimmed = |name: &str| name.trim().trim_matches('"').to_owned();
    line.split(char::from(delimiter)).map(trimmed).collect()
}

/// Returns whether a line is a header of a table: at least three names.
pub(crate) fn is_table_header(line: &str) -> bool {
    let names = names_of(line);
    let is_name = |name: &String| {
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
            && name.len() <= 60
            && name.chars().all(|letter| letter.is_alphanumeric() || " _.-/()[]:#%".contains(letter))
    };
    let with_blanks = names.iter().filter(|name| name.contains(' ')).count();
    names.len() >= 3 && names.iter().all(is_name) && with_blanks * 4 <= names.len()
}

/// Returns whether a line is the header of a table that a preset reads.
pub(crate) fn is_preset_header(line: &str) -> bool {
    is_table_header(line) && !fitting_presets(&names_of(line)).is_empty()
}

/// Returns the presets whose columns a table has: those with the most.
pub(crate) fn fitting_presets(names: &[String]) -> Vec<&'static str> {
    let fits = |map: &ColumnMap| {
        let has_header =
            map.form.names.is_none() && map.join.is_none() && map.unseen.is_none() && !map.fields.is_empty();
        has_header && Bound::new(map, "", names, None).is_ok()
    };
    let fitting: Vec<(usize, &str)> = PRESETS
        .iter()
        .filter_map(|preset| {
            let map = preset.map().ok().filter(fits)?;
            Some((map.fields.len(), preset.name))
        })
        .collect();
    let most = fitting.iter().map(|(fields, _)| *fields).max();
    fitting.into_iter().filter(|(fields, _)| Some(*fields) == most).map(|(_, name)| name).collect()
}

/// What the first values of a column are.
#[allow(clippy::struct_excessive_bools, reason = "a column may be several of these")]
#[derive(Default)]
struct Sample {
    name: String,
    values: Vec<Option<String>>,
    /// The values as numbers; of texts, if all are numbers.
    numbers: Vec<f64>,
    are_numbers: bool,
    are_dates: bool,
    lack_zones: bool,
    are_clocks: bool,
}

/// The names of columns for each field, the likeliest first, in small letters without signs.
const NAMES: [(TableField, &[&str]); 21] = [
    (TableField::Job, &["jobid", "idjob", "jid", "jobnumber", "primaryjobid", "id", "job"]),
    (
        TableField::Submit,
        &[
            "submittime",
            "submit",
            "submittedtime",
            "timesubmit",
            "jobsubmittime",
            "submitted",
            "submission",
            "submissiontime",
            "adt",
            "arrival",
            "arrivaltime",
            "creationtime",
            "createdat",
            "queuedtime",
            "qtime",
        ],
    ),
    (TableField::Eligible, &["eligibletime", "eligible", "timeeligible", "etime"]),
    (
        TableField::Start,
        &[
            "starttime",
            "start",
            "begintime",
            "timestart",
            "started",
            "startedat",
            "begin",
            "sdt",
            "scheduledtime",
            "launchtime",
        ],
    ),
    (
        TableField::End,
        &[
            "endtime",
            "end",
            "finishtime",
            "timeend",
            "ended",
            "finish",
            "finished",
            "finishedat",
            "completiontime",
            "edt",
            "deletiontime",
        ],
    ),
    (TableField::Runtime, &["runtime", "elapsed", "elapsedraw", "runseconds", "walltimeused", "duration"]),
    (TableField::Wait, &["waittime", "wait", "queuetime"]),
    (
        TableField::Estimate,
        &[
            "wallclockreq",
            "timelimit",
            "timelimitraw",
            "walltime",
            "walltimereq",
            "reqwalltime",
            "requestedtime",
            "wallclocklimit",
            "elpl",
            "limit",
            "maxminutes",
            "limitmin",
            "limitminutes",
            "walllimit",
            "estimate",
        ],
    ),
    (
        TableField::Procs,
        &[
            "numcoresalloc",
            "alloccpus",
            "cpusalloc",
            "coresalloc",
            "processorsalloc",
            "ncpus",
            "numcpus",
            "cpunum",
            "processors",
            "cores",
            "cpus",
            "procs",
            "numcores",
            "ncores",
            "processorsreq",
            "reqcpus",
            "cpurequest",
            "taskcount",
            "ntasks",
        ],
    ),
    (TableField::RequestedProcs, &["numcoresreq", "reqcpus", "cpusreq", "coresreq"]),
    (
        TableField::Nodes,
        &[
            "nodesalloc",
            "numnodesalloc",
            "allocnodes",
            "nnodes",
            "numnodes",
            "nodenum",
            "nodecount",
            "nodes",
            "nodesreq",
            "nnuma",
            "nnumr",
        ],
    ),
    (
        TableField::Gpus,
        &[
            "numgpusalloc",
            "gpusalloc",
            "gpunum",
            "gpus",
            "ngpus",
            "numgpus",
            "numgpu",
            "gpusreq",
            "gpurequest",
            "gpucount",
        ],
    ),
    (
        TableField::Memory,
        &[
            "memreq",
            "reqmem",
            "memory",
            "mem",
            "memorymib",
            "memorymb",
            "memorygb",
            "memmb",
            "memgb",
            "requestedmemory",
        ],
    ),
    (TableField::GpuType, &["gputype", "gpumodel", "gpuspec"]),
    (TableField::User, &["user", "username", "userid", "iduser", "uid", "usr", "owner", "hasheduserid"]),
    (TableField::Group, &["group", "groupid", "gid", "groupname", "organization"]),
    (TableField::Queue, &["partition", "queue", "queuename", "vc", "class"]),
    (TableField::Partition, &["qos"]),
    (TableField::Name, &["jobname", "name", "namejob", "jnam"]),
    (TableField::Account, &["account", "project", "accountname"]),
    (
        TableField::Status,
        &["state", "jobstate", "status", "exitstate", "jobstatus", "stateend", "podphase", "exitstatus"],
    ),
];

/// Proposes a map for a table.
///
/// # Errors
/// The table cannot be read, or has no rows.
pub fn propose(trace: &Trace, options: &ImportOptions) -> Result<Proposal, ImportError> {
    let parts = trace.parts()?;
    let trace = parts.first().unwrap_or(trace);
    let given = options.delimiter.as_deref().map(str::as_bytes).and_then(<[u8]>::first).copied();
    let delimiter = given.map_or_else(|| delimiter(trace), |given| Ok(Some(given)))?;
    let (format, samples) = samples(trace, delimiter)?;
    if samples.iter().all(|sample| sample.values.is_empty()) {
        return Err(ImportError::Empty { name: trace.name().into(), read: 0, wanted: "a row" });
    }
    let names: Vec<String> = samples.iter().map(|sample| sample.name.clone()).collect();
    let presets = fitting_presets(&names);
    let zone = options.time_zone.as_ref().and_then(|zone| zone.iana_name());
    let toml = Proposed { trace, samples: &samples, format, delimiter, zone }.toml(&presets);
    let preview = ImportOptions {
        time_zone: options.time_zone.clone().or(Some(jiff::tz::TimeZone::UTC)),
        cpus_per_node: options.cpus_per_node.or(Some(1)),
        keep_ids: true,
        lenient: false,
        ..options.clone()
    };
    let jobs = ColumnMap::parse("the proposed map", &toml)
        .map_err(ImportError::from)
        .and_then(|map| match super::first_rows(trace, &map, &preview, SHOWN) {
            // The first rows of a table may be jobs that wait.
            Err(ImportError::Empty { .. }) => super::first_rows(trace, &map, &preview, SAMPLE),
            jobs => jobs,
        })
        .map(|jobs| jobs.into_iter().zip(0..SHOWN).map(|(job, _)| job).collect());
    let columns = samples.iter().map(|sample| {
        let example = sample.values.iter().flatten().next().cloned().unwrap_or_default();
        [sample.name.clone(), sample.kind().to_owned(), example]
    });
    Ok(Proposal { toml, presets, columns: columns.collect(), jobs: jobs.map_err(|error| error.to_string()) })
}

/// Reads the first rows of all columns.
fn samples(trace: &Trace, delimiter: Option<u8>) -> Result<(TableFormat, Vec<Sample>), ImportError> {
    let form = TableForm::default();
    let (names, format) = {
        let source = Source::open(trace, &form, delimiter)?;
        (source.names, source.format)
    };
    let mut samples = vec![];
    let places: Vec<usize> = (0..names.len()).collect();
    for columns in places.chunks(Wanted::MOST) {
        let mut found: Vec<Sample> =
            columns.iter().map(|&column| Sample { name: names[column].clone(), ..Sample::new() }).collect();
        let wanted = Wanted { columns: columns.to_vec(), rows: SAMPLE };
        let read = Source::open(trace, &form, delimiter)?.each(&wanted, &mut |cells, number| {
            let cells = cells.map_err(|error| error.at(trace.name(), number))?;
            found.iter_mut().zip(cells).for_each(|(sample, cell)| sample.add(*cell));
            Ok(())
        });
        // A list cannot be read as a value, and a map does not need it.
        if columns.len() == 1 && read.is_err() {
            found.clear();
        } else {
            read?;
        }
        samples.extend(found);
    }
    Ok((format, samples))
}

impl Sample {
    fn new() -> Sample {
        Sample { are_numbers: true, are_dates: true, are_clocks: true, ..Sample::default() }
    }

    fn add(&mut self, cell: Cell<'_>) {
        let text = cell.text();
        let date = Reading { unit: Some(Unit::DateTime), is_time: true, ..Reading::NUMBER };
        match cell {
            Cell::Null => {}
            Cell::Instant(_) | Cell::Local(_) => {
                self.are_numbers = false;
                self.are_clocks = false;
                self.lack_zones |= matches!(cell, Cell::Local(_));
            }
            Cell::Int(number) => self.add_number(number as f64),
            Cell::Float(number) => self.add_number(number),
            Cell::Text(text) => {
                let text = text.trim_ascii();
                if Cell::Text(text).text().is_none() {
                } else if let Some(number) = number(text, false) {
                    self.add_number(number);
                } else {
                    self.are_numbers = false;
                    let mut utc = Clock::new(Some(jiff::tz::TimeZone::UTC));
                    self.are_dates &= text.len() > 15 && date.read(cell, &mut utc).is_ok();
                    self.lack_zones |= self.are_dates && date.read(cell, &mut Clock::new(None)).is_err();
                    let clock = Reading { unit: Some(Unit::DayClock), ..Reading::NUMBER };
                    self.are_clocks &= clock.read(cell, &mut utc).is_ok();
                }
            }
        }
        self.values.push(text.map(std::borrow::Cow::into_owned));
    }

    fn add_number(&mut self, number: f64) {
        // Some tables mix dates and seconds of the Unix epoch.
        self.are_dates &= (1e8..1e11).contains(&number);
        self.are_clocks = false;
        self.numbers.push(number);
    }

    fn has_values(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }

    fn kind(&self) -> &'static str {
        match self {
            sample if !sample.has_values() => "empty",
            sample if sample.are_numbers => "number",
            sample if sample.are_dates => "time",
            sample if sample.are_clocks => "clock",
            _ => "text",
        }
    }

    /// Returns the unit of times, and whether they are from an unknown instant.
    fn time_unit(&self) -> (Unit, bool) {
        if !self.are_numbers {
            return (Unit::DateTime, false);
        }
        let most = self.numbers.iter().copied().fold(0.0, f64::max);
        match most {
            most if most < 1e8 => (Unit::Seconds, true),
            most if most < 1e11 => (Unit::Seconds, false),
            most if most < 1e14 => (Unit::Millis, false),
            most if most < 1e17 => (Unit::Micros, false),
            _ => (Unit::Nanos, false),
        }
    }

    /// Returns the values as times in seconds.
    fn seconds(&self) -> Vec<Option<f64>> {
        let reading = Reading { unit: Some(self.time_unit().0), is_time: true, ..Reading::NUMBER };
        let mut clock = Clock::new(Some(jiff::tz::TimeZone::UTC));
        let read = |text: &Option<String>, clock: &mut Clock| {
            let found = reading.read(Cell::Text(text.as_deref()?.as_bytes()), clock).ok()?;
            Some(found).filter(|found| !found.is_nan())
        };
        self.values.iter().map(|text| read(text, &mut clock)).collect()
    }
}

/// A map in the making.
struct Proposed<'a> {
    trace: &'a Trace,
    samples: &'a [Sample],
    format: TableFormat,
    delimiter: Option<u8>,
    zone: Option<&'a str>,
}

impl Proposed<'_> {
    /// Returns whether the numbers of a column are the waits, as some tables name them `queue`.
    fn are_waits(&self, sample: &Sample) -> bool {
        let (Some(submit), Some(start)) = (self.find(TableField::Submit), self.find(TableField::Start))
        else {
            return false;
        };
        let waits =
            submit.seconds().into_iter().zip(start.seconds()).map(|(submit, start)| Some(start? - submit?));
        let values = sample.values.iter().map(|text| number(text.as_deref()?.as_bytes(), false));
        let pairs: Vec<(f64, f64)> = waits.zip(values).filter_map(|(wait, value)| wait.zip(value)).collect();
        let same = pairs.iter().filter(|(wait, value)| (wait - value).abs() < 2.0).count();
        !pairs.is_empty() && same * 10 >= pairs.len() * 9
    }

    /// Returns the column of a field by its name, among those that can be its values.
    fn find(&self, field: TableField) -> Option<&Sample> {
        let names = NAMES.iter().find(|(known, _)| *known == field)?.1;
        let plain = |name: &str| -> String {
            name.chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|letter| letter.to_ascii_lowercase())
                .collect()
        };
        let is_possible = |sample: &&Sample| match field {
            TableField::Submit | TableField::Eligible | TableField::Start | TableField::End => {
                sample.are_numbers || sample.are_dates
            }
            TableField::Runtime | TableField::Wait | TableField::Estimate => {
                !sample.are_dates || sample.are_numbers || sample.are_clocks
            }
            TableField::Queue => !sample.are_numbers || !self.are_waits(sample),
            TableField::Procs | TableField::RequestedProcs | TableField::Nodes | TableField::Gpus => {
                sample.are_numbers
            }
            _ => true,
        };
        let of_name = |name: &&str| {
            let found = self.samples.iter().find(|sample| plain(&sample.name) == **name);
            found.filter(|sample| sample.has_values()).filter(is_possible)
        };
        names.iter().find_map(of_name)
    }

    fn toml(&self, presets: &[&str]) -> String {
        let mut text = String::new();
        let mut line = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        line(&format!("# Proposed for {}. Check each line that says so.", self.trace.name()));
        if !presets.is_empty() {
            line(&format!(
                "# The columns are those of --preset {}, which knows more of them.",
                presets.join(" and --preset ")
            ));
        }
        let [submit, start, end] =
            [TableField::Submit, TableField::Start, TableField::End].map(|field| self.find(field));
        let times: Vec<&Sample> = [submit, start, end].into_iter().flatten().collect();
        line("[table]");
        line(&format!("format = {:?}", self.format.name()));
        if let Some(delimiter) = self.delimiter.filter(|&delimiter| delimiter != b',') {
            line(&format!("delimiter = {:?}", char::from(delimiter).to_string()));
        }
        if times.iter().any(|sample| sample.lack_zones) {
            match self.zone {
                Some(zone) => line(&format!("zone = {zone:?}")),
                None => line(
                    "# zone = \"Europe/Berlin\"  # the times have no zone: give it here, or with --time-zone",
                ),
            }
        }
        if times.iter().any(|sample| sample.time_unit().1) {
            line("relative = true  # check: the times are too small for the Unix epoch");
        }
        line("\n[columns]");
        if submit.is_none() {
            line("# submit = \"...\"  # no column has a name for it");
        }
        for field in TableField::ALL {
            let Some(sample) = self.find(field) else { continue };
            let is_known_otherwise = match field {
                // A duration is often not what its name says.
                TableField::Runtime => {
                    start.is_some() && end.is_some() && sample.name.to_lowercase().contains("dur")
                }
                TableField::Wait => start.is_some(),
                TableField::RequestedProcs => {
                    self.find(TableField::Procs).is_some_and(|procs| procs.name == sample.name)
                }
                _ => false,
            };
            if !is_known_otherwise {
                line(&self.source(field, sample));
            }
        }
        let has_size =
            self.find(TableField::Procs).is_some() || self.find(TableField::RequestedProcs).is_some();
        let milli = self.samples.iter().find(|sample| sample.name == "cpu_milli" && sample.are_numbers);
        if let (false, Some(_)) = (has_size, milli) {
            line("procs = \"cpu_milli / 1000\"");
        } else if !has_size {
            match self.find(TableField::Nodes) {
                Some(nodes) => line(&format!(
                    "procs = {:?}  # check: there are nodes only, so a processor is a node",
                    nodes.name
                )),
                None => line("# procs = \"...\"  # no column has a name for it"),
            }
        }
        if self.find(TableField::Estimate).is_none() {
            line(
                "# estimate = \"...\"  # no column has a name for it: without one, a run takes the runtime or --estimates",
            );
        }
        line("\n[rules]");
        let drop = if start.is_some() && end.is_some() { "\"end < start\"" } else { "" };
        line(&format!("drop = [{drop}]"));
        line(
            "same_job = \"own\"  # check: rows with the same job are own jobs, attempts, or only the last counts",
        );
        text
    }

    /// Returns the line of a field.
    fn source(&self, field: TableField, sample: &Sample) -> String {
        let name = &sample.name;
        let plain = format!("{field} = {name:?}");
        let with = |rest: &str| format!("{field} = {{ column = {name:?}, {rest} }}");
        match field {
            TableField::Submit | TableField::Eligible | TableField::Start | TableField::End => {
                let zero =
                    sample.numbers.contains(&0.0) && field != TableField::Submit && !sample.time_unit().1;
                let none = if zero { ", none = [\"0\"]" } else { "" };
                match sample.time_unit().0 {
                    Unit::DateTime => plain,
                    unit => with(&format!("unit = \"{unit}\"{none}")),
                }
            }
            TableField::Runtime | TableField::Wait | TableField::CpuTime if sample.are_clocks => {
                with("unit = \"dhms\"")
            }
            TableField::Estimate => self.estimate(sample, &plain, &with),
            TableField::Memory => {
                let units = [
                    ("kib", "kB"),
                    ("kb", "kB"),
                    ("mib", "MB"),
                    ("mb", "MB"),
                    ("gib", "GB"),
                    ("gb", "GB"),
                    ("bytes", "B"),
                ];
                let lower = name.to_lowercase();
                let unit = units.into_iter().find(|(word, _)| lower.contains(word)).map(|(_, unit)| unit);
                match (unit, sample.are_numbers) {
                    (Some(unit), true) => {
                        with(&format!("unit = {unit:?}, per = \"job\"")) + "  # check: job, node, cpu or gpu"
                    }
                    (_, false) => with("unit = \"slurm\"") + "  # check",
                    (None, true) => format!("# {}  # give its unit", with("unit = \"MB\", per = \"job\"")),
                }
            }
            TableField::Status => status(sample, &plain, &with),
            _ => plain,
        }
    }

    /// Returns the line of the estimate. Its unit is that in which most runtimes are within it.
    fn estimate(&self, sample: &Sample, plain: &str, with: &dyn Fn(&str) -> String) -> String {
        if sample.are_clocks {
            return with("unit = \"dhms\"");
        }
        if sample.name.to_lowercase().contains("min") {
            return with("unit = \"min\"");
        }
        let runtimes: Vec<Option<f64>> = match (self.find(TableField::Start), self.find(TableField::End)) {
            (Some(start), Some(end)) => start
                .seconds()
                .into_iter()
                .zip(end.seconds())
                .map(|(start, end)| Some(end? - start?))
                .collect(),
            _ => vec![],
        };
        let limits = sample.values.iter().map(|text| number(text.as_deref()?.as_bytes(), false));
        let pairs: Vec<(f64, f64)> =
            runtimes.into_iter().zip(limits).filter_map(|(runtime, limit)| runtime.zip(limit)).collect();
        let within =
            |scale: f64| pairs.iter().filter(|(runtime, limit)| *runtime <= limit * scale + 60.0).count();
        match (pairs.len(), within(1.0), within(60.0)) {
            (0, _, _) => format!("{plain}  # check: in seconds? else unit = \"min\""),
            (all, seconds, _) if seconds * 10 >= all * 9 => {
                format!(
                    "{plain}  # check: in seconds {seconds} of {all} runtimes are within it; else unit = \"min\""
                )
            }
            (all, seconds, minutes) => {
                with("unit = \"min\"")
                    + &format!(
                        "  # check: {minutes} of {all} runtimes are within it, {seconds} if it is in seconds"
                    )
            }
        }
    }
}

/// Returns the line of the status.
fn status(sample: &Sample, plain: &str, with: &dyn Fn(&str) -> String) -> String {
    const WORDS: [(&str, &[&str]); 4] = [
        ("completed", &["complete", "succe", "pass", "done", "finish", "terminated", "ok"]),
        ("failed", &["fail", "err", "timeout", "oom", "memory"]),
        ("cancelled", &["cancel", "kill", "abort", "delete"]),
        ("unfinished", &["run", "pend", "wait", "queue"]),
    ];
    let mut states: Vec<&str> = sample.values.iter().flatten().map(String::as_str).collect();
    states.sort_unstable();
    states.dedup();
    if states.iter().all(|state| final_state(state).is_some()) {
        return plain.to_owned();
    }
    if states.len() > 30 {
        return format!("# {plain}  # too many different values for states");
    }
    let kind = |state: &str| {
        let state = state.to_lowercase();
        WORDS.iter().find(|(_, words)| words.iter().any(|word| state.contains(word))).map(|(name, _)| *name)
    };
    let lists = WORDS.map(|(name, _)| {
        let of: Vec<String> = states
            .iter()
            .filter(|state| kind(state) == Some(name))
            .map(|state| format!("{state:?}"))
            .collect();
        (!of.is_empty()).then(|| format!("{name} = [{}]", of.join(", ")))
    });
    let others: Vec<String> =
        states.iter().filter(|state| kind(state).is_none()).map(|state| format!("{state:?}")).collect();
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    if lists.is_empty() {
        return format!(
            "# {}  # check: say what its values mean: {}",
            with("completed = [\"...\"]"),
            others.join(", ")
        );
    }
    let mut line = with(&lists.join(", ")) + "  # check";
    if !others.is_empty() {
        // Writing to a text cannot fail.
        let _ = write!(line, "; not known: {}", others.join(", "));
    }
    line
}
