//! Attempts that have a folder and no usable record: the state is older than they are, or damaged.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use miserly_core::Span;
use miserly_engine::{Adoption, Attempt};
use miserly_executor::FindFailure;
use miserly_launch::{
    AttemptPhase, AttemptSpec, AttemptState, BootTime, REPLY_TIMEOUT, ReplyMessage, RunMode, ShimCommand,
    ShimReply,
};
use miserly_marks::mark;

use crate::attempt::Begin;
use crate::site::{Found, Host, ShimHandle, Supervisor};
use crate::supervise::wake;
use crate::take_up::PAUSE;

/// The time for the replies of all shims together.
const LONGEST: Duration = Duration::from_secs(5);

/// The variable with the indexes of the GPUs of a job.
const GPUS: &str = "MISERLY_GPUS";

/// The treatment of running attempts that the state does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownAttempts {
    /// They run on until the ends of their windows.
    Adopt,
    /// They are ended, with this grace period.
    End(Span),
}

/// The window of an attempt: its processors, and its end if it has one.
type Window = (Vec<u32>, Option<BootTime>);

/// Settles the attempts that have a folder and are not in `known`. Returns those that are adopted. Each one that runs is passed
/// to the supervisor.
///
/// An attempt of a job in `unreadable` keeps its folder, and is adopted if it runs. Of another
/// one the folder is removed when it is over.
///
/// # Errors
/// If the folders cannot be listed.
pub(crate) fn sweep<H: Host>(
    host: &H,
    supervisor: &impl Supervisor<H::Shim>,
    known: &[Attempt],
    (unreadable, finished): (&BTreeSet<i64>, impl Fn(i64) -> bool),
    unknown: UnknownAttempts,
) -> io::Result<Vec<Adoption>> {
    let ending = match unknown {
        UnknownAttempts::Adopt => None,
        UnknownAttempts::End(grace) => Some(grace),
    };
    let sweep = Sweep { host, supervisor, ending, until: host.clock().boot_now().after(LONGEST) };
    let mut adopted = vec![];
    for attempt in host.attempts()?.into_iter().filter(|attempt| !known.contains(attempt)) {
        mark!("an attempt without a record");
        adopted.extend(sweep.settle(attempt, unreadable.contains(&attempt.job), finished(attempt.job)));
    }
    Ok(adopted)
}

struct Sweep<'a, H, S> {
    host: &'a H,
    supervisor: &'a S,
    /// The grace period of unknown attempts, if they are ended.
    ending: Option<Span>,
    /// The end of the time for replies.
    until: BootTime,
}

impl<H: Host, S: Supervisor<H::Shim>> Sweep<'_, H, S> {
    /// Settles an attempt. One that runs or may run is adopted.
    fn settle(&self, attempt: Attempt, is_unreadable: bool, is_finished: bool) -> Option<Adoption> {
        let ending = self.ending.filter(|_| !is_unreadable);
        match self.host.find(attempt, REPLY_TIMEOUT) {
            Ok(Found::Alive(mut shim)) => {
                let state = asked(self.host, attempt, &mut shim, self.until);
                let waits = state.as_ref().is_some_and(|state| state.phase == AttemptPhase::Waiting);
                if is_finished || waits {
                    // A daemon died before it could end it. No command runs, or only a window that began meanwhile.
                    mark!("an attempt of no open job is ended");
                    self.supervisor.supervise(attempt, Begin::Adopted(shim, state, Some(Span::ZERO)));
                    return None;
                }
                Some(self.adopt(attempt, Some((shim, state)), ending))
            }
            Err(FindFailure::Survivors(_) | FindFailure::Temporary(_)) => {
                Some(self.adopt(attempt, None, ending))
            }
            Ok(_) => {
                if !is_unreadable {
                    mark!("an unknown attempt is over");
                    self.host.retire(attempt);
                }
                None
            }
            Err(error) => {
                mark!("an unknown attempt is not found");
                let path = self.host.folder(attempt);
                tracing::error!("{}: there is no usable record of its job: {error}", path.display());
                None
            }
        }
    }

    /// Supervises an attempt without a usable record. With a grace period it is ended if its shim was found. Until its end nobody
    /// else gets its processors.
    fn adopt(
        &self,
        attempt: Attempt,
        found: Option<(H::Shim, Option<AttemptState>)>,
        ending: Option<Span>,
    ) -> Adoption {
        let path = self.host.folder(attempt);
        let spec = self.host.spec(attempt);
        let of_spec = spec.as_ref().map(|spec| window_of(&spec.mode));
        let window = if let Some((shim, state)) = found {
            let window = state.as_ref().map(window_in).or(of_spec);
            self.supervisor.supervise(attempt, Begin::Adopted(shim, state, ending));
            window
        } else {
            self.supervisor.supervise(attempt, Begin::Find);
            of_spec
        };
        if window.is_none() {
            tracing::error!("{}: it runs on processors that are unknown", path.display());
        }
        mark!("an attempt is adopted");
        let (cpus, end) = window.unwrap_or_default();
        let end = end.filter(|end| *end < BootTime::MAX).map(|end| self.host.clock().ticks(end));
        let treatment =
            if ending.is_some() { "it is ended; until then it holds" } else { "it is adopted, with" };
        tracing::warn!("{}: it runs without a record of its job; {treatment} cpus {cpus:?}", path.display());
        adoption(attempt, spec.as_ref(), Adoption { cpus, end, ..Adoption::default() })
    }
}

/// Adds to an adoption what the specification of the attempt has.
fn adoption(attempt: Attempt, spec: Option<&AttemptSpec>, adoption: Adoption) -> Adoption {
    let Some(spec) = spec else { return Adoption { attempt, ..adoption } };
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    Adoption {
        attempt,
        name: variable(spec, "MISERLY_JOB_NAME").map(text).unwrap_or_default(),
        queue: variable(spec, "MISERLY_QUEUE").map(text),
        gpus: gpus_of(spec),
        memory: spec.limits.memory.unwrap_or(0) / 1024,
        command: spec.argv.iter().map(text).collect(),
        directory: spec.cwd.clone(),
        ..adoption
    }
}

/// Returns a variable of the environment of an attempt. Of two of the same name the later one counts.
fn variable<'a>(spec: &'a AttemptSpec, name: &str) -> Option<&'a OsString> {
    spec.env.iter().rfind(|(other, _)| other == name).map(|(_, value)| value)
}

/// Returns the GPUs that the launch gave to an attempt, by index.
pub(crate) fn gpus_of(spec: &AttemptSpec) -> Vec<u32> {
    let indexes = variable(spec, GPUS).and_then(|text| text.to_str());
    indexes.unwrap_or_default().split(',').filter_map(|index| index.parse().ok()).collect()
}

/// Returns the window that a specification has.
fn window_of(mode: &RunMode) -> Window {
    match (mode, mode.window()) {
        (RunMode::Reserved { cpus, end }, _) => (cpus.clone(), Some(*end)),
        (_, Some(window)) => (window.cpus.clone(), Some(window.end)),
        (_, None) => Window::default(),
    }
}

/// Asks a shim for its state. A stopped one is continued, since it could not answer.
fn asked<H: Host>(host: &H, attempt: Attempt, shim: &mut H::Shim, until: BootTime) -> Option<AttemptState> {
    wake(host, attempt, shim);
    let number = shim.send(&ShimCommand::Status).ok()?;
    loop {
        match shim.receive().ok()? {
            Some(ReplyMessage { number: of, reply: ShimReply::Done(state), .. }) if of == number => {
                return Some(state);
            }
            Some(answer) if answer.number == number => return None,
            Some(_) => {}
            None if host.clock().boot_now() >= until => return None,
            None => host.pause(PAUSE),
        }
    }
}

/// Returns the window that a shim reports.
fn window_in(state: &AttemptState) -> Window {
    match (state.end, &state.window) {
        (Some(end), _) => (state.cpus.clone(), Some(end)),
        (None, Some(window)) => (window.cpus.clone(), Some(window.end)),
        (None, None) => Window::default(),
    }
}
