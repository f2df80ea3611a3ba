//! The supervision of a shim: the attempt's desired state is sent until it is acknowledged, and the
//! attempt is ended by force if its shim does not end it.

use std::io;
use std::time::Duration;

use miserly_engine::{Action, Attempt, BegunWindow, HeldWindow, Input};
use miserly_launch::{
    AttemptPhase, AttemptState, BEGIN_DELAY, BootTime, CommandError, ReplyMessage, ReservedWindow,
    ShimCommand, ShimRefusal, ShimReply, StoredInstant,
};
use miserly_marks::mark;

use crate::activity::ActivityReports;
use crate::backoff::Backoff;
use crate::convert;
use crate::crash_point::CrashPoint;
use crate::desired::DesiredState;
use crate::force::ForcedEnd;
use crate::held_windows::HeldWindows;
use crate::message::AttemptMessage;
use crate::parking::Parking;
use crate::site::{Host, ShimHandle, ShimOf, Site};
use crate::start_watch::StartWatch;

/// The first pause before the shim is connected to again.
const FIRST: Duration = Duration::from_millis(10);
/// The time after which a shim that does not answer is examined.
const SILENCE: Duration = Duration::from_secs(1);

/// The connection to a shim, and the messages that wait for it.
pub(crate) struct Supervision<S: Site> {
    pub(crate) attempt: Attempt,
    /// The number under which it is watched.
    number: u64,
    pub(crate) shim: ShimOf<S>,
    /// Whether the shim has exited.
    pub(crate) has_exited: bool,
    pub(crate) desired: DesiredState,
    pub(crate) force: Option<ForcedEnd>,
    is_connected: bool,
    /// Next attempt to connect.
    again: BootTime,
    backoff: Backoff,
    /// Next look at a shim that does not answer.
    look_at: Option<BootTime>,
    start: StartWatch,
    /// The partition that a job of a strict queue has in its window.
    partition: Option<S::Partition>,
    parking: Parking,
    /// The windows that the shim may begin by itself.
    pub(crate) held: HeldWindows,
    /// What the shim was told to do with the command.
    told: Told,
    /// When it was last asked whether it has begun its window by itself.
    asked: BootTime,
    /// The window of the shim that was reported.
    reported: Option<ReservedWindow>,
    /// The window that the shim has begun by itself.
    begun: Option<BegunWindow>,
    pub(crate) activity: ActivityReports,
}

/// What a shim was told to do with its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// An earlier daemon told it something. Its first answer shows what.
    Unknown,
    /// To wait.
    Wait,
    /// To run it before its window.
    RunEarly,
    /// To run it in its window.
    BeginWindow,
}

impl From<&AttemptState> for Told {
    fn from(state: &AttemptState) -> Told {
        match state.phase {
            AttemptPhase::Waiting => Told::Wait,
            _ if state.end.is_none() => Told::RunEarly,
            _ => Told::BeginWindow,
        }
    }
}

impl<S: Site> Supervision<S> {
    /// Begins to wait for the exit of a shim and for its replies.
    ///
    /// # Errors
    /// The kernel lacks memory for it.
    pub(crate) fn new(
        site: &S,
        attempt: Attempt,
        number: u64,
        shim: ShimOf<S>,
        parking: Parking,
        (told, held): (Told, HeldWindows),
    ) -> io::Result<Supervision<S>> {
        site.watch_exit(number, &shim)?;
        if let Err(error) = site.watch_connection(number, &shim) {
            site.unwatch_exit(&shim);
            return Err(error);
        }
        Ok(Supervision {
            attempt,
            number,
            shim,
            has_exited: false,
            desired: DesiredState::default(),
            force: None,
            is_connected: true,
            again: BootTime(0),
            backoff: Backoff::new(FIRST),
            look_at: None,
            start: StartWatch::new(site.now()),
            partition: None,
            parking,
            held,
            told,
            asked: BootTime(0),
            reported: None,
            begun: None,
            activity: ActivityReports::default(),
        })
    }

    /// Ends the supervision. Returns the shim, and the end by force if one was under way.
    pub(crate) fn end(self, site: &S) -> (ShimOf<S>, Option<ForcedEnd>) {
        site.unwatch_exit(&self.shim);
        if self.is_connected {
            site.unwatch_connection(&self.shim);
        }
        self.partition.into_iter().for_each(|partition| site.unwatch_partition(partition));
        (self.shim, self.force)
    }

    /// Watches the partition of the attempt, if its group can be one. Returns how it is lost already, if it is.
    pub(crate) fn watch_partition(&mut self, site: &S) -> Option<String> {
        if self.partition.is_some() {
            return None;
        }
        self.partition = site.watch_partition(self.number, self.attempt);
        self.partition_loss(site)
    }

    /// Returns how the partition is lost, if the kernel has made it invalid.
    pub(crate) fn partition_loss(&mut self, site: &S) -> Option<String> {
        let state = site.partition_state(self.partition.as_ref()?);
        if state.is_none()
            && let Some(gone) = self.partition.take()
        {
            site.unwatch_partition(gone);
        }
        state.filter(|state| state.contains("invalid")).map(|state| {
            format!(
                "its processors are shared with other programs: the kernel has made its partition \"{state}\""
            )
        })
    }

    /// Adds the request of a message to the desired state.
    pub(crate) fn take(&mut self, site: &S, message: AttemptMessage) {
        let now = site.now();
        match message {
            AttemptMessage::Do(Action::EndOverdue { by_running_time }) => {
                self.end_by_force(ForcedEnd::overdue(now, by_running_time));
                // One that has begun refuses that.
                if matches!(self.told, Told::Wait | Told::Unknown) {
                    mark!("a shim waits beyond the window of its job");
                    self.desired.merge(ShimCommand::Withdraw, None);
                }
                // An earlier daemon may have died before it could tell the shim of its window.
                if self.told != Told::Wait && !by_running_time {
                    self.desired.merge(ShimCommand::SetEnd { end: now, max_after_resume: None }, None);
                }
            }
            AttemptMessage::Do(action) => {
                let Some(command) = convert::command(site.host().clock(), action) else { return };
                let kill_at = match command {
                    ShimCommand::Kill { grace } => Some(now.after(grace)),
                    ShimCommand::Checkpoint { until } => Some(until.max(now)),
                    _ => None,
                };
                if let Some(kill_at) = kill_at {
                    self.end_by_force(ForcedEnd::requested(kill_at));
                }
                let begins = match command {
                    ShimCommand::BeginWindow { .. } => Some(Told::BeginWindow),
                    ShimCommand::RunEarly { .. } => Some(Told::RunEarly),
                    _ => None,
                };
                if let Some(told) = begins {
                    self.begins(told, now);
                }
                if self.parking.admits(&command) {
                    self.desired.merge(command, None);
                }
                if begins == Some(Told::RunEarly) && self.parking.is_short() {
                    self.desired.merge(ShimCommand::Stop, None);
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

    /// Takes note that the command of a waiting shim begins.
    fn begins(&mut self, told: Told, now: BootTime) {
        if self.told == Told::Wait {
            self.start = StartWatch::new(now);
        }
        self.told = told;
    }

    /// Returns what the shim was told to do with the command.
    pub(crate) const fn told(&self) -> Told {
        self.told
    }

    /// Returns a report of the window that the shim holds now, if that is news.
    pub(crate) fn take_held(&mut self, host: &S::Host) -> Option<Input> {
        let held = self.held.known();
        if held == self.reported.as_ref() {
            return None;
        }
        self.reported = held.cloned();
        let clock = host.clock();
        let held = held.map(|window| HeldWindow {
            start: clock.ticks(window.start),
            end: clock.ticks(window.end),
            cpus: window.cpus.clone(),
        });
        Some(Input::Holds(self.attempt, held))
    }

    /// Returns the window that the shim has begun by itself, once.
    pub(crate) fn take_begun(&mut self) -> Option<BegunWindow> {
        self.begun.take()
    }

    /// Returns a report of the activity of the attempt, if that is news.
    pub(crate) fn take_activity(&mut self, host: &S::Host) -> Option<Input> {
        let since = self.activity.take()?.idle_since;
        Some(Input::Idle(self.attempt, since.map(|since| host.clock().ticks(since))))
    }

    /// Schedules an end by force. The earliest one counts.
    fn end_by_force(&mut self, force: ForcedEnd) {
        self.force = Some(match self.force.take() {
            Some(earlier) => earlier.or(force),
            None => force,
        });
    }

    /// Returns the next instant at which the shim is asked whether it has begun its window by itself: it waits for others a while.
    fn ask_at(&self) -> Option<BootTime> {
        let may_begin = matches!(self.told, Told::Wait | Told::RunEarly);
        let start = self.held.known().filter(|_| may_begin)?.start;
        Some(start.after(BEGIN_DELAY * 2).max(self.asked.after(SILENCE)))
    }

    /// Connects if necessary, sends the messages that are due, and takes the replies.
    pub(crate) fn exchange(&mut self, site: &S, now: BootTime) {
        if !self.is_connected && self.again <= now {
            mark!("a shim is connected to again");
            self.connect(site);
            self.again = now.after(self.backoff.pause());
        }
        if self.ask_at().is_some_and(|at| at <= now) {
            mark!("a shim is asked whether its window has begun");
            self.asked = now;
            self.desired.merge(ShimCommand::Status, None);
        }
        if self.activity.ask_at().is_some_and(|at| at <= now) && self.told != Told::Wait {
            self.activity.ask(now);
            self.desired.merge(ShimCommand::Status, None);
        }
        if self.is_connected
            && let Err(error) = self.send_and_receive(site.host(), now)
        {
            if !matches!(error, CommandError::Gone) {
                tracing::warn!("job {}: the connection to its shim is lost: {error}", self.attempt.job);
            }
            mark!("a connection is lost");
            site.unwatch_connection(&self.shim);
            self.is_connected = false;
            for signal in self.desired.disconnected() {
                tracing::warn!("job {}: {signal:?}: its shim does not take it", self.attempt.job);
            }
            self.again = now.after(self.backoff.pause());
        }
        self.look_at_silence(site, now);
    }

    /// Tries to connect. The previous connection is not watched any more.
    fn connect(&mut self, site: &S) {
        let connected = self.shim.reconnect();
        let watched = connected.and_then(|()| site.watch_connection(self.number, &self.shim));
        self.is_connected = watched.is_ok();
    }

    fn send_and_receive(&mut self, host: &S::Host, now: BootTime) -> Result<(), CommandError> {
        let (shim, held) = (&mut self.shim, &mut self.held);
        self.desired.send(now, |command| {
            host.pass(CrashPoint::BeforeCommand);
            let number = shim.send(command)?;
            held.sent(number, command);
            Ok(number)
        })?;
        while let Some(reply) = self.shim.receive()? {
            host.pass(CrashPoint::AfterCommand);
            self.backoff.reset();
            self.held.answered(&reply, self.shim.version());
            self.note_begin(host, &reply, now);
            if let ShimReply::Done(state) = &reply.reply {
                self.activity.answered(state.activity);
            }
            if let Some(problem) = self.desired.answered(&reply, now) {
                let version = self.shim.version();
                tracing::warn!("job {}: {problem} (its shim has protocol {version})", self.attempt.job);
            }
        }
        Ok(())
    }

    /// Takes note of a window that the shim has begun by itself.
    fn note_begin(&mut self, host: &S::Host, reply: &ReplyMessage, now: BootTime) {
        match &reply.reply {
            ShimReply::Refused(ShimRefusal::Begun) => self.desired.merge(ShimCommand::Status, None),
            ShimReply::Done(state) => {
                let before = std::mem::replace(&mut self.told, Told::from(state));
                match (before, state.end) {
                    (Told::Wait | Told::RunEarly, Some(end)) => {
                        (self.told, self.start) = (Told::BeginWindow, StartWatch::new(now));
                        let (attempt, cpus) = (self.attempt, state.cpus.clone());
                        self.begun = Some(BegunWindow { attempt, cpus, end: host.clock().ticks(end) });
                    }
                    (Told::Unknown, _) => {}
                    // An answer to an earlier command.
                    _ => self.told = before,
                }
            }
            _ => {}
        }
    }

    /// Returns the instant at which the command was permitted to run, if that is news. Continues a shim that is stopped before.
    pub(crate) fn take_start(&mut self, site: &S, now: BootTime) -> Option<StoredInstant> {
        if self.told == Told::Wait && !self.has_exited {
            return None;
        }
        let started = self.start.look(&self.shim, now, self.has_exited);
        if self.start.is_slow(now) {
            self.wake(site.host());
        }
        started
    }

    /// Returns the time limit of the epilog, as far as it is known.
    pub(crate) const fn epilog(&self) -> Duration {
        self.start.epilog()
    }

    /// Continues a shim that does not answer because it is stopped.
    fn look_at_silence(&mut self, site: &S, now: BootTime) {
        let Some(since) = self.desired.unanswered_since() else {
            self.look_at = None;
            return;
        };
        let at = *self.look_at.get_or_insert(since.after(SILENCE));
        if at <= now {
            mark!("a shim does not answer");
            self.look_at = Some(now.after(SILENCE));
            self.wake(site.host());
        }
    }

    /// Continues the shim if it is stopped. Returns whether it was.
    pub(crate) fn wake(&self, host: &S::Host) -> bool {
        wake(host, self.attempt, &self.shim)
    }

    /// Returns the instant of the next duty.
    pub(crate) fn next(&self) -> Option<BootTime> {
        let again = (!self.is_connected).then_some(self.again);
        let force = self.force.as_ref().and_then(ForcedEnd::next_step);
        let start = self.start.next().filter(|_| self.told != Told::Wait);
        let activity = self.activity.ask_at().filter(|_| self.told != Told::Wait);
        [again, activity, force, self.look_at, self.desired.next(), start, self.ask_at()]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Continues a shim if it is stopped. Returns whether it was.
pub(crate) fn wake<H: Host>(host: &H, attempt: Attempt, shim: &H::Shim) -> bool {
    let is_stopped = shim.is_stopped();
    if is_stopped {
        mark!("a stopped shim is continued");
        tracing::warn!("job {}: its shim is stopped; it is continued", attempt.job);
        if let Err(error) = host.wake(attempt, shim) {
            tracing::warn!("job {}: its shim cannot be continued: {error}", attempt.job);
        }
    }
    is_stopped
}
