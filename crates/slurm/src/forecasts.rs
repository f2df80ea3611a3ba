//! Forecasts of the waiting jobs of a cluster.

use std::collections::BTreeMap;

use miserly_core::JobNumber;
use miserly_forecast::{Forecaster, Given, Waits};
use miserly_policies::PolicySpec;
use serde::Serialize;

use crate::{Calibration, Cluster, Job, Observed};

/// A forecast of a waiting job. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobForecast {
    /// The job, by name.
    pub job: String,
    /// Its partition.
    pub partition: String,
    /// Its submission.
    pub submitted: i64,
    /// The instant of the forecast, by the clock of the controller.
    pub made: i64,
    /// The median start.
    pub median: i64,
    /// The start by which 80 % start, if it is calibrated.
    pub by_80: Option<i64>,
    /// The start by which 95 % start, if it is calibrated.
    pub by_95: Option<i64>,
    /// The start in a late case, if the bounds are not calibrated: that by which the job starts in 95 % of the simulated futures.
    pub late: Option<i64>,
    /// The start that Slurm expects.
    pub slurm: Option<i64>,
    /// The simulated waits, by level.
    #[serde(skip)]
    pub simulated: Waits,
}

/// The forecasts of a cluster at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecasts {
    /// The forecasts, by job.
    pub jobs: Vec<JobForecast>,
    /// The waiting jobs without a forecast, with the reason.
    pub left_out: BTreeMap<String, String>,
}

impl JobForecast {
    /// Returns an instant that is this many seconds after the forecast.
    pub(crate) fn after(&self, seconds: u64) -> i64 {
        self.made.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
    }

    /// Puts calibrated waits in place of the simulated ones.
    pub(crate) fn calibrate(&mut self, [median, by_80, by_95]: Waits) {
        self.median = self.after(median);
        (self.by_80, self.by_95, self.late) = (Some(self.after(by_80)), Some(self.after(by_95)), None);
    }
}

impl Forecasts {
    /// Calibrates the bounds by the outcomes of earlier forecasts, where there are enough of them.
    pub fn calibrate(&mut self, calibration: &Calibration) {
        for forecast in &mut self.jobs {
            if let Some(bounds) = calibration.bounds(forecast) {
                forecast.calibrate(bounds);
            }
        }
    }
}

/// Returns forecasts of the waiting jobs of a cluster, from `draws` futures with likely runtimes. They are not calibrated.
pub fn forecasts(
    cluster: &Cluster,
    forecaster: &Forecaster,
    policy: Option<&PolicySpec>,
    observed: &Observed,
    draws: u64,
) -> Forecasts {
    let mut forecasts = Forecasts::default();
    for mut queue in cluster.queues(policy, observed) {
        forecasts.left_out.append(&mut queue.left_out);
        let given = forecaster.forecasts(&queue.live, draws, &|_| true);
        let mut given: BTreeMap<JobNumber, Given> =
            given.into_iter().map(|given| (given.job, given)).collect();
        let ledger = &queue.live.copy.ledger;
        for number in ledger.waiting().map(|job| ledger.request(job).number) {
            let Some(job) = queue.ids.get(&number).and_then(|id| cluster.jobs.get(id)) else { continue };
            let forecast = given.remove(&number).map(|given| simulated(cluster, job, given.bounds));
            match forecast
                .ok_or_else(|| queue.never_started().to_owned())
                .and_then(|one| queue.check(one, job))
            {
                Ok(forecast) => forecasts.jobs.push(forecast),
                Err(why) => drop(forecasts.left_out.insert(job.id.clone(), why)),
            }
        }
    }
    let order = |forecast: &JobForecast| cluster.jobs.get(&forecast.job).map(Job::order);
    forecasts.jobs.sort_by_key(order);
    forecasts
}

/// Returns a forecast that is not calibrated.
fn simulated(cluster: &Cluster, job: &Job, simulated: Waits) -> JobForecast {
    let made = cluster.configuration.now;
    let mut forecast = JobForecast {
        job: job.id.clone(),
        partition: cluster.partition_of(job).unwrap_or_default().to_owned(),
        submitted: job.submitted,
        made,
        median: made,
        by_80: None,
        by_95: None,
        late: None,
        slurm: job.start,
        simulated,
    };
    forecast.median = forecast.after(simulated[0]);
    forecast.late = Some(forecast.after(simulated[2]));
    forecast
}

impl crate::Queue {
    /// Returns why a job has no forecast that did not start in all futures.
    fn never_started(&self) -> &'static str {
        if self.live.copy.ledger.machine().closed_hosts().is_empty() {
            "it did not start in all simulated futures"
        } else {
            "it did not start in all simulated futures beside the reservations"
        }
    }

    /// Returns the forecast of a job, unless jobs are suspended for others, or the job may reach into a reservation that the policy does
    /// not know.
    fn check(&self, forecast: JobForecast, job: &Job) -> Result<JobForecast, String> {
        if let Some(why) = &self.unsettled {
            return Err(why.clone());
        }
        let latest = forecast.after(forecast.simulated[2]).saturating_add(job.limit.seconds());
        match &self.unknown_reservation {
            Some((begin, name)) if latest > *begin => {
                let policy = self.live.policy.descriptor().name;
                Err(format!(
                    "it may reach into the reservation {name}, which the policy {policy} does not know"
                ))
            }
            _ => Ok(forecast),
        }
    }
}
