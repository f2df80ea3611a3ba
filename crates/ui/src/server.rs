//! The server: its address, its link, and its end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use miserly_api::client::DaemonSocket;
use miserly_follow::Board;
use tokio::net::TcpListener;

use crate::guard::{Guard, Proxy};
use crate::key::Keys;
use crate::live::Live;
use crate::routes::{Site, router};

/// The options of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The port on 127.0.0.1; 0 for any free one.
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
    #[error("cannot listen on 127.0.0.1, port {port}: {error}; give another --port, or none")]
    Port {
        /// The port.
        port: u16,
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
    listener: std::net::TcpListener,
    guard: Arc<Guard>,
    options: Options,
}

impl Server {
    /// Listens on this machine only.
    ///
    /// # Errors
    /// If the port is taken, or the system fails.
    pub fn bind(options: Options) -> Result<Server, ServerError> {
        let port = options.port;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| ServerError::Port { port, error })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let guard = Guard { address, keys: Keys::new()?, proxy: options.proxy.clone() };
        Ok(Server { listener, guard: Arc::new(guard), options })
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
            let listener = TcpListener::from_std(self.listener)?;
            let actions = self.options.daemon.is_some() && !self.options.read_only;
            let guard = Arc::clone(&self.guard);
            let site = Site {
                guard: self.guard,
                live: Arc::new(Live::new(board, actions)),
                daemon: self.options.daemon,
                actions,
                used: Arc::new(move || used(&link(&guard))),
            };
            Ok(axum::serve(listener, router(site)).await?)
        })
    }
}

fn link(guard: &Guard) -> String {
    format!("http://{}/?token={}", guard.address, guard.keys.token())
}
