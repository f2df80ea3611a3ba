//! The logs of an experiment: found, read once, and shared by its runs.

use std::path::{Path, PathBuf};

use miserly_import::{ImportOptions, Report, converted, open_log};
use miserly_run::Log;
use miserly_workload::generate::{ModelOptions, find_model};
use miserly_workload::o2k::NoSuchMonth;
use miserly_workload::{Removed, Trace, put_back};

use super::checked::Experiment;
use super::error::ExperimentError;
use super::file::{PutBackFile, TraceFile};
use super::folders::{find, looked_in};
use super::machines::Machines;
use super::read::ReadOptions;

/// The logs of an experiment, in the order of its file.
pub struct Logs {
    /// Each log that is found, or the reason for which it is missing.
    pub found: Vec<Result<Log, String>>,
    /// For each log a text that determines how it was read; empty if the experiment sets nothing.
    pub(super) read: Vec<String>,
    /// The reports on the logs that were converted from another format.
    pub reports: Vec<Report>,
}

impl Logs {
    /// Finds the logs: in `folders`, in their order. A log that a model makes is as wide as its machine.
    ///
    /// # Errors
    /// If a log is missing that is not optional, or one that is there cannot be read.
    pub fn open(
        experiment: &Experiment,
        folders: &[PathBuf],
        machines: &Machines,
    ) -> Result<Logs, ExperimentError> {
        let mut logs = Logs { found: Vec::new(), read: Vec::new(), reports: Vec::new() };
        for trace in &experiment.file.traces {
            let log = logs
                .open_one(trace.get_ref(), folders, machines)
                .map_err(|problem| experiment.wrong(trace, problem))?;
            if let (Err(problem), false) = (&log, trace.get_ref().optional) {
                let (file, name) = (experiment.name.clone(), trace.get_ref().name.clone());
                return Err(ExperimentError::MissingLog {
                    file,
                    name,
                    problem: format!("{problem}; {}", looked_in(folders)),
                });
            }
            logs.found.push(log);
        }
        Ok(logs)
    }

    fn open_one(
        &mut self,
        trace: &TraceFile,
        folders: &[PathBuf],
        machines: &Machines,
    ) -> Result<Result<Log, String>, String> {
        let ReadOptions { import, key } =
            trace.read.options(folders).map_err(|error| format!("read: {error}"))?;
        self.read.push(key);
        trace.open(folders, machines, import, &mut self.reports)
    }
}

impl Experiment {
    /// Returns the files of its optional logs that are in none of the folders, with their notes.
    pub fn missing_logs(&self, folders: &[PathBuf]) -> Vec<String> {
        let missing = |trace: &TraceFile| {
            let file = trace.file.as_ref().filter(|_| trace.found(folders).is_none())?;
            Some(trace.missing(file))
        };
        let traces = self.file.traces.iter().map(toml::Spanned::get_ref);
        traces.filter(|trace| trace.optional).filter_map(missing).collect()
    }
}

impl TraceFile {
    /// Finds the log: makes it, or looks for its file in `folders`, in their order.
    ///
    /// The inner error has the folders that were searched. The outer one is of an unusable log.
    pub(super) fn open(
        &self,
        folders: &[PathBuf],
        machines: &Machines,
        import: ImportOptions,
        reports: &mut Vec<Report>,
    ) -> Result<Result<Log, String>, String> {
        let procs = self.options.processors(machines);
        let import = ImportOptions { procs, lenient: self.options.lenient.unwrap_or_default(), ..import };
        let mut is_preferred = false;
        let trace = match (&self.file, &self.model) {
            (None, Some(model)) => self.make(model, machines)?,
            (Some(file), _) => match self.found(folders) {
                Some(path) => {
                    is_preferred = self.prefer.as_ref().is_some_and(|prefer| path.ends_with(prefer));
                    self.put_back(self.opened(&path, &import, reports)?)?
                }
                None => return Ok(Err(self.missing(file))),
            },
            (None, None) => return Err(format!("trace {:?} has neither file nor model", self.name)),
        };
        let log = Log::load(trace).map_err(|error| error.to_string())?;
        self.check_header(&log)?;
        if is_preferred {
            self.check_not_cleaned(&log)?;
        }
        Ok(Ok(log))
    }

    /// Returns the file: the preferred one, if there is one.
    fn found(&self, folders: &[PathBuf]) -> Option<PathBuf> {
        [&self.prefer, &self.file].into_iter().flatten().find_map(|file| find(file, folders))
    }

    /// Returns the log of a file, converted if it has another format than the Standard Workload Format.
    fn opened(
        &self,
        path: &Path,
        options: &ImportOptions,
        reports: &mut Vec<Report>,
    ) -> Result<Trace, String> {
        let trace = open_log(path).map_err(|error| error.to_string())?;
        let trace = trace.filling_missing_fields(self.read.missing_fields);
        let (trace, report) = converted(trace, options).map_err(|error| error.to_string())?;
        reports.extend(report);
        Ok(trace)
    }

    /// Returns the log of a file, with the jobs that are put back.
    fn put_back(&self, trace: Trace) -> Result<Trace, String> {
        let Some(PutBackFile { user, jobs: [first, last] }) = self.put_back else { return Ok(trace) };
        let removed = Removed { user, jobs: first..=last };
        put_back(&trace, &removed, self.seed.unwrap_or(1)).map_err(|error| error.to_string())
    }

    /// Checks that the header is that of the log, as far as it has the fields.
    fn check_header(&self, log: &Log) -> Result<(), String> {
        let has_other = |(field, text): &(&String, &String)| {
            let value = log.survey.header.value(field)?;
            (!value.contains(text.as_str())).then(|| format!("{field}: {value}, without {text:?}"))
        };
        match self.header.iter().find_map(|entry| has_other(&entry)) {
            None => Ok(()),
            Some(problem) => Err(format!(
                "{} is another log than trace {:?}: its header has {problem}; put the right log there, or remove the file",
                log.trace.name(),
                self.name
            )),
        }
    }

    /// Checks that the header of the preferred log, the one before the cleaning, does not say that it is a cleaned one.
    fn check_not_cleaned(&self, log: &Log) -> Result<(), String> {
        if log.survey.header.comments().iter().any(|comment| comment.contains("CLEANED VERSION")) {
            return Err(format!(
                "{} is another log than trace {:?}: its header says that it is a cleaned version; put the log there as it was before, or remove the file",
                log.trace.name(),
                self.name
            ));
        }
        Ok(())
    }

    fn make(&self, model: &str, machines: &Machines) -> Result<Trace, String> {
        let month = self
            .month
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error: NoSuchMonth| error.to_string())?;
        let options = ModelOptions {
            jobs: self.jobs,
            procs: self.options.processors(machines),
            load: self.load,
            seed: self.seed,
            month,
            repeat_after_end: false,
            set: self.set.iter().map(|(name, value)| (name.clone(), value.text())).collect(),
        };
        let entry = find_model(model).map_err(|error| error.to_string())?;
        let made =
            (entry.build)(&options).and_then(|model| model.generate()).map_err(|error| error.to_string())?;
        Ok(made.into_trace(&self.name))
    }

    fn missing(&self, file: &str) -> String {
        let note = self.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        format!("{file}{note}")
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::swf::Field;

    use super::*;

    fn open(text: &str) -> Result<Log, String> {
        let file: TraceFile = toml::from_str(text).unwrap();
        file.open(&[], &Machines::default(), ImportOptions::default(), &mut vec![]).and_then(|found| found)
    }

    #[test]
    fn a_model_has_the_parameters_that_are_set() {
        let sha = |text: &str| {
            open(&format!("name = 'made'\nmodel = 'feitelson96'\njobs = 20\n{text}")).map(|log| log.sha256)
        };
        assert_eq!(sha("set = { seed = 2, size_order = 1.5 }").unwrap(), sha("seed = 2").unwrap());
        assert_ne!(sha("set = { repeat_after_end = true }").unwrap(), sha("").unwrap());
        let error = sha("set = { size-order = 2 }").unwrap_err();
        assert!(error.starts_with("feitelson96 has no parameter \"size-order\"; it has jobs, "), "{error}");
    }

    #[test]
    fn another_log_under_the_name_is_noticed_by_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let job = "1 0 0 10 1 -1 -1 1 60 -1 1 7 -1 1 -1 -1 -1 -1";
        let open = |header: &str| {
            std::fs::write(folder.path().join("log.swf"), format!("{header}\n{job}\n")).unwrap();
            let text = "name = 'KTH'\nfile = 'log.swf'\nheader = { Computer = 'SP2' }";
            let file: TraceFile = toml::from_str(text).unwrap();
            file.open(
                &[folder.path().to_owned()],
                &Machines::default(),
                ImportOptions::default(),
                &mut vec![],
            )
            .map(|found| found.is_ok())
        };
        assert_eq!(open("; Computer: IBM SP2"), Ok(true));
        // A log without the field may be the right one.
        assert_eq!(open("; Version: 2.2"), Ok(true));
        let error = open("; Computer: Intel Paragon").unwrap_err();
        assert!(
            error.contains(
                "another log than trace \"KTH\": its header has Computer: Intel Paragon, without \"SP2\""
            ),
            "{error}"
        );
    }

    #[test]
    fn a_cleaned_log_is_not_the_preferred_one() {
        let folder = tempfile::tempdir().unwrap();
        let job = "1 0 -1 60 1 -1 -1 1 60 -1 1 -1 -1 -1 -1 -1 -1 -1";
        let open = |name: &str, note: &str| {
            let log = folder.path().join(name);
            std::fs::write(&log, format!("; Computer: SP2\n; Note: {note}\n{job}\n")).unwrap();
            let file: TraceFile =
                toml::from_str("name = 'CTC'\nfile = 'cleaned.swf'\nprefer = 'raw.swf'").unwrap();
            let folders = [folder.path().to_owned()];
            let opened = file.open(&folders, &Machines::default(), ImportOptions::default(), &mut vec![]);
            std::fs::remove_file(log).unwrap();
            opened.map(|found| found.is_ok())
        };
        let cleaned = "THIS IS A CLEANED VERSION OF THE LOG!";
        assert_eq!([open("cleaned.swf", cleaned), open("raw.swf", "none")], [Ok(true), Ok(true)]);
        assert!(open("raw.swf", cleaned).unwrap_err().contains("says that it is a cleaned version"));
    }

    #[test]
    fn a_table_is_read_as_the_experiment_says() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("jobs.csv", "number,came,seconds,nodes\n7,2026-01-10 10:00:00,60,2\n");
        let columns = "[columns]\njob = 'number'\nsubmit = 'came'\nruntime = 'seconds'\nnodes = 'nodes'\n";
        write("my.toml", columns);
        let open = |read: &str| {
            let text = format!("name = 'table'\nfile = '*.csv'\nread = {{ {read} }}");
            let file: TraceFile = toml::from_str(&text).unwrap();
            let folders = [folder.path().to_owned()];
            let ReadOptions { import, key } = file.read.options(&folders)?;
            Ok::<_, String>((file.open(&folders, &Machines::default(), import, &mut vec![])??, key))
        };
        let read = "columns = 'my.toml', time-zone = 'Europe/Berlin', cpus-per-node = 36";
        let (log, key) = open(read).unwrap();
        // 10:00 in Berlin is 9:00 UTC.
        assert_eq!(log.survey.header.unix_start(), Some(1_768_035_600));
        let mut jobs = log.trace.reader().unwrap();
        let job = jobs.next_job().unwrap().expect("a job");
        let fields = [Field::Job, Field::Submit, Field::Runtime, Field::Allocated, Field::RequestedProcs];
        assert_eq!(fields.map(|field| job.get(field)), [7, 0, 60, 72, 72]);
        assert!(jobs.next_job().unwrap().is_none());
        assert_eq!(open(read).unwrap().1, key);
        write("my.toml", &format!("{columns}# another text\n"));
        assert_ne!(open(read).unwrap().1, key, "the text of the columns is part of the key");
        assert_ne!(open(&read.replace("36", "18")).unwrap().1, open(read).unwrap().1);
    }

    #[test]
    fn a_model_makes_the_month_that_is_asked_for() {
        let log = open("name = 'january'\nmodel = 'o2k'\nmonth = '2000-01'").unwrap();
        assert_eq!(log.survey.header.unix_start(), Some(946_706_400 - 7 * 86_400));
        let error = open("name = 'may'\nmodel = 'o2k'\nmonth = '2000-05'").err().unwrap();
        assert!(error.starts_with("no month \"2000-05\" in the paper; "), "{error}");
        let error = open("name = 'sud'\nmodel = 'sud'\nmonth = '2000-01'").err().unwrap();
        assert_eq!(error, "--month: sud has no months; only o2k has");
    }
}
