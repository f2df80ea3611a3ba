//! Signals for the processes of jobs.

use serde::{Deserialize, Serialize};

/// A signal that a user may send to a job.
///
/// `KILL`, `STOP` and `CONT` are none of these: a job is ended by a cancellation, and stopped by a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobSignal {
    /// `SIGHUP`.
    Hup,
    /// `SIGINT`.
    Int,
    /// `SIGQUIT`.
    Quit,
    /// `SIGUSR1`.
    Usr1,
    /// `SIGUSR2`.
    Usr2,
    /// `SIGALRM`.
    Alrm,
    /// `SIGTERM`.
    Term,
    /// `SIGWINCH`.
    Winch,
}

/// A signal, and the processes that receive it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// The signal.
    pub signal: JobSignal,
    /// Whether only the main process receives it: the program or the shell of the script. By default all processes do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub main: bool,
}

/// A signal before the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlySignal {
    /// The signal.
    pub signal: JobSignal,
    /// Whether only the main process receives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub main: bool,
    /// The time from the signal to the end of the window, in seconds. A shorter window begins with the signal.
    pub before: f64,
}

impl JobSignal {
    /// All of them, with their names and their numbers on Linux.
    pub const ALL: [(JobSignal, &'static str, u8); 8] = [
        (JobSignal::Hup, "HUP", 1),
        (JobSignal::Int, "INT", 2),
        (JobSignal::Quit, "QUIT", 3),
        (JobSignal::Usr1, "USR1", 10),
        (JobSignal::Usr2, "USR2", 12),
        (JobSignal::Alrm, "ALRM", 14),
        (JobSignal::Term, "TERM", 15),
        (JobSignal::Winch, "WINCH", 28),
    ];

    /// Returns the number of the signal on Linux.
    pub fn number(self) -> u8 {
        JobSignal::ALL.iter().find(|(signal, ..)| *signal == self).map_or(0, |(.., number)| *number)
    }

    /// Returns the name of the signal, without `SIG`.
    pub fn name(self) -> &'static str {
        JobSignal::ALL.iter().find(|(signal, ..)| *signal == self).map_or("", |(_, name, _)| name)
    }
}
