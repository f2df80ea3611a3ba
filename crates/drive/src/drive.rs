//! The loop of a driver: read the cluster, decide, store, ask Slurm.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use miserly_core::Time;
use miserly_slurm::{Change, Cluster, Detail, Poller, Reservation, Slurm};

use crate::comment::orders_to_clear;
use crate::forecasts::Forecasts;
use crate::instant::instant;
use crate::scheduler::{Observation, Scheduler, Stored};
use crate::store::Store;
use crate::{CommentField, DriveError, Learn, Order, Settings, Step, orders};

/// The readings after which all forms are read again.
const READINGS: u64 = 150;

/// The most nodes that a message names.
const NODES_NAMED: usize = 4;

/// The shortest time between two steps.
const LEAST_PAUSE: Duration = Duration::from_millis(250);

/// Checks that the nodes are held by no other driver, and by no other reservation of this one.
fn check_reservations(
    cluster: &Cluster,
    settings: &Settings,
    stored: &Stored,
    folder: &Path,
) -> Result<(), DriveError> {
    let active = |one: &Reservation| one.is_active(cluster.configuration.now);
    let found = |name: &str| cluster.reservations.get(name).filter(|one| active(one));
    let (reservation, folder) = (settings.reservation.clone(), folder.to_owned());
    if found(&reservation).is_some_and(|one| !stored.has_made(&reservation, one)) {
        return Err(DriveError::Reserved { reservation, folder });
    }
    let before = stored.reservation.clone().filter(|name| *name != reservation);
    if let Some(before) = before.filter(|name| found(name).is_some_and(Reservation::is_of_driver)) {
        return Err(DriveError::OtherReservation { before, folder });
    }
    let nodes = settings.nodes(cluster);
    let of_others = cluster.reservations.iter().filter(|(name, one)| **name != reservation && active(one));
    for (other, one) in of_others.filter(|(_, one)| one.is_of_driver()) {
        let held: Vec<&str> =
            one.nodes.iter().filter(|node| nodes.contains(node)).map(String::as_str).collect();
        if !held.is_empty() {
            let mut nodes = held[..held.len().min(NODES_NAMED)].join(",");
            if held.len() > NODES_NAMED {
                nodes += &format!(" and {} more", held.len() - NODES_NAMED);
            }
            return Err(DriveError::NodesReserved { nodes, reservation: other.clone() });
        }
    }
    Ok(())
}

/// Opens the state in a folder, if the nodes are free for the driver.
fn open_store(cluster: &Cluster, settings: &Settings, folder: &Path) -> Result<(Store, Stored), DriveError> {
    if !Store::is_in(folder)? {
        // A driver that is refused leaves no state.
        check_reservations(cluster, settings, &Stored::default(), folder)?;
    }
    let (store, stored) = Store::open(folder)?;
    check_reservations(cluster, settings, &stored, folder)?;
    Ok((store, stored))
}

/// The driver of a cluster.
pub struct Drive {
    slurm: Slurm,
    settings: Settings,
    poller: Poller,
    scheduler: Scheduler,
    store: Option<Store>,
    forecasts: Option<Forecasts>,
    /// Whether a step has succeeded.
    has_run: bool,
    /// Findings of steps that were not delivered.
    found: Step,
    /// The jobs with forms that may have changed.
    changed: BTreeSet<String>,
    /// The jobs with comments that users may have changed.
    unread: BTreeSet<String>,
    readings: u64,
    /// Whether the comments of users may have promises of a former driver, which wrote there.
    clears_comments: bool,
}

impl Drive {
    /// Returns the driver of a cluster, with the state of a folder. Without a folder it is a dry run: nothing is stored, and no order is sent.
    ///
    /// # Errors
    /// If the policy needs something that cannot be done, a partition does not exist, the folder cannot be used, or the reservation
    /// is that of another driver.
    pub fn new(
        slurm: Slurm,
        cluster: &Cluster,
        settings: Settings,
        folder: Option<&Path>,
    ) -> Result<Drive, DriveError> {
        settings.check()?;
        for partition in &settings.partitions {
            cluster.check_partition(partition)?;
        }
        let (store, stored) = match folder {
            Some(folder) => {
                open_store(cluster, &settings, folder).map(|(store, stored)| (Some(store), stored))?
            }
            None => (None, Stored::default()),
        };
        let comments = settings.comments.then(|| {
            let field = CommentField::for_user(&slurm, &cluster.configuration, settings.owner);
            field.or(stored.comments).unwrap_or(CommentField::Comment)
        });
        let clears_comments = comments == Some(CommentField::AdminComment);
        let scheduler = Scheduler::new(settings.clone(), stored, comments);
        Ok(Drive {
            poller: Poller::new(slurm.clone()).jobs_most(),
            slurm,
            settings,
            scheduler,
            store,
            forecasts: None,
            has_run: false,
            found: Step::default(),
            changed: BTreeSet::new(),
            unread: BTreeSet::new(),
            readings: 0,
            clears_comments,
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
        let nodes = self.settings.nodes(cluster);
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
        let mut step = self.read_and_decide()?;
        if step.wants_nodes {
            // Its findings are kept, should the second reading fail.
            self.found.add(step);
            self.poller.read_all();
            step = self.read_and_decide()?;
        }
        step = std::mem::take(&mut self.found).and(step);
        if self.store.is_some() {
            self.check_first_order(&mut step);
        }
        let clears = self.clears_comments;
        if clears {
            step.orders.append(&mut self.orders_to_clear());
        }
        if self.store.is_some() {
            self.commit(&step)?;
            if let Err(error) = self.carry_out(&step, clears) {
                // Its notes are delivered with the next step that succeeds.
                self.found.add(step);
                return Err(error);
            }
        }
        self.has_run = true;
        Ok(step)
    }

    /// Has the first step begin with an order for the reservation: it shows whether this user may drive, before any job waits for that.
    fn check_first_order(&self, step: &mut Step) {
        let is_of_reservation = |order: &Order| matches!(order, Order::Reserve { .. } | Order::Renew { .. });
        if !self.has_run && !step.orders.iter().any(is_of_reservation) {
            let reservation = self.settings.reservation.clone();
            let renew = Order::Renew { reservation, minutes: orders::minutes(self.settings.fallback) };
            step.orders.insert(0, renew);
        }
    }

    /// Stores the state, if the step has changed it.
    fn commit(&mut self, step: &Step) -> Result<(), DriveError> {
        let reserves = step.orders.iter().any(|order| matches!(order, Order::Reserve { .. }));
        match &mut self.store {
            Some(store) if step.changed || reserves || !self.has_run => {
                store.commit(self.scheduler.stored(), &step.starts)
            }
            _ => Ok(()),
        }
    }

    /// Passes the orders of a step on to Slurm. A controller that is away gets them again at the next step. `clears`: promises are
    /// taken out of the comments of users.
    fn carry_out(&mut self, step: &Step, clears: bool) -> Result<(), DriveError> {
        let changes_nodes = |order: &Order| {
            !matches!(order, Order::Place { .. } | Order::TakeBack { .. } | Order::Comment { .. })
        };
        let sent = self.send(&step.orders);
        // What Slurm refuses it would refuse again: it may have written the comment, and say that the job cannot run.
        self.clears_comments |= sent.is_err() && clears;
        for order in step.orders.iter().filter(|_| sent.is_err()) {
            if let Order::Comment { job, .. } = order {
                self.scheduler.forget_comment(job);
            }
        }
        if step.orders.iter().any(changes_nodes) {
            self.poller.read_all();
        }
        match sent {
            Err(DriveError::Slurm(_)) => Ok(()),
            other => other,
        }
    }

    /// Reads the cluster, and decides.
    fn read_and_decide(&mut self) -> Result<Step, DriveError> {
        if let Some(likely) = self.forecasts.as_mut().and_then(Forecasts::take) {
            self.scheduler.set_likely(&likely);
        }
        let changes = self.poller.poll()?;
        let Some(cluster) = self.poller.cluster() else { return Ok(Step::default()) };
        // They stay until they are read. Not every change of a form shows, so all are read now and then.
        self.changed.extend(changes.iter().filter_map(changed_job).map(str::to_owned));
        self.readings += 1;
        if self.readings.is_multiple_of(READINGS) {
            self.changed.extend(cluster.jobs.keys().cloned());
        }
        let unknown: Vec<String> = self
            .scheduler
            .unknown(cluster, &self.changed, &self.unread)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let details = Detail::read(&self.slurm, cluster, &unknown)?;
        self.changed.clear();
        let vanished = self.scheduler.vanished(cluster);
        let starts = if vanished.is_empty() {
            BTreeMap::new()
        } else {
            let starts = Cluster::starts(&self.slurm, &vanished).into_iter();
            starts.map(|(id, start)| (id, instant(start))).collect()
        };
        let is_complete = self.poller.is_complete();
        let observed = Observation { cluster, details: &details, starts: &starts, is_complete };
        let step = self.scheduler.step(Time::from_ticks(Timestamp::now().as_microsecond()), observed)?;
        self.unread.clone_from(&step.unread);
        if let Some(forecasts) = &mut self.forecasts {
            forecasts.request(|| self.scheduler.copy());
        }
        Ok(step)
    }

    /// Returns the orders that take the promises of a former driver out of the comments of users.
    fn orders_to_clear(&mut self) -> Vec<Order> {
        let Some(cluster) = self.poller.cluster() else { return vec![] };
        // The next step tries again.
        let Ok(comments) = Cluster::comments(&self.slurm) else { return vec![] };
        self.clears_comments = false;
        let known = cluster.jobs.values().filter(|job| self.scheduler.has_job(&job.id));
        orders_to_clear(&[CommentField::Comment], known, cluster, &comments)
    }

    /// Returns whether a step has succeeded.
    pub fn has_run(&self) -> bool {
        self.has_run
    }

    /// Writes into the comments of users, if the user of the driver is no administrator any more.
    fn check_rights(&mut self) {
        let Some(cluster) = self.poller.cluster() else { return };
        let field = CommentField::for_user(&self.slurm, &cluster.configuration, self.settings.owner);
        if field == Some(CommentField::Comment) {
            self.scheduler.write_user_comments();
        }
    }

    /// Asks Slurm for these things. The next step sees what it refuses.
    fn send(&mut self, orders: &[Order]) -> Result<(), DriveError> {
        let mut is_refused = false;
        for order in orders {
            for command in order.commands() {
                let refusal = self.slurm.control(&command)?;
                let is_of_admin = matches!(order, Order::Comment { field: CommentField::AdminComment, .. });
                is_refused |= is_of_admin && refusal.is_some();
                let is_held = matches!(order, Order::Reserve { .. } | Order::Renew { .. });
                if let Some(message) = refusal.filter(|_| is_held) {
                    let reservation = self.settings.reservation.clone();
                    let is_renewed = matches!(order, Order::Renew { .. });
                    if is_renewed && !Cluster::reservations(&self.slurm)?.contains_key(&reservation) {
                        // It ended since it was read. The next step makes it again.
                        continue;
                    }
                    return Err(DriveError::Rights { reservation, message });
                }
            }
        }
        if is_refused {
            self.check_rights();
        }
        Ok(())
    }

    /// Returns the time until the next step.
    pub fn pause(&self) -> Duration {
        let now = Time::from_ticks(Timestamp::now().as_microsecond());
        let wake = self.scheduler.wake().map(|wake| (wake - now).ticks().max(0).unsigned_abs());
        let pause = self.poller.pause();
        // An instant that comes again and again is no reason to ask the controller more often.
        wake.map_or(pause, |wake| pause.min(Duration::from_micros(wake).max(LEAST_PAUSE)))
    }
}

fn changed_job(change: &Change) -> Option<&str> {
    match change {
        Change::Submitted { job } | Change::State { job, .. } | Change::Updated { job } => Some(job),
        Change::Gone { .. } | Change::Node { .. } => None,
    }
}
