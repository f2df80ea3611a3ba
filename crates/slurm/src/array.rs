//! Job arrays.

use std::path::Path;

use crate::{Slurm, SlurmError};

/// A job array: a script that is run once for each of some numbers.
#[derive(Clone, Debug)]
pub struct ArrayRequest<'a> {
    /// The name.
    pub name: &'a str,
    /// The script of each task, which reads its number from `SLURM_ARRAY_TASK_ID`.
    pub script: String,
    /// The numbers, ascending.
    pub tasks: &'a [usize],
    /// The folder in which the tasks run.
    pub folder: &'a Path,
    /// The file of the output of a task, with Slurm's patterns: `%A` the array, `%a` the number.
    pub output: String,
    /// Further options of `sbatch`.
    pub options: &'a [String],
}

/// The tasks of an array that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayState {
    /// Tasks that wait.
    pub waiting: u64,
    /// Tasks that have nodes.
    pub running: u64,
}

impl ArrayState {
    /// Returns whether all tasks have ended.
    pub fn is_over(self) -> bool {
        self == ArrayState::default()
    }
}

impl Slurm {
    /// Submits a job array. Returns its number.
    ///
    /// # Errors
    /// If `sbatch` cannot be run, refuses the array, or prints no number.
    pub fn submit_array(&self, request: &ArrayRequest<'_>) -> Result<String, SlurmError> {
        let options = [
            "--parsable".to_owned(),
            format!("--array={}", task_ranges(request.tasks)),
            format!("--job-name={}", request.name),
            format!("--chdir={}", request.folder.display()),
            format!("--output={}", request.output),
        ];
        let options: Vec<&str> = options.iter().chain(request.options).map(String::as_str).collect();
        self.submit(&options, request.script.clone()).map(|number| number.to_string())
    }

    /// Returns the tasks of an array that have not ended. An array that Slurm has forgotten has none.
    ///
    /// # Errors
    /// If `squeue` cannot be run or fails otherwise.
    pub fn array(&self, number: &str) -> Result<ArrayState, SlurmError> {
        let answer = match self.ask("squeue", &["-a", "-h", "-r", "-j", number, "-o", "%T"]) {
            Ok(answer) => answer.text,
            Err(SlurmError::Failed { message, .. }) if message.contains("Invalid job id") => String::new(),
            Err(error) => return Err(error),
        };
        let mut state = ArrayState::default();
        for line in answer.lines() {
            if line.trim() == "PENDING" {
                state.waiting += 1;
            } else {
                state.running += 1;
            }
        }
        Ok(state)
    }
}

/// Returns ascending numbers in Slurm's short form: `1-3,7`.
pub fn task_ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let text = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(usize::to_string).collect(),
    };
    runs.map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        assert_eq!(task_ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!(task_ranges(&[4]), "4");
    }
}
