//! The state of the driver, and its decisions. Nothing here reads a clock, a file or a cluster.
//!
//! Each step compares the state of Slurm with the ledger. The differences are events: submissions, ends, changes. The policy
//! decides in a pass, and the starts become [`Order`]s. An order that has no effect is given again, because the next step finds
//! the same difference.

mod arrays;

mod cause;

mod commands;

mod comments;

mod compare;

mod groups;

mod idle;

mod job;

mod ledger_entries;

mod opportunistic;

mod promises;

mod quanta;

mod rebuild;

mod room;

mod running;

mod starts;

mod stored;

mod trial;

mod waiting;

#[cfg(test)]
mod simulated;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{
    Driver, Effect, Entry, Expected, Fault, Host, HostId, JobId, JobNumber, LedgerState, Placement, Request,
    Round, Span, State, Submission, Time,
};
use miserly_forecast::{LiveQueue, SystemCopy};
use miserly_slurm::{Cluster, Detail, Job};

use self::arrays::ArrayPlaces;
use self::cause::RebuildCause;
pub(crate) use self::comments::{waiting_groups, waiting_tasks};
use self::compare::is_driven;
pub(crate) use self::job::{Assignment, DrivenJob, DrivenState, LikelyStart, Run, Unplanned};
pub(crate) use self::opportunistic::{EarlyRun, NodeShare, Opportunistic};
use self::promises::PromiseChanges;
pub(crate) use self::promises::UserPromise;
pub(crate) use self::quanta::UsedCpus;
use self::rebuild::holds_nodes;
pub(crate) use self::room::fits;
pub(crate) use self::stored::{Stored, StoredJob};
use crate::comment::CommentField;
use crate::forecasts::Likely;
use crate::notes::{Note, StartRecord};
use crate::orders::Order;
use crate::site::Site;
use crate::{DriveError, Settings};

/// The time for a placed job to start. A promise to a user has it in addition.
pub(crate) const START_TIMEOUT: Span = Span::from_ticks(15 * 1_000_000);

/// The most placement commands without effect.
const MOST_COMMANDS: u32 = 3;

/// A wake-up that is later than this was missed.
const LATE: Span = Span::from_ticks(10 * 1_000_000);

/// A driver with an older state than this was away.
const AWAY: Span = Span::from_ticks(60 * 1_000_000);

/// The most passes of a step after the first one. Should the policy place a job again and again where it cannot be, the next step
/// goes on.
const MOST_PASSES: u32 = 8;

/// What was read of Slurm for a step.
#[derive(Clone, Copy)]
pub(crate) struct Observation<'a> {
    pub(crate) cluster: &'a Cluster,
    /// The forms of the jobs that were unknown.
    pub(crate) details: &'a BTreeMap<String, Detail>,
    /// Whether the nodes were read with the jobs.
    pub(crate) is_complete: bool,
    /// The starts of jobs that have come and gone since they were placed.
    pub(crate) starts: &'a BTreeMap<String, Time>,
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

/// The scheduler of a cluster, between its readings.
pub(crate) struct Scheduler {
    settings: Settings,
    /// The comment that jobs get promises in, if they get any.
    comment_field: Option<CommentField>,
    site: Site,
    driver: Option<Driver>,
    /// The entries of a stored state, until there is a driver.
    restored: Vec<(JobId, Entry)>,
    ledger_state: LedgerState,
    jobs: BTreeMap<String, DrivenJob>,
    by_handle: BTreeMap<JobId, String>,
    last_number: JobNumber,
    last_step: Option<Time>,
    /// Why the ledger must be made again from the state of Slurm, if it must.
    rebuild: Option<RebuildCause>,
    /// The nodes of the stored placements.
    nodes: Vec<String>,
    /// The nodes of each group, in order; none of one that is not used.
    groups: Vec<Vec<String>>,
    /// The placements of jobs that start elsewhere than the policy wanted, until the ledger has them.
    moved: BTreeMap<JobId, Placement>,
    /// The findings before the first step.
    found: Step,
    /// The handle at which the search for an unused one begins.
    next_handle: u32,
    /// The job that got a comment last.
    last_commented: String,
    /// The next instant at which an opportunistic job has to end its run, or has ended it.
    opportunistic_wake: Option<Time>,
    /// The clock at this step. Its instant may be that of a wake-up before.
    now: Time,
    /// The tasks of arrays that have a place.
    arrays: ArrayPlaces,
    /// The users with limits that keep a placed job from starting.
    limited_users: BTreeSet<u32>,
}

/// The events of a step.
#[derive(Default)]
struct Events {
    round: Round,
    /// Why the ledger must be made again, if something happened that no event describes.
    rebuild: Option<RebuildCause>,
    /// Jobs to admit: name, request.
    arrived: Vec<(String, Request)>,
    /// Those of them that were in the ledger with another request.
    changed_requests: Vec<String>,
}

impl Events {
    /// Has the ledger made again.
    fn require_rebuild(&mut self, cause: RebuildCause) {
        self.rebuild = self.rebuild.max(Some(cause));
    }

    fn is_empty(&self) -> bool {
        self.rebuild.is_none() && self.round.is_empty()
    }
}

impl Scheduler {
    /// Returns the instant at which the policy wants to be called again, or a job is tried again.
    pub(crate) fn wake(&self) -> Option<Time> {
        let tries = self.jobs.values().filter_map(|job| job.unplanned()?.until);
        // The last step looked at those before.
        let tries = tries.filter(|until| self.last_step.is_none_or(|last| *until > last));
        let policy = self.driver.as_ref().and_then(Driver::wake);
        policy.into_iter().chain(tries).chain(self.opportunistic_wake).min()
    }

    /// Returns a copy of the ledger for simulations, once there is one.
    pub(crate) fn copy(&self) -> Option<LiveQueue> {
        let driver = self.driver.as_ref()?;
        let copy = SystemCopy { now: self.last_step?, ledger: driver.ledger().clone(), wake: driver.wake() };
        Some(LiveQueue { policy: self.settings.policy.clone(), copy })
    }

    /// Takes in forecasts.
    pub(crate) fn set_likely(&mut self, likely: &[Likely]) {
        let Some(now) = self.last_step else { return };
        let by_job: BTreeMap<JobNumber, LikelyStart> =
            likely.iter().map(|likely| (likely.job, likely.start)).collect();
        for job in self.jobs.values_mut() {
            match by_job.get(&job.number) {
                Some(start) => job.set_likely(now, *start),
                None => job.likely = None,
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
        let is_unknown = |job: &&Job| {
            if !is_driven(job, &partitions, &self.site) && !self.site_is_new() {
                return false;
            }
            let Some(known) = self.jobs.get(&job.id) else { return true };
            if unread.contains(&job.id) || known.opportunistic().is_some_and(Opportunistic::waits_again) {
                return true;
            }
            if holds_nodes(job) {
                return job.on.len() > 1 && (changed.contains(&job.id) || !known.has_nodes_of(job));
            }
            let is_placed = job.reservation.as_deref() == Some(&self.settings.reservation);
            changed.contains(&job.id) && !is_placed
        };
        cluster.jobs.values().filter(is_unknown).map(|job| job.id.as_str()).collect()
    }

    /// Returns the placed jobs that are gone.
    pub(crate) fn vanished(&self, cluster: &Cluster) -> Vec<String> {
        let is_gone = |(id, job): &(&String, &DrivenJob)| {
            let is_placed = job.assignment().is_some() || job.opportunistic().is_some();
            is_placed && !cluster.jobs.contains_key(*id)
        };
        self.jobs.iter().filter(is_gone).map(|(id, _)| id.clone()).collect()
    }

    fn site_is_new(&self) -> bool {
        self.site.len() == 0
    }

    /// Makes one step, with the state of Slurm at `now`.
    pub(crate) fn step(&mut self, now: Time, observed: Observation<'_>) -> Result<Step, DriveError> {
        let cluster = observed.cluster;
        self.now = now;
        let mut step = std::mem::take(&mut self.found);
        step.changed |= !step.notes.is_empty() || !step.starts.is_empty();
        let (at, away) = self.instant(now);
        self.update_site(at, cluster)?;
        if self.last_step.is_some_and(|last| now - last > AWAY) {
            self.let_long_runs_go_on(cluster, &mut step);
        }
        let mut events = self.compare(at, observed, &mut step);
        if !events.round.ended.is_empty() && self.is_overcommitted() {
            events.require_rebuild(RebuildCause::Overcommitted);
        }
        if away {
            events.round.fault = Some(Fault::Away);
        }
        let at = self.run_passes(at, cluster, events, &mut step)?;
        self.end_other_quanta(cluster, &mut step);
        self.use_idle_nodes(at, cluster, &mut step);
        self.last_step = Some(at);
        let occupied = self.nodes_to_wait_for();
        step.wants_nodes = !observed.is_complete && self.has_new_placements(cluster, &occupied);
        if !step.wants_nodes {
            self.give_orders(cluster, observed.details, &occupied, &mut step);
        }
        Ok(step)
    }

    /// Returns whether a host has more resources in the ledger than it really has: its jobs had more when the ledger was made. The
    /// difference must not outlive them.
    fn is_overcommitted(&self) -> bool {
        let Some(machine) = self.driver.as_ref().map(|driver| driver.ledger().machine()) else {
            return false;
        };
        let exceeds =
            |(host, in_ledger): (u32, &Host)| !in_ledger.capacity.fits_in(&self.site.capacity(HostId(host)));
        (0..).zip(machine.hosts()).any(exceeds)
    }

    /// Returns the instant of a step, and whether the driver was away before it. A wake-up has its own instant.
    fn instant(&self, now: Time) -> (Time, bool) {
        let due = self.wake().filter(|wake| *wake <= now);
        let was_gone = self.driver.is_none() && self.last_step.is_some_and(|last| now - last > AWAY);
        let planned = self.driver.as_ref().and_then(Driver::wake);
        let away = was_gone || planned.is_some_and(|wake| now > wake && now - wake > LATE);
        let least = self.last_step.map_or(now, |last| last + Span::TICK);
        (due.filter(|_| !away).unwrap_or(now).max(least), away)
    }

    /// Takes in the nodes in service.
    fn update_site(&mut self, at: Time, cluster: &Cluster) -> Result<(), DriveError> {
        let site = Site::new(cluster, &self.settings.partitions(cluster), &self.settings.reservation)
            .of_one_node(self.settings.policy.needs().one_host_per_job);
        if site.len() == 0 {
            return Err(DriveError::NoNodes);
        }
        if site == self.site {
            return Ok(());
        }
        if !self.site_is_new() {
            self.rebuild = Some(RebuildCause::Nodes);
        }
        self.renumber(&site);
        self.site = site;
        // A job that was too large may fit.
        for job in self.jobs.values_mut().filter(|job| job.failed_starts == 0) {
            job.end_pause(at);
        }
        Ok(())
    }

    /// Plays the events of a step, and carries out what the policy decides, until nothing more follows. Returns the last instant.
    fn run_passes(
        &mut self,
        mut at: Time,
        cluster: &Cluster,
        mut events: Events,
        step: &mut Step,
    ) -> Result<Time, DriveError> {
        let mut changes = PromiseChanges::new(std::mem::take(&mut events.changed_requests));
        for passes in 0.. {
            let mut effects = vec![];
            let cause = self.play(at, cluster, events, &mut effects)?;
            events = self.carry_out(at, cluster, (effects, cause), &mut changes, step);
            let wake = self.driver.as_ref().and_then(Driver::wake).filter(|wake| *wake <= self.now);
            if !events.is_empty() {
                if passes >= MOST_PASSES {
                    self.rebuild = self.rebuild.max(events.rebuild).or(Some(RebuildCause::Unfinished));
                    break;
                }
            } else if let Some(wake) = wake
                && passes < MOST_PASSES
            {
                at = wake.max(at + Span::TICK);
            } else {
                break;
            }
        }
        self.settle_promises(at, changes, step);
        Ok(at)
    }

    /// Plays a round of events, on a new ledger if the old one is no longer true. Returns why it was made again, if it was.
    fn play(
        &mut self,
        at: Time,
        cluster: &Cluster,
        events: Events,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<RebuildCause>, DriveError> {
        let Events { mut round, rebuild, mut arrived, .. } = events;
        let rebuild = self.rebuild.max(rebuild);
        if rebuild.is_some() {
            self.rebuild(at, cluster, &mut round)?;
        } else {
            self.find_overdue(at, &mut round);
        }
        arrived.sort_by_key(|(_, request)| request.number);
        for (id, request) in arrived {
            let handle = self.unused_handle();
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            job.handle = Some(handle);
            job.plan();
            self.by_handle.insert(handle, id);
            round.submitted.push(Submission { job: handle, request });
        }
        let Some(driver) = &mut self.driver else { return Ok(rebuild) };
        let due = driver.wake().is_some_and(|wake| wake <= at);
        if !round.is_empty() || due {
            driver.round(at, &mut round, effects)?;
        }
        Ok(rebuild)
    }

    fn find_overdue(&self, at: Time, round: &mut Round) {
        let Some(driver) = &self.driver else { return };
        let ended: BTreeSet<JobId> = round.ended.iter().map(|ended| ended.job).collect();
        let is_overdue = |job: &JobId| matches!(driver.ledger().entry(*job).state, State::Running { expected: Expected::At(end), quantum: None, .. } if end <= at);
        round.overdue.extend(driver.ledger().running().filter(|job| !ended.contains(job)).filter(is_overdue));
    }

    /// Returns a handle that no job has. Handles stay below twice the number of jobs.
    fn unused_handle(&mut self) -> JobId {
        if self.next_handle as usize > 2 * self.by_handle.len() {
            self.next_handle = 0;
        }
        while self.by_handle.contains_key(&JobId(self.next_handle)) {
            self.next_handle += 1;
        }
        self.next_handle += 1;
        JobId(self.next_handle - 1)
    }
}
