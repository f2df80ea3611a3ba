//! The thread that supervises all attempts: the waits of a [`ShimLoop`], and its surroundings.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::Receiver;
use std::thread;

use miserly_engine::{Attempt, Input};
use miserly_launcher::{LAUNCHERS, PendingLaunch, Readiness, ShimLoop, Site, Task, run_launch, run_task};
use tokio::sync::mpsc::UnboundedSender;

use super::files::Descriptors;
use super::home::{ConnectedShim, Home};
use super::memory_guard::GuardWaker;
use super::message::{LoopHandle, Message, Waker};
use super::partition_watch::PartitionWatch;
use super::poller::{Poller, Ready};
use super::pool::Pool;

/// The number of threads for tasks other than launches. Launches have threads of their own, so they never wait for processes
/// that do not die.
const HELPERS: usize = 2;

/// What surrounds the loop.
struct Surroundings {
    home: Home,
    launchers: Pool<(Attempt, PendingLaunch)>,
    helpers: Pool<(Attempt, Task)>,
    poller: Poller,
    descriptors: Descriptors,
    guard: GuardWaker,
    reports: UnboundedSender<Input>,
}

impl Site for Surroundings {
    type Host = Home;
    type Partition = PartitionWatch;

    fn host(&self) -> &Home {
        &self.home
    }

    fn report(&self, input: Input) {
        // The receiver is gone only when the daemon ends. The next daemon finds the state.
        let _ = self.reports.send(input);
    }

    fn launch(&self, attempt: Attempt, pending: PendingLaunch) {
        self.launchers.submit((attempt, pending));
    }

    fn submit(&self, attempt: Attempt, task: Task) {
        self.helpers.submit((attempt, task));
    }

    fn watch_exit(&self, number: u64, shim: &ConnectedShim) -> io::Result<()> {
        self.poller.add(shim.0.fd(), Ready::Attempt(Readiness::Exit(number)))
    }

    fn unwatch_exit(&self, shim: &ConnectedShim) {
        self.poller.remove(shim.0.fd());
    }

    fn watch_connection(&self, number: u64, shim: &ConnectedShim) -> io::Result<()> {
        self.poller.add(shim.0.connection(), Ready::Attempt(Readiness::Connection(number)))
    }

    fn unwatch_connection(&self, shim: &ConnectedShim) {
        self.poller.remove(shim.0.connection());
    }

    fn watch_partition(&self, number: u64, attempt: Attempt) -> Option<PartitionWatch> {
        let watch = PartitionWatch::new(self.home.groups.partition(attempt)?)?;
        self.poller.add(watch.as_fd(), Ready::Attempt(Readiness::Partition(number))).ok()?;
        Some(watch)
    }

    fn partition_state(&self, partition: &PartitionWatch) -> Option<String> {
        partition.read()
    }

    fn unwatch_partition(&self, partition: PartitionWatch) {
        self.poller.remove(partition.as_fd());
    }

    fn is_short_of_descriptors(&self) -> bool {
        self.descriptors.are_short()
    }

    fn set_waiting(&self, launches: usize) {
        self.home.notes.set_waiting(launches);
    }

    fn note_shim(&self) {
        self.guard.wake();
    }
}

/// Starts the thread and those for its tasks.
///
/// # Errors
/// If the machine has no thread or descriptor left.
pub(super) fn start(
    home: Home,
    guard: GuardWaker,
    reports: UnboundedSender<Input>,
) -> io::Result<LoopHandle> {
    let (handle, messages, waker) = LoopHandle::new()?;
    let poller = Poller::new()?;
    poller.add(waker.fd(), Ready::Messages)?;
    let (launchers, helpers) = (start_launchers(&home, &handle)?, start_helpers(&home, &handle)?);
    let descriptors = Descriptors::new();
    let site = Surroundings { home, launchers, helpers, poller, descriptors, guard, reports };
    thread::Builder::new().name("shims".to_owned()).stack_size(512 * 1024).spawn(move || {
        if let Err(error) = run(ShimLoop::new(site), &messages, &waker) {
            tracing::error!("the shims are not supervised any more; restart the daemon: {error}");
        }
    })?;
    Ok(handle)
}

fn start_launchers(home: &Home, shims: &LoopHandle) -> io::Result<Pool<(Attempt, PendingLaunch)>> {
    let (home, shims) = (home.clone(), shims.clone());
    Pool::start("launch", LAUNCHERS, move |(attempt, pending)| {
        shims.send(Message::Finished(attempt, run_launch(&home, attempt, pending)));
    })
}

fn start_helpers(home: &Home, shims: &LoopHandle) -> io::Result<Pool<(Attempt, Task)>> {
    let (home, shims) = (home.clone(), shims.clone());
    Pool::start("attempts", HELPERS, move |(attempt, task)| {
        if let Some(result) = run_task(&home, attempt, task) {
            shims.send(Message::Finished(attempt, result));
        }
    })
}

/// Supervises attempts until the end of the messages.
fn run(
    mut shims: ShimLoop<Surroundings>,
    messages: &Receiver<Option<Message>>,
    waker: &Waker,
) -> io::Result<()> {
    loop {
        let all_ready = shims.site().poller.wait(shims.next())?;
        if all_ready.contains(&Ready::Messages) {
            waker.clear();
        }
        while let Ok(message) = messages.try_recv() {
            let Some(message) = message else { return Ok(()) };
            shims.handle(message);
        }
        for ready in all_ready {
            if let Ready::Attempt(ready) = ready {
                shims.ready(ready);
            }
        }
        shims.advance();
    }
}
