//! Changes of several jobs by one request.

use serde::{Deserialize, Serialize};

use super::{JobChange, JobRef, KilledBy, Phase, Problem};

/// The body of a request that changes several jobs at once.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeRequest {
    /// The change, the same for each job.
    pub change: JobChange,
    /// The jobs.
    pub select: Selection,
    /// Move the promises to other jobs that wait for these. Without it, the change of such a job is refused.
    #[serde(default)]
    pub move_promises: bool,
}

/// Unfinished jobs: those of `jobs` that all other fields admit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// The jobs, as texts such as `12`, `10-20`, `1_60` and `1[3-200]`; without any, all unfinished jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub jobs: Vec<JobRef>,
    /// All jobs of the arrays with these numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<i64>,
    /// Only jobs of this user, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Only jobs of this user, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only jobs of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Only jobs in one of these states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateName>,
    /// Only jobs with this name, in which `*` is any text and `?` any character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Selection {
    /// Returns the selection of some jobs.
    pub fn from_jobs(jobs: Vec<JobRef>) -> Selection {
        Selection { jobs, ..Selection::default() }
    }

    /// Returns the selection of one job.
    pub fn of_job(job: i64) -> Selection {
        Selection::from_jobs(vec![JobRef::One(job)])
    }

    /// Returns the selection of all jobs of an array.
    pub fn of_array(array: i64) -> Selection {
        Selection { arrays: vec![array], ..Selection::default() }
    }

    /// Returns whether it has a field. One without any would mean all jobs of all users.
    pub fn has_field(&self) -> bool {
        *self != Selection::default()
    }
}

/// A state of a job, or several, as filters name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Not started, and not held.
    Waiting,
    /// Held until its release.
    Held,
    /// Runs, in its window or on idle resources.
    Running,
    /// On idle resources, before its window.
    Opportunistic,
    /// Suspended or parked.
    Suspended,
    /// Ended in any way.
    Ended,
    /// Ended with exit code 0.
    Done,
    /// Ended otherwise.
    Failed,
    /// Cancelled by a user.
    Cancelled,
}

impl StateName {
    /// Returns whether a job in a phase is in this state.
    pub fn admits(self, phase: &Phase) -> bool {
        let ended = phase.ended().is_some();
        let done = phase.succeeded();
        let cancelled = matches!(phase, Phase::Killed { by: KilledBy::User, .. });
        match self {
            StateName::Waiting => matches!(phase, Phase::Queued),
            StateName::Held => matches!(phase, Phase::Held),
            StateName::Running => matches!(
                phase,
                Phase::Running(_) | Phase::Adopted { .. } | Phase::Opportunistic { parked: false, .. }
            ),
            StateName::Opportunistic => matches!(phase, Phase::Opportunistic { .. }),
            StateName::Suspended => {
                matches!(phase, Phase::Suspended(_) | Phase::Opportunistic { parked: true, .. })
            }
            StateName::Ended => ended,
            StateName::Done => done,
            StateName::Failed => ended && !done && !cancelled,
            StateName::Cancelled => cancelled,
        }
    }
}

/// The outcome of a change of several jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ChangedJobs {
    /// The numbers of the jobs that changed, in order.
    pub jobs: Vec<i64>,
    /// The jobs that did not change, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedJobs>,
    /// The ranges in which some numbers or indexes have no unfinished job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedJobs>,
}

/// Jobs that did not change, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct RefusedJobs {
    /// The jobs, as texts.
    #[schema(value_type = Vec<String>)]
    pub jobs: Vec<JobRef>,
    /// The reason. For several jobs it is that of the first one.
    pub problem: Problem,
}

/// The jobs that a range names and that do not exist, or have ended.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct SkippedJobs {
    /// The range, as a text.
    #[schema(value_type = String)]
    pub range: JobRef,
    /// The number of these jobs.
    pub count: u64,
}

/// Returns whether a text has the form of a pattern, in which `*` is any text and `?` any character.
///
/// ```
/// use miserly_api::model::matches_pattern;
///
/// assert!(matches_pattern("train*", "train-12") && !matches_pattern("?", "ab"));
/// ```
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Where to go on after the last *, if the text does not fit.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((last, start)) = star else { return false };
                star = Some((last, start + 1));
                (at, from) = (last + 1, start + 1);
            }
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, fits) in [
            ("abab", true),
            ("ab*", true),
            ("*b", true),
            ("a*a?", true),
            ("*", true),
            ("a**b", true),
            ("????", true),
            ("", false),
            ("ab", false),
            ("?*????", false),
            ("*c*", false),
            ("b*", false),
        ] {
            assert_eq!(matches_pattern(pattern, "abab"), fits, "{pattern}");
        }
        assert!(matches_pattern("", "") && matches_pattern("*", ""));
    }
}
