//! The beginning of a daemon: all is as it is on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use miserly_core::{Entry, Fault, JobId, Round, Span, State, System, Time};

use super::cpus::Cpus;
use super::places::Places;
use super::prune::Pruning;
use super::{
    Attempt, Counts, Engine, EngineError, Hands, JournalLine, Kept, Meanwhile, Record, Run, SavedEntry,
    Setup, Stands, Turn,
};
use crate::clock::{Mark, Now};
use crate::model::{Problem, ProblemCode, Unenforced};
use crate::store::{Row, Store};

/// What the engine says of itself, and what it cannot do.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Where the state is.
    pub state: String,
    /// The configuration file.
    pub configuration: Option<String>,
    /// Whose daemon it is, by number: may change every job.
    pub owner: u32,
    /// What cannot be enforced.
    pub unenforced: Vec<Unenforced>,
    /// The highest number that a job is known to have had, apart from what is written down of the next one, which may be lost or
    /// old after damage; see [`highest`].
    pub highest: i64,
    /// How the clock is to be found again; nothing, where it is not the machine's.
    pub mark: Option<Mark>,
}

/// What is on disk of the jobs that are not over.
struct Loaded {
    records: BTreeMap<i64, Record>,
    system: System,
    numbers: Vec<Option<i64>>,
    handles: BTreeMap<i64, JobId>,
}

impl<H: Hands> Engine<H> {
    /// An engine over this state, as it is on disk. Nothing happens yet; see [`begin`](Engine::begin).
    ///
    /// # Errors
    /// If the state cannot be read, or what is in it makes no sense.
    pub fn open(
        setup: Setup,
        about: About,
        store: Store,
        hands: H,
        now: Now,
    ) -> Result<Engine<H>, EngineError> {
        let system = setup.system().map_err(|_| EngineError::Pool { queue: String::new() })?;
        let cpus = Cpus::new(&setup);
        let mut engine = Engine {
            setup,
            unenforced: about.unenforced.clone(),
            owner: about.owner,
            about,
            store,
            hands,
            system,
            records: BTreeMap::new(),
            numbers: vec![],
            handles: BTreeMap::new(),
            running: BTreeSet::new(),
            tied: BTreeSet::new(),
            cpus,
            next_number: 1,
            last: Time::from_ticks(0),
            draining: false,
            counts: Counts::default(),
            waiting: vec![],
            turn: Turn::default(),
            unwritten: vec![],
            retry: None,
            pruning: Pruning::at(now.ticks),
            turns_told: BTreeMap::new(),
            began: now.wall.as_microsecond(),
        };
        engine.reload()?;
        Ok(engine)
    }

    /// Takes up the work: what ended meanwhile has ended, a window that began is one, and what came due is started, first thing.
    ///
    /// # Errors
    /// As [`turn`](Engine::turn); and if what is to be written down finds no room: it can be called again then.
    pub fn begin(&mut self, now: Now, meanwhile: Meanwhile) -> Result<(), EngineError> {
        self.turn.lines.push(super::rounds::json(&JournalLine::began(
            now.ticks,
            now.wall.as_microsecond(),
            &self.setup,
        )));
        self.away(now, meanwhile)?;
        self.fit_pools(now)?;
        self.retie(now)?;
        self.move_in_turns();
        self.tell_again(now.ticks);
        self.forget_told_ahead();
        self.tell_ahead();
        if let Err(error) = self.write_down(now) {
            // Nothing has begun then.
            self.turn = Turn::default();
            self.reload()?;
            return Err(error.into());
        }
        self.carry_out(now);
        self.hand_turns();
        Ok(())
    }

    /// Nobody scheduled until now: all that happened meanwhile happens now.
    pub(super) fn away(&mut self, now: Now, meanwhile: Meanwhile) -> Result<(), EngineError> {
        // Not what was due before: it was not done then.
        let at = now.ticks.max(self.last + Span::TICK);
        let mut round = Round { fault: Some(Fault::Away), ..Round::default() };
        for (attempt, outcome) in meanwhile.over {
            self.over(now, at, attempt, &outcome, &mut round);
        }
        self.find_overdue(at, &mut round);
        self.loosen(at, &mut round);
        self.note_begun(at, meanwhile.critical, &mut round);
        self.play(now, at, round)?;
        self.forget_begun(now)
    }

    /// All is as it is on disk.
    pub(super) fn reload(&mut self) -> Result<(), EngineError> {
        let Loaded { records, system, numbers, handles } = self.load()?;
        let runs = |record: &&Record| {
            matches!(record.entry.as_ref().map(|entry| entry.entry().state), Some(State::Running { .. }))
        };
        self.running = records.values().filter(runs).map(|record| record.number).collect();
        let tied =
            |record: &&Record| record.stands == (Stands::Back { held: false }) || !record.after.is_empty();
        self.tied = records.values().filter(tied).map(|record| record.number).collect();
        self.cpus = self.cpus.anew(&self.setup);
        for Run { cpus, .. } in records.values().filter_map(|record| record.run.as_ref()) {
            self.cpus.take_these(cpus);
        }
        (self.records, self.system, self.numbers, self.handles) = (records, system, numbers, handles);
        self.next_number = self.number_in("next_number")?.unwrap_or(1).max(self.about.highest + 1);
        self.last = Time::from_ticks(self.number_in("last")?.unwrap_or(0));
        self.draining = self.store.meta("draining")?.as_deref() == Some("true");
        let counts = self.store.meta("counts")?;
        self.counts = counts.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(())
    }

    fn number_in(&self, key: &str) -> Result<Option<i64>, EngineError> {
        Ok(self.store.meta(key)?.and_then(|text| text.parse().ok()))
    }

    fn load(&self) -> Result<Loaded, EngineError> {
        let mut records = BTreeMap::new();
        for row in self.store.live_jobs()? {
            let bad = |problem: Problem| EngineError::Record { job: row.number, problem: problem.message };
            let mut record = record(&row).map_err(bad)?;
            if record.is_in() {
                // An earlier version did not write it down.
                record.handover.get_or_insert(self.setup.handover.ticks());
            }
            records.insert(row.number, record);
        }
        let mut numbers = vec![];
        let mut handles = BTreeMap::new();
        let mut entries: Vec<Vec<(JobId, Entry)>> = self.setup.queues.iter().map(|_| vec![]).collect();
        for record in records.values() {
            // Of jobs that are kept back, too: they enter it when their time comes.
            let place = self.setup.queues.iter().position(|queue| queue.name == record.queue);
            let queue = place.ok_or_else(|| EngineError::Record {
                job: record.number,
                problem: format!("its queue {:?} is in the configuration no longer", record.queue),
            })?;
            let Some(entry) = record.entry.as_ref().filter(|_| record.is_in()).map(SavedEntry::entry) else {
                continue;
            };
            let job = JobId(u32::try_from(numbers.len()).unwrap_or(u32::MAX));
            numbers.push(Some(record.number));
            handles.insert(record.number, job);
            entries[queue].push((job, entry));
        }
        let kept = self.store.meta("queues")?;
        let mut kept: BTreeMap<String, Kept> =
            kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let places = Places::of(&self.setup, kept.clone());
        let wrong = |record: &Record| Some((record.number, places.wrong(record)?));
        if let Some((job, problem)) = records.values().find_map(wrong) {
            return Err(EngineError::Place { job, problem });
        }
        let driver = |(queue, entries): (&super::Queue, Vec<(JobId, Entry)>)| {
            let kept = kept.remove(&queue.name).unwrap_or_default().over(queue);
            queue.driver(entries, kept).map_err(|_| EngineError::Pool { queue: queue.name.clone() })
        };
        let queues: Result<_, EngineError> = self.setup.queues.iter().zip(entries).map(driver).collect();
        Ok(Loaded { records, system: self.setup.system_of(queues?), numbers, handles })
    }
}

/// The attempts that were under way, by what is on disk.
///
/// # Errors
/// If that cannot be read.
pub fn attempts(store: &Store) -> Result<Vec<Attempt>, EngineError> {
    let mut attempts = vec![];
    for row in store.live_jobs()? {
        let bad = |problem: Problem| EngineError::Record { job: row.number, problem: problem.message };
        let record = record(&row).map_err(bad)?;
        attempts.extend(record.run.map(|run| Attempt { job: record.number, nth: run.nth }));
    }
    Ok(attempts)
}

/// The highest number of a job that there is a trace of. The journal, which is long, is asked only where nothing says which number
/// comes next.
///
/// # Errors
/// If that cannot be read.
pub fn highest(store: &Store) -> Result<i64, EngineError> {
    let mut highest = store.highest_job();
    if store.meta("next_number")?.is_none() {
        store.journal(1, &mut |line| {
            if let Ok(JournalLine::Round(round)) = serde_json::from_str(&line.body) {
                highest = round.submitted.iter().map(|job| job.number).fold(highest, i64::max);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(highest)
}

/// The record that a row of the store has.
pub(super) fn record(row: &Row) -> Result<Record, Problem> {
    let bad = |error: serde_json::Error| {
        Problem::new(
            ProblemCode::Storage,
            format!("what is on disk of job {} makes no sense: {error}", row.number),
        )
    };
    serde_json::from_str(&row.body).map_err(bad)
}
