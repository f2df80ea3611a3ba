//! Control groups under systemd, which is the only writer of all groups but those that it delegates.
//!
//! systemd is reached by its own client `busctl`, as a child process with fixed arguments. A call is
//! rare: a few at the start of a daemon, and one for each change of the processors of jobs. So a
//! client of D-Bus in this program would bring in much code for little.

mod call;

mod scope;

mod confinement;

use std::path::PathBuf;

pub use confinement::Confinement;
pub use scope::{JOBS_SLICE, Scopes};

use crate::CgroupError;

/// The folder of the root of the hierarchy.
const ROOT: &str = "/sys/fs/cgroup";

/// An error of control groups under systemd.
#[derive(Debug, thiserror::Error)]
pub enum SystemdError {
    /// The service manager of the machine is another one, or none.
    #[error("systemd does not manage this machine: /run/systemd/system does not exist")]
    NotRunning,
    /// The client of systemd cannot be run.
    #[error("cannot run busctl, the client of systemd: {0}")]
    NoClient(std::io::Error),
    /// systemd did not answer in time.
    #[error("systemd has not answered after {seconds} s: {what}")]
    TimedOut {
        /// The operation.
        what: String,
        /// The time.
        seconds: u64,
    },
    /// systemd refused an operation.
    #[error("systemd refuses: {what}: {answer}")]
    Refused {
        /// The operation.
        what: String,
        /// The answer of systemd.
        answer: String,
    },
    /// The processes that shall keep a scope were not moved to it.
    #[error("systemd has not started the scope {0}")]
    NoScope(String),
    /// A file of the kernel failed.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The processors of the machine cannot be read.
    #[error("{}: {error}", path.display())]
    Processors {
        /// The file.
        path: PathBuf,
        /// Error of the kernel.
        error: std::io::Error,
    },
    /// Jobs in their windows have all processors, so that none is left for other programs.
    #[error("jobs in their windows have all online processors: other programs stay on them")]
    NoneLeft,
}

/// Returns whether a process of root asks the service manager of the machine. Others ask the one of their user, which manages the
/// groups below that of the user only.
fn is_of_machine() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns whether systemd manages this machine.
pub fn is_running() -> bool {
    std::path::Path::new("/run/systemd/system").exists()
}
