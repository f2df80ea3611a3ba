//! The supervision of a shim: the attempt's desired state is sent until it is acknowledged, and the
//! attempt is ended by force if its shim does not end it.

use std::time::Duration;

use miserly_engine::{Action, AttemptOutcome};
use miserly_launch::{BootTime, CommandError, Shim, ShimCommand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::attempt::Worker;
use super::convert;
use super::desired::DesiredState;
use super::force::ForcedEnd;
use super::message::WorkerMessage;
use crate::crash_point::CrashPoint;

/// The first pause before the shim is connected to again. Each pause is twice as long as the last.
const FIRST: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);
/// The time after which a shim that does not answer is examined.
const SILENCE: Duration = Duration::from_secs(1);

/// The connection to a shim, and what is still to be sent over it.
pub(super) struct Supervision {
    job: i64,
    pub(super) shim: Shim,
    pub(super) desired: DesiredState,
    pub(super) force: Option<ForcedEnd>,
    is_connected: bool,
    /// Next attempt to connect.
    again: BootTime,
    pause: Duration,
    /// Next look at a shim that does not answer.
    look_at: Option<BootTime>,
}

impl Worker {
    /// Supervises a shim until it is gone.
    pub(super) fn supervise(&mut self, shim: Shim) -> AttemptOutcome {
        let mut supervision = Supervision::new(self.attempt.job, shim);
        loop {
            let now = BootTime::now();
            let messages = std::mem::take(&mut self.deferred).into_iter().chain(self.messages.try_iter());
            messages.for_each(|message| self.take(&mut supervision, message, now));
            supervision.exchange(now);
            self.force(&mut supervision);
            if supervision.is_gone(&self.waker) {
                break;
            }
            self.waker.clear();
        }
        self.ended(supervision)
    }

    fn take(&self, supervision: &mut Supervision, message: WorkerMessage, now: BootTime) {
        match message {
            WorkerMessage::Do(Action::EndOverdue { by_running_time }) => {
                supervision.end_by_force(ForcedEnd::overdue(now, by_running_time));
            }
            WorkerMessage::Do(action) => {
                let Some(command) = convert::command(self.home.clock, action) else { return };
                if let ShimCommand::Kill { grace } = command {
                    supervision.end_by_force(ForcedEnd::requested(now.after(grace)));
                }
                supervision.desired.merge(command, None);
            }
            WorkerMessage::SetTurn { runs, ack } => {
                let command = if runs { ShimCommand::Resume } else { ShimCommand::Stop };
                supervision.desired.merge(command, ack);
            }
        }
    }

    /// Returns the outcome of an attempt whose shim is gone.
    fn ended(&mut self, Supervision { shim, force, .. }: Supervision) -> AttemptOutcome {
        if let Ok(Some(end)) = shim.end() {
            let outcome = convert::outcome(self.home.clock, &end);
            return force.map_or(outcome.clone(), |force| force.outcome(outcome));
        }
        // There is no record of the end.
        drop(shim);
        let found = self.found();
        let outcome = self.outcome(found);
        match force {
            Some(force) => force.lost(outcome, self.home.clock.now()),
            None => outcome,
        }
    }
}

impl Supervision {
    fn new(job: i64, shim: Shim) -> Supervision {
        Supervision {
            job,
            shim,
            desired: DesiredState::default(),
            force: None,
            is_connected: true,
            again: BootTime(0),
            pause: FIRST,
            look_at: None,
        }
    }

    /// Schedules an end by force. The earliest one counts.
    fn end_by_force(&mut self, force: ForcedEnd) {
        self.force = Some(match self.force.take() {
            Some(earlier) => earlier.or(force),
            None => force,
        });
    }

    /// Connects if necessary, sends what is due, and takes the replies.
    fn exchange(&mut self, now: BootTime) {
        if !self.is_connected && self.again <= now {
            self.is_connected = self.shim.reconnect().is_ok();
            self.delay(now);
        }
        if self.is_connected
            && let Err(error) = self.send_and_receive(now)
        {
            if !matches!(error, CommandError::Gone) {
                tracing::warn!("job {}: the connection to its shim is lost: {error}", self.job);
            }
            self.is_connected = false;
            self.desired.disconnected();
            self.delay(now);
        }
        self.look_at_silence(now);
    }

    /// Schedules the next attempt to connect, later each time.
    fn delay(&mut self, now: BootTime) {
        self.again = now.after(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
    }

    fn send_and_receive(&mut self, now: BootTime) -> Result<(), CommandError> {
        let shim = &mut self.shim;
        self.desired.send(now, |command| {
            CrashPoint::BeforeCommand.pass();
            shim.send(command)
        })?;
        while let Some(reply) = self.shim.receive()? {
            CrashPoint::AfterCommand.pass();
            self.pause = FIRST;
            if let Some(problem) = self.desired.answered(&reply, now) {
                let version = self.shim.hello().map_or(0, |hello| hello.version);
                tracing::warn!("job {}: {problem} (its shim has protocol {version})", self.job);
            }
        }
        Ok(())
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
            tracing::warn!("job {}: its shim is stopped; it is continued", self.job);
            if let Err(error) = self.shim.wake() {
                tracing::warn!("job {}: its shim cannot be continued: {error}", self.job);
            }
        }
        is_stopped
    }

    /// Waits for the end of the shim, a reply, a message or the next duty. Returns whether the shim
    /// is gone.
    fn is_gone(&self, waker: &super::message::Waker) -> bool {
        let again = (!self.is_connected).then_some(self.again);
        let force = self.force.as_ref().map(ForcedEnd::at);
        let next = [again, force, self.look_at, self.desired.next()].into_iter().flatten().min();
        let within = next.and_then(|at| Timespec::try_from(at.since(BootTime::now())).ok());
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.shim.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN),
        ];
        if self.is_connected {
            fds.push(PollFd::from_borrowed_fd(self.shim.connection(), PollFlags::IN));
        }
        let waited = poll(&mut fds, within.as_ref());
        waited.is_ok() && !fds[0].revents().is_empty()
    }
}
