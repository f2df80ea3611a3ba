//! The part of the time that a chart shows first.

use serde::Serialize;

use crate::clock::{DAY, HOUR, MINUTE};
use crate::{Bars, Job, Schedule};

/// The bars that a first view of a run has, about.
const BARS: i64 = 200;

/// The most jobs of other users whose starts a first view of a daemon includes.
const JOBS: usize = 20;

/// The least past of a first view of a daemon.
const PAST_LEAST: i64 = 5 * MINUTE;

/// The least number of parts of a run whose use is compared.
const PARTS_LEAST: i64 = 8;

/// The most instants at which the use of a machine is compared.
const INSTANTS_MOST: i64 = 20_000;

/// The part of the time that is shown first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Opening {
    /// The begin.
    pub from: i64,
    /// The end.
    pub to: i64,
    /// The instant at which the state is shown; absent for the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

impl Opening {
    /// Returns the first view: of a run its busiest hour, of a daemon from one hour back, or from the first job on, to the last promised start of the user's own jobs, or of
    /// the first twenty. O(n log n) for n jobs.
    pub fn new(schedule: &Schedule<'_>, bars: &Bars) -> Opening {
        if schedule.live { ahead(schedule, bars) } else { busiest(schedule, bars) }
    }
}

fn ahead(schedule: &Schedule<'_>, bars: &Bars) -> Opening {
    let start = |job: &Job| job.window().filter(|_| job.state.is_before_start());
    let own = schedule.jobs.iter().filter(|job| schedule.is_own(job)).filter_map(|job| start(job)).max();
    let first = || {
        let mut starts: Vec<i64> = schedule.jobs.iter().filter_map(|job| start(job)).collect();
        starts.sort_unstable();
        starts.get(JOBS - 1).or(starts.last()).copied()
    };
    let last = own.or_else(first).unwrap_or(schedule.now).saturating_sub(schedule.now);
    // A job that starts at the right edge is seen, too.
    let to = (last + last / 10).clamp(30 * MINUTE, DAY);
    // Before the first job there is nothing to be seen.
    let known = bars.range.map_or(0, |(first, _)| schedule.now.saturating_sub(first));
    let back = known.saturating_add(known / 10).clamp(PAST_LEAST, HOUR);
    Opening { from: schedule.now.saturating_sub(back), to: schedule.now.saturating_add(to), at: None }
}

fn busiest(schedule: &Schedule<'_>, bars: &Bars) -> Opening {
    let Some((first, last)) = bars.range else {
        return Opening { from: schedule.now - HOUR, to: schedule.now, at: None };
    };
    let length = last.saturating_sub(first).max(1);
    // Of a run of some hours a part of an hour, of a very long one more.
    let step = HOUR.min(length / PARTS_LEAST).max(length / INSTANTS_MOST).max(1);
    let busy = |hour: i64| {
        let from = first.saturating_add(hour.saturating_mul(step));
        let means = bars.curves.iter().map(|curves| curves.means(from, from.saturating_add(step)));
        means.fold([0i64; 2], |sum, mean| [0, 1].map(|which| sum[which].saturating_add(mean[which])))
    };
    // Of hours with as many processors held the one with the longest queue, of these the first one.
    let hour = (0..=length / step).max_by_key(|hour| (busy(*hour), std::cmp::Reverse(*hour))).unwrap_or(0);
    let at = first.saturating_add(hour * step + step / 2).min(last);
    let jobs = i64::try_from(schedule.jobs.len()).unwrap_or(i64::MAX).max(1)
        / i64::try_from(schedule.pools.len().max(1)).unwrap_or(1);
    let span = (i128::from(length) * i128::from(BARS) / i128::from(jobs.max(1)))
        .clamp(i128::from(10 * MINUTE), i128::from(length).max(i128::from(10 * MINUTE)));
    let span = i64::try_from(span).unwrap_or(DAY);
    let margin = span / 20;
    let span = span.saturating_add(2 * margin);
    // The first and the last part of a run have the margin beside their jobs, and no more.
    let from = at.saturating_sub(span / 2).min(last.saturating_add(margin).saturating_sub(span));
    let from = from.max(first.saturating_sub(margin));
    let to = from.saturating_add(span);
    Opening { from, to, at: Some(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn a_run_opens_at_its_busiest_hour() {
        let job = |start: i64, procs| Job {
            procs,
            submitted: start * HOUR,
            state: State::Ended,
            start: Some(start * HOUR),
            end: Some((start + 1) * HOUR),
            ..Job::default()
        };
        let schedule = Schedule {
            now: 100 * HOUR,
            live: false,
            ..Schedule::of_jobs(8, [job(0, 2), job(50, 8), job(99, 4)])
        };
        let opening = Opening::new(&schedule, &Bars::new(&schedule));
        assert_eq!(opening.at, Some(50 * HOUR + HOUR / 2));
        assert!(opening.from < 50 * HOUR && opening.to > 51 * HOUR);
        let short = Schedule { live: false, ..Schedule::of_jobs(8, [job(0, 8)]) };
        let opening = Opening::new(&short, &Bars::new(&short));
        let (from, to, at) = (opening.from, opening.to, opening.at.unwrap());
        assert!(from < 0 && to >= HOUR && (0..HOUR / 8).contains(&at), "all of a short run: {opening:?}");
        let waited = Job { submitted: 69 * HOUR, ..job(70, 8) };
        let schedule = Schedule {
            now: 100 * HOUR,
            live: false,
            ..Schedule::of_jobs(8, [job(50, 8), waited, job(69, 8)])
        };
        let at = Opening::new(&schedule, &Bars::new(&schedule)).at;
        assert_eq!(at, Some(69 * HOUR + HOUR / 2), "the hour with a queue");
    }

    #[test]
    fn a_daemon_opens_up_to_the_last_own_start() {
        let job = |uid, hours: i64| Job { uid: Some(uid), promised: Some(hours * HOUR), ..Job::default() };
        let mut schedule = Schedule::of_jobs(8, [job(7, 2), job(8, 9)]);
        let ends = |schedule: &Schedule<'_>| {
            let opening = Opening::new(schedule, &Bars::new(schedule));
            (opening.from, opening.to)
        };
        assert_eq!(ends(&schedule), (-5 * MINUTE, 9 * HOUR + 54 * MINUTE), "the first twenty");
        schedule.uid = Some(7);
        assert_eq!(ends(&schedule), (-5 * MINUTE, 2 * HOUR + 12 * MINUTE));
        schedule.jobs.to_mut().clear();
        assert_eq!(ends(&schedule), (-5 * MINUTE, 30 * MINUTE));
        // From the first job on, but one hour at most.
        for (age, past) in [(20 * MINUTE, 22 * MINUTE), (9 * HOUR, HOUR)] {
            let (start, end) = (Some(-age), Some(MINUTE - age));
            let ran = Job { state: State::Ended, procs: 1, start, end, ..Job::default() };
            assert_eq!(ends(&Schedule::of_jobs(8, [ran])), (-past, 30 * MINUTE));
        }
    }
}
