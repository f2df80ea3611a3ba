//! The main process of a job, from the preparing program to its exit.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::host::{Host, Reaped};
use super::supervisor::Supervisor;
use crate::connection::Connection;
use crate::end::{Exit, ProcessUsage, StartFailure};
use crate::time::BootTime;

/// A message of the preparing program. A closed connection means that it became the command.
#[derive(Debug, Serialize, Deserialize)]
pub enum SetupMessage {
    /// It takes a step with the rights of the job's user. The job has this failure if its window ends before the next message.
    Doing(StartFailure),
    /// It leads its session, has what it needs, and waits.
    Here,
    /// It cannot become the command.
    Failed(SetupFailure),
}

/// A reason for which the command is not started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SetupFailure {
    /// The machine lacks a resource now. The attempt never ran, and can be launched again.
    Shortage(String),
    /// Another attempt would fail in the same way.
    Final(StartFailure),
}

impl SetupFailure {
    /// Returns the failure of a start, which may be a shortage.
    pub fn new(failure: StartFailure, is_shortage: bool) -> SetupFailure {
        if is_shortage { SetupFailure::Shortage(failure.to_string()) } else { SetupFailure::Final(failure) }
    }
}

impl From<StartFailure> for SetupFailure {
    fn from(failure: StartFailure) -> SetupFailure {
        SetupFailure::Final(failure)
    }
}

/// Permission to execute the command, sent when the start record is durable.
#[derive(Debug, Serialize, Deserialize)]
pub struct Permission;

/// The steps of the preparing program with the rights of the job's user.
struct UserPart {
    begun: BootTime,
    /// The same instant of a clock that does not count suspended time.
    begun_awake: Duration,
    /// Failure of the job if the present step does not end.
    failure: StartFailure,
}

/// The main process.
pub(super) struct MainProcess<C> {
    pub(super) pid: u32,
    /// Connection, until the program has become the command.
    pub(super) connection: Option<C>,
    /// Begin and present step of the user's part of the start.
    user_part: Option<UserPart>,
    /// Whether permission was sent.
    pub(super) is_permitted: bool,
    pub(super) failure: Option<SetupFailure>,
    /// Whether the command was not started for a shortage of the machine.
    pub(super) is_short: bool,
    pub(super) exit: Option<Exit>,
    /// What the reaped processes used.
    pub(super) usage: ProcessUsage,
}

impl<C> MainProcess<C> {
    /// Returns the preparing program after its start.
    pub(super) fn new(pid: u32, connection: C) -> MainProcess<C> {
        MainProcess {
            pid,
            connection: Some(connection),
            user_part: None,
            is_permitted: false,
            failure: None,
            is_short: false,
            exit: None,
            usage: ProcessUsage::default(),
        }
    }
}

impl<C: Connection> MainProcess<C> {
    /// Returns the next message, or `None` if there is none.
    pub(super) fn next_message(&mut self) -> Option<SetupMessage> {
        let received = self.connection.as_mut()?.receive();
        if received.is_err() {
            self.connection = None;
        }
        received.ok().flatten()
    }

    /// Records the step that the preparing program takes with the rights of the job's user.
    pub(super) fn note_step(&mut self, failure: StartFailure, begun: BootTime, begun_awake: Duration) {
        match &mut self.user_part {
            Some(part) => part.failure = failure,
            None => self.user_part = Some(UserPart { begun, begun_awake, failure }),
        }
    }

    /// Returns the begin of the user's part of the start. The machine had done its part by then.
    pub(super) fn begin_of_user_part(&self) -> Option<BootTime> {
        self.user_part.as_ref().map(|part| part.begun)
    }

    /// Returns the failure of a job whose window ended in the user's part of its start.
    ///
    /// `None` if that part had less than half of the rest of the window, because the machine slept or the window is shorter than
    /// a launch. So it is if nothing was left of the window at its begin.
    pub(super) fn blocked_by_user(&self, end: BootTime, awake: Duration) -> Option<StartFailure> {
        let part = self.user_part.as_ref().filter(|_| !self.is_permitted)?;
        let (had, rest) = (awake.saturating_sub(part.begun_awake), end.since(part.begun));
        (!rest.is_zero() && had >= rest / 2).then(|| part.failure.clone())
    }

    fn exited(&mut self, exit: Exit) {
        while let Some(message) = self.next_message() {
            if let SetupMessage::Failed(failure) = message {
                self.failure = Some(failure);
            }
        }
        self.connection = None;
        self.exit = Some(match self.failure.take() {
            Some(SetupFailure::Final(failure)) => Exit::Failed(failure),
            Some(SetupFailure::Shortage(_)) => {
                self.is_short = !self.is_permitted;
                Exit::Failed(StartFailure::Ended)
            }
            None if !self.is_permitted => Exit::Failed(StartFailure::Ended),
            None => exit,
        });
    }
}

impl<H: Host> Supervisor<H> {
    /// Reaps all exited children; `true` if children are left.
    ///
    /// # Errors
    /// As [`Host::reap`].
    pub(super) fn reap(&mut self) -> io::Result<bool> {
        loop {
            let reaped = self.host.reap()?;
            let now = self.host.now();
            match reaped {
                Reaped::Child { pid, .. } if self.programs.take_exit(pid, now) => {}
                Reaped::Child { pid, exit, usage } => {
                    self.main.usage.add(usage);
                    if pid == self.main.pid {
                        self.main.exited(exit);
                    }
                }
                Reaped::Nothing => return Ok(true),
                Reaped::NoChild => return Ok(false),
            }
        }
    }
}
