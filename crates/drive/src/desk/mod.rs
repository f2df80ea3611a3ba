//! The state of the driver, and its decisions. Nothing here reads a clock, a file or a cluster.
//!
//! Each step compares the state of Slurm with the ledger. The differences are events: submissions, ends, changes. The policy
//! decides in a pass, and the starts become [`Order`]s. An order that has no effect is given again, because the next step finds
//! the same difference.

mod arrays;

mod asking;

mod case;

mod compare;

mod groups;

mod idle;

mod opportunistic;

mod promises;

mod quanta;

mod rebuild;

mod starts;

mod trial;

#[cfg(test)]
mod simulated;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{
    Driver, Effect, Entry, Expected, Fault, JobId, JobNumber, Ledger, LedgerState, Placement, PolicyState,
    Request, Round, Span, State, Submission, Time,
};
use miserly_forecast::{LiveQueue, SystemCopy};
use miserly_slurm::{Cluster, Detail, Job, Reservation};

use self::arrays::ArrayPlaces;
pub(crate) use self::asking::{waiting_groups, waiting_tasks};
use self::case::Case;
pub(crate) use self::case::{Facts, Stage};
use self::compare::is_ours;
use self::opportunistic::Opportunistic;
use self::promises::PromiseChanges;
pub(crate) use self::quanta::Used;
use self::rebuild::holds_nodes;
use crate::comment::{CommentField, earlier_comment};
use crate::forecasts::Likely;
use crate::notes::{Note, StartRecord};
use crate::orders::Order;
use crate::site::Site;
use crate::{DriveError, Settings};

/// The time for a placed job to start. A promise to a user has it in addition.
pub(crate) const PATIENCE: Span = Span::from_ticks(15 * 1_000_000);

/// The most placements that are asked for without effect.
const MOST_ASKED: u32 = 3;

/// A wake-up that is later than this was missed.
const LATE: Span = Span::from_ticks(10 * 1_000_000);

/// Slurm makes a reservation in this time after it was asked, whatever the clocks of the two machines are.
const ANSWERED: Span = Span::from_ticks(300 * 1_000_000);

/// A driver with an older state than this was away.
const AWAY: Span = Span::from_ticks(60 * 1_000_000);

/// The state of Slurm.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) cluster: &'a Cluster,
    /// The forms of the jobs that were unknown.
    pub(crate) details: &'a BTreeMap<String, Detail>,
    /// Whether the nodes were read with the jobs.
    pub(crate) is_complete: bool,
    /// The starts of jobs that have come and gone since they were placed, seconds since 1970.
    pub(crate) starts: &'a BTreeMap<String, i64>,
}

/// The outcome of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The commands for Slurm, in order.
    pub orders: Vec<Order>,
    /// The events of jobs.
    pub notes: Vec<(String, Note)>,
    /// The jobs that started.
    pub starts: Vec<StartRecord>,
    /// Whether jobs would be placed by an old view of the nodes. There are no orders then: the next step gives them.
    pub(crate) wants_nodes: bool,
    /// Whether anything changed that has to be stored.
    pub(crate) changed: bool,
    /// The jobs whose descriptions have to be read before their comments are written.
    pub(crate) unread: BTreeSet<String>,
}

impl Step {
    /// Takes in the findings of another step.
    pub(crate) fn add(&mut self, mut other: Step) {
        self.notes.append(&mut other.notes);
        self.starts.append(&mut other.starts);
        self.changed |= other.changed;
    }

    /// Returns a later step, with the findings of this one before its own.
    pub(crate) fn and(mut self, mut later: Step) -> Step {
        let (orders, wants_nodes) = (std::mem::take(&mut later.orders), later.wants_nodes);
        self.add(later);
        Step { orders, wants_nodes, ..self }
    }
}

/// The stored state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) numbers: JobNumber,
    /// The instant of the last step, ticks.
    pub(crate) last: Option<Time>,
    /// The nodes, in the order of the hosts of the stored placements.
    pub(crate) nodes: Vec<String>,
    /// The groups of nodes to which stored requests refer.
    pub(crate) groups: Vec<Vec<String>>,
    /// The policy; none of an earlier version.
    pub(crate) policy: Option<String>,
    /// The name of the reservation; none of an earlier version.
    pub(crate) reservation: Option<String>,
    /// The comment that had the promises, if one had them; none of an earlier version.
    pub(crate) comments: Option<CommentField>,
    pub(crate) state: LedgerState,
    /// The jobs, by name.
    pub(crate) jobs: BTreeMap<String, StoredJob>,
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredJob {
    pub(crate) number: JobNumber,
    pub(crate) facts: Facts,
    /// Its entry in the ledger, if it is there.
    pub(crate) entry: Option<Entry>,
}

impl Stored {
    /// Returns whether the driver of this state made the reservation of this name: it is stored before that.
    pub(crate) fn has_made(&self, name: &str, reservation: &Reservation) -> bool {
        let stored = self.reservation.as_deref().is_none_or(|known| known == name);
        stored && self.last.is_some_and(|last| reservation.begin <= (last + ANSWERED).secs())
    }
}

/// Removes all that is of another policy from an entry: it could neither keep nor break its promises.
fn forget_policy(entry: &mut Entry) {
    entry.policy_state = PolicyState::EMPTY;
    entry.promise = None;
    match &mut entry.state {
        State::Waiting => (entry.planned, entry.planned_on) = (None, None),
        State::Running { quantum, .. } => *quantum = None,
        // It runs in the ledger, and is resumed as soon as its processors are free.
        State::Suspended { start, placement, .. } => {
            let (start, placement) = (*start, placement.clone());
            let expected = Expected::Overdue { since: start };
            entry.state =
                State::Running { start, since: start, expected, placement, released: false, quantum: None };
        }
    }
}

/// The driver of a cluster, between its readings.
pub(crate) struct Desk {
    settings: Settings,
    /// The comment that jobs get promises in, if they get any.
    comments: Option<CommentField>,
    site: Site,
    driver: Option<Driver>,
    /// The entries of a stored state, until there is a driver.
    restored: Vec<(JobId, Entry)>,
    state: LedgerState,
    cases: BTreeMap<String, Case>,
    by_handle: BTreeMap<JobId, String>,
    numbers: JobNumber,
    last: Option<Time>,
    /// Whether the ledger must be made again from the state of Slurm.
    stale: bool,
    /// The nodes of the stored placements.
    nodes: Vec<String>,
    /// The nodes of each group, in order; none of one that is not used.
    groups: Vec<Vec<String>>,
    /// The placements of jobs that start elsewhere than the policy wanted, until the ledger has them.
    moved: BTreeMap<JobId, Placement>,
    /// The findings before the first step.
    found: Step,
    /// The handle at which the search for an unused one begins.
    cursor: u32,
    /// The job that got a comment last.
    told_last: String,
    /// The next instant at which an opportunistic job has to be looked at.
    attention: Option<Time>,
    /// The clock at this step. Its instant may be that of a wake-up before.
    now: Time,
    /// The tasks of arrays that have a place.
    arrays: ArrayPlaces,
    /// The users with limits that keep a placed job from starting.
    limited: BTreeSet<u32>,
}

/// The events of a step.
#[derive(Default)]
struct Events {
    round: Round,
    /// Whether something happened that no event describes.
    disturbed: bool,
    /// Jobs to admit: name, request.
    arrived: Vec<(String, Request)>,
}

impl Desk {
    pub(crate) fn new(settings: Settings, stored: Stored, comments: Option<CommentField>) -> Desk {
        let mut cases = BTreeMap::new();
        let (mut restored, mut found) = (vec![], Step::default());
        let mut by_handle = BTreeMap::new();
        let another = stored.policy.is_some_and(|policy| policy != settings.policy.to_string());
        for (handle, (id, StoredJob { number, mut facts, entry })) in (0..).map(JobId).zip(stored.jobs) {
            facts.told = facts.told.as_deref().and_then(earlier_comment);
            if another && facts.stage != Stage::Running {
                let broken = facts.withdraw_promise("the policy was changed");
                found.notes.extend(broken.map(|note| (id.clone(), note)));
            }
            if another && let Some(start) = facts.quantum.take().and_then(|quantum| quantum.start) {
                found.starts.push(facts.record(&id, start));
            }
            let handle = entry.map(|mut entry| {
                if another {
                    forget_policy(&mut entry);
                }
                restored.push((handle, entry));
                by_handle.insert(handle, id.clone());
                handle
            });
            cases.insert(id, Case { number, handle, facts });
        }
        Desk {
            settings,
            comments,
            site: Site::default(),
            driver: None,
            restored,
            state: stored.state,
            cases,
            by_handle,
            numbers: stored.numbers,
            last: stored.last,
            stale: true,
            nodes: stored.nodes,
            groups: stored.groups,
            moved: BTreeMap::new(),
            found,
            cursor: 0,
            told_last: String::new(),
            attention: None,
            now: Time::ZERO,
            arrays: ArrayPlaces::default(),
            limited: BTreeSet::new(),
        }
    }

    /// Returns the state to store.
    pub(crate) fn stored(&self) -> Stored {
        let ledger = self.driver.as_ref().map(Driver::ledger);
        let entry = |handle: JobId| match ledger {
            Some(ledger) => ledger.get(handle).cloned(),
            None => self.restored.iter().find(|(job, _)| *job == handle).map(|(_, entry)| entry.clone()),
        };
        let job = |(id, case): (&String, &Case)| {
            let entry = case.handle.and_then(entry);
            (id.clone(), StoredJob { number: case.number, facts: case.facts.clone(), entry })
        };
        Stored {
            numbers: self.numbers,
            last: self.last,
            nodes: self.nodes.clone(),
            groups: self.groups.clone(),
            policy: Some(self.settings.policy.to_string()),
            reservation: Some(self.settings.reservation.clone()),
            comments: self.comments,
            state: ledger.map_or_else(|| self.state.clone(), Ledger::state),
            jobs: self.cases.iter().map(job).collect(),
        }
    }

    /// Returns the instant at which the policy wants to be called again, or a job is tried again.
    pub(crate) fn wake(&self) -> Option<Time> {
        let asides =
            self.cases.values().filter_map(|case| case.facts.aside.as_ref()?.until).map(Time::from_ticks);
        // The last step looked at those before.
        let asides = asides.filter(|until| self.last.is_none_or(|last| *until > last));
        self.driver.as_ref().and_then(Driver::wake).into_iter().chain(asides).chain(self.attention).min()
    }

    /// Returns a copy of the ledger for simulations, once there is one.
    pub(crate) fn copy(&self) -> Option<LiveQueue> {
        let driver = self.driver.as_ref()?;
        let copy = SystemCopy { now: self.last?, ledger: driver.ledger().clone(), wake: driver.wake() };
        Some(LiveQueue { policy: self.settings.policy.clone(), copy })
    }

    /// Takes in forecasts.
    pub(crate) fn set_likely(&mut self, likely: &[Likely]) {
        let Some(now) = self.last else { return };
        let by_job: BTreeMap<JobNumber, [Time; 2]> =
            likely.iter().map(|likely| (likely.job, likely.starts)).collect();
        for case in self.cases.values_mut() {
            match by_job.get(&case.number) {
                Some(starts) => case.set_likely(now, *starts),
                None => case.facts.likely = None,
            }
        }
    }

    /// Returns the jobs with an unknown form: new ones, those that run on several nodes, and those of the last step whose comments
    /// are `unread`.
    pub(crate) fn unknown<'a>(
        &self,
        cluster: &'a Cluster,
        changed: &BTreeSet<String>,
        unread: &BTreeSet<String>,
    ) -> Vec<&'a str> {
        let partitions = self.settings.partitions(cluster);
        let wanted = |job: &&Job| {
            let is_placed = job.reservation.as_deref() == Some(&self.settings.reservation);
            match self.cases.get(&job.id) {
                _ if !is_ours(job, &partitions, &self.site) && !self.site_is_new() => false,
                None => true,
                Some(_) if unread.contains(&job.id) => true,
                Some(case) if case.facts.opportunistic.as_ref().is_some_and(Opportunistic::waits_again) => {
                    true
                }
                Some(case) => {
                    let has = case.facts.form.on.len() == job.on.len();
                    if holds_nodes(job) {
                        !has && job.on.len() > 1
                    } else {
                        changed.contains(&job.id) && !is_placed
                    }
                }
            }
        };
        cluster.jobs.values().filter(wanted).map(|job| job.id.as_str()).collect()
    }

    /// Returns the placed jobs that are gone.
    pub(crate) fn vanished(&self, cluster: &Cluster) -> Vec<String> {
        let is_gone = |(id, case): &(&String, &Case)| {
            let is_placed =
                matches!(case.facts.stage, Stage::Placed { .. }) || case.facts.opportunistic.is_some();
            is_placed && !cluster.jobs.contains_key(*id)
        };
        self.cases.iter().filter(is_gone).map(|(id, _)| id.clone()).collect()
    }

    fn site_is_new(&self) -> bool {
        self.site.len() == 0
    }

    /// Makes one step, with the state of Slurm at `now`.
    pub(crate) fn step(&mut self, now: Time, seen: Seen<'_>) -> Result<Step, DriveError> {
        let cluster = seen.cluster;
        self.now = now;
        let mut step = std::mem::take(&mut self.found);
        step.changed |= !step.notes.is_empty() || !step.starts.is_empty();
        let due = self.wake().filter(|wake| *wake <= now);
        let was_gone = self.driver.is_none() && self.last.is_some_and(|last| now - last > AWAY);
        let planned = self.driver.as_ref().and_then(Driver::wake);
        let away = was_gone || planned.is_some_and(|wake| now > wake && now - wake > LATE);
        // A wake-up has its own instant.
        let mut at =
            due.filter(|_| !away).unwrap_or(now).max(self.last.map_or(now, |last| last + Span::TICK));
        let site = Site::new(cluster, &self.settings.partitions(cluster), &self.settings.reservation)
            .of_one_node(self.settings.policy.needs().one_host_per_job);
        if site.len() == 0 {
            return Err(DriveError::NoNodes);
        }
        let nodes_changed = site != self.site;
        if nodes_changed {
            self.renumber(&site);
            self.site = site;
            self.stale = true;
            // A job that was too large may fit.
            for case in self.cases.values_mut() {
                if let Some(aside) = &mut case.facts.aside
                    && aside.until.is_some()
                    && case.facts.failures == 0
                {
                    aside.until = Some(at.ticks());
                }
            }
        }
        if self.last.is_some_and(|last| now - last > AWAY) {
            self.let_long_runs_go_on(cluster, &mut step);
        }
        let mut events = self.compare(at, seen, &mut step);
        if away {
            events.round.fault = Some(Fault::Away);
        }
        let mut changes = PromiseChanges::new(nodes_changed);
        for tries in 0.. {
            let mut effects = vec![];
            self.play(at, cluster, std::mem::take(&mut events), &mut effects)?;
            events = self.carry_out(at, cluster, effects, &mut changes, &mut step);
            let more = self.driver.as_ref().and_then(Driver::wake).filter(|wake| *wake <= now);
            if events.disturbed || !events.round.is_empty() {
                // Should the policy place a job again and again where it cannot be, the next step goes on.
                if tries >= 8 {
                    self.stale = true;
                    break;
                }
            } else if let Some(wake) = more
                && tries < 8
            {
                at = wake.max(at + Span::TICK);
            } else {
                break;
            }
        }
        self.settle_promises(at, changes, &mut step);
        self.end_other_quanta(cluster, &mut step);
        self.use_idle_nodes(at, cluster, &mut step);
        self.last = Some(at);
        let left = self.nodes_to_wait_for();
        step.wants_nodes = !seen.is_complete && self.has_unasked(cluster, &left);
        if !step.wants_nodes {
            self.give_orders(cluster, seen.details, &left, &mut step);
        }
        Ok(step)
    }

    /// Plays a round of events, on a new ledger if the old one is no longer true.
    fn play(
        &mut self,
        at: Time,
        cluster: &Cluster,
        events: Events,
        effects: &mut Vec<Effect>,
    ) -> Result<(), DriveError> {
        let Events { mut round, disturbed, mut arrived } = events;
        if disturbed || self.stale || self.driver.is_none() {
            self.rebuild(at, cluster, &mut round)?;
        } else {
            self.find_overdue(at, &mut round);
        }
        arrived.sort_by_key(|(_, request)| request.number);
        for (id, request) in arrived {
            let job = self.unused();
            let Some(case) = self.cases.get_mut(&id) else { continue };
            case.handle = Some(job);
            case.facts.aside = None;
            self.by_handle.insert(job, id);
            round.submitted.push(Submission { job, request });
        }
        let Some(driver) = &mut self.driver else { return Ok(()) };
        let due = driver.wake().is_some_and(|wake| wake <= at);
        if round.is_empty() && !due {
            return Ok(());
        }
        driver.round(at, &mut round, effects)?;
        Ok(())
    }

    fn find_overdue(&self, at: Time, round: &mut Round) {
        let Some(driver) = &self.driver else { return };
        let ended: BTreeSet<JobId> = round.ended.iter().map(|ended| ended.job).collect();
        let is_overdue = |job: &JobId| matches!(driver.ledger().entry(*job).state, State::Running { expected: Expected::At(end), quantum: None, .. } if end <= at);
        round.overdue.extend(driver.ledger().running().filter(|job| !ended.contains(job)).filter(is_overdue));
    }

    /// Returns a handle that no job has. Handles stay below twice the number of jobs.
    fn unused(&mut self) -> JobId {
        if self.cursor as usize > 2 * self.by_handle.len() {
            self.cursor = 0;
        }
        while self.by_handle.contains_key(&JobId(self.cursor)) {
            self.cursor += 1;
        }
        self.cursor += 1;
        JobId(self.cursor - 1)
    }
}
