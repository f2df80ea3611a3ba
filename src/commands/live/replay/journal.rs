//! The journal, as stretches of rounds that can be compared, and the times between them.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;
use miserly_engine::{CheckpointLine, JournalLine, OpportunisticLine, QueueLine, RoundLine};
use miserly_live::store::{History, Line, Segment};
use serde::Serialize;

/// The setup of the daemon.
#[derive(Clone, PartialEq)]
pub(super) struct Began {
    pub(super) queues: Vec<QueueLine>,
    pub(super) opportunistic: Option<OpportunisticLine>,
}

/// Rounds that follow each other, from the beginning of the journal or from a checkpoint.
pub(super) struct Stretch {
    pub(super) first: Began,
    /// The checkpoint; `None` at the beginning of the journal, where no queue has jobs.
    pub(super) checkpoint: Option<Box<CheckpointLine>>,
    /// Later setups, each with the number of rounds before it.
    pub(super) changes: Vec<(usize, Began)>,
    pub(super) rounds: Vec<RoundLine>,
}

/// Why rounds are not compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// These lines are not in the journal, the first and the last.
    Lost(i64, i64),
    /// The state was recovered.
    Recovered,
    /// A job could not be placed.
    SetAside { job: i64, reason: String },
    /// The mistake of a policy, and its queue.
    Stopped { queue: String, mistake: String },
}

/// A time in which rounds are not compared.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Missing {
    /// The last line before.
    pub(super) from: Option<Timestamp>,
    /// The checkpoint at which the comparison goes on, if there is one.
    pub(super) until: Option<Timestamp>,
    pub(super) cause: Cause,
}

/// The content of the journal.
#[derive(Default)]
pub(super) struct Lived {
    /// The first checkpoint, if the comparison does not begin with the first daemon.
    pub(super) since: Option<Timestamp>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) missing: Vec<Missing>,
}

/// Reads the journal of a state, from the newest checkpoint at `from` or before, or else from its beginning.
pub(super) fn read(state: &Path, from: Option<Timestamp>) -> anyhow::Result<Lived> {
    let history = History::open(state)?;
    let first = first_line(&history.segments()?, from);
    let mut reader = Reader { next: first, ..Reader::default() };
    let mut problem = None;
    history.journal(first.unwrap_or(1), &mut |line| match reader.line(&line) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            problem = Some(error.context(format!("line {} of the journal", line.number)));
            ControlFlow::Break(())
        }
    })?;
    match problem {
        Some(problem) => Err(problem),
        None => reader.finish(),
    }
}

/// Returns the number of the line with which a replay begins.
fn first_line(segments: &[Segment], from: Option<Timestamp>) -> Option<i64> {
    let sealed = |segment: &&Segment| from.is_some_and(|from| segment.sealed <= from);
    let before = segments.iter().rfind(sealed).map(|segment| segment.last + 1);
    before.or_else(|| segments.first().map(|segment| segment.first))
}

/// Puts lines together.
#[derive(Default)]
pub(super) struct Reader {
    lived: Lived,
    stretch: Option<Stretch>,
    gap: Option<Missing>,
    /// The number of the next line, if none is missing.
    next: Option<i64>,
    /// The wall time of the last line.
    wall: Option<Timestamp>,
}

impl Reader {
    pub(super) fn line(&mut self, line: &Line) -> anyhow::Result<()> {
        let expected = self.next.replace(line.number + 1).unwrap_or(line.number);
        if expected < line.number {
            self.interrupt(Cause::Lost(expected, line.number - 1));
        }
        let content: JournalLine = serde_json::from_str(&line.body)?;
        self.wall = content.wall().or(self.wall);
        match content {
            JournalLine::Began { queues, opportunistic, .. } => {
                self.began(line.number, Began { queues, opportunistic });
            }
            JournalLine::Checkpoint(checkpoint) => self.checkpoint(checkpoint),
            JournalLine::Round(round) => self.round(line.number, *round),
            JournalLine::Stopped { queue, mistake, .. } => self.interrupt(Cause::Stopped { queue, mistake }),
            JournalLine::SetAside { job, reason, .. } => self.interrupt(Cause::SetAside { job, reason }),
            JournalLine::Recovered { .. } => self.interrupt(Cause::Recovered),
            JournalLine::Ended { .. } => {}
        }
        Ok(())
    }

    fn began(&mut self, number: i64, began: Began) {
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
        self.lived.stretches.extend(self.stretch.take());
        let gap = Missing { from: self.wall, until: None, cause };
        self.lived.missing.extend(self.gap.replace(gap).map(|gap| Missing { until: self.wall, ..gap }));
    }

    pub(super) fn finish(mut self) -> anyhow::Result<Lived> {
        self.lived.stretches.extend(self.stretch);
        self.lived.missing.extend(self.gap);
        self.next
            .filter(|next| *next > 1)
            .context("the journal is empty: no daemon has run with this state")?;
        Ok(self.lived)
    }
}

impl Stretch {
    pub(super) fn new(first: Began, checkpoint: Option<Box<CheckpointLine>>) -> Stretch {
        Stretch { first, checkpoint, changes: vec![], rounds: vec![] }
    }

    /// Changes the setup. Each start of a daemon writes it again.
    fn set_up(&mut self, began: Began) {
        if *self.changes.last().map_or(&self.first, |(_, last)| last) != began {
            self.changes.push((self.rounds.len(), began));
        }
    }
}
