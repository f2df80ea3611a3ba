//! The verdict of a comparison, in words.

use miserly_run::{DifferenceDoc, GroupChangeDoc, RunDoc};
use miserly_sim::Measures;
use serde::Serialize;

use super::change::{Change, least_for_ratio, time};
use crate::numbers::count;

/// Least ratio of two longest waits that the verdict names.
const MUCH: f64 = 1.5;

/// The sentence where no group could be tested.
const UNTESTED: &str =
    "Who gains and who pays is unknown: the groups have too few jobs, or batches of jobs are correlated.";

/// The schedules of a log that a verdict compares.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// One run for each policy.
    pub runs: &'a [&'a RunDoc],
    /// The policy with which the best one is compared.
    pub against: &'a str,
    /// The grouping of the jobs that shows who gains and who pays, as in `--by`.
    pub groups: &'a str,
    /// The recorded schedule, if the log has one.
    pub recorded: Option<&'a RunDoc>,
    /// The run of the best policy in which no job is cut at its estimate, if [`needs_whole_runtimes`].
    pub whole: Option<&'a RunDoc>,
}

/// The verdict on the schedules of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The verdict in words.
    pub text: String,
    /// The policy with the shortest mean wait; null if no two policies have different ones.
    pub best: Option<String>,
    /// The policy with which it is compared.
    pub base: Option<String>,
    /// Whether the difference of their mean waits may be due to chance (95 %); null if that is unknown.
    pub within_noise: Option<bool>,
    /// The groups of jobs under the two policies.
    #[serde(flatten)]
    pub groups: GroupChanges,
}

/// The changes of the mean waits of groups of jobs from one policy to another.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GroupChanges {
    /// The grouping, as in `--by`.
    by: String,
    /// The tested groups: those with enough jobs.
    groups: Vec<GroupChangeDoc>,
    /// Among those whose wait changes significantly, the group that gains most time in all; null if none gains.
    gains: Option<GroupChangeDoc>,
    /// Among these, the group that loses most time in all; null if none does.
    pays: Option<GroupChangeDoc>,
}

/// Returns whether the runs cut so much of the recorded work that they are no comparison with the recorded schedule.
pub fn needs_whole_runtimes(recorded: &RunDoc) -> bool {
    recorded.record.is_some_and(|record| record.is_cut() && !record.overfills())
}

/// Returns the run with the shortest mean wait, among those with all jobs.
pub fn best_run<'a>(runs: &[&'a RunDoc]) -> Option<&'a RunDoc> {
    ranked(runs).first().copied()
}

/// Returns the runs with all jobs by their mean waits. A schedule without some of the jobs is not compared with the others.
fn ranked<'a>(runs: &[&'a RunDoc]) -> Vec<&'a RunDoc> {
    let most = runs.iter().map(|run| run.jobs.measured).max();
    let complete = runs.iter().filter(|run| Some(run.jobs.measured) == most);
    let mut ranked: Vec<(f64, &RunDoc)> =
        complete.filter_map(|run| Some((run.metrics.wait.mean?, *run))).collect();
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    ranked.into_iter().map(|(_, run)| run).collect()
}

impl<'a> Compared<'a> {
    /// Returns the verdict on the mean wait: the best policy, its distance to the one that it is compared with, the
    /// significance, and the groups of jobs that gain and pay. What the log records is a sentence of its own.
    ///
    /// If the best policy is the one to compare with, it is compared with the second best. Returns `None` if there is
    /// nothing to compare with.
    pub fn verdict(&self) -> Option<Verdict> {
        let best = best_run(self.runs)?;
        let pair = self.best_and_base();
        let groups = pair.map(|(best, base)| self.group_changes(best, base)).unwrap_or_default();
        let of_policies = match pair {
            Some((best, base)) => self.of_policies(best, base, &groups),
            None => self.of_equal_policies(),
        };
        let sentences: Vec<String> = of_policies.into_iter().chain(self.of_record(best)).collect();
        let [best, base] = [pair.map(|pair| pair.0), pair.map(|pair| pair.1)];
        (!sentences.is_empty()).then(|| Verdict {
            text: sentences.join(" "),
            best: best.map(|run| run.policy.clone()),
            base: base.map(|run| run.policy.clone()),
            within_noise: pair.and_then(|(best, base)| noise(best, base)),
            groups,
        })
    }

    /// Returns the policies with all jobs, the shortest mean wait first.
    pub(super) fn ranked(&self) -> Vec<&'a RunDoc> {
        ranked(self.runs)
    }

    /// Returns the best policy, and the one with which it is compared. Returns `None` if there are no two, or if they have
    /// equal waits.
    pub(super) fn best_and_base(&self) -> Option<(&'a RunDoc, &'a RunDoc)> {
        self.pair().filter(|(best, base)| best.metrics.wait.mean != base.metrics.wait.mean)
    }

    fn pair(&self) -> Option<(&'a RunDoc, &'a RunDoc)> {
        let ranked = self.ranked();
        let best = *ranked.first()?;
        let against = ranked.iter().find(|run| run.policy == self.against);
        let base = *against.filter(|run| run.policy != best.policy).or(ranked.get(1))?;
        Some((best, base))
    }

    /// Returns the changes of the groups of jobs from the base to the best policy.
    pub(super) fn group_changes(&self, best: &RunDoc, base: &RunDoc) -> GroupChanges {
        GroupChanges::new(self.groups, GroupChangeDoc::all(self.groups, best, base))
    }

    fn of_policies(&self, best: &RunDoc, base: &RunDoc, groups: &GroupChanges) -> Option<String> {
        let (wait, other) = (best.metrics.wait.mean?, base.metrics.wait.mean?);
        let least = least_for_ratio(base);
        let distance = match (Change { value: wait, baseline: other, least }).than() {
            Some(than) => format!("{than} {} ({})", base.policy, time(other)),
            None => format!("against {} under {}", time(other), base.policy),
        };
        let text = format!(
            "{} has the shortest mean wait: {}, {distance}. {}",
            best.policy,
            time(wait),
            significance(noise(best, base))
        );
        let price = groups.sentences(least).into_iter().chain(longest_wait(best, &self.ranked()));
        Some(std::iter::once(text).chain(price).collect::<Vec<_>>().join(" "))
    }

    /// Returns the sentence about policies with equal waits.
    fn of_equal_policies(&self) -> Option<String> {
        let (best, base) = self.pair()?;
        let runs = self.ranked();
        if runs.iter().all(|run| run.metrics.wait.max == Some(0.0)) {
            let policies = if runs.len() == 2 { "either policy" } else { "any of the policies" };
            return Some(format!("No job waits under {policies}."));
        }
        let wait = time(best.metrics.wait.mean?);
        let differ = best.policy != base.policy;
        differ.then(|| format!("{} and {} have the same mean wait: {wait}.", best.policy, base.policy))
    }

    /// Returns the sentences about the recorded schedule.
    fn of_record(&self, best: &RunDoc) -> Option<String> {
        let (recorded, wait) = (self.recorded?, best.metrics.wait.mean?);
        let record = recorded.record?;
        let was = recorded.metrics.wait.mean?;
        if record.overfills() {
            return Some(format!(
                "The recorded schedule is no baseline: its jobs had up to {} processors of {}, and too many for {:.0} % \
                 of the time.",
                count(record.most_procs),
                count(recorded.settings.procs.into()),
                100.0 * record.over_time
            ));
        }
        let change = |value| Change { value, baseline: was, least: least_for_ratio(recorded) };
        let against_record = |value: f64| match change(value).than() {
            Some(than) => format!("{}, {than} in the recorded schedule ({})", time(value), time(was)),
            None => format!("{}, and {} in the recorded schedule", time(value), time(was)),
        };
        if !record.is_cut() {
            let policy = &best.policy;
            return Some(if wait.total_cmp(&was).is_eq() {
                format!("The mean wait under {policy} is that of the recorded schedule ({}).", time(was))
            } else if self.runs.len() > 1 {
                let than = change(wait).ratio().unwrap_or_else(|| time(wait));
                format!("The recorded mean wait is {}; that under {policy} is {than}.", time(was))
            } else {
                format!("The mean wait under {policy} is {}.", against_record(wait))
            });
        }
        let cut = format!(
            "The runs cut {:.0} % of the recorded work, at the estimates of jobs.",
            100.0 * record.cut_work
        );
        let Some((whole, run)) = self.whole.and_then(|run| Some((run.metrics.wait.mean?, run))) else {
            return Some(format!("{cut} So they are no comparison with the recorded schedule."));
        };
        let whole = against_record(whole);
        Some(format!(
            "{cut} With whole runtimes (--overrun extend) the mean wait under {} is {whole}.",
            run.policy
        ))
    }
}

impl GroupChanges {
    fn new(by: &str, groups: Vec<GroupChangeDoc>) -> GroupChanges {
        let most = |sign: f64| {
            let changed = groups.iter().filter(|group| group.within_noise == Some(false));
            let changed = changed.filter(|group| sign * group.total() > 0.0);
            changed.max_by(|a, b| (sign * a.total()).total_cmp(&(sign * b.total()))).cloned()
        };
        GroupChanges { by: by.to_owned(), gains: most(-1.0), pays: most(1.0), groups }
    }

    /// Returns the group that gains most, and the one that pays most.
    pub(super) fn most(&self) -> [Option<&GroupChangeDoc>; 2] {
        [self.gains.as_ref(), self.pays.as_ref()]
    }

    /// Returns how the groups are tested, as a sentence for a picture.
    pub(super) fn test(&self) -> String {
        if self.is_tested() {
            return format!("A group is named if its change is significant ({}).", self.level());
        }
        UNTESTED.to_owned()
    }

    /// Returns the level of the test of the groups, and how many could not be tested.
    fn level(&self) -> String {
        let number = self.groups.len() as u64;
        let untested = self.groups.iter().filter(|group| group.within_noise.is_none()).count() as u64;
        match (number, untested) {
            (1, _) => "95 %".to_owned(),
            (_, 0) => format!("95 % for {} groups together", count(number)),
            _ => format!("95 % for {} groups together, {} of them untested", count(number), count(untested)),
        }
    }

    /// Returns whether chance is known for any group.
    pub(super) fn is_tested(&self) -> bool {
        self.groups.iter().any(|group| group.within_noise.is_some())
    }

    /// Returns the sentences about the groups that gain and pay. A ratio is of times from `least` seconds on.
    fn sentences(&self, least: f64) -> Option<String> {
        if self.by.is_empty() {
            return None;
        }
        if !self.is_tested() {
            return Some(UNTESTED.to_owned());
        }
        let level = self.level();
        let [gains, pays] = self.most();
        Some(match (gains, pays) {
            (None, None) => format!("No group of jobs waits significantly longer or shorter ({level})."),
            (Some(gains), None) => {
                let gains = self.sentence(gains, "gain", least);
                format!("{gains} No group waits significantly longer ({level}).")
            }
            (None, Some(pays)) => {
                let pays = self.sentence(pays, "pay", least);
                format!("{pays} No group waits significantly shorter ({level}).")
            }
            (Some(gains), Some(pays)) => {
                let [gains, pays] =
                    [(gains, "gain"), (pays, "pay")].map(|(group, verb)| self.sentence(group, verb, least));
                format!("{gains} {pays} Both are significant ({level}).")
            }
        })
    }

    /// Returns `The 35 jobs of group >8h 1p pay most: they wait 20h15m instead of 18h18m (11 % longer).`
    fn sentence(&self, group: &GroupChangeDoc, verb: &str, least: f64) -> String {
        let GroupChangeDoc { after, before, .. } = *group;
        let ratio = Change { value: after, baseline: before, least }.ratio();
        let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({ratio})"));
        let (jobs, name) = (count(group.jobs), self.name(group));
        format!(
            "The {jobs} jobs of {name} {verb} most: they wait {} instead of {}{ratio}.",
            time(after),
            time(before)
        )
    }

    /// Returns a group with the word for its grouping, such as `queue gpu`, `time limit 0-2h` or `group >8h 1p`.
    pub(super) fn name(&self, group: &GroupChangeDoc) -> String {
        let property = self.by.split_once(':').map_or(self.by.as_str(), |(property, _)| property);
        let is_of_one = !self.by.contains('+') && property.chars().all(|c| c.is_alphabetic() || c == '-');
        let word = if is_of_one { property.replace('-', " ") } else { "group".to_owned() };
        format!("{word} {}", group.name.as_deref().unwrap_or(&group.group))
    }
}

/// Returns whether the difference of the mean waits may be due to chance; `None` if that is unknown.
pub(super) fn noise(best: &RunDoc, base: &RunDoc) -> Option<bool> {
    DifferenceDoc::new(best, base, Measures::WAIT).within_noise
}

/// Returns the sentence about a difference whose interval contains 0 or not.
pub(super) fn significance(within_noise: Option<bool>) -> &'static str {
    match within_noise {
        Some(false) => "The difference is significant (95 %).",
        Some(true) => "The difference is not significant (95 %).",
        None => {
            "The significance is unknown: consecutive batches of jobs are correlated, or there are too few jobs."
        }
    }
}

/// Returns the sentence about the longest wait, if another run has a much shorter one.
fn longest_wait(best: &RunDoc, runs: &[&RunDoc]) -> Option<String> {
    let longest = |run: &RunDoc| run.metrics.wait.max;
    let others = runs.iter().filter_map(|run| Some((longest(run)?, *run)));
    let (shortest, other) = others.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let (price, least) = (longest(best)?, least_for_ratio(best));
    (price >= least && price > MUCH * shortest).then(|| {
        let (price_time, other, shortest_time) = (time(price), &other.policy, time(shortest));
        let against = if shortest < least {
            format!("against {shortest_time} under {other}")
        } else {
            format!("{:.1} times that of {other} ({shortest_time})", price / shortest)
        };
        format!("The price is the longest wait: {price_time}, {against}.")
    })
}
