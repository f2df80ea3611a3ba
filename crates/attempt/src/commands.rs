//! The daemon's end of the connection to a shim.

use std::io;

use crate::connection::Connection;
use crate::error::CommandError;
use crate::identity::Identity;
use crate::message::{CommandMessage, Hello, ReplyMessage, parse_reply};
use crate::protocol::{ShimCommand, ShimReply};

/// A connected shim that was alive when its process was opened.
#[derive(Debug)]
pub struct ConnectedShim<P, C> {
    /// Identity of the shim process.
    pub identity: Identity,
    /// The shim process.
    pub process: P,
    /// The connection.
    pub commands: Commands<C>,
}

/// Sends commands to a shim and receives its replies.
#[derive(Debug)]
pub struct Commands<C> {
    connection: C,
    /// Number of the last command.
    last: u64,
    /// Whether a command was sent over this connection.
    greeted: bool,
    /// Description of the shim, once it has replied.
    hello: Option<Hello>,
}

impl<C: Connection> Commands<C> {
    /// Returns the end of a connection. `last` is the number of the last command that another process has sent over it, or 0.
    pub fn new(connection: C, last: u64) -> Commands<C> {
        Commands { connection, last, greeted: false, hello: None }
    }

    /// Returns the connection.
    pub fn connection(&self) -> &C {
        &self.connection
    }

    /// Returns the connection and the number of the last command.
    pub fn into_parts(self) -> (C, u64) {
        (self.connection, self.last)
    }

    /// Replaces the connection after it was lost.
    pub fn reconnect(&mut self, connection: C) {
        self.connection = connection;
        self.greeted = false;
    }

    /// Returns the description of the shim, once it has replied.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Sends a command without waiting and returns its number. [`receive`](Commands::receive) returns the reply.
    ///
    /// # Errors
    /// The shim has exited or does not read.
    pub fn send(&mut self, command: &ShimCommand) -> Result<u64, CommandError> {
        self.last += 1;
        let hello = (!std::mem::replace(&mut self.greeted, true)).then(Hello::own);
        let message = CommandMessage { number: self.last, command: command.clone(), hello };
        self.connection.send(&message).map_err(command_error)?;
        Ok(self.last)
    }

    /// Returns the next reply, or `None` if there is none yet.
    ///
    /// # Errors
    /// The shim has exited and no reply is left.
    pub fn receive(&mut self) -> Result<Option<ReplyMessage>, CommandError> {
        let Some(line) = self.connection.receive_line().map_err(command_error)? else { return Ok(None) };
        let reply = parse_reply(&line);
        self.hello = reply.hello.clone().or(self.hello.take()).or_else(|| Some(Hello::earliest()));
        Ok(Some(reply))
    }

    /// Sends a command and waits for its reply. `wait` waits for a line, and returns `false` if it waited too long.
    ///
    /// # Errors
    /// [`CommandError::Gone`] if the shim has exited. [`ShimCommand::Kill`] may end this way.
    pub fn request(
        &mut self,
        command: &ShimCommand,
        mut wait: impl FnMut(&C) -> io::Result<bool>,
    ) -> Result<ShimReply, CommandError> {
        let number = self.send(command)?;
        loop {
            while let Some(answer) = self.receive()? {
                // An earlier number is the late reply to a request that was given up.
                if answer.number == number {
                    return Ok(answer.reply);
                }
            }
            // Waits for the connection, not the process: replies sent before the exit are still readable.
            if !wait(&self.connection).map_err(CommandError::Broken)? {
                return Err(CommandError::Silent);
            }
        }
    }
}

fn command_error(error: io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            CommandError::Gone
        }
        io::ErrorKind::WouldBlock => CommandError::Silent,
        _ => CommandError::Broken(error),
    }
}
