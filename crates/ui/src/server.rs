//! The server: its address, its link, and its end.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use miserly_api::client::DaemonSocket;
use miserly_follow::Board;
use rustix::io::Errno;

use crate::actions::Offers;
use crate::guard::{Guard, Proxy};
use crate::key::Keys;
use crate::live::{Live, Rights};
use crate::routes::{Site, router};
use crate::wanted::Watchers;

/// The most ports that are tried if any free one will do.
const PORTS: u32 = 16;

/// The options of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The port on 127.0.0.1 and `::1`; 0 for any free one.
    pub port: u16,
    /// Whether no job can be changed from the page.
    pub read_only: bool,
    /// The daemon to which changes go; `None` if there is none.
    pub daemon: Option<DaemonSocket>,
    /// The reverse proxy, if there is one.
    pub proxy: Option<Proxy>,
}

/// The reason why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The port is taken, or not allowed.
    #[error("cannot listen on {address}: {error}; give another --port, or none")]
    Port {
        /// The address with the port.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// The system failed.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
    guard: Arc<Guard>,
    options: Options,
}

impl Server {
    /// Listens on this machine only.
    ///
    /// # Errors
    /// If the port is taken, or the system fails.
    pub fn bind(options: Options) -> Result<Server, ServerError> {
        let listeners = Listeners::bind(options.port)?;
        let address = listeners.first.local_addr()?;
        let guard = Guard { address, keys: Keys::new()?, proxy: options.proxy.clone() };
        Ok(Server { listeners, guard: Arc::new(guard), options })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.guard.address
    }

    /// Returns the link for the next visit. It works once.
    pub fn link(&self) -> String {
        link(&self.guard)
    }

    /// Answers until the process ends, with the facts of the board. `used` is called with the next link when one was used.
    ///
    /// # Errors
    /// If the system fails.
    pub fn run(self, board: &Board, used: impl Fn(&str) + Send + Sync + 'static) -> Result<(), ServerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            let Listeners { first, second } = self.listeners;
            let (first, second) = (asynchronous(first)?, second.map(asynchronous).transpose()?);
            let actions = self.options.daemon.is_some() && !self.options.read_only;
            let guard = Arc::clone(&self.guard);
            let site = Site {
                guard: self.guard,
                live: Arc::new(Live::new(board, Rights { actions, daemon: self.options.daemon.is_some() })),
                watchers: Watchers::default(),
                offers: Arc::new(Offers::default()),
                daemon: self.options.daemon,
                actions,
                used: Arc::new(move || used(&link(&guard))),
            };
            let router = router(site);
            let also = router.clone();
            let second = async move {
                match second {
                    Some(listener) => axum::serve(listener, also).await,
                    None => Ok(()),
                }
            };
            tokio::try_join!(axum::serve(first, router).into_future(), second)?;
            Ok(())
        })
    }
}

/// The sockets of a server, all with one port.
#[derive(Debug)]
struct Listeners {
    /// On 127.0.0.1.
    first: TcpListener,
    /// On `::1`, where there is IPv6: a browser may look for `localhost` there, and nobody else should answer.
    second: Option<TcpListener>,
}

impl Listeners {
    /// Listens on a port, or on any port that is free on both addresses.
    fn bind(port: u16) -> Result<Listeners, ServerError> {
        let mut tries = if port == 0 { PORTS } else { 1 };
        loop {
            tries -= 1;
            match Listeners::bind_once(port) {
                Err(ServerError::Port { error, .. })
                    if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                other => return other,
            }
        }
    }

    fn bind_once(port: u16) -> Result<Listeners, ServerError> {
        let bind = |address: SocketAddr| {
            TcpListener::bind(address).map_err(|error| ServerError::Port { address, error })
        };
        let first = bind((Ipv4Addr::LOCALHOST, port).into())?;
        let port = first.local_addr()?.port();
        match bind((Ipv6Addr::LOCALHOST, port).into()) {
            Ok(second) => Ok(Listeners { first, second: Some(second) }),
            Err(ServerError::Port { error, .. }) if is_without_ipv6(&error) => {
                Ok(Listeners { first, second: None })
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns whether an error shows that the machine has no IPv6.
fn is_without_ipv6(error: &io::Error) -> bool {
    let absent = [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT];
    error.raw_os_error().is_some_and(|code| absent.contains(&Errno::from_raw_os_error(code)))
}

fn asynchronous(listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn link(guard: &Guard) -> String {
    format!("http://{}/?token={}", guard.address, guard.keys.token())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_request_for_the_head_does_not_use_up_the_link() {
        let server = Server::bind(Options::default()).unwrap();
        let (link, address) = (server.link(), server.address());
        std::thread::spawn(move || server.run(&Board::new(crate::no_facts()), |_| {}));
        let status = |method: &str| {
            let (_, path) = link.rsplit_once('/').unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{method} /{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split(' ').nth(1).unwrap().to_owned()
        };
        assert_eq!(["HEAD", "HEAD", "GET", "GET"].map(status), ["405", "405", "200", "401"]);
    }
}
