//! One run of the program.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use miserly_follow::{JobEvent, JobEventKind};
use miserly_launch::{BootTime, MachineClock as _};
use miserly_view::word;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use crate::args::{HOOK_EVENTS, HookArgs};

/// The time between two looks at a running program.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Runs the program with an event as JSON on its standard input. Its failure is reported, and is no error.
///
/// A program that reaches the limit is killed, with the processes of its group.
///
/// # Errors
/// If the program cannot be started, as it does not exist.
pub(super) fn run(args: &HookArgs, JobEvent { kind, job }: &JobEvent) -> anyhow::Result<()> {
    let (name, state) = (name(*kind), word(job));
    let document = json!({"event": name, "at": Timestamp::now(), "state": state, "job": job});
    let (program, words) = args.program.split_first().context("there is no program")?;
    let mut command = Command::new(program);
    command
        .args(words)
        .env("MISERLY_EVENT", name)
        .env("MISERLY_JOB", job.number.to_string())
        .env("MISERLY_JOB_NAME", &job.name)
        .env("MISERLY_JOB_USER", &job.user)
        .env("MISERLY_JOB_STATE", state);
    let what = format!("{} at event {name} of job {}", program.to_string_lossy(), job.number);
    feed(command, document.to_string() + "\n", args.limit, &what)
}

/// Runs a command with a text on its standard input. Its failure is reported, and is no error. `limit` is in seconds.
///
/// # Errors
/// If the program cannot be started.
pub(super) fn feed(mut command: Command, text: String, limit: u64, what: &str) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    command.stdin(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.to_string_lossy()))?;
    let input = child.stdin.take();
    // A program need not read its input. The thread ends with the program, or has nothing left to write.
    let written = std::thread::spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
    match ended(&mut child, Duration::from_secs(limit))? {
        None => note!("{what} was killed: it ran for more than {limit} s"),
        Some(status) if !status.success() => note!("{what} failed: {status}"),
        Some(_) => {}
    }
    drop(written);
    Ok(())
}

/// Returns how the program ended; `None` if it was killed at its limit.
fn ended(child: &mut Child, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let began = BootTime::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(Some(status));
        }
        if BootTime::now().since(began) >= limit {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait().context("cannot wait for the program")?;
            return Ok(None);
        }
        sleep(LOOK_EVERY);
    }
}

fn name(kind: JobEventKind) -> &'static str {
    HOOK_EVENTS.iter().find(|(_, one, _)| *one == kind).map_or("", |(name, ..)| name)
}
