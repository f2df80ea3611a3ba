//! A daemon that is followed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::client::{Client, ClientError, DaemonSocket};
use miserly_api::model::{Filter, Status};
use miserly_view::{DaemonFacts, Facts, Job, State, job_of};

use crate::Board;

/// The time between two looks at a daemon.
const EVERY: Duration = Duration::from_secs(1);

/// The most ended jobs that are read at the start.
const ENDED_MOST: u32 = 10_000;

/// A daemon that is followed on a thread, until this is dropped.
#[derive(Debug)]
pub struct Following {
    board: Board,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    /// Returns the facts of the daemon.
    pub fn board(&self) -> &Board {
        &self.board
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was reported by itself.
            let _ = thread.join();
        }
    }
}

/// Follows a daemon: reads its state, and then every change.
///
/// # Errors
/// If the daemon does not answer the first time. Later failures are posted on the board, and it is tried again.
pub fn follow(socket: DaemonSocket) -> Result<Following, ClientError> {
    let path = socket.path.clone();
    let system = move |error: io::Error| ClientError::NoDaemon { socket: path.clone(), error };
    let client = Client::of(socket).map_err(&system)?;
    let mut mirror = Mirror::read(&client)?;
    let board = Board::new(mirror.facts(&client)?);
    let stop = Arc::new(AtomicBool::new(false));
    let (posted, stopped) = (board.clone(), Arc::clone(&stop));
    let thread = std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::park_timeout(EVERY);
                match mirror.refresh(&client).and_then(|()| mirror.facts(&client)) {
                    Ok(facts) => posted.post(facts),
                    Err(error) => posted.fail(&error.to_string()),
                }
            }
        })
        .map_err(system)?;
    Ok(Following { board, stop, thread: Some(thread) })
}

/// What is known of a daemon.
struct Mirror {
    status: Status,
    jobs: BTreeMap<i64, Job>,
    machine: String,
}

impl Mirror {
    fn read(client: &Client) -> Result<Mirror, ClientError> {
        let status = client.status()?;
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut mirror = Mirror { status, jobs: BTreeMap::new(), machine };
        let ended = Filter { all: true, limit: Some(ENDED_MOST), ..Filter::default() };
        for job in client.all_jobs(&ended)? {
            mirror.jobs.extend(job_of(&job, &mirror.status.queues).map(|known| (job.number, known)));
        }
        mirror.refresh(client)?;
        Ok(mirror)
    }

    fn refresh(&mut self, client: &Client) -> Result<(), ClientError> {
        self.status = client.status()?;
        let unfinished = client.all_jobs(&Filter::default())?;
        let mut gone: Vec<i64> =
            self.jobs.values().filter(|job| job.state != State::Ended).map(|job| job.number).collect();
        gone.retain(|number| unfinished.binary_search_by_key(number, |job| job.number).is_err());
        let ended = gone.into_iter().map(|number| client.job(number));
        for job in unfinished.into_iter().map(Ok).chain(ended) {
            let job = job?;
            self.jobs.extend(job_of(&job, &self.status.queues).map(|known| (job.number, known)));
        }
        Ok(())
    }

    fn facts(&mut self, client: &Client) -> Result<Facts, ClientError> {
        let pools = client.pools()?;
        Ok(Facts::from(DaemonFacts {
            status: &self.status,
            pools: &pools,
            jobs: self.jobs.values().cloned().collect(),
            now: Timestamp::now(),
            zone: TimeZone::system(),
            uid: rustix::process::geteuid().as_raw(),
            machine: &self.machine,
        }))
    }
}
