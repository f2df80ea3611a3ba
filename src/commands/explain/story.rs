//! What happened to a job, and how it is told.

use miserly_core::{Broken, Reason, Request, Span, Time};
use miserly_report::{count, duration};

/// How many of those who passed a job are named on a terminal.
const NAMED: usize = 10;

/// What happened to a job.
pub(super) struct Story {
    pub(super) request: Request,
    pub(super) free: u64,
    pub(super) waiting: usize,
    /// How its reserved start moved: when, to when, and what that was.
    pub(super) moves: Vec<Move>,
    pub(super) passed_by: Vec<Passer>,
    pub(super) start: Option<(Time, Reason)>,
    pub(super) end: Option<(Time, bool)>,
}

#[derive(Clone, Copy)]
pub(super) struct Move {
    pub(super) at: Time,
    pub(super) start: Time,
    pub(super) kind: MoveKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveKind {
    Promised,
    Planned,
    Broken(Broken),
}

/// A job that was submitted later and started earlier.
pub(super) struct Passer {
    pub(super) request: Request,
    pub(super) start: Time,
    pub(super) reason: Reason,
}

impl Story {
    pub(super) fn told(&self, policy: &str) -> String {
        let request = &self.request;
        let mut text = format!(
            "job {}: {} processors, estimate {}, under {policy}\n\n",
            request.number,
            count(request.procs()),
            span(request.estimate)
        );
        let mut line = |at: Time, what: String| {
            text.push_str(&format!("{:>12}  {what}\n", at.to_string()));
        };
        let queue = match self.waiting {
            0 => "nobody waiting".to_owned(),
            1 => "1 job waiting".to_owned(),
            waiting => format!("{} jobs waiting", count(waiting as u64)),
        };
        line(request.submit, format!("submitted; {} processors were free, {queue}", count(self.free)));
        for moved in &self.moves {
            line(moved.at, moved.told());
        }
        if let Some((start, reason)) = self.start {
            line(
                start,
                format!("started {}, after {} of waiting", told(reason), span(start - request.submit)),
            );
        }
        if let Some((end, killed)) = self.end {
            line(end, if killed { "killed at the log's estimate".into() } else { "ended".to_owned() });
        }
        text.push_str(&self.passers());
        text.push_str("\nTimes are seconds of the log.\n");
        text
    }

    fn passers(&self) -> String {
        if self.passed_by.is_empty() {
            return "\nNo job that was submitted later started before it.\n".into();
        }
        let passers = match self.passed_by.len() {
            1 => "1 job".to_owned(),
            more => format!("{} jobs", count(more as u64)),
        };
        let mut text = format!("\nStarted before it, though submitted later: {passers}\n");
        for passer in self.passed_by.iter().take(NAMED) {
            text.push_str(&format!(
                "{:>12}  job {}: {} processors, estimate {}, {}\n",
                passer.start.to_string(),
                passer.request.number,
                count(passer.request.procs()),
                span(passer.request.estimate),
                passer.reason.as_str().replace('_', " "),
            ));
        }
        if self.passed_by.len() > NAMED {
            text.push_str(&format!(
                "{:>12}  and {} more (--json has all)\n",
                "",
                self.passed_by.len() - NAMED
            ));
        }
        text
    }
}

impl Move {
    fn told(&self) -> String {
        let ahead = span(self.start - self.at);
        match self.kind {
            MoveKind::Promised => format!("promised a start at {} or before, {ahead} ahead", self.start),
            MoveKind::Planned => format!("reserved at {}, {ahead} ahead (a plan, not a promise)", self.start),
            MoveKind::Broken(Broken::Overdue) => {
                format!("promise broken, a running job is overdue; now {}, {ahead} ahead", self.start)
            }
        }
    }
}

fn told(reason: Reason) -> &'static str {
    match reason {
        Reason::AtOnce => "at once",
        Reason::Reserved => "in its turn (reserved)",
        Reason::Backfilled => "ahead of its turn (backfilled)",
        Reason::Promised => "as promised",
        Reason::Quantum => "for a quantum",
    }
}

fn span(span: Span) -> String {
    if span.ticks() < 1_000_000 { format!("{span}s") } else { duration(span.secs()) }
}
