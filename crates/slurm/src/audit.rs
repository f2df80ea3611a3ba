//! The outcomes of forecasts on a cluster.

use std::collections::{BTreeMap, BTreeSet};

use miserly_forecast::Forecaster;
use miserly_policies::PolicySpec;
use serde::Serialize;

use crate::{Calibration, Cluster, Job, JobForecast, JobState, Observed, Record, forecasts};

/// The time between two forecasts of all jobs that wait, seconds.
const AGAIN: i64 = 300;

/// The outcome of the first forecasts of jobs. Errors are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AuditSummary {
    /// Jobs with a forecast that have started.
    pub jobs: u64,
    /// Those that started by the simulated bounds of 50, 80 and 95 %.
    pub simulated: [u64; 3],
    /// Those whose bounds were calibrated.
    pub calibrated: u64,
    /// Those of them that started by the calibrated bounds of 50, 80 and 95 %.
    pub kept: [u64; 3],
    /// The mean distance of the median from the start.
    pub mean_error: Option<f64>,
    /// The jobs for which Slurm expected a start at the same instant.
    pub with_slurm: u64,
    /// The mean distance of the median from the start, of these.
    pub mean_error_of_these: Option<f64>,
    /// The mean distance of Slurm's expected start from the start.
    pub slurm_mean_error: Option<f64>,
}

/// A forecast whose job has not started.
#[derive(Clone, Debug)]
struct Open {
    forecast: JobForecast,
    is_first: bool,
}

/// Follows a cluster: the first forecast of each job, those of all that wait at times, and the starts.
#[derive(Debug, Default)]
pub struct Audit {
    forecaster: Forecaster,
    calibration: Calibration,
    open: BTreeMap<String, Vec<Open>>,
    /// The instant from which on all jobs that wait have another forecast.
    again: Option<i64>,
    ended: Vec<Record>,
    /// The first forecasts of jobs, with their starts.
    settled: Vec<(JobForecast, i64)>,
}

impl Audit {
    /// Returns an audit that learned from earlier jobs, and from the outcomes of earlier forecasts.
    pub fn new(forecaster: Forecaster, calibration: Calibration) -> Audit {
        Audit { forecaster, calibration, ..Audit::default() }
    }

    /// Takes in a state of the cluster. Returns whether there are new forecasts or outcomes.
    ///
    /// `observe` reads more of it, and `starts` returns the starts of jobs that are gone already, as [`Cluster::starts`] does.
    pub fn follow(
        &mut self,
        cluster: &Cluster,
        policy: Option<&PolicySpec>,
        observe: &dyn Fn(&Cluster) -> Observed,
        draws: u64,
        starts: &dyn Fn(&[String]) -> BTreeMap<String, i64>,
    ) -> bool {
        let ended = self.end(cluster, starts);
        let now = cluster.configuration.now;
        let waits: Vec<&Job> = cluster.jobs.values().filter(|job| job.may_have_forecast()).collect();
        let is_due = self.again.is_some_and(|again| now >= again);
        let new: BTreeSet<&str> =
            waits.iter().map(|job| job.id.as_str()).filter(|id| !self.open.contains_key(*id)).collect();
        if waits.is_empty() || !is_due && new.is_empty() {
            return ended;
        }
        if is_due || self.again.is_none() {
            self.again = Some(now.saturating_add(AGAIN));
        }
        let mut all = forecasts(cluster, &self.forecaster, policy, &observe(cluster), draws);
        all.calibrate(&self.calibration);
        for forecast in all.jobs {
            let is_first = new.contains(forecast.job.as_str());
            if is_first || is_due {
                self.calibration.add(&forecast);
                self.open.entry(forecast.job.clone()).or_default().push(Open { forecast, is_first });
            }
        }
        true
    }

    /// Ends the forecasts of the jobs that wait no more. Returns whether there are any.
    fn end(&mut self, cluster: &Cluster, starts: &dyn Fn(&[String]) -> BTreeMap<String, i64>) -> bool {
        let waits = |id: &String| cluster.jobs.get(id).is_some_and(|job| job.state == JobState::Pending);
        let over: Vec<String> = self.open.keys().filter(|id| !waits(id)).cloned().collect();
        let gone: Vec<String> = over.iter().filter(|id| !cluster.jobs.contains_key(*id)).cloned().collect();
        let gone = if gone.is_empty() { BTreeMap::new() } else { starts(&gone) };
        let now = cluster.configuration.now;
        for id in &over {
            // Without a start it was cancelled, or is forgotten.
            let start = cluster.jobs.get(id).and_then(|job| job.start).or(gone.get(id).copied());
            for Open { forecast, is_first } in self.open.remove(id).into_iter().flatten() {
                let record = Record::new(&forecast, start, start.unwrap_or(now));
                self.calibration.end(&record);
                self.ended.push(record);
                self.settled.extend(start.filter(|_| is_first).map(|start| (forecast, start)));
            }
        }
        !over.is_empty()
    }

    /// Returns the jobs whose first forecast has an outcome.
    pub fn audited(&self) -> usize {
        self.settled.len()
    }

    /// Returns all forecasts with their outcomes. Jobs that wait have none, at this instant in seconds since 1970.
    pub fn records(&self, now: i64) -> Vec<Record> {
        let open = self.open.values().flatten().map(|open| Record::new(&open.forecast, None, now));
        self.ended.iter().cloned().chain(open).collect()
    }

    /// Returns the outcome of the first forecasts so far.
    pub fn summary(&self) -> AuditSummary {
        let mut summary = AuditSummary { jobs: self.settled.len() as u64, ..AuditSummary::default() };
        let (mut all, mut these, mut slurm) = (0_u64, 0_u64, 0_u64);
        for (forecast, start) in &self.settled {
            let error = forecast.median.abs_diff(*start);
            all += error;
            for (kept, wait) in summary.simulated.iter_mut().zip(forecast.simulated) {
                *kept += u64::from(*start <= forecast.after(wait));
            }
            if let Some((by_80, by_95)) = forecast.by_80.zip(forecast.by_95) {
                summary.calibrated += 1;
                for (kept, bound) in summary.kept.iter_mut().zip([forecast.median, by_80, by_95]) {
                    *kept += u64::from(*start <= bound);
                }
            }
            if let Some(expected) = forecast.slurm {
                summary.with_slurm += 1;
                these += error;
                slurm += expected.abs_diff(*start);
            }
        }
        let mean = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        summary.mean_error = mean(all, summary.jobs);
        summary.mean_error_of_these = mean(these, summary.with_slurm);
        summary.slurm_mean_error = mean(slurm, summary.with_slurm);
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configuration, Limit, Node, Partition};

    fn at(now: i64, jobs: Vec<Job>) -> Cluster {
        let node = Node { states: vec!["idle".to_owned()], cpus: 4, ..Node::default() };
        let nodes = vec!["a".to_owned()];
        let partition = Partition { nodes, state: "up".to_owned(), ..Partition::default() };
        Cluster {
            configuration: Configuration {
                now,
                scheduler: "sched/backfill".to_owned(),
                ..Configuration::default()
            },
            nodes: [("a".to_owned(), node)].into(),
            partitions: [("batch".to_owned(), partition)].into(),
            jobs: jobs.into_iter().map(|job| (job.id.clone(), job)).collect(),
            ..Cluster::default()
        }
    }

    fn job(number: u64, start: Option<i64>, state: JobState) -> Job {
        let on = if state == JobState::Running { vec!["a".to_owned()] } else { vec![] };
        let partitions = vec!["batch".to_owned()];
        let limit = Limit::Seconds(100);
        Job {
            id: number.to_string(),
            number,
            partitions,
            state,
            cpus: 4,
            priority: 1,
            limit,
            start,
            on,
            ..Job::default()
        }
    }

    #[test]
    fn forecasts_are_compared_with_starts() {
        let mut audit = Audit::default();
        let waiting = |slurm| vec![job(1, Some(1000), JobState::Running), job(2, slurm, JobState::Pending)];
        let cluster = at(1010, waiting(Some(1200)));
        assert_eq!(
            forecasts(&cluster, &Forecaster::default(), None, &Observed::default(), 5).jobs[0].median,
            1100
        );
        let gone =
            |jobs: &[String]| jobs.iter().filter(|job| *job == "4").map(|job| (job.clone(), 1105)).collect();
        let mut follow = |cluster: &Cluster| audit.follow(cluster, None, &|_| Observed::default(), 5, &gone);
        assert!(follow(&cluster));
        // Later forecasts of the same job do not count, and are made at times only.
        assert!(!follow(&at(1050, waiting(None))));
        let runs = || job(2, Some(1080), JobState::Running);
        assert!(follow(&at(1085, vec![runs()])));
        // Of two that are gone, one has not started.
        follow(&at(1090, vec![runs(), job(3, None, JobState::Pending), job(4, None, JobState::Pending)]));
        assert!(follow(&at(1110, vec![])));
        let summary = audit.summary();
        assert_eq!((summary.jobs, summary.simulated, summary.calibrated), (2, [2, 2, 2], 0));
        assert_eq!((summary.with_slurm, summary.mean_error_of_these), (1, Some(20.0)));
        assert_eq!(summary.slurm_mean_error, Some(120.0));
        let records: Vec<(String, i64, Option<i64>, i64)> = audit
            .records(1200)
            .into_iter()
            .map(|record| (record.job, record.made, record.start, record.until))
            .collect();
        let expected =
            [("2", 1010, Some(1080), 1080), ("3", 1090, None, 1110), ("4", 1090, Some(1105), 1105)];
        assert_eq!(records, expected.map(|(job, made, start, until)| (job.to_owned(), made, start, until)));
    }

    #[test]
    fn all_jobs_that_wait_have_a_forecast_again_and_it_is_calibrated() {
        let mut audit = Audit::default();
        let none = |_: &[String]| BTreeMap::new();
        let waiting =
            |second: i64| vec![job(1, Some(second - 50), JobState::Running), job(2, None, JobState::Pending)];
        let mut follow = |cluster: &Cluster| audit.follow(cluster, None, &|_| Observed::default(), 2, &none);
        assert!(follow(&at(1000, waiting(1000))) && !follow(&at(1299, waiting(1299))));
        assert!(follow(&at(1300, waiting(1300))) && !follow(&at(1301, waiting(1301))));
        // A job waits for 30 s each time, and the simulation has 50 s.
        for nth in 0_u32..80 {
            let second = 2000 + 1000 * i64::from(nth);
            let new = Job { submitted: second, ..job(100 + u64::from(nth), None, JobState::Pending) };
            let started = Job {
                start: Some(second + 30),
                state: JobState::Running,
                on: vec!["a".to_owned()],
                ..new.clone()
            };
            follow(&at(second, vec![job(1, Some(second - 50), JobState::Running), new]));
            follow(&at(second + 40, vec![started]));
        }
        let made: Vec<i64> = audit.records(0).iter().take(2).map(|record| record.made).collect();
        assert_eq!(made, [1000, 1300]);
        let summary = audit.summary();
        assert!(summary.calibrated >= 15 && summary.calibrated < 25, "{summary:?}");
        assert_eq!(summary.kept, [summary.calibrated; 3]);
    }
}
