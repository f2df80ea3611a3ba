//! The timelines of the hosts of a machine. Where jobs may span hosts, hosts with the same timeline share one.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::devices::{CellId, DeviceTable, HeldDevices};
use miserly_core::{HostId, Kind, Machine, Resources, Share, Span, Spread, Time};

use super::Part;
use super::lasting::Falls;
use super::timeline::Timeline;

/// A timeline of one or more hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineId(u32);

impl LineId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The timelines of all hosts.
///
/// A job over several hosts takes as much of each, for as long. So hosts have few different timelines, about as many as
/// there are jobs in the plan, and a search over several hosts looks at each timeline once. Only hosts of the same
/// capacity and of the same groups share one.
///
/// A cell of devices has a timeline of its own, behind those of the hosts.
///
/// A change of a job is O(n log m) for each timeline, with n breakpoints of it and m of all, and O(1) for each host.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    of_host: Vec<LineId>,
    timelines: Vec<Timeline>,
    /// What else is known about each timeline. A search reads the timelines only.
    all: Vec<Line>,
    /// The indexes of `all` that no host has.
    unused: Vec<LineId>,
    /// The future breakpoints.
    points: BTreeSet<(i64, LineId)>,
    /// Absent where each host has its own timeline.
    shared: Option<Shared>,
}

#[derive(Clone, Debug)]
struct Line {
    /// The first host of this capacity and of these groups.
    kind: HostId,
    /// The number of hosts that have this timeline.
    hosts: u32,
    fingerprint: u64,
    /// The timeline after a change of this number by this amount, which other hosts may have to change to.
    changed: Option<(u64, Resources, LineId)>,
}

/// The indexes of timelines that hosts share.
#[derive(Clone, Debug, Default)]
struct Shared {
    by_fingerprint: BTreeSet<(u64, LineId)>,
    /// The first fall of each timeline that has one.
    first_falls: BTreeSet<(i64, LineId)>,
    /// The last ones.
    last_falls: BTreeSet<(i64, LineId)>,
    /// The number of changes.
    changes: u64,
}

impl Lines {
    /// Returns the timelines of an idle machine.
    pub(super) fn new(machine: &Machine) -> Lines {
        let mut lines = Lines {
            of_host: Vec::new(),
            timelines: Vec::new(),
            all: Vec::new(),
            unused: Vec::new(),
            points: BTreeSet::new(),
            shared: (machine.spread() == Spread::Any).then(Shared::default),
        };
        let mut kinds = BTreeMap::new();
        for (host, capacity) in (0..).map(HostId).zip(machine.hosts().iter().map(|host| host.capacity)) {
            let timeline = || Timeline::new(&capacity);
            let id = if lines.shared.is_some() {
                let key = (Kind::ALL.map(|kind| capacity.get(kind)), machine.groups_of(host));
                *kinds.entry(key).or_insert_with(|| lines.add(timeline(), host))
            } else {
                lines.add(timeline(), host)
            };
            lines.all[id.index()].hosts += 1;
            lines.of_host.push(id);
        }
        for cell in machine.devices().map(DeviceTable::cells).unwrap_or_default() {
            // Jobs do not span hosts with devices, so each host has its own timeline.
            lines.add(Timeline::new(&in_cell(cell.capacity)), cell.host);
        }
        lines
    }

    /// Returns the timeline of a cell of devices.
    fn cell(&self, cell: CellId) -> &Timeline {
        &self.timelines[self.of_host.len() + cell.index()]
    }

    /// Returns the free amount of a cell of devices at that time.
    pub(super) fn free_in_cell(&self, cell: CellId, at: Time) -> u64 {
        self.cell(cell).free_at(at).get(CELL)
    }

    /// Returns the amount of a cell of devices that stays free for a span.
    pub(super) fn least_in_cell(&self, cell: CellId, at: Time, span: Span) -> u64 {
        self.cell(cell).least_within(at, span).get(CELL)
    }

    /// Returns the first time after `at` at which some of these cells changes.
    pub(super) fn next_change(&self, cells: impl Iterator<Item = CellId>, at: Time) -> Option<Time> {
        let next = |cell| self.cell(cell).breakpoints().find(|point| *point > at.ticks());
        cells.filter_map(next).min().map(Time::from_ticks)
    }

    /// Returns the host of a timeline that no other host shares.
    pub(super) fn host_of(&self, id: LineId) -> HostId {
        self.all[id.index()].kind
    }

    /// Returns the number of hosts.
    pub(super) fn hosts(&self) -> usize {
        self.of_host.len()
    }

    /// Returns the timeline of a host.
    pub(super) fn on(&self, host: HostId) -> &Timeline {
        self.get(if self.shared.is_none() { LineId(host.0) } else { self.of_host[host.index()] })
    }

    pub(super) fn get(&self, id: LineId) -> &Timeline {
        &self.timelines[id.index()]
    }

    /// Returns a host that has the capacity and the groups of the hosts with this timeline, and the number of these hosts.
    pub(super) fn hosts_with(&self, id: LineId) -> (HostId, u64) {
        let line = &self.all[id.index()];
        (line.kind, line.hosts.into())
    }

    /// Returns the identifiers that a timeline may have, also without a host.
    pub(super) fn ids(&self) -> impl Iterator<Item = LineId> + Clone + use<> {
        (0..).map(LineId).take(self.all.len())
    }

    /// Returns a value of each host from those of the timelines, by identifier.
    pub(super) fn by_host(&self, values: &[Resources]) -> Vec<Resources> {
        self.of_host.iter().map(|id| values[id.index()]).collect()
    }

    /// Returns the future breakpoints after `after` and before `until`.
    pub(super) fn points(&self, after: Time, until: Time) -> impl Iterator<Item = (i64, LineId)> + '_ {
        let from = after.ticks().saturating_add(1);
        self.points.range((from, LineId(0))..).take_while(move |(at, _)| *at < until.ticks()).copied()
    }

    /// Returns the first and the last time at which less becomes free on a host, where jobs may span hosts.
    pub(super) fn falls(&self) -> Option<(Time, Time)> {
        let shared = self.shared.as_ref()?;
        let ((first, _), (last, _)) = shared.first_falls.first().zip(shared.last_falls.last())?;
        Some((Time::from_ticks(*first), Time::from_ticks(*last)))
    }

    /// Takes the shares of a job in `from..to`, or gives them back.
    pub(super) fn change(&mut self, shares: &[Share], part: Part, from: Time, to: Time, give: bool) {
        if let Some(shared) = &mut self.shared {
            shared.changes += 1;
        }
        for share in shares {
            let amount = part.part_of(&share.amount);
            let id = self.of_host[share.host.index()];
            if self.shared.is_none() {
                self.change_in_place(id, from, to, &amount, give);
            } else {
                let changed = self.changed(id, from, to, &amount, give);
                self.move_host(share.host, changed);
            }
        }
    }

    /// Takes devices of a job in `from..to`, or gives them back.
    pub(super) fn change_devices(&mut self, devices: &[HeldDevices], from: Time, to: Time, give: bool) {
        for held in devices {
            // No machine has more timelines.
            let id = u32::try_from(self.of_host.len()).unwrap_or(u32::MAX).saturating_add(held.cell.0);
            self.change_in_place(LineId(id), from, to, &in_cell(held.amount), give);
        }
    }

    fn change_in_place(&mut self, id: LineId, from: Time, to: Time, amount: &Resources, give: bool) {
        let points = &mut self.points;
        self.timelines[id.index()].change(from, to, amount, give, |at, new| {
            let _ = if new { points.insert((at, id)) } else { points.remove(&(at, id)) };
        });
    }

    /// Returns the timeline that a host of this one has after a change.
    fn changed(&mut self, id: LineId, from: Time, to: Time, amount: &Resources, give: bool) -> LineId {
        let number = self.shared.as_ref().map_or(0, |shared| shared.changes);
        let line = &self.all[id.index()];
        if let Some((_, _, changed)) = line.changed.filter(|(nth, by, _)| (*nth, by) == (number, amount)) {
            return changed;
        }
        let kind = line.kind;
        if line.hosts == 1 {
            self.leave_indexes(id);
            self.change_in_place(id, from, to, amount, give);
            return self.join(id);
        }
        let mut timeline = self.timelines[id.index()].clone();
        timeline.change(from, to, amount, give, |_, _| ());
        let changed = self.alike(&timeline, kind).unwrap_or_else(|| self.add(timeline, kind));
        self.all[id.index()].changed = Some((number, *amount, changed));
        changed
    }

    /// Enters a changed timeline of one host in the indexes again, or returns an equal one that has hosts.
    fn join(&mut self, id: LineId) -> LineId {
        let (timeline, kind) = (&self.timelines[id.index()], self.all[id.index()].kind);
        // Its hosts leave it then.
        if let Some(alike) = self.alike(timeline, kind) {
            return alike;
        }
        self.enter_indexes(id);
        id
    }

    /// Returns the timeline of hosts of this kind that is equal.
    fn alike(&self, timeline: &Timeline, kind: HostId) -> Option<LineId> {
        let fingerprint = timeline.fingerprint();
        let same = self.shared.as_ref()?.by_fingerprint.range((fingerprint, LineId(0))..);
        let mut same = same.take_while(|(other, _)| *other == fingerprint).map(|(_, id)| *id);
        same.find(|id| self.all[id.index()].kind == kind && self.timelines[id.index()] == *timeline)
    }

    /// Adds a timeline that no host has yet.
    fn add(&mut self, timeline: Timeline, kind: HostId) -> LineId {
        let line = Line { fingerprint: 0, kind, hosts: 0, changed: None };
        let id = if let Some(id) = self.unused.pop() {
            (self.timelines[id.index()], self.all[id.index()]) = (timeline, line);
            id
        } else {
            self.timelines.push(timeline);
            self.all.push(line);
            // No machine has more hosts than a `u32` counts, and no timeline is without a host for long.
            LineId(u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX))
        };
        self.points.extend(self.timelines[id.index()].breakpoints().map(|at| (at, id)));
        self.enter_indexes(id);
        id
    }

    fn enter_indexes(&mut self, id: LineId) {
        let Some(shared) = &mut self.shared else { return };
        let (timeline, line) = (&self.timelines[id.index()], &mut self.all[id.index()]);
        line.fingerprint = timeline.fingerprint();
        shared.by_fingerprint.insert((line.fingerprint, id));
        if let Some(Falls { first, last }) = timeline.falls() {
            shared.first_falls.insert((first, id));
            shared.last_falls.insert((last, id));
        }
    }

    fn leave_indexes(&mut self, id: LineId) {
        let Some(shared) = &mut self.shared else { return };
        let (timeline, line) = (&self.timelines[id.index()], &self.all[id.index()]);
        shared.by_fingerprint.remove(&(line.fingerprint, id));
        if let Some(Falls { first, last }) = timeline.falls() {
            shared.first_falls.remove(&(first, id));
            shared.last_falls.remove(&(last, id));
        }
    }

    /// Gives a host another timeline. That of no host any more is removed.
    fn move_host(&mut self, host: HostId, to: LineId) {
        let from = std::mem::replace(&mut self.of_host[host.index()], to);
        self.all[to.index()].hosts += 1;
        self.all[from.index()].hosts -= 1;
        if self.all[from.index()].hosts == 0 {
            self.leave_indexes(from);
            for at in self.timelines[from.index()].breakpoints() {
                self.points.remove(&(at, from));
            }
            self.all[from.index()].changed = None;
            self.unused.push(from);
        }
    }

    /// Forgets the time before `now`. Returns each host with a change since the last call, in order.
    pub(super) fn advance(&mut self, now: Time) -> Vec<HostId> {
        let mut past = BTreeSet::new();
        while let Some(&(at, id)) = self.points.first().filter(|(at, _)| *at <= now.ticks()) {
            self.points.remove(&(at, id));
            past.insert(id);
        }
        if past.is_empty() {
            return Vec::new();
        }
        let mut joined = BTreeMap::new();
        for id in past {
            self.leave_indexes(id);
            self.timelines[id.index()].advance(now);
            joined.insert(id, self.join(id));
        }
        if self.shared.is_none() {
            let hosts: BTreeSet<HostId> = joined.into_keys().map(|id| self.host_of(id)).collect();
            return hosts.into_iter().collect();
        }
        let changed = (0..).map(HostId).zip(&self.of_host);
        let changed: Vec<(HostId, LineId)> =
            changed.filter_map(|(host, id)| Some((host, *joined.get(id)?))).collect();
        for (host, id) in &changed {
            self.move_host(*host, *id);
        }
        changed.into_iter().map(|(host, _)| host).collect()
    }

    /// Returns what stays free in each timeline. O(timelines).
    pub(super) fn free_throughout(&self, at: Time, span: Span) -> Vec<Resources> {
        self.timelines.iter().map(|line| line.least_within(at, span)).collect()
    }

    /// Returns what is free in each timeline at that time. O(timelines).
    pub(super) fn free_at(&self, at: Time) -> Vec<Resources> {
        self.timelines.iter().map(|line| line.free_at(at)).collect()
    }
}

/// The kind that counts the amount of a cell of devices in its timeline.
const CELL: Kind = Kind::Other;

/// Returns an amount of a cell of devices.
fn in_cell(amount: u64) -> Resources {
    Resources::NONE.with(CELL, amount)
}

/// Lines are equal if each host has the same timeline in both.
impl PartialEq for Lines {
    fn eq(&self, other: &Lines) -> bool {
        let each = |lines: &Lines| (0..).map(HostId).take(lines.hosts()).collect::<Vec<_>>();
        each(self).len() == other.hosts() && each(self).iter().all(|host| self.on(*host) == other.on(*host))
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Host, Pes, draw};

    use super::*;

    /// Changes hosts at random, and compares each with a timeline of its own, and the indexes with those timelines.
    #[test]
    fn hosts_that_share_a_timeline_have_their_own() {
        let mut fewest = 1.0f64;
        for seed in 0..60 {
            let hosts = 12;
            let capacity = |host: u64| Resources::cpus(4 + 2 * (host / 8));
            let named = (0..hosts).map(|host| Host { name: format!("h{host}"), capacity: capacity(host) });
            let machine = Machine::new(named.collect());
            let spread = if seed % 4 == 0 { Spread::One } else { Spread::Any };
            let machine = machine.with_spread(spread).with_groups(&[vec![HostId(2), HostId(9)]]);
            let mut lines = Lines::new(&machine);
            let mut own: Vec<Timeline> = (0..hosts).map(|host| Timeline::new(&capacity(host))).collect();
            let mut now = 0;
            for step in 0..80 {
                let random = |nth: u64, most: u64| draw(seed, step, nth) % most;
                let ticks = |nth, most| i64::try_from(random(nth, most)).unwrap();
                let first = random(1, hosts);
                let count = 1 + random(2, hosts - first);
                let share = |host: u64| Share {
                    host: HostId(u32::try_from(host).unwrap()),
                    amount: Resources::cpus(1 + u64::from(host == first) * random(3, 2)),
                    pes: Pes::Count,
                };
                let shares: Vec<Share> = (first..first + count).map(share).collect();
                let from = now + ticks(4, 12);
                let from = Time::from_ticks(if from == now { i64::MIN } else { from });
                let to = Time::from_ticks(now + 12 + 6 * ticks(5, 4));
                let give = random(6, 2) == 0;
                lines.change(&shares, Part::Whole, from, to, give);
                for share in &shares {
                    own[share.host.index()].change(from, to, &share.amount, give, |_, _| ());
                }
                if random(7, 3) == 0 {
                    now += 3;
                    let is_past = |line: &Timeline| line.breakpoints().any(|at| at <= now);
                    let changed = (0..).map(HostId).zip(&own).filter(|(_, line)| is_past(line));
                    let changed: Vec<HostId> = changed.map(|(host, _)| host).collect();
                    for line in &mut own {
                        line.advance(Time::from_ticks(now));
                    }
                    assert_eq!(lines.advance(Time::from_ticks(now)), changed, "seed {seed}, step {step}");
                }
                let mut points = BTreeSet::new();
                for (host, line) in (0..).map(HostId).zip(&own) {
                    assert_eq!(lines.on(host), line, "seed {seed}, step {step}");
                    points.extend(line.breakpoints());
                }
                let found: BTreeSet<i64> = lines.points.iter().map(|(at, _)| *at).collect();
                assert_eq!(found, points, "seed {seed}, step {step}");
                let used = lines.ids().filter(|id| lines.hosts_with(*id).1 > 0);
                let number = used.map(|id| lines.get(id).breakpoints().count()).sum::<usize>();
                assert_eq!(lines.points.len(), number, "seed {seed}, step {step}");
                if spread == Spread::Any {
                    let falls: Vec<Falls> = own.iter().filter_map(Timeline::falls).collect();
                    let first = falls.iter().map(|falls| falls.first).min();
                    let last = falls.iter().map(|falls| falls.last).max();
                    let expect = first
                        .zip(last)
                        .map(|(first, last)| (Time::from_ticks(first), Time::from_ticks(last)));
                    assert_eq!(lines.falls(), expect, "seed {seed}, step {step}");
                    let alone = |id: &LineId| lines.hosts_with(*id).1 > 0;
                    let different = lines.ids().filter(alone).count();
                    fewest = fewest.min(different as f64 / own.len() as f64);
                    let mut distinct: Vec<(HostId, &Timeline)> = Vec::new();
                    for (host, line) in (0..).map(HostId).zip(&own) {
                        let (kind, _) = lines.hosts_with(lines.of_host[host.index()]);
                        if !distinct.contains(&(kind, line)) {
                            distinct.push((kind, line));
                        }
                    }
                    assert_eq!(different, distinct.len(), "seed {seed}, step {step}");
                }
            }
        }
        assert!(fewest < 0.5, "hosts share timelines: {fewest}");
    }
}
