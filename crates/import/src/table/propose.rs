//! A column map that is proposed for a table, from the names of its columns and its first rows; and the jobs that a map gives.

use std::fmt::Write;
use std::io;

use miserly_workload::Trace;
use miserly_workload::swf::{Header, Record};

use super::choose::{Choice, Choices, pairs, spans, unit_of_spans};
use super::field::{FieldKind, TableField, TableFormat, Unit};
use super::map::ColumnMap;
use super::sample::{SAMPLE, Sample, samples};
use super::states::{list_of, lists};
use crate::error::ImportError;
use crate::header::{delimiter, fitting_presets};
use crate::log::{Imported, ImportedLog, Report, unsorted};
use crate::options::{ImportOptions, zone_name};
use crate::state::final_state;

/// Jobs that are shown.
const SHOWN: usize = 10;

/// Different values that are shown of a column.
const EXAMPLES: usize = 3;

/// A column map that is proposed for a table.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The map as TOML, with comments on why and on what to check.
    pub toml: String,
    /// Names of the presets that have the columns of the table.
    pub presets: Vec<&'static str>,
    /// Columns of the table, by its first rows.
    pub columns: Vec<ColumnFacts>,
    /// The first jobs as they would be read, or why none can be.
    pub jobs: Result<Preview, String>,
}

/// A column of a table, by its first rows.
#[derive(Clone, Debug)]
pub struct ColumnFacts {
    /// Name.
    pub name: String,
    /// Kind of its values.
    pub kind: &'static str,
    /// Rows that were read.
    pub rows: usize,
    /// Rows without a value.
    pub empty: usize,
    /// Different values.
    pub distinct: usize,
    /// The first different values.
    pub examples: Vec<String>,
    /// The field for which it is proposed, and whether that is by its content alone.
    pub field: Option<(TableField, bool)>,
}

/// The first jobs of a log.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The header of the log.
    pub header: Header,
    /// The jobs.
    pub jobs: Vec<Record>,
}

/// Returns the first jobs that a map gives, and the report of the whole conversion.
///
/// # Errors
/// As a conversion of the table.
pub fn preview(
    trace: &Trace,
    map: &ColumnMap,
    options: &ImportOptions,
) -> Result<(Preview, Report), ImportError> {
    let Imported { log, report } = super::tables(trace, map, options)?;
    let mut jobs: Vec<Record> = vec![];
    let read = log.each_job(|record| {
        if jobs.len() == SHOWN {
            return Err(io::Error::other("enough jobs"));
        }
        jobs.push(record.clone());
        Ok(())
    });
    match read {
        Err(error) if jobs.len() < SHOWN => Err(unsorted(&report.name, error)),
        _ => Ok((Preview { header: header_of(&log.comments), jobs }, report)),
    }
}

fn header_of(comments: &[String]) -> Header {
    let mut header = Header::default();
    for comment in comments {
        header.push(comment);
    }
    header
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
    let zone = options.time_zone.as_ref().and_then(zone_name);
    let choices = Choices::new(&samples);
    let proposed = Proposed { trace, choices, samples: &samples, format, delimiter, zone };
    let toml = proposed.toml(&presets);
    let columns = samples.iter().enumerate().map(|(place, sample)| proposed.facts(place, sample)).collect();
    let jobs = first_jobs(trace, &toml, options).map_err(|error| error.to_string());
    Ok(Proposal { toml, presets, columns, jobs })
}

/// Returns the first jobs that a proposed map gives.
fn first_jobs(trace: &Trace, toml: &str, options: &ImportOptions) -> Result<Preview, ImportError> {
    let options = ImportOptions {
        time_zone: options.time_zone.clone().or(Some(jiff::tz::TimeZone::UTC)),
        cpus_per_node: options.cpus_per_node.or(Some(1)),
        keep_ids: true,
        lenient: false,
        ..options.clone()
    };
    let map = ColumnMap::parse("the proposed map", toml)?;
    let jobs = match super::first_rows(trace, &map, &options, SHOWN as u64) {
        // The first rows of a table may be jobs that wait.
        Err(ImportError::Empty { .. }) => super::first_rows(trace, &map, &options, SAMPLE),
        jobs => jobs,
    };
    let ImportedLog { comments, mut records, .. } = jobs?;
    records.truncate(SHOWN);
    Ok(Preview { header: header_of(&comments), jobs: records })
}

/// A map in the making.
struct Proposed<'a> {
    trace: &'a Trace,
    choices: Choices<'a>,
    samples: &'a [Sample],
    format: TableFormat,
    delimiter: Option<u8>,
    zone: Option<String>,
}

impl Proposed<'_> {
    fn facts(&self, place: usize, sample: &Sample) -> ColumnFacts {
        let field = self.choices.field_of(place).map(|(field, choice)| (field, choice.by_content.is_some()));
        ColumnFacts {
            name: sample.name.clone(),
            kind: sample.kind(),
            rows: sample.values.len(),
            empty: sample.empty(),
            distinct: sample.distinct().len(),
            examples: sample.examples(EXAMPLES),
            field: field.filter(|(field, _)| !self.is_known_otherwise(*field)),
        }
    }

    /// Returns whether other fields make this one superfluous.
    fn is_known_otherwise(&self, field: TableField) -> bool {
        let has = |field| self.choices.has(field);
        match field {
            // A duration is often not what its name says.
            TableField::Runtime => {
                let is_duration = |sample: &Sample| sample.name.to_lowercase().contains("dur");
                has(TableField::Start)
                    && has(TableField::End)
                    && self.choices.get(field).is_some_and(is_duration)
            }
            TableField::Wait => has(TableField::Start),
            _ => false,
        }
    }

    fn toml(&self, presets: &[&str]) -> String {
        let mut text = format!(
            "# Proposed for {}. Each line says why; check those that say so, and those by content alone.\n",
            self.trace.name()
        );
        if !presets.is_empty() {
            let presets = presets.join(" and --preset ");
            text += &format!("# The columns are those of --preset {presets}, which knows more of them.\n");
        }
        text += &self.table();
        text += "\n[columns]\n";
        for field in TableField::ALL {
            text += &self.field(field);
        }
        text += &self.missing();
        text += "\n[rules]\n";
        let has_both = self.choices.has(TableField::Start) && self.choices.has(TableField::End);
        let drop = if has_both { "\"end < start\"" } else { "" };
        text += &format!("drop = [{drop}]\n");
        text + "same_job = \"own\"  # check: rows with the same job are own jobs, attempts, or only the last counts\n"
    }

    fn table(&self) -> String {
        let mut text = format!("[table]\nformat = {:?}\n", self.format.name());
        if let Some(delimiter) = self.delimiter.filter(|&delimiter| delimiter != b',') {
            text += &format!("delimiter = {:?}\n", char::from(delimiter).to_string());
        }
        let times = [TableField::Submit, TableField::Start, TableField::End];
        let times: Vec<&Sample> = times.into_iter().filter_map(|field| self.choices.get(field)).collect();
        if times.iter().any(|sample| sample.lack_zones) {
            text += &match &self.zone {
                Some(zone) => format!("zone = {zone:?}\n"),
                None => "# zone = \"Europe/Berlin\"  # the times have no zone: give it here, or with --time-zone\n".to_owned(),
            };
        }
        if times.iter().any(|sample| sample.time_unit().1) {
            text += "relative = true  # check: the times are too small for the Unix epoch\n";
        }
        text
    }

    /// Returns the lines of a field: its column, or what may be.
    fn field(&self, field: TableField) -> String {
        let mut text = String::new();
        if let (Some(choice), false) = (self.choices.choice(field), self.is_known_otherwise(field)) {
            let (line, check) = self.source(field, choice);
            let why = match &choice.by_content {
                None => "by its name".to_owned(),
                Some(why) => format!("check: by its content alone: {why}"),
            };
            let check = check.map_or_else(String::new, |check| format!("; check: {check}"));
            text += &format!("{line}  # {why}{check}\n");
        }
        for (_, column, why) in self.choices.unsure.iter().filter(|(unsure, ..)| *unsure == field) {
            text += &format!(
                "# {field} = {:?}  # not sure: by its content alone: {why}\n",
                self.samples[*column].name
            );
        }
        text
    }

    /// Returns the lines of fields that a job needs and that no column has.
    fn missing(&self) -> String {
        let has = |field| self.choices.has(field);
        let mut text = String::new();
        if !has(TableField::Submit) {
            text += "# submit = \"...\"  # no column is surely the submission\n";
        }
        let milli = self.samples.iter().find(|sample| sample.name == "cpu_milli" && sample.are_numbers);
        let has_size = has(TableField::Procs) || has(TableField::RequestedProcs);
        match (has_size, milli, self.choices.get(TableField::Nodes)) {
            (true, ..) => {}
            (false, Some(_), _) => text += "procs = \"cpu_milli / 1000\"  # by its name\n",
            (false, None, Some(nodes)) => {
                text += &format!(
                    "procs = {:?}  # check: there are nodes only, so a processor is a node\n",
                    nodes.name
                );
            }
            (false, None, None) => {
                text += "# procs = \"...\"  # no column is surely the number of processors\n";
            }
        }
        let has_runtime = has(TableField::Runtime)
            || (has(TableField::Start) || has(TableField::Wait)) && has(TableField::End);
        if !has_runtime {
            text +=
                "# runtime = \"...\"  # no column is surely the runtime; start and end together are one\n";
        }
        if !has(TableField::Estimate) {
            text += "# estimate = \"...\"  # no column is surely the time limit: without one, a run takes the runtime or --estimates\n";
        }
        text
    }

    /// Returns the source of a field as TOML, and what to check.
    fn source(&self, field: TableField, choice: &Choice) -> (String, Option<String>) {
        let sample = &self.samples[choice.column];
        let name = &sample.name;
        let plain = format!("{field} = {name:?}");
        let with = |rest: &str| format!("{field} = {{ column = {name:?}, {rest} }}");
        let unit = choice.unit.filter(|unit| Unit::of(field.kind()).contains(unit));
        match field.kind() {
            FieldKind::Time => {
                let zero =
                    sample.numbers.contains(&0.0) && field != TableField::Submit && !sample.time_unit().1;
                let none = if zero { ", none = [\"0\"]" } else { "" };
                match sample.time_unit().0 {
                    Unit::DateTime => (plain, None),
                    unit => (with(&format!("unit = \"{unit}\"{none}")), None),
                }
            }
            FieldKind::Span if sample.are_clocks => (with("unit = \"dhms\""), None),
            FieldKind::Span if field == TableField::Estimate && unit.is_none() => {
                self.estimate(sample, plain, &with)
            }
            FieldKind::Span => self.span(field, sample, unit, plain, &with),
            FieldKind::Memory if !sample.are_numbers => {
                (with("unit = \"slurm\""), Some("its unit".to_owned()))
            }
            FieldKind::Memory => match unit {
                Some(unit) => {
                    let rest = format!("unit = \"{unit}\", per = \"job\"");
                    (with(&rest), Some("per job, node, cpu or gpu".to_owned()))
                }
                None => {
                    (format!("# {}", with("unit = \"MB\", per = \"job\"")), Some("give its unit".to_owned()))
                }
            },
            FieldKind::Text if field == TableField::Status => status(sample, plain, &with),
            FieldKind::Count | FieldKind::Text => (plain, None),
        }
    }

    /// Returns the source of a span. Its unit is that of the start and the end, else that of the name.
    fn span(
        &self,
        field: TableField,
        sample: &Sample,
        unit: Option<Unit>,
        plain: String,
        with: &dyn Fn(&str) -> String,
    ) -> (String, Option<String>) {
        let ends = match field {
            TableField::Runtime => (TableField::Start, TableField::End),
            _ => (TableField::Submit, TableField::Start),
        };
        let times = self.choices.get(ends.0).zip(self.choices.get(ends.1));
        let measured = times.and_then(|(from, to)| unit_of_spans(&spans(from, to), sample));
        let check = match (measured, unit) {
            (None, None) => Some("in seconds?".to_owned()),
            (Some((measured, same, all)), Some(unit)) if measured != unit => Some(format!(
                "its name says {unit}, and it is {} - {} in {measured} in {same} of {all} rows",
                ends.1, ends.0
            )),
            _ => None,
        };
        let unit = measured.map(|(unit, ..)| unit).or(unit).unwrap_or(Unit::Seconds);
        let line = if unit == Unit::Seconds { plain } else { with(&format!("unit = \"{unit}\"")) };
        (line, check)
    }

    /// Returns the source of the estimate. Its unit is that in which most runtimes are within it.
    fn estimate(
        &self,
        sample: &Sample,
        plain: String,
        with: &dyn Fn(&str) -> String,
    ) -> (String, Option<String>) {
        let times = self.choices.get(TableField::Start).zip(self.choices.get(TableField::End));
        let runtimes = times.map_or(vec![], |(start, end)| spans(start, end));
        let pairs = pairs(&runtimes, sample);
        let within =
            |scale: f64| pairs.iter().filter(|(runtime, limit)| *runtime <= limit * scale + 60.0).count();
        match (pairs.len(), within(1.0), within(60.0)) {
            _ if sample.name.to_lowercase().contains("min") => (with("unit = \"min\""), None),
            (0, _, _) => (plain, Some("in seconds? else unit = \"min\"".to_owned())),
            (all, seconds, _) if seconds * 10 >= all * 9 => (
                plain,
                Some(format!("in seconds {seconds} of {all} runtimes are within it; else unit = \"min\"")),
            ),
            (all, seconds, minutes) => (
                with("unit = \"min\""),
                Some(format!("{minutes} of {all} runtimes are within it, {seconds} if it is in seconds")),
            ),
        }
    }
}

/// Returns the source of the status, and what to check.
fn status(sample: &Sample, plain: String, with: &dyn Fn(&str) -> String) -> (String, Option<String>) {
    let states: Vec<&str> = sample.distinct().into_iter().collect();
    if states.iter().all(|state| final_state(state).is_some()) {
        return (plain, None);
    }
    if states.len() > 30 {
        return (format!("# {plain}"), Some("too many different values for states".to_owned()));
    }
    let words: Vec<(&str, Option<i64>)> =
        states.iter().filter_map(|state| Some((*state, list_of(state)?.1))).collect();
    let lists = lists(&words);
    let others: Vec<String> =
        states.iter().filter(|state| list_of(state).is_none()).map(|state| format!("{state:?}")).collect();
    if lists.is_empty() {
        let check = format!("say what its values mean: {}", others.join(", "));
        return (format!("# {}", with("completed = [\"...\"]")), Some(check));
    }
    let mut check = "the meaning of its words".to_owned();
    if !others.is_empty() {
        // Writing to a text cannot fail.
        let _ = write!(check, "; not known: {}", others.join(", "));
    }
    (with(&lists.join(", ")), Some(check))
}
