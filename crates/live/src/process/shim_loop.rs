//! The thread that supervises all attempts: one event loop over their shims.
//!
//! It waits for messages, for the descriptors of all shims, and for the next instant at which
//! something is due. It never waits for one attempt: work that may wait is a task of
//! [`tasks`](super::tasks).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use miserly_engine::{Action, Attempt, Input};
use miserly_launch::{BootTime, MachineClock as _};
use tokio::sync::mpsc::UnboundedSender;

use super::attempt::{Begin, Stage, Supervised};
use super::files::Descriptors;
use super::home::Home;
use super::message::{AttemptMessage, LoopHandle, LoopMessage, Waker};
use super::notes::LauncherNotes;
use super::poller::{Poller, Ready};
use super::tasks::{LAUNCHERS, Task, TaskResult, Tasks};

/// The time after which launches that wait for descriptors are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What all attempts use.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) home: Home,
    pub(super) tasks: Tasks,
    pub(super) poller: Poller,
    reports: UnboundedSender<Input>,
}

impl Context {
    /// Reports to the engine.
    pub(super) fn report(&self, input: Input) {
        // The receiver is gone only when the daemon ends. The next daemon finds the state.
        let _ = self.reports.send(input);
    }
}

/// The state of the thread.
struct ShimLoop {
    context: Context,
    messages: Receiver<LoopMessage>,
    waker: Waker,
    attempts: BTreeMap<Attempt, Supervised>,
    /// The attempts by the numbers of their descriptors.
    numbers: BTreeMap<u64, Attempt>,
    last_number: u64,
    /// The next step of each attempt that has one.
    deadlines: BTreeSet<(BootTime, Attempt)>,
    deadline_of: BTreeMap<Attempt, BootTime>,
    /// The launches that no thread has yet, in order. Some may have been given up.
    queue: VecDeque<Attempt>,
    /// The launches that threads carry out.
    launching: usize,
    descriptors: Descriptors,
    /// The instant until which no launch begins, because the machine shuts down.
    held_until: Option<BootTime>,
    /// The next look at launches that wait.
    look_at: Option<BootTime>,
    notes: LauncherNotes,
}

/// Starts the thread and those for its tasks.
///
/// # Errors
/// If the machine has no thread or descriptor left.
pub(super) fn start(
    home: Home,
    reports: UnboundedSender<Input>,
    notes: LauncherNotes,
) -> io::Result<LoopHandle> {
    let (handle, messages, waker) = LoopHandle::new()?;
    let poller = Poller::new()?;
    poller.add(waker.fd(), Ready::Messages)?;
    let tasks = Tasks::start(&home, &handle)?;
    let mut shims = ShimLoop {
        context: Context { home, tasks, poller, reports },
        messages,
        waker,
        attempts: BTreeMap::new(),
        numbers: BTreeMap::new(),
        last_number: 0,
        deadlines: BTreeSet::new(),
        deadline_of: BTreeMap::new(),
        queue: VecDeque::new(),
        launching: 0,
        descriptors: Descriptors::new(),
        held_until: None,
        look_at: None,
        notes,
    };
    thread::Builder::new().name("shims".to_owned()).stack_size(512 * 1024).spawn(move || {
        if let Err(error) = shims.run() {
            tracing::error!("the shims are not supervised any more; restart the daemon: {error}");
        }
    })?;
    Ok(handle)
}

impl ShimLoop {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let ready = self.context.poller.wait(self.next())?;
            let mut touched = BTreeSet::new();
            if ready.contains(&Ready::Messages) {
                self.waker.clear();
            }
            while let Ok(message) = self.messages.try_recv() {
                if matches!(message, LoopMessage::End) {
                    return Ok(());
                }
                touched.extend(self.handle(message));
            }
            touched.extend(ready.into_iter().filter_map(|ready| self.ready(ready)));
            let now = BootTime::now();
            touched
                .extend(self.deadlines.iter().take_while(|(at, _)| *at <= now).map(|(_, attempt)| *attempt));
            for attempt in touched {
                self.advance(attempt, now);
            }
            self.dispatch();
        }
    }

    fn next(&self) -> Option<BootTime> {
        self.deadlines.first().map(|(at, _)| *at).into_iter().chain(self.look_at).min()
    }

    /// Handles a message. Returns the attempt that it concerns.
    fn handle(&mut self, message: LoopMessage) -> Option<Attempt> {
        let attempt = match message {
            LoopMessage::Begin(attempt, begin) => {
                self.begin(attempt, begin);
                attempt
            }
            LoopMessage::To(attempt, AttemptMessage::Do(Action::Forget)) => {
                self.forget(attempt);
                return None;
            }
            LoopMessage::To(attempt, message) => {
                self.attempts.get_mut(&attempt)?.take(&self.context, message);
                attempt
            }
            LoopMessage::Finished(attempt, result) => {
                if !matches!(result, TaskResult::Found(_) | TaskResult::Killed(_)) {
                    self.launching -= 1;
                }
                self.attempts.get_mut(&attempt)?.finished(&self.context, result);
                attempt
            }
            LoopMessage::HoldLaunches(time) => {
                self.held_until = Some(BootTime::now().after(time));
                return None;
            }
            LoopMessage::End => return None,
        };
        Some(attempt)
    }

    fn begin(&mut self, attempt: Attempt, begin: Begin) {
        self.last_number += 1;
        self.numbers.insert(self.last_number, attempt);
        let supervised = Supervised::begin(&self.context, attempt, self.last_number, begin);
        if matches!(supervised.stage, Stage::Queued(_)) {
            self.queue.push_back(attempt);
        }
        self.attempts.insert(attempt, supervised);
    }

    /// Sets the files of an attempt aside whose end is on disk. An earlier daemon may not have got
    /// to it.
    fn forget(&mut self, attempt: Attempt) {
        if self.attempts.get(&attempt).is_none_or(|supervised| matches!(supervised.stage, Stage::Over)) {
            self.remove(attempt);
            self.context.tasks.submit(attempt, Task::Retire);
        }
    }

    fn remove(&mut self, attempt: Attempt) {
        if let Some(supervised) = self.attempts.remove(&attempt) {
            self.numbers.remove(&supervised.number);
        }
        self.set_deadline(attempt, None);
    }

    /// Returns the attempt whose descriptor is ready.
    fn ready(&mut self, ready: Ready) -> Option<Attempt> {
        let (Ready::Exit(number) | Ready::Connection(number) | Ready::Partition(number)) = ready else {
            return None;
        };
        let attempt = *self.numbers.get(&number)?;
        match (ready, &mut self.attempts.get_mut(&attempt)?.stage) {
            (Ready::Exit(_), Stage::Running(supervision)) => supervision.has_exited = true,
            (Ready::Partition(_), Stage::Running(supervision)) => {
                if let Some(how) = supervision.partition_loss(&self.context.poller) {
                    self.context.report(Input::CapacityLost(attempt, how));
                }
            }
            _ => {}
        }
        Some(attempt)
    }

    fn advance(&mut self, attempt: Attempt, now: BootTime) {
        let Some(supervised) = self.attempts.get_mut(&attempt) else { return };
        let was_delayed = matches!(supervised.stage, Stage::Delayed(..));
        supervised.advance(&self.context, now);
        if was_delayed && matches!(supervised.stage, Stage::Queued(_)) {
            self.queue.push_back(attempt);
        }
        if supervised.is_done() {
            return self.remove(attempt);
        }
        let next = supervised.next();
        self.set_deadline(attempt, next);
    }

    fn set_deadline(&mut self, attempt: Attempt, next: Option<BootTime>) {
        let before = match next {
            Some(at) => self.deadline_of.insert(attempt, at),
            None => self.deadline_of.remove(&attempt),
        };
        if before != next {
            before.map(|at| self.deadlines.remove(&(at, attempt)));
            self.deadlines.extend(next.map(|at| (at, attempt)));
        }
    }

    /// Gives queued launches to threads, as long as there are threads and descriptors.
    fn dispatch(&mut self) {
        self.look_at = self.held_until.filter(|until| *until > BootTime::now());
        if self.look_at.is_some() {
            return;
        }
        while self.launching < LAUNCHERS && !self.queue.is_empty() {
            if self.descriptors.are_short() {
                // Launches under way use more descriptors than the attempts later.
                if self.launching == 0 {
                    self.wait_for_descriptors();
                }
                return;
            }
            let Some(attempt) = self.queue.pop_front() else { break };
            if self.attempts.get_mut(&attempt).is_some_and(|supervised| supervised.launch(&self.context)) {
                self.launching += 1;
            }
        }
        self.notes.set_waiting(0);
    }

    fn wait_for_descriptors(&mut self) {
        self.look_at = Some(BootTime::now().after(LOOK_AGAIN));
        let (attempts, context) = (&mut self.attempts, &self.context);
        self.queue.retain(|attempt| {
            let Some(supervised) = attempts.get_mut(attempt) else { return false };
            supervised.give_up_if_late(context);
            matches!(supervised.stage, Stage::Queued(_))
        });
        self.notes.set_waiting(self.queue.len());
    }
}
