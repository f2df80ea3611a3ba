//! A daemon in this process with a wall clock that a test can set. Setting the clock of the machine needs a privilege.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use jiff::{SignedDuration, Timestamp};
use miserly_api::client::Client;
use miserly_api::model::JobView;
use miserly_live::config::{Configuration, Machine};
use miserly_live::daemon::{self, Options};
use rustix::process::{Signal, getpid, kill_process};
use tempfile::TempDir;

use super::{SOON, processes, until};

/// The offset of the wall clock from that of the machine, in microseconds.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// Signals and the wall clock are shared by all daemons of a process, so only one runs at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The daemon.
pub(crate) struct Stepping {
    folder: TempDir,
    thread: Option<JoinHandle<()>>,
    _alone: MutexGuard<'static, ()>,
}

impl Stepping {
    /// Returns a daemon with this configuration that answers. Its wall clock is that of the machine.
    pub(crate) fn new(configuration: &str) -> Stepping {
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        AHEAD.store(0, Ordering::SeqCst);
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("daemon.toml"), configuration).expect("a file that can be written");
        let options = Options {
            configuration: configured(folder.path()),
            file: None,
            exe: env!("CARGO_BIN_EXE_miserly").into(),
            wall,
            verify: false,
            sweep: false,
            share_cpus: true,
        };
        let home = folder.path().to_owned();
        let run = move || daemon::run(options, None, || Ok(configured(&home))).expect("a daemon that runs");
        let thread = thread::spawn(run);
        let daemon = Stepping { folder, thread: Some(thread), _alone: alone };
        until("the daemon answers", SOON, || daemon.client().status().ok());
        daemon
    }

    /// Sets the wall clock forward or back.
    #[allow(clippy::unused_self)] // Whoever steps the wall has the daemon whose wall it is.
    pub(crate) fn step(&self, by: SignedDuration) {
        let micros = i64::try_from(by.as_micros()).expect("a step of some hours");
        AHEAD.fetch_add(micros, Ordering::SeqCst);
    }

    /// Returns the wall time.
    #[allow(clippy::unused_self)] // As above.
    pub(crate) fn wall(&self) -> Timestamp {
        wall()
    }

    /// Makes the daemon reload its configuration.
    #[allow(clippy::unused_self)] // As above.
    pub(crate) fn reread(&self) {
        // It answers, so it handles signals.
        kill_process(getpid(), Signal::HUP).expect("a signal to this process");
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.path("socket")).expect("a client")
    }

    #[track_caller]
    pub(crate) fn job(&self, number: i64) -> JobView {
        self.client().job(number).expect("the daemon knows it")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn wall() -> Timestamp {
    Timestamp::now() + SignedDuration::from_micros(AHEAD.load(Ordering::SeqCst))
}

fn configured(folder: &Path) -> Configuration {
    let machine = Machine::here().expect("a machine");
    let file = folder.join("daemon.toml");
    let mut configuration = Configuration::read(&file.to_string_lossy(), &machine).expect("it is right");
    configuration.state = folder.join("state");
    configuration.socket = folder.join("socket");
    configuration
}

impl Drop for Stepping {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A running daemon has answered, so it handles signals. Otherwise the signal would end this process.
            if !thread.is_finished() {
                let _ = kill_process(getpid(), Signal::TERM);
            }
            let _ = thread.join();
        }
        processes::kill_all(self.folder.path());
    }
}
