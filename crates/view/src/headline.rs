//! The sentences above a chart: what a user asks first.

use serde::Serialize;

use crate::{Account, Facts, Job};
use miserly_scene::{DAY, counted};

/// A part of the sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Phrase {
    /// The text.
    pub text: String,
    /// The list with the jobs that it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<PhraseList>,
}

/// A list of jobs that a phrase counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PhraseList {
    /// The jobs of the user.
    Own,
    /// The ended jobs.
    Ended,
    /// The jobs whose promises were kept.
    Kept,
    /// The promises that were late or lost.
    Missed,
    /// The jobs of the user that failed in the last day.
    Failed,
}

/// Returns the sentences on the jobs of the user and on the promises so far. O(n) for n jobs.
pub fn headline(facts: &Facts) -> Vec<Phrase> {
    let has_own = facts.uid.is_some() && facts.live;
    let mut phrases = if has_own { own(facts) } else { all(facts) };
    phrases.extend(promises(&facts.account));
    phrases.extend(has_own.then(|| failed(facts)).into_iter().flatten());
    phrases
}

fn plain(text: impl Into<String>) -> Phrase {
    Phrase { text: text.into(), list: None }
}

fn linked(text: impl Into<String>, list: PhraseList) -> Phrase {
    Phrase { text: text.into(), list: Some(list) }
}

fn own(facts: &Facts) -> Vec<Phrase> {
    let own: Vec<&Job> = facts.jobs.iter().filter(|job| facts.is_own(job)).map(|job| &**job).collect();
    let running = own.iter().filter(|job| job.state.holds()).count();
    let waiting: Vec<&Job> = own.iter().filter(|job| job.state.is_before_start()).copied().collect();
    if running + waiting.len() == 0 {
        return vec![plain("None of your jobs waits or runs. ")];
    }
    let mut parts = vec![];
    if running > 0 {
        parts.push(format!("{running} {}", if running == 1 { "runs" } else { "run" }));
    }
    if !waiting.is_empty() {
        parts.push(next_start(facts, &waiting));
    }
    let jobs = format!("Your {}", counted((running + waiting.len()) as u64, "job"));
    vec![linked(jobs, PhraseList::Own), plain(format!(": {}. ", parts.join(", ")))]
}

/// Returns the first start of these jobs in words: the promised one before the planned one before the likely one.
fn next_start(facts: &Facts, waiting: &[&Job]) -> String {
    let next = waiting.iter().filter_map(|job| Some((job.window()?, *job))).min_by_key(|(start, _)| *start);
    let likely = |job: &Job| job.likely.map(|[median, ..]| facts.clock.instant(median, facts.now));
    match next {
        Some((start, job)) if job.promised.is_some() => {
            let likely = likely(job).map_or_else(String::new, |median| format!(", likely {median}"));
            format!("the next starts by {}{likely}", facts.clock.latest(start, facts.now))
        }
        Some((start, _)) => {
            format!("the next is planned for {}, without a promise", facts.clock.instant(start, facts.now))
        }
        None => {
            let first = waiting.iter().filter(|job| job.likely.is_some()).min_by_key(|job| job.likely);
            first.and_then(|job| likely(job)).map_or_else(
                || {
                    format!(
                        "{} without a known start",
                        if waiting.len() == 1 { "one waits" } else { "the others wait" }
                    )
                },
                |median| format!("the next likely starts at {median}, without a promise"),
            )
        }
    }
}

fn all(facts: &Facts) -> Vec<Phrase> {
    let runs = facts.is_of_runs() && facts.pools.len() > 1;
    let names: Vec<&str> = facts.pools.iter().map(|pool| &*pool.name).collect();
    let jobs = if runs { facts.jobs.len() / facts.pools.len() } else { facts.jobs.len() };
    let of = if runs { format!(" under each of {}. ", names.join(", ")) } else { ". ".to_owned() };
    vec![linked(counted(jobs as u64, "job"), PhraseList::Ended), plain(of)]
}

/// Returns whether a job failed by itself in the last day.
pub(crate) fn has_failed_lately(facts: &Facts, job: &Job) -> bool {
    let since = facts.now.saturating_sub(DAY);
    job.has_failed_by_itself() && job.end.is_some_and(|end| end >= since)
}

/// Returns how many jobs of the user failed in the last day.
fn failed(facts: &Facts) -> Vec<Phrase> {
    let is_counted = |job: &Job| facts.is_own(job) && has_failed_lately(facts, job);
    let failed = facts.jobs.iter().filter(|job| is_counted(job)).count() as u64;
    match failed {
        0 => vec![],
        _ => vec![
            plain(" "),
            linked(format!("{} of yours", counted(failed, "job")), PhraseList::Failed),
            plain(" failed in the last 24 hours."),
        ],
    }
}

/// Returns what became of the promises. Those that are not due yet are not missing.
fn promises(account: &Account) -> Vec<Phrase> {
    let Account { promises, kept, late, lost, at_risk, .. } = *account;
    let due = kept + late + lost;
    let mut phrases = match due {
        0 if promises == 0 => return vec![],
        0 => vec![plain("No promise is due yet.")],
        1 if kept == 1 => {
            vec![plain("The "), linked("one promise", PhraseList::Kept), plain(" that was due was kept.")]
        }
        _ if kept == due => vec![
            plain("All "),
            linked(counted(due, "promise"), PhraseList::Kept),
            plain(" that were due were kept."),
        ],
        _ => vec![
            linked(kept.to_string(), PhraseList::Kept),
            plain(format!(" of {} that were due were kept, ", counted(due, "promise"))),
            linked(format!("{} not", due - kept), PhraseList::Missed),
            plain("."),
        ],
    };
    if at_risk > 0 {
        phrases.push(plain(format!(
            " {} at risk.",
            if at_risk == 1 { "1 is".to_owned() } else { format!("{at_risk} are") }
        )));
    }
    phrases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;
    use miserly_scene::MINUTE;

    #[track_caller]
    fn check(jobs: &[Job], account: Account, expect: &str) {
        let mut facts = Facts::of_jobs(8, jobs.iter().map(|job| Job { uid: Some(7), ..job.clone() }));
        facts.uid = Some(7);
        facts.account = account;
        let text: String = headline(&facts).into_iter().map(|phrase| phrase.text).collect();
        assert_eq!(text, expect);
    }

    #[test]
    fn a_user_reads_the_next_start_and_what_became_of_promises() {
        let promised = Job { promised: Some(20 * MINUTE), likely: Some([MINUTE; 3]), ..Job::default() };
        let later = Job { promised: Some(40 * MINUTE), ..Job::default() };
        let runs = Job { state: State::Running, ..Job::default() };
        let account =
            |kept, late, at_risk| Account { promises: 9, kept, late, at_risk, ..Account::default() };
        let none = Account::default();
        check(&[], none.clone(), "None of your jobs waits or runs. ");
        check(
            &[later.clone(), promised, runs],
            account(206, 0, 0),
            "Your 3 jobs: 1 runs, the next starts by 00:20, likely 00:01. All 206 promises that were due were kept.",
        );
        check(
            &[later],
            account(0, 0, 1),
            "Your 1 job: the next starts by 00:40. No promise is due yet. 1 is at risk.",
        );
        let ended =
            |word: &str| Job { state: State::Ended, end: Some(0), word: word.to_owned(), ..Job::default() };
        check(
            &[
                ended("done"),
                ended("out of time"),
                ended("cancelled"),
                ended("given up"),
                ended("shut down"),
                Job { unmet: true, ..ended("not run") },
                Job { end: Some(-DAY - 1), ..ended("done, failed") },
            ],
            account(0, 0, 0),
            "None of your jobs waits or runs. No promise is due yet. 1 job of yours failed in the last 24 hours.",
        );
        let planned = Job { planned: Some(MINUTE), ..Job::default() };
        check(
            &[planned],
            account(1, 0, 0),
            "Your 1 job: the next is planned for 00:01, without a promise. The one promise that was due was kept.",
        );
        check(
            &[Job::default()],
            account(203, 3, 0),
            "Your 1 job: one waits without a known start. 203 of 206 promises that were due were kept, 3 not.",
        );
    }
}
