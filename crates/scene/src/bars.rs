//! The bars of a chart: each job in its time and its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::colour::{Classes, Colours};
use crate::lanes::Lanes;
use crate::{Curves, Job, Legend, Part, Pool, Schedule, State};

/// The rows of a pool, or those of its jobs on idle processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The rows.
    pub rows: u32,
    /// The processors of a row.
    pub unit: u64,
    /// The processors of the pool. Rows above them are added for jobs that share processors.
    pub procs: u64,
    /// The first row of each host or slot and its name, if rows are processors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(u32, String)>,
}

/// The kind of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The job ran.
    Ran,
    /// It runs; the end of the bar is the latest one.
    Running,
    /// Its window is promised.
    Promised,
    /// Its window is planned.
    Planned,
    /// Its start is likely at the begin of the bar.
    Likely,
    /// It ran, or runs, on idle processors.
    Idle,
    /// It is suspended; the end of the bar is the latest one.
    Suspended,
    /// It was swapped out or in.
    Swapping,
    /// It ran in the slot of other jobs.
    Alternate,
}

/// A job in its time and its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The job.
    pub job: Arc<Job>,
    /// The begin.
    pub from: i64,
    /// The end.
    pub to: i64,
    /// The kind.
    pub kind: Kind,
    /// The rows, as ranges, ends excluded.
    pub rows: Vec<(u32, u32)>,
    /// Its places in the legends.
    pub(crate) classes: Classes,
}

impl Bar {
    fn new(job: &Arc<Job>, kind: Kind, from: i64, to: i64) -> Bar {
        Bar { job: Arc::clone(job), from, to, kind, rows: vec![], classes: Classes::default() }
    }

    /// Returns whether it is of the past alone.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.kind, Kind::Ran | Kind::Swapping | Kind::Alternate)
    }
}

/// The bars of all pools.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// The groups of rows, from the top.
    pub groups: Vec<Group>,
    /// The bars of each group, with an index for parts of the time.
    pub(crate) indexes: Vec<Index>,
    /// The first begin and the last end; `None` without bars.
    pub range: Option<(i64, i64)>,
    /// The meanings of the colours.
    pub legends: Vec<Legend>,
    /// The names of the pools.
    pub pools: Vec<String>,
    /// The curves of each pool; none of slots, whose jobs share processors.
    pub curves: Vec<Curves>,
    /// Whether a policy promises starts.
    pub promises: bool,
    /// Whether a job requests a known number of GPUs.
    pub gpus: bool,
    /// The least values at the upper edges of the curves below the first one, in the order of [`Curves::most`], so that several charts have the
    /// same ones.
    pub(crate) tops: [i64; 3],
}

/// Bars by length and begin, so that those of a part of the time are found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// The bars with a length below 2^(n+1) and at least 2^n, by begin, for each n.
    classes: Vec<Vec<Bar>>,
}

impl Index {
    fn add(&mut self, bar: Bar) {
        let class = class_of(&bar);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        self.classes[class].push(bar);
    }

    fn sort(&mut self) {
        for class in &mut self.classes {
            class.sort_by_key(|bar| bar.from);
        }
    }

    /// Returns the number of the largest class plus one.
    pub(crate) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Returns the bars of a class that may have a part between two instants. O(log n + result).
    pub(crate) fn within(&self, class: usize, from: i64, to: i64) -> &[Bar] {
        let Some(bars) = self.classes.get(class) else { return &[] };
        let longest = if class < 62 { 1i64 << (class + 1) } else { i64::MAX };
        let first = bars.partition_point(|bar| bar.from < from.saturating_sub(longest));
        let last = bars.partition_point(|bar| bar.from < to);
        bars.get(first..last).unwrap_or(&[])
    }
}

/// Returns the class of a bar: the logarithm of its length.
fn class_of(bar: &Bar) -> usize {
    let length = u64::try_from(bar.to.saturating_sub(bar.from)).unwrap_or(0).max(1);
    length.ilog2() as usize
}

impl Bars {
    /// Sets the least values at the upper edges of the curves.
    #[must_use]
    pub fn with_tops(self, tops: [i64; 3]) -> Bars {
        Bars { tops, ..self }
    }

    /// Returns the bars of all jobs. O(n log n + n p) for n jobs and p rows.
    pub fn new(schedule: &Schedule<'_>) -> Bars {
        Bars::after(schedule, &Bars::default())
    }

    /// Returns the bars of a schedule that has changed. A job keeps the rows that it had, if they are free.
    #[must_use]
    pub fn after(schedule: &Schedule<'_>, before: &Bars) -> Bars {
        let mut bars = Bars {
            curves: Curves::of_pools(schedule),
            pools: schedule.pools.iter().map(|pool| pool.name.clone()).collect(),
            promises: schedule.pools.iter().any(|pool| pool.promises),
            gpus: schedule.jobs.iter().any(|job| job.gpus > 0),
            ..Bars::default()
        };
        let mut colours = Colours::new(schedule);
        // Below the pools: these rows come and go.
        let mut below = vec![];
        for (place, pool) in schedule.pools.iter().enumerate() {
            let jobs: Vec<&Arc<Job>> = schedule.jobs.iter().filter(|job| job.pool == place).collect();
            let most = jobs.iter().filter(|job| job.start.is_some()).map(|job| job.procs).max();
            let pool = Pool { cpus: pool.cpus.max(most.unwrap_or(0)), ..pool.clone() };
            let in_window = jobs.iter().flat_map(|job| bars_of(schedule.now, job));
            // Only a simulation has no user. A daemon has any numbers, moves jobs, and has jobs that take turns.
            bars.add_group(&pool, in_window.collect(), schedule.uid.is_none(), &mut colours, before);
            let idle: Vec<_> = jobs.iter().filter_map(|job| idle_bar(schedule.now, job)).collect();
            if !idle.is_empty() {
                below.push((Pool::new(&format!("{}, on idle processors", pool.name), pool.cpus), idle));
            }
        }
        for (pool, idle) in below {
            bars.add_group(&pool, idle, false, &mut colours, before);
        }
        bars.legends = colours.legends();
        bars
    }

    /// Adds the bars of a pool. `by_number`: a processor of a job is its row, if it is known of every job.
    fn add_group(
        &mut self,
        pool: &Pool,
        mut found: Vec<Bar>,
        by_number: bool,
        colours: &mut Colours,
        before: &Bars,
    ) {
        found.sort_by_key(|bar| (bar.from, bar.job.number));
        keep_first_likely(&mut found, pool.cpus);
        let (mut lanes, had) = (Lanes::new(pool.cpus), before.rows_of(&pool.name));
        let numbered = numbered_rows(pool)
            .filter(|_| by_number && found.iter().all(|bar| bar.is_over() && !bar.job.cpus.is_empty()))
            .filter(|_| pool.slots > 1 || !take_turns(&found, pool.cpus));
        let mut index = Index::default();
        for mut bar in found {
            bar.rows = if numbered.is_some() {
                bar.job.cpus.iter().map(|cpus| pool.rows(*cpus)).collect()
            } else {
                let (from, to, procs) = (bar.from, bar.to, bar.job.procs);
                let again = had.get(&bar.job.number);
                let again = again.and_then(|rows| lanes.take_again(from, to, procs, rows));
                again.unwrap_or_else(|| lanes.take(from, to, procs))
            };
            bar.classes = colours.classes(&bar.job, bar.kind);
            let (first, last) = self.range.unwrap_or((bar.from, bar.to));
            self.range = Some((first.min(bar.from), last.max(bar.to)));
            index.add(bar);
        }
        index.sort();
        let marks = if numbered.is_some() { pool.marks() } else { vec![] };
        let (rows, unit) = numbered.map_or((lanes.rows(), lanes.unit()), |rows| (rows, 1));
        self.groups.push(Group { name: pool.name.clone(), rows, unit, procs: pool.cpus, marks });
        self.indexes.push(index);
    }

    /// Returns the rows of the jobs of a group.
    fn rows_of(&self, name: &str) -> BTreeMap<i64, &[(u32, u32)]> {
        let group = self.groups.iter().position(|group| group.name == name);
        let bars =
            group.and_then(|group| self.indexes.get(group)).map(|index| index.classes.iter().flatten());
        bars.into_iter().flatten().map(|bar| (bar.job.number, &*bar.rows)).collect()
    }
}

/// Returns whether jobs take turns on the processors: at some instant they have more than there are.
fn take_turns(bars: &[Bar], procs: u64) -> bool {
    let held = |bar: &Bar| i128::from(bar.job.procs);
    let mut changes: Vec<(i64, i128)> =
        bars.iter().flat_map(|bar| [(bar.from, held(bar)), (bar.to, -held(bar))]).collect();
    changes.sort_unstable();
    let mut sum = 0;
    changes.into_iter().any(|(_, change)| {
        sum += change;
        sum > i128::from(procs)
    })
}

/// The most rows that are single processors.
const NUMBERED_MOST: u64 = 10_000_000;

/// Returns the number of rows of single processors in all slots; `None` if they are too many.
fn numbered_rows(pool: &Pool) -> Option<u32> {
    let rows = pool.cpus.saturating_mul(u64::from(pool.slots.max(1)));
    u32::try_from(rows).ok().filter(|_| rows <= NUMBERED_MOST)
}

impl Pool {
    /// Returns the rows of a range of processors, ends included. Processors are counted upwards, and slots downwards.
    fn rows(&self, (low, high): (u32, u32)) -> (u32, u32) {
        let cpus = u32::try_from(self.cpus).unwrap_or(u32::MAX).max(1);
        let slots = self.slots.max(1);
        let first = slots.saturating_sub(1 + low / cpus).saturating_mul(cpus) + low % cpus;
        (
            first,
            first.saturating_add(high.saturating_sub(low)).saturating_add(1).min(slots.saturating_mul(cpus)),
        )
    }

    /// Returns the first row of each slot, or of each host, and its name.
    fn marks(&self) -> Vec<(u32, String)> {
        let slot = |slot: u32| {
            (
                self.rows((slot.saturating_mul(u32::try_from(self.cpus).unwrap_or(0)), 0)).0,
                format!("slot {slot}"),
            )
        };
        if self.slots > 1 { (0..self.slots).map(slot).collect() } else { self.hosts.clone() }
    }
}

/// Of the bars that are only likely, which are in the order of their begins, keeps the first ones that fit side by side into their pool. Likely starts overlap, and a long
/// queue of them would hide the other jobs.
fn keep_first_likely(bars: &mut Vec<Bar>, procs: u64) {
    let mut free = procs;
    bars.retain(|bar| {
        if bar.kind != Kind::Likely {
            return true;
        }
        let fits = bar.job.procs <= free;
        // Later jobs do not pass this one.
        free = if fits { free - bar.job.procs } else { 0 };
        fits
    });
}

/// Returns the bars of a job in its windows: one, or one for each of its parts.
fn bars_of(now: i64, job: &Arc<Job>) -> Vec<Bar> {
    let whole = job.stays.is_empty().then(|| bar_of(now, job)).flatten();
    whole.into_iter().chain(job.parts().filter_map(|part| bar_of(now, &Arc::new(part)))).collect()
}

/// Returns the bar of a job in its window: past, present or to come.
fn bar_of(now: i64, job: &Arc<Job>) -> Option<Bar> {
    let (kind, from, to) = match job.state {
        State::Ended => {
            let kind = match job.part {
                Part::Run => Kind::Ran,
                Part::Swap => Kind::Swapping,
                Part::Alternate => Kind::Alternate,
            };
            (kind, job.start?, job.end?)
        }
        State::Running | State::Suspended => {
            let start = job.start.unwrap_or(now);
            let kind = if job.state == State::Running { Kind::Running } else { Kind::Suspended };
            (kind, start, job.end.unwrap_or(now).max(now).max(start))
        }
        State::Held => return None,
        State::Waiting | State::Opportunistic | State::Parked => {
            let kind = if job.promised.is_some() { Kind::Promised } else { Kind::Planned };
            let (kind, from) = match (job.window(), job.likely) {
                (Some(start), _) => (kind, start.max(now)),
                (None, Some([median, ..])) => (Kind::Likely, median.max(now)),
                (None, None) => return None,
            };
            (kind, from, from.saturating_add(job.limit))
        }
    };
    Some(Bar::new(job, kind, from, to))
}

/// Returns the bar of a job on idle processors.
fn idle_bar(now: i64, job: &Arc<Job>) -> Option<Bar> {
    let runs = matches!(job.state, State::Opportunistic | State::Parked);
    let start = job.start.filter(|_| runs)?;
    Some(Bar::new(job, Kind::Idle, start, now.max(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stay;

    #[test]
    fn rows_are_processors_where_they_can_be() {
        let job = |number, cpu| Job {
            number,
            procs: 1,
            state: State::Ended,
            start: Some(0),
            end: Some(10_000),
            cpus: vec![(cpu, cpu)],
            ..Job::default()
        };
        let rows_of = |schedule: &Schedule<'_>| {
            let bars = Bars::new(schedule);
            let rows = bars.indexes[0].classes.iter().flatten().map(|bar| bar.rows.clone());
            rows.collect::<Vec<_>>()
        };
        let rows = |cpus| rows_of(&Schedule::of_jobs(cpus, [job(1, 6), job(2, 7)]));
        assert_eq!(rows(8), [[(6, 7)], [(7, 8)]]);
        assert_eq!(rows(2048), [[(6, 7)], [(7, 8)]]);
        assert_eq!(rows(20_000_000), [[(0, 1)], [(1, 2)]], "the bars do not overlap");
        // Jobs that take turns on a processor lie side by side.
        let turns = (1..=3).map(|number| Job { procs: 4, cpus: vec![(0, 3)], ..job(number, 0) });
        assert_eq!(rows_of(&Schedule::of_jobs(8, turns)), [[(0, 4)], [(4, 8)], [(8, 12)]]);
        // The pool of a daemon has any numbers, and jobs that take turns have the same ones.
        let mut schedule = Schedule::of_jobs(8, [job(1, 8), job(2, 8), job(3, 15)]);
        schedule.uid = Some(1000);
        assert_eq!(rows_of(&schedule), [[(0, 1)], [(1, 2)], [(2, 3)]]);
    }

    #[test]
    fn a_job_stays_in_its_rows() {
        let job = |number, start, end| Job {
            number,
            procs: 1,
            state: State::Running,
            start: Some(start),
            end: Some(end),
            ..Job::default()
        };
        let of = |jobs: &[Job], before: &Bars| {
            Bars::after(&Schedule { uid: Some(1), ..Schedule::of_jobs(4, jobs.to_vec()) }, before)
        };
        let rows = |bars: &Bars| -> Vec<_> {
            bars.rows_of("").into_iter().map(|(job, rows)| (job, rows.to_vec())).collect()
        };
        let first = of(&[job(1, 0, 10_000), job(2, 0, 90_000), job(3, 100_000, 200_000)], &Bars::default());
        assert_eq!(rows(&first), [(1, vec![(0, 1)]), (2, vec![(1, 2)]), (3, vec![(0, 1)])]);
        // Without the first one the lowest row is free for the second one.
        let jobs = [job(2, 0, 150_000), job(3, 100_000, 200_000), job(4, 100_000, 120_000)];
        let second = of(&jobs, &first);
        assert_eq!(rows(&second), [(2, vec![(1, 2)]), (3, vec![(0, 1)]), (4, vec![(2, 3)])]);
        assert_ne!(rows(&of(&jobs, &Bars::default())), rows(&second));
        // A job whose rows were taken gets others.
        let moved =
            [job(2, 0, 150_000), job(3, 200_000, 300_000), Job { procs: 4, ..job(4, 160_000, 250_000) }];
        assert_eq!(rows(&of(&moved, &second))[1..], [(3, vec![(4, 5)]), (4, vec![(0, 4)])]);
    }

    #[test]
    fn a_requeued_job_has_a_bar_for_each_attempt() {
        let stay = |from, to, part, cpu| Stay { from, to, part, cpus: vec![(cpu, cpu + 1)] };
        let stays =
            vec![stay(0, 100, Part::Run, 0), stay(200, 250, Part::Swap, 2), stay(250, 400, Part::Run, 2)];
        let job = Job {
            number: 1,
            procs: 2,
            state: State::Ended,
            start: Some(200),
            end: Some(400),
            stays,
            ..Job::default()
        };
        let schedule = Schedule { live: false, ..Schedule::of_jobs(4, [job]) };
        let bars = Bars::new(&schedule);
        let mut found: Vec<_> =
            bars.within(0, 0, 500).map(|bar| (bar.from, bar.to, bar.kind, bar.rows[0])).collect();
        found.sort_by_key(|(from, ..)| *from);
        assert_eq!(
            found,
            [(0, 100, Kind::Ran, (0, 2)), (200, 250, Kind::Swapping, (2, 4)), (250, 400, Kind::Ran, (2, 4))]
        );
        let part = bars.curves[0].part(0, 50, 8);
        assert_eq!(part.held, [(2, 20), (2, 0), (4, 20)]);
        assert_eq!(part.waiting, [(2, 0), (2, 10), (4, 0)]);
        let card = crate::card(&schedule, &schedule.jobs[0]);
        assert_eq!(card.window, Some((0, 400)));
        assert!(card.lines.iter().any(|(key, text)| *key == "parts" && text.matches(';').count() == 1));
    }

    #[test]
    fn slots_lie_from_the_top() {
        let part = |number, cpu: u32, part| Job {
            number,
            procs: 2,
            state: State::Ended,
            start: Some(0),
            end: Some(10),
            cpus: vec![(cpu, cpu + 1)],
            part,
            ..Job::default()
        };
        let jobs = [part(1, 0, Part::Run), part(2, 6, Part::Run), part(1, 4, Part::Alternate)];
        let mut schedule = Schedule { live: false, ..Schedule::of_jobs(4, jobs) };
        schedule.pools[0].slots = 2;
        let bars = Bars::new(&schedule);
        let Group { rows, marks, .. } = &bars.groups[0];
        assert_eq!((*rows, marks.as_slice()), (8, &[(4, "slot 0".to_owned()), (0, "slot 1".to_owned())][..]));
        let found = bars.indexes[0].within(3, 0, 10);
        let found: Vec<_> = found.iter().map(|bar| (bar.job.number, bar.kind, bar.rows[0])).collect();
        assert_eq!(found, [(1, Kind::Ran, (4, 6)), (1, Kind::Alternate, (0, 2)), (2, Kind::Ran, (2, 4))]);
        assert!(bars.curves.is_empty());
    }
}
