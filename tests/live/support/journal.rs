//! The promises in a journal, counted independently of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use miserly_engine::{EffectLine, JournalLine, RoundLine, SavedBreachCause};
use miserly_live::store::{History, Line};

/// The outcome of all promises.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The jobs that were promised a start.
    pub(crate) given: BTreeSet<i64>,
    /// The jobs to which a promise was broken by a policy, for a cause outside it.
    pub(crate) broken: BTreeSet<i64>,
    /// The late starts: the job, the delay in ticks, and the first cause of the breach.
    pub(crate) late: Vec<(i64, i64, SavedBreachCause)>,
    standing: BTreeMap<i64, Standing>,
}

/// The promises to one job since its submission.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// The earliest promised start before the breach, in ticks.
    best: i64,
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
                EffectLine::Broken { job, why, .. } => self.breaks(job, why),
                EffectLine::Started { job, .. } => self.started(job, round.at),
                _ => {}
            }
        }
    }

    fn promised(&mut self, job: i64, latest: i64) {
        match self.standing.get_mut(&job) {
            None => {
                self.given.insert(job);
                self.standing.insert(job, Standing { best: latest, broken: None });
            }
            Some(standing) if standing.broken.is_none() => standing.best = latest,
            Some(_) => {}
        }
    }

    #[track_caller]
    fn breaks(&mut self, job: i64, why: SavedBreachCause) {
        self.broken.insert(job);
        let standing =
            self.standing.get_mut(&job).unwrap_or_else(|| panic!("job {job} was promised nothing"));
        standing.broken.get_or_insert(why);
    }

    #[track_caller]
    fn started(&mut self, job: i64, at: i64) {
        let Some(Standing { best, broken }) = self.standing.get(&job).copied() else { return };
        if at > best {
            let why = broken.unwrap_or_else(|| panic!("job {job} was promised {best} and started at {at}"));
            self.late.push((job, at - best, why));
        }
    }
}
