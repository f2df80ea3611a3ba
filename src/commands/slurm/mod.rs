//! `miserly slurm`: a Slurm cluster. Only `drive` and `hand-back` change it.

mod drive;

mod queue;

pub(crate) use self::queue::{ClusterFilter, cluster_queue, cluster_queue_text};

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use miserly_core::{JobNumber, Procs, Refusal, Request, Resources, Span, Time};
use miserly_forecast::Forecaster;
use miserly_import::{SlurmOptions, SubmitAt};
use miserly_live::shadow::{ComparedJob, of_jobs};
use miserly_policies::PolicySpec;
use miserly_report::AtomicFile;
use miserly_run::{RunOptions, RunSetup, Stopwatch};
use miserly_sim::{Finished, Observer};
use miserly_slurm::{
    Audit, AuditSummary, Audited, Change, Cluster, CycleAudit, JobForecast, JobState, Poller, RecordedJob,
    Slurm, SlurmError, Twin, TwinAudit, forecasts, learn, log,
};
use miserly_units::duration;
use miserly_workload::swf::{Field, Record};
use miserly_workload::{JobOptions, Overrun, Trace};
use serde::Serialize;

use super::import::write;
use super::live::{counted, local, shadow_text, table};
use crate::args::{
    FutureArgs, PeriodArgs, SlurmAuditArgs, SlurmClusterArgs, SlurmCommand, SlurmForecastArgs, SlurmLogArgs,
    SlurmShadowArgs, SlurmStatusArgs, SlurmTwinArgs, SlurmWatchArgs,
};
use crate::output::{print, print_json};

/// The difference of clocks that is worth a line.
const CLOCKS: i64 = 2;

/// The most recorded states from which a twin decides.
const MOST_STATES: usize = 1000;

/// The accounting before a period that is simulated too.
const WARM_UP: SignedDuration = SignedDuration::from_hours(24);

pub(crate) fn run(args: &SlurmClusterArgs) -> anyhow::Result<()> {
    match &args.command {
        SlurmCommand::Status(args) => status(args),
        SlurmCommand::Log(args) => accounting(args),
        SlurmCommand::Watch(args) => watch(args),
        SlurmCommand::Forecast(args) => forecast(args),
        SlurmCommand::Twin(args) => twin(args),
        SlurmCommand::Shadow(args) => shadow(args),
        SlurmCommand::Audit(args) => audit(args),
        SlurmCommand::Drive(args) => drive::drive(args),
        SlurmCommand::Queue(args) => queue::queue(args),
        SlurmCommand::HandBack(args) => drive::hand_back(args),
    }
}

fn status(args: &SlurmStatusArgs) -> anyhow::Result<()> {
    let before = Timestamp::now();
    let cluster = Cluster::read(&args.cluster.slurm())?;
    let during = before.as_second()..=Timestamp::now().as_second();
    if args.json { print_json(&cluster) } else { print(&status_text(&cluster, &during)) }
}

/// Returns the cluster in words: its partitions, and why jobs wait. `during` are the seconds in which it was read.
fn status_text(cluster: &Cluster, during: &RangeInclusive<i64>) -> String {
    let configuration = &cluster.configuration;
    let mut text = format!(
        "cluster {}: Slurm {}, {}, {}\n",
        configuration.cluster, configuration.version, configuration.scheduler, configuration.priority
    );
    let now = configuration.now;
    let ahead = now - now.clamp(*during.start(), *during.end());
    if ahead.abs() > CLOCKS {
        let way = if ahead > 0 { "ahead of" } else { "behind" };
        text += &format!("its clock is {} s {way} the one of this machine\n", ahead.abs());
    }
    let header = [
        "PARTITION",
        "STATE",
        "NODES",
        "OUT",
        "CPUS",
        "USED",
        "RUNNING",
        "WAITING",
        "CPUS WAITED FOR",
        "LONGEST WAIT",
    ];
    let rows = cluster.partitions.iter().map(|(name, partition)| {
        let nodes: Vec<_> = partition.nodes.iter().filter_map(|node| cluster.nodes.get(node)).collect();
        let out = nodes.iter().filter(|node| !node.is_usable()).count();
        let inside = |state: &JobState| {
            let jobs = cluster.jobs.values().filter(|job| job.state == *state);
            jobs.filter(|job| job.partitions.iter().any(|other| other == name)).collect::<Vec<_>>()
        };
        let waiting = inside(&JobState::Pending);
        let longest = waiting.iter().map(|job| configuration.now - job.submitted).max();
        vec![
            format!("{name}{}", if partition.is_default { "*" } else { "" }),
            partition.state.clone(),
            nodes.len().to_string(),
            out.to_string(),
            nodes.iter().map(|node| node.cpus).sum::<u64>().to_string(),
            nodes.iter().map(|node| node.cpus_used).sum::<u64>().to_string(),
            inside(&JobState::Running).len().to_string(),
            waiting.len().to_string(),
            waiting.iter().map(|job| job.cpus).sum::<u64>().to_string(),
            longest.map_or_else(|| "-".to_owned(), seconds),
        ]
    });
    text += &table(&header, &header[2..], rows);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for job in cluster.jobs.values().filter(|job| job.state == JobState::Pending) {
        *reasons.entry(job.reason.as_deref().unwrap_or("none")).or_default() += 1;
    }
    if !reasons.is_empty() {
        let each: Vec<String> = reasons.iter().map(|(reason, jobs)| format!("{reason} {jobs}")).collect();
        text += &format!("reasons of waiting jobs: {}\n", each.join(", "));
    }
    for (name, reservation) in &cluster.reservations {
        let [begin, end] = [reservation.begin, reservation.end].map(instant);
        text += &format!(
            "reservation {name}: {} from {begin} to {end}\n",
            counted(reservation.nodes.len() as u64, "node")
        );
    }
    text
}

fn accounting(args: &SlurmLogArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    let mut options = args.options();
    // The accounting does not have the size of the machine.
    match Cluster::read(&slurm) {
        Ok(cluster) => {
            options.procs = Some(cluster.nodes.values().map(|node| node.cpus).sum::<u64>().into());
            options.nodes = u32::try_from(cluster.nodes.len()).ok();
        }
        Err(error) => note!("warning: the log has no size of the machine: {error}"),
    }
    write(&log(&slurm, args.period.since, args.period.until, &options)?, &args.written)
}

/// The document of `twin`.
#[derive(Serialize)]
struct TwinDoc {
    #[serde(flatten)]
    twin: Twin,
    #[serde(flatten)]
    audit: TwinAudit,
    cycles: CycleAudit,
    /// Jobs that the simulation left out: without processors, or wider than the cluster is now.
    not_simulated: u64,
}

/// The outcome of jobs in a simulation, by their place in the log.
#[derive(Default)]
struct Outcomes {
    starts: BTreeMap<JobNumber, Time>,
    refused: BTreeSet<JobNumber>,
}

impl Observer for Outcomes {
    fn finished(&mut self, job: &Finished) -> std::io::Result<()> {
        self.starts.insert(job.request.number, job.start);
        Ok(())
    }

    fn refused(&mut self, _now: Time, request: &Request, _why: Refusal) -> std::io::Result<()> {
        self.refused.insert(request.number);
        Ok(())
    }
}

/// A job of the accounting that has ended, and its start in a simulation.
struct Replayed {
    /// The record of the accounting.
    record: Record,
    submit: Time,
    /// The recorded start.
    start: Time,
    /// The start in the simulation; none if the policy refused the job.
    simulated: Option<Time>,
}

/// A simulation of the accounting.
struct Replay {
    /// The jobs that became eligible in the period.
    jobs: Vec<Replayed>,
    /// All jobs of the accounting, and those of the cluster that have not ended.
    recorded: Vec<RecordedJob>,
    /// The jobs of the period that were not simulated.
    not_simulated: u64,
    /// The seconds since 1970 at the instant 0.
    begin: i64,
}

impl Replay {
    /// Simulates the jobs of the accounting that have ended, from their eligibility on.
    ///
    /// Those of a day before the period too, so that the cluster is not idle at its begin.
    fn new(
        slurm: &Slurm,
        period: &PeriodArgs,
        cluster: &Cluster,
        policy: &PolicySpec,
    ) -> anyhow::Result<Replay> {
        let options =
            SlurmOptions { submit_at: SubmitAt::Eligible, keep_ids: true, ..SlurmOptions::default() };
        let from = period.since.saturating_sub(WARM_UP).unwrap_or(period.since);
        let mut log = log(slurm, from, period.until, &options)?;
        // The runs of a requeued job have one id.
        for (place, record) in (1..).zip(&mut log.records) {
            record.set(Field::Job, place);
        }
        let mut text = vec![];
        log.write(&mut text)?;
        // Slurm ends a job some time after its limit. The real runtime counts.
        let jobs = JobOptions { overrun: Overrun::Run, ..JobOptions::default() };
        let procs = cluster.nodes.values().map(|node| node.cpus).sum::<u64>();
        let options = RunOptions { procs: Some(Procs::new(procs)), jobs, ..RunOptions::default() };
        let setup = RunSetup::new(Trace::memory("the accounting", text), options)?;
        let mut outcomes = Outcomes::default();
        setup.outcome(policy, false, &mut [&mut outcomes])?;
        let begin = setup.dates().map_or(0, |dates| dates.start());
        let mut replay = Replay { jobs: vec![], recorded: vec![], not_simulated: 0, begin };
        replay.recorded.extend(log.records.iter().filter_map(recorded));
        replay.recorded.extend(unfinished(cluster, begin));
        for record in log.records {
            let known = |field| Some(record.get(field)).filter(|value| *value >= 0);
            let times = known(Field::Submit)
                .and_then(Time::from_secs)
                .zip(known(Field::Wait).and_then(Span::from_secs));
            let Some((submit, wait)) = times else { continue };
            if begin.saturating_add(submit.secs()) < period.since.as_second() {
                continue;
            }
            let number = record.get(Field::Job);
            let simulated = outcomes.starts.get(&number).copied();
            if simulated.is_none() && !outcomes.refused.contains(&number) {
                replay.not_simulated += 1;
                continue;
            }
            replay.jobs.push(Replayed { record, submit, start: submit + wait, simulated });
        }
        Ok(replay)
    }
}

/// Returns a job of the accounting that has ended, if its times are known.
fn recorded(record: &Record) -> Option<RecordedJob> {
    let known = |field| Some(record.get(field)).filter(|value| *value >= 0);
    let number = |field| u32::try_from(record.get(field)).ok();
    let submit = Time::from_secs(known(Field::Submit)?)?;
    let start = submit + Span::from_secs(known(Field::Wait)?)?;
    let runtime = Span::from_secs(known(Field::Runtime)?)?;
    let estimate = known(Field::Estimate).and_then(Span::from_secs).unwrap_or(runtime).max(Span::TICK);
    let procs = known(Field::Allocated).filter(|procs| *procs > 0)?.unsigned_abs();
    let request = Request::new(record.get(Field::Job), submit, estimate, Resources::cpus(procs));
    let (user, group, queue) = (number(Field::User), number(Field::Group), number(Field::Queue));
    let request = Request { user, group, queue, ..request };
    Some(RecordedJob { request, start: Some(start), end: Some(start + runtime) })
}

/// Returns the jobs of a cluster that have not ended and wait for nothing but processors, at instants after `begin`.
fn unfinished(cluster: &Cluster, begin: i64) -> impl Iterator<Item = RecordedJob> {
    let jobs =
        cluster.jobs.values().filter(|job| job.state != JobState::Pending || job.waits_for_processors());
    // The jobs of the accounting have positive numbers.
    (1..).zip(jobs).filter_map(move |(number, job)| {
        let at = |seconds: i64| Time::from_secs(seconds.saturating_sub(begin));
        let estimate = Span::from_secs(job.limit.seconds())?.max(Span::TICK);
        let request = Request::new(-number, at(job.submitted)?, estimate, Resources::cpus(job.cpus.max(1)));
        let start = job.start.filter(|_| job.state != JobState::Pending).and_then(at);
        Some(RecordedJob { request: Request { user: Some(job.user), ..request }, start, end: None })
    })
}

/// Returns a line on the jobs that were not simulated, if there are any.
fn left_out_text(not_simulated: u64) -> String {
    if not_simulated == 0 {
        return String::new();
    }
    format!(
        "not simulated: {} without processors, or wider than the cluster is now\n",
        counted(not_simulated, "job")
    )
}

fn shadow(args: &SlurmShadowArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    let cluster = Cluster::read(&slurm)?;
    let Replay { jobs, not_simulated, begin, .. } =
        Replay::new(&slurm, &args.period, &cluster, &args.policy)?;
    let micros = |at: Time| begin.saturating_mul(1_000_000).saturating_add(at.ticks());
    let job = |job: Replayed| ComparedJob {
        submitted: micros(job.submit),
        uid: u32::try_from(job.record.get(Field::User)).unwrap_or(u32::MAX),
        procs: job.record.get(Field::Allocated).unsigned_abs(),
        start: Some(micros(job.start)),
        shadow_start: job.simulated.map(micros),
        runtime: Some(job.record.get(Field::Runtime).saturating_mul(1_000_000)),
        refused: job.simulated.is_none(),
    };
    let until = args.period.until.unwrap_or_else(Timestamp::now);
    let names = [args.policy.to_string(), format!("Slurm {}", cluster.configuration.version)];
    let jobs = jobs.into_iter().map(job);
    let view = of_jobs(cluster.configuration.cluster.clone(), names, jobs, [args.period.since, until]);
    if args.json {
        return print_json(&view);
    }
    let unfinished = cluster.jobs.values().filter(|job| job.state != JobState::Pending).count() as u64;
    if unfinished > 0 && args.period.until.is_none() {
        note!("warning: {} that have not ended are not in the shadow", counted(unfinished, "job"));
    }
    print(&(shadow_text(&view) + &left_out_text(not_simulated)))
}

fn twin(args: &SlurmTwinArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    let cluster = Cluster::read(&slurm)?;
    let twin = match &args.policy {
        Some(policy) => Twin { policy: policy.to_string(), left_out: vec![] },
        None => cluster.twin(false),
    };
    let policy: PolicySpec = twin.policy.parse()?;
    let Replay { jobs, recorded, not_simulated, begin } =
        Replay::new(&slurm, &args.period, &cluster, &policy)?;
    let starts = jobs.iter().filter_map(|job| Some((job.submit, job.start, job.simulated?)));
    let cycle = cluster.configuration.cycle();
    let audit = TwinAudit::new(&starts.collect::<Vec<_>>(), cycle);
    let since = Time::from_secs(args.period.since.as_second() - begin).unwrap_or(Time::ZERO);
    let procs = cluster.nodes.values().map(|node| node.cpus).sum();
    let cycles = CycleAudit::new(&recorded, procs, &policy, cycle, since, MOST_STATES);
    let document = TwinDoc { twin, audit, cycles, not_simulated };
    if args.json { print_json(&document) } else { print(&twin_text(&document)) }
}

fn twin_text(TwinDoc { twin, audit, cycles, not_simulated }: &TwinDoc) -> String {
    let mut text = format!("policy: {}\n", twin.policy);
    for what in &twin.left_out {
        text += &format!("not in the twin: {what}\n");
    }
    text += &left_out_text(*not_simulated);
    let share = |part: u64, of: u64| {
        if of == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) }
    };
    text += &format!(
        "from {} of the cluster, two cycles ahead: {} of {} recorded starts are the policy's too, and {} of {} starts by the policy are recorded\n",
        counted(cycles.states, "state"),
        share(cycles.foreseen, cycles.starts),
        cycles.starts,
        share(cycles.confirmed, cycles.simulated),
        cycles.simulated,
    );
    text + &format!(
        "{}, of which {} waited for more than a cycle\n\
         starts within a cycle ({}): {}; of those that waited: {}\n\
         difference of the starts: median {} s, of 95 % at most {} s\n\
         mean wait: {:.0} s in the accounting, {:.0} s under the twin\n",
        counted(audit.jobs, "job"),
        audit.waited,
        seconds(audit.cycle),
        share(audit.close, audit.jobs),
        share(audit.close_of_waited, audit.waited),
        audit.median_difference,
        audit.difference_95,
        audit.recorded_mean_wait,
        audit.twin_mean_wait,
    )
}

/// A line of `watch`.
#[derive(Serialize)]
struct WatchLine<'a> {
    at: Timestamp,
    #[serde(flatten)]
    change: &'a Change,
}

fn watch(args: &SlurmWatchArgs) -> anyhow::Result<()> {
    let mut poller = Poller::new(args.cluster.slurm());
    let clock = Stopwatch::start();
    let mut first = true;
    loop {
        match poller.poll() {
            Ok(changes) => {
                let mut output = std::io::stdout().lock();
                for change in &changes {
                    let line = serde_json::to_string(&WatchLine { at: Timestamp::now(), change })?;
                    writeln!(output, "{line}")?;
                }
                output.flush()?;
            }
            // A restart of the controller is no end.
            Err(error) if !first => {
                note!("warning: {error}; the next try is in {} s", poller.pause().as_secs());
            }
            Err(error) => return Err(error.into()),
        }
        first = false;
        if args.period.is_some_and(|period| clock.elapsed() + poller.pause() > period) {
            return Ok(());
        }
        sleep(poller.pause());
    }
}

/// Returns a forecaster that learned from the accounting, if there is one.
fn learned(slurm: &Slurm, days: i64) -> Forecaster {
    let mut forecaster = Forecaster::default();
    if days == 0 {
        return forecaster;
    }
    let since = Timestamp::now().saturating_sub(SignedDuration::from_hours(24 * days)).unwrap_or_default();
    let options = SlurmOptions { keep_ids: true, lenient: true, ..SlurmOptions::default() };
    match log(slurm, since, None, &options) {
        Ok(log) => drop(learn(&mut forecaster, &log)),
        Err(SlurmError::Accounting(_)) => {
            note!("warning: the accounting has no ended jobs: time limits count as runtimes");
        }
        Err(error) => note!("warning: without the accounting, time limits count as runtimes: {error}"),
    }
    forecaster
}

fn forecast(args: &SlurmForecastArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let FutureArgs { policy, history, draws } = &args.futures;
    let mut cluster = Cluster::read(&slurm)?;
    if let Some(job) = &args.job
        && !cluster.jobs.contains_key(job)
    {
        bail!("job {job}: the cluster has no such job that has not ended");
    }
    let forecaster = learned(&slurm, *history);
    if *history > 0 {
        // The accounting may have taken a while.
        cluster = Cluster::read(&slurm)?;
    }
    let mut forecasts = forecasts(&cluster, &forecaster, policy.as_ref(), *draws);
    if let Some(job) = &args.job {
        if let Some(why) = forecasts.left_out.get(job) {
            bail!("job {job} has no forecast: {why}");
        }
        forecasts.jobs.retain(|forecast| forecast.job == *job);
        if forecasts.jobs.is_empty() {
            bail!("job {job} has no forecast: it does not wait");
        }
        forecasts.left_out.clear();
    }
    if args.json {
        return print_json(&forecasts);
    }
    let header = ["JOB", "CPUS", "LIKELY", "80 %: BY", "95 %: BY", "SLURM EXPECTS"];
    let row = |forecast: &JobForecast| {
        let cpus = cluster.jobs.get(&forecast.job).map_or(0, |job| job.cpus);
        let times = [forecast.median, forecast.by_80, forecast.by_95].map(instant);
        let slurm = forecast.slurm.map_or_else(|| "-".to_owned(), instant);
        [forecast.job.clone(), cpus.to_string()].into_iter().chain(times).chain([slurm]).collect()
    };
    let mut text = table(&header, &header[..2], forecasts.jobs.iter().map(row));
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for why in forecasts.left_out.values() {
        *reasons.entry(why).or_default() += 1;
    }
    for (why, jobs) in reasons {
        text += &format!("without a forecast: {}: {why}\n", counted(jobs, "job"));
    }
    print(&text)
}

fn audit(args: &SlurmAuditArgs) -> anyhow::Result<()> {
    let slurm = args.cluster.slurm();
    let FutureArgs { policy, history, draws } = &args.futures;
    let mut audit = Audit::new(learned(&slurm, *history));
    let mut poller = Poller::new(slurm.clone());
    let starts = |jobs: &[String]| Cluster::starts(&slurm, jobs);
    let clock = Stopwatch::start();
    let shown = std::io::stderr().is_terminal();
    let mut all: Vec<Audited> = vec![];
    poller.poll()?;
    loop {
        if let Some(cluster) = poller.cluster() {
            all.extend(audit.follow(cluster, policy.as_ref(), *draws, &starts));
        }
        if shown {
            eprint!("\r{} audited, {} left ", all.len(), seconds(left(args.period, &clock)));
        }
        if clock.elapsed() + poller.pause() > args.period {
            break;
        }
        sleep(poller.pause());
        if let Err(error) = poller.poll() {
            note!("warning: {error}");
        }
    }
    if shown {
        eprintln!();
    }
    if let Some(path) = &args.jobs {
        write_rows(path, &all)?;
    }
    let summary = audit.summary();
    if args.json { print_json(&summary) } else { print(&audit_text(&summary)) }
}

fn left(period: Duration, clock: &Stopwatch) -> i64 {
    i64::try_from(period.saturating_sub(clock.elapsed()).as_secs()).unwrap_or(i64::MAX)
}

fn write_rows(path: &Path, rows: &[Audited]) -> anyhow::Result<()> {
    let written = AtomicFile::write(path, |output| {
        writeln!(output, "job,made,median,by_80,by_95,slurm,start")?;
        rows.iter().try_for_each(|Audited { forecast, start }| {
            let JobForecast { job, made, median, by_80, by_95, slurm } = forecast;
            let slurm = slurm.map_or_else(String::new, |slurm| slurm.to_string());
            writeln!(output, "{job},{made},{median},{by_80},{by_95},{slurm},{start}")
        })
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn audit_text(summary: &AuditSummary) -> String {
    let AuditSummary { jobs, kept, mean_error, with_slurm, mean_error_of_these, slurm_mean_error } = summary;
    if *jobs == 0 {
        return "no job with a forecast has started in this time\n".to_owned();
    }
    let share = |kept: u64| 100.0 * kept as f64 / *jobs as f64;
    let time =
        |seconds: &Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.0} s"));
    let [by_50, by_80, by_95] = kept.map(share);
    let mut text = format!(
        "{} audited\nstarted by the median: {by_50:.1} %; by the bound of 80 %: {by_80:.1} %; of 95 %: {by_95:.1} %\n\
         mean distance of the median from the start: {}\n",
        counted(*jobs, "job"),
        time(mean_error)
    );
    if *with_slurm > 0 {
        text += &format!(
            "of the {} for which Slurm expected a start: median {}, Slurm {}\n",
            counted(*with_slurm, "job"),
            time(mean_error_of_these),
            time(slurm_mean_error)
        );
    }
    text
}

fn seconds(seconds: i64) -> String {
    duration(Span::from_secs(seconds.max(0)).unwrap_or(Span::MAX))
}

fn instant(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| "-".to_owned(), local)
}
