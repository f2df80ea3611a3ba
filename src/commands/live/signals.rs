//! `miserly stop` and `miserly reload`: signals to the daemon. The kernel names its process.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};
use miserly_api::model::ConfigurationReading;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::client;
use super::text::plain;
use crate::args::{DaemonArgs, StopArgs};
use crate::colour::message_head;
use crate::output::print;

/// The time in which a daemon ends. Its last commit may take some of it.
const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// The time in which a daemon reads its configuration, and the pause between two looks.
const READS_WITHIN: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(50);

/// Ends the daemon and waits until it has ended. Its jobs continue.
pub(crate) fn stop(StopArgs { daemon: args, hold }: &StopArgs) -> anyhow::Result<ExitCode> {
    if *hold {
        hold_starts(args)?;
    }
    let (pid, daemon) = send(args, Signal::TERM)?;
    let within = Timespec::try_from(ENDS_WITHIN).context("a time limit")?;
    if poll(&mut [PollFd::new(&daemon, PollFlags::IN)], Some(&within))? == 0 {
        bail!("the daemon (process {pid}) has not ended within {} s", ENDS_WITHIN.as_secs());
    }
    print("the daemon has ended; its jobs run on. `miserly daemon` adopts them\n")?;
    Ok(ExitCode::SUCCESS)
}

/// Lets the daemon end all shims that wait for windows, and waits until they have ended.
fn hold_starts(args: &DaemonArgs) -> anyhow::Result<()> {
    let asked = client(args)?;
    asked.hold_starts(true)?;
    for _ in 0..ENDS_WITHIN.as_millis() / LOOK.as_millis() {
        if asked.status()?.waiting_shims == 0 {
            return Ok(());
        }
        sleep(LOOK);
    }
    bail!("some shims still wait after {} s; the daemon runs on, and holds starts", ENDS_WITHIN.as_secs());
}

/// Lets the daemon read its configuration again, and waits for the outcome. Exits with 1 if it is refused.
pub(crate) fn reload(args: &DaemonArgs) -> anyhow::Result<ExitCode> {
    let asked = client(args)?;
    let before = asked.status()?.reading;
    let (pid, _) = send(args, Signal::HUP)?;
    let Some(before) = before else {
        print(&format!(
            "the daemon (process {pid}) reads its configuration again; its log has the outcome\n"
        ))?;
        return Ok(ExitCode::SUCCESS);
    };
    for _ in 0..READS_WITHIN.as_millis() / LOOK.as_millis() {
        let now = asked.status()?.reading.filter(|now| now.count > before.count);
        let Some(ConfigurationReading { problem, .. }) = now else {
            sleep(LOOK);
            continue;
        };
        let Some(problem) = problem else {
            print(&format!("the daemon (process {pid}) has the new configuration\n"))?;
            return Ok(ExitCode::SUCCESS);
        };
        note!("{} the configuration stays as it was: {}", message_head("error"), plain(&problem));
        return Ok(ExitCode::from(1));
    }
    bail!("the daemon (process {pid}) has not read its configuration within {} s", READS_WITHIN.as_secs())
}

/// Sends a signal to the daemon. Returns its process and a descriptor of it.
fn send(args: &DaemonArgs, signal: Signal) -> anyhow::Result<(i32, std::os::fd::OwnedFd)> {
    let pid = client(args)?.process()?;
    let process = Pid::from_raw(pid).context("the process of the daemon is not in this namespace")?;
    let daemon = pidfd_open(process, PidfdFlags::empty());
    let daemon = daemon.with_context(|| format!("cannot find the daemon, process {pid}"))?;
    let sent = pidfd_send_signal(&daemon, signal);
    sent.with_context(|| format!("cannot signal the daemon, process {pid}; its user and root can"))?;
    Ok((pid, daemon))
}
