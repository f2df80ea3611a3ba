//! Tables of jobs: CSV, JSON, Parquet and text between blanks, by a map of their columns.

mod bind;
mod cell;
mod choose;
mod csv;
mod distinct;
mod field;
mod files;
mod gang;
mod join;
mod json;
mod map;
mod names;
mod parquet;
mod presets;
mod propose;
mod rule;
mod sample;
mod source;
mod states;
#[cfg(test)]
mod tests;
mod words;

use miserly_workload::Trace;
use miserly_workload::swf::{Extra, Record};

pub use cell::Cell;
pub use field::{FieldKind, Per, SameJob, TableField, TableFormat, Unit};
pub use files::{FilesError, is_pattern, open_log, table_files};
pub(crate) use gang::{join_parts, keep_last};
pub use map::{ColumnMap, MapError};
pub use presets::{PRESETS, Preset, find_preset};
pub use propose::{ColumnFacts, Preview, Proposal, preview, propose};
pub use source::Frame;
pub(crate) use source::{PARQUET, format_of};

use crate::accounting::{Accounting, TableFacts};
use crate::error::{FieldError, ImportError};
use crate::header::{delimiter, fitting_presets};
use crate::job::{JobSizes, RecordedTimes, Times, each, record, remarks_if};
use crate::log::{Imported, ImportedLog, RuleCount};
use crate::options::ImportOptions;
use crate::remark::{Remark, RemarkCount};
use crate::state::{FinalState, final_state};
use crate::values::{MemoryUnit, RequestedMemory};
pub(crate) use bind::Bound;
use bind::Numbers;
use cell::Clock;
use distinct::Distinct;
use field::FIELDS;
use join::Joined;
use map::Problem;
use source::{Source, format_in};
pub(crate) use states::{StatusLine, UnknownStates};

/// Largest number of processors, nodes or GPUs of a job.
const MOST: f64 = 1e9;

/// Largest time or amount, of fifteen digits.
const LARGEST: f64 = 999_999_999_999_999.0;

/// The fields that the log keeps beside those of the format.
const EXTRAS: [(TableField, Extra); 7] = [
    (TableField::Nodes, Extra::Nodes),
    (TableField::Gpus, Extra::Gpus),
    (TableField::GpuType, Extra::GpuType),
    (TableField::Memory, Extra::JobMemory),
    (TableField::Name, Extra::Name),
    (TableField::Account, Extra::Account),
    (TableField::Features, Extra::Features),
];

/// Converts tables with the same columns, in this order, to a log with this name.
///
/// # Errors
/// An input is unreadable, has not the columns of the map, or no job. Without `lenient`, also if a row is invalid.
pub(crate) fn tables(
    trace: &Trace,
    map: &ColumnMap,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let parts = trace.parts()?;
    let files = if parts.is_empty() { std::slice::from_ref(trace) } else { &parts[..] };
    converted(files, trace.name(), Conversion::new(map, options))
}

/// Converts files to a log with a name.
fn converted(files: &[Trace], name: &str, mut conversion: Conversion<'_>) -> Result<Imported, ImportError> {
    let mut accounting = Accounting::of_table(conversion.map.same_job, conversion.options);
    for file in files {
        let mut source = conversion.open(file)?;
        conversion.read(file.name(), &mut source, files.len() > 1, &mut accounting)?;
    }
    accounting.table = Some(conversion.facts());
    accounting.finish(name)
}

/// Converts a table in memory to a log with this name.
///
/// # Errors
/// It has not the columns of the map, or no job. Without `lenient`, also if a row is invalid.
pub fn frame(
    name: &str,
    frame: &mut dyn Frame,
    map: &ColumnMap,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let mut conversion = Conversion::new(map, options);
    let mut accounting = Accounting::of_table(map.same_job, options);
    conversion.read(name, &mut Source::of_frame(frame), false, &mut accounting)?;
    accounting.table = Some(conversion.facts());
    accounting.finish(name)
}

/// Converts the first rows of a table.
fn first_rows(
    trace: &Trace,
    map: &ColumnMap,
    options: &ImportOptions,
    rows: u64,
) -> Result<ImportedLog, ImportError> {
    let conversion = Conversion { most: rows, ..Conversion::new(map, options) };
    converted(std::slice::from_ref(trace), trace.name(), conversion)?.held()
}

/// The conversion of the rows of tables.
struct Conversion<'a> {
    map: &'a ColumnMap,
    options: &'a ImportOptions,
    clock: Clock,
    has: [bool; FIELDS],
    extras: Vec<(TableField, Extra)>,
    rules: Vec<RemarkCount>,
    /// The numbers of the jobs; `None` once a job has none of its own.
    numbers: Option<Distinct>,
    /// Most rows of a table.
    most: u64,
}

impl Conversion<'_> {
    fn new<'a>(map: &'a ColumnMap, options: &'a ImportOptions) -> Conversion<'a> {
        let has = TableField::ALL.map(|field| map.source(field).is_some());
        // These identify users.
        let is_shown = |(_, extra): &(TableField, Extra)| {
            options.keep_ids || !matches!(extra, Extra::Name | Extra::Account)
        };
        Conversion {
            map,
            options,
            clock: Clock::new(options.time_zone.clone().or_else(|| map.zone.clone())),
            has,
            extras: EXTRAS.into_iter().filter(|(field, _)| has[*field as usize]).filter(is_shown).collect(),
            rules: vec![RemarkCount::default(); map.drop.len()],
            numbers: (options.keep_ids && has[TableField::Job as usize]).then(Distinct::default),
            most: u64::MAX,
        }
    }

    fn has(&self, field: TableField) -> bool {
        self.has[field as usize]
    }

    /// Returns the problems of the map that are known before the columns of a table are.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.map.problems.clone();
        let has_procs = self.has(TableField::Procs) || self.has(TableField::RequestedProcs);
        let nodes = self.map.source(TableField::Nodes).filter(|_| !has_procs);
        if let (Some(nodes), None) = (nodes, self.options.cpus_per_node) {
            let problem = "the size of a job is in nodes only; give the processors of a node with --cpus-per-node, or write procs = \"COLUMN\"";
            problems.push(Problem::new(nodes.written.place, problem));
        }
        problems
    }

    fn open<'t>(&self, trace: &'t Trace) -> Result<Source<'t>, ImportError> {
        let delimiter = match self.options.delimiter.as_deref().map(str::as_bytes) {
            None => None,
            Some([one]) => Some(*one),
            Some(_) => return Err(ImportError::Delimiter { name: trace.name().into() }),
        };
        Source::open(trace, &self.map.form, delimiter)
    }

    fn read(
        &mut self,
        name: &str,
        source: &mut Source<'_>,
        is_named: bool,
        accounting: &mut Accounting<'_>,
    ) -> Result<(), ImportError> {
        let joined = self.map.join.as_ref().map(|join| Joined::read(self.map, join, name));
        let joined = joined.transpose()?;
        let mut bound = Bound::new(self.map, name, &source.names, joined.as_ref(), self.problems())?;
        bound.wanted.rows = self.most;
        let unit = source.unit();
        let wanted = bound.wanted.columns.len();
        let mut numbers = Numbers::NONE;
        source.each(&bound.wanted, &mut |cells, number| {
            let place = || {
                let place = format!("{unit} {number}");
                if is_named { format!("{name} {place}") } else { place }
            };
            let cells = match cells {
                Err(error) => {
                    return accounting
                        .refuse(error, place)
                        .map_err(|error| error.at_place(name, unit, number));
                }
                Ok(cells) => cells,
            };
            let mut all;
            let cells = match (&bound.join, &joined) {
                (Some((key, columns)), Some(joined)) => {
                    all = [Cell::Null; source::Wanted::MOST];
                    all[..wanted].copy_from_slice(cells);
                    let key = cells[*key].text().unwrap_or_default();
                    for (cell, column) in all[wanted..].iter_mut().zip(columns) {
                        *cell = joined.cell(&key, *column);
                    }
                    &all[..wanted + columns.len()]
                }
                _ => cells,
            };
            let added = self.add(&bound, cells, &mut numbers, accounting, &place);
            let refused = added.or_else(|error| accounting.refuse(bound.with_cells(error, cells), place));
            refused.map_err(|error| error.at_place(name, unit, number))
        })
    }

    /// Adds the job of a row. `numbers` are those of another row.
    fn add(
        &mut self,
        bound: &Bound,
        cells: &[Cell<'_>],
        numbers: &mut Numbers,
        accounting: &mut Accounting<'_>,
        place: &dyn Fn() -> String,
    ) -> Result<(), FieldError> {
        use TableField::{Group, Job, Partition, Procs, Queue, Status, User};
        bound.read(cells, &mut self.clock, numbers)?;
        let is_repeated = self.clock.take_repeated();
        if let Some(rule) = bound.rule(numbers, cells) {
            self.rules[rule].add(1, place);
            accounting.leave_out_at(Remark::Dropped, place);
            return Ok(());
        }
        let state = bound.text(Status, cells);
        let status = state.as_ref().map(|state| self.status(state));
        if status == Some(Some(FinalState::Unfinished)) {
            accounting.leave_out_at(Remark::Unfinished, place);
            return Ok(());
        }
        let mut rounded = 0;
        let Some(recorded) = self.times(numbers, &mut rounded)? else {
            accounting.leave_out_at(Remark::NoSubmitTime, place);
            return Ok(());
        };
        let sizes = self.sizes(numbers)?;
        let estimate = whole(numbers, TableField::Estimate, &mut rounded)?.filter(|estimate| *estimate > 0);
        let cpu_time =
            numbers.get(TableField::CpuTime).map(|seconds| amount(seconds * 1000.0, TableField::CpuTime));
        let code = match status {
            Some(Some(FinalState::Over(code))) => Some(code),
            _ => None,
        };
        let had_none = numbers.get(Procs) == Some(0.0);
        let mut times = Times::new(&RecordedTimes { had_none, ..recorded }, self.options.submit_at);
        let mut record = record(&times, &sizes, estimate, cpu_time.transpose()?, code);
        let names = [User, Group, Queue, Partition].map(|field| bound.text(field, cells));
        accounting.numbers.set_names(names.each_ref().map(Option::as_deref), &mut record);
        self.set_extras(bound, numbers, cells, &mut record)?;
        let has_part = [Procs, TableField::RequestedProcs].into_iter().any(|field| is_part(numbers, field));
        times.remarks.extend(remarks_if([
            (is_repeated, Remark::RepeatedHour),
            (rounded > 0, Remark::Rounded),
            (has_part, Remark::PartOfProcessor),
            (status == Some(None), Remark::UnknownState),
            (estimate.is_none() && self.has(TableField::Estimate), Remark::NoTimeLimit),
        ]));
        let job = bound.text(Job, cells);
        let number = job.as_deref().and_then(job_number);
        let is_own = |numbers: &mut Distinct| {
            number.is_some_and(|number| self.map.same_job != SameJob::Own || numbers.add(number))
        };
        self.numbers.take_if(|numbers| !is_own(numbers));
        if let Some(number) = number {
            record.set(miserly_workload::swf::Field::Job, number);
        } else if self.map.same_job != SameJob::Own {
            record.set(miserly_workload::swf::Field::Job, accounting.numbers.named_job(job.as_deref()));
        }
        if let (Some(None), Some(state)) = (status, &state) {
            accounting.unknown_states.add(state);
        }
        accounting.push(&record, &times.remarks, place);
        Ok(())
    }

    /// Returns the meaning of a state; `None` if it is unknown.
    fn status(&self, state: &str) -> Option<FinalState> {
        let Some(states) = &self.map.states else { return final_state(state) };
        let is_of = |word: &str| word == state || is_start_of(word, state);
        let found = states
            .0
            .iter()
            .find(|(word, _)| is_of(word))
            .or_else(|| states.0.iter().find(|(word, _)| word == "*"));
        found.map_or_else(
            || final_state(state),
            |(_, status)| Some(status.map_or(FinalState::Unfinished, FinalState::Over)),
        )
    }

    /// Returns the times, or `None` if the submission is unknown. Instants with a fraction are counted.
    fn times(&self, numbers: &Numbers, rounded: &mut u64) -> Result<Option<RecordedTimes>, FieldError> {
        use TableField::{Eligible, End, Runtime, Start, Submit, Suspended, Wait};
        let mut get = |field| whole(numbers, field, rounded);
        let Some(submitted) = get(Submit)? else { return Ok(None) };
        let wait = get(Wait)?;
        let start = get(Start)?.or_else(|| wait.filter(|_| !self.has(Start)).map(|wait| submitted + wait));
        Ok(Some(RecordedTimes {
            submitted,
            eligible: get(Eligible)?,
            start,
            end: get(End)?,
            elapsed: get(Runtime)?,
            suspended: get(Suspended)?.unwrap_or(0),
            has_starts: self.has(Start) || self.has(Wait),
            had_none: false,
        }))
    }

    fn sizes(&self, numbers: &Numbers) -> Result<JobSizes, FieldError> {
        use TableField::{Gpus, Memory, Nodes, Procs, RequestedProcs, UsedMemory};
        let count = |field| -> Result<Option<i64>, FieldError> {
            let Some(number) = numbers.get(field) else { return Ok(None) };
            if !(0.0..MOST).contains(&number) {
                return Err(out_of_range(field, number, "number from 0 below 10^9"));
            }
            Ok(Some(ceil(number)).filter(|number| *number > 0))
        };
        let nodes = count(Nodes)?;
        let by_nodes = || nodes?.checked_mul(self.options.cpus_per_node?.into());
        let (allocated, requested) = (count(Procs)?, count(RequestedProcs)?);
        let has_size = self.has(Procs) || self.has(RequestedProcs);
        let allocated = if has_size { allocated } else { by_nodes() };
        let procs = allocated.or(requested);
        let memory = |field| -> Result<Option<i64>, FieldError> {
            let Some(kilobytes) = self.job_memory(numbers, field)? else { return Ok(None) };
            let of_job = RequestedMemory { kilobytes, per: MemoryUnit::Job };
            Ok(each(of_job, procs, nodes))
        };
        let per = |field| self.map.source(field).map(|source| source.per);
        let memory = |field| match per(field) {
            Some(Per::Cpu) => whole(numbers, field, &mut 0).map(|each| each.filter(|each| *each > 0)),
            Some(Per::Gpu) if numbers.get(Gpus).is_none() => Ok(None),
            _ => memory(field),
        };
        Ok(JobSizes {
            allocated,
            requested,
            nodes,
            memory: memory(Memory)?,
            used_memory: memory(UsedMemory)?,
        })
    }

    /// Returns the memory of the whole job in kB, if it is known and not 0.
    fn job_memory(&self, numbers: &Numbers, field: TableField) -> Result<Option<i64>, FieldError> {
        let (Some(source), Some(memory)) = (self.map.source(field), numbers.get(field)) else {
            return Ok(None);
        };
        let of = |count| numbers.get(count).filter(|count| *count > 0.0);
        let times = match source.per {
            Per::Job => Some(1.0),
            Per::Node => of(TableField::Nodes),
            Per::Cpu => of(TableField::Procs).or_else(|| of(TableField::RequestedProcs)),
            Per::Gpu => of(TableField::Gpus),
        };
        let Some(times) = times else { return Ok(None) };
        amount((memory * times).ceil(), field).map(|memory| Some(memory).filter(|memory| *memory > 0))
    }

    fn set_extras(
        &self,
        bound: &Bound,
        numbers: &Numbers,
        cells: &[Cell<'_>],
        record: &mut Record,
    ) -> Result<(), FieldError> {
        for &(field, extra) in &self.extras {
            let extras = record.extras_mut();
            match field {
                TableField::Nodes => {
                    if let Some(nodes) = numbers.get(field).filter(|nodes| *nodes > 0.0) {
                        extras.set_number(extra, amount(nodes.ceil(), field)?.unsigned_abs());
                    }
                }
                TableField::Gpus => {
                    if let Some(gpus) = numbers.get(field) {
                        if !(0.0..MOST).contains(&gpus) {
                            return Err(out_of_range(field, gpus, "number from 0 below 10^9"));
                        }
                        extras.set_number(extra, amount((gpus * 1000.0).round(), field)?.unsigned_abs());
                    }
                }
                TableField::Memory => {
                    if let Some(memory) = self.job_memory(numbers, field)? {
                        extras.set_number(extra, memory.unsigned_abs());
                    }
                }
                _ => {
                    if let Some(text) = bound.text(field, cells) {
                        // A text is always valid.
                        let _ = extras.set(extra, &text);
                    }
                }
            }
        }
        Ok(())
    }

    fn facts(&self) -> TableFacts {
        let texts = self.map.drop.iter().map(|drop| drop.value.clone());
        let rules = texts.zip(self.rules.iter().cloned()).filter(|(_, tally)| tally.count > 0);
        let mut notes = self.map.notes.clone();
        if !self.has(TableField::Estimate) {
            notes.push(
                "the table has no time limits: the estimate of a job is its runtime, unless --estimates gives others".into(),
            );
        }
        if !self.has(TableField::Start) && !self.has(TableField::Wait) {
            notes.push("the table has no starts, so no wait is recorded".into());
        }
        TableFacts {
            map: self.map.name.clone(),
            same_job: self.map.same_job,
            is_relative: self.map.is_relative,
            has_numbers: self.numbers.is_some(),
            zone: self.options.time_zone.clone().or_else(|| self.map.zone.clone()),
            rules: rules.map(|(text, tally)| RuleCount { text, tally }).collect(),
            notes,
            status: self.map.source(TableField::Status).map(|source| StatusLine {
                column: source.column.value.clone(),
                states: self.map.states.clone(),
                place: format!("{}:{}", self.map.name, source.written.place.line),
            }),
        }
    }
}

/// Returns whether a state begins with a word, as `CANCELLED by 1000`.
fn is_start_of(word: &str, state: &str) -> bool {
    state.strip_prefix(word).is_some_and(|rest| rest.starts_with(" by "))
}

/// Returns the number of a job whose name is one.
fn job_number(text: &str) -> Option<i64> {
    let text = text.strip_suffix(".0").unwrap_or(text);
    let is_number = (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns whole seconds or kB, rounded half up. Those with a fraction are counted.
fn whole(numbers: &Numbers, field: TableField, rounded: &mut u64) -> Result<Option<i64>, FieldError> {
    let Some(number) = numbers.get(field) else { return Ok(None) };
    let is_whole = exact(number).is_some();
    *rounded += u64::from(!is_whole);
    amount(if is_whole { number } else { (number + 0.5).floor() }, field).map(Some)
}

#[allow(clippy::cast_possible_truncation, reason = "below 10^15")]
fn amount(number: f64, field: TableField) -> Result<i64, FieldError> {
    if !(0.0..=LARGEST).contains(&number) {
        return Err(out_of_range(field, number, "number from 0 of at most 15 digits"));
    }
    Ok(number as i64)
}

#[allow(clippy::cast_possible_truncation, reason = "below 10^9")]
fn ceil(number: f64) -> i64 {
    // A product of decimals, such as 0.1 * 30, may be a little above a whole number.
    exact(number).unwrap_or_else(|| (number - 1e-9).ceil() as i64)
}

/// Returns the number if it is a whole one. Rounding costs more than this test.
#[allow(clippy::cast_possible_truncation, reason = "compared with the original")]
fn exact(number: f64) -> Option<i64> {
    let whole = number as i64;
    (whole as f64 - number == 0.0).then_some(whole)
}

fn is_part(numbers: &Numbers, field: TableField) -> bool {
    numbers.get(field).is_some_and(|number| (ceil(number) as f64 - number).abs() > 1e-9)
}

fn out_of_range(field: TableField, number: f64, expected: &'static str) -> FieldError {
    FieldError::Value { field: field.name().to_owned(), value: number.to_string(), expected }
}

/// Returns the error for a table without a column map.
pub(crate) fn no_map(trace: &Trace) -> Result<ImportError, ImportError> {
    let parts = trace.parts()?;
    let first = parts.first().unwrap_or(trace);
    let form = map::TableForm::default();
    let source = Source::open(first, &form, delimiter(first)?)?;
    let names: Vec<&str> = source.names.iter().take(8).map(String::as_str).collect();
    let more = if source.names.len() > names.len() { ", ..." } else { "" };
    let what = format!("a table in {} with the columns {}{more}", format_in(first, &form)?, names.join(", "));
    let presets = fitting_presets(&source.names);
    let fits = if presets.is_empty() {
        String::new()
    } else {
        format!("; it has the columns of --preset {}", presets.join(" and "))
    };
    Ok(ImportError::NoMap { name: trace.name().into(), what, fits })
}
