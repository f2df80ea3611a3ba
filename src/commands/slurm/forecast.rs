//! `miserly slurm forecast`: the starts of waiting jobs, or of one that is not yet submitted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use miserly_forecast::check_policy;
use miserly_slurm::{Cluster, Forecasts, JobForecast, NewJob, Observed, Slurm, forecasts};

use super::audit::calibration;
use super::{counted, instant, learned, read_to_schedule, table, warn_of_preemption};
use crate::args::{FutureArgs, NewJobArgs, SlurmForecastArgs};
use crate::output::{print, print_json};

pub(super) fn forecast(args: &SlurmForecastArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let FutureArgs { policy, history, draws, calibrate } = &args.futures;
    policy.as_ref().map_or(Ok(()), check_policy)?;
    let calibration = calibration(calibrate)?;
    let mut cluster = read_to_schedule(&slurm)?;
    let called = |job: &String| -> BTreeSet<String> {
        let jobs = cluster.jobs.values().filter(|one| one.is_called(job));
        jobs.map(|job| job.id.clone()).collect()
    };
    let wanted = args.job.as_ref().map(|job| (job, called(job)));
    if let Some((job, tasks)) = &wanted
        && tasks.is_empty()
    {
        bail!("job {job}: the cluster has no such job that has not ended");
    }
    let forecaster = learned(&slurm, *history).unwrap_or_default();
    if *history > 0 {
        // The accounting may have taken a while.
        cluster = Cluster::read(&slurm)?;
    }
    let mut observed = Observed::read(&slurm, &cluster);
    warn_of_preemption(&cluster, &observed.limits.qualities);
    let new = new_job(&args.new);
    if let Some(new) = &new {
        new.add(&mut cluster, &mut observed)?;
    }
    let mut forecasts = forecasts(&cluster, &forecaster, policy.as_ref(), &observed, *draws);
    forecasts.calibrate(&calibration);
    if let Some((job, tasks)) = &wanted {
        keep(&mut forecasts, &format!("job {job}"), tasks)?;
    }
    if let Some(new) = &new {
        keep(&mut forecasts, "such a job", &[NewJob::NAME.to_owned()].into())?;
        add_expected(&slurm, new, &mut forecasts);
    }
    if args.json {
        return print_json(&forecasts);
    }
    print(&text(&cluster, &forecasts))
}

/// Returns the job that is not yet submitted, if there is one.
fn new_job(args: &NewJobArgs) -> Option<NewJob> {
    let NewJobArgs { cpus, time, partition, memory, nodes, gpus } = args;
    Some(NewJob {
        cpus: (*cpus)?,
        seconds: time.as_ref()?.as_secs(),
        partition: partition.clone(),
        memory: memory.clone(),
        nodes: *nodes,
        gpus: *gpus,
        user: rustix::process::getuid().as_raw(),
    })
}

/// Keeps the forecasts of some jobs. It is an error if there is none.
fn keep(forecasts: &mut Forecasts, called: &str, jobs: &BTreeSet<String>) -> anyhow::Result<()> {
    forecasts.jobs.retain(|forecast| jobs.contains(&forecast.job));
    forecasts.left_out.retain(|job, _| jobs.contains(job));
    if forecasts.jobs.is_empty() {
        let why = forecasts.left_out.values().next().map_or("it does not wait", String::as_str);
        bail!("{called} has no forecast: {why}");
    }
    Ok(())
}

/// Adds the start that Slurm expects of a job that is not yet submitted.
fn add_expected(slurm: &Slurm, new: &NewJob, forecasts: &mut Forecasts) {
    match new.expected_start(slurm) {
        Ok(Ok(start)) => forecasts.jobs.iter_mut().for_each(|forecast| forecast.slurm = start),
        Ok(Err(refusal)) => note!("warning: Slurm would refuse such a job of yours: {}", refusal.trim()),
        Err(error) => note!("warning: without the start that Slurm expects: {error}"),
    }
}

fn text(cluster: &Cluster, forecasts: &Forecasts) -> String {
    let has_bounds = forecasts.jobs.iter().any(|forecast| forecast.by_95.is_some());
    let has_late = forecasts.jobs.iter().any(|forecast| forecast.late.is_some());
    let mut header = vec!["JOB", "CPUS", "LIKELY"];
    header.extend(has_bounds.then_some(["80 %: BY", "95 %: BY"]).into_iter().flatten());
    header.extend(has_late.then_some("LATE CASE"));
    header.push("SLURM EXPECTS");
    let row = |forecast: &JobForecast| {
        let cpus = cluster.jobs.get(&forecast.job).map_or(0, |job| job.cpus);
        let mut times = vec![Some(forecast.median)];
        times.extend(has_bounds.then_some([forecast.by_80, forecast.by_95]).into_iter().flatten());
        times.extend(has_late.then_some(forecast.late));
        times.push(forecast.slurm);
        let times = times.into_iter().map(|time| time.map_or_else(|| "-".to_owned(), instant));
        [forecast.job.clone(), cpus.to_string()].into_iter().chain(times).collect()
    };
    let mut text = table(&header, &header[..2], forecasts.jobs.iter().map(row));
    if has_late {
        text += "a late case is not calibrated: 95 % of the simulated futures start the job by then\n";
    }
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for why in forecasts.left_out.values() {
        *reasons.entry(why).or_default() += 1;
    }
    for (why, jobs) in reasons {
        text += &format!("without a forecast: {}: {why}\n", counted(jobs, "job"));
    }
    text
}
