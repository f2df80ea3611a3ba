//! The connection of a shim to the daemon.

use miserly_marks::{mark, mark_variant};

use crate::connection::Connection;
use crate::message::{CommandMessage, Hello, ReplyMessage, parse_command};
use crate::protocol::{ShimRefusal, ShimReply};
use crate::time::BootTime;

/// A command, or the number and the refusal of a line that is none.
type Received = Result<CommandMessage, (u64, ShimRefusal)>;

/// The connection to the daemon, while one is connected.
pub(super) struct DaemonLink<C> {
    connection: Option<C>,
    /// Whether the next reply carries the description of this shim.
    greets: bool,
    absent_since: Option<BootTime>,
}

impl<C: Connection> DaemonLink<C> {
    /// Returns a link without a daemon. None counts as absent before an instant.
    pub(super) const fn new(absent_since: Option<BootTime>) -> DaemonLink<C> {
        DaemonLink { connection: None, greets: false, absent_since }
    }

    /// Replaces the connection: the latest one is the daemon's.
    pub(super) fn connect(&mut self, connection: C) {
        (self.connection, self.absent_since) = (Some(connection), None);
    }

    pub(super) fn connection(&self) -> Option<&C> {
        self.connection.as_ref()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Returns whether a received line is left, of which no event tells.
    pub(super) fn has_line(&self) -> bool {
        self.connection.as_ref().is_some_and(Connection::has_line)
    }

    /// Returns the instant since which no daemon is connected.
    pub(super) const fn absent_since(&self) -> Option<BootTime> {
        self.absent_since
    }

    /// Returns the next command, or `None` if there is none. A line that is no command is refused by its number.
    pub(super) fn receive(&mut self, now: BootTime) -> Option<Received> {
        let Ok(line) = self.connection.as_mut()?.receive_line() else {
            self.lose(now);
            return None;
        };
        let received = parse_command(&line?);
        self.greets |= received.as_ref().is_ok_and(|message| message.hello.is_some());
        Some(received)
    }

    /// Answers a command.
    pub(super) fn answer(&mut self, number: u64, reply: ShimReply, now: BootTime) {
        mark_variant!(&reply, ShimReply { Done, NotStopped, Refused, Unknown });
        let hello = std::mem::take(&mut self.greets).then(Hello::own);
        let message = ReplyMessage { number, reply, hello };
        let sent = self.connection.as_mut().map(|connection| connection.send(&message));
        if let Some(Err(_)) = sent {
            self.lose(now);
        }
    }

    fn lose(&mut self, now: BootTime) {
        mark!("the daemon is gone");
        (self.connection, self.absent_since) = (None, Some(now));
    }
}
