//! Checks of the files that a job needs at its start: its folder, its program, and the folders of
//! its outputs.

use std::path::Path;

use anyhow::ensure;
use miserly_api::model::Submission;
use rustix::fs::{Access, access};

/// The search path of an environment without `PATH`, as in execvp(3).
const USUAL: &str = "/bin:/usr/bin";

/// Rejects a job that could only fail. A held job, or one with dependencies, is not checked: its
/// files may be created by then.
pub(super) fn check(job: &Submission) -> anyhow::Result<()> {
    if job.hold || !job.after.is_empty() || !job.conditions.is_empty() {
        return Ok(());
    }
    ensure!(job.directory.is_dir(), "--directory {}: the folder does not exist", job.directory.display());
    check_input(job)?;
    check_output(job, "--output", job.output.as_deref())?;
    check_output(job, "--error", job.error.as_deref())?;
    check_program(job)
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

/// Checks the program, as the system looks for it. A name without a slash is looked up in the
/// `PATH` of the job. All paths are relative to the folder of the job.
fn check_program(job: &Submission) -> anyhow::Result<()> {
    let Some(program) = job.command.first().filter(|_| job.script.is_none()) else { return Ok(()) };
    let runs = |path: &Path| {
        let path = job.directory.join(path);
        path.is_file() && access(&path, Access::EXEC_OK).is_ok()
    };
    if program.contains('/') {
        ensure!(runs(Path::new(program)), "{program}: the program does not exist or is not executable");
        return Ok(());
    }
    let path = job.environment.get("PATH").map_or(USUAL, String::as_str);
    let found = path.split(':').any(|folder| runs(&Path::new(folder).join(program)));
    ensure!(
        found,
        "{program}: not found in PATH ({path}); for a program in the folder of the job, write ./{program}"
    );
    Ok(())
}
