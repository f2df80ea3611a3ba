//! The supervision of a shim: the attempt's desired state is sent until it is acknowledged, and the
//! attempt is ended by force if its shim does not end it.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use miserly_engine::{Action, Attempt};
use miserly_launch::{BootTime, CommandError, MachineClock as _, Shim, ShimCommand, StoredInstant};

use super::backoff::Backoff;
use super::convert;
use super::desired::DesiredState;
use super::executor::Executor;
use super::force::ForcedEnd;
use super::message::AttemptMessage;
use super::parking::Parking;
use super::partition_watch::PartitionWatch;
use super::poller::{Poller, Ready};
use super::shim_loop::Context;
use super::start_watch::StartWatch;
use crate::clock::BootClock;
use crate::crash_point::CrashPoint;

/// The first pause before the shim is connected to again.
const FIRST: Duration = Duration::from_millis(10);
/// The time after which a shim that does not answer is examined.
const SILENCE: Duration = Duration::from_secs(1);

/// The connection to a shim, and the messages that wait for it.
#[derive(Debug)]
pub(super) struct Supervision {
    pub(super) attempt: Attempt,
    pub(super) executor: Executor,
    /// The number of its descriptors in the poller.
    number: u64,
    pub(super) shim: Shim,
    /// Whether the shim has exited.
    pub(super) has_exited: bool,
    pub(super) desired: DesiredState,
    pub(super) force: Option<ForcedEnd>,
    is_connected: bool,
    /// Next attempt to connect.
    again: BootTime,
    backoff: Backoff,
    /// Next look at a shim that does not answer.
    look_at: Option<BootTime>,
    start: StartWatch,
    /// The partition that a job of a strict queue has in its window.
    partition: Option<PartitionWatch>,
    parking: Parking,
}

impl Supervision {
    /// Begins to wait for the exit of a shim and for its replies.
    ///
    /// # Errors
    /// The kernel lacks memory for it.
    pub(super) fn new(
        context: &Context,
        attempt: Attempt,
        number: u64,
        shim: Shim,
        parking: Parking,
    ) -> io::Result<Supervision> {
        context.poller.add(shim.fd(), Ready::Exit(number))?;
        if let Err(error) = context.poller.add(shim.connection(), Ready::Connection(number)) {
            context.poller.remove(shim.fd());
            return Err(error);
        }
        Ok(Supervision {
            attempt,
            executor: context.home.executor.clone(),
            number,
            shim,
            has_exited: false,
            desired: DesiredState::default(),
            force: None,
            is_connected: true,
            again: BootTime(0),
            backoff: Backoff::new(FIRST),
            look_at: None,
            start: StartWatch::new(),
            partition: None,
            parking,
        })
    }

    /// Removes its descriptors.
    pub(super) fn remove_from(&self, poller: &Poller) {
        poller.remove(self.shim.fd());
        if self.is_connected {
            poller.remove(self.shim.connection());
        }
        if let Some(partition) = &self.partition {
            poller.remove(partition.as_fd());
        }
    }

    /// Watches the partition of the attempt, if its group can be one. Returns how it is lost already, if it is.
    pub(super) fn watch_partition(&mut self, context: &Context, attempt: Attempt) -> Option<String> {
        let job = context.home.groups.partition(attempt).filter(|_| self.partition.is_none())?;
        let watch = PartitionWatch::new(job)?;
        context.poller.add(watch.as_fd(), Ready::Partition(self.number)).ok()?;
        self.partition = Some(watch);
        self.partition_loss(&context.poller)
    }

    /// Returns how the partition is lost, if the kernel has made it invalid.
    pub(super) fn partition_loss(&mut self, poller: &Poller) -> Option<String> {
        let state = self.partition.as_ref()?.read();
        if state.is_none()
            && let Some(gone) = self.partition.take()
        {
            poller.remove(gone.as_fd());
        }
        state.filter(|state| state.contains("invalid")).map(|state| {
            format!(
                "its processors are shared with other programs: the kernel has made its partition \"{state}\""
            )
        })
    }

    /// Adds the request of a message to the desired state.
    pub(super) fn take(&mut self, clock: &BootClock, message: AttemptMessage) {
        let now = BootTime::now();
        match message {
            AttemptMessage::Do(Action::EndOverdue { by_running_time }) => {
                self.end_by_force(ForcedEnd::overdue(now, by_running_time));
            }
            AttemptMessage::Do(action) => {
                let Some(command) = convert::command(clock, action) else { return };
                if let ShimCommand::Kill { grace } = command {
                    self.end_by_force(ForcedEnd::requested(now.after(grace)));
                }
                if self.parking.admits(&command) {
                    self.desired.merge(command, None);
                }
            }
            AttemptMessage::SetShort(short) => {
                if let Some(command) = self.parking.set_short(now, short) {
                    self.desired.merge(command, None);
                }
            }
            AttemptMessage::SetTurn { runs, ack } => {
                let command = if runs { ShimCommand::Resume } else { ShimCommand::Stop };
                self.desired.merge(command, ack);
            }
        }
    }

    /// Schedules an end by force. The earliest one counts.
    fn end_by_force(&mut self, force: ForcedEnd) {
        self.force = Some(match self.force.take() {
            Some(earlier) => earlier.or(force),
            None => force,
        });
    }

    /// Connects if necessary, sends the messages that are due, and takes the replies.
    pub(super) fn exchange(&mut self, context: &Context, now: BootTime) {
        if !self.is_connected && self.again <= now {
            self.connect(&context.poller);
            self.again = now.after(self.backoff.pause());
        }
        if self.is_connected
            && let Err(error) = self.send_and_receive(now)
        {
            if !matches!(error, CommandError::Gone) {
                tracing::warn!("job {}: the connection to its shim is lost: {error}", self.attempt.job);
            }
            context.poller.remove(self.shim.connection());
            self.is_connected = false;
            self.desired.disconnected();
            self.again = now.after(self.backoff.pause());
        }
        self.look_at_silence(now);
    }

    /// Tries to connect. The previous connection is not in the poller any more.
    fn connect(&mut self, poller: &Poller) {
        let connected = self.shim.reconnect();
        let added =
            connected.and_then(|()| poller.add(self.shim.connection(), Ready::Connection(self.number)));
        self.is_connected = added.is_ok();
    }

    fn send_and_receive(&mut self, now: BootTime) -> Result<(), CommandError> {
        let shim = &mut self.shim;
        self.desired.send(now, |command| {
            CrashPoint::BeforeCommand.pass();
            shim.send(command)
        })?;
        while let Some(reply) = self.shim.receive()? {
            CrashPoint::AfterCommand.pass();
            self.backoff.reset();
            if let Some(problem) = self.desired.answered(&reply, now) {
                let version = self.shim.hello().map_or(0, |hello| hello.version);
                tracing::warn!("job {}: {problem} (its shim has protocol {version})", self.attempt.job);
            }
        }
        Ok(())
    }

    /// Returns the instant at which the command was permitted to run, if that is news. Continues a shim that is stopped before.
    pub(super) fn take_start(&mut self, now: BootTime) -> Option<StoredInstant> {
        let started = self.start.look(&self.shim, now, self.has_exited);
        if self.start.is_slow(now) {
            self.wake();
        }
        started
    }

    /// Returns the time limit of the epilog, as far as it is known.
    pub(super) const fn epilog(&self) -> Duration {
        self.start.epilog()
    }

    /// Continues a shim that does not answer because it is stopped.
    fn look_at_silence(&mut self, now: BootTime) {
        let Some(since) = self.desired.unanswered_since() else {
            self.look_at = None;
            return;
        };
        let at = *self.look_at.get_or_insert(since.after(SILENCE));
        if at <= now {
            self.look_at = Some(now.after(SILENCE));
            self.wake();
        }
    }

    /// Continues the shim if it is stopped. Returns whether it was.
    pub(super) fn wake(&self) -> bool {
        let is_stopped = self.shim.is_stopped().unwrap_or(false);
        if is_stopped {
            tracing::warn!("job {}: its shim is stopped; it is continued", self.attempt.job);
            if let Err(error) = self.executor.wake(self.attempt, &self.shim) {
                tracing::warn!("job {}: its shim cannot be continued: {error}", self.attempt.job);
            }
        }
        is_stopped
    }

    /// Returns the instant of the next duty.
    pub(super) fn next(&self) -> Option<BootTime> {
        let again = (!self.is_connected).then_some(self.again);
        let force = self.force.as_ref().and_then(ForcedEnd::next_step);
        [again, force, self.look_at, self.desired.next(), self.start.next()].into_iter().flatten().min()
    }
}
