//! What-if questions about a log: two runs that differ in one thing, and the difference of their waits.
//!
//! A schedule is sensitive: to move submissions by seconds moves starts by hours. So each run is repeated on copies of the
//! log whose submissions are moved by up to [`SHAKE`], the same way in both runs (Tsafrir, Ouaknine and Feitelson, MASCOTS
//! 2007). A difference that has one sign in nearly all copies is one of the change, and not of chance.
//!
//! The answer is the difference in the log as it is, as in a comparison of two runs. Its range spans the log and its copies.

use std::collections::BTreeMap;
use std::io;

use miserly_core::{JobNumber, Request, Resources, Span, Time};
use miserly_policies::PolicySpec;
use miserly_run::{FollowingJob, RunSetup, SetupError};
use miserly_sim::{Batches, FeedbackJobs, Finished, GroupKey, Grouping, Job, Measures, Metrics, Observer};
use miserly_workload::{TraceError, shaken};
use rayon::prelude::*;

/// The most seconds by which a copy of the log moves a submission.
pub const SHAKE: u32 = 30;

/// The number of a job that is added to a log.
const ADDED: JobNumber = JobNumber::MAX;

/// One of the two runs of a question.
#[derive(Clone, Copy)]
pub struct Variant<'a> {
    /// The log, the machine and the options.
    pub setup: &'a RunSetup,
    /// The policy.
    pub policy: &'a PolicySpec,
    /// A job that is added to the log ([`added_job`]).
    pub added: Option<&'a Job>,
}

/// Returns a job that is added to a log, with its time limit and its runtime.
pub fn added_job(submit: Time, resources: Resources, limit: Span, runtime: Span) -> Job {
    Job::new(Request::new(ADDED, submit, limit, resources), runtime.min(limit))
}

/// The difference of two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// The jobs of either run, in the order of submission.
    pub jobs: Vec<JobDifference>,
    /// All jobs that ended in both runs.
    pub all: GroupDifference,
    /// The same by group.
    pub by_group: BTreeMap<GroupKey, GroupDifference>,
    /// The same by user.
    pub by_user: BTreeMap<Option<u32>, GroupDifference>,
    /// Mean bounded slowdown of all jobs before the change and after it.
    pub slowdown: [f64; 2],
    /// The difference of the mean bounded slowdowns.
    pub slowdown_difference: Spread,
    /// The added job, if there is one.
    pub added: Option<Added>,
    /// Whether the mean waits of the log differ by more than from batch to batch of jobs (95 %), as in a comparison.
    /// `None`: it is unknown, or the runs have other jobs.
    pub significant: Option<bool>,
}

/// A job of either run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDifference {
    /// The job.
    pub number: JobNumber,
    /// Its submission before the change, or else after it.
    pub submit: Time,
    /// Its processors.
    pub procs: u64,
    /// Its user.
    pub user: Option<u32>,
    /// Its wait before the change; `None`: it is not in that run.
    pub before: Option<Span>,
    /// Its wait after the change; `None`: it is not in that run.
    pub after: Option<Span>,
    /// The range of the difference; `None` without copies, or if the job is not in both runs.
    pub range: Option<[Span; 2]>,
}

impl JobDifference {
    /// Returns by how much longer the job waits after the change. It is negative if it waits shorter.
    pub fn difference(&self) -> Option<Span> {
        Some(self.after? - self.before?)
    }
}

/// A value of the log, and its spread over the copies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// The value of the log as it is.
    pub value: f64,
    /// The values of the copies, ascending.
    pub copies: Vec<f64>,
}

impl Spread {
    fn new(mut values: Vec<f64>) -> Spread {
        let copies = values.split_off(values.len().min(1));
        let mut spread = Spread { value: values.first().copied().unwrap_or(0.0), copies };
        spread.copies.sort_by(f64::total_cmp);
        spread
    }

    /// Returns the median of the copies (of two in the middle, the lower).
    pub fn median(&self) -> Option<f64> {
        median_of(&self.copies)
    }

    /// Returns the range of the log and its copies, which contains the value; `None` without copies.
    pub fn range(&self) -> Option<[f64; 2]> {
        around(self.value, &self.copies)
    }

    /// Returns the share of copies with a value above 0, and of those below 0.
    pub fn signs(&self) -> Option<[f64; 2]> {
        let share = |count: usize| count as f64 / self.copies.len() as f64;
        let (above, below) =
            (self.copies.iter().filter(|v| **v > 0.0), self.copies.iter().filter(|v| **v < 0.0));
        (!self.copies.is_empty()).then(|| [share(above.count()), share(below.count())])
    }
}

/// Returns the share of further copies that are within a range, if all copies are alike: 0.9, or less with few copies.
pub fn coverage(copies: u64) -> f64 {
    let outside = 2 * left_out(copies) as u64;
    copies.saturating_sub(outside) as f64 / (copies + 2) as f64
}

/// Returns how many draws a range leaves out at either end, of the log and so many copies: as many as a coverage of 0.9
/// allows.
fn left_out(copies: u64) -> usize {
    usize::try_from((copies.saturating_sub(18)) / 20).unwrap_or(usize::MAX)
}

/// Returns the range of a value of the log and the ascending values of its copies. It contains the value.
fn around<T: Copy + PartialOrd>(value: T, copies: &[T]) -> Option<[T; 2]> {
    let mut draws = copies.to_vec();
    draws.insert(draws.partition_point(|draw| *draw < value), value);
    let outside = left_out(copies.len() as u64);
    let (low, high) = (draws[outside], draws[draws.len() - 1 - outside]);
    let ends = [if value < low { value } else { low }, if value > high { value } else { high }];
    (!copies.is_empty()).then_some(ends)
}

/// Returns the median of ascending values (of two in the middle, the lower).
pub(crate) fn median_of<T: Copy>(values: &[T]) -> Option<T> {
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// Returns the least and the largest of the middle 90 % of ascending values.
pub(crate) fn range_of<T: Copy>(values: &[T]) -> Option<[T; 2]> {
    ends(values.len()).map(|places| places.map(|place| values[place]))
}

/// Returns the places of the ends of the middle 90 % of so many values.
fn ends(count: usize) -> Option<[usize; 2]> {
    let outside = count / 20;
    (count > 0).then(|| [outside, count - 1 - outside])
}

/// The difference of a group of jobs that ended in both runs. Waits are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupDifference {
    /// The jobs.
    pub jobs: u64,
    /// Jobs that wait longer after the change.
    pub longer: u64,
    /// Jobs that wait shorter after the change.
    pub shorter: u64,
    /// Mean wait before the change.
    pub before: f64,
    /// Mean wait after the change.
    pub after: f64,
    /// The difference of the mean waits.
    pub difference: Spread,
}

/// The added job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its wait. `None`: the policy refuses it.
    pub wait: Option<Span>,
    /// Its latest wait by its promise.
    pub promise: Option<Span>,
    /// Its waits in the copies, ascending. A copy in which it is refused is left out.
    pub copies: Vec<Span>,
}

impl Added {
    /// Returns the range of its waits in the log and its copies; `None` without copies, or if the policy refuses it.
    pub fn range(&self) -> Option<[Span; 2]> {
        around(self.wait?, &self.copies)
    }
}

/// Runs both variants on the log and on `copies` copies of it, on all cores, and compares them.
///
/// A job is in the same group of `groups` before the change and after it. Groups without jobs are left out. A grouping by
/// a label needs it among the groupings of the options of both variants.
///
/// `progress` receives the number of runs that ended since the last call. The result does not depend on the number of
/// threads.
///
/// # Errors
/// If the log cannot be read, or a policy does not run.
pub fn what_if(
    before: Variant<'_>,
    after: Variant<'_>,
    groups: Grouping,
    copies: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<WhatIf, SetupError> {
    let sides = [(before, before.setup.jobs_after()?), (after, after.setup.jobs_after()?)];
    let runs: Vec<(usize, u64)> = (0..=copies).flat_map(|copy| [(0, copy), (1, copy)]).collect();
    let outcomes: Vec<Result<Outcomes, SetupError>> = runs
        .into_par_iter()
        .map(|(side, copy)| {
            let (variant, jobs) = &sides[side];
            // A caller that no longer wants the answer unwinds here, before the work and not only behind it.
            progress(0);
            let outcomes = run(*variant, jobs, groups, copy);
            progress(1);
            outcomes
        })
        .collect();
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
    let mut pairs = Vec::new();
    while let (Some(before), Some(after)) = (outcomes.next(), outcomes.next()) {
        pairs.push([before, after]);
    }
    let [jobs_before, jobs_after] =
        sides.map(|(_, jobs)| jobs.into_iter().map(|(job, _)| job).collect::<Vec<_>>());
    let first = jobs_before.iter().map(|job| job.request.submit).min().unwrap_or(Time::ZERO);
    let measured_from = first + before.setup.warmup();
    Ok(compare([&jobs_before, &jobs_after], measured_from, after.added.is_some(), &pairs))
}

/// The waits of one run.
#[derive(Default)]
struct Outcomes {
    /// The jobs of the log that ended, in the order of keys.
    ended: Vec<Ended>,
    added: Option<Span>,
    promised: Option<Span>,
    /// The means of batches of jobs; of the log as it is only, and without feedback.
    batches: Option<Batches>,
    /// The groups of the jobs that ended; of the log as it is only.
    groups: BTreeMap<Key, GroupKey>,
}

/// The observer of one run.
struct Watched {
    outcomes: Outcomes,
    /// The grouping, and the group of each job that ended; of the log as it is only.
    groups: Option<(Grouping, Vec<GroupKey>)>,
}

/// The number of a job, and its place among the jobs of the log with that number.
type Key = (JobNumber, u64);

#[derive(Clone, Copy)]
struct Ended {
    /// While the run goes on, its second part is the place among all jobs.
    key: Key,
    wait: Span,
    runtime: Span,
}

impl Observer for Watched {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let number = job.request.number;
        if number == ADDED {
            self.outcomes.added = Some(job.wait());
            self.outcomes.promised = job.promised.map(|promised| promised - job.request.submit);
        } else {
            let (key, wait, runtime) = ((number, job.admission), job.wait(), job.runtime);
            self.outcomes.ended.push(Ended { key, wait, runtime });
            if let Some((by, groups)) = &mut self.groups {
                groups.push(by.key(job));
            }
        }
        Ok(())
    }
}

/// Runs the copy of this number; 0 is the log as it is.
fn run(
    variant: Variant<'_>,
    jobs: &[FollowingJob],
    groups: Grouping,
    copy: u64,
) -> Result<Outcomes, SetupError> {
    let (mut order, mut later) = (Vec::new(), FeedbackJobs::default());
    for (job, preceding) in jobs {
        match preceding {
            None => order.push((submission(&job.request, copy), job)),
            Some((number, think)) => later.add(*number, *think, job.clone()),
        }
    }
    order.sort_by_key(|(submit, _)| *submit);
    if let Some(job) = variant.added {
        let submit = job.request.submit;
        order.insert(order.partition_point(|(other, _)| *other <= submit), (submit, job));
    }
    let mut input = order.into_iter().map(|(submit, job)| {
        let mut job = job.clone();
        job.request.submit = submit;
        Ok::<_, TraceError>(job)
    });
    let mut watched =
        Watched { outcomes: Outcomes::default(), groups: (copy == 0).then(|| (groups, Vec::new())) };
    let mut simulation = variant.setup.simulation(variant.policy)?;
    simulation.add_feedback(later);
    if copy == 0 {
        let mut metrics = Metrics::new(variant.setup.procs(), variant.setup.warmup());
        simulation.run(&mut input, &mut [&mut watched, &mut metrics])?;
        // With feedback the jobs come in another order, so that no batches are pairs.
        let paired = variant.setup.options().feedback.is_none();
        watched.outcomes.batches = paired.then_some(metrics.batches);
    } else {
        simulation.run(&mut input, &mut [&mut watched])?;
    }
    Ok(watched.outcomes())
}

impl Watched {
    /// Returns the outcomes, with the places of jobs among those of their numbers.
    fn outcomes(self) -> Outcomes {
        let mut outcomes = self.outcomes;
        let groups = self.groups.map_or_else(Vec::new, |(_, groups)| groups);
        let keys: Vec<Key> = outcomes.ended.iter().map(|ended| ended.key).collect();
        outcomes.ended.sort_unstable_by_key(|ended| ended.key);
        let mut last = None;
        for Ended { key: (number, place), .. } in &mut outcomes.ended {
            let nth = last.filter(|(other, _)| other == number).map_or(0, |(_, nth)| nth + 1);
            (last, *place) = (Some((*number, nth)), nth);
        }
        let mut groups: Vec<(Key, GroupKey)> = keys.into_iter().zip(groups).collect();
        groups.sort_unstable_by_key(|(key, _)| *key);
        let of_place = outcomes.ended.iter().zip(groups).map(|(ended, (_, group))| (ended.key, group));
        outcomes.groups = of_place.collect();
        outcomes
    }
}

/// Returns the submission of a job in the copy of this number.
fn submission(request: &Request, copy: u64) -> Time {
    if copy == 0 {
        return request.submit;
    }
    shaken(request.submit, request.number, copy, SHAKE)
}

/// Returns each job that ended in both runs.
fn matched([before, after]: &[Outcomes; 2]) -> impl Iterator<Item = (&Ended, &Ended)> {
    let mut after = after.ended.iter().peekable();
    before.ended.iter().filter_map(move |job| {
        while after.next_if(|other| other.key < job.key).is_some() {}
        after.next_if(|other| other.key == job.key).map(|other| (job, other))
    })
}

/// Returns the requests of jobs, which are in the order of submission.
fn requests(jobs: &[Job]) -> BTreeMap<Key, &Request> {
    let mut all = BTreeMap::new();
    for job in jobs {
        let request = &job.request;
        let nth = all.range((request.number, 0)..=(request.number, u64::MAX)).count() as u64;
        all.insert((request.number, nth), request);
    }
    all
}

/// Compares the runs of the log, which come first, and of its copies. Jobs submitted before `from` are not measured.
fn compare([before, after]: [&[Job]; 2], from: Time, has_added: bool, runs: &[[Outcomes; 2]]) -> WhatIf {
    let Some((log, copies)) = runs.split_first() else { return WhatIf::default() };
    let mut all = requests(after);
    all.extend(requests(before));
    let measured = |key: &Key| all[key].submit >= from;
    let group_of = |key: &Key| log.iter().find_map(|side| side.groups.get(key)).cloned();
    let mut groups: BTreeMap<Group, Vec<Sums>> = BTreeMap::new();
    for (copy, pair) in runs.iter().enumerate() {
        for (before, after) in matched(pair).filter(|(job, _)| measured(&job.key)) {
            let own = group_of(&before.key).map(Group::Own);
            for group in [Group::All, Group::User(all[&before.key].user)].into_iter().chain(own) {
                let sums = groups.entry(group).or_insert_with(|| vec![Sums::default(); runs.len()]);
                sums[copy].add(before.wait, after.wait);
            }
        }
    }
    let mut result = WhatIf { jobs: jobs(&all, log, copies), ..WhatIf::default() };
    for (group, sums) in groups {
        let difference = difference(&sums);
        match group {
            Group::All => result.all = difference,
            Group::Own(key) => drop(result.by_group.insert(key, difference)),
            Group::User(user) => drop(result.by_user.insert(user, difference)),
        }
    }
    let slowdowns: Vec<[f64; 2]> = runs.iter().map(|pair| slowdowns(pair, measured)).collect();
    result.slowdown = slowdowns[0];
    result.slowdown_difference =
        Spread::new(slowdowns.iter().map(|[before, after]| after - before).collect());
    result.added = has_added.then(|| {
        let mut waits: Vec<Span> = copies.iter().filter_map(|[_, after]| after.added).collect();
        waits.sort_unstable();
        Added { wait: log[1].added, promise: log[1].promised, copies: waits }
    });
    let same_jobs = !has_added && result.jobs.iter().all(|job| job.before.is_some() && job.after.is_some());
    let interval = same_jobs.then(|| {
        let [before, after] = log;
        Some(after.batches.as_ref()?.difference(before.batches.as_ref()?, Measures::WAIT))
    });
    result.significant = interval.flatten().and_then(|interval| interval.within_noise()).map(|noise| !noise);
    result
}

/// A group of jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    All,
    Own(GroupKey),
    User(Option<u32>),
}

/// The waits of a group in one pair of runs, in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    jobs: u64,
    longer: u64,
    shorter: u64,
    before: i128,
    after: i128,
}

impl Sums {
    fn add(&mut self, before: Span, after: Span) {
        self.jobs += 1;
        self.longer += u64::from(after > before);
        self.shorter += u64::from(after < before);
        self.before += i128::from(before.ticks());
        self.after += i128::from(after.ticks());
    }

    /// Returns the mean of this sum, in seconds.
    fn mean(&self, ticks: i128) -> f64 {
        ticks as f64 / self.jobs.max(1) as f64 * Span::from_ticks(1).as_secs_f64()
    }
}

/// Returns the difference of a group from its sums: those of the log, then those of each copy.
fn difference(runs: &[Sums]) -> GroupDifference {
    let log = runs[0];
    GroupDifference {
        jobs: log.jobs,
        longer: log.longer,
        shorter: log.shorter,
        before: log.mean(log.before),
        after: log.mean(log.after),
        difference: Spread::new(runs.iter().map(|sums| sums.mean(sums.after - sums.before)).collect()),
    }
}

/// Returns the mean bounded slowdowns of the measured jobs that ended in both runs. The bound is 10 s.
fn slowdowns(pair: &[Outcomes; 2], measured: impl Fn(&Key) -> bool) -> [f64; 2] {
    let of = |job: &Ended| {
        let (wait, runtime) = (job.wait.as_secs_f64(), job.runtime.as_secs_f64());
        ((wait + runtime) / runtime.max(10.0)).max(1.0)
    };
    let (mut jobs, mut sums) = (0_u64, [0.0; 2]);
    for (before, after) in matched(pair).filter(|(job, _)| measured(&job.key)) {
        jobs += 1;
        sums = [sums[0] + of(before), sums[1] + of(after)];
    }
    sums.map(|sum| sum / jobs.max(1) as f64)
}

/// Returns the jobs of either run of the log, in the order of submission.
fn jobs(
    requests: &BTreeMap<Key, &Request>,
    log: &[Outcomes; 2],
    copies: &[[Outcomes; 2]],
) -> Vec<JobDifference> {
    let mut differences: BTreeMap<Key, Vec<Span>> = BTreeMap::new();
    for (before, after) in copies.iter().flat_map(matched) {
        differences.entry(before.key).or_default().push(after.wait - before.wait);
    }
    let waits = |outcomes: &Outcomes| outcomes.ended.iter().map(|job| (job.key, job.wait)).collect();
    let [before, after]: [BTreeMap<Key, Span>; 2] = [waits(&log[0]), waits(&log[1])];
    let job = |(key, request): (&Key, &&Request)| {
        let mut job = JobDifference {
            number: key.0,
            submit: request.submit,
            procs: request.procs().get(),
            user: request.user,
            before: before.get(key).copied(),
            after: after.get(key).copied(),
            range: None,
        };
        let mut copies = differences.remove(key).unwrap_or_default();
        copies.sort_unstable();
        job.range = job.difference().and_then(|difference| around(difference, &copies));
        job
    };
    let mut jobs: Vec<JobDifference> = requests.iter().map(job).collect();
    jobs.sort_by_key(|job| (job.submit, job.number));
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_copies() {
        assert_eq!(ends(0), None);
        assert_eq!(ends(1), Some([0, 0]));
        assert_eq!(ends(19), Some([0, 18]));
        assert_eq!(ends(20), Some([1, 18]));
        let spread = Spread::new((0..=40).map(f64::from).rev().collect());
        assert_eq!((spread.value, spread.range(), spread.median()), (40.0, Some([1.0, 40.0]), Some(19.0)));
        assert_eq!(Spread::new(vec![1.0, -1.0, 2.0, 0.0, 3.0]).signs(), Some([0.5, 0.25]));
    }

    #[test]
    fn a_range_contains_the_log_and_nine_of_ten_copies() {
        assert_eq!(around(3.0, &[]), None);
        assert_eq!(around(3.0, &[1.0]), Some([1.0, 3.0]));
        let copies: Vec<f64> = (0..38).map(f64::from).collect();
        assert_eq!(around(20.5, &copies), Some([1.0, 36.0]));
        assert_eq!((around(-1.0, &copies), around(90.0, &copies)), (Some([-1.0, 36.0]), Some([1.0, 90.0])));
        assert_eq!(
            [0, 1, 18, 38].map(|copies| format!("{:.3}", coverage(copies))),
            ["0.000", "0.333", "0.900", "0.900"]
        );
        assert!((19..=1_000).all(|copies| coverage(copies) >= 0.9 && coverage(copies) < 0.96));
    }

    #[test]
    fn copies_move_submissions_by_at_most_the_shake() {
        let request =
            |number| Request::new(number, Time::from_secs(1000).unwrap(), Span::ZERO, Resources::cpus(1));
        let moved: Vec<i64> = (1..1000).map(|number| submission(&request(number), 1).secs() - 1000).collect();
        assert_eq!(
            (moved.iter().min(), moved.iter().max()),
            (Some(&-i64::from(SHAKE)), Some(&i64::from(SHAKE)))
        );
        assert_eq!(submission(&request(1), 0).secs(), 1000);
    }
}
