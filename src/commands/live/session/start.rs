//! Waiting for the start of a job.

use std::ops::ControlFlow;
use std::thread;

use miserly_api::client::Client;
use miserly_api::model::{DaemonEvent, JobView, Phase, Window};
use nix::sys::signal::Signal;

use super::signals::Signals;
use crate::commands::live::output_file::{AWAY, is_away};

/// The first event.
pub(super) enum Started {
    /// The job runs.
    Runs(Box<JobView>),
    /// The job has ended.
    Ended(Box<JobView>),
    /// The command got a signal.
    Interrupted(Signal),
}

/// Waits until the job runs in an attempt after `last`, or has ended. Shows each new promise with `shows`.
///
/// A daemon that is away is waited for.
pub(super) fn wait(
    client: &Client,
    job: i64,
    last: u32,
    signals: &Signals,
    mut shows: impl FnMut(&Window),
) -> anyhow::Result<Started> {
    let mut promise = None;
    loop {
        if let Some(signal) = signals.next_end() {
            return Ok(Started::Interrupted(signal));
        }
        let looked = client.job(job).and_then(|view| {
            if view.phase.ended().is_some() {
                return Ok(Some(Started::Ended(Box::new(view))));
            }
            if runs(&view.phase) && view.attempts > last {
                return Ok(Some(Started::Runs(Box::new(view))));
            }
            client
                .events(None, |event| watch(event.as_ref(), job, last, signals, &mut promise, &mut shows))?;
            Ok(None)
        });
        match looked {
            Ok(Some(started)) => return Ok(started),
            Ok(None) => {}
            Err(error) if is_away(&error) => thread::sleep(AWAY),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Looks at an event. Breaks when there may be something to do.
fn watch(
    event: Option<&DaemonEvent>,
    job: i64,
    last: u32,
    signals: &Signals,
    promise: &mut Option<Window>,
    shows: &mut impl FnMut(&Window),
) -> ControlFlow<()> {
    // The signal stays until it is read.
    if has_signal(signals) {
        return ControlFlow::Break(());
    }
    let Some(DaemonEvent::Snapshot(changed) | DaemonEvent::Change(changed)) = event else {
        return ControlFlow::Continue(());
    };
    if changed.gone.contains(&job) {
        return ControlFlow::Break(());
    }
    let Some(view) = changed.jobs.iter().find(|view| view.number == job) else {
        // A snapshot has all unfinished jobs.
        let is_all = matches!(event, Some(DaemonEvent::Snapshot(_)));
        return if is_all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    };
    if view.phase.ended().is_some() || (runs(&view.phase) && view.attempts > last) {
        return ControlFlow::Break(());
    }
    let now = view.promise.as_ref().and_then(|promise| promise.now);
    if let Some(window) = now.filter(|window| promise.as_ref() != Some(window)) {
        if promise.is_some() {
            shows(&window);
        }
        *promise = Some(window);
    }
    ControlFlow::Continue(())
}

fn has_signal(signals: &Signals) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Returns whether a job has processes.
pub(super) fn runs(phase: &Phase) -> bool {
    matches!(phase, Phase::Running(_) | Phase::Suspended(_) | Phase::Opportunistic { .. })
}
