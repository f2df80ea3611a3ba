//! The relay: the process between the input and the terminal of a job and an attached client.
//!
//! It is a process of the job: it has the rights of the job's user, and ends with the job. So nothing that a client sends is
//! read by a process with other rights, and a slow disk or client cannot hold up the shim.
//!
//! Its output is in a file, and the last part of it in memory. A client that falls behind reads from the file, so no output
//! waits in memory for a client, and the job never waits for one.

mod connection;

mod history;

mod job_input;

mod start;

use miserly_attempt::BootTime;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::termios::{Winsize, tcsetwinsize};

use self::connection::Connection;
use self::history::History;
use self::job_input::JobInput;
pub(super) use self::start::{RelayParts, detach, start};
use self::start::{RelaySettings, settings};
use crate::clock::{self, MachineClock as _};
use crate::frame::{ClientFrame, RelayHello};
use crate::identity::raw;

/// Time for which the relay of an ended job still sends the rest of the output.
const FLUSH_TIME: Duration = Duration::from_millis(500);

/// Time between two reads of a terminal that no process has open.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Bytes that are read at once.
const PIECE: usize = 16 << 10;

/// The signals that a client may send to a job.
const SIGNALS: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The state of a relay.
struct Relay {
    /// Receives the connections of clients.
    socket: OwnedFd,
    main: u32,
    /// The main process of the job, until it has exited.
    exit: Option<OwnedFd>,
    input: JobInput,
    terminal: Option<Terminal>,
    client: Option<Connection>,
    /// The instant at which it ends, once the output has ended.
    until: Option<BootTime>,
}

/// The terminal of a job.
struct Terminal {
    master: OwnedFd,
    history: History,
    /// The instant of the next read, while no process has the terminal open.
    read_at: Option<BootTime>,
}

/// Relays until the job has ended.
pub(super) fn run() -> Result<(), String> {
    Relay::new().and_then(Relay::run).map_err(|error| error.to_string())
}

impl Relay {
    /// Takes what the preparing program has passed in place of the standard files.
    fn new() -> io::Result<Relay> {
        let settings = settings()?;
        let files = passed_files()?;
        std::env::set_current_dir("/")?;
        let exit = raw(settings.main).and_then(|main| pidfd_open(main, PidfdFlags::empty()).ok());
        Relay::from_files(&settings, exit, files)
    }

    /// Returns a relay with its socket, the input of the job and the output. `exit` is `None` if the main process was reaped
    /// before the relay came to look.
    fn from_files(settings: &RelaySettings, exit: Option<OwnedFd>, files: [OwnedFd; 3]) -> io::Result<Relay> {
        let [socket, input, output] = files;
        for fd in [&socket, &input] {
            ioctl_fionbio(fd, true)?;
        }
        let master = settings.terminal.then(|| input.try_clone()).transpose()?;
        let terminal = master.map(|master| {
            let history = History::new(output.into(), settings.base);
            Terminal { master, history, read_at: None }
        });
        let input = JobInput::new(settings.takes_input.then_some(input));
        // A terminal keeps the output of a process that has exited.
        let is_over = exit.is_none() && terminal.is_none();
        let until = is_over.then(|| BootTime::now().after(FLUSH_TIME));
        Ok(Relay { socket, main: settings.main, exit, input, terminal, client: None, until })
    }

    fn run(mut self) -> io::Result<()> {
        while !self.is_over() {
            self.wait()?;
            self.receive_clients();
            self.read_terminal();
            self.notice_exit();
            self.serve_client();
            let taken = if self.accepts_input() { self.input.write() } else { 0 };
            if let Some(client) = &mut self.client {
                client.add_taken(taken);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let is_served = self.client.as_ref().is_none_or(Connection::is_finished);
        self.until.is_some_and(|until| is_served || until <= BootTime::now())
    }

    /// Waits for an event.
    fn wait(&self) -> io::Result<()> {
        let mut polled = vec![PollFd::new(&self.socket, PollFlags::IN)];
        polled.extend(self.exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN)));
        if self.accepts_input() {
            polled
                .extend(self.terminal.as_ref().map(|terminal| PollFd::new(&terminal.master, PollFlags::IN)));
            polled
                .extend(self.input.waits_for().map(|input| PollFd::from_borrowed_fd(input, PollFlags::OUT)));
        }
        let end = self.output_end();
        polled.extend(self.client.as_ref().map(|client| client.poll(end)));
        let read_at = self.terminal.as_ref().and_then(|terminal| terminal.read_at);
        let next = self.until.or(read_at);
        let left = next.map(|next| clock::timespec(BootTime(0).after(next.since(BootTime::now()))));
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a process may read the input. A terminal that no process has open always reports an event.
    fn accepts_input(&self) -> bool {
        self.terminal.as_ref().is_none_or(|terminal| terminal.read_at.is_none() && self.until.is_none())
    }

    /// Returns the end of the output that clients get.
    fn output_end(&self) -> u64 {
        self.terminal.as_ref().map_or(0, |terminal| terminal.history.end())
    }

    /// Takes the connections of new clients. The last one replaces all others.
    fn receive_clients(&mut self) {
        while let Some(stream) = connection::receive(&self.socket) {
            if let Some(replaced) = self.client.replace(Connection::new(stream)) {
                replaced.replace();
            }
        }
    }

    /// Reads what the job printed on its terminal. It ends when the main process has exited and no process has the terminal open.
    ///
    /// A main process that has closed its terminal may open it again, and a hangup would end it.
    fn read_terminal(&mut self) {
        let Some(terminal) = self.terminal.as_mut().filter(|_| self.until.is_none()) else { return };
        let now = BootTime::now();
        if terminal.read_at.is_some_and(|at| at > now) {
            return;
        }
        terminal.read_at = None;
        let mut buffer = [0; PIECE];
        match rustix::io::read(&terminal.master, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) if self.exit.is_some() => terminal.read_at = Some(now.after(RETRY_INTERVAL)),
            Ok(0) | Err(_) => self.until = Some(now.after(FLUSH_TIME)),
            Ok(read) => terminal.history.append(&buffer[..read]),
        }
    }

    /// Notices the exit of the main process. Without a terminal the relay ends with it.
    fn notice_exit(&mut self) {
        let Some(exit) = &self.exit else { return };
        let mut polled = [PollFd::new(exit, PollFlags::IN)];
        if poll(&mut polled, Some(&clock::timespec(BootTime(0)))).is_ok_and(|count| count > 0) {
            self.exit = None;
            match &mut self.terminal {
                Some(terminal) => terminal.read_at = None,
                None => self.until = Some(BootTime::now().after(FLUSH_TIME)),
            }
        }
    }

    /// Handles the frames of the client, and sends it what is new. A client that breaks the protocol is disconnected.
    fn serve_client(&mut self) {
        let Some(mut client) = self.client.take() else { return };
        let has_ended = self.until.is_some();
        let handled = client.receive(|frame| self.handle(&frame));
        let history = self.terminal.as_ref().map(|terminal| &terminal.history);
        if handled.is_ok_and(|hello| client.send(hello, history, has_ended).is_ok()) {
            self.client = Some(client);
        }
    }

    /// Handles a frame. Returns the reply to the first one of a connection.
    fn handle(&mut self, frame: &ClientFrame) -> io::Result<Option<RelayHello>> {
        match frame {
            ClientFrame::Open { from } => return Ok(Some(self.hello(*from))),
            ClientFrame::Input(bytes) => self.input.push(bytes)?,
            ClientFrame::EndOfInput if self.terminal.is_none() => self.input.end(),
            ClientFrame::EndOfInput => {}
            ClientFrame::Size { rows, columns } => self.resize(*rows, *columns),
            ClientFrame::Signal(number) => self.signal(*number),
        }
        Ok(None)
    }

    fn hello(&self, from: Option<u64>) -> RelayHello {
        let history = self.terminal.as_ref().map(|terminal| &terminal.history);
        RelayHello {
            terminal: history.is_some(),
            takes_input: self.input.is_open(),
            queued: self.input.queued(),
            from: history.map_or(0, |history| history.place(from)),
            base: history.map_or(0, History::base),
        }
    }

    fn resize(&self, rows: u16, columns: u16) {
        // The client does not know the size.
        if rows == 0 || columns == 0 {
            return;
        }
        if let Some(terminal) = &self.terminal {
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            // A terminal that has hung up has no size.
            let _ = tcsetwinsize(&terminal.master, size);
        }
    }

    /// Sends a signal to the process group of the main process, as long as that has not exited.
    fn signal(&mut self, number: i32) {
        self.notice_exit();
        let signal = SIGNALS.into_iter().find(|signal| signal.as_raw() == number);
        if let (Some(signal), Some(group), true) = (signal, raw(self.main), self.exit.is_some()) {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Returns the files that were passed as standard input, output and error, which are then empty.
fn passed_files() -> io::Result<[OwnedFd; 3]> {
    let files = [
        io::stdin().as_fd().try_clone_to_owned()?,
        io::stdout().as_fd().try_clone_to_owned()?,
        io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let null = File::options().read(true).write(true).open(Path::new("/dev/null"))?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use rustix::io::write;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn a_relay_that_begins_after_the_exit_reads_the_output() {
        let (master, slave) = start::open_terminal(0, 0).unwrap();
        write(&slave, b"last\n").unwrap();
        drop(slave);
        let (socket, _daemon) =
            socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let files = [socket, master, file.try_clone().unwrap().into()];
        let settings = RelaySettings { main: 1, terminal: true, takes_input: true, base: 0 };
        Relay::from_files(&settings, None, files).unwrap().run().unwrap();
        let mut output = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut output).unwrap();
        assert_eq!(output, "last\r\n");
    }
}
