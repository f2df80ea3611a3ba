//! The jobs that the conditions of a submission mean, and the results of those that have ended.
//!
//! The work for a submission is bounded: the jobs of an array have consecutive numbers, each array and each name is looked up
//! once, and no more than a fixed number of finished jobs is read. Of a row that was read only its result is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use miserly_api::model::{Condition, Phase, Problem, When};
use serde::Deserialize;

use crate::request::problems::unreadable;
use crate::submission::size::ARRAY_MOST;
use crate::{ArrayMember, Caller, EndedJobs, JobRow, JobState, Record, Snapshot};

/// The number of the latest jobs among which a name of a finished job is searched.
const NAMED: i64 = 10_000;

/// The most jobs that the conditions of a submission mean, with all jobs of each array that they name.
const MEANT: usize = 200_000;

/// The most finished jobs that are read for the conditions of a submission.
const READ: usize = 50_000;

/// The number of rows that are in memory at a time.
const PAGE: u16 = 200;

/// The number of rows among which the record of an array is searched. More than one is read only if the first is unreadable.
const SEARCHED: u32 = 8;

/// The field of a submission with conditions.
pub(crate) const FIELD: &str = "conditions";

/// A job that a condition means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) number: i64,
    pub(crate) index: Option<u32>,
    /// Whether it succeeded, if it has ended.
    pub(crate) ended_ok: Option<bool>,
}

/// A job or the jobs of an array, by number: their indexes in the array.
type Family = Vec<(i64, Option<u32>)>;

/// The search for the jobs that the conditions of one submission mean.
pub(crate) struct TargetSearch<'s> {
    snapshot: &'s Snapshot,
    ended: &'s dyn EndedJobs,
    /// The newest jobs with the names in the conditions; of a job of an array, the number of the array.
    names: BTreeMap<&'s str, i64>,
    /// What the numbers in the conditions mean. It is empty if no record of the job is left.
    families: BTreeMap<i64, Rc<Family>>,
    /// Whether the finished jobs that were read succeeded; `None` if a record is unreadable.
    results: BTreeMap<i64, Option<bool>>,
    meant: usize,
    read: usize,
}

impl<'s> TargetSearch<'s> {
    /// Returns a search that knows the names in some conditions.
    ///
    /// # Errors
    /// If the finished jobs cannot be read.
    pub(crate) fn new(
        snapshot: &'s Snapshot,
        caller: &Caller,
        conditions: &'s [Condition],
        ended: &'s dyn EndedJobs,
    ) -> Result<TargetSearch<'s>, Problem> {
        let mut search = TargetSearch {
            snapshot,
            ended,
            names: BTreeMap::new(),
            families: BTreeMap::new(),
            results: BTreeMap::new(),
            meant: 0,
            read: 0,
        };
        let names: BTreeSet<&str> = conditions.iter().filter_map(|of| of.name.as_deref()).collect();
        if !names.is_empty() {
            search.names = search.newest(caller, &names)?;
        }
        Ok(search)
    }

    /// Returns the number that a condition means.
    ///
    /// # Errors
    /// If it has none, or there is no job with its name.
    pub(crate) fn number(&self, condition: &Condition) -> Result<i64, Problem> {
        match (condition.job, &condition.name) {
            (Some(number), None) => Ok(number),
            (None, Some(name)) => self.names.get(&**name).copied().ok_or_else(|| {
                let message = format!("you have no job with the name {name:?} to wait for");
                Problem::with_field(FIELD, message)
            }),
            _ => Err(Problem::with_field(FIELD, "a condition has either job or name")),
        }
    }

    /// Returns the job with a number; of an array, all its jobs or the one with an index. Of finished ones, those whose result
    /// matters.
    ///
    /// # Errors
    /// If there is no such job, or a result that matters is not known.
    pub(crate) fn targets(
        &mut self,
        field: &str,
        number: i64,
        index: Option<u32>,
        when: When,
    ) -> Result<Vec<Target>, Problem> {
        let problem = |message: String| Err(Problem::with_field(field, message));
        if number >= self.snapshot.values.next_number() || number < 1 {
            return problem(format!("there is no job {number} to wait for"));
        }
        let family = self.family(field, number)?;
        let Some(first) = family.first() else {
            return match (when, index) {
                // It has ended, whatever the end was.
                (When::Any, None) => Ok(vec![]),
                (When::Any, Some(_)) => problem(format!("the jobs of array {number} are not known any more")),
                _ => problem(format!("the result of job {number} is not known any more")),
            };
        };
        if when == When::EachOk && first.1.is_none() {
            return problem(format!(
                "job {number} is no array; each-ok waits for the job with the same index"
            ));
        }
        let jobs = match index {
            None => &family[..],
            Some(index) => match family.binary_search_by_key(&Some(index), |job| job.1) {
                Ok(place) => &family[place..=place],
                Err(_) if first.1.is_none() => {
                    return problem(format!("job {number} is no array, so it has no index {index}"));
                }
                Err(_) => {
                    return problem(format!("array {number} has no job with index {index} to wait for"));
                }
            },
        };
        self.with_results(field, number, jobs, when)
    }

    fn with_results(
        &mut self,
        field: &str,
        number: i64,
        jobs: &[(i64, Option<u32>)],
        when: When,
    ) -> Result<Vec<Target>, Problem> {
        let is_over = |job: &&(i64, Option<u32>)| !self.snapshot.is_unfinished(job.0);
        let over: BTreeSet<i64> = jobs.iter().filter(is_over).map(|job| job.0).collect();
        if when == When::Any {
            let left = jobs.iter().filter(|job| !over.contains(&job.0));
            return Ok(left
                .map(|(number, index)| Target { number: *number, index: *index, ended_ok: None })
                .collect());
        }
        self.read_results(field, &over)?;
        let of_array = |job: i64| if job == number { String::new() } else { format!(" of array {number}") };
        let target = |(job, index): &(i64, Option<u32>)| {
            let mut target = Target { number: *job, index: *index, ended_ok: None };
            if !over.contains(job) {
                return Ok(target);
            }
            let why = match self.results.get(job) {
                Some(Some(ok)) => {
                    target.ended_ok = Some(*ok);
                    return Ok(target);
                }
                Some(None) => "is not known: its record cannot be read",
                None => "is not known any more",
            };
            let message = format!("the result of job {job}{} {why}", of_array(*job));
            Err(Problem::with_field(field, message))
        };
        jobs.iter().map(target).collect()
    }

    /// Reads the results of finished jobs, unless it has them.
    fn read_results(&mut self, field: &str, jobs: &BTreeSet<i64>) -> Result<(), Problem> {
        let mut left = jobs.iter().copied().filter(|job| !self.results.contains_key(job));
        let Some(mut from) = left.next() else { return Ok(()) };
        self.read += 1 + left.count();
        if self.read > READ {
            let message = format!("it depends on the results of more than {READ} jobs that have ended");
            return Err(Problem::with_field(field, message));
        }
        let end = jobs.last().map_or(from, |last| last + 1);
        while from < end {
            let rows = self.page(from..end)?;
            let Some(last) = rows.last() else { break };
            from = last.number + 1;
            let results = rows.iter().map(|row| (row.number, end_of(row).as_ref().map(Phase::succeeded)));
            self.results.extend(results.filter(|(number, _)| jobs.contains(number)));
        }
        Ok(())
    }

    /// Returns the first finished jobs with numbers in a range.
    fn page(&self, numbers: Range<i64>) -> Result<Vec<JobRow>, Problem> {
        let limit = u32::try_from(numbers.end - numbers.start).unwrap_or(u32::MAX).min(PAGE.into());
        let mut rows = self.ended.ended_from(numbers.start, limit).map_err(unreadable)?;
        rows.retain(|row| row.number < numbers.end);
        Ok(rows)
    }

    /// Returns what a number means.
    fn family(&mut self, field: &str, number: i64) -> Result<Rc<Family>, Problem> {
        if let Some(family) = self.families.get(&number) {
            return Ok(Rc::clone(family));
        }
        let family = Rc::new(self.find_family(number)?);
        self.meant += family.len();
        if self.meant > MEANT {
            return Err(Problem::with_field(field, format!("it depends on more than {MEANT} jobs")));
        }
        self.families.insert(number, Rc::clone(&family));
        Ok(family)
    }

    fn find_family(&self, number: i64) -> Result<Family, Problem> {
        let next = self.snapshot.jobs.from(number).next();
        if let Some(family) = next.and_then(|record| family_of(record, number)) {
            return Ok(family);
        }
        let rows = self.ended.ended_from(number, SEARCHED).map_err(unreadable)?;
        let last = number.saturating_add(i64::try_from(ARRAY_MOST).unwrap_or(i64::MAX));
        let near = rows.iter().take_while(|row| row.number < last);
        // A row of another job is not parsed: it may be long.
        let mut of_number = near.filter(|row| row.number == number || row.array == Some(number));
        let record = |row| Record::read(row).ok();
        if let Some(family) = of_number.find_map(|row| family_of(&record(row)?, number)) {
            return Ok(family);
        }
        let unrecorded = &self.snapshot.unrecorded;
        let unreadable = unrecorded.unreadable_rows().filter(|row| row.array == Some(number));
        let mut jobs: BTreeSet<i64> = unreadable.map(|row| row.number).collect();
        jobs.extend(Some(number).filter(|number| unrecorded.contains(*number)));
        // The result of an unreadable row is unknown, and not that of a job that was pruned.
        jobs.extend(rows.first().map(|row| row.number).filter(|first| *first == number));
        Ok(jobs.into_iter().map(|job| (job, None)).collect())
    }

    /// Returns the newest jobs of the caller with some names; of a job of an array, the number of the array.
    fn newest(&self, caller: &Caller, names: &BTreeSet<&'s str>) -> Result<BTreeMap<&'s str, i64>, Problem> {
        let array = |number: i64, array: Option<ArrayMember>| array.map_or(number, |array| array.first);
        let mut newest: BTreeMap<&'s str, (i64, i64)> = BTreeMap::new();
        for record in self.snapshot.jobs.iter().filter(|record| record.uid == caller.uid) {
            if let Some(name) = names.get(&*record.name) {
                newest.insert(name, (record.number, array(record.number, record.array)));
            }
        }
        let mut end = self.snapshot.values.next_number();
        let oldest = end.saturating_sub(NAMED).max(0);
        // Names of which an older job cannot be newer than the one that was found.
        let is_open = |newest: &BTreeMap<&str, (i64, i64)>, end: i64| {
            names.iter().any(|name| newest.get(name).is_none_or(|(number, _)| *number < end))
        };
        while end > oldest && is_open(&newest, end) {
            let from = end.saturating_sub(PAGE.into()).max(oldest);
            for row in self.page(from..end)?.iter().filter(|row| row.uid == caller.uid) {
                let Some(NamedJob { name, array: of }) = read(row) else { continue };
                let Some(name) = names.get(&*name) else { continue };
                let found = (row.number, array(row.number, of));
                let best = newest.entry(name).or_insert(found);
                *best = found.max(*best);
            }
            end = from;
        }
        Ok(newest.into_iter().map(|(name, (_, number))| (name, number)).collect())
    }
}

/// Returns the jobs that a number means, if the record is of one of them.
fn family_of(record: &Record, number: i64) -> Option<Family> {
    let first = record.array.map(|array| array.first);
    if first == Some(number) {
        let indexes = record.submission.array.as_ref()?.indexes();
        return Some((number..).zip(indexes.into_iter().map(Some)).collect());
    }
    (record.number == number).then(|| vec![(number, None)])
}

/// The result of a finished job. The other fields of its record are skipped.
#[derive(Deserialize)]
struct EndedState {
    state: JobState,
}

/// The name of a finished job. The other fields of its record are skipped.
#[derive(Deserialize)]
struct NamedJob {
    name: String,
    #[serde(default)]
    array: Option<ArrayMember>,
}

/// Reads a part of a record.
fn read<T: for<'de> Deserialize<'de>>(row: &JobRow) -> Option<T> {
    row.problem.is_none().then(|| serde_json::from_str(&row.body).ok()).flatten()
}

/// Returns the end of a job, if it has finished and its record can be read.
pub(crate) fn end_of(row: &JobRow) -> Option<Phase> {
    match read::<EndedState>(row)?.state {
        JobState::Finished(phase) => Some(*phase),
        _ => None,
    }
}
