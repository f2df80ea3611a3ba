//! The difference of two schedules of a log: which jobs start earlier or later.

use std::collections::BTreeMap;

use miserly_core::Time;
use miserly_report::chart::{Body, Chart, ColourBy, GanttJob, Ramp};
use miserly_report::count;
use miserly_report::page::{Block, Emphasis, TableCell, TableData};
use miserly_run::{GroupDoc, RunDoc};
use miserly_units::{duration_rounded, span_of_seconds};

use crate::group_grid::GroupGrid;
use crate::recording::{EndedJob, Recording};
use crate::run_result::secs;

/// Number of jobs in the table that start later, and of those that start earlier.
const LISTED: usize = 8;

/// A job that both schedules ran.
struct Changed<'a> {
    before: &'a EndedJob,
    after: &'a EndedJob,
    /// The change of the start in seconds. Later is positive.
    change: f64,
}

/// The difference of schedule B from schedule A.
pub(crate) struct Difference<'a> {
    a: &'a RunDoc,
    b: &'a RunDoc,
    /// The grouping of the heat map.
    groups: &'a str,
    /// The jobs of both schedules, by their change: the latest first.
    jobs: Vec<Changed<'a>>,
}

impl<'a> Difference<'a> {
    pub(crate) fn new(
        [(a, before), (b, after)]: [(&'a RunDoc, &'a Recording); 2],
        groups: &'a str,
    ) -> Difference<'a> {
        let mut before = in_order(before).into_iter().peekable();
        let changed = |after: &'a EndedJob| {
            while before.next_if(|before| before.admission < after.admission).is_some() {}
            let before = before.next_if(|before| before.admission == after.admission)?;
            Some(Changed { before, after, change: secs(after.start) - secs(before.start) })
        };
        let mut jobs: Vec<Changed<'_>> = in_order(after).into_iter().filter_map(changed).collect();
        jobs.sort_by(|one, other| other.change.total_cmp(&one.change));
        Difference { a, b, groups, jobs }
    }

    /// Returns the blocks of the section. `schedule` is the Gantt chart of schedule B.
    pub(crate) fn blocks(&self, schedule: Chart) -> Vec<Block> {
        let charts = std::iter::once(self.recoloured(schedule)).chain(self.by_group());
        std::iter::once(Block::Text(self.summary()))
            .chain(charts.map(Block::Chart))
            .chain(self.table().map(Block::Table))
            .collect()
    }

    fn summary(&self) -> String {
        let number = |holds: fn(f64) -> bool| {
            let jobs = self.jobs.iter().filter(|job| holds(job.change)).count();
            count(jobs as u64)
        };
        format!(
            "Under {} instead of {}, {} jobs start earlier, {} start later, and {} start at the same time.",
            self.b.policy,
            self.a.policy,
            number(|change| change < 0.0),
            number(|change| change > 0.0),
            number(|change| change == 0.0)
        )
    }

    /// Returns the Gantt chart of schedule B with the colours of the changes.
    fn recoloured(&self, mut chart: Chart) -> Chart {
        if let Body::Gantt { jobs, by, from, to, .. } = &mut chart.body {
            let there = |job: &&Changed<'_>| secs(job.after.submit) < *to && secs(job.after.end) > *from;
            let there = self.jobs.iter().filter(there);
            let changes =
                there.map(|job| ((job.after.number, secs(job.after.submit).to_bits()), job.change)).collect();
            let mut firsts = BTreeMap::new();
            for job in jobs.iter() {
                let first = firsts.entry(key(job)).or_insert(job.start);
                *first = job.start.min(*first);
            }
            *by = ColourBy::Change;
            jobs.retain_mut(|job| self.compare(job, &firsts, &changes));
        }
        "difference".clone_into(&mut chart.id);
        chart.title = format!("{}: starts against {}", self.b.policy, self.a.policy);
        chart.caption = Some(format!(
            "The jobs on their processors under {}. The colour is the change of the start against {}.",
            self.b.policy, self.a.policy
        ));
        chart
    }

    /// Compares a job with schedule A. Returns `false` if schedule A did not run it.
    fn compare(&self, job: &mut GanttJob, firsts: &ByJob, changes: &ByJob) -> bool {
        let Some(&change) = changes.get(&key(job)) else { return false };
        // A job in parts has the start of its first one.
        job.compared = firsts.get(&key(job)).map(|first| first - change);
        job.note = Some(match words(change) {
            Some(words) => format!("starts {words} than under {}", self.a.policy),
            None => format!("starts as under {}", self.a.policy),
        });
        true
    }

    /// Returns the change of the mean wait by group.
    fn by_group(&self) -> Option<Chart> {
        let (before, after) = (self.a.by.get(self.groups)?, self.b.by.get(self.groups)?);
        let change = |group: &GroupDoc| {
            let other = before.iter().find(|other| other.group == group.group)?;
            Some(group.metrics.wait.mean? - other.metrics.wait.mean?)
        };
        let grid = GroupGrid::new(self.groups, after, change)?;
        let (unit, name) = unit(grid.farthest());
        let title = format!("Change of the mean wait, {name}");
        let caption = format!("{} minus {}. Negative: shorter waits.", self.b.policy, self.a.policy);
        let ramp = Ramp::Diverging { middle: 0.0 };
        Some(grid.divided(unit).chart("change-of-the-mean-wait", &title, Some(caption), ramp))
    }

    /// Returns the jobs with the largest changes.
    fn table(&self) -> Option<TableData> {
        let later = self.jobs.iter().take_while(|job| job.change > 0.0).take(LISTED);
        let earlier = self.jobs.iter().rev().take_while(|job| job.change < 0.0).take(LISTED);
        let mut earlier: Vec<&Changed<'_>> = earlier.collect();
        earlier.reverse();
        let rows: Vec<_> = later.chain(earlier).map(|job| self.row(job)).collect();
        let (a, b) = (&self.a.policy, &self.b.policy);
        let columns = ["job", "user", "processors", "submitted"].map(str::to_owned).into_iter();
        let header = columns.chain([format!("start, {a}"), format!("start, {b}"), "change".into()]).collect();
        let caption = Some("The jobs with the largest changes of the start.".to_owned());
        (!rows.is_empty()).then_some(TableData { caption, header: vec![header], rows })
    }

    fn row(&self, job: &Changed<'_>) -> Vec<TableCell> {
        let emphasis = if job.change > 0.0 { Emphasis::Bad } else { Emphasis::Good };
        vec![
            TableCell::number(job.after.number.to_string()),
            TableCell::number(job.after.user.map_or_else(|| "-".to_owned(), |user| user.to_string())),
            TableCell::number(count(job.after.procs)),
            TableCell::number(self.instant(job.after.submit)),
            TableCell::number(self.instant(job.before.start)),
            TableCell::number(self.instant(job.after.start)),
            TableCell::number(words(job.change).unwrap_or_default()).with(emphasis),
        ]
    }

    /// Returns an instant as its date, or as time of the log.
    fn instant(&self, at: Time) -> String {
        let second = secs(at);
        // Seconds of a log fit by far.
        #[allow(clippy::cast_possible_truncation)]
        let date = self.b.trace.dates.as_ref().and_then(|dates| dates.minute(second as i64));
        date.unwrap_or_else(|| duration_rounded(span_of_seconds(second)))
    }
}

/// Seconds by number and submission of the job.
type ByJob = BTreeMap<(i64, u64), f64>;

fn key(job: &GanttJob) -> (i64, u64) {
    (job.number, job.submit.to_bits())
}

/// Returns the jobs in the order of their submission.
fn in_order(recording: &Recording) -> Vec<&EndedJob> {
    let mut jobs: Vec<&EndedJob> = recording.jobs.iter().collect();
    jobs.sort_unstable_by_key(|job| job.admission);
    jobs
}

/// Returns `2h30m later`; `None` for no change.
fn words(change: f64) -> Option<String> {
    let word = if change > 0.0 { "later" } else { "earlier" };
    (change != 0.0).then(|| format!("{} {word}", duration_rounded(span_of_seconds(change.abs()))))
}

/// Returns the unit in which values up to `most` seconds have about two digits, and its name.
fn unit(most: f64) -> (f64, &'static str) {
    let units = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")];
    units.into_iter().find(|(unit, _)| most >= 2.0 * unit).unwrap_or((1.0, "seconds"))
}

/// Returns the two policies to compare if none are given: `easy` or the first one, and the other one with the
/// shortest mean wait.
pub(crate) fn default_pair<'a>(runs: &[&'a RunDoc]) -> Option<[&'a str; 2]> {
    let before = runs.iter().find(|run| run.is_baseline()).or(runs.first())?;
    let others = runs.iter().filter(|run| run.policy != before.policy);
    let waits = others.filter_map(|run| Some((run.metrics.wait.mean?, *run)));
    let (_, after) = waits.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some([before.policy.as_str(), after.policy.as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_words() {
        for (change, text) in [
            (0.0, None),
            (-59.0, Some("59s earlier")),
            (60.0, Some("1m later")),
            (-1e6, Some("11d14h earlier")),
        ] {
            assert_eq!(words(change).as_deref(), text);
        }
    }

    #[test]
    fn units_follow_the_largest_value() {
        let names = [10.0, 120.0, 7_100.0, 7_200.0, 200_000.0].map(|most| unit(most).1);
        assert_eq!(names, ["seconds", "minutes", "minutes", "hours", "days"]);
    }
}
