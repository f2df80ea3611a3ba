//! The bars of a chart: each job in its time and its rows.

use std::sync::Arc;

use serde::Serialize;

use crate::lanes::Lanes;
use crate::scene::{Classes, Colours, Curves, Legend};
use crate::words::window;
use crate::{Facts, Job, State};

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
    /// The curves of each pool.
    pub curves: Vec<Curves>,
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
    /// Returns the bars of all jobs. O(n log n + n p) for n jobs and p rows.
    pub fn new(facts: &Facts) -> Bars {
        let mut bars = Bars { curves: Curves::of_pools(facts), ..Bars::default() };
        let mut colours = Colours::new(facts);
        // Below the pools: these rows come and go.
        let mut below = vec![];
        for (pool, known) in facts.pools.iter().enumerate() {
            let jobs: Vec<&Arc<Job>> = facts.jobs.iter().filter(|job| job.pool == pool).collect();
            let most = jobs.iter().filter(|job| job.start.is_some()).map(|job| job.procs).max();
            let procs = known.cpus.max(most.unwrap_or(0));
            let in_window = jobs.iter().filter_map(|job| bar_of(facts.now, job));
            let name = known.name.clone();
            // Only a simulation has no user. A daemon has any numbers, moves jobs, and has jobs that take turns.
            bars.add_group(name, procs, in_window.collect(), facts.uid.is_none(), &mut colours);
            let idle: Vec<_> = jobs.iter().filter_map(|job| idle_bar(facts.now, job)).collect();
            if !idle.is_empty() {
                below.push((format!("{}, on idle processors", known.name), procs, idle));
            }
        }
        for (name, procs, idle) in below {
            bars.add_group(name, procs, idle, false, &mut colours);
        }
        bars.legends = colours.legends();
        bars
    }

    /// Adds the bars of a pool. `by_number`: a processor of a job is its row, if it is known of every job.
    fn add_group(
        &mut self,
        name: String,
        procs: u64,
        mut found: Vec<Bar>,
        by_number: bool,
        colours: &mut Colours,
    ) {
        found.sort_by_key(|bar| (bar.from, bar.job.number));
        keep_first_likely(&mut found, procs);
        let mut lanes = Lanes::new(procs);
        let numbered = by_number
            && lanes.unit() == 1
            && found.iter().all(|bar| !bar.job.cpus.is_empty() && bar.kind == Kind::Ran);
        let mut index = Index::default();
        for mut bar in found {
            bar.rows = if numbered {
                lanes.take_these(&bar.job.cpus, bar.to)
            } else {
                lanes.take(bar.from, bar.to, bar.job.procs)
            };
            bar.classes = colours.classes(&bar.job, bar.kind);
            let (first, last) = self.range.unwrap_or((bar.from, bar.to));
            self.range = Some((first.min(bar.from), last.max(bar.to)));
            index.add(bar);
        }
        index.sort();
        self.groups.push(Group { name, rows: lanes.rows(), unit: lanes.unit(), procs });
        self.indexes.push(index);
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

/// Returns the bar of a job in its window: past, present or to come.
fn bar_of(now: i64, job: &Arc<Job>) -> Option<Bar> {
    let (kind, from, to) = match job.state {
        State::Ended => (Kind::Ran, job.start?, job.end?),
        State::Running | State::Suspended => {
            let start = job.start.unwrap_or(now);
            let kind = if job.state == State::Running { Kind::Running } else { Kind::Suspended };
            (kind, start, job.end.unwrap_or(now).max(now).max(start))
        }
        State::Held => return None,
        State::Waiting | State::Opportunistic | State::Parked => {
            let kind = if job.promised.is_some() { Kind::Promised } else { Kind::Planned };
            let (kind, from) = match (window(job), job.likely) {
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

    #[test]
    fn a_row_of_several_processors_is_no_processor() {
        let job = |number, cpu| Job {
            number,
            procs: 1,
            state: State::Ended,
            start: Some(0),
            end: Some(10_000),
            cpus: vec![(cpu, cpu)],
            ..Job::default()
        };
        let rows_of = |facts: &Facts| {
            let bars = Bars::new(facts);
            let rows = bars.indexes[0].classes.iter().flatten().map(|bar| bar.rows.clone());
            rows.collect::<Vec<_>>()
        };
        let rows = |cpus| rows_of(&Facts::of_jobs(cpus, [job(1, 6), job(2, 7)]));
        assert_eq!(rows(8), [[(6, 7)], [(7, 8)]]);
        assert_eq!(rows(2048), [[(0, 1)], [(1, 2)]], "the bars do not overlap");
        // The pool of a daemon has any numbers, and jobs that take turns have the same ones.
        let mut facts = Facts::of_jobs(8, [job(1, 8), job(2, 8), job(3, 15)]);
        facts.uid = Some(1000);
        assert_eq!(rows_of(&facts), [[(0, 1)], [(1, 2)], [(2, 3)]]);
    }
}
