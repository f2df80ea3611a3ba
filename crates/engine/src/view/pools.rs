//! The free capacity of the pools from now on.

use miserly_api::model::{GroupUsage, Pool, Pools, Slice, UserUsage};
use miserly_core::{Calendar, Entry, Kind, Machine, Resources, Span, State, Time, Usage};

use crate::dependency::expected_ends::limit_end;
use crate::view::snapshot::QueueSnapshot;
use crate::{Now, Queue, Record, Snapshot};

/// The shortest time for which pools are shown: a day.
const AHEAD: Span = Span::from_ticks(86_400_000_000);

/// The maximum number of calendar changes that are shown.
const CHANGES_MOST: usize = 10_000;

impl Snapshot {
    /// Returns the free capacity of all pools.
    pub(crate) fn pools(&self, now: Now) -> Pools {
        let pool = |(queue, setup): (&QueueSnapshot, &Queue)| {
            let usage: Usage = queue.state.state.state().policy.get();
            let records = self.jobs.iter().filter(|record| *record.queue == *setup.name);
            let entries = records.filter_map(Record::ledger_entry);
            let windows = entries.filter_map(|entry| window(now.ticks, &queue.machine, &entry)).collect();
            let numbered = self.cpus.get(&setup.name).cloned().unwrap_or_default();
            Pool {
                queue: setup.name.clone(),
                cpus: setup.pool.most().cpus_count().get(),
                cpu_numbers: numbered.all,
                cpus_offline: numbered.offline,
                slices: slices(now, &queue.machine.capacity(), windows, &setup.pool),
                usage: self.usage(now.ticks, &usage),
                group_usage: self.group_usage(now.ticks, &usage),
            }
        };
        Pools { pools: self.queues.iter().zip(&self.setup.queues).map(pool).collect() }
    }
}

impl Snapshot {
    /// Returns the decayed usage of the users of a queue, the largest share first.
    fn usage(&self, now: Time, usage: &Usage) -> Vec<UserUsage> {
        let parts_and_seconds = |uid| (usage.share(Some(uid), now), usage.processor_seconds(Some(uid), now));
        let of_user =
            |(uid, share, cpu_hours)| UserUsage { user: (self.info.users.0)(uid), uid, share, cpu_hours };
        largest_first(usage.users(), parts_and_seconds).into_iter().map(of_user).collect()
    }

    /// Returns the decayed usage of the groups of a queue, the largest share first.
    fn group_usage(&self, now: Time, usage: &Usage) -> Vec<GroupUsage> {
        let parts_and_seconds =
            |gid| (usage.group_share(Some(gid), now), usage.group_processor_seconds(Some(gid), now));
        let of_group =
            |(gid, share, cpu_hours)| GroupUsage { group: (self.info.groups.0)(gid), gid, share, cpu_hours };
        largest_first(usage.groups(), parts_and_seconds).into_iter().map(of_group).collect()
    }
}

/// Returns users or groups, each with its share and its processor-hours, the largest share first. Those without a number are
/// left out.
fn largest_first(
    numbers: impl Iterator<Item = Option<u32>>,
    parts_and_seconds: impl Fn(u32) -> (u32, u64),
) -> Vec<(u32, f64, f64)> {
    let read = |number: u32| {
        let (parts, seconds) = parts_and_seconds(number);
        (number, f64::from(parts) / f64::from(Usage::PARTS), seconds as f64 / 3600.0)
    };
    let mut all: Vec<(u32, f64, f64)> = numbers.flatten().map(read).collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    all
}

/// The resources of a job from its start until before its end.
pub(crate) struct Window {
    pub(crate) start: Time,
    pub(crate) end: Time,
    pub(crate) amount: Resources,
}

/// Returns the capacity of a pool minus the windows in it, over time.
fn slices(now: Now, capacity: &Resources, windows: Vec<Window>, pool: &Calendar) -> Vec<Slice> {
    let points = points(now.ticks, &windows, pool);
    let slice = |(at, held): (Time, Resources)| {
        let has = pool.at(at).least(capacity);
        let free = has.less(&held);
        Slice {
            from: now.wall_at(at),
            cpus: has.cpus_count().get(),
            cpus_free: free.cpus_count().get(),
            memory_free: free.get(Kind::Memory) * 1024,
            gpus_free: free.get(Kind::Gpus),
        }
    };
    let mut slices: Vec<Slice> = held(points, windows).into_iter().map(slice).collect();
    slices.dedup_by(|next, one| Slice { from: one.from, ..*next } == *one);
    slices
}

/// Returns the instants, each with the resources that windows hold then. The instants rise.
pub(crate) fn held(instants: Vec<Time>, mut windows: Vec<Window>) -> Vec<(Time, Resources)> {
    windows.sort_unstable_by_key(|window| window.start);
    let mut begin = windows.iter().peekable();
    let mut by_end: Vec<&Window> = windows.iter().collect();
    by_end.sort_unstable_by_key(|window| window.end);
    let mut end = by_end.into_iter().peekable();
    let mut held = Resources::NONE;
    let at = |at: Time| {
        while let Some(window) = begin.next_if(|window| window.start <= at) {
            held = held.plus(&window.amount);
        }
        // A window that ends by now has begun by now, so the difference is never negative.
        while let Some(window) = end.next_if(|window| window.end <= at) {
            held = held.less(&window.amount);
        }
        (at, held)
    };
    instants.into_iter().map(at).collect()
}

/// Returns the window of a running job, or of a waiting one with a promise or a plan.
pub(crate) fn window(now: Time, machine: &Machine, entry: &Entry) -> Option<Window> {
    match &entry.state {
        State::Running { placement, .. } => {
            // The end of an overdue job is unknown.
            let end = limit_end(entry).unwrap_or(Time::MAX);
            Some(Window { start: now, end, amount: placement.total() })
        }
        State::Waiting => {
            let start = entry.planned.or(entry.promise.map(|promise| promise.best))?;
            let amount = machine.amount(&entry.request);
            Some(Window { start, end: start + entry.request.planned(), amount })
        }
        State::Suspended { .. } => None,
    }
}

/// Returns the instants at which the free capacity may change, up to the last window and at least [`AHEAD`].
fn points(now: Time, windows: &[Window], pool: &Calendar) -> Vec<Time> {
    let ends = windows.iter().map(|window| window.end).filter(|end| *end < Time::MAX);
    let mut last = ends.max().unwrap_or(now).max(now + AHEAD);
    let mut points: Vec<Time> = windows.iter().flat_map(|window| [window.start, window.end]).collect();
    points.push(now);
    let changes: Vec<Time> =
        pool.changes_after(now).take_while(|at| *at <= last).take(CHANGES_MOST).collect();
    if changes.len() == CHANGES_MOST {
        last = changes[CHANGES_MOST - 1];
    }
    points.extend(changes);
    points.retain(|at| *at >= now && *at <= last && *at < Time::MAX);
    points.sort_unstable();
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_shown_as_far_as_there_are_windows_and_a_day_ahead_at_least() {
        let hours = |hours: i64| Span::from_ticks(hours * 3_600_000_000);
        let at = |hour: i64| Time::ZERO + hours(hour);
        let steps = vec![(Span::ZERO, Resources::cpus(4)), (hours(6), Resources::cpus(1))];
        let pool = Calendar::repeating(at(0), hours(24), steps).unwrap();
        let from_three = |start: Time, end: Time| {
            let window = Window { start, end, amount: Resources::cpus(1) };
            points(at(3), &[window], &pool)
        };
        assert_eq!(points(at(3), &[], &pool), [3, 6, 24].map(at));
        assert_eq!(from_three(at(1), at(49)), [3, 6, 24, 30, 48, 49].map(at));
        // Two changes a day, as far as that many of them go.
        let far = from_three(at(3), at(24 * 1_000_000));
        assert_eq!((far.len(), far.last()), (CHANGES_MOST + 1, Some(&at(24 * 5_000))));
        // Overdue.
        assert_eq!(from_three(at(3), Time::MAX), [3, 6, 24].map(at));
    }
}
