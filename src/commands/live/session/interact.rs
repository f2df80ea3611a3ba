//! The loop between a client's terminal or input and the relay of a job.

use std::io::{Write, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use miserly_launch::frame::{ClientFrame, RelayFrame};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;

use super::escape::EscapeKeys;
use super::link::Link;
use super::signals::Signals;

/// The time within which a second interrupt cancels the job.
const TWICE: Duration = Duration::from_secs(1);

/// The reason why a client and a relay have parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// The output, or the job, has ended.
    Ended,
    /// The user has detached.
    Detached,
    /// Another client has attached.
    Replaced,
    /// The connection has ended without a reason.
    Lost,
    /// The user interrupts the job for the second time.
    Cancel,
    /// A signal ended the client.
    Signal(Signal),
}

/// A client that is attached.
pub(super) struct Interaction<'a> {
    pub(super) link: Link,
    pub(super) signals: &'a Signals,
    /// The keys that detach, for a job with a terminal.
    pub(super) escape: Option<EscapeKeys>,
    /// Whether standard input is passed on.
    pub(super) has_input: bool,
    /// Readable, or closed, when the job has ended; for a job without a terminal.
    pub(super) over: Option<&'a OwnedFd>,
    /// Whether it goes on until the end of the job after the connection has ended.
    pub(super) outlives_link: bool,
    /// The number of bytes of input that were read.
    pub(super) read: u64,
    /// The number of bytes of output that were printed.
    pub(super) printed: u64,
    /// The message before the end of the window.
    pub(super) reminder: Option<Reminder<'a>>,
    /// The last interrupt by the user.
    pub(super) interrupted: Option<Timestamp>,
    /// Whether the job is cancelled, so that each further interrupt ends the client.
    pub(super) is_cancelled: bool,
}

/// A message at an instant.
pub(super) struct Reminder<'a> {
    pub(super) at: Timestamp,
    /// Prints the message. Returns the instant of the next one.
    pub(super) remind: Box<dyn FnMut() -> Option<Timestamp> + 'a>,
}

impl Interaction<'_> {
    /// Returns a client without keys that detach.
    pub(super) fn new<'a>(
        link: Link,
        signals: &'a Signals,
        has_input: bool,
        over: Option<&'a OwnedFd>,
    ) -> Interaction<'a> {
        Interaction {
            link,
            signals,
            escape: None,
            has_input,
            over,
            outlives_link: false,
            read: 0,
            printed: 0,
            reminder: None,
            interrupted: None,
            is_cancelled: false,
        }
    }

    /// Passes input and output on until one side ends the connection.
    ///
    /// # Errors
    /// Standard input or output fails, or the other end is no relay.
    pub(super) fn run(&mut self) -> anyhow::Result<Parting> {
        self.send_size();
        loop {
            if let Some(parting) = self.handle_frames()?.or_else(|| self.handle_signals()) {
                return Ok(parting);
            }
            if self.link.is_over && !self.outlives_link {
                return Ok(Parting::Lost);
            }
            let ready = self.wait()?;
            if ready.link {
                self.link.flush();
                self.link.receive();
            }
            if ready.over {
                return Ok(Parting::Ended);
            }
            if ready.input
                && let Some(parting) = self.read_input()?
            {
                return Ok(parting);
            }
            self.remind();
        }
    }

    fn wait(&self) -> anyhow::Result<Ready> {
        let (room, input) = (self.link.room(), stdin());
        let reads = self.has_input && room > 0;
        let mut polled = vec![PollFd::new(self.signals, PollFlags::IN)];
        let link = (!self.link.is_over).then(|| push(&mut polled, self.link.poll()));
        let over = self.over.map(|over| push(&mut polled, PollFd::new(over, PollFlags::IN)));
        let input = reads.then(|| push(&mut polled, PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)));
        let left = self.reminder.as_ref().map(|reminder| until(reminder.at));
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for input and output"),
        }
        let is_ready = |at: Option<usize>| at.is_some_and(|at| !polled[at].revents().is_empty());
        Ok(Ready { link: is_ready(link), over: is_ready(over), input: is_ready(input) })
    }

    fn handle_frames(&mut self) -> anyhow::Result<Option<Parting>> {
        while let Some(frame) = self.link.next_frame()? {
            match frame {
                RelayFrame::Output(bytes) => {
                    let mut out = stdout().lock();
                    out.write_all(&bytes).and_then(|()| out.flush())?;
                    self.printed += bytes.len() as u64;
                }
                RelayFrame::Replaced => return Ok(Some(Parting::Replaced)),
                // Without a terminal the output comes another way.
                RelayFrame::EndOfOutput if self.over.is_none() => return Ok(Some(Parting::Ended)),
                _ => {}
            }
        }
        Ok(None)
    }

    fn handle_signals(&mut self) -> Option<Parting> {
        while let Some(signal) = self.signals.next() {
            match signal {
                Signal::SIGWINCH => self.send_size(),
                // The client of a terminal, or of a user who is gone, is no part of the job.
                signal if self.escape.is_some() || is_departure(signal) => {
                    return Some(Parting::Signal(signal));
                }
                Signal::SIGINT if self.is_second_interrupt() => return Some(Parting::Cancel),
                signal if self.link.is_over => return Some(Parting::Signal(signal)),
                signal => self.link.send(&ClientFrame::Signal(signal as i32)),
            }
        }
        None
    }

    /// Returns whether the user interrupts the job again, or a job that no signal reaches any more.
    fn is_second_interrupt(&mut self) -> bool {
        let now = Timestamp::now();
        let before = self.interrupted.replace(now);
        let is_unreachable = self.link.is_over || self.is_cancelled;
        is_unreachable || before.is_some_and(|before| now.duration_since(before).unsigned_abs() <= TWICE)
    }

    fn send_size(&mut self) {
        if self.escape.is_some()
            && let Ok(size) = tcgetwinsize(stdin())
            && size.ws_row > 0
            && size.ws_col > 0
        {
            self.link.send(&ClientFrame::Size { rows: size.ws_row, columns: size.ws_col });
        }
    }

    fn read_input(&mut self) -> anyhow::Result<Option<Parting>> {
        let mut bytes = vec![0; self.link.room()];
        // Not through the buffer of the standard library, in which bytes would wait unseen.
        let read = match rustix::io::read(stdin(), &mut bytes) {
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
            // The terminal has gone.
            Err(_) if self.escape.is_some() => return Ok(Some(Parting::Detached)),
            Err(error) => return Err(error).context("cannot read standard input"),
        };
        bytes.truncate(read);
        if read == 0 {
            self.has_input = false;
            self.link.send(&ClientFrame::EndOfInput);
            return Ok(self.escape.is_some().then_some(Parting::Detached));
        }
        self.read += read as u64;
        let detaches = match &mut self.escape {
            Some(escape) => {
                let (passed, detaches) = escape.filter(&bytes);
                bytes = passed;
                detaches
            }
            None => false,
        };
        if !bytes.is_empty() {
            self.link.send(&ClientFrame::Input(bytes));
        }
        Ok(detaches.then_some(Parting::Detached))
    }

    fn remind(&mut self) {
        if let Some(reminder) = &mut self.reminder
            && reminder.at <= Timestamp::now()
        {
            match (reminder.remind)() {
                Some(at) => reminder.at = at,
                None => self.reminder = None,
            }
        }
    }
}

/// Returns whether a signal concerns only the client of a job without a terminal.
fn is_departure(signal: Signal) -> bool {
    matches!(signal, Signal::SIGHUP | Signal::SIGQUIT)
}

/// The sources that the loop has to look at.
struct Ready {
    link: bool,
    over: bool,
    input: bool,
}

fn push<'a>(polled: &mut Vec<PollFd<'a>>, fd: PollFd<'a>) -> usize {
    polled.push(fd);
    polled.len() - 1
}

/// Returns the time until an instant, as poll(2) has it.
fn until(at: Timestamp) -> Timespec {
    let left = at.duration_since(Timestamp::now()).as_secs().clamp(0, 3600);
    // At least one second more than none: the instant is in the past then.
    Timespec { tv_sec: left + 1, tv_nsec: 0 }
}
