//! The state of the driver, and its decisions. Nothing here reads a clock, a file or a cluster.
//!
//! Each step compares what Slurm shows with the ledger. The differences are events: submissions, ends, changes. The policy
//! decides in a pass, and the starts become [`Order`]s. An order that has no effect is given again, because the next step finds
//! the same difference.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{
    Amendment, BreachCause, Change, Driver, Effect, EndHow, Ended, Entry, EventOrder, Expected, Fault, JobId,
    JobNumber, Ledger, LedgerState, Placement, Procs, Progress, Request, Resources, Round, Share, SlotId,
    Span, StartReason, State, Submission, Time, work,
};
use miserly_slurm::{Cluster, Detail, Job, JobState};
use serde::{Deserialize, Serialize};

use crate::obstacle::obstacle;
use crate::orders::{Order, minutes};
use crate::seats::seats;
use crate::site::Site;
use crate::{DriveError, Settings};

/// The time for a placed job to start. A promise that is told has it in addition.
pub(crate) const PATIENCE: Span = Span::from_ticks(15 * 1_000_000);

/// The first pause before a job that did not start is planned again. It doubles up to the last one.
const FIRST_PAUSE: Span = Span::from_ticks(30 * 1_000_000);
const LAST_PAUSE: Span = Span::from_ticks(600 * 1_000_000);

/// The most placements that are asked for without effect.
const MOST_ASKED: u32 = 3;

/// A wake-up that is later than this was missed.
const LATE: Span = Span::from_ticks(10 * 1_000_000);

/// The most comments of a step.
const MOST_TOLD: usize = 50;

/// The mark of the part of a comment that is this program's.
const MARK: &str = "miserly: ";

/// A job that the driver knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) number: JobNumber,
    /// The handle in the ledger, if it is there.
    pub(crate) handle: Option<JobId>,
    pub(crate) facts: Facts,
}

/// What is stored of a job beside its entry in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Facts {
    /// Its form, as its user gave it.
    pub(crate) form: Detail,
    /// Its submission, seconds since 1970.
    pub(crate) submitted: i64,
    pub(crate) stage: Stage,
    /// Why it is not in the ledger, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aside: Option<Aside>,
    /// Whether it was placed once. Slurm then shows the number of nodes that it was given there.
    #[serde(default)]
    pub(crate) was_placed: bool,
    /// How often it was placed and did not start.
    #[serde(default)]
    pub(crate) failures: u32,
    /// The last comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<String>,
    /// Its first promise since it was seen, and the last one, with the time for its start. Ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promised: Option<(i64, i64)>,
    /// Why its promise was broken, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
}

impl Facts {
    /// Returns the record of its start, in seconds since 1970.
    fn record(&self, job: &str, start: i64) -> StartRecord {
        let seconds = |ticks: i64| Time::from_ticks(ticks).secs();
        StartRecord {
            job: job.to_owned(),
            submitted: self.submitted,
            first: self.promised.map(|(first, _)| seconds(first)),
            last: self.promised.map(|(_, last)| seconds(last)),
            start,
            broken: self.broken.clone(),
        }
    }
}

/// Where a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// It waits.
    #[default]
    Waiting,
    /// Slurm was asked to start it.
    Placed {
        /// The instant, in ticks.
        since: i64,
        /// How often Slurm was asked.
        asked: u32,
        /// The nodes.
        nodes: Vec<String>,
        /// The reason of the policy.
        reason: String,
    },
    /// It runs.
    Running,
}

/// Why a job is set aside, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Aside {
    /// The instant of the next try, in ticks. Without one, it is planned when the reason is gone.
    pub(crate) until: Option<i64>,
    pub(crate) why: String,
}

/// What happened to a job, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Note {
    /// Slurm was asked to start it.
    Placed {
        /// The nodes.
        nodes: Vec<String>,
        /// The reason of the policy.
        reason: String,
    },
    /// It runs.
    Started {
        /// The start, seconds since 1970.
        start: i64,
        /// Its last promise, seconds since 1970, if it had one.
        promised: Option<i64>,
    },
    /// It started without the driver.
    StartedBySlurm,
    /// It is gone from the cluster.
    Gone {
        /// Whether it ran.
        ran: bool,
    },
    /// It waits again.
    Requeued,
    /// It is not planned for now.
    SetAside {
        /// The reason.
        why: String,
    },
    /// It has a promise to start at that time or before, seconds since 1970.
    Promised {
        /// The latest start.
        latest: i64,
    },
    /// Its promise cannot be kept.
    PromiseBroken {
        /// The new latest start, seconds since 1970; none while it is not known.
        latest: Option<i64>,
        /// The cause.
        why: String,
    },
}

/// The start of a job that had a promise or not, for the audit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct StartRecord {
    /// The job.
    pub job: String,
    /// The submission, seconds since 1970.
    pub submitted: i64,
    /// The first promise, seconds since 1970, if there was one.
    pub first: Option<i64>,
    /// The last promise.
    pub last: Option<i64>,
    /// The start on the cluster.
    pub start: i64,
    /// Why a promise was broken.
    pub broken: Option<String>,
}

impl StartRecord {
    /// Returns whether it started by its first promise.
    pub fn is_kept(&self) -> Option<bool> {
        self.first.map(|first| self.start <= first)
    }
}

/// What Slurm shows.
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
    /// What happened.
    pub notes: Vec<(String, Note)>,
    /// The jobs that started.
    pub starts: Vec<StartRecord>,
    /// Whether jobs would be placed by an old view of the nodes. There are no orders then: the next step gives them.
    pub(crate) wants_nodes: bool,
    /// Whether anything changed that has to be stored.
    pub(crate) changed: bool,
}

/// The stored state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) numbers: JobNumber,
    /// The instant of the last step, ticks.
    pub(crate) last: Option<Time>,
    pub(crate) wake: Option<Time>,
    /// The nodes, in the order of the hosts of the stored placements.
    pub(crate) nodes: Vec<String>,
    pub(crate) state: LedgerState,
    pub(crate) jobs: Vec<(String, Facts, JobNumber, Option<Entry>)>,
}

/// The driver of a cluster, between its readings.
pub(crate) struct Desk {
    settings: Settings,
    site: Site,
    driver: Option<Driver>,
    /// The entries of a stored state, until there is a driver.
    restored: Vec<(JobId, Entry)>,
    state: LedgerState,
    cases: BTreeMap<String, Case>,
    by_handle: BTreeMap<JobId, String>,
    numbers: JobNumber,
    last: Option<Time>,
    /// Whether the ledger must be made again from what Slurm shows.
    stale: bool,
    /// The nodes of the stored placements.
    nodes: Vec<String>,
    /// The placements of jobs that start elsewhere than the policy wanted, until the ledger has them.
    moved: BTreeMap<JobId, Placement>,
    /// The handle at which the search for an unused one begins.
    cursor: u32,
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
    pub(crate) fn new(settings: Settings, stored: Stored) -> Desk {
        let mut cases = BTreeMap::new();
        let mut restored = vec![];
        let mut by_handle = BTreeMap::new();
        for (handle, (id, facts, number, entry)) in (0..).map(JobId).zip(stored.jobs) {
            let handle = entry.map(|entry| {
                restored.push((handle, entry));
                by_handle.insert(handle, id.clone());
                handle
            });
            cases.insert(id, Case { number, handle, facts });
        }
        Desk {
            settings,
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
            moved: BTreeMap::new(),
            cursor: 0,
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
            (id.clone(), case.facts.clone(), case.number, case.handle.and_then(entry))
        };
        Stored {
            numbers: self.numbers,
            last: self.last,
            wake: self.wake(),
            nodes: self.nodes.clone(),
            state: ledger.map_or_else(|| self.state.clone(), Ledger::state),
            jobs: self.cases.iter().map(job).collect(),
        }
    }

    /// Returns the instant at which the policy wants to be called again, or a job is tried again.
    pub(crate) fn wake(&self) -> Option<Time> {
        let asides =
            self.cases.values().filter_map(|case| case.facts.aside.as_ref()?.until).map(Time::from_ticks);
        self.driver.as_ref().and_then(Driver::wake).into_iter().chain(asides).min()
    }

    /// Returns the jobs whose form is not known: those that are new, and those that run on several nodes.
    pub(crate) fn unknown<'a>(&self, cluster: &'a Cluster, changed: &BTreeSet<&str>) -> Vec<&'a str> {
        let partitions = self.settings.partitions(cluster);
        let wanted = |job: &&Job| {
            let is_placed = job.reservation.as_deref() == Some(&self.settings.reservation);
            match self.cases.get(&job.id) {
                _ if !is_ours(job, &partitions, &self.site) && !self.site_is_new() => false,
                None => true,
                Some(case) => {
                    let has = case.facts.form.on.len() == job.on.len();
                    if holds_nodes(job) {
                        !has && job.on.len() > 1
                    } else {
                        changed.contains(job.id.as_str()) && !is_placed
                    }
                }
            }
        };
        cluster.jobs.values().filter(wanted).map(|job| job.id.as_str()).collect()
    }

    /// Returns the placed jobs that are gone.
    pub(crate) fn vanished(&self, cluster: &Cluster) -> Vec<String> {
        let is_gone = |(id, case): &(&String, &Case)| {
            matches!(case.facts.stage, Stage::Placed { .. }) && !cluster.jobs.contains_key(*id)
        };
        self.cases.iter().filter(is_gone).map(|(id, _)| id.clone()).collect()
    }

    fn site_is_new(&self) -> bool {
        self.site.len() == 0
    }

    /// Makes one step, with what Slurm shows at `now`.
    pub(crate) fn step(&mut self, now: Time, seen: Seen<'_>) -> Result<Step, DriveError> {
        let cluster = seen.cluster;
        let mut step = Step::default();
        let due = self.wake().filter(|wake| *wake <= now);
        let away = self.last.is_none() || due.is_some_and(|due| now - due > LATE);
        // A wake-up has its own instant.
        let mut at =
            due.filter(|_| !away).unwrap_or(now).max(self.last.map_or(now, |last| last + Span::TICK));
        let site = Site::new(cluster, &self.settings.partitions(cluster), &self.settings.reservation);
        if site.len() == 0 {
            return Err(DriveError::NoNodes);
        }
        if site != self.site {
            self.renumber(&site);
            self.site = site;
            self.stale = true;
            // What was too large may fit.
            for case in self.cases.values_mut() {
                if let Some(aside) = &mut case.facts.aside
                    && aside.until.is_some()
                    && case.facts.failures == 0
                {
                    aside.until = Some(at.ticks());
                }
            }
        }
        let mut events = self.compare(at, seen, &mut step);
        if away && self.driver.is_some() {
            events.round.fault = Some(Fault::Away);
        }
        for tries in 0.. {
            let mut effects = vec![];
            self.play(at, cluster, std::mem::take(&mut events), &mut effects)?;
            events = self.carry_out(at, cluster, effects, &mut step);
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
        self.last = Some(at);
        step.wants_nodes = !seen.is_complete && self.has_unasked(cluster);
        if !step.wants_nodes {
            self.give_orders(cluster, &mut step);
        }
        Ok(step)
    }

    /// Moves the stored placements to the hosts of another site.
    fn renumber(&mut self, site: &Site) {
        let names: Vec<String> = site.names().map(str::to_owned).collect();
        let before = std::mem::replace(&mut self.nodes, names);
        let entries = match self.driver.take() {
            Some(driver) => {
                self.state = driver.ledger().state();
                let ledger = driver.ledger();
                let jobs = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
                jobs.map(|job| (job, ledger.entry(job).clone())).collect()
            }
            None => std::mem::take(&mut self.restored),
        };
        let moved = |placement: Placement| -> Option<Placement> {
            let share = |share: &Share| {
                let host = site.find(before.get(share.host.index())?)?;
                Some(Share { host, ..share.clone() })
            };
            let shares: Option<Vec<Share>> = placement.shares().iter().map(share).collect();
            shares.map(of_shares)
        };
        let entry = |(job, mut entry): (JobId, Entry)| {
            let had = entry.planned_on.is_some();
            entry.planned_on = entry.planned_on.take().and_then(moved);
            if had && entry.planned_on.is_none() {
                entry.planned = None;
            }
            if let State::Running { placement, .. } = &mut entry.state {
                *placement = moved(placement.clone())?;
            }
            Some((job, entry))
        };
        self.restored = entries.into_iter().filter_map(entry).collect();
    }

    /// Finds what happened since the last step.
    fn compare(&mut self, at: Time, seen: Seen<'_>, step: &mut Step) -> Events {
        let Seen { cluster, details, starts, .. } = seen;
        let mut events = Events::default();
        let partitions = self.settings.partitions(cluster);
        let ids: Vec<String> = self.cases.keys().cloned().collect();
        for id in ids {
            let job = cluster.jobs.get(&id);
            if let Some(form) = details.get(&id) {
                self.learn(&id, job, form);
            }
            match job {
                None => self.gone(&id, starts.get(&id).copied(), &mut events, step),
                Some(job) if holds_nodes(job) => self.runs(at, job, &mut events, step),
                Some(job) => self.waits(at, cluster, job, &mut events, step),
            }
        }
        let mut new: Vec<&Job> = cluster
            .jobs
            .values()
            .filter(|job| !self.cases.contains_key(&job.id) && is_ours(job, &partitions, &self.site))
            .collect();
        new.sort_by_key(|job| (job.submitted, job.order()));
        for job in new {
            // A job that came and went between two readings has no form.
            let Some(form) = details.get(&job.id) else { continue };
            self.numbers += 1;
            let facts = Facts { form: form.clone(), submitted: job.submitted, ..Facts::default() };
            self.cases.insert(job.id.clone(), Case { number: self.numbers, handle: None, facts });
            step.changed = true;
            if holds_nodes(job) {
                self.runs(at, job, &mut events, step);
            } else {
                self.waits(at, cluster, job, &mut events, step);
            }
        }
        events
    }

    /// Takes in the form of a job. That of a placed job has the nodes that it was given.
    fn learn(&mut self, id: &str, job: Option<&Job>, form: &Detail) {
        let Some(case) = self.cases.get_mut(id) else { return };
        let known = &mut case.facts.form;
        if job.is_some_and(holds_nodes) {
            known.on = form.on.clone();
        } else {
            let comment = known.comment.take().filter(|_| case.facts.told.is_some());
            let (least_nodes, most_nodes, nodes) = if case.facts.was_placed {
                (known.least_nodes, known.most_nodes, std::mem::take(&mut known.nodes))
            } else {
                (form.least_nodes, form.most_nodes, form.nodes.clone())
            };
            let comment = comment.or_else(|| own_comment(form.comment.as_deref()));
            *known = Detail { least_nodes, most_nodes, nodes, comment, ..form.clone() };
        }
    }

    fn gone(&mut self, id: &str, start: Option<i64>, events: &mut Events, step: &mut Step) {
        let Some(mut case) = self.cases.remove(id) else { return };
        let held = case.facts.stage != Stage::Waiting;
        let mut ran = held;
        if matches!(case.facts.stage, Stage::Placed { .. }) {
            // It was cancelled before its start, if there is none.
            ran = start.is_some();
            step.starts.extend(start.map(|start| case.facts.record(id, start)));
        }
        self.leave(&mut case, held, events);
        step.changed = true;
        step.notes.push((id.to_owned(), Note::Gone { ran }));
    }

    /// A job holds nodes.
    fn runs(&mut self, at: Time, job: &Job, events: &mut Events, step: &mut Step) {
        let (site, driver) = (&self.site, &self.driver);
        let Some(case) = self.cases.get_mut(&job.id) else { return };
        let here = job.on.iter().any(|node| site.find(node).is_some());
        let started = case.facts.stage != Stage::Running;
        if started {
            step.changed = true;
            let start = job.start.unwrap_or(at.secs());
            if matches!(case.facts.stage, Stage::Placed { .. }) {
                let record = case.facts.record(&job.id, start);
                step.notes.push((job.id.clone(), Note::Started { start, promised: record.last }));
                step.starts.push(record);
            } else {
                step.notes.push((job.id.clone(), Note::StartedBySlurm));
                events.disturbed = true;
            }
            case.facts.stage = Stage::Running;
            case.facts.aside = None;
        }
        let entry = case.handle.and_then(|handle| driver.as_ref()?.ledger().get(handle));
        match entry {
            Some(_) if !here => events.disturbed = true,
            Some(entry) => {
                // It has other nodes or processors there than the ledger says.
                let has = on_hosts(site, job, &case.facts.form);
                let held = entry.placement().map(Placement::shares).unwrap_or_default();
                let same = |share: &Share| {
                    let usable = site.capacity(share.host) != Resources::NONE;
                    !usable || has.iter().any(|(host, amount)| (*host, *amount) == (share.host, share.amount))
                };
                let shares = held.len() == has.len() && held.iter().all(same);
                events.disturbed |= !shares && !has.is_empty();
                let estimate = self.settings.estimate(job.limit);
                if entry.request.estimate != estimate
                    && let Some(job) = case.handle
                {
                    events.round.amended.push(Amendment { job, change: Change::Estimate(estimate) });
                    step.changed = true;
                }
            }
            None => events.disturbed |= here,
        }
    }

    /// A job waits.
    fn waits(&mut self, at: Time, cluster: &Cluster, job: &Job, events: &mut Events, step: &mut Step) {
        // It is put back at the end.
        let Some(mut case) = self.cases.remove(&job.id) else { return };
        self.waits_as(at, cluster, job, &mut case, events, step);
        self.cases.insert(job.id.clone(), case);
    }

    fn waits_as(
        &mut self,
        at: Time,
        cluster: &Cluster,
        job: &Job,
        case: &mut Case,
        events: &mut Events,
        step: &mut Step,
    ) {
        let why = obstacle(&self.settings, &self.site, cluster, job, &case.facts.form);
        let begin = begin(&case.facts.form, at);
        let why = why.or_else(|| {
            let later = begin.filter(|_| !self.settings.policy.needs().begin_and_deadline)?;
            Some(Aside { until: Some(later.ticks()), why: "it may not start yet".to_owned() })
        });
        match &mut case.facts.stage {
            Stage::Running => {
                // It was requeued.
                self.leave(case, true, events);
                case.facts.form.on.clear();
                let form = case.facts.form.clone();
                case.facts = Facts { form, submitted: case.facts.submitted, ..Facts::default() };
                step.changed = true;
                step.notes.push((job.id.clone(), Note::Requeued));
            }
            Stage::Placed { asked: 0, nodes, .. } if nodes.iter().any(|node| !self.site.is_usable(node)) => {
                // Nobody knows of the placement yet.
                self.leave(case, true, events);
                case.facts.stage = Stage::Waiting;
            }
            Stage::Placed { since, asked, .. } => {
                let is_there = job.reservation.as_ref() == Some(&self.settings.reservation);
                let waited = at - Time::from_ticks(*since);
                let failed = match &why {
                    Some(aside) => Some(aside.why.clone()),
                    None if waited > PATIENCE => Some(format!(
                        "it did not start: {}",
                        job.reason.as_deref().unwrap_or("Slurm gives no reason")
                    )),
                    None if !is_there && *asked >= MOST_ASKED => {
                        Some("Slurm refuses its placement".to_owned())
                    }
                    None => None,
                };
                let Some(why) = failed else { return };
                self.leave(case, true, events);
                case.facts.stage = Stage::Waiting;
                case.facts.failures += 1;
                let until = at + pause(case.facts.failures);
                set_aside(case, &job.id, Some(until), why, step);
                return;
            }
            Stage::Waiting => {}
        }
        if let Some(aside) = why {
            self.leave(case, false, events);
            set_aside(case, &job.id, aside.until.map(Time::from_ticks), aside.why, step);
            return;
        }
        if let Some(Aside { until: Some(until), .. }) = case.facts.aside
            && until > at.ticks()
        {
            return;
        }
        let request = Request {
            number: case.number,
            user: Some(job.user),
            constraints: miserly_core::Constraints { begin, ..miserly_core::Constraints::NONE },
            ..Request::new(
                case.number,
                Time::from_secs(job.submitted).unwrap_or(at).min(at),
                self.settings.estimate(job.limit),
                self.site.demand(job, &case.facts.form),
            )
        };
        let Some(handle) = case.handle else {
            events.arrived.push((job.id.clone(), request));
            return;
        };
        let before = match &self.driver {
            Some(driver) => driver.ledger().get(handle).map(|entry| &entry.request),
            None => self.restored.iter().find(|(other, _)| *other == handle).map(|(_, entry)| &entry.request),
        };
        match before {
            Some(before) if before.demand != request.demand => {
                self.leave(case, false, events);
                events.arrived.push((job.id.clone(), request));
            }
            Some(before) => {
                let mut amend = |change| events.round.amended.push(Amendment { job: handle, change });
                if before.estimate != request.estimate {
                    amend(Change::Estimate(request.estimate));
                }
                if before.constraints.begin.filter(|begin| *begin > at) != begin {
                    amend(Change::Begin(begin));
                }
            }
            None => {
                case.handle = None;
                events.arrived.push((job.id.clone(), request));
            }
        }
    }

    /// Takes a job out of the ledger: it ended, or it was withdrawn.
    fn leave(&mut self, case: &mut Case, ended: bool, events: &mut Events) {
        let Some(handle) = case.handle.take() else { return };
        self.by_handle.remove(&handle);
        self.moved.remove(&handle);
        if !ended {
            events.round.withdrawn.push(handle);
            return;
        }
        events.round.ended.push(Ended { job: handle, how: EndHow::Done });
        // A host that has only what jobs hold there loses it.
        let Some(driver) = &self.driver else { return };
        let entry = driver.ledger().get(handle);
        let machine = driver.ledger().machine();
        let shares = entry.and_then(Entry::placement).map(Placement::shares).unwrap_or_default();
        let shrinks = |share: &Share| machine.host(share.host).capacity != self.site.capacity(share.host);
        events.disturbed |= shares.iter().any(shrinks);
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
        let is_overdue = |job: &JobId| matches!(driver.ledger().entry(*job).state, State::Running { expected: Expected::At(end), .. } if end <= at);
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

    /// Makes the ledger again: the jobs that wait, from the ledger before, and those that hold nodes, from Slurm.
    fn rebuild(&mut self, at: Time, cluster: &Cluster, round: &mut Round) -> Result<(), DriveError> {
        let mut entries: BTreeMap<JobId, Entry> = std::mem::take(&mut self.restored).into_iter().collect();
        if let Some(driver) = self.driver.take() {
            let ledger = driver.ledger();
            self.state = ledger.state();
            let jobs = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
            entries.extend(jobs.map(|job| (job, ledger.entry(job).clone())));
        }
        for job in round.ended.drain(..).map(|ended| ended.job).chain(round.withdrawn.drain(..)) {
            entries.remove(&job);
        }
        for Amendment { job, change } in round.amended.drain(..) {
            if let Some(entry) = entries.get_mut(&job) {
                match change {
                    Change::Estimate(estimate) => entry.request.estimate = estimate,
                    Change::Begin(begin) => entry.request.constraints.begin = begin,
                }
            }
        }
        round.overdue.clear();
        self.by_handle.retain(|job, _| entries.contains_key(job));
        let mut admitted = entries.values().map(|entry| entry.admitted + 1).max().unwrap_or(0);
        let mut held = vec![Resources::NONE; self.site.len()];
        let ids: Vec<String> = self.cases.keys().cloned().collect();
        for id in ids {
            let case = &self.cases[&id];
            let placed = match &case.facts.stage {
                Stage::Waiting => continue,
                Stage::Placed { nodes, .. } => {
                    let moved = case.handle.and_then(|handle| self.moved.get(&handle));
                    let known = moved.or_else(|| entries.get(&case.handle?)?.placement()).cloned();
                    known.filter(|known| {
                        known.shares().iter().map(|share| self.site.name(share.host)).eq(nodes)
                    })
                }
                Stage::Running => cluster.jobs.get(&id).and_then(|job| {
                    let share = |(host, amount)| Share { host, amount, pes: miserly_core::Pes::Count };
                    let shares: Vec<Share> =
                        on_hosts(&self.site, job, &case.facts.form).into_iter().map(share).collect();
                    (!shares.is_empty()).then(|| of_shares(shares))
                }),
            };
            let (Some(placement), Some(job)) = (placed, cluster.jobs.get(&id)) else {
                // It holds none of the nodes that are in service.
                if let Some(handle) = case.handle {
                    entries.remove(&handle);
                    self.by_handle.remove(&handle);
                }
                if let Some(case) = self.cases.get_mut(&id) {
                    case.handle = None;
                }
                continue;
            };
            for share in placement.shares() {
                held[share.host.index()] = held[share.host.index()].plus(&share.amount);
            }
            let start = job.start.filter(|_| case.facts.stage == Stage::Running).and_then(Time::from_secs);
            let (number, handle) = (case.number, case.handle);
            let handle = handle.unwrap_or_else(|| self.unused());
            let before = entries.remove(&handle);
            let estimate = self.settings.estimate(job.limit);
            let entry = running(at, start, estimate, placement, before, (job, number), &mut admitted);
            entries.insert(handle, entry);
            self.by_handle.insert(handle, id.clone());
            if let Some(case) = self.cases.get_mut(&id) {
                case.handle = Some(handle);
            }
        }
        for entry in entries.values_mut().filter(|entry| entry.state == State::Waiting) {
            entry.request.submit = entry.request.submit.min(at);
        }
        let machine = self.site.machine(&held);
        let needs = self.settings.policy.needs();
        if let Some(machine) = needs.unmet(&machine) {
            return Err(DriveError::Machine { policy: self.settings.policy.to_string(), machine });
        }
        let policy = self.settings.policy.build(&machine, self.settings.seed)?;
        let ledger = Ledger::restored(machine, entries.into_iter().collect())
            .map_err(|rule| DriveError::Ledger(rule.to_string()))?
            .with_state(std::mem::take(&mut self.state));
        let mut driver = Driver::new(ledger, policy, EventOrder::Batched);
        driver.resume(at, None);
        self.driver = Some(driver);
        self.stale = false;
        self.moved.clear();
        round.fault = Some(round.fault.take().unwrap_or(Fault::Hosts));
        Ok(())
    }

    /// Carries out the decisions of a pass. Returns what they bring about at once.
    fn carry_out(&mut self, at: Time, cluster: &Cluster, effects: Vec<Effect>, step: &mut Step) -> Events {
        let mut events = Events::default();
        let mut started: Vec<(JobId, StartReason)> = vec![];
        step.changed |= !effects.is_empty();
        for effect in effects {
            let Some(id) = self.by_handle.get(&effect.job()).cloned() else { continue };
            let Some(case) = self.cases.get_mut(&id) else { continue };
            match effect {
                Effect::Started { job, reason, .. } => started.push((job, reason)),
                Effect::Promised { latest, .. } => {
                    let latest = told(latest);
                    let first = case.facts.promised.map_or(latest.ticks(), |(first, _)| first);
                    case.facts.promised = Some((first, latest.ticks()));
                    // One that starts at once is told of its start.
                    if latest - at > PATIENCE {
                        step.notes.push((id, Note::Promised { latest: latest.secs() }));
                    }
                }
                Effect::PromiseBroken { latest, why, .. } => {
                    let latest = told(latest);
                    let first = case.facts.promised.map_or(latest.ticks(), |(first, _)| first);
                    case.facts.promised = Some((first, latest.ticks()));
                    let why = cause(why).to_owned();
                    case.facts.broken = Some(why.clone());
                    let latest = Some(latest.secs()).filter(|_| latest < Time::MAX);
                    step.notes.push((id, Note::PromiseBroken { latest, why }));
                }
                Effect::Refused { .. } => {
                    case.handle = None;
                    self.by_handle.remove(&effect.job());
                    let why = "it is too large for the nodes in service".to_owned();
                    set_aside(case, &id, Some(at + LAST_PAUSE), why, step);
                }
                // A plan is no promise. No policy that does the others is accepted.
                _ => {}
            }
        }
        self.seat(at, cluster, &started, &mut events, step);
        events
    }

    /// Finds the nodes of the jobs that start.
    fn seat(
        &mut self,
        at: Time,
        cluster: &Cluster,
        started: &[(JobId, StartReason)],
        events: &mut Events,
        step: &mut Step,
    ) {
        let Some(driver) = &self.driver else { return };
        let ledger = driver.ledger();
        let mut free = ledger.free_hosts().each().to_vec();
        let placements: Vec<Placement> =
            started.iter().filter_map(|(job, _)| ledger.get(*job)?.placement().cloned()).collect();
        for share in placements.iter().flat_map(Placement::shares) {
            free[share.host.index()] = free[share.host.index()].plus(&share.amount);
        }
        for ((handle, reason), wanted) in started.iter().zip(&placements) {
            let Some(id) = self.by_handle.get(handle).cloned() else { continue };
            let (Some(case), Some(job)) = (self.cases.get_mut(&id), cluster.jobs.get(&id)) else { continue };
            let found = seats(&self.site, job, &case.facts.form, &free, wanted);
            let Some(found) = found else {
                events.round.ended.push(Ended { job: *handle, how: EndHow::Done });
                case.handle = None;
                self.by_handle.remove(handle);
                let why = "no nodes of the form that it asks for are free".to_owned();
                set_aside(case, &id, Some(at + FIRST_PAUSE), why, step);
                continue;
            };
            for share in found.shares() {
                free[share.host.index()] = free[share.host.index()].less(&share.amount);
            }
            let nodes: Vec<String> =
                found.shares().iter().map(|share| self.site.name(share.host).to_owned()).collect();
            events.disturbed |= found != *wanted;
            let reason = reason.as_str().to_owned();
            case.facts.stage = Stage::Placed { since: at.ticks(), asked: 0, nodes, reason };
            case.facts.was_placed = true;
            case.facts.aside = None;
            if found != *wanted {
                // The ledger is made again with it.
                self.moved.insert(*handle, found);
            }
        }
    }

    /// Returns whether a job was placed and Slurm was not asked yet.
    fn has_unasked(&self, cluster: &Cluster) -> bool {
        let is_unasked = |(id, case): (&String, &Case)| {
            matches!(case.facts.stage, Stage::Placed { asked: 0, .. }) && cluster.jobs.contains_key(id)
        };
        self.cases.iter().any(is_unasked)
    }

    /// Finds the commands that make Slurm do what the ledger says.
    fn give_orders(&mut self, cluster: &Cluster, step: &mut Step) {
        let name = self.settings.reservation.clone();
        let nodes: Vec<String> = self.site.names().map(str::to_owned).collect();
        let until = minutes(self.settings.fallback);
        let present = cluster.reservations.get(&name);
        match present {
            None => step.orders.push(Order::Reserve {
                reservation: name.clone(),
                nodes: nodes.clone(),
                owner: self.settings.owner,
                minutes: until,
            }),
            Some(reservation) => {
                let mut has = reservation.nodes.clone();
                has.sort();
                if has != nodes {
                    step.orders.push(Order::Span { reservation: name.clone(), nodes: nodes.clone() });
                }
                let left = reservation.end - cluster.configuration.now;
                if left < until * 60 * 3 / 4 {
                    step.orders.push(Order::Renew { reservation: name.clone(), minutes: until });
                }
            }
        }
        let admitted: BTreeSet<u32> = present
            .and_then(|reservation| reservation.users.as_deref())
            .unwrap_or_default()
            .split(',')
            .filter_map(|user| self.settings.user(user))
            .collect();
        let mut needed = BTreeSet::from([self.settings.owner]);
        let mut places = vec![];
        for (id, case) in &mut self.cases {
            let Some(job) = cluster.jobs.get(id) else { continue };
            let inside = job.reservation.as_deref() == Some(&name);
            match &mut case.facts.stage {
                Stage::Placed { nodes, asked, reason, .. } if job.state == JobState::Pending => {
                    needed.insert(job.user);
                    if !inside {
                        if *asked == 0 {
                            let note = Note::Placed { nodes: nodes.clone(), reason: reason.clone() };
                            step.notes.push((id.clone(), note));
                        }
                        *asked += 1;
                        step.changed = true;
                        places.push(Order::Place {
                            job: id.clone(),
                            reservation: name.clone(),
                            nodes: nodes.clone(),
                        });
                    }
                }
                Stage::Waiting if inside && job.state == JobState::Pending => {
                    let form = &case.facts.form;
                    let count = form.most_nodes.map(|most| (form.least_nodes, most));
                    places.push(Order::TakeBack { job: id.clone(), nodes: form.nodes.clone(), count });
                }
                _ => {}
            }
        }
        let more: BTreeSet<u32> = needed.difference(&admitted).copied().collect();
        let more = if present.is_some() { more } else { &more - &BTreeSet::from([self.settings.owner]) };
        if !more.is_empty() {
            step.orders.push(Order::Admit { reservation: name.clone(), users: more });
        }
        step.orders.append(&mut places);
        let fewer: BTreeSet<u32> = admitted.difference(&needed).copied().collect();
        if !fewer.is_empty() {
            step.orders.push(Order::Dismiss { reservation: name, users: fewer });
        }
        self.tell(cluster, step);
    }

    /// Tells users what their jobs wait for.
    fn tell(&mut self, cluster: &Cluster, step: &mut Step) {
        if !self.settings.comments {
            return;
        }
        let mut shared: BTreeMap<u64, u32> = BTreeMap::new();
        for job in cluster.jobs.values().filter(|job| job.state == JobState::Pending) {
            *shared.entry(job.number).or_default() += 1;
        }
        let mut told = 0;
        for (id, case) in &mut self.cases {
            let Some(job) = cluster.jobs.get(id) else { continue };
            // A comment on one of the waiting tasks of an array would part it from the others.
            if job.state != JobState::Pending || shared.get(&job.number) != Some(&1) || told == MOST_TOLD {
                continue;
            }
            let facts = &mut case.facts;
            let words = match (&facts.stage, &facts.aside, facts.promised) {
                (Stage::Placed { nodes, .. }, ..) => format!("starts on {}", nodes.join(",")),
                (_, Some(aside), _) => format!("not planned: {}", aside.why),
                (_, None, Some((_, latest))) if latest < Time::MAX.ticks() => {
                    format!("starts by {}", self.settings.local(Time::from_ticks(latest)))
                }
                // Its promise has no end.
                (_, None, Some(_)) => {
                    format!("waits: {}", facts.broken.as_deref().unwrap_or("no start is known"))
                }
                (_, None, None) => "waits".to_owned(),
            };
            let comment = match facts.form.comment.as_deref() {
                Some(own) => format!("{own} | {MARK}{words}"),
                None => format!("{MARK}{words}"),
            };
            if facts.told.as_ref() != Some(&comment) {
                told += 1;
                step.changed = true;
                step.orders.push(Order::Tell { job: id.clone(), text: comment.clone() });
                facts.told = Some(comment);
            }
        }
    }
}

/// Returns whether a job is the driver's business: it waits in a driven partition, or holds one of its nodes.
fn is_ours(job: &Job, partitions: &BTreeSet<String>, site: &Site) -> bool {
    if holds_nodes(job) {
        job.on.iter().any(|node| site.find(node).is_some())
    } else {
        job.state == JobState::Pending && job.partitions.iter().any(|name| partitions.contains(name))
    }
}

/// Returns whether a job has nodes: it starts, runs, is stopped or ends.
fn holds_nodes(job: &Job) -> bool {
    job.state != JobState::Pending && !job.on.is_empty()
}

/// Returns what a job has on the hosts of the site. Where Slurm does not say it, each of its nodes has the same.
fn on_hosts(site: &Site, job: &Job, form: &Detail) -> Vec<(miserly_core::HostId, Resources)> {
    let nodes = (job.on.len() as u64).max(1);
    let whole = site.demand(job, form);
    let each = |node: &String| {
        let host = site.find(node)?;
        if site.is_whole() || form.exclusive {
            return Some((host, site.equipment(host)));
        }
        let (cpus, memory) = match form.on.get(node) {
            Some(on) => (on.cpus, on.memory.saturating_mul(1024)),
            None => (job.cpus.div_ceil(nodes), whole.get(miserly_core::Kind::Memory).div_ceil(nodes)),
        };
        let memory = if site.hosts_account(miserly_core::Kind::Memory) { memory } else { 0 };
        let gpus = crate::site::gpus(form.gres_per_node.as_deref());
        let amount = Resources::cpus(cpus.max(1))
            .with(miserly_core::Kind::Memory, memory)
            .with(miserly_core::Kind::Gpus, gpus);
        Some((host, amount))
    };
    let mut on: Vec<_> = job.on.iter().filter_map(each).collect();
    on.sort_by_key(|(host, _)| *host);
    on
}

/// Returns the placement of these shares.
fn of_shares(mut shares: Vec<Share>) -> Placement {
    if shares.len() == 1 {
        return Placement::from_share(shares.swap_remove(0));
    }
    Placement::across(SlotId(0), shares)
}

/// Returns the entry of a job that holds nodes.
fn running(
    at: Time,
    start: Option<Time>,
    estimate: Span,
    placement: Placement,
    before: Option<Entry>,
    (job, number): (&Job, JobNumber),
    admitted: &mut u64,
) -> Entry {
    let had = before.as_ref().and_then(|entry| match entry.state {
        State::Running { start, .. } => Some(start),
        _ => None,
    });
    // The plans of others begin at the decision. The margin of its limit has the time until it starts.
    let start = had.or(start).unwrap_or(at).min(at);
    let demand = placement.total();
    let procs = demand.cpus_count().max(Procs::new(1));
    let submit = Time::from_secs(job.submitted).unwrap_or(start).min(start);
    let request = Request { user: Some(job.user), ..Request::new(number, submit, estimate, demand) };
    let mut entry = before.unwrap_or_else(|| {
        *admitted += 1;
        Entry::waiting(request.clone(), *admitted - 1)
    });
    entry.request = request;
    (entry.planned, entry.planned_on) = (None, None);
    let end = (start + entry.planned_span()).max(at + Span::TICK);
    entry.progress = Progress { done: work(at - start, procs), at, procs, ..Progress::default() };
    entry.state = State::Running {
        start,
        since: start,
        expected: Expected::At(end),
        placement,
        released: false,
        quantum: None,
    };
    entry
}

/// Returns the promise of a policy, as it is told: with the time that a start takes.
fn told(latest: Time) -> Time {
    if latest == Time::MAX { latest } else { latest + PATIENCE }
}

/// Returns the first instant at which a job may start, if it is not over.
fn begin(form: &Detail, at: Time) -> Option<Time> {
    form.eligible.and_then(Time::from_secs).filter(|begin| *begin > at)
}

/// Sets a job aside. A promise to it is broken.
fn set_aside(case: &mut Case, id: &str, until: Option<Time>, why: String, step: &mut Step) {
    let aside = Aside { until: until.map(Time::ticks), why };
    if case.facts.aside.as_ref().is_some_and(|before| before.why == aside.why && before.until == aside.until)
    {
        return;
    }
    step.changed = true;
    step.notes.push((id.to_owned(), Note::SetAside { why: aside.why.clone() }));
    if case.facts.promised.is_some() && case.facts.broken.is_none() {
        case.facts.broken = Some(aside.why.clone());
        step.notes.push((id.to_owned(), Note::PromiseBroken { latest: None, why: aside.why.clone() }));
    }
    case.facts.aside = Some(aside);
}

/// Returns the pause after so many failures.
fn pause(failures: u32) -> Span {
    let factor = 1_i64 << failures.saturating_sub(1).min(20);
    Span::from_ticks(FIRST_PAUSE.ticks().saturating_mul(factor)).min(LAST_PAUSE)
}

/// Returns the comment of a user, without the part of this program.
fn own_comment(comment: Option<&str>) -> Option<String> {
    let comment = comment?;
    let own =
        comment.find(MARK).map_or(comment, |at| comment[..at].trim_end().trim_end_matches('|').trim_end());
    Some(own.to_owned()).filter(|own| !own.is_empty())
}

fn cause(why: BreachCause) -> &'static str {
    match why {
        BreachCause::Overdue => "a job runs past its limit",
        BreachCause::Away => "the driver was away",
        BreachCause::Capacity => "nodes were lost or used otherwise",
        BreachCause::Amended => "the limit of a job was changed",
    }
}
