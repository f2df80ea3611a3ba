//! Checks of the files that a job needs at its start: its folder, its program, and the folders of
//! its outputs.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use miserly_api::model::Submission;
use rustix::fs::{Access, access};

use super::{shell_words, unread};

/// The search path of an environment without `PATH`, as in execvp(3).
const USUAL: &str = "/bin:/usr/bin";

/// Rejects a job that could only fail. A held job, or one with dependencies, is not checked: its
/// files may be created by then.
pub(crate) fn check(job: &Submission) -> anyhow::Result<()> {
    let program = program(job);
    if let Some(path) = &program {
        unread::refuse_program(path)?;
    } else if job.command.first().is_some_and(|word| shell_words::has_operators(word)) {
        // Not even a file of later has such a name.
        check_program(job, None)?;
    }
    if job.hold || !job.after.is_empty() || !job.conditions.is_empty() {
        return Ok(());
    }
    ensure!(job.directory.is_dir(), "--directory {}: the folder does not exist", job.directory.display());
    check_input(job)?;
    check_output(job, "--output", job.output.as_deref())?;
    check_output(job, "--error", job.error.as_deref())?;
    check_program(job, program.as_deref())
}

/// Checks the input file. One with a pattern in its name is unknown until the start.
fn check_input(job: &Submission) -> anyhow::Result<()> {
    let Some(input) = job.input.as_deref() else { return Ok(()) };
    let is_known = !input.as_os_str().as_encoded_bytes().contains(&b'%');
    let there = !is_known || job.directory.join(input).exists();
    ensure!(there, "--input {}: the file does not exist; create it first", input.display());
    Ok(())
}

/// Checks the folder of an output file. The file is created at the start of the job, but its folder
/// is not. A folder with a pattern in its name is unknown until then.
fn check_output(job: &Submission, option: &str, pattern: Option<&Path>) -> anyhow::Result<()> {
    let Some((pattern, folder)) = pattern.and_then(|pattern| Some((pattern, pattern.parent()?))) else {
        return Ok(());
    };
    let is_known = !folder.as_os_str().as_encoded_bytes().contains(&b'%');
    let there = !is_known || job.directory.join(folder).is_dir();
    ensure!(
        there,
        "{option} {}: the folder {} does not exist; create it first",
        pattern.display(),
        folder.display()
    );
    Ok(())
}

/// Returns the path of the program that the job would run now, as the system looks for it. A script has none.
///
/// A name without a slash is looked up in the `PATH` of the job. All paths are relative to the folder of the job.
fn program(job: &Submission) -> Option<PathBuf> {
    let program = job.command.first().filter(|_| job.script.is_none())?;
    let runs = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let folders = if program.contains('/') { "" } else { search_path(job) };
    folders.split(':').map(|folder| job.directory.join(folder).join(program)).find(runs)
}

/// Returns the `PATH` of the job.
fn search_path(job: &Submission) -> &str {
    job.environment.get("PATH").map_or(USUAL, String::as_str)
}

/// Checks that the program was `found`.
fn check_program(job: &Submission, found: Option<&Path>) -> anyhow::Result<()> {
    let Some(program) = job.command.first().filter(|_| job.script.is_none() && found.is_none()) else {
        return Ok(());
    };
    if let Some(advice) = shell_words::advice(job) {
        bail!("{program}: there is no such program; {advice}");
    }
    ensure!(!program.contains('/'), "{program}: the program does not exist or is not executable");
    let path = search_path(job);
    bail!("{program}: not found in PATH ({path}); for a program in the folder of the job, write ./{program}")
}
