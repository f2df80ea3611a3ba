//! The verdict of a comparison, in words.

use miserly_run::{DifferenceDoc, GroupDoc, RunDoc};
use miserly_sim::Measures;
use miserly_units::{duration_rounded, span_of_seconds};

use crate::numbers::count;

/// A group with a smaller share of the jobs, and with fewer than [`LEAST_JOBS`], is too small for a verdict.
const LEAST_SHARE: f64 = 0.01;

/// See [`LEAST_SHARE`]: few wide jobs may pay for all others.
const LEAST_JOBS: f64 = 30.0;

/// Least ratio of two longest waits that the verdict names.
const MUCH: f64 = 1.5;

/// The schedules of a log that a verdict compares.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// One run for each policy.
    pub runs: &'a [&'a RunDoc],
    /// The policy with which the best one is compared.
    pub against: &'a str,
    /// The grouping of the jobs that shows who pays, as in `--by`.
    pub groups: &'a str,
    /// The recorded schedule, if the log has one.
    pub recorded: Option<&'a RunDoc>,
    /// The run of the best policy in which no job is cut at its estimate, if [`needs_whole_runtimes`].
    pub whole: Option<&'a RunDoc>,
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
    /// significance, and the group of jobs that waits longer. What the log records is a sentence of its own.
    ///
    /// If the best policy is the one to compare with, it is compared with the second best. Returns `None` if there is
    /// nothing to compare with.
    pub fn verdict(&self) -> Option<String> {
        let best = best_run(self.runs)?;
        let sentences = self.of_policies().into_iter().chain(self.of_record(best));
        let sentences: Vec<String> = sentences.collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Returns the policies with all jobs, the shortest mean wait first.
    pub(super) fn ranked(&self) -> Vec<&'a RunDoc> {
        ranked(self.runs)
    }

    /// Returns the best policy, and the one with which it is compared. Returns `None` if there are no two, or if they have
    /// equal waits.
    pub(super) fn best_and_base(&self) -> Option<(&'a RunDoc, &'a RunDoc)> {
        let ranked = self.ranked();
        let best = *ranked.first()?;
        let against = ranked.iter().find(|run| run.policy == self.against);
        let base = *against.filter(|run| run.policy != best.policy).or(ranked.get(1))?;
        (best.metrics.wait.mean != base.metrics.wait.mean).then_some((best, base))
    }

    fn of_policies(&self) -> Option<String> {
        let (best, base) = self.best_and_base()?;
        let (wait, other) = (best.metrics.wait.mean?, base.metrics.wait.mean?);
        let text = format!(
            "{} has the shortest mean wait: {}, {} {} ({}). {}",
            best.policy,
            time(wait),
            than(wait, other),
            base.policy,
            time(other),
            significance(noise(best, base))
        );
        let price = self.who_pays(best, base).into_iter().chain(longest_wait(best, &self.ranked()));
        Some(std::iter::once(text).chain(price).collect::<Vec<_>>().join(" "))
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
        let recorded_wait = format!("the recorded schedule ({})", time(was));
        if !record.is_cut() {
            let policy = &best.policy;
            return Some(if wait.total_cmp(&was).is_eq() {
                format!("The mean wait under {policy} is that of {recorded_wait}.")
            } else if self.runs.len() > 1 {
                format!(
                    "The recorded mean wait is {}; that under {policy} is {}.",
                    time(was),
                    change(wait, was)
                )
            } else {
                let wait_text = time(wait);
                format!(
                    "The mean wait under {policy} is {wait_text}, {} {recorded_wait}.",
                    than_in(wait, was)
                )
            });
        }
        let cut = format!(
            "The runs cut {:.0} % of the recorded work, at the estimates of jobs.",
            100.0 * record.cut_work
        );
        let Some((whole, run)) = self.whole.and_then(|run| Some((run.metrics.wait.mean?, run))) else {
            return Some(format!("{cut} So they are no comparison with the recorded schedule."));
        };
        Some(format!(
            "{cut} With whole runtimes (--overrun extend) the mean wait under {} is {}, {} {recorded_wait}.",
            run.policy,
            time(whole),
            than_in(whole, was)
        ))
    }

    /// Returns the group, after and before, that loses the most time in all; with a negative sign, gains. Returns `None` if none
    /// with enough jobs does.
    pub(super) fn most_changed<'r>(
        &self,
        best: &'r RunDoc,
        base: &'r RunDoc,
        sign: f64,
    ) -> Option<[&'r GroupDoc; 2]> {
        let (after, before) = (best.by.get(self.groups)?, base.by.get(self.groups)?);
        let jobs: u64 = after.iter().map(|group| group.jobs).sum();
        let change = |[after, before]: [&GroupDoc; 2]| {
            Some(sign * (after.metrics.wait.mean? - before.metrics.wait.mean?) * after.jobs as f64)
        };
        let pairs = after.iter().zip(before).map(|(after, before)| [after, before]);
        let least = (LEAST_SHARE * jobs as f64).min(LEAST_JOBS);
        let enough = pairs.filter(|[after, _]| after.jobs as f64 >= least);
        let changes = enough.filter_map(|pair| Some((change(pair)?, pair)));
        let most = changes.max_by(|(a, _), (b, _)| a.total_cmp(b));
        most.filter(|(change, _)| *change > 0.0).map(|(_, pair)| pair)
    }

    /// Returns the sentence about the group that loses the most time in all.
    fn who_pays(&self, best: &RunDoc, base: &RunDoc) -> Option<String> {
        best.by.get(self.groups).and(base.by.get(self.groups))?;
        let Some([after, before]) = self.most_changed(best, base, 1.0) else {
            return Some(format!("No {}.", self.nobody(best, "longer")));
        };
        let (waits, waited) = (after.metrics.wait.mean?, before.metrics.wait.mean?);
        let change = change(waits, waited);
        Some(format!(
            "The {} of {} {} wait{} {change}: {} instead of {}.",
            if after.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", count(after.jobs)) },
            self.group(),
            after.group,
            if after.jobs == 1 { "s" } else { "" },
            time(waits),
            time(waited)
        ))
    }

    /// Returns `group of 30 jobs or more waits longer`, for a sentence that none does.
    pub(super) fn nobody(&self, best: &RunDoc, how: &str) -> String {
        let groups = best.by.get(self.groups).map_or(&[][..], Vec::as_slice);
        let jobs: u64 = groups.iter().map(|group| group.jobs).sum();
        let many = LEAST_SHARE * jobs as f64 > LEAST_JOBS;
        let enough = if many { "of 30 jobs or more" } else { "with 1 % of the jobs or more" };
        format!("{} {enough} waits {how}", self.group())
    }

    /// Returns the word for a group of jobs.
    fn group(&self) -> &str {
        let is_word = self.groups.chars().all(char::is_alphabetic);
        if is_word { self.groups } else { "group" }
    }
}

pub(super) fn time(seconds: f64) -> String {
    duration_rounded(span_of_seconds(seconds))
}

/// Returns `35 % shorter`, or `12 % longer`. A change to more than the double is a factor.
fn change(value: f64, baseline: f64) -> String {
    let word = if value < baseline { "shorter" } else { "longer" };
    if baseline <= 0.0 {
        return word.to_owned();
    }
    if value > 2.0 * baseline {
        return format!("{:.1} times as long", value / baseline);
    }
    let percent = 100.0 * (1.0 - value / baseline).abs();
    if percent < 1.0 { format!("{percent:.1} % {word}") } else { format!("{percent:.0} % {word}") }
}

/// Returns `35 % shorter than`, or `3.4 times as long as`.
pub(super) fn than(value: f64, baseline: f64) -> String {
    let change = change(value, baseline);
    let word = if change.ends_with("as long") { "as" } else { "than" };
    format!("{change} {word}")
}

/// Returns `35 % shorter than in`, or `3.4 times as long as in`.
fn than_in(value: f64, baseline: f64) -> String {
    than(value, baseline) + " in"
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
    let price = longest(best)?;
    (shortest > 0.0 && price > MUCH * shortest).then(|| {
        format!(
            "The price is the longest wait: {}, {:.1} times that of {} ({}).",
            time(price),
            price / shortest,
            other.policy,
            time(shortest)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_in_percent_or_a_factor() {
        let cases = [
            (65.0, 100.0, "35 % shorter"),
            (112.0, 100.0, "12 % longer"),
            (99.5, 100.0, "0.5 % shorter"),
            (300.0, 100.0, "3.0 times as long"),
            (5.0, 0.0, "longer"),
        ];
        for (value, baseline, expected) in cases {
            assert_eq!(change(value, baseline), expected);
        }
        assert_eq!(
            (than(300.0, 100.0), than_in(65.0, 100.0)),
            ("3.0 times as long as".into(), "35 % shorter than in".into())
        );
    }
}
