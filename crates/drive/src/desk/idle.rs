//! Idle nodes, and the waiting jobs that may run there.

use std::collections::BTreeSet;

use miserly_core::{
    Driver, Entry, HostId, JobId, JobNumber, Ledger, Placement, Resources, Share, SlotId, Span, State, Time,
};
use miserly_slurm::{Cluster, Job, JobState};

use super::case::{Case, Stage};
use super::opportunistic::{Opportunistic, Run};
use super::trial::Trials;
use super::{Desk, Step};
use crate::seats::{filled, seats};

/// Nodes that are idle for less than this are left idle.
const LEAST: Span = Span::from_ticks(60 * 1_000_000);

/// The lengths of idle time that are sought, in seconds: the longest first.
const LENGTHS: [i64; 4] = [86_400, 7_200, 600, 60];

/// The shortest time between two looks at opportunistic jobs.
const ATTENTION: Span = Span::from_ticks(1_000_000);

/// The most waiting jobs that are tried in a step.
const MOST_TRIED: usize = 50;

impl Desk {
    /// Has opportunistic jobs leave the nodes that are needed soon, and lets others run on idle nodes.
    pub(super) fn use_idle_nodes(&mut self, at: Time, cluster: &Cluster, step: &mut Step) {
        self.attention = None;
        let Some(lead) = self.settings.lead else {
            // The option is gone.
            let ids: Vec<String> = self.opportunistic().map(|(id, _)| id.clone()).collect();
            for id in ids {
                if let Some(case) = self.cases.get_mut(&id) {
                    case.park(at, &id, step);
                }
            }
            self.attend(at, None);
            return;
        };
        self.make_room(at, lead, cluster, step);
        self.use_room(at, lead, cluster, step);
        self.attend(at, Some(lead));
    }

    /// Returns the nodes that parked jobs have not left yet.
    pub(super) fn nodes_to_leave(&self) -> BTreeSet<String> {
        let parked = self.opportunistic().filter(|(_, job)| job.is_parked() && job.holds_nodes());
        parked.flat_map(|(_, job)| job.nodes().cloned()).collect()
    }

    /// Returns the nodes where no job is placed now: those to leave, and those of each job that waits for one of them.
    ///
    /// Slurm would give another job there the resources for the one that waits.
    pub(super) fn nodes_to_wait_for(&self) -> BTreeSet<String> {
        let mut nodes = self.nodes_to_leave();
        let waits = |case: &&Case| matches!(case.facts.stage, Stage::Placed { asked: 0, .. });
        let mut waiting: Vec<&Case> = self.cases.values().filter(waits).collect();
        loop {
            let before = waiting.len();
            waiting.retain(|case| {
                let Stage::Placed { nodes: its, .. } = &case.facts.stage else { return false };
                let is_kept_back =
                    case.facts.opportunistic.is_some() || its.iter().any(|node| nodes.contains(node));
                if is_kept_back {
                    nodes.extend(its.iter().cloned());
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
        self.cases.iter().filter_map(|(id, case)| Some((id, case.facts.opportunistic.as_ref()?)))
    }

    /// Parks the jobs that are in the way of others. The last ones that began go first.
    fn make_room(&mut self, at: Time, lead: Span, cluster: &Cluster, step: &mut Step) {
        let limited = std::mem::take(&mut self.limited);
        let Some(driver) = &self.driver else { return };
        let ledger = driver.ledger();
        let mut room = Room::until(ledger, at + lead);
        let began = |job: &Opportunistic| match job.run {
            Run::Placed { since, .. } => Some(Time::from_ticks(since).secs()),
            Run::Running { start } => Some(start),
            Run::Parked { .. } => None,
        };
        let mut jobs: Vec<(i64, String)> =
            self.opportunistic().filter_map(|(id, job)| Some((began(job)?, id.clone()))).collect();
        jobs.sort();
        for (_, id) in jobs {
            let Some(case) = self.cases.get_mut(&id) else { continue };
            let Some(job) = &case.facts.opportunistic else { continue };
            let own = case.handle.map(|handle| own_plan(ledger, handle, at + lead)).unwrap_or_default();
            // Nothing else starts on nodes that are out of service.
            let in_service = |(host, _): &(HostId, Resources)| self.site.capacity(*host) != Resources::NONE;
            let on: Vec<(HostId, Resources)> = job.on(&self.site).filter(in_service).collect();
            let fits = on.iter().all(|(host, amount)| amount.fits_in(&room.on(*host, &own)));
            let is_limited = cluster.jobs.get(&id).is_some_and(|job| limited.contains(&job.user));
            if fits && !is_limited && case.facts.stage == Stage::Waiting {
                for (host, amount) in on {
                    room.give(host, &own, &amount);
                }
            } else {
                case.park(at, &id, step);
            }
        }
    }

    /// Places waiting jobs on idle nodes, in the order of their planned starts.
    fn use_room(&mut self, at: Time, lead: Span, cluster: &Cluster, step: &mut Step) {
        let Some(driver) = &self.driver else { return };
        let ledger = driver.ledger();
        let left = self.nodes_to_wait_for();
        // One that began now might be in the way of the next, and there would always be some that wait.
        if self.cases.values().any(|case| case.waits_for(&left)) {
            return;
        }
        let mut taken = self.taken();
        for host in left.iter().filter_map(|node| self.site.find(node)) {
            taken[host.index()] = self.site.equipment(host);
        }
        let until = |seconds: i64| at + lead + Span::from_secs(seconds).unwrap_or(Span::MAX);
        let soon = Room::until(ledger, at + lead + LEAST).left(&[], &taken);
        if soon.iter().all(|free| free.cpus_count().is_zero()) {
            return;
        }
        let nowhere = Placement::across(SlotId(0), vec![]);
        let mut rooms: [Option<Room>; LENGTHS.len()] = Default::default();
        let mut chosen = vec![];
        for (id, job, handle) in self.candidates(at, lead, cluster).into_iter().take(MOST_TRIED) {
            let facts = &self.cases[id].facts;
            let wanted = ledger.entry(handle).planned_on.as_ref().unwrap_or(&nowhere);
            let long = self.settings.estimate(job.limit).secs();
            let found = (0..LENGTHS.len())
                .filter(|at| LENGTHS.get(at + 1).is_none_or(|shorter| *shorter < long))
                // It is not stopped twice after the same time.
                .take_while(|at| LENGTHS[*at] >= facts.lost.saturating_mul(2))
                .find_map(|length| {
                    let until = until(LENGTHS[length]);
                    let room = rooms[length].get_or_insert_with(|| Room::until(ledger, until));
                    let free = room.left(&own_plan(ledger, handle, until), &taken);
                    let place =
                        seats(&self.site, cluster.configuration.now, job, &facts.form, &free, wanted)?;
                    // Plans of others do not keep Slurm from filling a node.
                    let idle: Vec<Resources> =
                        room.free.iter().zip(&taken).map(|(free, taken)| free.less(taken)).collect();
                    let place = filled(&self.site, job, &facts.form, &idle, &place)?;
                    fits(&place, &free).then_some(place)
                });
            let Some(place) = found else { continue };
            for share in place.shares() {
                taken[share.host.index()] = taken[share.host.index()].plus(&share.amount);
            }
            chosen.push((id.clone(), place));
        }
        for (id, place) in chosen {
            let Some(case) = self.cases.get_mut(&id) else { continue };
            case.facts.opportunistic = Some(Opportunistic::new(at, &self.site, &place));
            case.facts.was_placed = true;
            step.changed = true;
        }
    }

    /// Returns the resources that opportunistic jobs have on each host.
    fn taken(&self) -> Vec<Resources> {
        let mut taken = vec![Resources::NONE; self.site.len()];
        for (host, amount) in self.opportunistic().flat_map(|(_, job)| job.on(&self.site)) {
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
        for (id, case) in &self.cases {
            let facts = &case.facts;
            let Some((handle, job)) = case.handle.zip(cluster.jobs.get(id)) else { continue };
            let Some(entry) = driver.ledger().get(handle) else { continue };
            let may = facts.form.is_requeueable
                // Others may need them at their starts.
                && facts.form.licences.is_none()
                && facts.stage == Stage::Waiting
                && facts.aside.is_none()
                && facts.opportunistic.is_none()
                && facts.rests_until <= at.ticks()
                && entry.state == State::Waiting
                && entry.planned.is_none_or(|start| start > at + lead + LEAST)
                && entry.request.constraints.begin.is_none_or(|begin| begin <= at)
                && job.state == JobState::Pending
                && job.reservation.is_none();
            if may {
                candidates.push((entry.planned.unwrap_or(Time::MAX), case.number, id, job, handle));
            }
        }
        candidates.sort_unstable_by_key(|(start, number, ..)| (*start, *number));
        candidates.into_iter().map(|(_, _, id, job, handle)| (id, job, handle)).collect()
    }

    /// Finds the next instant at which an opportunistic job has to leave, or has settled.
    fn attend(&mut self, at: Time, lead: Option<Span>) {
        let settles = self.opportunistic().filter_map(|(_, job)| job.settles());
        let mut is_used = vec![false; self.site.len()];
        let stays = self.opportunistic().filter(|(_, job)| !job.is_parked());
        for (host, _) in stays.flat_map(|(_, job)| job.on(&self.site)) {
            is_used[host.index()] = true;
        }
        let ledger = self.driver.as_ref().map(Driver::ledger);
        let waiting = ledger
            .into_iter()
            .flat_map(|ledger| ledger.waiting().map(move |job| (ledger, ledger.entry(job))));
        let needs = |(ledger, entry): &(&Ledger, &Entry)| {
            plan(ledger, entry).into_iter().any(|(host, _)| is_used[host.index()])
        };
        let leaves = waiting.filter(needs).filter_map(|(_, entry)| Some(entry.planned? - lead?));
        let soonest = at + ATTENTION;
        self.attention =
            settles.chain(leaves).filter(|instant| *instant > at).min().map(|next| next.max(soonest));
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
    ) -> Option<(i64, Placement)> {
        let Run::Running { start } = job.run else { return None };
        let place = job.place(&self.site)?;
        let is_out = |share: &Share| self.site.capacity(share.host) == Resources::NONE;
        let keeps = place.shares().iter().any(is_out)
            || fits(&place, free) && (place == *wanted || self.keeps_promises(at, handle, &place, trials));
        keeps.then_some((start, place))
    }
}

/// The free resources of the hosts in the ledger, and those that its waiting jobs need until an instant.
struct Room {
    free: Vec<Resources>,
    needed: Vec<Resources>,
}

impl Room {
    fn until(ledger: &Ledger, until: Time) -> Room {
        let free = ledger.free_hosts().each().to_vec();
        let mut needed = vec![Resources::NONE; free.len()];
        for entry in ledger.waiting().map(|job| ledger.entry(job)) {
            if entry.planned.is_some_and(|start| start <= until) {
                for (host, amount) in plan(ledger, entry) {
                    needed[host.index()] = needed[host.index()].plus(&amount);
                }
            }
        }
        Room { free, needed }
    }

    /// Returns the resources of a host that no other job needs than the one with this plan.
    fn on(&self, host: HostId, own: &[(HostId, Resources)]) -> Resources {
        self.free[host.index()].less(&self.needed[host.index()].less(&on_host(own, host)))
    }

    /// Gives resources of a host to the job with this plan.
    fn give(&mut self, host: HostId, own: &[(HostId, Resources)], amount: &Resources) {
        let needed = &mut self.needed[host.index()];
        *needed = needed.less(&on_host(own, host)).plus(amount);
    }

    /// Returns the resources of each host for a job with this plan, without those that are taken.
    fn left(&self, own: &[(HostId, Resources)], taken: &[Resources]) -> Vec<Resources> {
        let host = |(at, taken): (u32, &Resources)| self.on(HostId(at), own).less(taken);
        (0..).zip(taken).map(host).collect()
    }
}

/// Returns whether a placement has no more than this on each host.
fn fits(place: &Placement, room: &[Resources]) -> bool {
    place.shares().iter().all(|share| share.amount.fits_in(&room[share.host.index()]))
}

/// Returns the resources of a plan on a host.
fn on_host(plan: &[(HostId, Resources)], host: HostId) -> Resources {
    let amounts = plan.iter().filter(|(at, _)| *at == host).map(|(_, amount)| amount);
    amounts.fold(Resources::NONE, |sum, amount| sum.plus(amount))
}

/// Returns the resources that a waiting job needs itself until then.
fn own_plan(ledger: &Ledger, job: JobId, until: Time) -> Vec<(HostId, Resources)> {
    let entry = ledger.get(job).filter(|entry| entry.planned.is_some_and(|start| start <= until));
    entry.map(|entry| plan(ledger, entry)).unwrap_or_default()
}

/// Returns the resources of the plan of a waiting job. On one host a policy gives no place.
fn plan(ledger: &Ledger, entry: &Entry) -> Vec<(HostId, Resources)> {
    match &entry.planned_on {
        Some(place) => place.shares().iter().map(|share| (share.host, share.amount)).collect(),
        None if entry.planned.is_some() && ledger.machine().hosts().len() == 1 => {
            vec![(HostId(0), ledger.machine().amount(&entry.request))]
        }
        None => vec![],
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Host, Machine, Pes, Request, Spread};

    use super::*;

    /// Returns a ledger of hosts with 8 processors. Each job waits for some of a host from an instant on.
    fn ledger(hosts: usize, jobs: &[(i64, u32, u64)]) -> Ledger {
        let host = Host { name: "n".into(), capacity: Resources::cpus(8) };
        let machine = Machine::new(vec![host; hosts]).with_spread(Spread::Any);
        let entry = |(number, (start, host, cpus)): (u32, &(i64, u32, u64))| {
            let demand = Resources::cpus(*cpus);
            let share = Share { host: HostId(*host), amount: demand, pes: Pes::Count };
            let request = Request::new(i64::from(number), Time::ZERO, Span::TICK, demand);
            let mut entry = Entry::waiting(request, u64::from(number));
            entry.planned = Time::from_secs(*start);
            entry.planned_on = Some(Placement::across(SlotId(0), vec![share]));
            (JobId(number), entry)
        };
        Ledger::restored(machine, (0..).zip(jobs).map(entry).collect()).unwrap()
    }

    fn cpus(room: &[Resources]) -> Vec<u64> {
        room.iter().map(|room| room.cpus_count().get()).collect()
    }

    #[test]
    fn a_host_has_room_until_it_is_needed() {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let ledger = ledger(2, &[(100, 0, 6), (200, 0, 6), (300, 1, 8)]);
        let none = [Resources::NONE; 2];
        for (until, room) in [(99, [8, 8]), (100, [2, 8]), (200, [0, 8]), (300, [0, 0])] {
            assert_eq!(cpus(&Room::until(&ledger, at(until)).left(&[], &none)), room, "{until}");
        }
        // Its own plan is no hindrance to a job, but that of the others is.
        let own = own_plan(&ledger, JobId(1), at(200));
        let room = Room::until(&ledger, at(200));
        assert_eq!(cpus(&room.left(&own, &none)), [2, 8]);
        assert_eq!(cpus(&room.left(&own, &[Resources::cpus(1), Resources::cpus(9)])), [1, 0]);
        assert!(own_plan(&ledger, JobId(1), at(199)).is_empty());
    }

    #[test]
    fn room_is_given_once() {
        let at = Time::from_secs(200).unwrap();
        let ledger = ledger(1, &[(100, 0, 4)]);
        let mut room = Room::until(&ledger, at);
        let own = own_plan(&ledger, JobId(0), at);
        assert_eq!(room.on(HostId(0), &own), Resources::cpus(8));
        // It runs on the processors of its own plan, and on two more.
        room.give(HostId(0), &own, &Resources::cpus(6));
        assert_eq!(room.on(HostId(0), &[]), Resources::cpus(2));
        room.give(HostId(0), &[], &Resources::cpus(2));
        assert_eq!(room.on(HostId(0), &[]), Resources::NONE);
    }
}
