//! Reports to the service manager: ready, alive, needs more time to start (`sd_notify`).

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The interval of the reports during a start.
const STARTING: Duration = Duration::from_secs(10);

/// The time that a report asks for, in microseconds.
const EXTENSION: &str = "EXTEND_TIMEOUT_USEC=60000000";

/// A daemon that starts. Reports that it needs more time until this is dropped.
pub(crate) struct Starting {
    _end: Sender<()>,
}

impl Starting {
    /// Begins the reports. Without a service manager there are none.
    pub(crate) fn begin() -> Starting {
        let (end, ended) = channel::<()>();
        if env::var_os("NOTIFY_SOCKET").is_some() {
            let report = move || {
                while ended.recv_timeout(STARTING) == Err(RecvTimeoutError::Timeout) {
                    notify(EXTENSION);
                }
            };
            if let Err(error) = thread::Builder::new().name("starting".to_owned()).spawn(report) {
                tracing::warn!("the service manager may end a long start: {error}");
            }
        }
        Starting { _end: end }
    }
}

/// Reports that the daemon is ready.
pub(crate) fn ready() {
    notify("READY=1");
}

/// Reports that the daemon is alive.
pub(crate) fn alive() {
    notify("WATCHDOG=1");
}

/// Returns the interval of the reports that a watchdog expects, if there is one: half its time.
pub(crate) fn watchdog() -> Option<Duration> {
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    interval(number("WATCHDOG_USEC").filter(|_| own)?)
}

fn interval(microseconds: u64) -> Option<Duration> {
    (microseconds > 1).then(|| Duration::from_micros(microseconds / 2))
}

fn notify(message: &str) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(socket.as_bytes(), message) {
        tracing::warn!("the service manager cannot be reached: {error}");
    }
}

/// Sends a message to a socket of the file system, or to an abstract one (`@NAME`).
fn send(socket: &[u8], message: &str) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn messages_reach_both_kinds_of_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str().as_bytes(), "READY=1").unwrap();
        assert_eq!(received(&socket), "READY=1");
        let name = format!("miserly-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(format!("@{name}").as_bytes(), EXTENSION).unwrap();
        assert_eq!(received(&socket), EXTENSION);
    }

    #[test]
    fn the_watchdog_gets_two_reports_in_its_time() {
        assert_eq!(interval(60_000_000), Some(Duration::from_secs(30)));
        assert_eq!(interval(0), None);
    }
}
