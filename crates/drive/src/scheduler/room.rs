//! The room beside the plans of the ledger.

use miserly_core::{Entry, HostId, JobId, Ledger, Placement, Resources, Time};

/// The free resources of the hosts in the ledger, and those that its waiting jobs need until an instant.
pub(super) struct Room {
    pub(super) free: Vec<Resources>,
    pub(super) needed: Vec<Resources>,
}

impl Room {
    pub(super) fn until(ledger: &Ledger, until: Time) -> Room {
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
    pub(super) fn free_for(&self, host: HostId, own: &[(HostId, Resources)]) -> Resources {
        self.free[host.index()].less(&self.needed[host.index()].less(&on_host(own, host)))
    }

    /// Gives resources of a host to the job with this plan.
    pub(super) fn give(&mut self, host: HostId, own: &[(HostId, Resources)], amount: &Resources) {
        let needed = &mut self.needed[host.index()];
        *needed = needed.less(&on_host(own, host)).plus(amount);
    }

    /// Returns the resources of each host for a job with this plan, without those that are taken.
    pub(super) fn left(&self, own: &[(HostId, Resources)], taken: &[Resources]) -> Vec<Resources> {
        let host = |(at, taken): (u32, &Resources)| self.free_for(HostId(at), own).less(taken);
        (0..).zip(taken).map(host).collect()
    }
}

/// Returns whether a placement has no more than this on each host.
pub(crate) fn fits(place: &Placement, room: &[Resources]) -> bool {
    place.shares().iter().all(|share| share.amount.fits_in(&room[share.host.index()]))
}

/// Returns the resources of a plan on a host.
pub(super) fn on_host(plan: &[(HostId, Resources)], host: HostId) -> Resources {
    let amounts = plan.iter().filter(|(at, _)| *at == host).map(|(_, amount)| amount);
    amounts.fold(Resources::NONE, |sum, amount| sum.plus(amount))
}

/// Returns the resources that a waiting job needs itself until then.
pub(super) fn own_plan(ledger: &Ledger, job: JobId, until: Time) -> Vec<(HostId, Resources)> {
    let entry = ledger.get(job).filter(|entry| entry.planned.is_some_and(|start| start <= until));
    entry.map(|entry| plan(ledger, entry)).unwrap_or_default()
}

/// Returns the resources of the plan of a waiting job. On one host a policy gives no place.
pub(super) fn plan(ledger: &Ledger, entry: &Entry) -> Vec<(HostId, Resources)> {
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
    use miserly_core::{Host, Machine, Pes, Request, Share, SlotId, Span, Spread};

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
        assert_eq!(room.free_for(HostId(0), &own), Resources::cpus(8));
        // It runs on the processors of its own plan, and on two more.
        room.give(HostId(0), &own, &Resources::cpus(6));
        assert_eq!(room.free_for(HostId(0), &[]), Resources::cpus(2));
        room.give(HostId(0), &[], &Resources::cpus(2));
        assert_eq!(room.free_for(HostId(0), &[]), Resources::NONE);
    }
}
