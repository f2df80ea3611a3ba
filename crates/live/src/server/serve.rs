//! Connections: their users, their number, and their time limits.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use miserly_api::model::{Problem, ProblemCode};
use miserly_engine::Caller;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::extract::{Connection, DISCARDED};
use super::hand_over::HandOver;
use super::routes::router;
use super::seats::Seats;
use super::service::{Client, Service};
use super::socket::Bound;
use super::write_timeout::{Endless, WriteTimeout};

/// The limits of one client, and of all clients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at once.
    pub connections: usize,
    /// The most connections of one user at once. The daemon's own user and root are exempt.
    pub connections_of_user: usize,
    /// The connections among them that only root and the daemon's own user can have.
    pub reserved: usize,
    /// The most requests of one user that wait for the ends of jobs. Their connections do not count.
    pub waiting_of_user: usize,
    /// The most streams of events of one user. Their connections do not count.
    pub streams_of_user: usize,
    /// The most requests of one user that take long and are processed at once: lists, other reads, and
    /// large bodies. The others wait. Of quotes it is one.
    pub long_of_user: usize,
    /// The most bytes of a body.
    pub body: usize,
    /// The time limit for receiving a head, for receiving a body, and for sending a response, or a piece of a stream of
    /// events. It also limits an idle connection.
    pub timeout: Duration,
    /// The time that open requests have to finish when the daemon shuts down.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 512,
            connections_of_user: 32,
            reserved: 64,
            waiting_of_user: 1024,
            streams_of_user: 1024,
            long_of_user: 2,
            body: 4 << 20,
            timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(2),
        }
    }
}

/// Replies on a socket by `service` until `shutdown` completes.
///
/// # Errors
/// If the socket cannot be listened on. A failure of one client ends only its connection.
pub async fn serve<S: Service>(
    socket: Bound,
    service: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(Limits::default(), socket, service, shutdown).await
}

/// Serves as [`serve`] does, within other limits.
///
/// # Errors
/// As [`serve`].
pub async fn serve_within<S: Service>(
    limits: Limits,
    socket: Bound,
    service: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(socket.listener.try_clone()?)?;
    let (stop, stopping) = watch::channel(false);
    let needs_connections = service.needs_connections();
    let (router, seats) = (router(service), Seats::new(limits));
    let clients = Clients { limits, router, seats, stopping, needs_connections };
    let mut tasks = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => clients.admit(stream, &mut tasks),
                Err(error) => {
                    // Usually no descriptor is left: some connection has to end first.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    // The file is removed first. A client that connects later then gets an error at once, and does
    // not wait in vain.
    drop(socket);
    let _ = stop.send(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits.shutdown_grace, all).await;
    Ok(())
}

/// The state that all connections share.
struct Clients {
    limits: Limits,
    router: Router,
    seats: Seats,
    stopping: watch::Receiver<bool>,
    needs_connections: bool,
}

impl Clients {
    /// Serves a connection in a task of its own, unless there are too many.
    fn admit(&self, stream: UnixStream, tasks: &mut JoinSet<()>) {
        let uid = match stream.peer_cred() {
            Ok(peer) => peer.uid(),
            Err(error) => return tracing::warn!("cannot identify the client of a connection: {error}"),
        };
        let Some(seat) = self.seats.take(uid) else { return reject(&stream) };
        let Limits { body, timeout, .. } = self.limits;
        let connection = match self.needs_connections.then(|| stream.as_fd().try_clone_to_owned()).transpose()
        {
            Ok(connection) => connection.map(Arc::new),
            Err(error) => return tracing::warn!("no descriptor is left for a connection: {error}"),
        };
        let client = Client { caller: Caller::new(uid), connection };
        let stopping = self.stopping.clone();
        let (endless, hand_over) = (Endless::default(), HandOver::default());
        let connection =
            Connection { client, seat, body, timeout, endless, hand_over, stopping: stopping.clone() };
        tasks.spawn(serve_connection(stream, connection, self.router.clone(), stopping));
    }
}

/// Answers the requests of one connection until one side closes it.
async fn serve_connection(
    stream: UnixStream,
    connection: Connection,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let (timeout, most) = (connection.timeout, DISCARDED * connection.body);
    let (endless, hand_over) = (connection.endless.clone(), connection.hand_over.clone());
    let service = TowerToHyperService::new(router);
    let answering = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        service.call(request)
    });
    let io = TokioIo::new(WriteTimeout::new(stream, timeout, endless));
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .serve_connection(io, answering);
    tokio::select! {
        // A client that disconnects, or is too slow, is no error of the daemon.
        ended = &mut http => {
            let parts = http.into_parts();
            match ended {
                Ok(()) => hand_over.finish(&parts.io.into_inner().into_inner(), &parts.read_buf),
                Err(error) if error.is_parse_too_large() => {
                    discard(parts.io.into_inner(), timeout, most).await;
                }
                Err(_) => {}
            }
            return;
        }
        _ = stopping.changed() => {}
    }
    Pin::new(&mut http).graceful_shutdown();
    let _ = http.await;
}

/// Reads and discards at most `most` bytes of a request whose head was too large. A client that still sends
/// does not see the response if the connection is closed.
async fn discard(mut stream: impl AsyncRead + AsyncWrite + Unpin, timeout: Duration, most: usize) {
    let rest = async {
        stream.shutdown().await?;
        let mut stream = stream.take(most as u64);
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(timeout, rest).await;
}

/// Rejects a client because there are too many connections, without reading its request.
fn reject(stream: &UnixStream) {
    let message = "too many connections are open; try again when some of them have ended";
    let problem = Problem::new(ProblemCode::Unavailable, message);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.try_write(answer.as_bytes());
}
