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

/// The shortest time between two looks at the queues and their pools: they count as requests of the user.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// The rounds between two looks.
const ROUNDS: u32 = 10;

/// The time until the next try if the daemon refuses.
const LATER: Duration = Duration::from_secs(5);

/// The time after which the board gets the present instant, if no event came.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// The time before a broken stream is opened again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A message of the thread that reads the stream: an event, a sign of life after a failure, or a failure.
type Message = Result<Option<DaemonEvent>, ClientError>;

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
    let client = Client::from_socket(socket.clone()).map_err(system)?;
    let reader = Client::from_socket(socket).map_err(system)?;
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
fn read_events(client: &Client, told: &Sender<Message>, stopped: &AtomicBool) {
    let mut after = None;
    let mut failed = false;
    loop {
        let read = client.events(after, |event| {
            if let Some(DaemonEvent::Snapshot(jobs) | DaemonEvent::Change(jobs)) = &event {
                after = Some(jobs.journal);
            }
            // A sign of life is worth telling once.
            let worth = event.is_some() || std::mem::take(&mut failed);
            let gone = worth && told.send(Ok(event)).is_err();
            if gone || stopped.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        failed = read.is_err();
        let gone = read.err().is_some_and(|error| told.send(Err(error)).is_err());
        if gone || stopped.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(AGAIN_AFTER);
    }
}

/// Keeps a board up to date, until the events end.
fn keep(client: &Client, mirror: &mut Mirror, board: &Board, events: &Receiver<Message>) {
    let mut keeper = Keeper { client, mirror, stream: None, rounds: ROUNDS };
    let mut limit = AT_LEAST_EVERY;
    loop {
        let first = match events.recv_timeout(limit) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let is_quiet = first.is_none();
        let told = first.into_iter().chain(std::iter::from_fn(|| events.try_recv().ok()));
        limit = match keeper.take(told, is_quiet) {
            Ok(limit) => {
                board.post(keeper.mirror.facts());
                limit
            }
            Err((problem, limit)) => {
                board.fail(&problem);
                limit
            }
        };
        thread::sleep(POSTS_EVERY);
    }
}

struct Keeper<'a> {
    client: &'a Client,
    mirror: &'a mut Mirror,
    /// Why there are no events.
    stream: Option<String>,
    /// The rounds since the last look at the queues, each of which takes [`POSTS_EVERY`] at least.
    rounds: u32,
}

impl Keeper<'_> {
    /// Takes messages. Returns the time until the next look, or the problem and the time until the next try.
    ///
    /// The queues are looked at with the first event after a pause, then at most once a second, and when it is quiet again.
    fn take(
        &mut self,
        told: impl Iterator<Item = Message>,
        is_quiet: bool,
    ) -> Result<Duration, (String, Duration)> {
        let mut any = false;
        for told in told {
            match told {
                Ok(event) => {
                    self.stream = None;
                    any = true;
                    if let Some(event) = event {
                        self.mirror.take(self.client, event).map_err(|error| problem(&error))?;
                    }
                }
                Err(error) => self.stream = Some(error.to_string()),
            }
        }
        self.rounds = self.rounds.saturating_add(1);
        if is_quiet || (any && self.rounds > ROUNDS) {
            self.mirror.refresh(self.client).map_err(|error| problem(&error))?;
            self.rounds = if is_quiet { ROUNDS } else { 0 };
        }
        match &self.stream {
            Some(problem) => Err((problem.clone(), AGAIN_AFTER)),
            None if any => Ok(LOOKS_EVERY),
            None => Ok(AT_LEAST_EVERY),
        }
    }
}

/// Returns a failure in words, and the time until the next try.
fn problem(error: &ClientError) -> (String, Duration) {
    let pause = if matches!(error, ClientError::Refused(_)) { LATER } else { AGAIN_AFTER };
    (error.to_string(), pause)
}
