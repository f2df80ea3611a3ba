//! Startup of the engine: loads the stored state and takes over the attempts of the previous daemon.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use miserly_core::{Entry, Fault, JobId, Round, State, System, WakeUps};
use miserly_marks::mark;

use crate::attempt::planned_windows::SentWindows;
use crate::attempt::waiting_shims::WaitingShims;
use crate::batch::PendingBatch;
use crate::cpus::allocator::CpuAllocator;
use crate::cpus::gang::SentSchedules;
use crate::dependency::expected_ends::start_rank;
use crate::dependency::tracker::DependencyTracker;
use crate::job::handles::HandleTable;
use crate::job::instants::JobInstants;
use crate::job::table::JobTable;
use crate::journal::checkpoint_schedule::SinceCheckpoint;
use crate::journal::pruning::Pruning;
use crate::journal::retry::CommitRetry;
use crate::limits::used_time::UsedTime;
use crate::promise::earlier::EarlierPromises;
use crate::queue::compatibility::Compatibility;
use crate::queue::current_setup::CurrentSetup;
use crate::queue::stopped::StoppedQueues;
use crate::submission::request_ids::RequestIds;
use crate::values::EngineValues;
use crate::view::waiters::EndWaiters;
use crate::{
    Absence, Attempt, DaemonInfo, Engine, EngineError, JobRow, Journal, JournalError, JournalLine, Launcher,
    Now, QueueState, Record, Run, Setup, Snapshot, Snapshots, amounts,
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
        let setup = CurrentSetup::load(&journal, setup)?;
        let cpus = CpuAllocator::new(&setup);
        let info = Arc::new(info);
        let snapshots = Snapshots::new(Snapshot::empty(setup.shared(), &info));
        let mut engine = Engine {
            expiry_tried: None,
            setup,
            info,
            began: now.wall,
            launcher,
            journal,
            system: System::new(vec![]),
            wake_ups: WakeUps::default(),
            jobs: JobTable::default(),
            dependencies: DependencyTracker::default(),
            used_time: UsedTime::of_cpus(),
            used_gpu_time: UsedTime::of_gpus(),
            cpus,
            values: EngineValues::default(),
            earlier: EarlierPromises::default(),
            batch: PendingBatch::default(),
            waiters: EndWaiters::default(),
            retry: CommitRetry::default(),
            pruning: Pruning::at(now.ticks),
            since_checkpoint: SinceCheckpoint::at(now.ticks),
            schedules: SentSchedules::default(),
            stopped: StoppedQueues::default(),
            unrecorded: Arc::default(),
            request_ids: RequestIds::default(),
            reads: VecDeque::new(),
            snapshots,
            start_observer: None,
            windows: SentWindows::default(),
            shims: WaitingShims::default(),
            latest_starts: JobInstants::default(),
            overruns: JobInstants::default(),
        };
        engine.load()?;
        engine.publish();
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
        while let Err(error) = self.apply_beginning(now, absence) {
            mark!("a start sets something aside");
            self.set_aside(now, error)?;
        }
        self.resend_state(now.ticks);
        self.withdraw_again();
        self.expect_windows();
        self.add_planned_windows();
        self.batch.has_setup = true;
        self.report_unreadable();
        if let Err(error) = self.commit(now) {
            mark!("no room for the first commit");
            self.drop_changes()?;
            return Err(error.into());
        }
        self.dispatch(now);
        self.send_slot_schedules();
        self.apply_configuration(now)
    }

    fn apply_beginning(&mut self, now: Now, absence: &Absence) -> Result<(), EngineError> {
        self.batch.line(&JournalLine::began(now.ticks, now.wall, &self.setup));
        self.settle_left_out(now)?;
        self.apply_absence(now, absence.clone())?;
        self.fit_pools(now)?;
        self.settle_dependencies(now, None)
    }

    /// Removes what adopted attempts hold from the pools before the first round: it may start jobs.
    ///
    /// No round of the journal shows that, so a replay goes on at the checkpoint of this batch.
    fn withhold_adopted(&mut self, now: Now) -> Result<(), EngineError> {
        if self.unrecorded.adopted().next().is_none() {
            return Ok(());
        }
        let failed = |rule| JournalError::Damaged(format!("a pool cannot be made: {rule}").into());
        let mut is_changed = false;
        for (place, capacity) in self.pool_capacities() {
            let queue = &mut self.system.queues_mut()[place];
            if queue.ledger().machine().capacity() != capacity {
                mark!("a start knows less than a whole pool");
                queue.restore_capacity(capacity).map_err(failed)?;
                is_changed = true;
            }
        }
        for (place, cell, lost) in self.changed_losses() {
            let queue = &mut self.system.queues_mut()[place as usize];
            queue.restore_losses(cell, lost).map_err(failed)?;
            is_changed = true;
        }
        if is_changed && !std::mem::replace(&mut self.batch.has_setup, true) {
            self.batch.line(&JournalLine::Recovered { wall: now.wall });
        }
        Ok(())
    }

    /// Applies at the present instant everything that happened while no daemon ran or the machine slept.
    ///
    /// # Errors
    /// [`EngineError::NotStarted`] if a window that began has no start in the ledger: an overdue job is there, or the ledger has other
    /// plans. Then the windows are adopted before anything else, and the caller applies its inputs again.
    pub(crate) fn apply_absence(&mut self, now: Now, absence: Absence) -> Result<(), EngineError> {
        mark!("an absence");
        self.withhold_adopted(now)?;
        let begun = self.not_started(absence.begun.clone());
        self.batch.taken = begun.into_iter().flat_map(|begun| begun.cpus).collect();
        self.begin_all_waiting(absence.launched.iter().copied());
        self.begin_all_waiting(absence.begun.iter().map(|begun| (begun.attempt, now.ticks)));
        self.judge_launches(now, &absence.launched);
        // Not at the instants at which it was due: no action followed then.
        let at = self.values.next_instant(now.ticks);
        let mut round = Round { fault: Some(Fault::Away), ..Round::default() };
        self.record_usage(&absence.used);
        self.record_epilogs(absence.epilogs);
        self.move_late_windows(now, &absence.launched, &absence.ended, &mut round);
        for (attempt, outcome) in absence.ended {
            self.end_attempt(now, at, attempt, &outcome, &mut round);
        }
        self.give_up_late(now, at, &mut round);
        self.find_overdue(at, &mut round);
        self.update_dependencies(now, at, &mut round)?;
        self.apply_begun_windows(at, absence.begun.clone(), &mut round);
        self.play(now, at, round)?;
        let not_started = self.not_started(absence.begun);
        if !not_started.is_empty() {
            mark!("a begun window has no start in the ledger");
            return Err(EngineError::NotStarted(not_started));
        }
        self.settle_dependencies(now, Some(Fault::Away))
    }

    /// Replaces all changes of the batch by the stored state.
    ///
    /// Adoptions are in no state. Those that ended with the batch go on.
    pub(crate) fn drop_changes(&mut self) -> Result<(), EngineError> {
        let PendingBatch { released, .. } = std::mem::take(&mut self.batch);
        if !released.is_empty() {
            mark!("an adoption goes on after its batch was dropped");
            self.adopt(released);
        }
        self.load()
    }

    /// Replaces the state in memory by the stored state.
    pub(crate) fn load(&mut self) -> Result<(), EngineError> {
        self.setup.roll_back();
        self.shims.plan_again();
        let Loaded { jobs, system, earlier, unreadable, left_out } = self.loaded()?;
        self.dependencies = DependencyTracker::new(&self.setup.user_limits, jobs.records());
        self.cpus = self.cpus.anew(&self.setup);
        for Run { cpus, .. } in jobs.records().filter_map(|record| record.run.as_ref()) {
            self.cpus.take_these(cpus);
        }
        (self.jobs, self.system, self.earlier) = (jobs, system, earlier);
        let unrecorded = Arc::make_mut(&mut self.unrecorded);
        unrecorded.set_unreadable(unreadable);
        unrecorded.aside.leave_out(left_out);
        self.values = EngineValues::load(&self.journal, self.info.highest)?;
        self.classify_promises();
        self.used_time = self.used_time.load(&self.journal)?;
        self.used_gpu_time = self.used_gpu_time.load(&self.journal)?;
        self.request_ids = RequestIds::load(&self.journal, &self.jobs)?;
        self.watch_jobs();
        Ok(())
    }

    /// Sets the instants of all jobs anew.
    fn watch_jobs(&mut self) {
        (self.latest_starts, self.overruns) = (JobInstants::default(), JobInstants::default());
        for number in self.jobs.records().map(|record| record.number).collect::<Vec<_>>() {
            self.watch_start(number);
            self.watch_overrun(number);
        }
    }

    /// Returns the stored jobs that have not finished, and the queues over them.
    fn loaded(&self) -> Result<Loaded, EngineError> {
        let (mut records, mut unreadable) = (BTreeMap::new(), vec![]);
        for row in self.journal.live_jobs()? {
            match self.checked_record(&row) {
                Ok(record) => drop(records.insert(row.number, record)),
                Err(problem) => {
                    mark!("a row cannot be read");
                    unreadable.push(row.unreadable(problem));
                }
            }
        }
        let earlier = EarlierPromises::load(&self.journal, &mut records)?;
        let (system, handles, left_out) = self.stored_system(&mut records)?;
        let runs = |record: &Record| {
            matches!(record.entry.as_ref().map(|entry| entry.entry().state), Some(State::Running { .. }))
        };
        let jobs = JobTable::new(records, handles, runs);
        Ok(Loaded { jobs, system, earlier, unreadable, left_out })
    }

    /// Returns the record of a row whose queue exists.
    fn checked_record(&self, row: &JobRow) -> Result<Record, String> {
        let record = Record::read(row)?;
        if self.setup.position(&record.queue).is_none() {
            return Err(format!("its queue {:?} is in the configuration no longer", record.queue));
        }
        Ok(record)
    }

    /// Returns the ledgers and policies of all queues over stored jobs. Takes out the jobs that have no place there, with the reasons.
    fn stored_system(&self, records: &mut BTreeMap<i64, Record>) -> Result<Stored, EngineError> {
        let stored = self.journal.value("queues")?;
        let mut states: BTreeMap<String, QueueState> =
            stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.withhold_aside(records, &mut states);
        let compatibility = Compatibility::new(&self.setup, states.clone());
        let reason = |record: &Record| {
            let conflict = || compatibility.conflict(record).map(|conflict| format!("it {conflict}"));
            self.unrecorded.aside.reason(record).cloned().or_else(conflict)
        };
        let mut left_out = vec![];
        for number in records.keys().copied().collect::<Vec<_>>() {
            let reason = records.get(&number).and_then(reason);
            left_out.extend(reason.and_then(|reason| Some((records.remove(&number)?, reason))));
        }
        loop {
            let (handles, entries) = self.ledger_entries(records);
            let queue = match self.setup.system(entries, states.clone()) {
                Ok(mut system) => {
                    self.stopped.replace_policies(&self.setup.queues, &mut system);
                    return Ok((system, handles, left_out));
                }
                Err(queue) => &*queue.name,
            };
            // The rest of the state is of no use without its jobs.
            if let Some(record) = last_placed(records, queue).and_then(|number| records.remove(&number)) {
                mark!("a queue holds more than its pool");
                left_out.push((record, format!("the jobs of queue {queue} hold more than its pool has")));
            } else if states.remove(queue).is_none() {
                let message = format!("the pool of queue {queue} cannot be made");
                return Err(JournalError::Damaged(message.into()).into());
            }
        }
    }

    /// Removes what the attempts of jobs hold that are set aside from the pools.
    ///
    /// What other jobs hold, too, is lost after their ends.
    fn withhold_aside(&self, records: &BTreeMap<i64, Record>, states: &mut BTreeMap<String, QueueState>) {
        if self.unrecorded.aside.jobs().next().is_none() {
            return;
        }
        let others = records.values().filter(|record| self.unrecorded.aside.reason(record).is_none());
        let held: BTreeSet<u32> =
            others.filter_map(|record| record.run.as_ref()).flat_map(|run| &run.gpus).copied().collect();
        for (place, capacity) in self.pool_capacities() {
            let state = states.entry(self.setup.queues[place].name.clone()).or_default();
            state.capacity = Some(amounts(&capacity));
            state.lost_gpus = self.unrecorded.gpus().difference(&held).copied().collect();
        }
    }

    /// Returns the entries of jobs in the ledgers of the queues, and their handles.
    fn ledger_entries(&self, records: &BTreeMap<i64, Record>) -> (HandleTable, Vec<Vec<(JobId, Entry)>>) {
        let mut handles = HandleTable::default();
        let mut entries: Vec<Vec<(JobId, Entry)>> = self.setup.queues.iter().map(|_| vec![]).collect();
        for record in records.values() {
            // Also for a deferred job, which enters its queue later.
            let Some(queue) = self.setup.position(&record.queue) else { continue };
            if let Some(entry) = record.entry_in(&self.setup, queue) {
                entries[queue].push((handles.assign(record.number), entry));
            }
        }
        (handles, entries)
    }
}

/// The queues over their jobs, the handles of the jobs, and the jobs that have no place there, with the reasons.
type Stored = (System, HandleTable, Vec<(Record, String)>);

/// Returns the job of a queue that was placed last: the last one to start, or else the last one to be submitted.
fn last_placed(records: &BTreeMap<i64, Record>, queue: &str) -> Option<i64> {
    let placed = records.values().filter(|record| *record.queue == *queue);
    let placed = placed.filter_map(|record| Some((record.number, record.ledger_entry()?)));
    let rank = |entry: &Entry| (entry.state != State::Waiting, start_rank(entry));
    placed.max_by_key(|(_, entry)| rank(entry)).map(|(number, _)| number)
}

/// The stored jobs that have not finished, and the queues over them.
struct Loaded {
    jobs: JobTable,
    system: System,
    earlier: EarlierPromises,
    unreadable: Vec<JobRow>,
    /// The jobs that have no place in the ledgers, with the reasons.
    left_out: Vec<(Record, String)>,
}

/// The unfinished jobs in a stored state, as a launcher needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredJobs {
    /// The attempts that the state considers alive. Those of rows that cannot be read are unknown.
    pub attempts: Vec<Attempt>,
    /// The jobs whose rows cannot be read.
    pub unreadable: BTreeSet<i64>,
}

impl StoredJobs {
    /// Returns those of a journal. Each row is read once.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn load(journal: &impl Journal) -> Result<StoredJobs, EngineError> {
        let mut jobs = StoredJobs::default();
        for row in journal.live_jobs()? {
            match Record::read(&row) {
                Ok(record) => {
                    jobs.attempts.extend(record.attempt());
                    jobs.attempts.extend(record.waiting_attempt());
                }
                Err(_) => drop(jobs.unreadable.insert(row.number)),
            }
        }
        Ok(jobs)
    }
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
            match serde_json::from_str(line) {
                Ok(JournalLine::Round(round)) => {
                    highest = round.submitted.iter().map(|job| job.number).fold(highest, i64::max);
                }
                Ok(JournalLine::Checkpoint(checkpoint)) => {
                    let jobs = checkpoint.queues.iter().flat_map(|queue| &queue.jobs);
                    highest = jobs.map(|job| job.request.number).fold(highest, i64::max);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(highest)
}
