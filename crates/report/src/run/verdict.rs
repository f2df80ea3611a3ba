//! The verdict of a comparison, in words.

use miserly_run::{DifferenceDoc, GroupDoc, RunDoc};
use miserly_units::{duration_rounded, span_of_seconds};

use crate::numbers::count;

/// The position of the wait in `Measures::all`.
const WAIT: usize = 0;

/// The grouping that shows who pays.
const CATEGORY: &str = "category";

/// A group with a smaller share of the jobs is too small for a verdict.
const LEAST_SHARE: f64 = 0.01;

/// Least ratio of two longest waits that the verdict names.
const MUCH: f64 = 1.5;

/// Returns the verdict on the mean wait: the best policy, its distance to the baseline, the significance, and the
/// group of jobs that waits longer.
///
/// The baseline is the recorded schedule, else `easy`, else the first run. If the baseline is the best, the verdict
/// compares it with the second best. Returns `None` with fewer than two runs, or without a difference.
pub fn verdict(recorded: Option<&RunDoc>, runs: &[&RunDoc]) -> Option<String> {
    // A schedule without some of the jobs is not compared with the others.
    let most = runs.iter().map(|run| run.jobs.measured).max()?;
    let complete = runs.iter().filter(|run| run.jobs.measured == most);
    let mut ranked: Vec<(f64, &RunDoc)> =
        complete.clone().filter_map(|run| Some((mean_wait(run)?, *run))).collect();
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (best_wait, best) = *ranked.first()?;
    let easy = || complete.clone().copied().find(|run| run.is_baseline());
    let baseline = recorded.or_else(easy).or(complete.clone().next().copied())?;
    let baseline = if baseline.policy == best.policy { ranked.get(1)?.1 } else { baseline };
    let other_wait = mean_wait(baseline)?;
    if best_wait.total_cmp(&other_wait).is_eq() {
        return None;
    }
    let change = change(best_wait, other_wait);
    let name = baseline_name(recorded, baseline);
    let sure = significance(best, baseline);
    let (wait, other) = (time(best_wait), time(other_wait));
    let mut text = if runs.len() > 1 {
        format!("{} has the shortest mean wait: {wait}, {change} than {name} ({other}). {sure}", best.policy)
    } else {
        format!("The mean wait under {} is {wait}, {change} than in {name} ({other}). {sure}", best.policy)
    };
    let ranked: Vec<&RunDoc> = ranked.iter().map(|(_, run)| *run).collect();
    for sentence in who_pays(best, baseline).into_iter().chain(longest_wait(best, &ranked)) {
        text.push(' ');
        text.push_str(&sentence);
    }
    Some(text)
}

fn mean_wait(run: &RunDoc) -> Option<f64> {
    run.metrics.wait.mean
}

fn baseline_name(recorded: Option<&RunDoc>, baseline: &RunDoc) -> String {
    match recorded {
        Some(recorded) if std::ptr::eq(recorded, baseline) => "the recorded schedule".to_owned(),
        _ => baseline.policy.clone(),
    }
}

fn time(seconds: f64) -> String {
    duration_rounded(span_of_seconds(seconds))
}

/// Returns `35 % shorter`, or `12 % longer`. A change to more than the double is a factor.
fn change(value: f64, baseline: f64) -> String {
    let word = if value < baseline { "shorter" } else { "longer" };
    if baseline <= 0.0 || value > 2.0 * baseline {
        return if baseline > 0.0 {
            format!("{:.1} times as long", value / baseline)
        } else {
            word.to_owned()
        };
    }
    let percent = 100.0 * (1.0 - value / baseline).abs();
    if percent < 1.0 { format!("{percent:.1} % {word}") } else { format!("{percent:.0} % {word}") }
}

fn significance(best: &RunDoc, baseline: &RunDoc) -> &'static str {
    match DifferenceDoc::new(best, baseline, WAIT).within_noise {
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

/// Returns the sentence about the group that loses the most time in all.
fn who_pays(best: &RunDoc, baseline: &RunDoc) -> Option<String> {
    let (after, before) = (best.by.get(CATEGORY)?, baseline.by.get(CATEGORY)?);
    let jobs: u64 = after.iter().map(|group| group.jobs).sum();
    let lost = |(after, before): &(&GroupDoc, &GroupDoc)| {
        Some((after.metrics.wait.mean? - before.metrics.wait.mean?) * after.jobs as f64)
    };
    let groups = after.iter().zip(before).filter(|(after, _)| after.jobs as f64 >= LEAST_SHARE * jobs as f64);
    let (lost, (after, before)) =
        groups.filter_map(|pair| Some((lost(&pair)?, pair))).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    if lost <= 0.0 {
        return Some("No category of jobs waits longer.".to_owned());
    }
    let (waits, waited) = (after.metrics.wait.mean?, before.metrics.wait.mean?);
    Some(format!(
        "The {} jobs of category {} wait {}: {} instead of {}.",
        count(after.jobs),
        after.group,
        change(waits, waited),
        time(waits),
        time(waited)
    ))
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
    }
}
