//! The life of a shim: it waits for the window of its job or not, and then supervises the job.

use std::mem;

use miserly_marks::mark;

use super::claim::claim;
use super::daemon_link::DaemonLink;
use super::host::Host;
use super::supervisor::Supervisor;
use super::waiting::Waiting;
use crate::connection::Connection as _;
use crate::message::{Handshake, REPLY_TIMEOUT};
use crate::protocol::ShimRefusal;
use crate::spec::{ReservedWindow, RunMode};
use crate::time::BootTime;

/// A shim of one attempt.
///
/// The caller waits for an event of the [host](Shim::host), for a line on a [connection](Shim::connections) or until the
/// [next instant](Shim::next), and then calls [`step`](Shim::step). A step without a reason does no harm.
pub struct Shim<H: Host>(Stage<H>);

enum Stage<H: Host> {
    Waiting(Box<Waiting<H>>),
    Running(Box<Supervisor<H>>),
    Over,
}

impl<H: Host> Shim<H> {
    /// Claims the attempt, starts the preparing program unless the shim waits for the window, and answers the launcher, if one
    /// waits.
    ///
    /// `host` is an error if the machine could not give what a shim needs.
    ///
    /// # Errors
    /// The refusal, which the launcher has received. The attempt is left to it, and it declares it void.
    pub fn begin(
        host: Result<(H, H::Files), String>,
        launcher: Option<H::Connection>,
    ) -> Result<Shim<H>, ShimRefusal> {
        let failed = |error| ShimRefusal::Begin { error };
        let begun = host.map_err(failed).and_then(|(host, files)| Shim::new(host, files, launcher.is_some()));
        let Some(mut launcher) = launcher else { return begun };
        mark!("a launcher waits");
        let message =
            begun.as_ref().err().map_or(Handshake::Claimed, |refusal| Handshake::Refused(refusal.clone()));
        // A launcher that has died does not receive it; a later `find` will.
        let is_sent = launcher.send(&message).is_ok();
        let mut shim = begun?;
        if let Some(host) = shim.host_mut().filter(|_| is_sent) {
            // It opens the pidfd of this process, and then sends a command. If it dies, its connection closes.
            let until = host.now().after(REPLY_TIMEOUT);
            host.wait_for(&launcher, until).map_err(|error| failed(error.to_string()))?;
        }
        shim.connect(launcher);
        Ok(shim)
    }

    fn new(mut host: H, files: H::Files, has_daemon: bool) -> Result<Shim<H>, ShimRefusal> {
        let attempt = claim(&mut host, files)?;
        let daemon = DaemonLink::new((!has_daemon).then(|| host.now()));
        if let RunMode::Waiting { window } = &attempt.spec.mode {
            let window = window.clone();
            return Ok(Shim::waiting(Waiting::new(host, attempt, window, daemon)));
        }
        match Supervisor::new(host, attempt, daemon) {
            Ok(supervisor) => Ok(Shim::running(supervisor)),
            Err(failed) => Err(ShimRefusal::Begin { error: failed.error.to_string() }),
        }
    }

    pub(super) fn waiting(waiting: Waiting<H>) -> Shim<H> {
        Shim(Stage::Waiting(Box::new(waiting)))
    }

    pub(super) fn running(supervisor: Supervisor<H>) -> Shim<H> {
        Shim(Stage::Running(Box::new(supervisor)))
    }

    pub(super) const fn over() -> Shim<H> {
        Shim(Stage::Over)
    }

    /// Replaces the connection to the daemon.
    pub(super) fn connect(&mut self, connection: H::Connection) {
        match &mut self.0 {
            Stage::Waiting(waiting) => waiting.daemon.connect(connection),
            Stage::Running(supervisor) => supervisor.connect(connection),
            Stage::Over => {}
        }
    }

    /// Returns the host. Returns `None` if the end is recorded, or the attempt void, so that the shim exits.
    pub fn host(&self) -> Option<&H> {
        match &self.0 {
            Stage::Waiting(waiting) => Some(&waiting.host),
            Stage::Running(supervisor) => (!supervisor.is_over).then_some(&supervisor.host),
            Stage::Over => None,
        }
    }

    fn host_mut(&mut self) -> Option<&mut H> {
        match &mut self.0 {
            Stage::Waiting(waiting) => Some(&mut waiting.host),
            Stage::Running(supervisor) => Some(&mut supervisor.host),
            Stage::Over => None,
        }
    }

    /// Returns the connections whose lines are a reason for a step.
    pub fn connections(&self) -> impl Iterator<Item = &H::Connection> {
        let (daemon, main) = match &self.0 {
            Stage::Waiting(waiting) => (waiting.daemon.connection(), None),
            Stage::Running(supervisor) => {
                (supervisor.daemon.connection(), supervisor.main.connection.as_ref())
            }
            Stage::Over => (None, None),
        };
        daemon.into_iter().chain(main)
    }

    /// Returns the next instant at which a step is due. It may be past. `None`: only an event is a reason.
    pub fn next(&self) -> Option<BootTime> {
        match &self.0 {
            Stage::Waiting(waiting) => waiting.next(),
            Stage::Running(supervisor) => supervisor.next(),
            Stage::Over => None,
        }
    }

    /// Returns the window that the shim may begin by itself, if the job does not run.
    pub fn window(&self) -> Option<&ReservedWindow> {
        match &self.0 {
            Stage::Waiting(waiting) => waiting.window(),
            _ => None,
        }
    }

    /// Handles all events, due actions and commands, and records the end if it is due.
    pub fn step(&mut self) {
        match &mut self.0 {
            Stage::Running(supervisor) => supervisor.step(),
            Stage::Waiting(_) => {
                if let Stage::Waiting(waiting) = mem::replace(&mut self.0, Stage::Over) {
                    *self = waiting.step();
                }
            }
            Stage::Over => {}
        }
    }
}
