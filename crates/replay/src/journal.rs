//! The journal, as stretches of rounds that can be compared, and the times between them.

use anyhow::{Context, Result};
use jiff::Timestamp;
use miserly_engine::{CheckpointLine, JournalLine, OpportunisticLine, QueueLine, RoundLine};
use serde::Serialize;

/// The setup of the daemon.
#[derive(Clone, PartialEq)]
pub(crate) struct Began {
    pub(crate) queues: Vec<QueueLine>,
    pub(crate) opportunistic: Option<OpportunisticLine>,
}

/// Rounds that follow each other, from the beginning of the journal or from a checkpoint.
pub(crate) struct Stretch {
    pub(crate) first: Began,
    /// The checkpoint; `None` at the beginning of the journal, where no queue has jobs.
    pub(crate) checkpoint: Option<Box<CheckpointLine>>,
    /// Later setups, each with the number of rounds before it.
    pub(crate) changes: Vec<(usize, Began)>,
    pub(crate) rounds: Vec<RoundLine>,
}

/// Why rounds are not compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// These lines are not in the journal, the first and the last.
    Lost(i64, i64),
    /// The state was recovered.
    Recovered,
    /// The types, parts or shares of the GPUs of a queue changed: the journal does not say which of them its jobs have.
    Gpus {
        /// The queue.
        queue: String,
    },
    /// A job could not be placed.
    SetAside {
        /// The job.
        job: i64,
        /// The reason.
        reason: String,
    },
    /// The mistake of a policy, and its queue.
    Stopped {
        /// The queue.
        queue: String,
        /// The mistake.
        mistake: String,
    },
}

/// A time in which rounds are not compared.
#[derive(Debug, PartialEq, Serialize)]
pub struct Missing {
    /// The last line before.
    pub from: Option<Timestamp>,
    /// The checkpoint at which the comparison goes on, if there is one.
    pub until: Option<Timestamp>,
    /// Why.
    pub cause: Cause,
}

/// The content of the journal.
#[derive(Default)]
pub struct Lived {
    /// The first checkpoint, if the comparison does not begin with the first daemon.
    pub since: Option<Timestamp>,
    pub(crate) stretches: Vec<Stretch>,
    /// The times between the stretches.
    pub missing: Vec<Missing>,
}

/// Puts the lines of a journal together, oldest first.
#[derive(Default)]
pub struct Reader {
    lived: Lived,
    stretch: Option<Stretch>,
    gap: Option<Missing>,
    /// The number of the next line, if none is missing.
    next: Option<i64>,
    /// The wall time of the last line.
    wall: Option<Timestamp>,
}

impl Reader {
    /// Returns a reader that expects this line first. Without a number the first line may have any.
    pub fn from_line(next: Option<i64>) -> Reader {
        Reader { next, ..Reader::default() }
    }

    /// Adds a line of the journal: its number, from 1, and its JSON.
    ///
    /// # Errors
    /// If it is no line of a journal.
    pub fn line(&mut self, number: i64, body: &str) -> Result<()> {
        let expected = self.next.replace(number + 1).unwrap_or(number);
        if expected < number {
            self.interrupt(Cause::Lost(expected, number - 1));
        }
        let content: JournalLine = serde_json::from_str(body)?;
        self.wall = content.wall().or(self.wall);
        match content {
            JournalLine::Began { queues, opportunistic, .. } => {
                self.began(number, Began { queues, opportunistic });
            }
            JournalLine::Checkpoint(checkpoint) => self.checkpoint(checkpoint),
            JournalLine::Round(round) => self.round(number, *round),
            JournalLine::Stopped { queue, mistake, .. } => self.interrupt(Cause::Stopped { queue, mistake }),
            JournalLine::SetAside { job, reason, .. } => self.interrupt(Cause::SetAside { job, reason }),
            JournalLine::Recovered { .. } => self.interrupt(Cause::Recovered),
            JournalLine::Ended { .. } => {}
        }
        Ok(())
    }

    fn began(&mut self, number: i64, began: Began) {
        // The checkpoint of this setup follows.
        if let Some(queue) = self.stretch.as_ref().and_then(|stretch| stretch.other_gpus(&began)) {
            return self.interrupt(Cause::Gpus { queue });
        }
        match &mut self.stretch {
            Some(stretch) => stretch.set_up(began),
            None if number == 1 => self.stretch = Some(Stretch::new(began, None)),
            None => {}
        }
    }

    fn round(&mut self, number: i64, round: RoundLine) {
        match &mut self.stretch {
            Some(stretch) => stretch.rounds.push(round),
            // The lines before the first one are lost.
            None if self.gap.is_none() => self.interrupt(Cause::Lost(1, number - 1)),
            None => {}
        }
    }

    /// Begins a stretch, unless the rounds before are there.
    fn checkpoint(&mut self, checkpoint: Box<CheckpointLine>) {
        if self.stretch.is_some() || !checkpoint.can_begin() {
            return;
        }
        let queues = checkpoint.queues.iter().map(|queue| queue.queue.clone()).collect();
        let began = Began { queues, opportunistic: checkpoint.opportunistic };
        self.stretch = Some(Stretch::new(began, Some(checkpoint)));
        match self.gap.take() {
            Some(gap) => self.lived.missing.push(Missing { until: self.wall, ..gap }),
            None => self.lived.since = self.wall,
        }
    }

    /// Ends the stretch. The comparison goes on at the next checkpoint.
    fn interrupt(&mut self, cause: Cause) {
        // A restore and the start after it are one interruption.
        if cause == Cause::Recovered && self.gap.as_ref().is_some_and(|gap| gap.cause == cause) {
            return;
        }
        self.lived.stretches.extend(self.stretch.take());
        let gap = Missing { from: self.wall, until: None, cause };
        self.lived.missing.extend(self.gap.replace(gap).map(|gap| Missing { until: self.wall, ..gap }));
    }

    /// Returns the content of the journal.
    ///
    /// # Errors
    /// If there was no line.
    pub fn finish(mut self) -> Result<Lived> {
        self.lived.stretches.extend(self.stretch);
        self.lived.missing.extend(self.gap);
        self.next
            .filter(|next| *next > 1)
            .context("the journal is empty: no daemon has run with this state")?;
        Ok(self.lived)
    }
}

impl Stretch {
    pub(crate) fn new(first: Began, checkpoint: Option<Box<CheckpointLine>>) -> Stretch {
        Stretch { first, checkpoint, changes: vec![], rounds: vec![] }
    }

    fn last(&self) -> &Began {
        self.changes.last().map_or(&self.first, |(_, last)| last)
    }

    /// Returns a queue whose policy plans other GPUs under this setup.
    fn other_gpus(&self, began: &Began) -> Option<String> {
        let classed = |of: &QueueLine| of.gpus.clone().filter(|gpus| gpus.by_class);
        let is_other = |queue: &&QueueLine| {
            let before = self.last().queues.iter().find(|before| before.name == queue.name);
            before.is_some_and(|before| classed(before) != classed(queue))
        };
        began.queues.iter().find(is_other).map(|queue| queue.name.clone())
    }

    /// Changes the setup. Each start of a daemon writes it again.
    fn set_up(&mut self, began: Began) {
        if *self.last() != began {
            self.changes.push((self.rounds.len(), began));
        }
    }
}
