//! An experiment file, checked.

use std::collections::BTreeSet;

use miserly_formula::Formula;
use miserly_policies::{PolicySpec, Registry};
use miserly_workload::Estimates;
use toml::Spanned;

use super::axes::{AXES, MAIN};
use super::error::ExperimentError;
use super::file::{ChartFile, ClaimFile, File, ReadingFile, Record, RunsFile, TableFile, TraceFile};
use super::paths::{check_list, check_number, check_scalar};
use super::read::ReadFile;
use super::store::Store;
use crate::chart_request::ChartKind;
use crate::selector::Selector;

/// An experiment: its file, and that all names in it mean something.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The file's name, for messages.
    pub name: String,
    /// The file as it is written.
    pub text: String,
    /// Its content.
    pub file: File,
    /// The files that come with it, such as machines: name and text. Others are looked for in folders.
    pub beside: &'static [(&'static str, &'static str)],
    /// The policies that it can name.
    registry: Registry,
}

impl Experiment {
    /// Parses an experiment file.
    ///
    /// # Errors
    /// The first mistake, and its line.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> Result<Experiment, ExperimentError> {
        Experiment::parse_with(name, text, &Registry::built_in())
    }

    /// Parses an experiment file with the policies of a registry.
    ///
    /// # Errors
    /// As [`parse`](Experiment::parse).
    pub fn parse_with(
        name: impl Into<String>,
        text: impl Into<String>,
        registry: &Registry,
    ) -> Result<Experiment, ExperimentError> {
        let (name, text) = (name.into(), text.into());
        let file: File = toml::from_str(&text)
            .map_err(|error| ExperimentError::Toml { file: name.clone(), problem: error.to_string() })?;
        let mut experiment = Experiment { name, text, file, beside: &[], registry: registry.clone() };
        experiment.check_traces()?;
        experiment.file.traces = experiment.file.traces.iter().flat_map(each_seed).collect();
        experiment.check_policies()?;
        experiment.check_runs()?;
        experiment.check_readings()?;
        experiment.check_selectors()?;
        experiment.check_shown()?;
        Ok(experiment)
    }

    /// Adds files that come with the experiment: name and text.
    #[must_use]
    pub fn beside(self, files: &'static [(&'static str, &'static str)]) -> Experiment {
        Experiment { beside: files, ..self }
    }

    /// Returns an error at a place of the file.
    pub(crate) fn wrong<T>(&self, at: &Spanned<T>, problem: impl Into<String>) -> ExperimentError {
        let before = self.text.get(..at.span().start).unwrap_or(&self.text);
        let line = 1 + before.matches('\n').count();
        ExperimentError::File { file: self.name.clone(), line, problem: problem.into() }
    }

    /// Returns the policy of that short name, or of that written form.
    pub(super) fn policy(&self, label: &Spanned<String>) -> Result<PolicySpec, ExperimentError> {
        let written = self.file.policies.get(label.get_ref()).unwrap_or(label);
        PolicySpec::parse(written.get_ref(), &self.registry)
            .map_err(|error| self.wrong(written, error.to_string()))
    }

    pub(super) fn estimates(&self, model: &Spanned<String>) -> Result<Estimates, ExperimentError> {
        model
            .get_ref()
            .parse()
            .map_err(|error: miserly_workload::EstimatesError| self.wrong(model, error.to_string()))
    }

    /// Returns the names of the logs of a block. Those that only readings use are in no block that does not name them.
    pub(super) fn traces_of(&self, block: &RunsFile) -> Vec<&str> {
        let of_reading = |name: &str| {
            let mut readings =
                self.file.readings.iter().flat_map(|reading| reading.get_ref().traces.values());
            readings.any(|used| used.get_ref() == name)
        };
        let of_block = |name: &&str| match &block.traces[..] {
            [] => !of_reading(name),
            named => named.iter().any(|at| at.get_ref() == name),
        };
        let mut names: Vec<&str> =
            self.file.traces.iter().map(|trace| trace.get_ref().name.as_str()).filter(of_block).collect();
        names.dedup();
        names
    }

    /// Returns the positions of the logs of that name, which are several if it is a model with several seeds.
    pub(super) fn positions_of(&self, name: &str) -> Vec<usize> {
        let traces = self.file.traces.iter().enumerate();
        traces.filter(|(_, trace)| trace.get_ref().name == name).map(|(at, _)| at).collect()
    }

    /// Returns the seed of the runs of a log, if it is one of several seeds of its model.
    pub(super) fn seed_of_model(&self, at: usize) -> Option<Vec<u64>> {
        let trace = self.file.traces[at].get_ref();
        trace.seed.filter(|_| !trace.seeds.is_empty()).map(|seed| vec![seed])
    }

    fn check_traces(&self) -> Result<(), ExperimentError> {
        let mut names = BTreeSet::new();
        for trace in &self.file.traces {
            // Each has a file of its own, whose name has plain letters only.
            if !names.insert(Store::trace(&trace.get_ref().name)) {
                let problem = format!(
                    "trace {:?}: the name is used twice, or differs only in case",
                    trace.get_ref().name
                );
                return Err(self.wrong(trace, problem));
            }
            let of = trace.get_ref();
            if !of.seeds.is_empty() && (of.model.is_none() && of.put_back.is_none() || of.seed.is_some()) {
                let problem = "seeds: only for a model or jobs that are put back, and not together with seed";
                return Err(self.wrong(trace, problem));
            }
            if of.seeds.iter().collect::<BTreeSet<_>>().len() < of.seeds.len() {
                return Err(self.wrong(trace, "seeds: a seed is given twice"));
            }
            let of_file = of.prefer.is_some() || of.put_back.is_some() || !of.header.is_empty();
            if of.file.is_none() && (of_file || of.read != ReadFile::default()) {
                return Err(self.wrong(trace, "prefer, put-back, header and read are of a file; give file"));
            }
            of.read.check().map_err(|problem| self.wrong(trace, format!("read: {problem}")))?;
            of.options.run_options().map_err(|problem| self.wrong(trace, problem))?;
        }
        Ok(())
    }

    fn check_policies(&self) -> Result<(), ExperimentError> {
        self.file.policies.values().try_for_each(|written| self.policy(written).map(drop))
    }

    fn check_runs(&self) -> Result<(), ExperimentError> {
        let mut names = BTreeSet::new();
        for runs in &self.file.runs {
            let block = runs.get_ref();
            if !names.insert(&block.name) {
                return Err(self.wrong(runs, format!("runs {:?}: the name is used twice", block.name)));
            }
            block.options.run_options().map_err(|problem| self.wrong(runs, problem))?;
            check_block(block).map_err(|problem| self.wrong(runs, problem))?;
            block.record.groupings().map_err(|error| self.wrong(runs, format!("by: {error}")))?;
            block.policies.iter().try_for_each(|label| self.policy(label).map(drop))?;
            block.estimates.iter().try_for_each(|model| self.estimates(model).map(drop))?;
            let mut of_block = block.traces.iter();
            if let Some(name) = of_block.find(|name| self.positions_of(name.get_ref()).is_empty()) {
                return Err(self.wrong(name, not_defined(name.get_ref())));
            }
        }
        Ok(())
    }

    fn check_readings(&self) -> Result<(), ExperimentError> {
        let mut names = BTreeSet::from([MAIN]);
        for entry in &self.file.readings {
            let ReadingFile { name, runs, options, traces, policies, estimates, .. } = entry.get_ref();
            if !names.insert(name) {
                return Err(self.wrong(entry, format!("reading {name:?}: the name is used twice")));
            }
            options.run_options().map_err(|problem| self.wrong(entry, problem))?;
            policies.values().try_for_each(|label| self.policy(label).map(drop))?;
            estimates.values().try_for_each(|model| self.estimates(model).map(drop))?;
            if let Some(log) = traces.values().find(|log| self.positions_of(log.get_ref()).is_empty()) {
                return Err(self.wrong(log, not_defined(log.get_ref())));
            }
            let known = |name: &&Spanned<String>| {
                self.file.runs.iter().any(|block| &block.get_ref().name == name.get_ref())
            };
            if let Some(block) = runs.iter().find(|name| !known(name)) {
                return Err(self.wrong(block, format!("no runs have the name {:?}", block.get_ref())));
            }
        }
        Ok(())
    }

    /// Checks each of some entries of the file.
    fn check_each<T>(
        &self,
        entries: &[Spanned<T>],
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<(), ExperimentError> {
        let check = |entry: &Spanned<T>| check(entry.get_ref()).map_err(|problem| self.wrong(entry, problem));
        entries.iter().try_for_each(check)
    }

    /// Checks the tables, charts and claims, as far as possible before the runs.
    fn check_shown(&self) -> Result<(), ExperimentError> {
        self.check_each(&self.file.tables, check_table)?;
        self.check_each(&self.file.charts, check_chart)?;
        self.check_each(&self.file.claims, check_claim)?;
        self.check_each(&self.file.metrics, |path| check_scalar(path))?;
        self.check_each(&self.file.tables, |table| {
            table_paths(table).try_for_each(|path| self.check_figure(path, check_number))
        })?;
        self.check_each(&self.file.charts, |chart| {
            chart_paths(chart).try_for_each(|path| self.check_drawn(chart.kind, path))
        })?;
        self.check_each(&self.file.claims, |claim| {
            claim.figures.values().try_for_each(|figure| self.check_figure(&figure.value, check_number))
        })
    }

    /// Checks the value of a line of a chart.
    fn check_drawn(&self, kind: ChartKind, path: &str) -> Result<(), String> {
        match kind {
            ChartKind::Line => self.check_figure(path, check_number),
            ChartKind::Steps | ChartKind::Points | ChartKind::Bars => self.check_figure(path, check_list),
            ChartKind::Series => self.check_figure(&format!("details.series.{path}"), check_list),
            ChartKind::Groups | ChartKind::Heat => {
                let (groups, measure) = path
                    .rsplit_once(':')
                    .ok_or_else(|| format!("{path:?}: write it as by.category:metrics.wait.mean"))?;
                self.check_figure(groups, check_list)?;
                self.check_figure(&format!("{groups}.0.{measure}"), check_number)
            }
            ChartKind::Gantt | ChartKind::Matrix => {
                self.check_recorded("record.gantt", |record| record.gantt.is_some())
            }
        }
    }

    /// Checks that runs have a field at this path, and that a block of runs records it.
    fn check_figure(&self, path: &str, check: fn(&str) -> Result<(), String>) -> Result<(), String> {
        // The description of a log has no schema.
        if path.starts_with("log.") {
            return Ok(());
        }
        if path == "longest_waits" {
            return self.check_recorded("record.longest-waits", |record| record.longest_waits.is_some());
        }
        check(path)?;
        if path.starts_with("details.") {
            self.check_recorded("record.details", |record| record.details)?;
        }
        match path.strip_prefix("by.").and_then(|path| path.split('.').next()) {
            None => Ok(()),
            Some(kind) => self.check_recorded(&format!("record.by = [{kind:?}]"), |record| {
                record.groupings().is_ok_and(|by| by.iter().any(|by| by.to_string() == kind))
            }),
        }
    }

    /// Checks that a block of runs makes this record.
    fn check_recorded(&self, name: &str, records: impl Fn(&Record) -> bool) -> Result<(), String> {
        let mut runs = self.file.runs.iter();
        if runs.any(|runs| records(&runs.get_ref().record)) {
            Ok(())
        } else {
            Err(format!("no runs have {name}, which this needs"))
        }
    }

    /// Checks that selectors name axes. Whether they find runs is checked at their use.
    fn check_selectors(&self) -> Result<(), ExperimentError> {
        self.check_each(&self.file.tables, |table| {
            let lines = table.rows.iter().chain(&table.columns).map(|line| &line.select);
            lines.chain([&table.common]).try_for_each(known_axes)
        })?;
        self.check_each(&self.file.charts, |chart| {
            chart.lines.iter().map(|line| &line.select).chain([&chart.common]).try_for_each(known_axes)
        })?;
        self.check_each(&self.file.claims, |claim| {
            let selectors =
                claim.figures.values().flat_map(|figure| [Some(&figure.select), figure.less.as_ref()]);
            selectors.flatten().try_for_each(known_axes)
        })
    }
}

/// Returns a log for each of its seeds, if it has several.
fn each_seed(trace: &Spanned<TraceFile>) -> Vec<Spanned<TraceFile>> {
    let of = trace.get_ref();
    if of.seeds.is_empty() {
        return vec![trace.clone()];
    }
    let with = |seed: &u64| Spanned::new(trace.span(), TraceFile { seed: Some(*seed), ..of.clone() });
    of.seeds.iter().map(with).collect()
}

fn not_defined(trace: &str) -> String {
    format!("trace {trace:?} is not defined; add a [[trace]] entry")
}

fn known_axes(select: &Selector) -> Result<(), String> {
    match select.axes().find(|axis| !AXES.contains(axis)) {
        None => Ok(()),
        Some(axis) => Err(no_axis(axis)),
    }
}

/// The limit of seeds.
const MOST_REPETITIONS: u64 = 100_000;

/// More decimals than a number has.
const MOST_DIGITS: usize = 17;

fn check_block(block: &RunsFile) -> Result<(), String> {
    if block.repetitions.is_some_and(|most| !(1..=MOST_REPETITIONS).contains(&most)) {
        return Err(format!("repetitions must be 1 to {MOST_REPETITIONS}"));
    }
    if block.repetitions.is_some() && !block.seeds.is_empty() {
        return Err("give seeds or repetitions, not both".into());
    }
    if block.policies.is_empty() || block.estimates.is_empty() {
        return Err("no run is defined; give at least one policy and one estimate".into());
    }
    if block.record.longest_waits.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err("record.longest-waits must be a share of the jobs, above 0 and at most 1".into());
    }
    let record = &block.record;
    let of_all = record.jobs || record.longest_waits.is_some() || record.gantt.is_some();
    if block.options.batches.is_some() && of_all {
        return Err(
            "a run in batches ends before its log; remove jobs, longest-waits and gantt from record".into()
        );
    }
    if block.record.gantt.is_some_and(|[from, to]| to <= from) {
        return Err("record.gantt must be [from, to], with from before to".into());
    }
    Ok(())
}

/// Checks that the figures of the paper have the shape of the table.
fn check_table(table: &TableFile) -> Result<(), String> {
    check_unit(table.unit)?;
    check_digits(table.digits.unwrap_or_default())?;
    if table.paper.is_empty() {
        return Ok(());
    }
    if table.paper.len() != table.rows.len() {
        return Err(format!("{} rows, but paper has {}", table.rows.len(), table.paper.len()));
    }
    match table.paper.iter().position(|line| line.len() != table.columns.len()) {
        None => Ok(()),
        Some(at) => {
            let (columns, of_row) = (table.columns.len(), table.paper[at].len());
            Err(format!("{columns} columns, but row {} of paper has {of_row}", at + 1))
        }
    }
}

/// Returns the values that a table shows.
fn table_paths(table: &TableFile) -> impl Iterator<Item = &str> {
    let lines = table.rows.iter().chain(&table.columns).filter_map(|line| line.value.as_deref());
    lines.chain([table.value.as_str()])
}

/// Returns the values that a chart draws.
fn chart_paths(chart: &ChartFile) -> impl Iterator<Item = &str> {
    chart.lines.iter().map(|line| line.value.as_ref().unwrap_or(&chart.value).as_str())
}

fn check_chart(chart: &ChartFile) -> Result<(), String> {
    check_unit(chart.unit)?;
    chart.x.as_deref().map_or(Ok(()), check_axis)
}

fn check_claim(claim: &ClaimFile) -> Result<(), String> {
    let names: Vec<&str> = claim.figures.keys().map(String::as_str).collect();
    let formulas = claim.show.iter().map(|show| &show.formula).chain(&claim.holds);
    for formula in formulas {
        Formula::parse(formula, &names).map_err(|error| error.to_string())?;
    }
    if claim.holds.is_none() && (claim.why.is_none() || !claim.figures.is_empty()) {
        return Err("a claim without holds cannot be tested; give why, and no let".into());
    }
    claim.show.iter().try_for_each(|show| check_digits(show.digits))?;
    claim.figures.values().filter_map(|figure| figure.over.as_deref()).try_for_each(check_axis)
}

fn check_axis(name: &str) -> Result<(), String> {
    if AXES.contains(&name) { Ok(()) } else { Err(no_axis(name)) }
}

fn check_unit(unit: f64) -> Result<(), String> {
    if unit.is_finite() && unit != 0.0 {
        Ok(())
    } else {
        Err("unit is a divisor; it must be a number other than 0".into())
    }
}

fn check_digits(digits: usize) -> Result<(), String> {
    if digits <= MOST_DIGITS { Ok(()) } else { Err(format!("digits must be 0 to {MOST_DIGITS}")) }
}

fn no_axis(name: &str) -> String {
    format!("{name:?} is not an axis of the runs; the axes are {}", AXES.join(", "))
}
