//! A session: from an experiment file to a folder of results, and from the folder to its page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miserly_import::Report;
use miserly_report::chart::svg;
use miserly_report::page::{Block, Page, html, markdown};
use miserly_workload::{ProcsField, describe};

use crate::experiment::{
    Executed, Experiment, ExperimentError, Index, IndexedRun, IndexedTrace, Logs, Machines, Part, Plan,
    Store, Watcher, execute, execute_part,
};
use crate::present;
use crate::results::{self, Results};

/// An experiment file with its folders.
pub struct ExperimentFile {
    /// The experiment.
    pub experiment: Experiment,
    /// The folders in which its logs are looked for: the one that was given, and that of the file.
    pub folders: Vec<PathBuf>,
    /// The folder of the results.
    pub folder: PathBuf,
    /// The command that makes the results again. What decides neither runs nor pages is left out.
    pub command: String,
}

impl ExperimentFile {
    /// Reads an experiment file. The default folder of results of `slowdown.toml` is `slowdown-results`. The default folder of logs
    /// is that of `MISERLY_TRACES`.
    ///
    /// # Errors
    /// If the file cannot be read, or is no experiment.
    pub fn open(
        file: &Path,
        output: Option<&Path>,
        traces: Option<&Path>,
    ) -> Result<ExperimentFile, ExperimentError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| ExperimentError::Unreadable { path: file.to_owned(), error })?;
        let name = file.file_name().unwrap_or(file.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let experiment = Experiment::parse(name.clone(), text)?;
        let stem = file.file_stem().map_or_else(|| "experiment".into(), |stem| stem.to_string_lossy());
        let folder = output.map_or_else(|| PathBuf::from(format!("{stem}-results")), Path::to_owned);
        let mut folders = log_folders(traces);
        let beside = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        folders.push(beside.unwrap_or(Path::new(".")).to_owned());
        let option = |option: &str, value: Option<&Path>| {
            value.map(|value| format!(" {option} {}", quoted(&value.to_string_lossy()))).unwrap_or_default()
        };
        let command = format!(
            "miserly experiment run {}{}{}",
            quoted(&name),
            option("--traces", traces),
            option("-o", output)
        );
        Ok(ExperimentFile { experiment, folders, folder, command })
    }
}

/// Returns the folders of logs: the given one, or the one of the environment.
pub fn log_folders(given: Option<&Path>) -> Vec<PathBuf> {
    given
        .map(Path::to_owned)
        .or_else(|| std::env::var_os("MISERLY_TRACES").map(PathBuf::from))
        .into_iter()
        .collect()
}

/// Returns a word quoted for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// An experiment whose logs are at hand, with its folder: ready to run.
pub struct Session {
    experiment: Experiment,
    machines: Machines,
    logs: Logs,
    plan: Plan,
    store: Store,
    command: String,
}

impl Session {
    /// Finds the logs in `folders`, plans the runs, and makes the folder.
    ///
    /// `command` makes the results again; it is shown with them.
    ///
    /// # Errors
    /// If a log is missing or unfit, or the folder cannot be made.
    pub fn new(
        experiment: Experiment,
        folders: &[PathBuf],
        folder: &Path,
        command: &str,
    ) -> Result<Session, ExperimentError> {
        let machines = Machines::open(&experiment, folders)?;
        let logs = Logs::open(&experiment, folders, &machines)?;
        let plan = Plan::new(&experiment, &logs, &machines)?;
        let store = Store::create(folder)?;
        let session = Session { experiment, machines, logs, plan, store, command: command.to_owned() };
        session.rehearse()?;
        Ok(session)
    }

    /// Makes the page without results. A request for a missing run is so found before the runs.
    fn rehearse(&self) -> Result<(), ExperimentError> {
        let without = Results::in_memory(self.index(), BTreeMap::new());
        present::page(&self.experiment, &without, false).map(drop)
    }

    /// Returns the reports on the logs that were converted from another format.
    pub fn conversions(&self) -> &[Report] {
        &self.logs.reports
    }

    /// Returns the number of jobs to simulate in the runs that are not stored yet.
    pub fn open_jobs(&self) -> u64 {
        crate::experiment::open_jobs(&self.plan, &self.store)
    }

    /// Returns the number of different runs.
    pub fn runs(&self) -> usize {
        self.plan.distinct().len()
    }

    /// Returns the number of runs that are stored.
    pub fn stored(&self) -> usize {
        let is_stored = |run: &&crate::experiment::PlannedRun| self.store.path(Store::run(&run.key)).exists();
        self.plan.distinct().into_iter().filter(is_stored).count()
    }

    /// Returns the parts, of `count`, that have runs that are not stored yet.
    pub fn open_parts(&self, count: usize) -> Vec<usize> {
        crate::experiment::open_parts(&self.plan, &self.store, count)
    }

    /// Makes the runs that are not stored yet, and writes the index of the folder.
    ///
    /// # Errors
    /// The first run that failed, or a file that cannot be written. Finished runs are stored.
    pub fn run(&self, watcher: &dyn Watcher) -> Result<Executed, ExperimentError> {
        let executed = execute(&self.plan, &self.store, watcher)?;
        self.describe_logs()?;
        self.store.write("experiment.toml", self.experiment.text.as_bytes())?;
        self.store.write_json("index.json", &self.index())?;
        let results = Results::read(&self.store)?;
        let figures = self.figures(&results)?;
        let rows = results::csv(&results, &figures).map_err(|error| ExperimentError::Io {
            path: self.store.path("results.csv"),
            error: error.into(),
        })?;
        self.store.write("results.csv", &rows)?;
        #[cfg(feature = "parquet")]
        self.write_parquet(&results, &figures)?;
        Ok(executed)
    }

    /// The figures that the rows are to have; every one is in some run's document.
    fn figures(&self, results: &Results) -> Result<Vec<&str>, ExperimentError> {
        let wanted = &self.experiment.file.metrics;
        match wanted.iter().find(|path| !results.has(path.get_ref())) {
            None => Ok(wanted.iter().map(|path| path.get_ref().as_str()).collect()),
            Some(path) => {
                let problem =
                    format!("the document of a run has no {:?} (docs/simulate.schema.json)", path.get_ref());
                Err(self.experiment.wrong(path, problem))
            }
        }
    }

    #[cfg(feature = "parquet")]
    fn write_parquet(&self, results: &Results, figures: &[&str]) -> Result<(), ExperimentError> {
        let bytes = results::parquet(results, figures).map_err(|error| ExperimentError::Io {
            path: self.store.path("results.parquet"),
            error: std::io::Error::other(error),
        })?;
        self.store.write("results.parquet", &bytes)
    }

    fn describe_logs(&self) -> Result<(), ExperimentError> {
        for (entry, log) in self.experiment.file.traces.iter().zip(&self.logs.found) {
            let (trace, Ok(log)) = (entry.get_ref(), log) else { continue };
            // Of several seeds of a model the first is described.
            if trace.seeds.first().is_some_and(|first| trace.seed != Some(*first)) {
                continue;
            }
            let name = Store::trace(&trace.name);
            let procs = trace.options.processors(&self.machines);
            let described = describe(&log.trace, procs, ProcsField::default())
                .map_err(|error| self.experiment.wrong(entry, error.to_string()))?;
            self.store.write_json(name, &miserly_report::describe_json(&described, &trace.study))?;
        }
        Ok(())
    }

    fn index(&self) -> Index {
        let traces = self.experiment.file.traces.iter().zip(&self.logs.found);
        let trace =
            |(entry, log): (&toml::Spanned<crate::experiment::file::TraceFile>, &Result<_, String>)| {
                let log: &Result<miserly_run::Log, String> = log;
                IndexedTrace {
                    name: entry.get_ref().name.clone(),
                    sha256: log.as_ref().ok().map(|log| log.sha256.clone()),
                    missing: log.as_ref().err().cloned(),
                }
            };
        let run =
            |run: &crate::experiment::PlannedRun| IndexedRun { axes: run.axes.clone(), key: run.key.clone() };
        Index {
            version: env!("CARGO_PKG_VERSION").into(),
            sources: env!("MISERLY_SOURCES").into(),
            command: self.command.clone(),
            file: self.experiment.name.clone(),
            traces: traces.map(trace).collect(),
            runs: self.plan.runs.iter().map(run).collect(),
        }
    }
}

/// Makes the runs of a part of an experiment that are not stored yet in its folder, which may be shared by several processes.
///
/// It writes the results of runs only. A [`Session`] has made the folder, and makes the rest of it.
///
/// # Errors
/// If a log is missing or unfit, the folder is not that of an experiment, or a run fails. Finished runs are stored.
pub fn run_part(
    experiment: &Experiment,
    folders: &[PathBuf],
    folder: &Path,
    part: Part,
    watcher: &dyn Watcher,
) -> Result<Executed, ExperimentError> {
    let machines = Machines::open(experiment, folders)?;
    let logs = Logs::open(experiment, folders, &machines)?;
    let plan = Plan::new(experiment, &logs, &machines)?;
    execute_part(&plan, &Store::shared(folder)?, part, watcher)
}

/// Returns the page of the results in a folder. With `bars`, each table of figures is also drawn as bars.
///
/// # Errors
/// If the folder has no results, or not those of its tables and charts.
pub fn page(folder: &Path, bars: bool) -> Result<Page, ExperimentError> {
    let store = Store::open(folder);
    let text = store.read("experiment.toml")?;
    let results = Results::read(&store)?;
    let experiment = Experiment::parse(results.index.file.clone(), text)?;
    present::page(&experiment, &results, bars)
}

/// Writes a page into a folder: `report.html`, `report.md`, and each chart as SVG.
///
/// # Errors
/// If a file cannot be written.
pub fn write_page(folder: &Path, page: &Page) -> Result<(), ExperimentError> {
    let store = Store::open(folder);
    for block in page.sections.iter().flat_map(|section| &section.blocks) {
        if let Block::Chart(chart) = block {
            store.write(Path::new("charts").join(format!("{}.svg", chart.id)), svg(chart).as_bytes())?;
        }
    }
    store.write("report.md", markdown(page).as_bytes())?;
    store.write("report.html", html(page).as_bytes())
}
