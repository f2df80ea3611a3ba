//! Idle nodes, and the waiting jobs that may run there.

use std::collections::BTreeSet;

use miserly_core::{
    Driver, Entry, HostId, JobId, JobNumber, Ledger, Placement, Resources, Share, SlotId, Span, State, Time,
};
use miserly_slurm::{Cluster, Job, JobState};

use super::job::{DrivenJob, DrivenState};
use super::opportunistic::{EarlyRun, Opportunistic};
use super::room::{Room, fits, on_host, own_plan, plan};
use super::trial::Trials;
use super::{Scheduler, Step};
use crate::instant::instant;
use crate::placement::{fill, find_placement};

/// Nodes that are idle for less than this are left idle.
const LEAST: Span = seconds(60);

/// The lengths of idle time that are sought, the longest first.
const LENGTHS: [Span; 4] = [seconds(86_400), seconds(7_200), seconds(600), seconds(60)];

/// The shortest time between two wake-ups for opportunistic jobs.
const LEAST_PAUSE: Span = seconds(1);

/// The most waiting jobs that are tried in a step.
const MOST_TRIED: usize = 50;

impl Scheduler {
    /// Has opportunistic jobs leave the nodes that are needed soon, and lets others run on idle nodes.
    pub(super) fn use_idle_nodes(&mut self, at: Time, cluster: &Cluster, step: &mut Step) {
        match self.settings.lead {
            Some(lead) => {
                self.make_room(at, lead, cluster, step);
                self.use_room(at, lead, cluster, step);
            }
            // The option is gone.
            None => {
                for (id, job) in &mut self.jobs {
                    job.park(at, id, step);
                }
            }
        }
        self.opportunistic_wake = self.next_opportunistic(at);
    }

    /// Returns the nodes that parked jobs have not left yet.
    pub(super) fn nodes_to_leave(&self) -> BTreeSet<String> {
        let parked = self.opportunistic().filter(|(_, job)| job.is_parked() && job.may_hold_nodes());
        parked.flat_map(|(_, job)| job.nodes().cloned()).collect()
    }

    /// Returns the nodes where no job is placed now: those to leave, and those of each job that waits for one of them.
    ///
    /// Slurm would give another job there the resources for the one that waits.
    pub(super) fn nodes_to_wait_for(&self) -> BTreeSet<String> {
        let mut nodes = self.nodes_to_leave();
        let is_assigned = |job: &&DrivenJob| matches!(job.state(), DrivenState::Assigned { .. });
        let mut waiting: Vec<&DrivenJob> = self.jobs.values().filter(is_assigned).collect();
        loop {
            let before = waiting.len();
            waiting.retain(|job| {
                let is_kept_back = job.opportunistic().is_some() || job.waits_for(&nodes);
                if is_kept_back {
                    nodes.extend(job.assignment().into_iter().flat_map(|to| to.nodes.iter().cloned()));
                }
                !is_kept_back
            });
            if waiting.len() == before {
                return nodes;
            }
        }
    }

    /// Returns whether a user has jobs that run ahead of their starts, or did so until now.
    pub(super) fn has_opportunistic_of(&self, user: u32, cluster: &Cluster) -> bool {
        let mut jobs = self.opportunistic().filter_map(|(id, _)| cluster.jobs.get(id));
        jobs.any(|job| job.user == user)
    }

    /// Returns the opportunistic jobs, in the order of their names.
    fn opportunistic(&self) -> impl Iterator<Item = (&String, &Opportunistic)> {
        self.jobs.iter().filter_map(|(id, job)| Some((id, job.opportunistic()?)))
    }

    /// Parks the jobs that are in the way of others. The last ones that began go first.
    fn make_room(&mut self, at: Time, lead: Span, cluster: &Cluster, step: &mut Step) {
        let limited = std::mem::take(&mut self.limited_users);
        let Some(driver) = &self.driver else { return };
        let ledger = driver.ledger();
        let mut room = Room::until(ledger, at + lead);
        for id in self.by_begin() {
            let Some(known) = self.jobs.get_mut(&id) else { continue };
            let Some(job) = known.opportunistic() else { continue };
            let own = known.handle.map(|handle| own_plan(ledger, handle, at + lead)).unwrap_or_default();
            // Nothing else starts on nodes that are out of service.
            let in_service = |(host, _): &(HostId, Resources)| self.site.capacity(*host) != Resources::NONE;
            let on: Vec<(HostId, Resources)> = job.resources(&self.site).filter(in_service).collect();
            let fits = on.iter().all(|(host, amount)| amount.fits_in(&room.free_for(*host, &own)));
            let is_limited = cluster.jobs.get(&id).is_some_and(|job| limited.contains(&job.user));
            if fits && !is_limited && known.is_waiting() {
                for (host, amount) in on {
                    room.give(host, &own, &amount);
                }
            } else {
                known.park(at, &id, step);
            }
        }
    }

    /// Returns the opportunistic jobs that do not have to leave their nodes, the first ones that began first.
    fn by_begin(&self) -> Vec<String> {
        let began = |job: &Opportunistic| match job.run {
            EarlyRun::Placed { since, .. } => Some(since.secs()),
            EarlyRun::Running { start } => Some(start.secs()),
            EarlyRun::Parking { .. } | EarlyRun::Parked { .. } => None,
        };
        let mut jobs: Vec<(i64, &String)> =
            self.opportunistic().filter_map(|(id, job)| Some((began(job)?, id))).collect();
        jobs.sort();
        jobs.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Places waiting jobs on idle nodes, in the order of their planned starts.
    fn use_room(&mut self, at: Time, lead: Span, cluster: &Cluster, step: &mut Step) {
        let Some(driver) = &self.driver else { return };
        let occupied = self.nodes_to_wait_for();
        // One that began now might be in the way of the next, and there would always be some that wait.
        if self.jobs.values().any(|job| job.waits_for(&occupied)) {
            return;
        }
        let mut taken = self.taken();
        for host in occupied.iter().filter_map(|node| self.site.find(node)) {
            taken[host.index()] = self.site.equipment(host);
        }
        let ledger = driver.ledger();
        let soon = Room::until(ledger, at + lead + LEAST).left(&[], &taken);
        if soon.iter().all(|free| free.cpus_count().is_zero()) {
            return;
        }
        let mut idle = IdleRooms { ledger, from: at + lead, rooms: [const { None }; LENGTHS.len()], taken };
        let mut chosen = vec![];
        for (id, job, handle) in self.candidates(at, lead, cluster).into_iter().take(MOST_TRIED) {
            let Some(place) = self.early_place(cluster, (id, job, handle), &mut idle) else { continue };
            for share in place.shares() {
                idle.taken[share.host.index()] = idle.taken[share.host.index()].plus(&share.amount);
            }
            chosen.push((id.clone(), place));
        }
        for (id, place) in chosen {
            let Some(known) = self.jobs.get_mut(&id) else { continue };
            known.set_opportunistic(Opportunistic::new(at, &self.site, &place));
            known.was_placed = true;
            step.changed = true;
        }
    }

    /// Returns a place for a run ahead of the start where the nodes are idle for as long as possible.
    fn early_place(
        &self,
        cluster: &Cluster,
        (id, job, handle): (&String, &Job, JobId),
        idle: &mut IdleRooms<'_>,
    ) -> Option<Placement> {
        let known = &self.jobs[id];
        let nowhere = Placement::across(SlotId(0), vec![]);
        let wanted = idle.ledger.entry(handle).planned_on.as_ref().unwrap_or(&nowhere);
        let estimate = self.settings.estimate(job.limit);
        (0..LENGTHS.len())
            .filter(|at| LENGTHS.get(at + 1).is_none_or(|shorter| *shorter < estimate))
            // It is not stopped twice after the same time.
            .take_while(|at| LENGTHS[*at] >= known.lost + known.lost)
            .find_map(|length| {
                let (room, free) = idle.room(length, handle);
                let at = instant(cluster.configuration.now);
                let found = find_placement(&self.site, at, job, &known.form, &free, wanted)?;
                // Plans of others do not keep Slurm from filling a node.
                let place = fill(&self.site, job, &known.form, &room, &found.place);
                fits(&place, &free).then_some(place)
            })
    }

    /// Returns the resources that opportunistic jobs have on each host.
    fn taken(&self) -> Vec<Resources> {
        let mut taken = vec![Resources::NONE; self.site.len()];
        for (host, amount) in self.opportunistic().flat_map(|(_, job)| job.resources(&self.site)) {
            taken[host.index()] = taken[host.index()].plus(&amount);
        }
        taken
    }

    /// Returns the resources on each host for a job that starts beside the opportunistic ones, if some are in its way. Other jobs
    /// are planned there after its end only. `free` are the resources beside the jobs that start with it.
    pub(super) fn beside_opportunistic(
        &self,
        at: Time,
        handle: JobId,
        wanted: &Placement,
        free: &[Resources],
    ) -> Option<Vec<Resources>> {
        self.opportunistic().next()?;
        let ledger = self.driver.as_ref()?.ledger();
        let taken = self.taken();
        let is_in_way =
            |share: &Share| !taken[share.host.index()].fits_in(&ledger.free_hosts().on(share.host));
        wanted.shares().iter().any(is_in_way).then(|| self.beside_plans(at, handle, wanted, free))
    }

    /// Returns the resources on each host for a job that starts, which no other job needs before its end, neither by its plan nor as
    /// an opportunistic one. `free` are the resources beside the jobs that start with it.
    pub(super) fn beside_plans(
        &self,
        at: Time,
        handle: JobId,
        wanted: &Placement,
        free: &[Resources],
    ) -> Vec<Resources> {
        let Some(ledger) = self.driver.as_ref().map(Driver::ledger) else { return free.to_vec() };
        let taken = self.taken();
        let room = Room::until(ledger, at + ledger.entry(handle).request.planned());
        let wanted: Vec<(HostId, Resources)> =
            wanted.shares().iter().map(|share| (share.host, share.amount)).collect();
        let left = |(host, free): (usize, &Resources)| {
            let own = on_host(&wanted, HostId(u32::try_from(host).unwrap_or(u32::MAX)));
            room.free[host].plus(&own).less(&room.needed[host]).least(free).less(&taken[host])
        };
        free.iter().enumerate().map(left).collect()
    }

    /// Returns the waiting jobs that may run on idle nodes, in the order of their planned starts.
    fn candidates<'a>(
        &'a self,
        at: Time,
        lead: Span,
        cluster: &'a Cluster,
    ) -> Vec<(&'a String, &'a Job, JobId)> {
        let Some(driver) = &self.driver else { return vec![] };
        let mut candidates: Vec<(Time, JobNumber, &String, &Job, JobId)> = vec![];
        for (id, known) in &self.jobs {
            let Some((handle, job)) = known.handle.zip(cluster.jobs.get(id)) else { continue };
            let Some(entry) = driver.ledger().get(handle) else { continue };
            if may_run_early(at, known, job) && may_start_early(at, lead, entry) {
                candidates.push((entry.planned.unwrap_or(Time::MAX), known.number, id, job, handle));
            }
        }
        candidates.sort_unstable_by_key(|(start, number, ..)| (*start, *number));
        candidates.into_iter().map(|(_, _, id, job, handle)| (id, job, handle)).collect()
    }

    /// Returns the next instant at which an opportunistic job has to leave its nodes, or has settled.
    fn next_opportunistic(&self, at: Time) -> Option<Time> {
        let settles = self.opportunistic().filter_map(|(_, job)| job.settles());
        let mut is_used = vec![false; self.site.len()];
        let stays = self.opportunistic().filter(|(_, job)| !job.is_parked());
        for (host, _) in stays.flat_map(|(_, job)| job.resources(&self.site)) {
            is_used[host.index()] = true;
        }
        let ledger = self.driver.as_ref().map(Driver::ledger);
        let waiting = ledger
            .into_iter()
            .flat_map(|ledger| ledger.waiting().map(move |job| (ledger, ledger.entry(job))));
        let needs = |(ledger, entry): &(&Ledger, &Entry)| {
            plan(ledger, entry).into_iter().any(|(host, _)| is_used[host.index()])
        };
        let lead = self.settings.lead;
        let leaves = waiting.filter(needs).filter_map(|(_, entry)| Some(entry.planned? - lead?));
        let next = settles.chain(leaves).filter(|instant| *instant > at).min();
        next.map(|next| next.max(at + LEAST_PAUSE))
    }

    /// Returns the start and the place of an opportunistic job that keeps its nodes at its own start: all promises hold with it
    /// there, or nothing else starts there. `free` are the resources beside the jobs that start with it.
    pub(super) fn keeps_nodes(
        &self,
        at: Time,
        handle: JobId,
        job: &Opportunistic,
        (wanted, free): (&Placement, &[Resources]),
        trials: &mut Trials,
    ) -> Option<(Time, Placement)> {
        let EarlyRun::Running { start } = job.run else { return None };
        let place = job.place(&self.site)?;
        let is_out = |share: &Share| self.site.capacity(share.host) == Resources::NONE;
        let keeps = place.shares().iter().any(is_out)
            || fits(&place, free) && (place == *wanted || self.keeps_promises(at, handle, &place, trials));
        keeps.then_some((start, place))
    }
}

/// The rooms of nodes that are idle from an instant on, by the length of that time.
struct IdleRooms<'a> {
    ledger: &'a Ledger,
    from: Time,
    rooms: [Option<Room>; LENGTHS.len()],
    /// The resources that are taken on each host.
    taken: Vec<Resources>,
}

impl IdleRooms<'_> {
    /// Returns the resources on each host that are idle now, and those that no other job needs within one of the lengths.
    fn room(&mut self, length: usize, handle: JobId) -> (Vec<Resources>, Vec<Resources>) {
        let until = self.from + LENGTHS[length];
        let room = self.rooms[length].get_or_insert_with(|| Room::until(self.ledger, until));
        let idle = room.free.iter().zip(&self.taken).map(|(free, taken)| free.less(taken)).collect();
        (idle, room.left(&own_plan(self.ledger, handle, until), &self.taken))
    }
}

/// Returns whether a job may run ahead of its start, by what it asks for and its state.
fn may_run_early(at: Time, known: &DrivenJob, job: &Job) -> bool {
    known.form.is_requeueable
        // Others may need them at their starts.
        && known.form.licences.is_none()
        && known.is_waiting()
        && known.unplanned().is_none()
        && known.opportunistic().is_none()
        && known.no_early_run_before.is_none_or(|instant| instant <= at)
        && job.state == JobState::Pending
        && job.reservation.is_none()
}

/// Returns whether a job may run ahead of its start, by its plan.
fn may_start_early(at: Time, lead: Span, entry: &Entry) -> bool {
    entry.state == State::Waiting
        && entry.planned.is_none_or(|start| start > at + lead + LEAST)
        && entry.request.constraints.begin.is_none_or(|begin| begin <= at)
}

const fn seconds(seconds: i64) -> Span {
    Span::from_ticks(seconds * 1_000_000)
}
