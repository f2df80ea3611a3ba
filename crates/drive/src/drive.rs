//! The loop of a driver: read the cluster, decide, store, ask Slurm.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use miserly_core::Time;
use miserly_slurm::{Change, Cluster, Detail, Poller, Reservation, Slurm};

use crate::comment::orders_to_clear;
use crate::desk::{Desk, Seen, Stored};
use crate::forecasts::Forecasts;
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
    /// The jobs with comments that users may have changed.
    unread: BTreeSet<String>,
    readings: u64,
    /// Whether the comments of users may have promises of a former driver, which wrote there.
    clears_comments: bool,
}

impl Drive {
    /// Returns the driver of a cluster, with the state of a folder. Without a folder it is a dry run: nothing is stored or asked of Slurm.
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
                if !Store::is_in(folder)? {
                    // A driver that is refused leaves no state.
                    check_reservations(cluster, &settings, &Stored::default(), folder)?;
                }
                let (store, stored) = Store::open(folder)?;
                check_reservations(cluster, &settings, &stored, folder)?;
                (Some(store), stored)
            }
            None => (None, Stored::default()),
        };
        let comments = settings.comments.then(|| {
            let field = CommentField::for_user(&slurm, &cluster.configuration, settings.owner);
            field.or(stored.comments).unwrap_or(CommentField::Comment)
        });
        let clears_comments = comments == Some(CommentField::AdminComment);
        let desk = Desk::new(settings.clone(), stored, comments);
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
        let clears = self.clears_comments;
        if clears {
            step.orders.append(&mut self.orders_to_clear());
        }
        if let Some(store) = &mut self.store {
            let reserves = step.orders.iter().any(|order| matches!(order, Order::Reserve { .. }));
            if step.changed || reserves || !self.has_run {
                store.commit(self.desk.stored(), &step.starts)?;
            }
            // A controller that is away is asked again at the next step.
            let held = step.orders.iter().any(|order| {
                !matches!(order, Order::Place { .. } | Order::TakeBack { .. } | Order::Tell { .. })
            });
            let asked = self.ask(&step.orders);
            // What Slurm refuses it would refuse again: it may have written the comment, and say that the job cannot run.
            self.clears_comments |= asked.is_err() && clears;
            for order in step.orders.iter().filter(|_| asked.is_err()) {
                if let Order::Tell { job, .. } = order {
                    self.desk.untell(job);
                }
            }
            if held {
                self.poller.read_all();
            }
            match asked {
                Ok(()) | Err(DriveError::Slurm(_)) => {}
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
            self.desk.unknown(cluster, &self.changed, &self.unread).into_iter().map(str::to_owned).collect();
        let details = Detail::read(&self.slurm, cluster, &unknown)?;
        self.changed.clear();
        let vanished = self.desk.vanished(cluster);
        let starts =
            if vanished.is_empty() { BTreeMap::new() } else { Cluster::starts(&self.slurm, &vanished) };
        let is_complete = self.poller.is_complete();
        let seen = Seen { cluster, details: &details, starts: &starts, is_complete };
        let step = self.desk.step(Time::from_ticks(Timestamp::now().as_microsecond()), seen)?;
        self.unread.clone_from(&step.unread);
        if let Some(forecasts) = &mut self.forecasts {
            forecasts.ask(|| self.desk.copy());
        }
        Ok(step)
    }

    /// Returns the orders that take the promises of a former driver out of the comments of users.
    fn orders_to_clear(&mut self) -> Vec<Order> {
        let Some(cluster) = self.poller.cluster() else { return vec![] };
        // The next step tries again.
        let Ok(comments) = Cluster::comments(&self.slurm) else { return vec![] };
        self.clears_comments = false;
        let known = cluster.jobs.values().filter(|job| self.desk.knows(&job.id));
        orders_to_clear(&[CommentField::Comment], known, cluster, &comments)
    }

    /// Returns whether a step has succeeded.
    pub fn has_run(&self) -> bool {
        self.has_run
    }

    /// Writes into the comments of users, if the user of the driver is no administrator any more.
    fn look_at_rights(&mut self) {
        let Some(cluster) = self.poller.cluster() else { return };
        let field = CommentField::for_user(&self.slurm, &cluster.configuration, self.settings.owner);
        if field == Some(CommentField::Comment) {
            self.desk.write_user_comments();
        }
    }

    /// Asks Slurm for these things. The next step sees what it refuses.
    fn ask(&mut self, orders: &[Order]) -> Result<(), DriveError> {
        let mut is_refused = false;
        for order in orders {
            for command in order.commands() {
                let refusal = self.slurm.control(&command)?;
                let is_of_admin = matches!(order, Order::Tell { field: CommentField::AdminComment, .. });
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
            self.look_at_rights();
        }
        Ok(())
    }

    /// Returns the time until the next step.
    pub fn pause(&self) -> Duration {
        let now = Time::from_ticks(Timestamp::now().as_microsecond());
        let wake = self.desk.wake().map(|wake| (wake - now).ticks().max(0).unsigned_abs());
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
