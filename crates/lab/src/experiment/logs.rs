//! The logs of an experiment: found, read once, and shared by its runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miserly_workload::generate::{ModelOptions, find_model};
use miserly_workload::o2k::NoSuchMonth;
use miserly_workload::{Survey, Trace, TraceError};

use super::file::TraceFile;
use super::machines::Machines;

/// A log that many runs share: unpacked in memory, looked over, with its checksum.
#[derive(Clone)]
pub struct Log {
    /// Its lines.
    pub trace: Arc<Trace>,
    /// What a first look found.
    pub survey: Arc<Survey>,
    /// The SHA-256 of the log as it is stored.
    pub sha256: String,
}

/// The logs of an experiment, in the order of its file: each found, or why not.
pub struct Logs(pub Vec<Result<Log, String>>);

impl Log {
    /// Reads a log into memory.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(trace: Trace) -> Result<Log, TraceError> {
        let sha256 = trace.sha256()?;
        let trace = trace.into_memory()?;
        let survey = Arc::new(trace.survey()?);
        Ok(Log { trace: Arc::new(trace), survey, sha256 })
    }
}

impl TraceFile {
    /// Finds the log: makes it, or looks for its file in `folders`, in their order.
    ///
    /// The inner error says where it was looked for; the outer one, why a log that is there cannot be used.
    pub(super) fn open(
        &self,
        folders: &[PathBuf],
        machines: &Machines,
    ) -> Result<Result<Log, String>, String> {
        let trace = match (&self.file, &self.model) {
            (None, Some(model)) => self.make(model, machines)?,
            (Some(file), _) => match find(file, folders) {
                Some(path) => Trace::open(&path).map_err(|error| error.to_string())?,
                None => return Ok(Err(self.missing(file))),
            },
            (None, None) => return Err(format!("trace {:?} has neither file nor model", self.name)),
        };
        Log::load(trace).map(Ok).map_err(|error| error.to_string())
    }

    fn make(&self, model: &str, machines: &Machines) -> Result<Trace, String> {
        let month = self
            .month
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error: NoSuchMonth| error.to_string())?;
        let asked = ModelOptions {
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
            (entry.build)(&asked).and_then(|model| model.generate()).map_err(|error| error.to_string())?;
        Ok(made.into_trace(&self.name))
    }

    fn missing(&self, file: &str) -> String {
        let note = self.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        format!("{file}{note}")
    }
}

/// Where a missing log was looked for, and what to do.
pub fn looked_in(folders: &[PathBuf]) -> String {
    let looked: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let looked = if looked.is_empty() { "no folder was given".into() } else { looked.join(", ") };
    format!("looked for in: {looked}; name the folder of logs with --traces or MISERLY_TRACES")
}

/// The first of the folders' files of that name; a file that is named in full is itself.
pub(super) fn find(file: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if Path::new(file).is_absolute() {
        return Path::new(file).exists().then(|| file.into());
    }
    folders.iter().map(|folder| folder.join(file)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<Log, String> {
        let file: TraceFile = toml::from_str(text).unwrap();
        file.open(&[], &Machines::default()).and_then(|found| found)
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
    fn a_model_makes_the_month_that_is_asked_for() {
        let log = open("name = 'january'\nmodel = 'o2k'\nmonth = '2000-01'").unwrap();
        assert_eq!(log.survey.header.unix_start(), Some(946_706_400 - 7 * 86_400));
        let error = open("name = 'may'\nmodel = 'o2k'\nmonth = '2000-05'").err().unwrap();
        assert!(error.starts_with("no month \"2000-05\" in the paper; "), "{error}");
        let error = open("name = 'sud'\nmodel = 'sud'\nmonth = '2000-01'").err().unwrap();
        assert_eq!(error, "--month: sud has no months; only o2k has");
    }
}
