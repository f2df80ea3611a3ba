//! `srun`: inside a job tasks on its processors, outside a job a job of its own.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, bail};
use miserly_api::model::{Interaction, program_name};

use super::options::{self, Given};
use super::step::{self, MPI_TYPES};
use super::submission::{Requested, set_variables};
use super::{client, given, print_error};
use crate::commands::live::{
    Messages, begin_session, block_signals, check_places, check_terminal, submission_of_command, terminal,
};
use crate::output::print;

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("srun", words, true)? else { return Ok(ExitCode::SUCCESS) };
    if given.value("mpi") == Some("list") {
        print(MPI_TYPES)?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.words.is_empty() {
        bail!("No command given to execute.");
    }
    let inside = std::env::var("SLURM_JOB_ID").ok().filter(|_| std::env::var_os("MISERLY_SOCKET").is_some());
    if let Some(job) = given.value("jobid").filter(|job| inside.as_deref() != Some(*job)) {
        bail!(
            "--jobid={job}: a step is started inside its job only; `miserly attach {job}` attaches to its terminal"
        );
    }
    match inside {
        Some(job) => step::run(&given, &job),
        None => outside(&given),
    }
}

/// Runs the command as a job, with the input and output of this process.
fn outside(given: &Given) -> anyhow::Result<ExitCode> {
    let environment = options::of_environment("srun", "SLURM_").map_err(anyhow::Error::msg)?;
    let given = given.clone().after(environment);
    let has_terminal = given.has("pty");
    if has_terminal {
        check_terminal("--pty")?;
    }
    let signals = block_signals()?;
    let client = client()?;
    let mut requested = Requested::new(&given).map_err(anyhow::Error::msg)?;
    let job = &mut requested.options.submission;
    job.name.get_or_insert_with(|| program_name(&given.words[0].to_string_lossy()));
    // The step reads and writes the files of tasks.
    let has_step = job.tasks.unwrap_or(1) > 1 || OF_TASKS.iter().any(|long| given.has(long));
    let command = if has_step { step_of(&given)? } else { given.words.clone() };
    if has_step {
        (job.input, job.output, job.error) = (None, None, None);
    }
    let options = requested.finish(&given, &client, "Unable to allocate resources")?;
    let checked = submission_of_command(&command, options).and_then(|submission| {
        check_places(&submission)?;
        Ok(submission)
    });
    let mut submission = match checked {
        Ok(submission) => submission,
        Err(error) => {
            // The code of Slurm for a command that cannot be run.
            print_error("srun", &error);
            return Ok(ExitCode::from(2));
        }
    };
    set_variables(&given, &mut submission);
    submission.interaction = Some(if has_terminal { terminal() } else { Interaction::Stdin });
    submission.no_opportunistic = true;
    let messages = Messages::Srun { waits: !given.has("quiet"), ends: !has_step };
    begin_session(client, &submission, messages, &signals)
}

/// The options of a step that are of its tasks.
const OF_TASKS: [&str; 8] =
    ["mpi", "label", "kill-on-bad-exit", "wait", "input", "output", "error", "open-mode"];

/// Returns the command that runs all tasks inside the job: this one, with the options of steps.
fn step_of(given: &Given) -> anyhow::Result<Vec<OsString>> {
    let own = std::env::args_os().next().context("the name of this program is unknown")?;
    let mut command = vec![own];
    for long in OF_TASKS.into_iter().filter(|long| given.has(long)) {
        let value = given.value(long).filter(|value| !value.is_empty());
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        command.push(format!("--{long}{value}").into());
    }
    command.push("--".into());
    command.extend(given.words.iter().cloned());
    Ok(command)
}
