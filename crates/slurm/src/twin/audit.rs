//! The starts of a twin beside those of its cluster.

use miserly_core::{Span, Time};
use serde::Serialize;

use crate::{BackfillCycles, RecordedJob, Seen};

/// The starts of a log beside those of a twin.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TwinAudit {
    /// Jobs with a recorded start.
    pub jobs: u64,
    /// Jobs that waited for more than one cycle, in the log or under the twin.
    pub waited: u64,
    /// Jobs with starts that differ by a cycle at most.
    pub close: u64,
    /// The same, of those that waited.
    pub close_of_waited: u64,
    /// The length of a cycle, seconds.
    pub cycle: i64,
    /// Half of the starts differ by at most this, seconds.
    pub median_difference: i64,
    /// 95 % of the starts differ by at most this, seconds.
    pub difference_95: i64,
    /// The mean recorded wait, seconds.
    pub recorded_mean_wait: f64,
    /// The mean wait under the twin, seconds.
    pub twin_mean_wait: f64,
}

impl TwinAudit {
    /// Compares the submissions, the recorded starts and those under the twin of jobs.
    pub fn new(jobs: &[(Time, Time, Time)], cycle: Span) -> TwinAudit {
        let mut differences: Vec<i64> =
            jobs.iter().map(|(_, start, twin)| (*twin - *start).secs().abs()).collect();
        differences.sort_unstable();
        let is_close = |(_, start, twin): &&(Time, Time, Time)| (*twin - *start).secs().abs() <= cycle.secs();
        let waited = |(submit, start, twin): &&(Time, Time, Time)| (*start).max(*twin) - *submit > cycle;
        let mean = |wait: &dyn Fn(&(Time, Time, Time)) -> Span| {
            let sum: f64 = jobs.iter().map(|job| wait(job).as_secs_f64()).sum();
            if jobs.is_empty() { 0.0 } else { sum / jobs.len() as f64 }
        };
        TwinAudit {
            jobs: jobs.len() as u64,
            waited: jobs.iter().filter(waited).count() as u64,
            close: jobs.iter().filter(is_close).count() as u64,
            close_of_waited: jobs.iter().filter(waited).filter(is_close).count() as u64,
            cycle: cycle.secs(),
            median_difference: quantile(&differences, 50),
            difference_95: quantile(&differences, 95),
            recorded_mean_wait: mean(&|(submit, start, _)| *start - *submit),
            twin_mean_wait: mean(&|(submit, _, twin)| *twin - *submit),
        }
    }
}

/// Why starts of the twin differ by more than a cycle from those of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TwinCauses {
    /// All of them.
    pub different: u64,
    /// From the recorded state the policy starts the job as the cluster did: the state of the simulation is another one, by earlier
    /// differences.
    pub inherited: u64,
    /// From the recorded state the policy starts the job before the cluster did.
    pub cluster_later: u64,
    /// From the recorded state the policy does not start the job yet.
    pub cluster_earlier: u64,
    /// There is no recorded state around the start.
    pub unseen: u64,
}

impl TwinCauses {
    /// Counts the jobs, each with its recorded start, that under the twin, and what is seen from the recorded states around it.
    pub fn new(jobs: impl Iterator<Item = (Time, Time, Option<Seen>)>, cycle: Span) -> TwinCauses {
        let mut causes = TwinCauses::default();
        for (_, _, seen) in jobs.filter(|(start, twin, _)| (*twin - *start).secs().abs() > cycle.secs()) {
            causes.different += 1;
            *match seen {
                Some(Seen::Foreseen) => &mut causes.inherited,
                Some(Seen::Later) => &mut causes.cluster_later,
                Some(Seen::Earlier) => &mut causes.cluster_earlier,
                None => &mut causes.unseen,
            } += 1;
        }
        causes
    }
}

/// The delays of the controller, as the record and its statistics show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ControllerDelays {
    /// The median time from the last end or submission to a start, seconds.
    pub median: i64,
    /// 95 % of these times are at most this, seconds.
    pub most_95: i64,
    /// The configured time between two cycles, seconds.
    pub interval: i64,
    /// The mean length of a cycle since the statistics begin, seconds.
    pub cycle_mean: Option<f64>,
    /// The length of the longest cycle, seconds.
    pub cycle_longest: Option<f64>,
    /// The longest run of the main loop, seconds.
    pub main_longest: Option<f64>,
}

impl ControllerDelays {
    /// Returns the delays of the starts of a record: each from the last end or submission before it.
    pub fn new(jobs: &[RecordedJob], interval: Span, cycles: Option<BackfillCycles>) -> ControllerDelays {
        let ends = jobs.iter().filter_map(|job| job.end);
        let mut events: Vec<Time> = jobs.iter().map(|job| job.request.submit).chain(ends).collect();
        events.sort_unstable();
        let delay = |start: Time| {
            let before = events.partition_point(|event| *event <= start);
            Some((start - *events.get(before.checked_sub(1)?)?).secs())
        };
        let mut delays: Vec<i64> = jobs.iter().filter_map(|job| delay(job.start?)).collect();
        delays.sort_unstable();
        let length = |span: fn(&BackfillCycles) -> Span| cycles.as_ref().map(|one| span(one).as_secs_f64());
        ControllerDelays {
            median: quantile(&delays, 50),
            most_95: quantile(&delays, 95),
            interval: interval.secs(),
            cycle_mean: length(|one| one.mean),
            cycle_longest: length(|one| one.longest),
            main_longest: length(|one| one.main[1]),
        }
    }
}

/// Returns the least of sorted values that so many percent do not exceed.
fn quantile(sorted: &[i64], percent: usize) -> i64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_compared() {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let jobs = [(0, 0, 1), (0, 100, 90), (0, 10, 12)]
            .map(|(submit, start, twin)| (at(submit), at(start), at(twin)));
        let audit = TwinAudit::new(&jobs, Span::from_secs(5).unwrap());
        assert_eq!((audit.jobs, audit.close, audit.waited, audit.close_of_waited), (3, 2, 2, 1));
        assert_eq!((audit.median_difference, audit.difference_95), (2, 10));
    }

    #[test]
    fn differences_have_causes() {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let jobs = [
            (100, 104, Some(Seen::Later)),
            (100, 120, Some(Seen::Foreseen)),
            (100, 90, Some(Seen::Later)),
            (100, 120, Some(Seen::Earlier)),
            (100, 160, Some(Seen::Earlier)),
            (100, 106, None),
        ];
        let jobs = jobs.into_iter().map(|(start, twin, seen)| (at(start), at(twin), seen));
        let causes = TwinCauses::new(jobs, Span::from_secs(5).unwrap());
        let expected =
            TwinCauses { different: 5, inherited: 1, cluster_later: 1, cluster_earlier: 2, unseen: 1 };
        assert_eq!(causes, expected);
    }

    #[test]
    fn a_start_follows_an_end_or_a_submission() {
        use miserly_core::{Request, Resources};

        let at = |seconds| Time::from_secs(seconds).unwrap();
        let job = |submit: i64, start: i64, end: i64| RecordedJob {
            request: Request::new(1, at(submit), Span::TICK, Resources::cpus(1_u64)),
            start: Some(at(start)),
            end: Some(at(end)),
            placement: None,
            billing: None,
            is_preempted: false,
            rerun_of: None,
        };
        // After 1 s, and 7 s after the end of the first one.
        let jobs = [job(0, 1, 50), job(2, 57, 90)];
        let delays = ControllerDelays::new(&jobs, Span::from_secs(30).unwrap(), None);
        assert_eq!((delays.median, delays.most_95, delays.interval), (1, 7, 30));
    }
}
