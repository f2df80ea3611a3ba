//! One queue of the journal, and a second policy in its shadow.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jiff::Timestamp;
use miserly_core::{JobNumber, Time};
use miserly_engine::{CheckpointLine, JournalLine, QueueLine};
use miserly_policies::PolicySpec;

use super::following::{Following, Saved};
use super::row::Row;
use crate::config::unfit;
use crate::store::Line;

/// The most rounds that a shadow is behind. Then it begins again at the next checkpoint.
const MOST_BEHIND: usize = 100_000;

/// A shadow of one queue.
pub(super) struct QueueShadow {
    queue: String,
    policy: PolicySpec,
    /// The number of the next line of the journal.
    next: i64,
    following: Option<Following>,
    /// Whether it began at a checkpoint since this was asked.
    began: bool,
    /// Rows that changed since they were taken.
    changed: Vec<Row>,
    /// Why it does not go on.
    problem: Option<String>,
}

/// How far a shadow is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The policy on the machine.
    pub(super) real_policy: Option<String>,
    /// The instant that it has reached.
    pub(super) until: Option<Timestamp>,
    /// The rounds with events that it has not reached.
    pub(super) behind: u64,
    /// The job that it waits for.
    pub(super) waits_for: Option<JobNumber>,
    /// Why it does not go on.
    pub(super) problem: Option<String>,
}

impl QueueShadow {
    /// Returns a shadow that begins with the first checkpoint from line `next` on.
    pub(super) fn new(queue: String, policy: PolicySpec, next: i64) -> QueueShadow {
        QueueShadow { queue, policy, next, following: None, began: false, changed: vec![], problem: None }
    }

    /// Returns a shadow that goes on from its stored form; nothing if that is not readable.
    pub(super) fn restored(queue: &str, policy: &PolicySpec, text: &str) -> Option<QueueShadow> {
        let saved: Saved = serde_json::from_str(text).ok()?;
        let (next, following) = Following::restored(saved, policy)?;
        let new = QueueShadow::new(queue.to_owned(), policy.clone(), next);
        Some(QueueShadow { following: Some(following), ..new })
    }

    pub(super) fn policy(&self) -> &PolicySpec {
        &self.policy
    }

    /// Returns the number of the line with which it goes on.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// Returns its stored form, if it follows.
    pub(super) fn saved(&self) -> Option<String> {
        let following = self.following.as_ref().filter(|_| self.problem.is_none())?;
        serde_json::to_string(&following.saved(self.next, &self.policy)).ok()
    }

    pub(super) fn progress(&self) -> Progress {
        let following = self.following.as_ref();
        Progress {
            real_policy: following.map(|following| following.real.policy.clone()),
            until: following.map(Following::wall),
            behind: following.map_or(0, |following| following.shadow.behind() as u64),
            waits_for: following.and_then(|following| following.shadow.waits_for()),
            problem: self.problem.clone(),
        }
    }

    /// Returns whether it began at a checkpoint since the last call. Jobs before that have no further outcome.
    pub(super) fn take_began(&mut self) -> bool {
        std::mem::take(&mut self.began)
    }

    /// Returns the rows that changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.changed)
    }

    /// Does something with the shadow. A panic stops the shadow, and is the default of the result.
    pub(super) fn guarded<T: Default>(&mut self, work: impl FnOnce(&mut QueueShadow) -> T) -> T {
        catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|_| {
            self.fail("the policy of the shadow failed (a panic); the daemon's log has more".to_owned());
            T::default()
        })
    }

    /// Stops for a reason.
    fn fail(&mut self, problem: String) {
        (self.following, self.problem) = (None, Some(problem));
    }

    /// Takes in a line of the journal.
    pub(super) fn observe(&mut self, line: &Line) {
        if line.number < self.next || self.problem.is_some() {
            return;
        }
        // Lines that are missing were pruned meanwhile. It begins again at the next checkpoint.
        if line.number > self.next {
            self.following = None;
        }
        self.next = line.number + 1;
        match serde_json::from_str::<JournalLine>(&line.body) {
            Ok(JournalLine::Round(round)) => {
                if let Some(following) = &mut self.following {
                    following.observe(line.number, &round, &mut self.changed);
                    if following.ahead.len() > MOST_BEHIND {
                        tracing::warn!(
                            "queue {}: the shadow is too far behind, and begins again",
                            self.queue
                        );
                        self.following = None;
                    }
                }
            }
            Ok(JournalLine::Began { queues, .. }) => self.set_up(&queues),
            Ok(JournalLine::Checkpoint(checkpoint)) if self.following.is_none() => self.begin(&checkpoint),
            Ok(JournalLine::Stopped { queue, .. } | JournalLine::SetAside { queue, .. })
                if queue == self.queue =>
            {
                self.following = None;
            }
            Ok(JournalLine::Recovered { .. }) | Err(_) => self.following = None,
            Ok(_) => {}
        }
    }

    /// Takes in that nothing else happened until an instant.
    pub(super) fn observe_nothing(&mut self, until: Time) {
        if let Some(following) = &mut self.following {
            following.shadow.observe_nothing(until);
        }
    }

    /// Simulates as far as the queue is known. Returns whether there is more to do.
    pub(super) fn advance(&mut self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let Some(following) = &mut self.following else { return false };
        let mut stopped = false;
        let events = following.shadow.advance(&mut || {
            stopped = !goes_on();
            !stopped
        });
        match events {
            Ok(events) => following.take(&events, &mut self.changed),
            Err(violation) => {
                let problem = format!("policy {}: {violation}", self.policy);
                self.fail(problem);
                return false;
            }
        }
        let behind = following.shadow.behind();
        while following.ahead.len() > behind {
            following.ahead.pop_front();
        }
        stopped
    }

    /// Takes in another setup of the daemon. With another pool, it begins again at the checkpoint that follows.
    fn set_up(&mut self, queues: &[QueueLine]) {
        let position = queues.iter().position(|queue| queue.name == self.queue);
        let found = position.and_then(|at| Some((u32::try_from(at).ok()?, &queues[at])));
        self.following = self.following.take().zip(found).and_then(|(following, (position, real))| {
            let pool = |line: &QueueLine| (line.pool.clone(), line.again, line.once.clone());
            let same = pool(&following.real) == pool(real);
            same.then(|| Following { position, real: real.clone(), ..following })
        });
    }

    fn begin(&mut self, checkpoint: &CheckpointLine) {
        let queues = &checkpoint.queues;
        let Some(at) = queues.iter().position(|queue| queue.queue.name == self.queue) else { return };
        let Ok(real) = queues[at].queue.policy.parse::<PolicySpec>() else { return };
        // The queue may have another policy later.
        if unfit(&real.needs()).is_none()
            && let Ok(position) = u32::try_from(at)
        {
            self.following = Following::beginning(checkpoint, &queues[at], position, &self.policy);
            if self.following.is_some() {
                self.began = true;
                self.changed.clear();
            }
        }
    }
}
