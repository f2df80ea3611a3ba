//! A shadow that follows the lines of the journal, and its stored form.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_core::{EndHow, Entry, JobId, JobNumber, Ledger, Procs, State, Time, join_words, split_words};
use miserly_engine::{
    Amounts, CheckpointLine, EffectLine, QueueCheckpoint, QueueLine, RoundLine, SavedEntry, SavedLedgerState,
    amounts, resources, wall_after,
};
use miserly_policies::PolicySpec;
use miserly_saved::ticks;
use miserly_sim::{Instance, RealEnd, RealJob, RealRound, Shadow, ShadowEvent, ShadowOutcome, ShadowState};
use serde::{Deserialize, Serialize};

use super::row::{Row, wall};

/// What a shadow has while it follows.
pub(super) struct Following {
    pub(super) shadow: Shadow,
    /// The queue on the machine, and its position.
    pub(super) real: QueueLine,
    pub(super) position: u32,
    /// The lines with events that the shadow has not reached, each with the position of the queue there.
    pub(super) ahead: VecDeque<(i64, u32)>,
    /// The wall time of the instant 0.
    pub(super) offset: Timestamp,
    pub(super) latest: BTreeMap<JobNumber, Instance>,
    pub(super) rows: BTreeMap<Instance, Row>,
}

/// The stored form of a shadow.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Saved {
    /// The line with which it goes on.
    next: i64,
    #[serde(with = "ticks")]
    now: Time,
    #[serde(with = "microsecond::required")]
    offset: Timestamp,
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
    #[serde(with = "ticks")]
    since: Time,
    /// Whether it ended.
    ended: bool,
    /// The instant at which it was withdrawn.
    #[serde(default, with = "ticks::optional")]
    withdrawn: Option<Time>,
}

impl Following {
    /// Returns a follower that begins at a checkpoint; nothing if it cannot begin there.
    pub(super) fn beginning(
        checkpoint: &CheckpointLine,
        queue: &QueueCheckpoint,
        position: u32,
        policy: &PolicySpec,
    ) -> Option<Following> {
        let now = checkpoint.at;
        let entries: Vec<Entry> =
            queue.jobs.iter().map(|saved| Shadow::without_plans(saved.entry(), now)).collect();
        let suspended = |entry: &Entry| matches!(entry.state, State::Suspended { .. });
        if queue.stopped || entries.iter().any(suspended) {
            return None;
        }
        let offset = wall_after(checkpoint.wall, Time::ZERO - checkpoint.at);
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

    pub(super) fn restored(saved: Saved, policy: &PolicySpec) -> Option<(i64, Following)> {
        let entries = saved.queue.jobs.iter().map(SavedEntry::entry).collect();
        let ledger = ledger(&saved.queue, entries)?.with_state(saved.queue.state.state());
        let built = policy.build(ledger.machine(), 0).ok()?;
        let job = |job: &SavedJob| {
            let withdrawn = job.withdrawn.map(RealEnd::Withdrawn);
            let ended = job.ended.then_some(RealEnd::Ended(EndHow::Done));
            let real = RealJob {
                number: job.number,
                done: join_words(job.done),
                procs: Procs::new(job.procs),
                since: job.since,
                end: withdrawn.or(ended),
            };
            (job.admitted, (Instance(job.instance), real))
        };
        let state = ShadowState {
            now: saved.now,
            wake: saved.queue.wake,
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

    pub(super) fn saved(&self, next: i64, policy: &PolicySpec) -> Saved {
        let state = self.shadow.state();
        let (next, position) = self.ahead.front().copied().unwrap_or((next, self.position));
        let job = |(admitted, (instance, real)): (&u64, &(Instance, RealJob))| SavedJob {
            admitted: *admitted,
            instance: instance.0,
            number: real.number,
            done: split_words(real.done),
            procs: real.procs.get(),
            since: real.since,
            ended: matches!(real.end, Some(RealEnd::Ended(_))),
            withdrawn: match real.end {
                Some(RealEnd::Withdrawn(at)) => Some(at),
                _ => None,
            },
        };
        let ledger = &state.ledger;
        let inside = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        let reached = self.rows.iter().filter(|(instance, _)| instance.0 < state.submissions);
        Saved {
            next,
            now: state.now,
            offset: self.offset,
            position,
            real: self.real.clone(),
            submissions: state.submissions,
            queue: QueueCheckpoint {
                queue: QueueLine { policy: policy.to_string(), ..self.real.clone() },
                stopped: false,
                capacity: self.lost_capacity(ledger),
                lost: vec![],
                state: SavedLedgerState::new(&ledger.state()),
                wake: state.wake,
                jobs: inside.map(|job| SavedEntry::new(ledger.entry(job))).collect(),
            },
            jobs: state.jobs.iter().map(job).collect(),
            rows: reached.map(|(instance, row)| (instance.0, row.clone())).collect(),
        }
    }

    /// Returns the present capacity of the pool, if some of it is lost.
    pub(super) fn lost_capacity(&self, ledger: &Ledger) -> Option<Amounts> {
        let capacity = ledger.machine().capacity();
        (self.real.machine()?.capacity() != capacity).then(|| amounts(&capacity))
    }

    /// Returns the wall time of the shadow's present.
    pub(super) fn wall(&self) -> Timestamp {
        wall(self.offset, self.shadow.now())
    }

    /// Takes in a round.
    pub(super) fn observe(&mut self, line: i64, round: &RoundLine, changed: &mut Vec<Row>) {
        let at = round.at;
        self.offset = wall_after(round.wall, Time::ZERO - at);
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
                row.runtime = runtime.map(|real| real.runtime(Procs::new(row.procs)));
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
    pub(super) fn take(&mut self, events: &[ShadowEvent], changed: &mut Vec<Row>) {
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

    pub(super) fn publish(&self, touched: &BTreeSet<Instance>, changed: &mut Vec<Row>) {
        let rows = touched.iter().filter_map(|instance| self.rows.get(instance));
        changed.extend(rows.filter(|row| !row.ran_before).cloned());
    }

    /// Returns what a round says about the queue.
    pub(super) fn real_round(&self, round: &RoundLine) -> RealRound {
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
            at: round.at,
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

/// Returns a ledger with these jobs on the pool of a queue.
fn ledger(queue: &QueueCheckpoint, entries: Vec<Entry>) -> Option<Ledger> {
    let ledger = Ledger::restored(queue.queue.machine()?, (0..).map(JobId).zip(entries).collect()).ok()?;
    match queue.capacity {
        Some(capacity) => ledger.with_capacity(resources(capacity)).ok(),
        None => Some(ledger),
    }
}
