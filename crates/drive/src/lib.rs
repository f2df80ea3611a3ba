//! A policy schedules the nodes of a Slurm cluster.
//!
//! # How
//! Users submit with plain `sbatch`. The driver reserves the nodes (`scontrol create reservation`), so Slurm starts no job there
//! by itself. When the policy starts a job, the driver moves it into the reservation, with its nodes, and Slurm starts it at
//! once. The job stays in its partition, so all of Slurm's own rules hold.
//!
//! # Fail-safe
//! The reservation ends some minutes from now, and the driver keeps renewing it. Without the driver it ends, and Slurm schedules
//! by itself; jobs that run go on. When the driver is back, it reserves the nodes again.
//!
//! # Rights
//! An operator of Slurm's accounting may do all of this.

mod desk;

mod forecasts;

mod form;

mod notes;

mod obstacle;

mod orders;

mod seats;

mod site;

mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use miserly_core::{Span, Time, Violation};
use miserly_policies::{PolicyError, PolicySpec};
use miserly_slurm::{Change, Cluster, Detail, Job, JobState, Limit, Poller, Slurm, SlurmError};

pub use crate::desk::{Step, Told};
pub use crate::forecasts::Learn;
pub use crate::notes::{Note, StartRecord};
pub use crate::orders::Order;

use crate::desk::{Desk, PATIENCE, Seen, Stage, StoredJob};
use crate::forecasts::Forecasts;
use crate::store::Store;

/// The readings after which all forms are read again.
const READINGS: u64 = 150;

/// The shortest time between two steps.
const LEAST_PAUSE: Duration = Duration::from_millis(250);

/// The driven partitions, and the way of driving them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy.
    pub policy: PolicySpec,
    /// The seed of its draws.
    pub seed: u64,
    /// The partitions; all, if there are none.
    pub partitions: Vec<String>,
    /// The name of the reservation.
    pub reservation: String,
    /// The user of the driver, by number. The reservation is its own.
    pub owner: u32,
    /// After this time without the driver, Slurm schedules by itself.
    pub fallback: Span,
    /// The time after its limit at which a job is gone at the latest.
    pub margin: Span,
    /// Whether jobs get comments.
    pub comments: bool,
    /// The preemption lead time of opportunistic jobs: the time that a job takes to leave its nodes. Without one there are no such
    /// jobs.
    pub lead: Option<Span>,
    /// The time that a job takes to leave its nodes, if the policy has it requeued.
    pub leaving: Span,
}

impl Settings {
    /// Returns the driven partitions.
    fn partitions(&self, cluster: &Cluster) -> BTreeSet<String> {
        if self.partitions.is_empty() {
            return cluster.partitions.keys().cloned().collect();
        }
        self.partitions.iter().cloned().collect()
    }

    /// Returns the span that is planned for a job of this limit.
    fn estimate(&self, limit: Limit) -> Span {
        Span::from_secs(limit.seconds()).unwrap_or(Span::MAX) + self.margin + self.delay()
    }

    /// Returns the promise of the policy for a user: with the time that a start takes.
    fn told(&self, latest: Time) -> Time {
        if latest == Time::MAX { latest } else { latest + self.delay() }
    }

    /// Returns the time that a start takes at most: other jobs leave the nodes, and Slurm starts the job.
    fn delay(&self) -> Span {
        let leaving = if self.policy.needs().requeue { self.leaving } else { Span::ZERO };
        PATIENCE + self.lead.unwrap_or(leaving)
    }
}

/// Why the driver cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The cluster.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// The policy cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy made a mistake.
    #[error("the policy made a mistake: {0}")]
    Violation(#[from] Violation),
    /// The partitions have no nodes.
    #[error("the driven partitions have no nodes")]
    NoNodes,

    /// The policy needs another machine.
    #[error("{policy} needs {machine}")]
    Machine {
        /// The policy.
        policy: String,
        /// The machine that it needs.
        machine: &'static str,
    },
    /// The policy needs something that a driver of Slurm cannot do.
    #[error("{policy} cannot drive a cluster: it needs {need}")]
    Needs {
        /// The policy.
        policy: String,
        /// Its need.
        need: &'static str,
    },
    /// The policy requeues jobs itself.
    #[error("{policy} requeues jobs itself, so there is no --opportunistic with it")]
    NotOpportunistic {
        /// The policy.
        policy: String,
    },
    /// Slurm refuses the reservation.
    #[error(
        "Slurm refuses the reservation {reservation}: {message}; is this user an operator? (sacctmgr modify user NAME set adminlevel=Operator)"
    )]
    Rights {
        /// The reservation.
        reservation: String,
        /// Slurm's words.
        message: String,
    },
    /// The state of Slurm is impossible.
    #[error("the jobs that Slurm shows do not fit its nodes: {0}")]
    Ledger(String),
    /// The folder of the state cannot be used.
    #[error("cannot use {}: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// The nodes were handed back.
    #[error("the nodes were handed back")]
    HandedBack,
    /// Another driver has the folder.
    #[error("another driver uses {}", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no state.
    #[error("no driver has its state in {}", folder.display())]
    NoState {
        /// The folder.
        folder: PathBuf,
    },
    /// The database fails.
    #[error("{}: {error}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error.
        error: rusqlite::Error,
    },
    /// The database is of a later version.
    #[error("{} has format {format}, of a later version of this program", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// There is no thread for forecasts.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The stored state cannot be read.
    #[error("the stored state is damaged: {0}")]
    Damaged(String),
}

/// The driver of a cluster.
pub struct Drive {
    slurm: Slurm,
    settings: Settings,
    poller: Poller,
    desk: Desk,
    store: Option<Store>,
    forecasts: Option<Forecasts>,
    /// Whether a step has succeeded.
    has_run: bool,
    /// Findings of steps that were not delivered.
    found: Step,
    /// The jobs with forms that may have changed.
    changed: BTreeSet<String>,
    readings: u64,
}

impl Drive {
    /// Returns the driver of a cluster, with the state of a folder. Without a folder it is a dry run: nothing is stored or asked of Slurm.
    ///
    /// # Errors
    /// If the policy needs something that cannot be done, a partition does not exist, or the folder cannot be used.
    pub fn new(
        slurm: Slurm,
        cluster: &Cluster,
        settings: Settings,
        folder: Option<&Path>,
    ) -> Result<Drive, DriveError> {
        if let Some(need) = unmet(&settings.policy) {
            return Err(DriveError::Needs { policy: settings.policy.to_string(), need });
        }
        if settings.lead.is_some() && settings.policy.needs().requeue {
            return Err(DriveError::NotOpportunistic { policy: settings.policy.to_string() });
        }
        for partition in &settings.partitions {
            cluster.check_partition(partition)?;
        }
        let (store, stored) = match folder.map(Store::open).transpose()? {
            Some((store, stored)) => (Some(store), stored),
            None => (None, desk::Stored::default()),
        };
        let desk = Desk::new(settings.clone(), stored);
        Ok(Drive {
            poller: Poller::new(slurm.clone()).jobs_most(),
            slurm,
            settings,
            desk,
            store,
            forecasts: None,
            has_run: false,
            found: Step::default(),
            changed: BTreeSet::new(),
            readings: 0,
        })
    }

    /// Makes forecasts of waiting jobs, from `draws` futures with likely runtimes, which `learn` reads now and then.
    ///
    /// # Errors
    /// If the system has no thread for them.
    pub fn with_forecasts(self, learn: Learn, draws: u64) -> Result<Drive, DriveError> {
        let forecasts = Forecasts::start(learn, draws).map_err(DriveError::Thread)?;
        Ok(Drive { forecasts: Some(forecasts), ..self })
    }

    /// Returns the partitions that are not driven and have nodes of those that are. Their jobs wait until they are.
    pub fn neighbours(&self, cluster: &Cluster) -> Vec<String> {
        let driven = self.settings.partitions(cluster);
        let nodes: BTreeSet<&String> = driven
            .iter()
            .filter_map(|name| cluster.partitions.get(name))
            .flat_map(|one| &one.nodes)
            .collect();
        let others = cluster.partitions.iter().filter(|(name, _)| !driven.contains(*name));
        others
            .filter(|(_, one)| one.nodes.iter().any(|node| nodes.contains(node)))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Reads the cluster, decides, stores the decisions, and passes them on to Slurm.
    ///
    /// # Errors
    /// If the cluster cannot be read: the next step may succeed ([`DriveError::Slurm`]). Otherwise the driver cannot go on.
    pub fn step(&mut self) -> Result<Step, DriveError> {
        if self.store.as_ref().is_some_and(Store::is_handed_back) {
            return Err(DriveError::HandedBack);
        }
        let mut step = self.look()?;
        if step.wants_nodes {
            // Its findings are kept, should the second reading fail.
            self.found.add(step);
            self.poller.read_all();
            step = self.look()?;
        }
        step = std::mem::take(&mut self.found).and(step);
        let of_reservation = |order: &Order| matches!(order, Order::Reserve { .. } | Order::Renew { .. });
        if !self.has_run && self.store.is_some() && !step.orders.iter().any(of_reservation) {
            // It shows whether this user may drive, before any job waits for that.
            let reservation = self.settings.reservation.clone();
            let renew = Order::Renew { reservation, minutes: orders::minutes(self.settings.fallback) };
            step.orders.insert(0, renew);
        }
        if let Some(store) = &mut self.store {
            if step.changed {
                store.commit(self.desk.stored(), &step.starts)?;
            }
            // A controller that is away is asked again at the next step.
            let held = step.orders.iter().any(|order| {
                !matches!(order, Order::Place { .. } | Order::TakeBack { .. } | Order::Tell { .. })
            });
            let asked = self.ask(&step.orders);
            let untold = asked.as_ref().map_or_else(|_| step.orders.iter().collect(), Clone::clone);
            for order in untold {
                if let Order::Tell { job, .. } = order {
                    self.desk.untell(job);
                }
            }
            if held {
                self.poller.read_all();
            }
            match asked {
                Ok(_) | Err(DriveError::Slurm(_)) => {}
                Err(error) => {
                    // Its notes are delivered with the next step that succeeds.
                    self.found.add(step);
                    return Err(error);
                }
            }
        }
        self.has_run = true;
        Ok(step)
    }

    /// Reads the cluster, and decides.
    fn look(&mut self) -> Result<Step, DriveError> {
        if let Some(likely) = self.forecasts.as_mut().and_then(Forecasts::take) {
            self.desk.set_likely(&likely);
        }
        let changes = self.poller.poll()?;
        let Some(cluster) = self.poller.cluster() else { return Ok(Step::default()) };
        // They stay until they are read. Not every change of a form shows, so all are read now and then.
        self.changed.extend(changes.iter().filter_map(changed_job).map(str::to_owned));
        self.readings += 1;
        if self.readings.is_multiple_of(READINGS) {
            self.changed.extend(cluster.jobs.keys().cloned());
        }
        let unknown: Vec<String> =
            self.desk.unknown(cluster, &self.changed).into_iter().map(str::to_owned).collect();
        let details = Detail::read(&self.slurm, cluster, &unknown)?;
        self.changed.clear();
        let vanished = self.desk.vanished(cluster);
        let starts =
            if vanished.is_empty() { BTreeMap::new() } else { Cluster::starts(&self.slurm, &vanished) };
        let is_complete = self.poller.is_complete();
        let seen = Seen { cluster, details: &details, starts: &starts, is_complete };
        let step = self.desk.step(Time::from_ticks(Timestamp::now().as_microsecond()), seen)?;
        if let Some(forecasts) = &mut self.forecasts {
            forecasts.ask(|| self.desk.copy());
        }
        Ok(step)
    }

    /// Returns whether a step has succeeded.
    pub fn has_run(&self) -> bool {
        self.has_run
    }

    /// Asks Slurm for these things. Returns those that it refuses, which the next step sees too.
    fn ask<'a>(&self, orders: &'a [Order]) -> Result<Vec<&'a Order>, DriveError> {
        let mut refused = vec![];
        for order in orders {
            for command in order.commands() {
                match self.slurm.control(&command)? {
                    None => {}
                    Some(message) if matches!(order, Order::Reserve { .. } | Order::Renew { .. }) => {
                        return Err(DriveError::Rights {
                            reservation: self.settings.reservation.clone(),
                            message,
                        });
                    }
                    Some(_) => refused.push(order),
                }
            }
        }
        Ok(refused)
    }

    /// Returns the time until the next step.
    pub fn pause(&self) -> Duration {
        let now = Time::from_ticks(Timestamp::now().as_microsecond());
        let wake = self.desk.wake().map(|wake| (wake - now).ticks().max(0).unsigned_abs());
        let pause = self.poller.pause();
        // An instant that comes again and again is no reason to ask the controller more often.
        wake.map_or(pause, |wake| pause.min(Duration::from_micros(wake).max(LEAST_PAUSE)))
    }

    /// Hands the nodes back to Slurm: placed jobs that have not started are no longer bound to nodes, and the reservation ends.
    ///
    /// With the folder of its state, a driver that runs ends at its next step ([`DriveError::HandedBack`]), jobs get the
    /// requests of their users back, and the jobs that the driver has suspended are resumed. One whose processors are in use
    /// stays suspended: the next call resumes it, if they are free then.
    ///
    /// # Errors
    /// If the cluster cannot be read or asked, or the folder has no state.
    pub fn hand_back(
        slurm: &Slurm,
        reservation: &str,
        folder: Option<&Path>,
    ) -> Result<HandedBack, DriveError> {
        let (stored, has_ended) = match folder {
            Some(folder) => store::hand_back(folder)?,
            None => (desk::Stored::default(), true),
        };
        let cluster = Cluster::read(slurm)?;
        let end = cluster.reservations.get(reservation).map(|reservation| reservation.end);
        // One that has ended stays for a while, and may be asked for no second end.
        let is_active = end.is_some_and(|end| end > cluster.configuration.now + 1);
        let inside =
            |job: &&Job| job.state == JobState::Pending && job.reservation.as_deref() == Some(reservation);
        let back = |job: &Job| {
            let form = stored.jobs.get(&job.id).map(|job| &job.facts.form);
            let all = cluster.nodes.len() as u64;
            let count = form.map(|form| (form.least_nodes.max(1), form.most_nodes.unwrap_or(all)));
            Order::TakeBack {
                job: job.id.clone(),
                nodes: form.map(|form| form.nodes.clone()).unwrap_or_default(),
                count: count.unwrap_or((job.nodes.max(1), all)),
                releases: job.priority == orders::PLACED,
            }
        };
        let placed = cluster.jobs.values().filter(|_| is_active).filter(inside);
        let mut orders: Vec<Order> = placed.map(back).collect();
        for command in orders.iter().flat_map(Order::commands) {
            slurm.control(&command)?;
        }
        // Slurm may have started one of these meanwhile.
        let (resumed, stay_suspended) = resume_suspended(slurm, &stored.jobs)?;
        orders.extend(resumed);
        if is_active {
            let end = Order::HandBack { reservation: reservation.to_owned() };
            for command in end.commands() {
                if let Some(message) = slurm.control(&command)? {
                    return Err(DriveError::Rights { reservation: reservation.to_owned(), message });
                }
            }
            orders.push(end);
        }
        Ok(HandedBack { orders, stay_suspended, has_ended })
    }
}

/// The outcome of [`Drive::hand_back`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// The orders that Slurm was given; none if there was nothing to hand back.
    pub orders: Vec<Order>,
    /// The jobs that the driver has suspended, and that stay so: their processors are in use.
    pub stay_suspended: Vec<String>,
    /// Whether the driver of the folder has ended. Otherwise it ends at its next step, and may have suspended further jobs.
    pub has_ended: bool,
}

/// A job of the driver, for people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct QueuedJob {
    /// The job.
    pub job: String,
    /// Where it is: `waiting`, `opportunistic` (it runs on idle nodes ahead of its start), `placed`, `quantum` (it runs for a
    /// quantum), `running`, `suspended` (for the quantum of another job) or `aside`.
    pub stage: &'static str,
    /// Why it is aside.
    pub why: Option<String>,
    /// Its first promise, seconds since 1970.
    pub first: Option<i64>,
    /// Its last promise, seconds since 1970.
    pub latest: Option<i64>,
    /// The start that the policy plans, seconds since 1970. It is no promise.
    pub planned: Option<i64>,
    /// The median of its start in simulated futures, seconds since 1970.
    pub likely: Option<i64>,
    /// The start by which it starts in 95 % of the simulated futures, seconds since 1970.
    pub by_95: Option<i64>,
    /// Why a promise was broken.
    pub broken: Option<String>,
}

/// Returns the jobs of a driver by the state in its folder, and the starts so far.
///
/// # Errors
/// If there is no state, or it cannot be read.
pub fn queue(folder: &Path) -> Result<(Vec<QueuedJob>, Vec<StartRecord>), DriveError> {
    let (stored, starts) = store::look(folder)?;
    let seconds = |ticks: i64| Some(Time::from_ticks(ticks)).filter(|at| *at < Time::MAX).map(Time::secs);
    let mut jobs: Vec<_> = stored.jobs.into_iter().collect();
    jobs.sort_by_key(|(_, job)| job.number);
    let job = |(job, StoredJob { facts, entry, .. }): (String, StoredJob)| QueuedJob {
        stage: match (&facts.stage, &facts.aside) {
            (Stage::Waiting, _)
                if facts.opportunistic.as_ref().is_some_and(|job| job.start_of(None).is_some()) =>
            {
                "opportunistic"
            }
            (Stage::Running, _) if facts.suspension.is_some() => "suspended",
            (Stage::Running, _) if facts.quantum.is_some() => "quantum",
            (Stage::Running, _) => "running",
            (Stage::Placed { .. }, _) => "placed",
            (Stage::Waiting, Some(_)) => "aside",
            (Stage::Waiting, None) => "waiting",
        },
        job,
        why: facts.aside.map(|aside| aside.why),
        first: facts.promised.and_then(|(first, _)| seconds(first)),
        latest: facts.promised.and_then(|(_, latest)| seconds(latest)),
        planned: entry.and_then(|entry| entry.planned).map(Time::ticks).and_then(seconds),
        likely: facts.likely.and_then(|(median, _)| seconds(median)),
        by_95: facts.likely.and_then(|(_, by_95)| seconds(by_95)),
        broken: facts.broken,
    };
    Ok((jobs.into_iter().map(job).collect(), starts))
}

/// Resumes the jobs that a driver has suspended, where their processors are free. Returns the orders, and the jobs that stay suspended.
fn resume_suspended(
    slurm: &Slurm,
    stored: &BTreeMap<String, StoredJob>,
) -> Result<(Vec<Order>, Vec<String>), DriveError> {
    let (mut resumed, mut others) = (vec![], vec![]);
    let suspended: Vec<_> = stored.iter().filter(|(_, job)| job.facts.suspension.is_some()).collect();
    if suspended.is_empty() {
        return Ok((resumed, others));
    }
    let cluster = Cluster::read(slurm)?;
    let mut used = desk::Used::of(&cluster, |id| stored.get(id).map(|job| &job.facts.form));
    for (id, stored) in suspended {
        let Some(job) = cluster.jobs.get(id).filter(|job| job.state == JobState::Suspended) else { continue };
        let order = Order::Resume { job: id.clone() };
        let is_free = used.takes(&cluster, job, &stored.facts.form);
        if is_free && slurm.control(&order.commands()[0])?.is_none() {
            resumed.push(order);
        } else {
            others.push(id.clone());
        }
    }
    Ok((resumed, others))
}

/// Returns a need of a policy that a driver of Slurm cannot meet.
fn unmet(policy: &PolicySpec) -> Option<&'static str> {
    let needs = policy.needs();
    let unable = [
        (needs.swapping, "to swap out suspended jobs"),
        (needs.checkpoints, "to keep the work of jobs that it returns to the queue"),
        (needs.resizing, "to resize jobs"),
        (needs.time_slices, "to slice time"),
        (needs.named_processors, "to choose processors"),
        (needs.known_runtimes, "the runtimes of jobs in advance"),
        (needs.beyond_limits, "jobs that run beyond their limits"),
    ];
    unable.into_iter().find_map(|(is_needed, need)| is_needed.then_some(need))
}

fn changed_job(change: &Change) -> Option<&str> {
    match change {
        Change::Submitted { job } | Change::State { job, .. } | Change::Updated { job } => Some(job),
        Change::Gone { .. } | Change::Node { .. } => None,
    }
}

/// Returns an instant for people.
fn local(at: Time) -> String {
    written(at, "%Y-%m-%dT%H:%M:%S")
}

/// Returns an instant for people, to the minute.
fn minute(at: Time) -> String {
    written(at, "%Y-%m-%dT%H:%M")
}

fn written(at: Time, format: &str) -> String {
    let zone = jiff::tz::TimeZone::system();
    let at = Timestamp::from_second(at.secs()).map(|at| at.to_zoned(zone).strftime(format).to_string());
    at.unwrap_or_else(|_| "-".to_owned())
}

/// Returns the number of a user in the list of a reservation: its number, or its name on this machine.
fn user_number(name: &str) -> Option<u32> {
    let name = name.trim();
    name.parse().ok().or_else(|| Some(nix::unistd::User::from_name(name).ok()??.uid.as_raw()))
}
