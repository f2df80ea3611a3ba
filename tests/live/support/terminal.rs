//! A terminal with a command on it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::{Daemon, SOON};

/// A terminal, at which a user would sit.
pub(crate) struct Terminal {
    keyboard: File,
    /// The side of the command.
    line: OwnedFd,
    child: Child,
    shown: String,
}

impl Terminal {
    /// Runs the program with these arguments on a terminal of 24 lines.
    pub(crate) fn new(daemon: &Daemon, arguments: &[&str]) -> Terminal {
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_miserly")]).args(arguments);
        command.env("MISERLY_SOCKET", &daemon.socket).current_dir(daemon.path(""));
        Terminal::of(command)
    }

    /// Runs a command that takes the terminal on its standard files.
    pub(crate) fn of(mut command: Command) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal");
        let line = ioctl_tiocgptpeer(&keyboard, flags).expect("the other side");
        let file = || Stdio::from(line.try_clone().expect("a descriptor"));
        let child = command.stdin(file()).stdout(file()).stderr(file()).spawn().expect("it starts");
        let terminal = Terminal { keyboard: keyboard.into(), line, child, shown: String::new() };
        terminal.resize(24, 80);
        terminal
    }

    pub(crate) fn resize(&self, ws_row: u16, ws_col: u16) {
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).expect("a size");
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    }

    /// Waits for a text, and forgets what was shown up to its end.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) {
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return;
            }
            assert!(self.read(), "{text:?} is not shown within {} s: {:?}", SOON.as_secs(), self.shown);
        }
    }

    /// Reads once. Returns whether something came in time.
    fn read(&mut self) -> bool {
        let soon = Timespec { tv_sec: SOON.as_secs().try_into().expect("a minute"), tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.keyboard, PollFlags::IN)];
        if poll(&mut polled, Some(&soon)).expect("a descriptor") == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        let read = self.keyboard.read(&mut buffer).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
        read > 0
    }

    /// Returns whether keys are lines, as before the command.
    pub(crate) fn is_usual(&self) -> bool {
        let modes = tcgetattr(&self.line).expect("a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }

    /// Waits for the exit of the command. Returns its code, and `None` after a signal.
    #[track_caller]
    pub(crate) fn code(&mut self) -> Option<i32> {
        super::until("the command ends", SOON, || {
            // What it prints must not fill the terminal.
            let mut polled = [PollFd::new(&self.keyboard, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut polled, Some(&now)).expect("a descriptor") > 0 {
                self.read();
            }
            self.child.try_wait().expect("a child")
        })
        .code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
