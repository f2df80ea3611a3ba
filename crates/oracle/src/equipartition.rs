//! Spatial equipartitioning of one host without memory, at every event, with a separate event loop.

use miserly_core::{Span, Time};

use crate::NaiveJob;
use crate::order::arrival;

/// A job on the host.
struct Running {
    position: usize,
    start: Time,
    /// The remaining processor-ticks.
    left: u128,
    procs: u64,
}

/// Returns the end of every job, in the order of the slice, under spatial equipartitioning (Chiang
/// and Vernon §2.5).
///
/// The machine is one host of `procs` processors without other kinds, with at most one job per
/// processor. It is repartitioned at every event. A job that has run for `long_after` gets its full
/// request, as long as each other job has a processor.
///
/// # Panics
/// If a job never ends because it has no processors.
pub fn equipartition(procs: u64, jobs: &[NaiveJob], long_after: Option<Span>) -> Vec<Time> {
    let mut future: Vec<usize> = (0..jobs.len()).collect();
    future.sort_by_key(|&position| arrival(position, jobs));
    let mut running: Vec<Running> = Vec::new();
    let mut ends = vec![None; jobs.len()];
    let mut now = Time::ZERO;
    while ends.contains(&None) {
        running.retain(|job| {
            ends[job.position] = ends[job.position].or((job.left == 0).then_some(now));
            job.left > 0
        });
        while future.first().is_some_and(|&position| jobs[position].request.submit <= now)
            && (running.len() as u64) < procs
        {
            let position = future.remove(0);
            let left = jobs[position].runtime.0.ticks().unsigned_abs();
            let left = u128::from(left) * u128::from(jobs[position].request.procs());
            running.push(Running { position, start: now, left, procs: 0 });
        }
        hand_out(procs, &mut running, jobs, |job| long_after.is_some_and(|after| now - job.start >= after));
        now = pass_time(now, &mut running, &future, jobs, long_after);
    }
    ends.into_iter().map(|end| end.expect("every job ends")).collect()
}

/// Distributes the processors: first one for each job, then one after the other.
///
/// Each goes to the job with the fewest processors among those below their request. Jobs that must
/// get their full request come first.
fn hand_out(procs: u64, running: &mut [Running], jobs: &[NaiveJob], all: impl Fn(&Running) -> bool) {
    for job in running.iter_mut() {
        job.procs = 1;
    }
    for _ in running.len() as u64..procs {
        let wants_more =
            running.iter_mut().filter(|job| job.procs < jobs[job.position].request.procs().get());
        if let Some(next) = wants_more.min_by_key(|job| (!all(job), job.procs)) {
            next.procs += 1;
        }
    }
}

/// Advances to the next instant with an event, and does the work until then.
fn pass_time(
    now: Time,
    running: &mut [Running],
    future: &[usize],
    jobs: &[NaiveJob],
    long_after: Option<Span>,
) -> Time {
    let end = |job: &Running| {
        let ticks = job.left.div_ceil(u128::from(job.procs));
        now + Span::from_ticks(i64::try_from(ticks).expect("short tests"))
    };
    let ends = running.iter().map(end);
    let long = running.iter().filter_map(|job| Some(job.start + long_after?)).filter(|&at| at > now);
    let submits = future.iter().map(|&position| jobs[position].request.submit).filter(|&at| at > now);
    let Some(next) = ends.chain(long).chain(submits).min() else { return now };
    for job in running {
        let done = u128::from((next - now).ticks().unsigned_abs()) * u128::from(job.procs);
        job.left = job.left.saturating_sub(done);
    }
    next
}
