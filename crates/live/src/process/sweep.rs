//! Attempts that have a folder and no usable record: the state is older than they are, or damaged.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use miserly_core::Span;
use miserly_engine::{Adoption, Attempt};
use miserly_executor::FindFailure;
use miserly_launch::{
    AttemptSpec, BootTime, FoundAttempt, MachineClock as _, REPLY_TIMEOUT, RunMode, Shim, ShimCommand,
    ShimReply,
};

use super::Processes;
use super::attempt::Begin;
use super::executor::Executor;

/// The time for the replies of all shims together.
const LONGEST: Duration = Duration::from_secs(5);

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

impl Processes {
    /// Settles the attempts that have a folder and are not in `known`. Returns those that are adopted.
    ///
    /// An attempt of a job in `unreadable` keeps its folder, and is adopted if it runs. Of another
    /// one the folder is removed when it is over.
    ///
    /// # Errors
    /// If the folders cannot be listed.
    pub fn sweep(
        &mut self,
        known: &[Attempt],
        unreadable: &BTreeSet<i64>,
        unknown: UnknownAttempts,
    ) -> std::io::Result<Vec<Adoption>> {
        let until = BootTime::now().after(LONGEST);
        let mut adopted = vec![];
        for entry in fs::read_dir(self.home.executor.folder())? {
            let Some(attempt) = entry?.file_name().to_str().and_then(attempt_of) else { continue };
            if known.contains(&attempt) {
                continue;
            }
            adopted.extend(if unreadable.contains(&attempt.job) {
                self.adopt(attempt, until)
            } else {
                self.settle_unknown(attempt, unknown, until)
            });
        }
        Ok(adopted)
    }

    fn settle_unknown(
        &mut self,
        attempt: Attempt,
        unknown: UnknownAttempts,
        until: BootTime,
    ) -> Option<Adoption> {
        let path = self.home.executor.attempt_folder(attempt);
        match (self.home.executor.find(attempt, REPLY_TIMEOUT), unknown) {
            (Ok(FoundAttempt::Alive(shim)), UnknownAttempts::End(grace)) => {
                tracing::warn!("{}: its job is unknown and runs; it is ended", path.display());
                self.supervise(attempt, Begin::Unknown(Box::new(shim), grace));
            }
            (Ok(FoundAttempt::Alive(_)), UnknownAttempts::Adopt) => return self.adopt(attempt, until),
            (Ok(_), _) => self.home.executor.retire(attempt),
            (Err(FindFailure::Survivors(_) | FindFailure::Temporary(_)), UnknownAttempts::Adopt) => {
                return self.adopt(attempt, until);
            }
            (Err(error), _) => tracing::error!("{}: its job is unknown: {error}", path.display()),
        }
        None
    }

    /// Supervises an attempt without a usable record, if it runs or may run.
    fn adopt(&mut self, attempt: Attempt, until: BootTime) -> Option<Adoption> {
        let path = self.home.executor.attempt_folder(attempt);
        let spec = spec_of(&path);
        let of_spec = spec.as_ref().map(|spec| window_of(&spec.mode));
        let window = match self.home.executor.find(attempt, REPLY_TIMEOUT) {
            Ok(FoundAttempt::Alive(mut shim)) => {
                let window = asked(&self.home.executor, attempt, &mut shim, until).or(of_spec);
                self.supervise(attempt, Begin::Alive(Box::new(shim)));
                window
            }
            Err(error @ FindFailure::Final(_)) => {
                tracing::error!("{}: {error}", path.display());
                return None;
            }
            Err(FindFailure::Survivors(_) | FindFailure::Temporary(_)) => {
                self.supervise(attempt, Begin::Find);
                of_spec
            }
            Ok(_) => return None,
        };
        if window.is_none() {
            tracing::error!("{}: it runs on processors that are unknown", path.display());
        }
        let (cpus, end) = window.unwrap_or_default();
        let end = end.filter(|end| *end < BootTime::MAX).map(|end| self.home.clock.ticks(end));
        tracing::warn!(
            "{}: it runs without a record of its job; it is adopted, with cpus {cpus:?}",
            path.display()
        );
        Some(adoption(attempt, spec.as_ref(), Adoption { cpus, end, ..Adoption::default() }))
    }
}

/// Adds to an adoption what the specification of the attempt has.
fn adoption(attempt: Attempt, spec: Option<&AttemptSpec>, adoption: Adoption) -> Adoption {
    let Some(spec) = spec else { return Adoption { attempt, ..adoption } };
    let text = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
    let name = spec.env.iter().find(|(name, _)| name == "MISERLY_JOB_NAME");
    Adoption {
        attempt,
        name: name.map(|(_, value)| text(value)).unwrap_or_default(),
        memory: spec.limits.memory.unwrap_or(0) / 1024,
        command: spec.argv.iter().map(text).collect(),
        directory: spec.cwd.clone(),
        ..adoption
    }
}

/// Reads the specification of an attempt. Returns `None` if it cannot be read.
fn spec_of(path: &Path) -> Option<AttemptSpec> {
    let path = path.join("spec.json");
    let read = fs::read(&path).map_err(|error| error.to_string());
    let spec = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    spec.inspect_err(|error| tracing::error!("{}: {error}", path.display())).ok()
}

/// Returns the window that a specification has.
fn window_of(mode: &RunMode) -> Window {
    match (mode, mode.window()) {
        (RunMode::Reserved { cpus, end }, _) => (cpus.clone(), Some(*end)),
        (_, Some(window)) => (window.cpus.clone(), Some(window.end)),
        (_, None) => Window::default(),
    }
}

/// Asks a shim for its window. A stopped one is continued, since it could not answer.
fn asked(executor: &Executor, attempt: Attempt, shim: &mut Shim, until: BootTime) -> Option<Window> {
    if shim.is_stopped().unwrap_or(false) {
        let _ = executor.wake(attempt, shim);
    }
    match shim.request_until(&ShimCommand::Status, until) {
        Ok(ShimReply::Done(state)) => Some(match (state.end, state.window) {
            (Some(end), _) => (state.cpus, Some(end)),
            (None, Some(window)) => (window.cpus, Some(window.end)),
            (None, None) => Window::default(),
        }),
        _ => None,
    }
}

/// Returns the attempt that has a folder of this name.
fn attempt_of(name: &str) -> Option<Attempt> {
    let (job, nth) = name.split_once('.')?;
    Some(Attempt { job: job.parse().ok()?, nth: nth.parse().ok()? })
}
