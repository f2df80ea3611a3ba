//! `miserly slurm drive`: a policy schedules a cluster.

use std::thread::park_timeout;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use miserly_core::Span;
use miserly_drive::{Drive, DriveError, Note, Settings, Step};
use miserly_run::Stopwatch;
use miserly_slurm::{Cluster, Configuration};
use miserly_view::plain;
use serde::Serialize;

use super::signals::{end_at_signal, is_signalled};
use super::{instant, learned, warn};
use crate::args::SlurmDriveArgs;
use crate::failure::INTERRUPTED;
use crate::output::{print, print_json};

/// The time between two looks of the controller at the limits of jobs.
const LOOK: u64 = 30;

/// The time that a requeued job takes to leave its nodes, beside the time between the signals that end it.
const LEAVE: Duration = Duration::from_secs(10);

/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

pub(super) fn drive(args: &SlurmDriveArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let cluster = Cluster::read(&slurm)?;
    if !args.untested_version {
        cluster.configuration.check_known()?;
    }
    warn(cluster.configuration.untested_version());
    let seconds = |time: Duration| {
        Span::from_secs(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)).unwrap_or(Span::MAX)
    };
    let margin = args.margin.map_or_else(|| margin(&cluster.configuration), Ok)?;
    let leave = Duration::from_secs(cluster.configuration.kill_wait) + LEAVE;
    let settings = Settings {
        policy: args.policy.clone(),
        seed: args.seed,
        partitions: args.partition.clone(),
        reservation: args.reservation.reservation.clone(),
        owner: rustix::process::getuid().as_raw(),
        fallback: seconds(args.fallback),
        margin: seconds(margin),
        comments: !args.no_comments,
        lead: args.opportunistic.as_ref().map(|lead| seconds(lead.first().copied().unwrap_or(leave))),
        leaving: seconds(leave),
    };
    let mut drive = Drive::new(slurm.clone(), &cluster, settings, args.state.as_deref())?;
    if args.draws > 0 && !args.dry_run {
        let days = args.history;
        drive = drive.with_forecasts(Box::new(move || learned(&slurm, days)), args.draws)?;
    }
    let others = drive.neighbours(&cluster);
    if !others.is_empty() {
        note!(
            "warning: the driven nodes are kept from jobs of {} as well: name it with --partition, or such jobs wait",
            others.join(", ")
        );
    }
    if args.dry_run {
        return dry_run(&drive.step()?, args.json);
    }
    end_at_signal();
    let clock = Stopwatch::start();
    let (mut failures, mut drives) = (0_u32, false);
    loop {
        let pause = match drive.step() {
            Ok(step) => {
                failures = 0;
                if !std::mem::replace(&mut drives, true) {
                    note!(
                        "{} drives cluster {}; {} min without this process, and Slurm schedules by itself",
                        args.policy,
                        cluster.configuration.cluster,
                        args.fallback.as_secs() / 60
                    );
                }
                report(&step, args.json)?;
                drive.pause()
            }
            Err(DriveError::HandedBack) => {
                note!("the nodes were handed back to Slurm");
                return Ok(());
            }
            // The signal may have ended the commands of this step too.
            Err(_) if drives && is_signalled() => Duration::ZERO,
            // A restart of the controller is no end. Without rights there is nothing to wait for.
            Err(error @ (DriveError::Slurm(_) | DriveError::Rights { .. }))
                if failures > 0 || drive.has_run() =>
            {
                failures += 1;
                let pause = Duration::from_secs(1 << failures.min(6)).min(LONGEST_PAUSE);
                note!("warning: {error}; the next try is in {} s", pause.as_secs());
                pause
            }
            Err(error) => return Err(error.into()),
        };
        let is_signalled = is_signalled();
        if is_signalled || args.period.is_some_and(|period| clock.elapsed() + pause > period) {
            drop(drive);
            note_end(args);
            if is_signalled {
                std::process::exit(INTERRUPTED);
            }
            return Ok(());
        }
        // A signal ends the pause.
        park_timeout(pause);
    }
}

/// Prints how long the nodes stay reserved without the driver, and what frees them at once.
fn note_end(args: &SlurmDriveArgs) {
    let Ok(reservations) = Cluster::reservations(&args.cluster.slurm()) else { return };
    let now = Timestamp::now().as_second();
    let name = &args.reservation.reservation;
    let Some(one) = reservations.get(name).filter(|one| one.is_active(now)) else { return };
    let [state, file] =
        [("--state", &args.state), ("--slurm-conf", &args.cluster.slurm_conf)].map(|(option, path)| {
            path.as_ref().map_or_else(String::new, |path| format!(" {option} {}", path.display()))
        });
    let until = instant(one.end);
    note!("the nodes stay reserved until {until}; `miserly slurm hand-back{state}{file}` frees them at once");
}

/// Returns the time that a job of this cluster takes to end after its limit.
fn margin(configuration: &Configuration) -> anyhow::Result<Duration> {
    match configuration.over_limit {
        Some(over) => Ok(Duration::from_secs(over + configuration.kill_wait + LOOK)),
        None => {
            bail!("jobs of this cluster may exceed their limits for ever (OverTimeLimit): give a --margin")
        }
    }
}

fn dry_run(step: &Step, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&step.orders);
    }
    if step.orders.is_empty() {
        return print("nothing to ask of Slurm\n");
    }
    let lines: Vec<String> = step.orders.iter().map(|order| plain(&order.to_string()) + "\n").collect();
    print(&lines.concat())
}

/// A line of the driver.
#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    job: &'a str,
    #[serde(flatten)]
    note: &'a Note,
}

fn report(step: &Step, json: bool) -> anyhow::Result<()> {
    let at = Timestamp::now();
    let mut text = String::new();
    for (job, note) in &step.notes {
        if json {
            text += &serde_json::to_string(&Line { at, job, note })?;
        } else {
            text += &format!("{} job {job}: {}", instant(at.as_second()), words(note));
        }
        text.push('\n');
    }
    if text.is_empty() { Ok(()) } else { print(&text) }
}

fn words(note: &Note) -> String {
    match note {
        Note::Placed { nodes, reason } => format!("starts on {} ({reason})", nodes.join(",")),
        Note::PlacedOpportunistically { nodes } => {
            format!("starts on {}, idle nodes, ahead of its start", nodes.join(","))
        }
        Note::StartedOpportunistically { start } => {
            format!("started at {}, ahead of its start", instant(start.secs()))
        }
        Note::Parked { ran } => {
            format!("is stopped after {} s ahead of its start, and waits again", ran.secs())
        }
        Note::StartedForQuantum { start } => format!("started at {}, for a quantum", instant(start.secs())),
        Note::QuantumOver { ran } => {
            format!("has not ended in its quantum: is stopped after {} s, and waits again", ran.secs())
        }
        Note::Suspended => "is suspended for the quantum of another job".to_owned(),
        Note::Resumed { after } => format!("runs again; it was suspended for {} s", after.secs()),
        Note::Started { start, promised: Some(promised) } => {
            format!("started at {}, promised by {}", instant(start.secs()), instant(promised.secs()))
        }
        Note::Started { start, promised: None } => format!("started at {}", instant(start.secs())),
        Note::StartedBySlurm => "started without the driver".to_owned(),
        Note::Gone { ran: true } => "ended".to_owned(),
        Note::Gone { ran: false } => "left the queue".to_owned(),
        Note::Requeued => "waits again".to_owned(),
        Note::NotPlanned { why } => format!("is not planned: {}", plain(why)),
        Note::Promised { latest } => format!("starts by {}", instant(latest.secs())),
        Note::PromiseBroken { latest: Some(latest), why } => {
            format!("promise broken, now by {}: {why}", instant(latest.secs()))
        }
        Note::PromiseBroken { latest: None, why } => format!("promise broken: {why}"),
    }
}
