//! The loop that supervises all attempts, without its waits.
//!
//! Its site waits for messages, for what the loop watches, and until [`ShimLoop::next`]. It passes these to the loop, which
//! never waits for one attempt: work that may wait is a task of [`tasks`](crate::tasks).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use miserly_engine::{Action, Attempt, Input};
use miserly_launch::BootTime;
use miserly_marks::{mark, mark_variant};

use crate::attempt::{Begin, Stage, Supervised};
use crate::grants::Grants;
use crate::message::{AttemptMessage, LoopMessage};
use crate::site::{Readiness, ShimOf, Site};
use crate::tasks::{LAUNCHERS, Task, TaskResult};

/// The time after which launches that wait for descriptors are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The supervision of all attempts.
///
/// Each turn begins with any number of [`handle`](ShimLoop::handle) and [`ready`](ShimLoop::ready), and ends with
/// [`advance`](ShimLoop::advance).
pub struct ShimLoop<S: Site> {
    site: S,
    attempts: BTreeMap<Attempt, Supervised<S>>,
    /// The attempts by the numbers under which they are watched.
    numbers: BTreeMap<u64, Attempt>,
    last_number: u64,
    /// The attempts with a message or an event in this turn.
    touched: BTreeSet<Attempt>,
    /// The next step of each attempt that has one.
    deadlines: BTreeSet<(BootTime, Attempt)>,
    deadline_of: BTreeMap<Attempt, BootTime>,
    /// The launches that are not under way, in order. Some may have been given up.
    queue: VecDeque<Attempt>,
    /// The launches under way.
    launching: usize,
    /// The instant until which no launch begins, because the machine shuts down.
    held_until: Option<BootTime>,
    /// The next look at launches that wait.
    look_at: Option<BootTime>,
    pub(crate) grants: Grants,
}

impl<S: Site> ShimLoop<S> {
    /// Returns a loop without attempts.
    pub fn new(site: S) -> ShimLoop<S> {
        ShimLoop {
            site,
            attempts: BTreeMap::new(),
            numbers: BTreeMap::new(),
            last_number: 0,
            touched: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            deadline_of: BTreeMap::new(),
            queue: VecDeque::new(),
            launching: 0,
            held_until: None,
            look_at: None,
            grants: Grants::default(),
        }
    }

    /// Returns the site.
    pub fn site(&self) -> &S {
        &self.site
    }

    /// Returns the instant of the next turn that needs no message and no event.
    pub fn next(&self) -> Option<BootTime> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        [first, self.look_at, self.grants.next(self.site.now())].into_iter().flatten().min()
    }

    /// Handles a message.
    pub fn handle(&mut self, message: LoopMessage<ShimOf<S>>) {
        mark_variant!(&message, LoopMessage { Begin, To, Finished, HoldLaunches });
        match message {
            LoopMessage::Begin(attempt, begin) => self.begin(attempt, begin),
            LoopMessage::To(attempt, AttemptMessage::Do(Action::Forget)) => self.forget(attempt),
            LoopMessage::To(attempt, message) => {
                if let Some(message) = self.grants.admit(attempt, message, self.site.now()) {
                    self.pass_on(attempt, message);
                }
            }
            LoopMessage::Finished(attempt, result) => self.finished(attempt, result),
            LoopMessage::HoldLaunches(time) => self.held_until = Some(self.site.now().after(time)),
        }
    }

    /// Passes a message to an attempt.
    pub(crate) fn pass_on(&mut self, attempt: Attempt, message: AttemptMessage) {
        if let Some(supervised) = self.attempts.get_mut(&attempt) {
            supervised.take(&self.site, message);
            self.touched.insert(attempt);
        }
    }

    pub(crate) fn attempts(&self) -> &BTreeMap<Attempt, Supervised<S>> {
        &self.attempts
    }

    fn begin(&mut self, attempt: Attempt, mut begin: Begin<ShimOf<S>>) {
        if let Begin::Launch(launch) = &mut begin {
            self.grants.launch(attempt, launch, self.site.now());
        }
        self.last_number += 1;
        self.numbers.insert(self.last_number, attempt);
        let supervised = Supervised::begin(&self.site, attempt, self.last_number, begin);
        if matches!(supervised.stage, Stage::Queued(_)) {
            self.queue.push_back(attempt);
        }
        self.attempts.insert(attempt, supervised);
        self.touched.insert(attempt);
    }

    fn finished(&mut self, attempt: Attempt, result: TaskResult<ShimOf<S>>) {
        if !matches!(result, TaskResult::Found(_) | TaskResult::Killed(_)) {
            self.launching -= 1;
        }
        if let Some(supervised) = self.attempts.get_mut(&attempt) {
            supervised.finished(&self.site, result);
            self.touched.insert(attempt);
        }
    }

    /// Sets the files of an attempt aside whose end is on disk. An earlier daemon may not have got
    /// to it.
    fn forget(&mut self, attempt: Attempt) {
        if self.attempts.get(&attempt).is_none_or(|supervised| matches!(supervised.stage, Stage::Over)) {
            mark!("forgotten");
            self.remove(attempt);
            self.site.submit(attempt, Task::Retire);
        }
    }

    fn remove(&mut self, attempt: Attempt) {
        self.grants.forget(attempt);
        if let Some(supervised) = self.attempts.remove(&attempt) {
            self.numbers.remove(&supervised.number);
        }
        self.set_deadline(attempt, None);
    }

    /// Takes note of a change of something watched.
    pub fn ready(&mut self, ready: Readiness) {
        let (Readiness::Exit(number) | Readiness::Connection(number) | Readiness::Partition(number)) = ready;
        let Some(attempt) = self.numbers.get(&number) else { return };
        let Some(supervised) = self.attempts.get_mut(attempt) else { return };
        self.touched.insert(*attempt);
        let Stage::Running(supervision) = &mut supervised.stage else { return };
        match ready {
            Readiness::Exit(_) => supervision.has_exited = true,
            Readiness::Connection(_) => {}
            Readiness::Partition(_) => {
                if let Some(how) = supervision.partition_loss(&self.site) {
                    self.site.report(Input::CapacityLost(*attempt, how));
                }
            }
        }
    }

    /// Takes the steps that are due, and begins launches.
    pub fn advance(&mut self) {
        let now = self.site.now();
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now).map(|(_, attempt)| *attempt);
        self.touched.extend(due);
        loop {
            for attempt in std::mem::take(&mut self.touched) {
                self.advance_one(attempt, now);
            }
            // Windows that were lost in this turn free others, whose commands are sent in it, too.
            self.settle_grants(now);
            if self.touched.is_empty() {
                break;
            }
        }
        self.dispatch();
    }

    fn advance_one(&mut self, attempt: Attempt, now: BootTime) {
        let Some(supervised) = self.attempts.get_mut(&attempt) else { return };
        let was_delayed = matches!(supervised.stage, Stage::Delayed(..));
        supervised.advance(&self.site, now);
        if let Stage::Queued(pending) = &mut supervised.stage
            && was_delayed
        {
            self.grants.repeat(attempt, pending.launch.planned_window.take());
            self.queue.push_back(attempt);
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

    /// Begins queued launches, as long as not too many are under way and there are descriptors.
    fn dispatch(&mut self) {
        self.look_at = self.held_until.filter(|until| *until > self.site.now());
        if self.look_at.is_some() {
            return;
        }
        let mut kept = VecDeque::new();
        while self.launching < LAUNCHERS && !self.queue.is_empty() {
            if self.site.is_short_of_descriptors() {
                // Launches under way use more descriptors than the attempts later.
                self.queue.extend(kept);
                if self.launching == 0 {
                    self.wait_for_descriptors();
                }
                return;
            }
            let Some(attempt) = self.queue.pop_front() else { break };
            if self.is_launch_blocked(attempt) {
                kept.push_back(attempt);
                continue;
            }
            let window = self.window_at_launch(attempt);
            let Some(supervised) = self.attempts.get_mut(&attempt) else { continue };
            if supervised.launch(&self.site, window) {
                self.launching += 1;
            }
        }
        self.queue.append(&mut kept);
        self.site.set_waiting(0);
    }

    fn wait_for_descriptors(&mut self) {
        self.look_at = Some(self.site.now().after(LOOK_AGAIN));
        let (attempts, site) = (&mut self.attempts, &self.site);
        self.queue.retain(|attempt| {
            let Some(supervised) = attempts.get_mut(attempt) else { return false };
            supervised.give_up_if_late(site);
            matches!(supervised.stage, Stage::Queued(_))
        });
        self.site.set_waiting(self.queue.len());
    }
}
