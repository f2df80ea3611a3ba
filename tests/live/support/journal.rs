//! What a journal says of promises: the same figures that the daemon counts, counted once more.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use miserly_engine::{EffectLine, JournalLine, RoundLine, SavedBreachCause};
use miserly_live::store::{History, Line};

/// What became of all promises.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// How many were given.
    pub(crate) given: u64,
    /// How often one was broken.
    pub(crate) broken: u64,
    /// The starts that were later than promised: the job, by how many ticks, and what broke its promise first.
    pub(crate) late: Vec<(i64, i64, SavedBreachCause)>,
    standing: BTreeMap<i64, Standing>,
}

/// What one job was promised since it was submitted.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// The best start that it was told before its promise was broken, ticks.
    best: i64,
    broken: Option<SavedBreachCause>,
}

impl Promises {
    /// Those of a state whose daemon has ended.
    ///
    /// # Panics
    /// If a job started past its promise and nothing had broken that.
    #[track_caller]
    pub(crate) fn of(state: &Path) -> Promises {
        let mut promises = Promises::default();
        let mut see = |line: Line| {
            match serde_json::from_str(&line.body).expect("a line of a journal") {
                JournalLine::Round(round) => promises.round(&round),
                JournalLine::Began { .. } | JournalLine::Ended { .. } => {}
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
                self.given += 1;
                self.standing.insert(job, Standing { best: latest, broken: None });
            }
            Some(standing) if standing.broken.is_none() => standing.best = latest,
            Some(_) => {}
        }
    }

    #[track_caller]
    fn breaks(&mut self, job: i64, why: SavedBreachCause) {
        self.broken += 1;
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
