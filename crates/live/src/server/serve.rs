//! Connections: their users, their number, and their time limits.

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

/// The limits of one client, and of all clients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at once.
    pub connections: usize,
    /// The most connections of one user at once. The daemon's own user is exempt.
    pub connections_of_user: usize,
    /// The most bytes of a body.
    pub body: usize,
    /// The time limit for receiving a head, for receiving a body, and for sending a response. It
    /// also limits an idle connection.
    pub patience: Duration,
    /// The time that open requests have to finish when the daemon shuts down.
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
    let _ = going.send(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(limits.farewell, all).await;
    Ok(())
}

/// The state that all connections share.
struct Clients {
    limits: Limits,
    router: Router,
    /// The number of connections of each user. The tasks of the connections lock it for a few
    /// instructions.
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

/// A slot among the connections. Dropping it frees the slot.
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

/// Answers the requests of one connection until one side closes it.
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
        // A client that disconnects, or is too slow, is no error of the daemon.
        _ = talk.as_mut() => return,
        _ = gone.changed() => {}
    }
    talk.as_mut().graceful_shutdown();
    let _ = talk.await;
}

/// Rejects a client because there are too many connections, without reading its request.
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
