//! The likely starts that the chart draws.

use std::borrow::Cow;

use miserly_view::{Facts, Job};

/// Returns the facts for the chart.
///
/// Of the jobs that have a likely start only, it keeps the first ones that fit side by side into their pool. Likely starts overlap:
/// a long queue of them would add a row for each job, and hide the other jobs.
pub(super) fn for_chart(facts: &Facts) -> Cow<'_, Facts> {
    let mut likely: Vec<(i64, usize)> = facts.jobs.iter().enumerate().filter_map(likely_only).collect();
    likely.sort_unstable();
    let mut free: Vec<u64> = facts.pools.iter().map(|pool| pool.cpus).collect();
    let mut left_out = vec![];
    for (_, place) in likely {
        let job = &facts.jobs[place];
        match free.get_mut(job.pool) {
            Some(free) if *free >= job.procs => *free -= job.procs,
            Some(free) => {
                // Later jobs do not pass this one.
                *free = 0;
                left_out.push(place);
            }
            None => {}
        }
    }
    if left_out.is_empty() {
        return Cow::Borrowed(facts);
    }
    let mut facts = facts.clone();
    for place in left_out {
        facts.jobs[place].likely = None;
    }
    Cow::Owned(facts)
}

/// Returns the likely start and the place of a job that waits without a promised or planned one.
fn likely_only((place, job): (usize, &Job)) -> Option<(i64, usize)> {
    let without = job.state.is_before_start() && job.promised.is_none() && job.planned.is_none();
    job.likely.filter(|_| without).map(|[median, ..]| (median, place))
}
