//! A daemon that is followed.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use miserly_api::client::{Client, ClientError, DaemonSocket};
use miserly_api::model::DaemonEvent;

use crate::Board;
use crate::mirror::Mirror;

/// The shortest time between two changes of the board. Events in between are merged.
const POSTS_EVERY: Duration = Duration::from_millis(100);

/// The time after which the board gets the present instant, if no event came.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// The time before a broken stream is opened again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What the stream of a daemon tells.
type Told = Result<DaemonEvent, ClientError>;

/// A daemon that is followed on threads, until this is dropped.
#[derive(Debug)]
pub struct Following {
    board: Board,
    stop: Arc<AtomicBool>,
}

impl Following {
    /// Returns the facts of the daemon.
    pub fn board(&self) -> &Board {
        &self.board
    }
}

impl Drop for Following {
    /// The threads end within a second. Nothing waits for them.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Follows a daemon: reads its state, and then every change.
///
/// # Errors
/// If the daemon does not answer the first time. Later failures are posted on the board, and it is tried again.
pub fn follow(socket: DaemonSocket) -> Result<Following, ClientError> {
    let path = socket.path.clone();
    let system = |error: io::Error| ClientError::NoDaemon { socket: path.clone(), error };
    let client = Client::of(socket.clone()).map_err(system)?;
    let reader = Client::of(socket).map_err(system)?;
    let mut mirror = Mirror::read(&client)?;
    let board = Board::new(mirror.facts());
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let stopped = Arc::clone(&stop);
    thread::Builder::new()
        .name("events".to_owned())
        .spawn(move || read_events(&reader, &sender, &stopped))
        .map_err(system)?;
    let posted = board.clone();
    thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || keep(&client, &mut mirror, &posted, &receiver))
        .map_err(system)?;
    Ok(Following { board, stop })
}

/// Passes on the events of the daemon. Opens the stream again after a failure, at the last event that is known.
fn read_events(client: &Client, told: &Sender<Told>, stopped: &AtomicBool) {
    let mut after = None;
    loop {
        let read = client.events(after, |event| {
            if let Some(event) = event {
                if let DaemonEvent::Snapshot(jobs) | DaemonEvent::Change(jobs) = &event {
                    after = Some(jobs.journal);
                }
                if told.send(Ok(event)).is_err() {
                    return ControlFlow::Break(());
                }
            }
            if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let gone = read.err().is_some_and(|error| told.send(Err(error)).is_err());
        if gone || stopped.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(AGAIN_AFTER);
    }
}

/// Keeps a board up to date, until the events end.
fn keep(client: &Client, mirror: &mut Mirror, board: &Board, events: &Receiver<Told>) {
    let mut limit = AT_LEAST_EVERY;
    loop {
        let first = match events.recv_timeout(limit) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let told = first.into_iter().chain(std::iter::from_fn(|| events.try_recv().ok()));
        let taken = told.map(|told| mirror.take(client, told?)).collect::<Result<Vec<()>, _>>();
        let refreshed = taken.and_then(|_| mirror.refresh(client));
        limit = if refreshed.is_ok() { AT_LEAST_EVERY } else { AGAIN_AFTER };
        match refreshed {
            Ok(()) => board.post(mirror.facts()),
            Err(error) => board.fail(&error.to_string()),
        }
        thread::sleep(POSTS_EVERY);
    }
}
