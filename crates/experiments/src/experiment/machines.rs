//! The machines of an experiment: found, and read once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use super::checked::Experiment;
use super::error::ExperimentError;
use super::folders::find;
use miserly_machine_file::{MachineError, MachineSpec};

/// The machines of an experiment, by the words that select them.
#[derive(Clone, Debug, Default)]
pub struct Machines(BTreeMap<String, MachineSpec>);

impl Machines {
    /// Finds the machines: built in, among the files that come with the experiment, or in `folders`, in their order.
    ///
    /// # Errors
    /// If there is no such machine, or its file has a mistake.
    pub fn open(experiment: &Experiment, folders: &[PathBuf]) -> Result<Machines, ExperimentError> {
        let mut machines = Machines::default();
        let mut open = |word: &str| -> Result<(), MachineError> {
            let spec = MachineSpec::named(word, |file| read(experiment, file, folders))?;
            machines.0.insert(word.to_owned(), spec);
            Ok(())
        };
        for trace in &experiment.file.traces {
            let word = trace.get_ref().options.machine.as_deref();
            word.map_or(Ok(()), &mut open).map_err(|error| experiment.wrong(trace, error.to_string()))?;
        }
        for runs in &experiment.file.runs {
            let block = runs.get_ref();
            let words = block.options.machine.clone().into_iter().chain(block.machines());
            for word in words {
                open(&word).map_err(|error| experiment.wrong(runs, error.to_string()))?;
            }
        }
        Ok(machines)
    }

    /// Returns the machine of that word.
    pub(super) fn get(&self, word: &str) -> Option<&MachineSpec> {
        self.0.get(word)
    }
}

/// Returns the text of a file that comes with the experiment, or is in one of the folders.
fn read(experiment: &Experiment, file: &str, folders: &[PathBuf]) -> io::Result<String> {
    if let Some((_, text)) = experiment.beside.iter().find(|(name, _)| *name == file) {
        return Ok((*text).to_owned());
    }
    fs::read_to_string(find(file, folders).unwrap_or_else(|| file.into()))
}
