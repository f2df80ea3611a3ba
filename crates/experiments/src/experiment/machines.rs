//! The machines of an experiment: found, and read once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use super::checked::Experiment;
use super::error::ExperimentError;
use super::logs::find;
use miserly_machine_file::{MachineError, MachineSpec};

/// The machines of an experiment, by the words that it has for them.
#[derive(Clone, Debug, Default)]
pub struct Machines(BTreeMap<String, MachineSpec>);

impl Machines {
    /// The machine of that word.
    pub(super) fn get(&self, word: &str) -> Option<&MachineSpec> {
        self.0.get(word)
    }
}

impl Experiment {
    /// Finds the machines: built in, among the files that come with the experiment, or in `folders`, in their order.
    ///
    /// # Errors
    /// If there is no such machine, or its file makes no sense.
    pub fn open_machines(&self, folders: &[PathBuf]) -> Result<Machines, ExperimentError> {
        let mut machines = Machines::default();
        let mut open = |word: &str| -> Result<(), MachineError> {
            let spec = MachineSpec::named(word, |file| self.read(file, folders))?;
            machines.0.insert(word.to_owned(), spec);
            Ok(())
        };
        for trace in &self.file.traces {
            let word = trace.get_ref().options.machine.as_deref();
            word.map_or(Ok(()), &mut open).map_err(|error| self.wrong(trace, error.to_string()))?;
        }
        for runs in &self.file.runs {
            let block = runs.get_ref();
            let words = block.options.machine.clone().into_iter().chain(block.machines());
            for word in words {
                open(&word).map_err(|error| self.wrong(runs, error.to_string()))?;
            }
        }
        Ok(machines)
    }

    /// The text of a file that comes with the experiment, or is in one of the folders.
    fn read(&self, file: &str, folders: &[PathBuf]) -> io::Result<String> {
        if let Some((_, text)) = self.beside.iter().find(|(name, _)| *name == file) {
            return Ok((*text).to_owned());
        }
        fs::read_to_string(find(file, folders).unwrap_or_else(|| file.into()))
    }
}
