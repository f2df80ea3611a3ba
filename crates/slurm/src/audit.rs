//! Forecasts of the jobs of a cluster, and their outcomes.

use std::collections::BTreeMap;

use miserly_core::JobNumber;
use miserly_forecast::{Forecaster, Given};
use miserly_policies::PolicySpec;
use serde::Serialize;

use crate::{Cluster, Job, JobState, Observed};

/// A forecast of a waiting job. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobForecast {
    /// The job, by name.
    pub job: String,
    /// The instant of the forecast, by the clock of the controller.
    pub made: i64,
    /// The median start.
    pub median: i64,
    /// The start by which 80 % start.
    pub by_80: i64,
    /// The start by which 95 % start.
    pub by_95: i64,
    /// The start that Slurm expects.
    pub slurm: Option<i64>,
}

/// The forecasts of a cluster at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecasts {
    /// The forecasts, by job.
    pub jobs: Vec<JobForecast>,
    /// The waiting jobs without a forecast, with the reason.
    pub left_out: BTreeMap<String, String>,
}

/// Returns forecasts of the waiting jobs of a cluster, from `draws` futures with likely runtimes.
pub fn forecasts(
    cluster: &Cluster,
    forecaster: &Forecaster,
    policy: Option<&PolicySpec>,
    observed: &Observed,
    draws: u64,
) -> Forecasts {
    given(cluster, forecaster, policy, observed, draws).0
}

/// Returns the forecasts, and those of the simulations behind them.
fn given(
    cluster: &Cluster,
    forecaster: &Forecaster,
    policy: Option<&PolicySpec>,
    observed: &Observed,
    draws: u64,
) -> (Forecasts, Vec<(String, Given)>) {
    let (mut forecasts, mut all) = (Forecasts::default(), vec![]);
    let made = cluster.configuration.now;
    for queue in cluster.queues(policy, observed) {
        forecasts.left_out.extend(queue.left_out.clone());
        let mut given: BTreeMap<JobNumber, Given> = forecaster
            .forecasts(&queue.live, draws, &|_| true)
            .into_iter()
            .map(|given| (given.job, given))
            .collect();
        let ledger = &queue.live.copy.ledger;
        for number in ledger.waiting().map(|job| ledger.request(job).number) {
            let Some(job) = queue.ids.get(&number).cloned() else { continue };
            let Some(one) = given.remove(&number) else {
                let why = match queue.live.copy.ledger.machine().closed_hosts() {
                    [] => "it did not start in all simulated futures",
                    _ => "it did not start in all simulated futures beside the reservations",
                };
                forecasts.left_out.insert(job, why.to_owned());
                continue;
            };
            let at = |seconds: u64| made.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX));
            let [median, by_80, by_95] = one.bounds.map(at);
            let known = cluster.jobs.get(&job);
            let latest = by_95.saturating_add(known.map_or(0, |job| job.limit.seconds()));
            if let Some((begin, name)) = &queue.unknown_reservation
                && latest > *begin
            {
                let policy = queue.live.policy.descriptor().name;
                let why = format!(
                    "it may reach into the reservation {name}, which the policy {policy} does not know"
                );
                forecasts.left_out.insert(job, why);
                continue;
            }
            let slurm = known.and_then(|job| job.start);
            forecasts.jobs.push(JobForecast { job: job.clone(), made, median, by_80, by_95, slurm });
            all.push((job, one));
        }
    }
    let order = |forecast: &JobForecast| cluster.jobs.get(&forecast.job).map(Job::order);
    forecasts.jobs.sort_by_key(order);
    (forecasts, all)
}

/// The first forecast of a job, and its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audited {
    /// The forecast.
    #[serde(flatten)]
    pub forecast: JobForecast,
    /// The start.
    pub start: i64,
}

/// The outcome of forecasts. Errors are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AuditSummary {
    /// Jobs with a forecast that have started.
    pub jobs: u64,
    /// Those that started by the bounds of 50, 80 and 95 %.
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

/// Follows a cluster: the first forecast of each job, and its start.
#[derive(Debug, Default)]
pub struct Audit {
    forecaster: Forecaster,
    open: BTreeMap<String, (JobForecast, Given)>,
    settled: Vec<Audited>,
}

impl Audit {
    /// Returns an audit that learned from earlier jobs.
    pub fn new(forecaster: Forecaster) -> Audit {
        Audit { forecaster, ..Audit::default() }
    }

    /// Takes in a state of the cluster. Returns the forecasts of jobs that have started since the last one.
    ///
    /// `observe` reads more of it, and `starts` returns the starts of jobs that are gone already, as [`Cluster::starts`] does.
    pub fn follow(
        &mut self,
        cluster: &Cluster,
        policy: Option<&PolicySpec>,
        observe: &dyn Fn(&Cluster) -> Observed,
        draws: u64,
        starts: &dyn Fn(&[String]) -> BTreeMap<String, i64>,
    ) -> Vec<Audited> {
        let mut audited = vec![];
        let waits = |id: &String| cluster.jobs.get(id).is_some_and(|job| job.state == JobState::Pending);
        let over: Vec<String> = self.open.keys().filter(|id| !waits(id)).cloned().collect();
        let gone: Vec<String> = over.iter().filter(|id| !cluster.jobs.contains_key(*id)).cloned().collect();
        let gone = if gone.is_empty() { BTreeMap::new() } else { starts(&gone) };
        for id in over {
            let Some((forecast, given)) = self.open.remove(&id) else { continue };
            let start = cluster.jobs.get(&id).and_then(|job| job.start).or(gone.get(&id).copied());
            // Without a start it was cancelled, or is forgotten.
            let Some(start) = start else { continue };
            let wait = u64::try_from(start - forecast.made).unwrap_or(0);
            self.forecaster.settle(&given, forecast.made, wait);
            audited.push(Audited { forecast, start });
        }
        self.settled.extend(audited.iter().cloned());
        let new = |job: &Job| job.may_have_forecast() && !self.open.contains_key(&job.id);
        if cluster.jobs.values().any(new) {
            let (forecasts, given) = given(cluster, &self.forecaster, policy, &observe(cluster), draws);
            let mut given: BTreeMap<String, Given> = given.into_iter().collect();
            for forecast in forecasts.jobs {
                if let Some(given) = given.remove(&forecast.job) {
                    self.open.entry(forecast.job.clone()).or_insert((forecast, given));
                }
            }
        }
        audited
    }

    /// Returns the outcome of the forecasts so far.
    pub fn summary(&self) -> AuditSummary {
        let mut summary = AuditSummary { jobs: self.settled.len() as u64, ..AuditSummary::default() };
        let (mut all, mut these, mut slurm) = (0_u64, 0_u64, 0_u64);
        for Audited { forecast, start } in &self.settled {
            let error = forecast.median.abs_diff(*start);
            all += error;
            for (kept, bound) in
                summary.kept.iter_mut().zip([forecast.median, forecast.by_80, forecast.by_95])
            {
                *kept += u64::from(*start <= bound);
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
        assert_eq!(follow(&cluster), []);
        // Later forecasts of the same job do not count.
        assert_eq!(follow(&at(1050, waiting(None))), []);
        let runs = || job(2, Some(1080), JobState::Running);
        let audited = follow(&at(1085, vec![runs()]));
        assert_eq!((audited.len(), audited[0].start, audited[0].forecast.made), (1, 1080, 1010));
        // Of two that are gone, one has not started.
        follow(&at(1090, vec![runs(), job(3, None, JobState::Pending), job(4, None, JobState::Pending)]));
        assert_eq!(follow(&at(1110, vec![])).len(), 1);
        let summary = audit.summary();
        assert_eq!((summary.jobs, summary.kept, summary.with_slurm), (2, [2, 2, 2], 1));
        assert_eq!((summary.mean_error_of_these, summary.slurm_mean_error), (Some(20.0), Some(120.0)));
    }
}
