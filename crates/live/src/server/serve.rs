//! Connections: who is there, how many at once, and how long each may take.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
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
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::asked::Connection;
use super::routes::router;
use super::service::Service;
use super::slow::WriteTimeout;
use super::socket::Bound;

/// What one client, or all of them, may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections of one user at once, where that is not the daemon's own.
    pub connections_of_user: usize,
    /// The bytes of a body.
    pub body: usize,
    /// For how long a request's head may come in, a body, and an answer be taken; an idle connection is closed as late.
    pub patience: Duration,
    /// How long the requests that are being answered have when the daemon goes away.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 512,
            connections_of_user: 256,
            body: 4 << 20,
            patience: Duration::from_secs(10),
            farewell: Duration::from_secs(2),
        }
    }
}

/// Answers on a socket by `service` until `shutdown` is over.
///
/// # Errors
/// If the socket cannot be listened on; what goes wrong with one client ends its connection alone.
pub async fn serve<S: Service>(
    socket: Bound,
    service: S,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(Limits::default(), socket, service, shutdown).await
}

/// As [`serve`], within other limits.
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
    let (going, gone) = watch::channel(false);
    let clients = Clients { limits, router: router(service), present: Arc::default(), gone };
    let mut tasks = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => clients.admit(stream, &mut tasks),
                Err(error) => {
                    // Out of descriptors, mostly: some connection has to end first.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    // The file goes first, so that whoever comes now is told that there is no daemon, rather than left without an answer.
    drop(socket);
    let _ = going.send(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits.farewell, all).await;
    Ok(())
}

/// What all connections share.
struct Clients {
    limits: Limits,
    router: Router,
    /// How many connections each user has. A lock of a few instructions, by the tasks of the connections.
    present: Arc<Mutex<BTreeMap<u32, usize>>>,
    gone: watch::Receiver<bool>,
}

impl Clients {
    /// Serves a connection in a task of its own, unless there are too many.
    fn admit(&self, stream: UnixStream, tasks: &mut JoinSet<()>) {
        let uid = match stream.peer_cred() {
            Ok(peer) => peer.uid(),
            Err(error) => return tracing::warn!("nobody knows who connected: {error}"),
        };
        let Some(seat) = self.seat(uid) else { return turn_away(&stream) };
        let Limits { body, patience, .. } = self.limits;
        let connection = Connection { caller: Caller { uid }, body, patience };
        let (router, gone) = (self.router.clone(), self.gone.clone());
        tasks.spawn(async move {
            converse(stream, connection, router, gone).await;
            drop(seat);
        });
    }

    fn seat(&self, uid: u32) -> Option<Seat> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (present.values().sum::<usize>(), present.get(&uid).copied().unwrap_or_default());
        let daemons_own = uid == rustix::process::geteuid().as_raw();
        if all >= self.limits.connections || (!daemons_own && own >= self.limits.connections_of_user) {
            return None;
        }
        present.insert(uid, own + 1);
        Some(Seat { uid, present: Arc::clone(&self.present) })
    }
}

/// A place among the connections, free again when this is dropped.
struct Seat {
    uid: u32,
    present: Arc<Mutex<BTreeMap<u32, usize>>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = present.get_mut(&self.uid) {
            *own -= 1;
            if *own == 0 {
                present.remove(&self.uid);
            }
        }
    }
}

/// Answers the requests of one connection until either side has enough.
async fn converse(
    stream: UnixStream,
    connection: Connection,
    router: Router,
    mut gone: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router);
    let answering = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection);
        service.call(request)
    });
    let io = TokioIo::new(WriteTimeout::new(stream, connection.patience));
    let talk = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(connection.patience)
        .serve_connection(io, answering);
    tokio::pin!(talk);
    tokio::select! {
        // A client that went away, or is too slow, is no event of the daemon's.
        _ = talk.as_mut() => return,
        _ = gone.changed() => {}
    }
    talk.as_mut().graceful_shutdown();
    let _ = talk.await;
}

/// Tells a client that there are too many, without waiting for what it asks.
fn turn_away(stream: &UnixStream) {
    let problem = Problem {
        code: ProblemCode::Unavailable,
        message: "too many connections are open; try again when some of them have ended".to_owned(),
        field: None,
        job: None,
    };
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.try_write(answer.as_bytes());
}
