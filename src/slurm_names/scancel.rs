//! `scancel`: ends or signals jobs.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::Timestamp;
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, JobRef, JobView, ProblemCode, SignalRequest};
use miserly_api::submit::job_signal;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::facts::{Facts, State, state};
use super::jobs::{self, NamedJob, check_users, is_of_user, own_uid};
use super::options::Given;
use super::sacct::running_steps;
use super::tables::queues_of_ended;
use super::{client, given, refused};

/// What happens to the jobs.
#[derive(Clone, Copy)]
enum Action {
    Cancel,
    Signal(SignalRequest),
    Pause,
    Resume,
}

pub(super) fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let Some(given) = given("scancel", words, false)? else { return Ok(ExitCode::SUCCESS) };
    let given =
        given.after(super::options::of_environment("scancel", "SCANCEL_").map_err(anyhow::Error::msg)?);
    let words: Vec<String> = given.words.iter().map(|word| word.display().to_string()).collect();
    let named =
        NamedJob::list(words.iter().map(String::as_str)).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut wanted = Wanted::new(&given).map_err(anyhow::Error::msg)?;
    if named.is_empty() && !wanted.has_filter() {
        bail!("No job identification provided");
    }
    let action = action(&given).map_err(anyhow::Error::msg)?;
    let client = client()?;
    wanted.queues = queues_of_ended(&client, &given)?;
    let mut code = ExitCode::SUCCESS;
    let numbers = if named.is_empty() {
        let found = jobs::all(&client, &Filter::default(), |job| wanted.admits(job));
        found.map_err(|error| refused("slurm_load_jobs error", error))?.iter().map(|job| job.number).collect()
    } else {
        let mut numbers = vec![];
        for one in &named {
            if let Some(step) = one.step.as_deref().filter(|step| *step != "batch") {
                if given.has("verbose") {
                    note!("scancel: Terminating step {}.{step}", shown(&one.job));
                }
                if let Err(error) = signal_step(&client, one, step, action, &wanted) {
                    note!("scancel: error: {}", crate::failure::text(&error));
                    code = ExitCode::FAILURE;
                }
                continue;
            }
            let found = jobs::named(&client, std::slice::from_ref(one));
            let found = found.map_err(|error| refused("Kill job error", error))?;
            // To end what has ended is no error, and Slurm does not tell it from what never was.
            if found.is_empty() && given.has("verbose") {
                note!(
                    "scancel: error: Kill job error on job id {}: Invalid job id specified",
                    shown(&one.job)
                );
            }
            let unfinished = found.iter().filter(|job| job.phase.ended().is_none() && wanted.admits(job));
            numbers.extend(unfinished.map(|job| job.number));
        }
        numbers
    };
    for number in numbers {
        if given.has("verbose") {
            note!("scancel: Terminating job {number}");
        }
        if let Err(error) = act(&client, number, action) {
            if has_ended(&error) {
                continue;
            }
            let error = refused(&format!("Kill job error on job id {number}"), error);
            note!("scancel: error: {}", crate::failure::text(&error));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Returns whether the job has ended meanwhile, or does not run.
fn has_ended(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(problem) if problem.code == ProblemCode::Conflict)
}

fn shown(job: &JobRef) -> String {
    match job {
        JobRef::Array(array, indexes) if indexes.len() == 1 && indexes[0].first == indexes[0].last => {
            format!("{array}_{}", indexes[0].first)
        }
        job => job.to_string(),
    }
}

/// Sends a signal to the processes of a running step, whose environments have its number. `srun` then reports its end.
/// A step of a job that the filters do not admit gets none.
///
/// # Errors
/// If no such step runs, or if its processes are those of another user.
fn signal_step(
    client: &Client,
    one: &NamedJob,
    step: &str,
    action: Action,
    wanted: &Wanted,
) -> anyhow::Result<()> {
    let id = format!("{}.{step}", shown(&one.job));
    let context = || format!("Kill job error on job step id {id}");
    let found = jobs::named(client, std::slice::from_ref(one)).map_err(|error| refused(&context(), error))?;
    let runs = |job: &&JobView| {
        let of = Facts { job: Cow::Borrowed(*job), now: Timestamp::now(), host: "", indexes: None };
        running_steps(&of).any(|part| part.suffix()[1..] == *step)
    };
    let job = found.iter().find(runs).with_context(|| format!("{}: Invalid job id specified", context()))?;
    if !wanted.admits(job) {
        return Ok(());
    }
    let signal = match action {
        Action::Cancel => Signal::KILL,
        Action::Pause => Signal::STOP,
        Action::Resume => Signal::CONT,
        Action::Signal(request) => Signal::from_named_raw(request.signal.number().into())
            .with_context(|| format!("{}: it takes no such signal", context()))?,
    };
    let variables = [
        format!("MISERLY_JOB_ID={}", job.number),
        format!("SLURM_JOB_ID={}", job.number),
        format!("SLURM_STEP_ID={step}"),
    ];
    let mut count = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // The descriptor is opened before the environment is read, so that the number is not that of another process.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        // A process of another user may have the same variables, and root may signal it.
        let is_of_job = own_uid() != 0 || entry.metadata().is_ok_and(|folder| folder.uid() == job.uid);
        let has = |text: &String| environment.split(|byte| *byte == 0).any(|own| own == text.as_bytes());
        if is_of_job && variables.iter().all(has) && pidfd_send_signal(&process, signal).is_ok() {
            count += 1;
        }
    }
    anyhow::ensure!(count > 0, "{}: Access/permission denied", context());
    Ok(())
}

fn act(client: &Client, job: i64, action: Action) -> Result<(), ClientError> {
    match action {
        Action::Cancel => client.cancel(job, false).map(drop),
        Action::Signal(signal) => client.signal(job, &signal).map(drop),
        Action::Pause => client.pause(job).map(drop),
        Action::Resume => client.resume(job).map(drop),
    }
}

fn action(given: &Given) -> Result<Action, String> {
    let Some(text) = given.value("signal") else { return Ok(Action::Cancel) };
    let name = text.to_ascii_uppercase();
    Ok(match name.strip_prefix("SIG").unwrap_or(&name) {
        "KILL" | "9" => Action::Cancel,
        "STOP" | "19" | "TSTP" | "20" => Action::Pause,
        "CONT" | "18" => Action::Resume,
        _ => Action::Signal(SignalRequest { signal: job_signal(text)?, main: given.has("batch") }),
    })
}

/// The filters.
struct Wanted {
    states: Vec<State>,
    users: Vec<String>,
    queues: Vec<String>,
    names: Vec<String>,
    /// Whether an option selects queues.
    names_queue: bool,
}

impl Wanted {
    fn new(given: &Given) -> Result<Wanted, String> {
        // An empty variable of a script must not end all jobs, and a list drops its empty parts.
        for long in ["user", "name", "jobname", "partition", "reservation", "account", "qos", "state"] {
            if given.all(long).any(|value| value.split(',').all(|part| part.trim().is_empty())) {
                return Err(format!("--{long}: the value is empty"));
            }
        }
        let mut users = given.list("user");
        check_users(&users)?;
        if given.has("me") {
            users.push(own_uid().to_string());
        }
        let name = given.value("name").or(given.value("jobname"));
        let names = name.map(str::to_owned).into_iter().collect();
        let states = given.list("state");
        let states: Vec<State> = states.iter().map(|state| State::parse(state)).collect::<Result<_, _>>()?;
        if let Some(state) = states.iter().find(|state| !state.is_active()) {
            return Err(format!(
                "Invalid job state specified: {}\nValid job states are PENDING, RUNNING, and SUSPENDED",
                state.name
            ));
        }
        let names_queue = ["partition", "reservation", "account", "qos"].iter().any(|long| given.has(long));
        Ok(Wanted { states, users, queues: vec![], names, names_queue })
    }

    fn has_filter(&self) -> bool {
        self.names_queue || !(self.states.is_empty() && self.users.is_empty() && self.names.is_empty())
    }

    fn admits(&self, job: &JobView) -> bool {
        (self.states.is_empty() || self.states.contains(&state(job)))
            && is_of_user(job, &self.users)
            && (self.queues.is_empty() || self.queues.contains(&job.queue))
            && (self.names.is_empty() || self.names.contains(&job.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm_names::options;

    #[test]
    fn no_filter_selects_more_than_it_has() {
        let wanted = |words: &[&str]| {
            let given = options::parse("scancel", words.iter().map(OsString::from), false).unwrap();
            Wanted::new(&given)
        };
        for empty in [
            "--name=",
            "--user=",
            "--state= ",
            "--partition=",
            "--partition=,",
            "--account=,",
            "--qos=,",
            "--state=,",
            "--reservation=,",
            "--user= , ",
        ] {
            assert!(wanted(&[empty, "--me"]).is_err(), "{empty}");
        }
        assert!(wanted(&["--user=no-such-user"]).is_err());
        assert_eq!(wanted(&["--name=a,b"]).unwrap().names, ["a,b"]);
        let variables = options::parse("scancel", ["--name=keep".into()], false).unwrap();
        let line = options::parse("scancel", ["--name=drop".into()], false).unwrap();
        assert_eq!(Wanted::new(&line.after(variables)).unwrap().names, ["drop"]);
    }
}
