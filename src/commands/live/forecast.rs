//! `miserly forecast JOB`: the likely start of a job of the daemon.

use anyhow::{Context, bail};
use miserly_api::model::{ForecastView, JobRef, JobView, Phase};

use super::show::summary;
use super::text::{Instants, local};
use super::{client, job_lists, print_answer};
use crate::args::{DaemonArgs, ForecastArgs};

/// Asks the daemon for the forecast of a job, and prints it.
pub(crate) fn run(args: &ForecastArgs) -> anyhow::Result<()> {
    let job = args.trace.to_str().and_then(|text| text.parse::<JobRef>().ok()).filter(JobRef::is_single);
    let job = job.with_context(|| {
        format!(
            "{}: a log needs a policy, such as --policy easy; a forecast of the daemon needs a job, such as 12 or 1_60",
            args.trace.display()
        )
    })?;
    let client = client(&DaemonArgs { socket: args.socket.clone() })?;
    let number = job_lists::number(&client, &job)?;
    let job = client.job(number)?;
    if job.phase != Phase::Queued {
        bail!("job {number} has no forecast: it is {}", summary(&job, Instants::exact()));
    }
    let forecast = job.forecast.as_ref().with_context(|| {
        format!(
            "job {number} has no forecast yet; forecasts are made within seconds, for policies that start each job once, \
             and not for jobs far behind in a deep queue"
        )
    })?;
    print_answer(args.json, forecast, || sentence(&job, forecast))
}

/// Returns the promise and the likely start.
fn sentence(job: &JobView, forecast: &ForecastView) -> String {
    let promise = job.promise.as_ref().and_then(|promise| promise.now.as_ref());
    let promise = promise.map(|window| format!("starts by {}; ", local(window.start)));
    format!(
        "job {}: {}most likely {}; {}\nforecast of {}\n",
        job.number,
        promise.unwrap_or_default(),
        local(forecast.median),
        bounds(forecast),
        local(forecast.made)
    )
}

/// Returns the bounds, if they are calibrated.
fn bounds(forecast: &ForecastView) -> String {
    match forecast.bounds() {
        Some([_, by_80, by_95]) => format!("80 %: by {}; 95 %: by {}", local(by_80), local(by_95)),
        None => "too few forecasts have come out for bounds".to_owned(),
    }
}
