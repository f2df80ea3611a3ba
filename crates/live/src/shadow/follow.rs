//! One queue of the journal, and a second policy in its shadow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use miserly_core::{
    EndHow, Entry, JobId, JobNumber, Ledger, Procs, Request, State, Time, join_words, split_words,
};
use miserly_engine::{
    Amounts, CheckpointLine, EffectLine, JournalLine, QueueCheckpoint, QueueLine, RoundLine, SavedEntry,
    SavedLedgerState, amounts, resources,
};
use miserly_policies::PolicySpec;
use miserly_sim::{Instance, RealEnd, RealJob, RealRound, Shadow, ShadowEvent, ShadowOutcome, ShadowState};
use serde::{Deserialize, Serialize};

use super::report::ComparedJob;
use super::unfit;
use crate::store::Line;

/// A job of the queue and of its shadow. Instants are in microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Row {
    /// The number of the job.
    pub(super) number: JobNumber,
    /// The submission, or the release of a held job.
    pub(super) submitted: i64,
    pub(super) uid: u32,
    pub(super) procs: u64,
    /// The start on the machine.
    pub(super) start: Option<i64>,
    /// The start in the shadow.
    pub(super) shadow_start: Option<i64>,
    /// The runtime, in microseconds, if it is known.
    pub(super) runtime: Option<i64>,
    /// Whether the shadow's policy refused it.
    pub(super) refused: bool,
    /// Whether it ended without a start on the machine.
    pub(super) gone: bool,
    /// Whether it ran already when the shadow began, so that nothing is compared.
    ran_before: bool,
    /// Microseconds since 1970 at the instant 0, as of the submission. So waits are exact, however the clock is set later.
    offset: i64,
}

impl Row {
    /// Returns the job for a report.
    pub(super) fn compared(&self) -> ComparedJob {
        ComparedJob {
            submitted: self.submitted,
            uid: self.uid,
            procs: self.procs,
            start: self.start,
            shadow_start: self.shadow_start,
            runtime: self.runtime,
            refused: self.refused,
        }
    }
}

/// The most rounds that a shadow is behind. Then it begins again at the next checkpoint.
const MOST_BEHIND: usize = 100_000;

/// A shadow of one queue.
pub(super) struct QueueShadow {
    queue: String,
    policy: PolicySpec,
    /// The number of the next line of the journal.
    next: i64,
    following: Option<Following>,
    /// Whether it began at a checkpoint since this was asked.
    began: bool,
    /// Rows that changed since they were taken.
    changed: Vec<Row>,
    /// Why it does not go on.
    problem: Option<String>,
}

/// What a shadow has while it follows.
struct Following {
    shadow: Shadow,
    /// The queue on the machine, and its position.
    real: QueueLine,
    position: u32,
    /// The lines with events that the shadow has not reached, each with the position of the queue there.
    ahead: VecDeque<(i64, u32)>,
    /// Microseconds since 1970 at the instant 0.
    offset: i64,
    latest: BTreeMap<JobNumber, Instance>,
    rows: BTreeMap<Instance, Row>,
}

/// The stored form of a shadow.
#[derive(Debug, Deserialize, Serialize)]
struct Saved {
    /// The line with which it goes on.
    next: i64,
    now: i64,
    offset: i64,
    /// The position of the queue at that line.
    position: u32,
    real: QueueLine,
    submissions: u64,
    /// The ledger of the shadow.
    queue: QueueCheckpoint,
    jobs: Vec<SavedJob>,
    rows: Vec<(u64, Row)>,
}

/// What the machine has shown of a job.
#[derive(Debug, Deserialize, Serialize)]
struct SavedJob {
    admitted: u64,
    instance: u64,
    number: JobNumber,
    /// Processor-ticks, in two words.
    done: [u64; 2],
    procs: u64,
    since: i64,
    /// Whether it ended.
    ended: bool,
    /// The instant at which it was withdrawn.
    withdrawn: Option<i64>,
}

/// How far a shadow is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The policy on the machine.
    pub(super) real_policy: Option<String>,
    /// The instant that it has reached, in microseconds since 1970.
    pub(super) until: Option<i64>,
    /// The rounds with events that it has not reached.
    pub(super) behind: u64,
    /// The job that it waits for.
    pub(super) waits_for: Option<JobNumber>,
    /// Why it does not go on.
    pub(super) problem: Option<String>,
}

impl QueueShadow {
    /// Returns a shadow that begins with the first checkpoint from line `next` on.
    pub(super) fn new(queue: String, policy: PolicySpec, next: i64) -> QueueShadow {
        QueueShadow { queue, policy, next, following: None, began: false, changed: vec![], problem: None }
    }

    /// Returns a shadow that goes on from its stored form; nothing if that is not readable.
    pub(super) fn restored(queue: &str, policy: &PolicySpec, text: &str) -> Option<QueueShadow> {
        let saved: Saved = serde_json::from_str(text).ok()?;
        let (next, following) = Following::restored(saved, policy)?;
        let new = QueueShadow::new(queue.to_owned(), policy.clone(), next);
        Some(QueueShadow { following: Some(following), ..new })
    }

    pub(super) fn policy(&self) -> &PolicySpec {
        &self.policy
    }

    /// Returns the number of the line with which it goes on.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// Returns its stored form, if it follows.
    pub(super) fn saved(&self) -> Option<String> {
        let following = self.following.as_ref().filter(|_| self.problem.is_none())?;
        serde_json::to_string(&following.saved(self.next, &self.policy)).ok()
    }

    pub(super) fn progress(&self) -> Progress {
        let following = self.following.as_ref();
        Progress {
            real_policy: following.map(|following| following.real.policy.clone()),
            until: following.map(|following| following.wall(following.shadow.now())),
            behind: following.map_or(0, |following| following.shadow.behind() as u64),
            waits_for: following.and_then(|following| following.shadow.waits_for()),
            problem: self.problem.clone(),
        }
    }

    /// Returns whether it began at a checkpoint since the last call. Jobs before that have no further outcome.
    pub(super) fn take_began(&mut self) -> bool {
        std::mem::take(&mut self.began)
    }

    /// Returns the rows that changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.changed)
    }

    /// Does something with the shadow. A panic stops the shadow, and is the default of the result.
    pub(super) fn guarded<T: Default>(&mut self, work: impl FnOnce(&mut QueueShadow) -> T) -> T {
        catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|_| {
            self.fail("the policy of the shadow failed (a panic); the daemon's log has more".to_owned());
            T::default()
        })
    }

    /// Stops for a reason.
    fn fail(&mut self, problem: String) {
        (self.following, self.problem) = (None, Some(problem));
    }

    /// Takes in a line of the journal.
    pub(super) fn observe(&mut self, line: &Line) {
        if line.number < self.next || self.problem.is_some() {
            return;
        }
        // Lines that are missing were pruned meanwhile. It begins again at the next checkpoint.
        if line.number > self.next {
            self.following = None;
        }
        self.next = line.number + 1;
        match serde_json::from_str::<JournalLine>(&line.body) {
            Ok(JournalLine::Round(round)) => {
                if let Some(following) = &mut self.following {
                    following.observe(line.number, &round, &mut self.changed);
                    if following.ahead.len() > MOST_BEHIND {
                        tracing::warn!(
                            "queue {}: the shadow is too far behind, and begins again",
                            self.queue
                        );
                        self.following = None;
                    }
                }
            }
            Ok(JournalLine::Began { queues, .. }) => self.set_up(&queues),
            Ok(JournalLine::Checkpoint(checkpoint)) if self.following.is_none() => self.begin(&checkpoint),
            Ok(JournalLine::Stopped { queue, .. }) if queue == self.queue => self.following = None,
            Ok(JournalLine::Recovered { .. }) | Err(_) => self.following = None,
            Ok(_) => {}
        }
    }

    /// Takes in that nothing else happened until an instant.
    pub(super) fn observe_nothing(&mut self, until: Time) {
        if let Some(following) = &mut self.following {
            following.shadow.observe_nothing(until);
        }
    }

    /// Simulates as far as the queue is known. Returns whether there is more to do.
    pub(super) fn advance(&mut self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let Some(following) = &mut self.following else { return false };
        let mut stopped = false;
        let events = following.shadow.advance(&mut || {
            stopped = !goes_on();
            !stopped
        });
        match events {
            Ok(events) => following.take(&events, &mut self.changed),
            Err(violation) => {
                let problem = format!("policy {}: {violation}", self.policy);
                self.fail(problem);
                return false;
            }
        }
        let behind = following.shadow.behind();
        while following.ahead.len() > behind {
            following.ahead.pop_front();
        }
        stopped
    }

    /// Takes in another setup of the daemon. With another pool, it begins again at the checkpoint that follows.
    fn set_up(&mut self, queues: &[QueueLine]) {
        let position = queues.iter().position(|queue| queue.name == self.queue);
        let found = position.and_then(|at| Some((u32::try_from(at).ok()?, &queues[at])));
        self.following = self.following.take().zip(found).and_then(|(following, (position, real))| {
            let same = following.real.pool == real.pool && following.real.again == real.again;
            same.then(|| Following { position, real: real.clone(), ..following })
        });
    }

    fn begin(&mut self, checkpoint: &CheckpointLine) {
        let queues = &checkpoint.queues;
        let Some(at) = queues.iter().position(|queue| queue.queue.name == self.queue) else { return };
        let Ok(real) = queues[at].queue.policy.parse::<PolicySpec>() else { return };
        // The queue may have another policy later.
        if unfit(&real.needs()).is_none()
            && let Ok(position) = u32::try_from(at)
        {
            self.following = Following::beginning(checkpoint, &queues[at], position, &self.policy);
            if self.following.is_some() {
                self.began = true;
                self.changed.clear();
            }
        }
    }
}

impl Following {
    /// Returns a follower that begins at a checkpoint; nothing if it cannot begin there.
    fn beginning(
        checkpoint: &CheckpointLine,
        queue: &QueueCheckpoint,
        position: u32,
        policy: &PolicySpec,
    ) -> Option<Following> {
        let now = Time::from_ticks(checkpoint.at);
        let entries: Vec<Entry> =
            queue.jobs.iter().map(|saved| Shadow::without_plans(saved.entry(), now)).collect();
        let suspended = |entry: &Entry| matches!(entry.state, State::Suspended { .. });
        if queue.stopped || entries.iter().any(suspended) {
            return None;
        }
        let offset = checkpoint.wall - checkpoint.at;
        let ledger = ledger(queue, entries)?;
        let built = policy.build(ledger.machine(), 0).ok()?;
        let (mut rows, mut latest) = (BTreeMap::new(), BTreeMap::new());
        // A shadow numbers its first jobs in this order.
        let jobs = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        for (instance, job) in (0..).map(Instance).zip(jobs) {
            let entry = ledger.entry(job);
            let row = Row {
                ran_before: entry.state != State::Waiting || entry.opportunistic.done > 0,
                ..Row::new(&entry.request, entry.request.submit, offset)
            };
            latest.insert(row.number, instance);
            rows.insert(instance, row);
        }
        let mut shadow = Shadow::beginning(ledger, built, now);
        // In the shadow no job runs ahead of its window; on the machine those that do so go on.
        let ahead =
            queue.jobs.iter().map(SavedEntry::entry).filter(|entry| !entry.opportunistic.procs.is_zero());
        let works = ahead.map(|entry| (entry.request.number, entry.opportunistic.procs)).collect();
        shadow.observe(RealRound { at: now, works, ..RealRound::default() });
        let real = queue.queue.clone();
        Some(Following { shadow, real, position, ahead: VecDeque::new(), offset, latest, rows })
    }

    fn restored(saved: Saved, policy: &PolicySpec) -> Option<(i64, Following)> {
        let entries = saved.queue.jobs.iter().map(SavedEntry::entry).collect();
        let ledger = ledger(&saved.queue, entries)?.with_state(saved.queue.state.state());
        let built = policy.build(ledger.machine(), 0).ok()?;
        let job = |job: &SavedJob| {
            let withdrawn = job.withdrawn.map(|at| RealEnd::Withdrawn(Time::from_ticks(at)));
            let ended = job.ended.then_some(RealEnd::Ended(EndHow::Done));
            let real = RealJob {
                number: job.number,
                done: join_words(job.done),
                procs: Procs::new(job.procs),
                since: Time::from_ticks(job.since),
                end: withdrawn.or(ended),
            };
            (job.admitted, (Instance(job.instance), real))
        };
        let state = ShadowState {
            now: Time::from_ticks(saved.now),
            wake: saved.queue.wake.map(Time::from_ticks),
            ledger,
            submissions: saved.submissions,
            jobs: saved.jobs.iter().map(job).collect(),
        };
        let mut latest: Vec<(JobNumber, Instance)> =
            state.jobs.values().map(|(instance, real)| (real.number, *instance)).collect();
        // Of two instances, the later one.
        latest.sort_unstable();
        let latest = latest.into_iter().collect();
        let inside: BTreeSet<Instance> = state.jobs.values().map(|(instance, _)| *instance).collect();
        let rows = saved.rows.into_iter().map(|(instance, row)| (Instance(instance), row));
        // Those that the shadow refused have no further outcome.
        let rows = rows.filter(|(instance, _)| inside.contains(instance)).collect();
        let following = Following {
            shadow: Shadow::continuing(state, built),
            real: saved.real,
            position: saved.position,
            ahead: VecDeque::new(),
            offset: saved.offset,
            latest,
            rows,
        };
        Some((saved.next, following))
    }

    fn saved(&self, next: i64, policy: &PolicySpec) -> Saved {
        let state = self.shadow.state();
        let (next, position) = self.ahead.front().copied().unwrap_or((next, self.position));
        let job = |(admitted, (instance, real)): (&u64, &(Instance, RealJob))| SavedJob {
            admitted: *admitted,
            instance: instance.0,
            number: real.number,
            done: split_words(real.done),
            procs: real.procs.get(),
            since: real.since.ticks(),
            ended: matches!(real.end, Some(RealEnd::Ended(_))),
            withdrawn: match real.end {
                Some(RealEnd::Withdrawn(at)) => Some(at.ticks()),
                _ => None,
            },
        };
        let ledger = &state.ledger;
        let inside = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        let reached = self.rows.iter().filter(|(instance, _)| instance.0 < state.submissions);
        Saved {
            next,
            now: state.now.ticks(),
            offset: self.offset,
            position,
            real: self.real.clone(),
            submissions: state.submissions,
            queue: QueueCheckpoint {
                queue: QueueLine { policy: policy.to_string(), ..self.real.clone() },
                stopped: false,
                capacity: self.lost_capacity(ledger),
                state: SavedLedgerState::new(&ledger.state()),
                wake: state.wake.map(Time::ticks),
                jobs: inside.map(|job| SavedEntry::new(ledger.entry(job))).collect(),
            },
            jobs: state.jobs.iter().map(job).collect(),
            rows: reached.map(|(instance, row)| (instance.0, row.clone())).collect(),
        }
    }

    /// Returns the present capacity of the pool, if some of it is lost.
    fn lost_capacity(&self, ledger: &Ledger) -> Option<Amounts> {
        let capacity = ledger.machine().capacity();
        (self.real.machine()?.capacity() != capacity).then(|| amounts(&capacity))
    }

    fn wall(&self, at: Time) -> i64 {
        at.ticks().saturating_add(self.offset)
    }

    /// Takes in a round.
    fn observe(&mut self, line: i64, round: &RoundLine, changed: &mut Vec<Row>) {
        let at = Time::from_ticks(round.at);
        self.offset = round.wall - round.at;
        let real = self.real_round(round);
        let submitted: Vec<Row> =
            real.submitted.iter().map(|request| Row::new(request, at, self.offset)).collect();
        let ended: Vec<JobNumber> = real.ended.iter().map(|(number, _)| *number).collect();
        let withdrawn = real.withdrawn.clone();
        let (works, requeued) = (real.works.clone(), real.requeued.clone());
        let behind = self.shadow.behind();
        let instances = self.shadow.observe(real);
        if self.shadow.behind() > behind {
            self.ahead.push_back((line, self.position));
        }
        let mut touched = BTreeSet::new();
        for number in ended {
            let Some(instance) = self.latest.remove(&number) else { continue };
            let runtime = self.shadow.real(instance);
            if let Some(row) = self.rows.get_mut(&instance) {
                row.runtime = runtime.map(|real| real.runtime(Procs::new(row.procs)).ticks());
                row.gone = row.start.is_none();
                touched.insert(instance);
            }
        }
        for number in withdrawn {
            let Some(instance) = self.latest.remove(&number) else { continue };
            if let Some(row) = self.rows.get_mut(&instance) {
                row.gone = true;
                touched.insert(instance);
            }
        }
        for (instance, row) in instances.into_iter().zip(submitted) {
            self.latest.insert(row.number, instance);
            self.rows.insert(instance, row);
            touched.insert(instance);
        }
        for (number, procs) in works {
            let row =
                self.latest.get(&number).and_then(|instance| Some((instance, self.rows.get_mut(instance)?)));
            if let Some((instance, row)) = row
                && !procs.is_zero()
                && row.start.is_none()
            {
                row.start = Some(row.wall(at));
                touched.insert(*instance);
            }
        }
        for number in requeued {
            let row = self.latest.get(&number).and_then(|instance| self.rows.get_mut(instance));
            if let Some(row) = row {
                row.start = None;
            }
        }
        self.publish(&touched, changed);
        // Of the others, the shadow has to end first.
        let over = |row: &Row| row.gone || (row.refused && !self.latest.contains_key(&row.number));
        let over: Vec<Instance> =
            touched.into_iter().filter(|instance| self.rows.get(instance).is_some_and(over)).collect();
        for instance in over {
            self.rows.remove(&instance);
        }
    }

    /// Takes in what happened in the shadow.
    fn take(&mut self, events: &[ShadowEvent], changed: &mut Vec<Row>) {
        let mut touched = BTreeSet::new();
        for ShadowEvent { at, job, outcome } in events {
            let Some(row) = self.rows.get_mut(job) else { continue };
            let wall = row.wall(*at);
            match outcome {
                ShadowOutcome::Started => row.shadow_start = Some(wall),
                ShadowOutcome::Requeued => row.shadow_start = None,
                ShadowOutcome::Refused => row.refused = true,
                ShadowOutcome::Ended => {}
            }
            touched.insert(*job);
        }
        self.publish(&touched, changed);
        for event in events {
            if matches!(event.outcome, ShadowOutcome::Ended | ShadowOutcome::Refused) {
                let row = self.rows.get(&event.job);
                // A refused job goes on on the machine.
                if row.is_some_and(|row| self.latest.get(&row.number) != Some(&event.job)) {
                    self.rows.remove(&event.job);
                }
            }
        }
    }

    fn publish(&self, touched: &BTreeSet<Instance>, changed: &mut Vec<Row>) {
        let rows = touched.iter().filter_map(|instance| self.rows.get(instance));
        changed.extend(rows.filter(|row| !row.ran_before).cloned());
    }

    /// Returns what a round says about the queue.
    fn real_round(&self, round: &RoundLine) -> RealRound {
        let at = Time::from_ticks(round.at);
        let refused: BTreeSet<JobNumber> = round
            .effects
            .iter()
            .filter_map(|effect| if let EffectLine::Refused { job, .. } = effect { Some(*job) } else { None })
            .collect();
        let mine = round.submitted.iter().filter(|request| request.queue.unwrap_or(0) == self.position);
        let submitted: Vec<_> = mine
            .filter(|request| !refused.contains(&request.number))
            .map(miserly_engine::SavedRequest::request)
            .collect();
        // A job that is refused later leaves the queue like a withdrawn one.
        let is_new = |job: &JobNumber| round.submitted.iter().any(|request| request.number == *job);
        let withdrawn = round.withdrawn.iter().chain(refused.iter().filter(|job| !is_new(job))).copied();
        let withdrawn = withdrawn.collect();
        let capacity = round.capacity.filter(|(queue, _)| *queue == self.position);
        let mut real = RealRound {
            at,
            ended: round.ended.iter().map(|ended| (ended.job, ended.how)).collect(),
            withdrawn,
            amended: round.amended.iter().map(|line| (line.job, line.change())).collect(),
            capacity: capacity.map(|(_, amounts)| resources(amounts)),
            submitted,
            requeued: vec![],
            works: vec![],
        };
        let new: BTreeMap<JobNumber, u64> =
            real.submitted.iter().map(|request| (request.number, request.procs().get())).collect();
        let all = |job: &JobNumber| {
            let row = self.latest.get(job).and_then(|instance| self.rows.get(instance));
            new.get(job).copied().or(row.map(|row| row.procs)).map(Procs::new)
        };
        for effect in &round.effects {
            match effect {
                EffectLine::Started { job, .. } | EffectLine::Resumed { job } => {
                    real.works.extend(all(job).map(|procs| (*job, procs)));
                }
                EffectLine::Suspended { job } => real.works.push((*job, Procs::ZERO)),
                EffectLine::Opportunistic { job, procs } => real.works.push((*job, Procs::new(*procs))),
                EffectLine::Requeued { job } => real.requeued.push(*job),
                _ => {}
            }
        }
        real
    }
}

impl Row {
    /// Returns a row of the database: the job, its processors, and the starts on the machine and in the shadow with the
    /// runtime.
    pub(super) fn stored(
        (number, submitted, uid): (JobNumber, i64, u32),
        procs: u64,
        (start, shadow_start, runtime): (Option<i64>, Option<i64>, Option<i64>),
        refused: bool,
    ) -> Row {
        let (gone, ran_before, offset) = (false, false, 0);
        Row { number, submitted, uid, procs, start, shadow_start, runtime, refused, gone, ran_before, offset }
    }

    fn new(request: &Request, submitted: Time, offset: i64) -> Row {
        Row {
            number: request.number,
            submitted: submitted.ticks().saturating_add(offset),
            uid: request.user.unwrap_or(u32::MAX),
            procs: request.procs().get(),
            start: None,
            shadow_start: None,
            runtime: None,
            refused: false,
            gone: false,
            ran_before: false,
            offset,
        }
    }

    fn wall(&self, at: Time) -> i64 {
        at.ticks().saturating_add(self.offset)
    }
}

/// Returns a ledger with these jobs on the pool of a queue.
fn ledger(queue: &QueueCheckpoint, entries: Vec<Entry>) -> Option<Ledger> {
    let ledger = Ledger::restored(queue.queue.machine()?, (0..).map(JobId).zip(entries).collect()).ok()?;
    match queue.capacity {
        Some(capacity) => ledger.with_capacity(resources(capacity)).ok(),
        None => Some(ledger),
    }
}
