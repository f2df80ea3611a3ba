//! The engine: applies batches of inputs, commits their outcome and dispatches it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use miserly_api::model::{OverdueCause, Problem, ProblemCode};
use miserly_core::{System, Time, Violation, WakeUps};
use miserly_marks::{mark, mark_variant};

use crate::attempt::late_start::has_late_end;
use crate::attempt::planned_windows::SentWindows;
use crate::attempt::waiting_shims::WaitingShims;
use crate::batch::PendingBatch;
use crate::cpus::allocator::CpuAllocator;
use crate::cpus::gang::SentSchedules;
use crate::dependency::expected_ends::expected_end;
use crate::dependency::tracker::DependencyTracker;
use crate::job::instants::JobInstants;
use crate::job::table::JobTable;
use crate::job::unrecorded::UnrecordedJobs;
use crate::journal::checkpoint_schedule::SinceCheckpoint;
use crate::journal::pruning::Pruning;
use crate::journal::retry::{CommitRetry, Facts};
use crate::journal::to_json;
use crate::limits::used_time::UsedTime;
use crate::promise::earlier::EarlierPromises;
use crate::queue::current_setup::{CurrentSetup, SETUP};
use crate::queue::stopped::StoppedQueues;
use crate::submission::request_ids::RequestIds;
use crate::values::EngineValues;
use crate::view::waiters::EndWaiters;
use crate::{
    Absence, Attempt, AttemptOutcome, BegunWindow, Caller, DaemonInfo, DaemonRequest, Journal, JournalBatch,
    JournalError, JournalLine, Launcher, Now, Queue, QueueState, Record, Requester, Snapshots, StartObserver,
    Usage,
};

/// An input of the engine.
#[derive(Debug)]
pub enum Input {
    /// A user makes a request.
    Request {
        /// The user.
        caller: Caller,
        /// The request.
        request: Box<DaemonRequest>,
        /// The receiver of the reply.
        requester: Box<dyn Requester>,
    },
    /// The command of an attempt began, at this instant.
    Launched(Attempt, Time),
    /// An attempt has ended.
    AttemptEnded(Attempt, AttemptOutcome),
    /// An attempt has used these resources in all. It comes before its end.
    Used(Attempt, Usage),
    /// The epilog of an attempt failed, for this reason. It comes before its end.
    EpilogFailed(Attempt, String),
    /// An attempt does not end although it shall.
    Overdue(Attempt, OverdueCause),
    /// An attempt uses almost no processor time since an instant, or is active again.
    Idle(Attempt, Option<Time>),
    /// An attempt has lost the sole use of processors that were promised to it, for this reason.
    CapacityLost(Attempt, String),
    /// The processors that are online from now on, by number.
    Online(Vec<u32>),
    /// The shim of an attempt holds this planned window from now on, or none.
    Holds(Attempt, Option<crate::HeldWindow>),
    /// The shim of an attempt began its window by itself, and was told too late not to.
    Began(BegunWindow),
    /// The machine slept until now.
    Slept,
    /// The machine, or the session of the daemon, shuts down.
    ShuttingDown,
}

/// The reason why the engine cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The state cannot be written or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A policy or an event broke a rule, and nothing is left that can be set aside.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Windows began without a daemon, and the ledger has other plans. Their attempts are adopted, and the inputs applied again.
    #[error("windows began that the ledger does not start")]
    NotStarted(Vec<BegunWindow>),
}

/// The daemon's engine.
///
/// Other files continue `impl Engine`:
///
/// | file | methods |
/// |---|---|
/// | `startup`, `attempt::resync` | load the state, take over attempts, resend the state to them |
/// | `rounds`, `effects` | play the events of an instant, apply their effects to the jobs |
/// | `request::handler` | dispatch requests |
/// | `request::selection`, `request::job_changes` | select jobs; cancel, hold and release them in one round |
/// | `request::job_control`, `request::extension` | requeue, extend |
/// | `request::trial`, `request::moves` | play rounds on copies of queues, preview the promises that a change moves |
/// | `submission::submit` | submit |
/// | `attempt::end` | end attempts |
/// | `attempt::late_start` | begin windows late, with their jobs |
/// | `attempt::planned_windows` | plan the windows that shims may begin by themselves |
/// | `attempt::waiting_shims` | launch shims that wait for windows, withdraw them |
/// | `attempt::adoption` | adopt attempts without a record, report jobs that cannot be read |
/// | `dependency::conditions` | end jobs that wait for another end of a job |
/// | `dependency::release` | submit jobs that waited for other jobs or for an instant |
/// | `cpus::capacity` | change processors |
/// | `cpus::gang` | pass the slots to the launcher |
/// | `queue::reconfiguration`, `queue::reservations` | change the setup, reserve parts of pools |
/// | `job::set_aside` | stop queues, set aside jobs that cannot be placed |
/// | `limits` | check the limits of users, show them |
/// | `journal::checkpoint_schedule` | write checkpoints into the journal |
/// | `journal::pruning` | remove old jobs and old lines from the journal |
/// | `view::snapshot` | publish the durable state, from which requests that change no job are answered |
///
/// And others `impl Snapshot`: `submission::quote`, and those in `view`.
pub struct Engine<L, J> {
    pub(crate) setup: CurrentSetup,
    /// The last attempt to remove past reservations.
    pub(crate) expiry_tried: Option<Time>,
    pub(crate) info: Arc<DaemonInfo>,
    /// The wall time at which this daemon began.
    pub(crate) began: Timestamp,
    pub(crate) launcher: L,
    pub(crate) journal: J,
    pub(crate) system: System,
    /// The wake-ups of the system at the last commit. A ledger does not have them.
    pub(crate) wake_ups: WakeUps,
    pub(crate) jobs: JobTable,
    pub(crate) dependencies: DependencyTracker,
    pub(crate) used_time: UsedTime,
    /// The time of GPUs in windows that have ended.
    pub(crate) used_gpu_time: UsedTime,
    pub(crate) cpus: CpuAllocator,
    pub(crate) values: EngineValues,
    pub(crate) earlier: EarlierPromises,
    pub(crate) batch: PendingBatch,
    pub(crate) waiters: EndWaiters,
    pub(crate) retry: CommitRetry,
    pub(crate) pruning: Pruning,
    pub(crate) since_checkpoint: SinceCheckpoint,
    pub(crate) schedules: SentSchedules,
    pub(crate) stopped: StoppedQueues,
    /// The jobs without a usable record.
    pub(crate) unrecorded: Arc<UnrecordedJobs>,
    pub(crate) request_ids: RequestIds,
    /// The requests that only read, until the batch is committed or has failed.
    pub(crate) reads: VecDeque<(Caller, DaemonRequest, Box<dyn Requester>)>,
    /// The durable state, for readers.
    pub(crate) snapshots: Snapshots,
    pub(crate) start_observer: Option<StartObserver>,
    /// The planned windows that shims have.
    pub(crate) windows: SentWindows,
    pub(crate) shims: WaitingShims,
    /// The instants at which jobs are given up that have not run by then.
    pub(crate) latest_starts: JobInstants,
    /// The instants at which it is decided whether jobs run on past their windows.
    pub(crate) overruns: JobInstants,
}

/// The inputs of a batch, by kind. Requests are taken as they are handled.
struct Inputs {
    facts: Facts,
    /// Whether nothing was done for a while: the machine slept, or the last commit failed.
    away: bool,
    shuts_down: bool,
    /// The windows that shims hold now.
    held: Vec<(Attempt, Option<crate::HeldWindow>)>,
    requests: VecDeque<(Caller, Box<DaemonRequest>, Box<dyn Requester>)>,
}

impl Inputs {
    /// Returns the inputs, after the facts that a failed commit left.
    fn new(left: Option<Facts>, inputs: Vec<Input>) -> Inputs {
        let away = left.is_some();
        let facts = left.unwrap_or_default();
        let (held, requests) = (vec![], VecDeque::new());
        let mut sorted = Inputs { facts, away, shuts_down: false, held, requests };
        for input in inputs {
            mark_variant!(
                &input,
                Input {
                    Request,
                    Launched,
                    AttemptEnded,
                    Used,
                    EpilogFailed,
                    Overdue,
                    Idle,
                    CapacityLost,
                    Online,
                    Slept,
                    ShuttingDown,
                    Holds,
                    Began,
                }
            );
            match input {
                Input::Launched(attempt, at) => sorted.facts.launches.push((attempt, at)),
                Input::AttemptEnded(attempt, outcome) => sorted.facts.ends.push((attempt, outcome)),
                Input::Used(attempt, usage) => sorted.facts.used.push((attempt, usage)),
                Input::EpilogFailed(attempt, why) => sorted.facts.epilogs.push((attempt, why)),
                Input::Overdue(attempt, cause) => sorted.facts.overdue.push((attempt, cause)),
                Input::Idle(attempt, since) => sorted.facts.idle.push((attempt, since)),
                Input::CapacityLost(attempt, how) => sorted.facts.losses.push((attempt, how)),
                Input::Holds(attempt, window) => sorted.held.push((attempt, window)),
                Input::Began(begun) => sorted.facts.begun.push(begun),
                Input::Slept => sorted.away = true,
                Input::ShuttingDown => sorted.shuts_down = true,
                Input::Online(cpus) => sorted.facts.online = Some(cpus),
                Input::Request { caller, request, requester } => {
                    sorted.requests.push_back((caller, request, requester));
                }
            }
        }
        sorted
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Calls `observer` for each start from now on.
    pub fn observe_starts(&mut self, observer: StartObserver) {
        self.start_observer = Some(observer);
    }

    /// Applies inputs, and everything that was due until now. Commits the outcome, then dispatches actions and replies.
    ///
    /// If the commit fails for lack of space, everything is rolled back and requesters are informed. Facts, such as the
    /// ends of attempts, are applied again later, and what was due meanwhile is late because of that. Requests that change nothing are answered from the durable state in any case.
    ///
    /// # Errors
    /// If the journal fails in any other way. What breaks a rule is set aside.
    pub fn process_batch(&mut self, now: Now, inputs: Vec<Input>) -> Result<(), EngineError> {
        let mut inputs = Inputs::new(self.retry.begin(), inputs);
        self.windows.hold(std::mem::take(&mut inputs.held));
        self.note_shutdown(now, inputs.shuts_down);
        while let Err(error) = self.apply_inputs(now, &mut inputs) {
            self.set_aside(now, error)?;
        }
        let Inputs { facts, .. } = inputs;
        self.add_planned_windows();
        match self.commit(now) {
            Ok(()) => self.dispatch(now),
            Err(error @ JournalError::Full(_)) => {
                mark!("the journal is full");
                return self.rollback(now, &error, facts);
            }
            Err(error) => {
                mark!("the journal fails");
                return Err(error.into());
            }
        }
        self.prune(now)
    }

    /// Returns the instant at which the engine needs a batch if no input arrives before.
    pub fn next_wakeup(&self) -> Option<Time> {
        if !self.reads.is_empty() {
            return Some(Time::ZERO);
        }
        // Until the journal takes the facts, nothing else is played.
        let open = self.dependencies.is_unsettled().then_some(self.values.last_instant());
        let due = || {
            let overrun = self.overruns.next();
            self.next_due().into_iter().chain(overrun).chain(self.next_pruning()).chain(open).min()
        };
        self.retry.at().or_else(due)
    }

    /// Returns the instant of the next event that no input announces.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let end = self.jobs.next_end();
        debug_assert_eq!(
            end,
            self.jobs.running().filter_map(|number| expected_end(self.entry(number)?)).min()
        );
        let given_up = self.latest_starts.next();
        end.into_iter().chain(given_up).chain(self.dependencies.next_due()).chain(self.system.wake()).min()
    }

    /// Applies ends of attempts at their instants, with everything that was due between them, then all other inputs.
    fn apply_inputs(&mut self, now: Now, inputs: &mut Inputs) -> Result<(), EngineError> {
        let Facts { launches, ends, used, epilogs, begun, overdue, idle, losses, online } =
            inputs.facts.clone();
        self.settle_left_out(now)?;
        // After a failed commit no action followed what was due.
        let was_away = inputs.away
            || self.has_stalled(now)
            || has_late_end(now, &ends)
            || !begun.is_empty()
            || self.has_late_launch(&launches);
        if was_away {
            mark!("an absence without a restart");
            let begun = self.windows_begun(now, &ends, begun);
            self.apply_absence(now, Absence { ended: ends, launched: launches, used, epilogs, begun })?;
        } else {
            self.begin_all_waiting(launches.iter().copied());
            self.judge_launches(now, &launches);
            self.record_usage(&used);
            self.record_epilogs(epilogs);
            let at = |outcome: &AttemptOutcome| outcome.at().unwrap_or(now.ticks).min(now.ticks);
            let mut ends: Vec<_> = ends.into_iter().map(|(attempt, end)| (at(&end), attempt, end)).collect();
            ends.sort_by_key(|(at, attempt, _)| (*at, *attempt));
            self.play_due(now, ends)?;
        }
        if let Some(cpus) = online {
            self.online(&cpus);
        }
        for (attempt, how) in losses {
            self.record_loss(attempt, how);
        }
        for (attempt, cause) in overdue {
            self.record_overdue(attempt, cause);
        }
        for (attempt, since) in idle {
            self.record_idle(attempt, since);
        }
        while let Some((caller, request, requester)) = inputs.requests.pop_front() {
            self.handle_request(now, &caller, *request, requester)?;
        }
        self.decide_overruns(now)?;
        self.fit_pools(now)?;
        self.remove_past_reservations(now)?;
        self.settle_dependencies(now, None)
    }

    /// Stores the pending batch and publishes the state.
    pub(crate) fn commit(&mut self, now: Now) -> Result<(), JournalError> {
        let known = |record: &Record| !record.is_in_ledger() || record.entry.is_some();
        debug_assert!(self.jobs.records().all(known), "a job in a ledger is stored with its entry");
        if !self.batch.has_changes() {
            return Ok(());
        }
        let rows = self.batch.rows(&self.jobs)?;
        self.batch.update(&mut self.earlier, &self.jobs);
        let mut values = self.values.take_entries()?;
        values.extend(self.earlier.take_changed());
        values.push(("queues".into(), to_json(&self.queue_states())?));
        values.extend(self.clock_mark(now)?);
        values.extend(self.used_time.take_changed()?);
        values.extend(self.used_gpu_time.take_changed()?);
        if self.batch.has_setup {
            values.push((SETUP.into(), to_json(&**self.setup.shared())?));
        }
        let checkpoint = self.due_checkpoint(now)?;
        let since =
            self.since_checkpoint.after(self.batch.line_count(), checkpoint.as_ref().map(|_| now.ticks));
        self.journal.commit(JournalBatch { lines: self.batch.take_lines(), checkpoint, rows, values })?;
        self.since_checkpoint = since;
        self.setup.commit();
        self.wake_ups = self.system.wake_ups();
        // Before the replies: a requester that has one finds its change.
        self.publish();
        Ok(())
    }

    /// Returns the state of the queues beside their jobs, by name.
    pub(crate) fn queue_states(&self) -> BTreeMap<String, QueueState> {
        let queues = self.setup.queues.iter().zip(self.system.queues());
        let state = |setup: &Queue, ledger| QueueState::new(setup, self.cpus.own(&setup.name), ledger);
        queues.map(|(setup, queue)| (setup.name.clone(), state(setup, queue.ledger()))).collect()
    }

    /// Returns the clock's mark, from which ticks continue when the machine boots again.
    fn clock_mark(&self, now: Now) -> Result<Option<(String, String)>, JournalError> {
        let Some(mark) = &self.info.mark else { return Ok(None) };
        Ok(Some(("clock".into(), to_json(&mark.at(self.values.last_instant(), now))?)))
    }

    /// Records that the daemon ends. Jobs continue without it.
    ///
    /// # Errors
    /// As [`process_batch`](Engine::process_batch).
    pub fn shutdown(&mut self, now: Now) -> Result<(), EngineError> {
        mark!("the daemon ends");
        self.values.advance(self.values.last_instant().max(now.ticks));
        self.batch.line(&JournalLine::Ended { at: self.values.last_instant() });
        self.commit(now)?;
        self.dispatch(now);
        Ok(())
    }

    /// Dispatches the actions and replies of a batch that is durable.
    pub(crate) fn dispatch(&mut self, now: Now) {
        let batch = std::mem::take(&mut self.batch);
        let jobs_changed = batch.jobs_changed();
        for (attempt, action) in batch.actions {
            self.windows.note(attempt, &action);
            self.launcher.act(attempt, action);
        }
        self.shims.note_failed(&batch.shims_failed, &self.jobs);
        if jobs_changed {
            self.send_slot_schedules();
        }
        for (requester, reply) in batch.replies {
            requester.reply(reply);
        }
        if let Some(observer) = &self.start_observer {
            batch.starts.into_iter().for_each(observer);
        }
        let snapshot = self.snapshots.latest();
        let view = |record, uid| snapshot.view_for(now, &Caller::new(uid), record);
        self.waiters.notify(|number, uid| batch.finished.get(&number).map(|record| view(record, uid)));
        self.answer_reads(now);
    }

    /// Restores the stored state after a failed commit and informs requesters. `facts` are applied again later.
    pub(crate) fn rollback(
        &mut self,
        now: Now,
        error: &JournalError,
        facts: Facts,
    ) -> Result<(), EngineError> {
        tracing::error!("state store is full; batch rolled back: {error}");
        for (requester, reply) in std::mem::take(&mut self.batch.replies) {
            mark!("a reply of a batch that was rolled back");
            // A refusal stands: it changed nothing.
            let message = format!("state store is full; request rejected: {error}");
            requester.reply(reply.and_then(|_| Err(Problem::new(ProblemCode::Storage, message))));
        }
        self.drop_changes()?;
        self.system.resume(self.values.last_instant(), &self.wake_ups);
        self.publish();
        self.retry.schedule(now.ticks, facts);
        self.answer_reads(now);
        self.break_stopped_promises(now)
    }
}
