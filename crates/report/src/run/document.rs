//! The document of a run, as `--json` prints it. Its schema is a contract: docs/simulate.schema.json.

use std::collections::BTreeMap;

use miserly_sim::{Batches, Distribution, EXACT_MOST, Early, Measures, Metrics, SKETCH_ERROR, Suspended};
use miserly_workload::Counts;
use serde::Serialize;

use super::details::{Details, Guarantees, Uncertainty};
use super::groups::{Group, breakdowns};
use super::machine::MachineDoc;
use super::slicing::{BatchSettings, BatchesDoc, SlicingDoc};

/// Everything that is told of one run. Only `timing` differs between two runs of the same.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The version of the program.
    pub version: &'static str,
    /// The policy, in its written form.
    pub policy: String,
    /// How the run was set.
    pub settings: Settings,
    /// The log.
    pub trace: TraceDoc,
    /// What became of its lines.
    pub jobs: Jobs,
    /// The measures per job.
    pub metrics: MetricsDoc,
    /// How exact the percentiles are.
    pub percentiles: PercentileDoc,
    /// How sure the means are.
    pub uncertainty: Uncertainty,
    /// Busy processor-seconds over processors x makespan, 0 to 1.
    pub utilization: Option<f64>,
    /// The share of the machine that was idle while some job waited, 0 to 1.
    pub loss_of_capacity: Option<f64>,
    /// The share of the machine that was kept idle for a job with a reservation of the whole host, 0 to 1.
    pub kept_idle: Option<f64>,
    /// The work that was done and lost as a share of the machine, 0 to 1: of jobs that went back into the queue.
    pub lost_work: Option<f64>,
    /// How often jobs were suspended.
    pub suspensions: u64,
    /// What that came to, where anybody was suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<SuspendedDoc>,
    /// From the first submission to the last end, seconds.
    pub makespan: Option<f64>,
    /// Jobs ended per hour of the makespan.
    pub throughput_per_hour: Option<f64>,
    /// Jobs waiting.
    pub queue_length: QueueLength,
    /// Promises made, kept, broken.
    pub promises: Promises,
    /// How good promises were as forecasts.
    pub guarantees: Guarantees,
    /// What was done ahead of starts, where jobs could run so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early: Option<EarlyDoc>,
    /// What became of jobs where time was sliced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slicing: Option<SlicingDoc>,
    /// The batches by termination, where the run was measured in these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchesDoc>,
    /// The measures by group, where they were asked for: by what, then the groups.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, Vec<Group>>,
    /// What is told only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// How long the run took. Differs from run to run.
    pub timing: Timing,
    /// The batches behind `uncertainty`, for comparisons.
    #[serde(skip)]
    pub batch_sums: Batches,
}

/// How a run was set.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The machine's processors.
    pub procs: u32,
    /// The machine.
    pub machine: MachineDoc,
    /// The convention for events of one instant.
    pub instants: String,
    /// What happens to a job at the log's own estimate.
    pub overrun: String,
    /// What the policy was told of the runtimes.
    pub estimates: String,
    /// Which field is the size.
    pub procs_field: String,
    /// The filters.
    pub drop: Vec<String>,
    /// Only jobs submitted then or later, seconds.
    pub from: Option<i64>,
    /// Only jobs submitted before then, seconds.
    pub to: Option<i64>,
    /// Only the jobs of these users, if any is named.
    pub users: Vec<u32>,
    /// Only the jobs of these queues, if any is named.
    pub queues: Vec<u32>,
    /// By how much the load was raised.
    pub scale_load: f64,
    /// Whether all jobs were submitted at time 0.
    pub offline: bool,
    /// The warm-up, seconds.
    pub warmup: i64,
    /// Which terminations were measured, if not all jobs behind the warm-up were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchSettings>,
    /// The seed of random draws.
    pub seed: u64,
    /// What ran beside the windows of jobs, on a machine with pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filling: Option<FillingDoc>,
    /// Whether malformed lines were skipped.
    pub lenient: bool,
}

/// A log.
#[derive(Clone, Debug, Serialize)]
pub struct TraceDoc {
    /// Its file name.
    pub name: String,
    /// The SHA-256 of its bytes as they are stored.
    pub sha256: String,
}

/// What became of the lines of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Jobs {
    /// Job lines.
    pub read: u64,
    /// Jobs that ran.
    pub simulated: u64,
    /// Jobs among them behind the warm-up.
    pub measured: u64,
    /// Measured jobs that started in the instant of their submission, and not for a quantum.
    pub placed_at_once: u64,
    /// Lines left out and jobs that the policy refused, by reason: `read` = `simulated` + their sum. Jobs that had not ended with the
    /// last batch, where the run was over then, are `unfinished`.
    pub skipped: BTreeMap<String, u64>,
    /// Jobs that were killed at the log's estimate.
    pub killed_at_estimate: u64,
    /// Jobs submitted before one above them in the log; they were sorted.
    pub out_of_order: u64,
    /// Jobs submitted whose estimate the log does not know: their runtime stands for it.
    pub without_estimate: u64,
}

/// The measures of the jobs that were measured. Times in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct MetricsDoc {
    /// Time in the queue.
    pub wait: Measure,
    /// Time in the system.
    pub response: Measure,
    /// Response / runtime, over jobs with a runtime above 0.
    pub slowdown: Measure,
    /// (wait + max(run, 10 s)) / max(run, 10 s).
    pub bounded_slowdown: Measure,
    /// max(1, response / max(run, 10 s)).
    pub bounded_slowdown_standard: Measure,
    /// Response / (processors x max(run, 10 s)).
    pub width_slowdown: Measure,
}

/// A measure; null where there is nothing to measure.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measure {
    /// How many jobs it is over.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The nearest-rank median.
    pub median: Option<f64>,
    /// The nearest-rank 95th percentile.
    pub p95: Option<f64>,
    /// The nearest-rank 99th percentile.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// How exact the percentiles are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PercentileDoc {
    /// `exact`, or `sketch` beyond a million measured jobs.
    pub method: &'static str,
    /// How far a percentile may be from the true one, relative to it.
    pub relative_error: f64,
}

/// The queue over time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueLength {
    /// Jobs waiting, on the average over the makespan.
    pub mean: Option<f64>,
    /// Jobs waiting, at most.
    pub max: usize,
}

/// Promises of a latest start.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Promises {
    /// Jobs that were promised one.
    pub made: u64,
    /// Jobs among them whose promise was never broken: they started by then.
    pub kept: u64,
    /// The others: at some time their promise had to be taken back, for a cause outside the policy. A job may
    /// have started by what it was first told all the same.
    pub broken: u64,
}

/// What ran beside the windows of jobs.
#[derive(Clone, Debug, Serialize)]
pub struct FillingDoc {
    /// `by-policy`: jobs ran ahead of their starts if the policy of a queue needs it; `on`, `off`: they did, or not.
    pub early: &'static str,
    /// How long before their starts they were parked, seconds.
    pub parking_lead: Option<i64>,
    /// Interactive work: a process with its parameters, or a file with the SHA-256 of its bytes.
    pub interactive: Option<String>,
}

/// What was done ahead of starts, on what was idle.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EarlyDoc {
    /// Jobs that ran ahead of their starts.
    pub jobs: u64,
    /// Jobs among them that were done before.
    pub done: u64,
    /// For how long they ran so, all together, seconds.
    pub time: f64,
    /// The work that was done so, processor-seconds.
    pub work: f64,
    /// That as a share of all work, 0 to 1.
    pub share: Option<f64>,
}

impl EarlyDoc {
    /// As it was measured.
    pub fn of(early: &Early) -> EarlyDoc {
        let Early { jobs, done, work, ran, .. } = *early;
        EarlyDoc { jobs, done, time: ran.as_secs_f64(), work: work as f64 / 1e6, share: early.share() }
    }
}

/// What suspension came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SuspendedDoc {
    /// Jobs that were suspended at least once.
    pub jobs: u64,
    /// Suspensions of one job, at most.
    pub most: u64,
    /// For how long jobs were suspended, all together, seconds.
    pub time: f64,
    /// For how long they were written out and read back, all together, seconds.
    pub overhead: f64,
    /// What they held meanwhile as a share of the machine, 0 to 1.
    pub share: Option<f64>,
}

impl SuspendedDoc {
    fn of(metrics: &Metrics) -> Option<SuspendedDoc> {
        let Suspended { count, jobs, most, time, overhead, .. } = metrics.suspended;
        let (time, overhead) = (time as f64 / 1e6, overhead as f64 / 1e6);
        (count > 0).then(|| SuspendedDoc { jobs, most, time, overhead, share: metrics.overhead() })
    }
}

/// How long the run took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Timing {
    /// Wall-clock seconds, reading included.
    pub seconds: f64,
    /// Simulated jobs per second.
    pub jobs_per_second: f64,
}

impl Outcome {
    /// What a run came to.
    pub fn new(
        policy: String,
        settings: Settings,
        trace: TraceDoc,
        counts: &Counts,
        metrics: &mut Metrics,
        seconds: f64,
    ) -> Outcome {
        let (made, broken) = metrics.promises();
        let exact = metrics.measures.wait.is_exact();
        let (queue_mean, queue_max) = metrics.queue_length();
        Outcome {
            version: env!("CARGO_PKG_VERSION"),
            policy,
            settings,
            trace,
            jobs: Jobs {
                read: counts.read,
                simulated: metrics.simulated(),
                measured: metrics.measured(),
                placed_at_once: metrics.placed_at_once(),
                skipped: skipped(counts, metrics),
                killed_at_estimate: metrics.killed_at_estimate(),
                out_of_order: counts.out_of_order,
                without_estimate: counts.without_estimate,
            },
            metrics: MetricsDoc::of(&mut metrics.measures),
            percentiles: PercentileDoc {
                method: if exact { "exact" } else { "sketch" },
                relative_error: if exact { 0.0 } else { SKETCH_ERROR },
            },
            uncertainty: Uncertainty::of(&metrics.batches),
            utilization: metrics.utilization(),
            loss_of_capacity: metrics.loss_of_capacity(),
            kept_idle: metrics.kept_idle(),
            lost_work: metrics.lost_work(),
            suspensions: metrics.suspended.count,
            suspended: SuspendedDoc::of(metrics),
            makespan: metrics.makespan().map(miserly_core::Span::as_secs_f64),
            throughput_per_hour: metrics.throughput_per_hour(),
            queue_length: QueueLength { mean: queue_mean, max: queue_max },
            promises: Promises { made, kept: made - broken, broken },
            guarantees: Guarantees::of(&mut metrics.guarantees),
            early: None,
            slicing: None,
            batches: None,
            by: breakdowns(metrics),
            details: None,
            timing: Timing { seconds, jobs_per_second: metrics.simulated() as f64 / seconds.max(1e-9) },
            batch_sums: metrics.batches.clone(),
        }
    }

    /// A remark for people where the warm-up left nothing to measure.
    pub fn nothing_measured(&self) -> Option<String> {
        (self.jobs.measured == 0 && self.jobs.simulated > 0).then(|| {
            "nothing is measured: every job was submitted within the warm-up; give a shorter --warmup".into()
        })
    }

    /// A remark for people where the percentiles are not exact.
    pub fn percentile_note(&self) -> Option<String> {
        (self.percentiles.relative_error > 0.0).then(|| {
            format!(
                "percentiles within {:.2} % (a sketch: over {EXACT_MOST} jobs were measured)",
                100.0 * self.percentiles.relative_error
            )
        })
    }
}

/// The lines that gave no job, and the jobs that the policy refused.
fn skipped(counts: &Counts, metrics: &Metrics) -> BTreeMap<String, u64> {
    let refused =
        metrics.refused_jobs().iter().map(|(why, jobs)| (format!("refused_{}", why.as_str()), *jobs));
    let mut skipped: BTreeMap<String, u64> = counts.skipped.clone().into_iter().chain(refused).collect();
    if metrics.window.is_some() {
        let gone = metrics.simulated() + skipped.values().sum::<u64>();
        let unfinished = counts.read.saturating_sub(gone);
        skipped.extend((unfinished > 0).then(|| ("unfinished".into(), unfinished)));
    }
    skipped
}

impl MetricsDoc {
    /// The figures of each measure.
    pub fn of(measures: &mut Measures) -> MetricsDoc {
        MetricsDoc {
            wait: Measure::of(&mut measures.wait),
            response: Measure::of(&mut measures.response),
            slowdown: Measure::of(&mut measures.slowdown),
            bounded_slowdown: Measure::of(&mut measures.bounded_slowdown),
            bounded_slowdown_standard: Measure::of(&mut measures.bounded_slowdown_standard),
            width_slowdown: Measure::of(&mut measures.width_slowdown),
        }
    }
}

impl Measure {
    /// The figures of one.
    pub(super) fn of(measured: &mut Distribution) -> Measure {
        let miserly_sim::Summary { mean, median, p95, p99, max } = measured.summary();
        Measure { count: measured.count(), mean, median, p95, p99, max }
    }
}
