//! A column map that is proposed for a table, from the names of its columns and its first rows.

use std::fmt::Write;

use miserly_workload::Trace;
use miserly_workload::swf::Record;

use super::cell::number;
use super::field::{TableField, TableFormat, Unit};
use super::map::ColumnMap;
use super::names::NAMES;
use super::sample::{SAMPLE, Sample, samples};
use crate::error::ImportError;
use crate::header::{delimiter, fitting_presets};
use crate::options::ImportOptions;
use crate::state::final_state;

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
