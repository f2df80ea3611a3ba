//! `sbatch`: submits a script.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use jiff::Zoned;
use miserly_api::client::Client;
use miserly_api::model::{Exit, Phase, Submission, Submitted, Window, program_name};
use miserly_api::submit::{Directives, directives};

use super::facts::stamp;
use super::options::{self, Given};
use super::submission::{Requested, set_variables, without_signal};
use super::{client, given, host, print_without_effect, refused};
use crate::commands::live::{check_places, read_script, submission_of_script};
use crate::output::print;

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("sbatch", words, true)? else { return Ok(ExitCode::SUCCESS) };
    let script = script(&given)?;
    let lines = options::of_script(&script.text).map_err(anyhow::Error::msg)?;
    if given.has("verbose") {
        print_without_effect("sbatch", &lines);
    }
    let environment = options::of_environment("sbatch", "SBATCH_").map_err(anyhow::Error::msg)?;
    let given = given.after(environment.after(lines));
    let client = client()?;
    let submission = submission(&given, &client, script)?;
    check_places(&submission)?;
    if given.has("test-only") {
        return test(&client, &submission);
    }
    let submitted =
        client.submit(&submission).map_err(|error| refused("Batch job submission failed", error))?;
    print_number(&given, &submitted)?;
    if given.has("verbose") {
        print_promises(&submitted);
    }
    if given.has("wait") { wait(&client, &submitted) } else { Ok(ExitCode::SUCCESS) }
}

/// A script, with the name of its job and its arguments.
struct Script {
    text: String,
    name: String,
    arguments: Vec<String>,
}

fn script(given: &Given) -> anyhow::Result<Script> {
    let text_of = |word: &OsString| word.clone().into_string();
    if let Some(command) = given.value("wrap") {
        if !given.words.is_empty() {
            bail!("Script arguments not permitted with --wrap option");
        }
        let text = format!("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n");
        return Ok(Script { text, name: "wrap".to_owned(), arguments: vec![] });
    }
    let Some((file, arguments)) = given.words.split_first() else {
        let text = read_script(Path::new("-"))?;
        return Ok(Script { text, name: "sbatch".to_owned(), arguments: vec![] });
    };
    let path = found(Path::new(file));
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    if !path.is_file() {
        bail!("Unable to open file {}", path.display());
    }
    let text = read_script(&path)?;
    let arguments = arguments.iter().map(text_of).collect::<Result<_, _>>();
    let arguments =
        arguments.map_err(|word| anyhow::anyhow!("the argument {} is not UTF-8 text", word.display()))?;
    Ok(Script { text, name, arguments })
}

/// Returns the file of a script: in the folder, else in `PATH`.
fn found(file: &Path) -> PathBuf {
    if file.exists() || file.components().count() > 1 {
        return file.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(file)).find(|path| path.is_file());
    in_path.unwrap_or_else(|| file.to_owned())
}

fn submission(given: &Given, client: &Client, script: Script) -> anyhow::Result<Submission> {
    let Script { mut text, name, arguments } = script;
    let mut requested = Requested::new(given).map_err(anyhow::Error::msg)?;
    // Lines of this program in a script complete those of Slurm.
    let own = text.lines().map(|line| if line.starts_with("#SBATCH") { "#" } else { line });
    let own = own.collect::<Vec<_>>().join("\n");
    let Directives { options: own, .. } =
        directives(&own, &Zoned::now()).map_err(|remark| anyhow::anyhow!("line {remark} of the script"))?;
    requested.options = requested.options.or(own);
    requested.options.submission.name.get_or_insert_with(|| program_name(&name));
    let mut options = requested.finish(given, client, "Batch job submission failed")?;
    let is_array = options.submission.array.is_some();
    let usual = if is_array { "slurm-%A_%a.out" } else { "slurm-%j.out" };
    options.submission.output.get_or_insert_with(|| usual.into());
    if let Some(signal) = options.submission.signal.filter(|signal| !signal.main) {
        text = without_signal(&text, signal.signal.name());
    }
    let mut submission = submission_of_script(options, text, name, arguments)?;
    set_variables(given, &mut submission);
    if let Some(mode) = given.value("open-mode") {
        submission.append = match mode {
            "a" | "append" => true,
            "t" | "truncate" => false,
            _ => bail!("Invalid --open-mode specification"),
        };
        submission.environment.insert("SLURM_OPEN_MODE".to_owned(), mode.chars().take(1).collect());
    }
    Ok(submission)
}

fn print_number(given: &Given, submitted: &Submitted) -> anyhow::Result<()> {
    let Some(first) = submitted.jobs.first() else { return Ok(()) };
    if given.has("parsable") {
        return print(&format!("{}\n", first.number));
    }
    if given.has("quiet") {
        return Ok(());
    }
    print(&format!("Submitted batch job {}\n", first.number))
}

/// Prints the promises to the first and the last job.
fn print_promises(submitted: &Submitted) {
    let ends = [submitted.jobs.first(), submitted.jobs.last().filter(|_| submitted.jobs.len() > 1)];
    for job in ends.into_iter().flatten() {
        let number = job.number;
        if let Some(Window { start, end }) = job.promise {
            let (start, end) = (stamp(Some(start)), stamp(Some(end)));
            note!(
                "sbatch: job {number} starts by {start} (promised), and its resources are reserved until {end}"
            );
        } else {
            note!("sbatch: job {number}: no start is promised");
        }
    }
}

/// Prints the promised start of a job that is not submitted.
fn test(client: &Client, submission: &Submission) -> anyhow::Result<ExitCode> {
    let quote = client.quote(submission).map_err(|error| refused("allocation failure", error))?;
    let queue = submission
        .queue
        .clone()
        .map_or_else(|| Ok::<_, anyhow::Error>(super::sinfo::queues(client)?.swap_remove(0).name), Ok)?;
    if let Some(Some(window)) = quote.windows.first() {
        let (start, cpus, host) = (stamp(Some(window.start)), submission.cpus, host());
        note!(
            "sbatch: Job 0 to start at {start} using {cpus} processors on nodes {host} in partition {queue}"
        );
    } else {
        note!("sbatch: no start is promised to this job in partition {queue}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end of all jobs. Returns the highest of their exit codes; a job that did not exit counts as 1.
fn wait(client: &Client, submitted: &Submitted) -> anyhow::Result<ExitCode> {
    let mut code = 0;
    for job in &submitted.jobs {
        let ended = client.wait(job.number).map_err(|error| refused("waiting for the job", error))?;
        let this = match ended.phase {
            Phase::Done { exit: Exit::Code(code), .. } => u8::try_from(code).unwrap_or(1),
            _ => 1,
        };
        code = code.max(this);
    }
    Ok(ExitCode::from(code))
}
