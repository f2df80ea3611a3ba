//! The start of a waiting job at the end of running ones.

use std::collections::BTreeSet;
use std::ops::Range;

use fixedbitset::FixedBitSet;
use miserly_core::{
    Demand, Expected, Form, JobId, Ledger, Machine, Placement, Resources, Sharing, Span, Spread, State, Time,
};

use super::preemption::Preempted;
use super::round_up;
use super::select::Sizes;
use super::sets::Wanted;
use super::suspension::suspended_until;

/// The first window: ends of jobs within it count as one. It is also the unit of the clock at which windows begin.
const WINDOW: Span = Span::from_ticks(30_000_000);

/// The jobs on the machine, in the order of their ends by time limit and then of their submissions, and the resources beside
/// them.
#[derive(Debug, Default)]
pub(super) struct Ends {
    free: Vec<Resources>,
    /// The hosts of which all is free.
    idle: FixedBitSet,
    /// The other hosts with free processors.
    partly: FixedBitSet,
    running: Vec<Leaving>,
    /// The free resources of all hosts together, now and behind each end.
    totals: Vec<Resources>,
    /// Whether each end leaves idle hosts.
    leave_idle: bool,
    /// The free resources behind the ends that a search has passed: those of `free` elsewhere.
    later: Vec<Resources>,
    /// The hosts that differ in `later`.
    changed: Vec<usize>,
}

/// A running job.
#[derive(Debug)]
struct Leaving {
    end: Time,
    placement: Placement,
    /// Its hosts.
    hosts: Vec<Range<usize>>,
}

impl Leaving {
    fn new(end: Time, placement: Placement) -> Leaving {
        let mut hosts: Vec<Range<usize>> = vec![];
        for host in placement.shares().iter().map(|share| share.host.index()) {
            match hosts.last_mut() {
                Some(last) if last.end == host => last.end += 1,
                _ => hosts.push(host..host + 1),
            }
        }
        Leaving { end, placement, hosts }
    }

    fn is_on(&self, open: &FixedBitSet) -> bool {
        self.hosts.iter().any(|hosts| open.contains_any_in_range(hosts.clone()))
    }
}

/// A search for the first start of a job on some hosts. It can be interrupted.
#[derive(Debug)]
pub(super) struct Search {
    /// The open hosts.
    open: FixedBitSet,
    /// Those that the job can use.
    usable: FixedBitSet,
    /// The number of ends that were passed.
    passed: usize,
    /// The last end on open hosts that was passed.
    last: Option<Time>,
    /// The parts of the job for which there is room behind these ends.
    parts: u128,
    /// The instant from which the bounds are counted, and the next bound.
    bound: Option<(Time, Span)>,
    found: Found,
}

#[derive(Debug)]
enum Found {
    NotYet,
    At(Time, Placement),
    Never,
}

impl Search {
    pub(super) fn open(&self) -> &FixedBitSet {
        &self.open
    }
}

impl Ends {
    /// Enters the jobs of a ledger but for some, whose resources are free. Overdue ones end at the next tick.
    pub(super) fn read(&mut self, now: Time, ledger: &Ledger, left_out: &[JobId]) {
        let machine = ledger.machine();
        self.free.clear();
        self.free.extend_from_slice(ledger.free_hosts().each());
        for share in
            left_out.iter().filter_map(|job| ledger.entry(*job).placement()).flat_map(Placement::shares)
        {
            let room = &mut self.free[share.host.index()];
            *room = room.plus(&share.amount);
        }
        self.running.clear();
        let left_out: BTreeSet<JobId> = left_out.iter().copied().collect();
        for job in ledger.running().filter(|job| !left_out.contains(job)) {
            // The resources of a released job are free already.
            if let State::Running { expected, placement, released: false, .. } = &ledger.entry(job).state {
                let end = match expected {
                    Expected::At(end) => *end,
                    Expected::Overdue { .. } => now,
                };
                let end = Preempted::due(ledger.entry(job)).map_or(end, |at| end.min(at));
                self.running.push(Leaving::new(end.max(now + Span::TICK), placement.clone()));
            }
        }
        let suspended = suspended_until(now, ledger, &mut self.free).into_iter();
        self.running.extend(suspended.map(|(end, placement)| Leaving::new(end, placement)));
        self.running.sort_by_key(|leaving| leaving.end);
        self.complete(machine);
    }

    /// Computes everything from the free resources and the running jobs.
    fn complete(&mut self, machine: &Machine) {
        let Ends { free, idle, partly, running, totals, leave_idle, later, changed } = self;
        let capacity = |host: usize| &machine.hosts()[host].capacity;
        *idle = FixedBitSet::with_capacity(free.len());
        partly.clone_from(idle);
        for (host, room) in free.iter().enumerate() {
            if room == capacity(host) {
                idle.insert(host);
            } else if !room.cpus_count().is_zero() {
                partly.insert(host);
            }
        }
        let mut shares = running.iter().flat_map(|leaving| leaving.placement.shares());
        *leave_idle = machine.sharing() == Sharing::Whole
            && shares.all(|share| {
                let host = share.host.index();
                free[host].plus(&share.amount) == *capacity(host)
            });
        totals.clear();
        totals.push(free.iter().fold(Resources::NONE, |sum, free| sum.plus(free)));
        later.clone_from(free);
        changed.clear();
        self.add_totals(0);
    }

    /// Computes the totals behind the ends from this one on.
    fn add_totals(&mut self, nth: usize) {
        self.totals.truncate(nth + 1);
        let mut total = self.totals[nth];
        for leaving in &self.running[nth..] {
            total = total.plus(&leaving.placement.total());
            self.totals.push(total);
        }
    }

    /// Adds a job that starts.
    pub(super) fn start(&mut self, end: Time, placement: &Placement) {
        self.forget_changes();
        for share in placement.shares() {
            let host = share.host.index();
            let room = self.free[host].less(&share.amount);
            if room != self.free[host] {
                self.idle.set(host, false);
                self.partly.set(host, !room.cpus_count().is_zero());
            }
            (self.free[host], self.later[host]) = (room, room);
        }
        let place = self.running.partition_point(|other| other.end <= end);
        self.running.insert(place, Leaving::new(end, placement.clone()));
        let total = placement.total();
        self.totals.insert(place + 1, self.totals[place]);
        self.totals[..=place].iter_mut().for_each(|free| *free = free.less(&total));
    }

    /// Returns the first end behind which there is as much free on all hosts together as a job needs, or `now`. No job
    /// starts before it. O(log n) for n running jobs.
    pub(super) fn least_start(&self, now: Time, amount: &Resources) -> Option<Time> {
        match self.totals.partition_point(|total| !amount.fits_in(total)) {
            0 => Some(now),
            ends => self.running.get(ends - 1).map(|leaving| leaving.end),
        }
    }

    /// Begins a search for the first start of a job on the open hosts. A search ends at the begin of the next one.
    ///
    /// The search adds what running jobs on these hosts leave, in the order of their ends, and tries the job after each step.
    /// The bounds of the steps are counted from the first half minute of the clock after the first end. The first bound is 30 s
    /// later, and each other one is twice as far. A bound ends a step when the next end of any job is beyond it, so a
    /// step has one job on these hosts at least. The job starts at the last end of its step. So a start may be later than the
    /// machine allows, as in Slurm.
    pub(super) fn search(&mut self, now: Time, wanted: &Wanted<'_>, open: FixedBitSet) -> Search {
        self.forget_changes();
        let mut usable = open.clone();
        usable.intersect_with(&wanted.usable);
        let (passed, last, bound) = (0, None, None);
        let mut search = Search { open, usable, passed, last, parts: 0, bound, found: Found::NotYet };
        if wanted.parts_of_idle(&search.usable) < wanted.parts() {
            search.found = Found::Never;
            return search;
        }
        let mut idle = search.usable.clone();
        idle.intersect_with(&self.idle);
        search.parts = wanted.parts_of_idle(&idle);
        if !wanted.fit.is_alone {
            let parts = |host: usize| u128::from(wanted.fit.parts_in(&self.free[host], host));
            search.parts += search.usable.intersection(&self.partly).map(parts).sum::<u128>();
        }
        self.try_at(now, wanted, &mut search);
        search
    }

    /// Goes on with a search to the last end that is not after an instant. Returns the start, if it was found.
    ///
    /// O(n r) for n running jobs with r ranges of hosts, and O(h) for h hosts if there is a start. Where jobs share hosts,
    /// O(n s) for their s hosts.
    pub(super) fn first_start<'s>(
        &mut self,
        search: &'s mut Search,
        wanted: &Wanted<'_>,
        until: Option<Time>,
    ) -> Option<(Time, &'s Placement)> {
        while matches!(search.found, Found::NotYet) {
            let Some(leaving) = self.running.get(search.passed) else {
                // The rest of the last step ends on no open host.
                match search.last {
                    Some(last) => self.try_at(last, wanted, search),
                    None => search.found = Found::Never,
                }
                if matches!(search.found, Found::NotYet) {
                    search.found = Found::Never;
                }
                break;
            };
            let end = leaving.end;
            let is_open = leaving.is_on(&search.open);
            if is_open && until.is_some_and(|until| end > until) {
                return None;
            }
            search.passed += 1;
            if !is_open {
                continue;
            }
            search.last = Some(end);
            self.release(search.passed - 1, wanted, search);
            let (begin, window) =
                search.bound.unwrap_or_else(|| (round_up(end + Span::TICK, WINDOW), WINDOW));
            search.bound = Some((begin, window));
            let next = self.running.get(search.passed).map(|leaving| leaving.end);
            if next.is_some_and(|next| next <= begin + window) {
                continue;
            }
            self.try_at(end, wanted, search);
            let mut window = window;
            while next.is_some_and(|next| next > begin + window) {
                window = window + window;
            }
            search.bound = Some((begin, window));
        }
        match &search.found {
            Found::At(at, placement) if until.is_none_or(|until| *at <= until) => Some((*at, placement)),
            _ => None,
        }
    }

    /// Adds what a running job leaves.
    fn release(&mut self, nth: usize, wanted: &Wanted<'_>, search: &mut Search) {
        let leaving = &self.running[nth];
        if self.leave_idle
            && let Some(size) = wanted.equal
        {
            let usable = leaving.hosts.iter().map(|hosts| search.usable.count_ones(hosts.clone()));
            search.parts += u128::from(size.parts) * usable.sum::<usize>() as u128;
            return;
        }
        let fit = &wanted.fit;
        for share in leaving.placement.shares() {
            let host = share.host.index();
            if search.usable.contains(host) {
                let room = &mut self.later[host];
                search.parts -= u128::from(fit.parts_in(room, host));
                *room = room.plus(&share.amount);
                search.parts += u128::from(fit.parts_in(room, host));
                self.changed.push(host);
            }
        }
    }

    /// Places the job, if there is room.
    fn try_at(&self, at: Time, wanted: &Wanted<'_>, search: &mut Search) {
        if search.parts < wanted.parts() {
            return;
        }
        let mut free = self.idle.clone();
        let equal = wanted.equal.filter(|_| self.leave_idle);
        let placement = if let Some(size) = equal {
            let left = self.running[..search.passed].iter().flat_map(|leaving| &leaving.hosts);
            left.for_each(|hosts| free.insert_range(hosts.clone()));
            free.intersect_with(&search.usable);
            wanted.fit.place(&free, &Sizes::Equal(size))
        } else {
            free.union_with(&self.partly);
            free.extend(self.changed.iter().copied());
            free.intersect_with(&search.usable);
            let size = |host: usize| wanted.fit.size(&self.later[host], host);
            wanted.fit.place(&free, &Sizes::ByHost(&size))
        };
        if let Some(placement) = placement {
            search.found = Found::At(at, placement);
        }
    }

    fn forget_changes(&mut self) {
        for host in self.changed.drain(..) {
            self.later[host] = self.free[host];
        }
    }
}

/// Returns the demand of a job, in one part where a job has one host.
pub(super) fn demand_of(ledger: &Ledger, job: JobId) -> Demand {
    let demand = ledger.machine().demand(ledger.request(job));
    match ledger.machine().spread() {
        Spread::Any => demand,
        Spread::One => Demand::new(demand.amount(), Form::parts(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backfill::slurm::select::{Fit, id, select_hosts};
    use crate::backfill::slurm::sets::HostSets;
    use miserly_core::{Demand, Form, Host, HostGroup, HostId, Kind, Spread, draw};

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds).unwrap()
    }

    fn ends_of(machine: &Machine, free: &[Resources], running: &[(Time, Placement)]) -> Ends {
        let leaving = |(end, placement): &(Time, Placement)| Leaving::new(*end, placement.clone());
        let running = running.iter().map(leaving).collect();
        let mut ends = Ends { free: free.to_vec(), running, ..Ends::default() };
        ends.complete(machine);
        ends
    }

    /// Jobs that each hold one of four hosts of one processor until a second. A job of this many processors starts at a second.
    #[track_caller]
    fn check(ends: [i64; 4], open: [bool; 4], procs: u64, expected: Option<i64>) {
        let one = Resources::cpus(1_u64);
        let host = |name: u32| Host { name: name.to_string(), capacity: one };
        let machine = Machine::new((0..4).map(host).collect()).with_spread(Spread::Any);
        let mut running: Vec<(Time, Placement)> =
            (0..).zip(ends).map(|(host, end)| (at(end), Placement::on(HostId(host), one))).collect();
        running.sort_by_key(|(end, _)| *end);
        let mut all = ends_of(&machine, &[Resources::NONE; 4], &running);
        let (demand, sets) = (Demand::from(Resources::cpus(procs)), HostSets::new(&machine));
        let wanted = Wanted::new(Fit::new(&machine, &demand), &sets);
        let mut search = all.search(at(0), &wanted, set(&open));
        let start = all.first_start(&mut search, &wanted, None).map(|(start, _)| start);
        assert_eq!(start, expected.map(at), "{ends:?}, {procs}");
    }

    fn set(open: &[bool]) -> FixedBitSet {
        let mut set = FixedBitSet::with_capacity(open.len());
        set.extend((0..open.len()).filter(|host| open[*host]));
        set
    }

    const ALL: [bool; 4] = [true; 4];

    #[test]
    fn ends_within_a_window_are_one() {
        // The windows begin at 60: the first one ends at 90, the second at 120, and the third at 180.
        check([31, 90, 91, 121], ALL, 1, Some(90));
        check([31, 90, 91, 121], ALL, 3, Some(91));
        check([31, 90, 91, 121], ALL, 4, Some(121));
        // An end on the half minute belongs to the next one.
        check([30, 90, 91, 200], ALL, 1, Some(90));
        check([31, 100, 130, 200], ALL, 2, Some(100));
    }

    #[test]
    fn windows_without_ends_are_passed_over() {
        check([31, 500, 530, 600], ALL, 2, Some(530));
    }

    #[test]
    fn only_open_hosts_count() {
        check([31, 90, 91, 121], [false, false, true, true], 1, Some(121));
        check([31, 90, 91, 121], [true, false, false, false], 1, Some(31));
        check([31, 90, 91, 121], [true, false, false, true], 3, None);
        // The end behind the bound is taken, for the one before it is on no open host.
        check([31, 80, 140, 150], [true, false, true, true], 1, Some(140));
    }

    /// Returns the first start as the rule is written.
    fn first_start_slowly(
        free: &[Resources],
        running: &[(Time, Placement)],
        machine: &Machine,
        open: &[bool],
        demand: &Demand,
    ) -> Option<(Time, Placement)> {
        let mut free = free.to_vec();
        if let Some(placement) = select_hosts(machine, &free, open, demand) {
            return Some((at(0), placement));
        }
        let on_open = |placement: &Placement| placement.shares().iter().any(|share| open[share.host.index()]);
        let begin =
            round_up(running.iter().find(|(_, placement)| on_open(placement))?.0 + Span::TICK, WINDOW);
        let (mut window, mut last) = (WINDOW, None);
        for (nth, (end, placement)) in
            running.iter().enumerate().filter(|(_, (_, placement))| on_open(placement))
        {
            for share in placement.shares() {
                let room = &mut free[share.host.index()];
                *room = room.plus(&share.amount);
            }
            last = Some(*end);
            let next = running.get(nth + 1).map(|(end, _)| *end);
            if next.is_some_and(|next| next <= begin + window) {
                continue;
            }
            if let Some(placement) = select_hosts(machine, &free, open, demand) {
                return Some((*end, placement));
            }
            while next.is_some_and(|next| next > begin + window) {
                window = window + window;
            }
        }
        Some((last?, select_hosts(machine, &free, open, demand)?))
    }

    #[test]
    fn a_search_in_parts_finds_the_start_of_the_rule() {
        let mut kinds = [0, 0, 0, 0];
        for seed in 0..6_000 {
            let random = |nth: u64, most: u64| draw(seed, 0, nth) % most;
            let hosts = 2 + random(0, 9);
            let is_mixed = random(1, 3) == 0;
            let capacity = |nth: u64| {
                let cpus = if is_mixed { 3 + random(50 + nth, 3) } else { 4 };
                Resources::cpus(cpus).with(Kind::Memory, 20)
            };
            let host = |nth| Host { name: format!("h{nth}"), capacity: capacity(nth) };
            let machine = Machine::new((0..hosts).map(host).collect()).with_spread(Spread::Any);
            let is_whole = random(2, 2) == 0;
            let machine = if is_whole { machine.with_sharing(Sharing::Whole) } else { machine };
            let members = (0..hosts).filter(|host| random(60 + host, 3) > 0);
            let machine =
                machine.with_groups(&[members.map(|host| id(usize::try_from(host).unwrap())).collect()]);
            let sets = HostSets::new(&machine);
            let demand = |nth: u64| {
                let random = |part: u64, most: u64| random(1_000 + 10 * nth + part, most);
                let amount = Resources::cpus(1 + random(0, 20)).with(Kind::Memory, random(1, 60));
                let (apart, alone) = (random(2, 4) == 0, random(3, 4) == 0);
                let group = [None, None, Some(HostGroup(0)), Some(HostGroup(9))]
                    [usize::try_from(draw(seed, 1, nth) % 4).unwrap()];
                let parts = u32::try_from(random(4, 5)).unwrap();
                Demand::new(amount, Form { apart, alone, group, ..Form::parts(parts) })
            };
            // Jobs that started as they would, in the order of their ends.
            let mut free: Vec<Resources> = (0..hosts).map(capacity).collect();
            let mut running: Vec<(Time, Placement)> = vec![];
            let all = vec![true; free.len()];
            for nth in 10..10 + random(3, 12) {
                let Some(placement) = select_hosts(&machine, &free, &all, &demand(nth)) else { continue };
                for share in placement.shares() {
                    free[share.host.index()] = free[share.host.index()].less(&share.amount);
                }
                let end = at(1 + i64::try_from(random(200 + nth, 400)).unwrap());
                running.insert(running.partition_point(|(other, _)| *other <= end), (end, placement));
            }
            // The last one starts within the cycle.
            let mut before = (free.clone(), running.clone());
            let started = (!running.is_empty()).then(|| before.1.remove(running.len() / 2));
            for share in started.iter().flat_map(|(_, placement)| placement.shares()) {
                before.0[share.host.index()] = before.0[share.host.index()].plus(&share.amount);
            }
            let mut ends = ends_of(&machine, &before.0, &before.1);
            let is_last_of_equals = started.as_ref().is_none_or(|(end, _)| {
                running.iter().rposition(|(other, _)| other == end) == Some(running.len() / 2)
            });
            if let Some((end, placement)) = started.filter(|_| is_last_of_equals) {
                ends.start(end, &placement);
            } else {
                ends = ends_of(&machine, &free, &running);
            }
            for nth in 0..4 {
                let open: Vec<bool> = (0..hosts).map(|host| random(2_000 + 20 * nth + host, 5) > 0).collect();
                let demand = demand(nth);
                let slow = first_start_slowly(&free, &running, &machine, &open, &demand);
                let wanted = Wanted::new(Fit::new(&machine, &demand), &sets);
                let least = ends.least_start(at(0), &demand.amount());
                let mut search = ends.search(at(0), &wanted, set(&open));
                let until = at(i64::try_from(random(3_000 + nth, 400)).unwrap());
                let owned = |(start, placement): (Time, &Placement)| (start, placement.clone());
                let early = ends.first_start(&mut search, &wanted, Some(until)).map(owned);
                assert_eq!(early, slow.clone().filter(|(start, _)| *start <= until), "seed {seed}");
                let fast = ends.first_start(&mut search, &wanted, None).map(owned);
                assert_eq!(fast, slow, "seed {seed}");
                if let Some((start, placement)) = slow {
                    assert!(least.is_some_and(|least| least <= start), "seed {seed}");
                    let hosts = placement.shares().len();
                    assert!(wanted.least_hosts().is_some_and(|least| least <= hosts), "seed {seed}");
                    let found = [start > at(0), start > at(0) && is_whole, start > until, is_mixed];
                    kinds.iter_mut().zip(found).for_each(|(count, found)| *count += u32::from(found));
                }
            }
        }
        assert!(kinds.iter().all(|count| *count > 300), "{kinds:?}");
    }
}
