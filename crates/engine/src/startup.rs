//! Startup of the engine: loads the stored state and takes over the attempts of the previous daemon.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{Entry, Fault, JobId, Round, Span, State, System};

use crate::batch::PendingBatch;
use crate::compatibility::Compatibility;
use crate::cpu_allocator::CpuAllocator;
use crate::dependencies::DependencyTracker;
use crate::earlier_promises::EarlierPromises;
use crate::gang::SentSchedules;
use crate::handles::HandleTable;
use crate::jobs::JobTable;
use crate::pruning::Pruning;
use crate::request_ids::RequestIds;
use crate::retry::CommitRetry;
use crate::saved::SavedSetup;
use crate::stopped_queue::StoppedQueues;
use crate::values::EngineValues;
use crate::waiters::EndWaiters;
use crate::{
    Absence, Attempt, DaemonInfo, Engine, EngineError, JobRow, Journal, JournalLine, Launcher, Now,
    QueueState, Record, Run, Setup,
};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns an engine over the stored state. [`begin`](Engine::begin) starts its work.
    ///
    /// # Errors
    /// If the state cannot be read or contradicts itself or the setup.
    pub fn open(
        setup: Setup,
        info: DaemonInfo,
        journal: J,
        launcher: L,
        now: Now,
    ) -> Result<Engine<L, J>, EngineError> {
        // Jobs have their promises under the setup of the last daemon.
        let stored = SavedSetup::load(&journal)?.filter(|stored| *stored != SavedSetup::new(&setup));
        let (setup, configured) = match stored.and_then(|stored| stored.setup()) {
            Some(last) => (last, Some(setup)),
            None => (setup, None),
        };
        let cpus = CpuAllocator::new(&setup);
        let mut engine = Engine {
            setup,
            configured,
            configuration_problem: None,
            info,
            began: now.wall.as_microsecond(),
            launcher,
            journal,
            system: System::new(vec![]),
            jobs: JobTable::default(),
            dependencies: DependencyTracker::default(),
            cpus,
            values: EngineValues::default(),
            earlier: EarlierPromises::default(),
            batch: PendingBatch::default(),
            waiters: EndWaiters::default(),
            retry: CommitRetry::default(),
            pruning: Pruning::at(now.ticks),
            schedules: SentSchedules::default(),
            stopped: StoppedQueues::default(),
            request_ids: RequestIds::default(),
            reads: VecDeque::new(),
        };
        engine.load()?;
        Ok(engine)
    }

    /// Starts the work of a new daemon.
    ///
    /// Applies the ends of attempts and the windows that began without a daemon, then everything that is due. Resends its state
    /// to every living attempt.
    ///
    /// # Errors
    /// As [`process_batch`](Engine::process_batch). If the journal is full nothing has begun, and the call may be repeated.
    pub fn begin(&mut self, now: Now, absence: &Absence) -> Result<(), EngineError> {
        while let Err(error) = self.apply_beginning(now, absence.clone()) {
            self.stop_queue(now, error)?;
        }
        self.move_gang_jobs();
        self.resend_state(now.ticks);
        self.forget_planned_windows();
        self.add_planned_windows();
        self.batch.has_setup = true;
        if let Err(error) = self.commit(now) {
            self.batch = PendingBatch::default();
            self.load()?;
            return Err(error.into());
        }
        self.dispatch(now);
        self.send_slot_schedules();
        self.apply_configuration(now)
    }

    fn apply_beginning(&mut self, now: Now, absence: Absence) -> Result<(), EngineError> {
        self.batch.line(&JournalLine::began(now.ticks, now.wall.as_microsecond(), &self.setup));
        self.apply_absence(now, absence)?;
        self.fit_pools(now)?;
        self.settle_dependencies(now)
    }

    /// Applies at the present instant everything that happened while no daemon ran or the machine slept.
    pub(crate) fn apply_absence(&mut self, now: Now, absence: Absence) -> Result<(), EngineError> {
        // Not at the instants at which it was due: no action followed then.
        let at = now.ticks.max(self.values.last_instant + Span::TICK);
        let mut round = Round { fault: Some(Fault::Away), ..Round::default() };
        for (attempt, outcome) in absence.ended {
            self.end_attempt(now, at, attempt, &outcome, &mut round);
        }
        self.find_overdue(at, &mut round);
        self.update_dependencies(at, &mut round);
        self.apply_begun_windows(at, absence.begun, &mut round);
        self.play(now, at, round)?;
        self.revert_begun_windows(now)
    }

    /// Replaces the state in memory by the stored state.
    pub(crate) fn load(&mut self) -> Result<(), EngineError> {
        let (jobs, system, earlier) = self.loaded()?;
        self.dependencies = DependencyTracker::new(jobs.records());
        self.cpus = self.cpus.anew(&self.setup);
        for Run { cpus, .. } in jobs.records().filter_map(|record| record.run.as_ref()) {
            self.cpus.take_these(cpus);
        }
        (self.jobs, self.system, self.earlier) = (jobs, system, earlier);
        self.values = EngineValues::load(&self.journal, self.info.highest)?;
        Ok(self.load_request_ids()?)
    }

    /// Returns the stored jobs that have not finished, and the queues over them.
    fn loaded(&self) -> Result<(JobTable, System, EarlierPromises), EngineError> {
        let rows = self.journal.live_jobs()?;
        let records = rows.iter().map(|row| Ok((row.number, checked_record(row)?)));
        let mut records = records.collect::<Result<BTreeMap<i64, Record>, EngineError>>()?;
        let earlier = EarlierPromises::load(&self.journal, &mut records)?;
        let mut handles = HandleTable::default();
        let mut entries: Vec<Vec<(JobId, Entry)>> = self.setup.queues.iter().map(|_| vec![]).collect();
        for record in records.values() {
            // Also for a deferred job, which enters its queue later.
            let position = self.setup.position(&record.queue);
            let queue = position.ok_or_else(|| EngineError::InvalidRecord {
                job: record.number,
                problem: format!("its queue {:?} is in the configuration no longer", record.queue),
            })?;
            if let Some(entry) = record.ledger_entry() {
                entries[queue].push((handles.assign(record.number), entry));
            }
        }
        let system = self.stored_system(&records, entries)?;
        let runs = |record: &Record| {
            matches!(record.entry.as_ref().map(|entry| entry.entry().state), Some(State::Running { .. }))
        };
        Ok((JobTable::new(records, handles, runs), system, earlier))
    }

    /// Returns the ledgers and policies of all queues over stored entries.
    fn stored_system(
        &self,
        records: &BTreeMap<i64, Record>,
        entries: Vec<Vec<(JobId, Entry)>>,
    ) -> Result<System, EngineError> {
        let stored = self.journal.value("queues")?;
        let states: BTreeMap<String, QueueState> =
            stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let compatibility = Compatibility::new(&self.setup, states.clone());
        let conflict = |record: &Record| Some((record.number, compatibility.conflict(record)?));
        if let Some((job, problem)) = records.values().find_map(conflict) {
            return Err(EngineError::Incompatible { job, problem });
        }
        let system = self.setup.system(entries, states);
        let mut system = system.map_err(|queue| EngineError::Pool { queue: queue.name.clone() })?;
        self.stop_policies(&mut system);
        Ok(system)
    }
}

/// Returns the attempts that the stored state considers alive.
///
/// # Errors
/// If the state cannot be read.
pub fn attempts(journal: &impl Journal) -> Result<Vec<Attempt>, EngineError> {
    let mut attempts = vec![];
    for row in journal.live_jobs()? {
        attempts.extend(checked_record(&row)?.attempt());
    }
    Ok(attempts)
}

/// Returns the highest job number in the stored state.
///
/// Reads the journal's lines only if the next number is not stored.
///
/// # Errors
/// If the state cannot be read.
pub fn highest(journal: &impl Journal) -> Result<i64, EngineError> {
    let mut highest = journal.highest_job()?;
    if journal.value("next_number")?.is_none() {
        journal.visit_lines(&mut |line| {
            if let Ok(JournalLine::Round(round)) = serde_json::from_str(line) {
                highest = round.submitted.iter().map(|job| job.number).fold(highest, i64::max);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(highest)
}

/// Returns the record of a stored row.
pub(crate) fn record(row: &JobRow) -> Result<Record, Problem> {
    serde_json::from_str(&row.body).map_err(|error| {
        let message = format!("the stored record of job {} is invalid: {error}", row.number);
        Problem::new(ProblemCode::Storage, message)
    })
}

fn checked_record(row: &JobRow) -> Result<Record, EngineError> {
    record(row).map_err(|problem| EngineError::InvalidRecord { job: row.number, problem: problem.message })
}
