//! The promises in a journal, counted independently of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use miserly_core::{Span, Time};
use miserly_engine::{EffectLine, JournalLine, RoundLine, SavedBreachCause};
use miserly_live::store::{History, Line};

/// The slack of promises in a queue that sets none.
const SLACK: Span = Span::from_ticks(2_000_000);

/// The outcome of all promises.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The promises that were given: one to each run of a job.
    pub(crate) given: u64,
    /// The jobs that were promised a start.
    pub(crate) jobs: BTreeSet<i64>,
    /// The starts after the promise: the job, the delay, and the first cause for which its plan moved.
    pub(crate) late: Vec<(i64, Span, SavedBreachCause)>,
    standing: BTreeMap<i64, Standing>,
}

/// The promises to one job since its submission.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// The latest start.
    latest: Time,
    /// The present plan.
    planned: Time,
    broken: Option<SavedBreachCause>,
}

impl Promises {
    /// Returns the promises in a state whose daemon has ended.
    ///
    /// # Panics
    /// If a job started later than its promise without a recorded breach.
    #[track_caller]
    pub(crate) fn read(state: &Path) -> Promises {
        let mut promises = Promises::default();
        let mut see = |line: Line| {
            match serde_json::from_str(&line.body).expect("a line of a journal") {
                JournalLine::Round(round) => promises.round(&round),
                JournalLine::Began { .. }
                | JournalLine::Checkpoint(_)
                | JournalLine::Stopped { .. }
                | JournalLine::SetAside { .. }
                | JournalLine::Recovered { .. }
                | JournalLine::Ended { .. } => {}
            }
            ControlFlow::Continue(())
        };
        History::open(state).expect("a state").journal(1, &mut see).expect("a journal");
        promises
    }

    #[track_caller]
    fn round(&mut self, round: &RoundLine) {
        for request in &round.submitted {
            self.standing.remove(&request.number);
        }
        for effect in &round.effects {
            match *effect {
                EffectLine::Promised { job, latest } => self.promised(job, latest),
                EffectLine::Broken { job, latest, why } => self.breaks(job, latest, why),
                EffectLine::Started { job, .. } => self.started(job, round.at),
                _ => {}
            }
        }
    }

    fn promised(&mut self, job: i64, latest: Time) {
        match self.standing.get_mut(&job) {
            None => {
                self.given += 1;
                self.jobs.insert(job);
                let standing = Standing { latest: latest + SLACK, planned: latest, broken: None };
                self.standing.insert(job, standing);
            }
            Some(standing) => standing.planned = latest,
        }
    }

    #[track_caller]
    fn breaks(&mut self, job: i64, planned: Time, why: SavedBreachCause) {
        let standing =
            self.standing.get_mut(&job).unwrap_or_else(|| panic!("job {job} was promised nothing"));
        standing.planned = planned;
        standing.broken.get_or_insert(why);
    }

    #[track_caller]
    fn started(&mut self, job: i64, at: Time) {
        let Some(Standing { latest, planned, broken }) = self.standing.get(&job).copied() else { return };
        let cause =
            || broken.unwrap_or_else(|| panic!("job {job} was planned for {planned} and started at {at}"));
        if at > planned {
            cause();
        }
        if at > latest {
            self.late.push((job, at - latest, cause()));
        }
    }
}
