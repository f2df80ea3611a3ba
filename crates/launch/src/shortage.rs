//! Shortages of the machine, which pass: of disk space, memory, descriptors and processes.
//!
//! A debug build injects them for tests. The file `shortage` beside the folder of an attempt has the
//! name of a [`LaunchStep`], an error number and a count: `write-script 28 2` makes the next two
//! passes of that step fail for lack of disk space. A release build has no such code.

use miserly_attempt::RecordError;
use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Name of the file that selects a step.
const FILE: &str = "shortage";

miserly_core::named_enum! {
    /// A step of a launch that needs resources of the machine.
    pub enum LaunchStep {
        /// The launcher creates the folder.
        CreateFolder "create-folder",
        /// The launcher writes `spec.json`.
        WriteSpec "write-spec",
        /// The launcher spawns the first program.
        Spawn "spawn",
        /// The first program copies itself: the copy is the shim.
        SpawnShim "spawn-shim",
        /// The shim claims the attempt.
        Claim "claim",
        /// The shim writes `shim.json`.
        WriteShim "write-shim",
        /// The shim spawns the program that becomes the command.
        SpawnCommand "spawn-command",
        /// That program opens the output files.
        OpenOutputs "open-outputs",
        /// That program writes the script.
        WriteScript "write-script",
        /// The shim writes `started.json`.
        WriteStarted "write-started",
    }
}

impl LaunchStep {
    /// Passes the step for the attempt in a folder.
    ///
    /// # Errors
    /// The shortage that a test injects.
    pub(crate) fn pass(self, dir: &Path) -> io::Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        let Some(file) = dir.parent().map(|parent| parent.join(FILE)) else { return Ok(()) };
        let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
        let mut words = text.split_whitespace();
        let (step, mut number) = (words.next(), || words.next()?.parse::<i32>().ok());
        let (Some(errno), Some(left)) = (number(), number()) else { return Ok(()) };
        if step != Some(self.name()) || left <= 0 {
            return Ok(());
        }
        // A program that is killed in between leaves no empty file, which would end the shortage.
        let next = file.with_extension(std::process::id().to_string());
        fs::write(&next, format!("{} {errno} {}", self.name(), left - 1))?;
        fs::rename(&next, &file)?;
        Err(io::Error::from_raw_os_error(errno))
    }
}

/// Returns whether an error is a shortage.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [Errno; 7] =
        [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|errno| SHORTAGES.contains(&errno))
}

/// As [`is_shortage`], for an error of a record.
pub(crate) fn is_shortage_of_record(error: &RecordError) -> bool {
    matches!(error, RecordError::Io { error, .. } if is_shortage(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selected_step_fails_as_often_as_requested_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("7.1");
        fs::write(folder.path().join(FILE), "write-script 28 2").unwrap();
        for _ in 0..2 {
            LaunchStep::Spawn.pass(&dir).unwrap();
            let error = LaunchStep::WriteScript.pass(&dir).unwrap_err();
            assert!(is_shortage(&error), "{error}");
        }
        LaunchStep::WriteScript.pass(&dir).unwrap();
        assert!(!is_shortage(&io::Error::from(Errno::ACCESS)));
    }
}
