//! The unfinished jobs for which a job waits, and those that wait for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Cause, Facts, Job, State};

/// The most steps from the job in each direction.
const STEPS_MOST: i32 = 3;

/// The most jobs of a step that are given one by one.
const JOBS_MOST: usize = 6;

/// The jobs next to one, in a direction.
type Neighbours<'a> = &'a dyn Fn(i64) -> Vec<i64>;

/// A part of the graph of dependencies around a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dependencies {
    /// The jobs, step by step.
    pub nodes: Vec<DependencyNode>,
    /// The edges: a job, and one that waits for its end.
    pub edges: Vec<(i64, i64)>,
    /// The number of the jobs of each step that are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<i32, usize>,
}

/// A job in the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DependencyNode {
    /// The number.
    pub number: i64,
    /// The number, with the index in an array.
    pub label: String,
    /// The name.
    pub name: String,
    /// The state.
    pub state: State,
    /// A word for the state.
    pub word: String,
    /// The step: negative before the job, 0 for itself, and positive after it.
    pub step: i32,
}

/// Returns the graph around a job; `None` if it has no dependency. O(n log n) for n jobs.
pub fn dependencies(facts: &Facts, number: i64) -> Option<Dependencies> {
    let by_number: BTreeMap<i64, &Job> = facts.jobs.iter().map(|job| (job.number, &**job)).collect();
    by_number.get(&number)?;
    let mut next: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (before, after) in facts.jobs.iter().flat_map(|job| before(job).map(|other| (other, job.number))) {
        next.entry(before).or_default().push(after);
    }
    let previous = |number: i64| by_number.get(&number).into_iter().flat_map(|job| before(job)).collect();
    let following = |number: i64| next.get(&number).cloned().unwrap_or_default();
    let mut steps = BTreeMap::from([(0, BTreeSet::from([number]))]);
    let mut left_out = BTreeMap::new();
    let mut seen = BTreeSet::from([number]);
    let directions: [(i32, Neighbours<'_>); 2] = [(-1, &previous), (1, &following)];
    for (direction, neighbours) in directions {
        for step in 1..=STEPS_MOST {
            let from = steps.get(&(direction * (step - 1))).cloned().unwrap_or_default();
            let found: BTreeSet<i64> = from.into_iter().flat_map(neighbours).collect();
            let mut new: BTreeSet<i64> = found.into_iter().filter(|number| !seen.contains(number)).collect();
            let rest = new.iter().nth(JOBS_MOST).map(|first| new.clone().split_off(first));
            if let Some(rest) = rest {
                left_out.insert(direction * step, rest.len());
                new.retain(|number| !rest.contains(number));
            }
            seen.extend(&new);
            steps.insert(direction * step, new);
        }
    }
    if seen.len() == 1 {
        return None;
    }
    let node = |step: i32, number: i64| {
        let job = by_number.get(&number)?;
        let Job { label, name, state, word, .. } = (*job).clone();
        Some(DependencyNode { number, label, name, state, word, step })
    };
    let nodes =
        steps.iter().flat_map(|(step, numbers)| numbers.iter().filter_map(|number| node(*step, *number)));
    let edges = seen.iter().flat_map(|one| following(*one).into_iter().map(|other| (*one, other)));
    Some(Dependencies {
        nodes: nodes.collect(),
        edges: edges.filter(|(_, other)| seen.contains(other)).collect(),
        left_out,
    })
}

/// Returns the unfinished jobs that have to end before a job.
fn before(job: &Job) -> impl Iterator<Item = i64> {
    job.causes.iter().flat_map(|cause| match cause {
        Cause::After { jobs } => jobs.clone(),
        _ => vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: i64, after: &[i64]) -> Job {
        let causes = if after.is_empty() { vec![] } else { vec![Cause::After { jobs: after.to_vec() }] };
        Job { number, label: number.to_string(), causes, ..Job::default() }
    }

    #[track_caller]
    fn check(jobs: &[(i64, &[i64])], of: i64, steps: &[(i64, i32)], edges: &[(i64, i64)]) {
        let found =
            dependencies(&Facts::of_jobs(8, jobs.iter().map(|(number, after)| job(*number, after))), of);
        let found = found.unwrap();
        let nodes: Vec<(i64, i32)> = found.nodes.iter().map(|node| (node.number, node.step)).collect();
        assert_eq!((&*nodes, &*found.edges), (steps, edges));
    }

    #[test]
    fn a_job_has_those_before_and_behind_it() {
        let chain: [(i64, &[i64]); 4] = [(1, &[]), (2, &[1]), (3, &[1, 2]), (4, &[3])];
        check(&chain, 2, &[(1, -1), (2, 0), (3, 1), (4, 2)], &[(1, 2), (1, 3), (2, 3), (3, 4)]);
        let alone = Facts::of_jobs(8, [job(1, &[]), job(2, &[])]);
        assert_eq!((dependencies(&alone, 1), dependencies(&alone, 9)), (None, None));
    }

    #[test]
    fn a_circle_and_a_crowd_have_an_end() {
        check(&[(1, &[2]), (2, &[1])], 1, &[(2, -1), (1, 0)], &[(1, 2), (2, 1)]);
        let crowd = (2..100).map(|number| job(number, &[1])).chain([job(1, &[])]);
        let found = dependencies(&Facts::of_jobs(8, crowd), 1).unwrap();
        assert_eq!((found.nodes.len(), found.left_out), (1 + JOBS_MOST, [(1, 98 - JOBS_MOST)].into()));
    }
}
