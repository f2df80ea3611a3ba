//! The complete results of one run.

use std::collections::BTreeMap;

use miserly_policies::backfill::policies::EASY;
use miserly_sim::{Batches, ClassUse, DeviceUse, Metrics, OpportunisticTotals, SKETCH_ERROR, Suspended};
use miserly_workload::{LineCounts, LogDates};
use serde::{Deserialize, Serialize};

use super::details::{DetailsDoc, GuaranteesDoc, UncertaintyDoc};
use super::groups::{GroupDoc, breakdowns};
use super::measures::MetricsDoc;
use super::settings::SettingsDoc;
use super::slicing::{BatchesDoc, SlicingDoc};

/// The complete results of one run. Repeated runs differ only in `timing`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RunDoc {
    /// Version of the program.
    pub version: String,
    /// Policy in its written form.
    pub policy: String,
    /// Settings of the run.
    pub settings: SettingsDoc,
    /// The log.
    pub trace: TraceDoc,
    /// Counts of the log's lines and jobs.
    pub jobs: JobCountsDoc,
    /// Measures of the measured jobs.
    pub metrics: MetricsDoc,
    /// Accuracy of the percentiles.
    pub percentiles: PercentileDoc,
    /// Uncertainty of the means.
    pub uncertainty: UncertaintyDoc,
    /// Busy processor-seconds over processors x makespan, 0 to 1.
    pub utilization: Option<f64>,
    /// The same from the first submission to the last one, without the end of the schedule. Null if they are one instant.
    #[serde(default)]
    pub utilization_to_last_submission: Option<f64>,
    /// Share of the machine that was idle while a job waited, 0 to 1.
    pub loss_of_capacity: Option<f64>,
    /// Share of the machine kept idle for a job with a reservation of the whole host, 0 to 1.
    pub kept_idle: Option<f64>,
    /// Share of the machine spent on lost work of requeued jobs, 0 to 1.
    pub lost_work: Option<f64>,
    /// Number of suspensions.
    pub suspensions: u64,
    /// Results of suspension, if any job was suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<SuspensionDoc>,
    /// Time from the first submission to the last end, in seconds.
    pub makespan: Option<f64>,
    /// Ended jobs per hour of the makespan.
    pub throughput_per_hour: Option<f64>,
    /// Standard deviation of the jobs ended per hour, over the whole hours of the log in the makespan.
    #[serde(default)]
    pub throughput_deviation: Option<f64>,
    /// Mean response in seconds, weighted by processors x runtime.
    #[serde(default)]
    pub area_weighted_response: Option<f64>,
    /// Mean slowdown, weighted by processors x runtime.
    #[serde(default)]
    pub area_weighted_slowdown: Option<f64>,
    /// Number of waiting jobs.
    pub queue_length: QueueLengthDoc,
    /// Promises made, kept and broken.
    pub promises: PromisesDoc,
    /// How often a start was promised or planned, for the first time or another one.
    pub planned_starts: u64,
    /// Quality of promises as forecasts.
    pub guarantees: GuaranteesDoc,
    /// How the recorded schedule differs from one that can be simulated; only that schedule has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordDoc>,
    /// Results of opportunistic execution, if it was enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<OpportunisticDoc>,
    /// Use of the GPUs, of a machine with typed GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<GpuUseDoc>,
    /// Results of time slicing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slicing: Option<SlicingDoc>,
    /// Batches by termination, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<BatchesDoc>,
    /// Measures by group, if requested: grouping, then groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, Vec<GroupDoc>>,
    /// Parts that are present only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<DetailsDoc>,
    /// Duration of the run, which differs between repetitions. Zero in a document without it.
    #[serde(default)]
    pub timing: TimingDoc,
    /// Batches behind `uncertainty`, for comparisons. Empty in a document that was read back.
    #[serde(skip)]
    pub batch_sums: Batches,
}

/// A log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TraceDoc {
    /// File name.
    pub name: String,
    /// SHA-256 of the stored bytes.
    pub sha256: String,
    /// Dates of the run, for tables and charts. Documents have seconds of the log.
    #[serde(skip)]
    pub dates: Option<LogDates>,
}

/// Counts of the lines and jobs of a log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct JobCountsDoc {
    /// Job lines.
    pub read: u64,
    /// Jobs that ran.
    pub simulated: u64,
    /// Jobs that ran after the warm-up.
    pub measured: u64,
    /// Measured jobs that started at the instant of their submission, except those started for a
    /// quantum.
    pub started_immediately: u64,
    /// Excluded lines and rejected jobs by reason: `read` = `simulated` + their sum.
    ///
    /// `unfinished` counts the jobs that had not ended with the last batch, if that ended the run.
    pub skipped: BTreeMap<String, u64>,
    /// Jobs killed at the log's estimate.
    pub killed_at_estimate: u64,
    /// Jobs submitted before a preceding line of the log. They were sorted.
    pub out_of_order: u64,
    /// Submitted jobs without an estimate in the log. Their runtime replaces it.
    pub without_estimate: u64,
    /// Lines with more than eighteen fields. The further ones are ignored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub extra_fields: u64,
    /// Lines with fewer than eighteen fields. The missing ones are unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_fields: u64,
    /// Lines with a whole number written as a decimal, such as 30.0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub decimals: u64,
    /// Submitted jobs without a user.
    #[serde(default)]
    pub without_user: u64,
    /// Submitted jobs without a group.
    #[serde(default)]
    pub without_group: u64,
    /// Submitted jobs without memory, requested or used.
    #[serde(default)]
    pub without_memory: u64,
}

/// Returns whether a count is left out of the document.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The accuracy of the percentiles.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PercentileDoc {
    /// `exact`, or `sketch` beyond a million measured jobs.
    pub method: String,
    /// Largest relative error of a percentile.
    pub relative_error: f64,
}

/// The wait queue over time.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct QueueLengthDoc {
    /// Mean number of waiting jobs over the makespan.
    pub mean: Option<f64>,
    /// Maximum number of waiting jobs.
    pub max: usize,
}

/// Promises of a latest start.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct PromisesDoc {
    /// Jobs with a promise.
    pub made: u64,
    /// Jobs whose promise was never broken: they started by then.
    pub kept: u64,
    /// Jobs whose promise was broken at some time, for a cause outside the policy.
    ///
    /// Such a job may still have started by its first promise.
    pub broken: u64,
}

/// How the recorded schedule of a log differs from one that can be simulated.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct RecordDoc {
    /// Share of the recorded work that the runs leave out because they end jobs at their estimates, 0 to 1.
    pub cut_work: f64,
    /// Most processors that jobs had at the same time.
    pub most_procs: u64,
    /// Share of the time from the first start to the last end in which jobs had more processors than the machine has,
    /// 0 to 1.
    pub over_time: f64,
}

impl RecordDoc {
    /// The share of the time up to which a log may have more jobs than fit. Times in whole seconds overlap.
    const MOST_OVER: f64 = 0.01;
    /// The share of the work that runs may cut beside a recorded schedule.
    const MOST_CUT: f64 = 0.02;

    /// Returns whether the jobs had more processors than the machine has, for more than a hundredth of the time.
    pub fn overfills(&self) -> bool {
        self.over_time > RecordDoc::MOST_OVER
    }

    /// Returns whether the runs cut more than two hundredths of the recorded work.
    pub fn is_cut(&self) -> bool {
        self.cut_work > RecordDoc::MOST_CUT
    }
}

/// The results of opportunistic execution on idle resources.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct OpportunisticDoc {
    /// Jobs that ran before their promised starts.
    pub jobs: u64,
    /// Jobs among them that finished before these.
    pub done: u64,
    /// Total opportunistic running time in seconds.
    pub time: f64,
    /// Opportunistic work in processor-seconds.
    pub work: f64,
    /// Opportunistic work as a share of all work, 0 to 1.
    pub share: Option<f64>,
}

impl OpportunisticDoc {
    /// Creates the document from the measured values.
    pub(crate) fn new(totals: &OpportunisticTotals) -> OpportunisticDoc {
        let OpportunisticTotals { jobs, done, work, ran, .. } = *totals;
        OpportunisticDoc {
            jobs,
            done,
            time: ran.as_secs_f64(),
            work: work as f64 / 1e6,
            share: totals.share(),
        }
    }
}

/// The use of typed GPUs, from the first submission to the last one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GpuUseDoc {
    /// Use of each type, in the order of the machine file.
    pub types: Vec<GpuTypeUseDoc>,
    /// Mean number of idle GPUs while a job waits that would fit if they were together.
    pub fragmented: f64,
    /// Mean number of waiting jobs with GPUs.
    pub waiting: f64,
}

/// The use of a type of GPUs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GpuTypeUseDoc {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of GPUs.
    pub gpus: u64,
    /// Mean number of allocated GPUs, as a share of them, 0 to 1.
    pub utilization: f64,
}

impl GpuUseDoc {
    /// Creates the document from the measured values, if the machine has typed GPUs.
    pub(crate) fn new(used: &DeviceUse) -> Option<GpuUseDoc> {
        let of_type = |of_type: ClassUse| GpuTypeUseDoc {
            utilization: of_type.busy / of_type.devices.max(1) as f64,
            kind: of_type.name,
            gpus: of_type.devices,
        };
        let types: Vec<GpuTypeUseDoc> = used.types().into_iter().map(of_type).collect();
        (!types.is_empty()).then(|| GpuUseDoc {
            types,
            fragmented: used.fragmented(),
            waiting: used.waiting(),
        })
    }

    /// Returns the utilization of all types together, 0 to 1.
    pub fn utilization(&self) -> f64 {
        let busy: f64 = self.types.iter().map(|of_type| of_type.utilization * of_type.gpus as f64).sum();
        busy / self.types.iter().map(|of_type| of_type.gpus).sum::<u64>().max(1) as f64
    }
}

/// The results of suspension.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct SuspensionDoc {
    /// Jobs that were suspended at least once.
    pub jobs: u64,
    /// Maximum number of suspensions of one job.
    pub most: u64,
    /// Total suspended time in seconds.
    pub time: f64,
    /// Total time of swapping out and in, in seconds.
    pub overhead: f64,
    /// Share of the machine held during swapping, 0 to 1.
    pub share: Option<f64>,
}

impl SuspensionDoc {
    fn new(metrics: &Metrics) -> Option<SuspensionDoc> {
        let Suspended { count, jobs, most, time, overhead, .. } = metrics.suspended;
        let (time, overhead) = (time as f64 / 1e6, overhead as f64 / 1e6);
        (count > 0).then(|| SuspensionDoc { jobs, most, time, overhead, share: metrics.overhead() })
    }
}

/// The duration of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct TimingDoc {
    /// Wall-clock seconds, including reading.
    pub seconds: f64,
    /// Simulated jobs per second.
    pub jobs_per_second: f64,
}

impl RunDoc {
    /// Returns whether the policy is EASY with its defaults, the baseline of comparisons.
    pub fn is_baseline(&self) -> bool {
        self.policy == EASY.name
    }

    /// Returns whether this schedule can be compared with simulated ones: not a record that overfills the machine, or has much
    /// work that the runs cut.
    pub fn is_comparable(&self) -> bool {
        !self.record.is_some_and(|record| record.overfills() || record.is_cut())
    }

    /// Creates the document of a run.
    pub(crate) fn new(
        policy: String,
        settings: SettingsDoc,
        trace: TraceDoc,
        counts: &LineCounts,
        metrics: &mut Metrics,
        seconds: f64,
    ) -> RunDoc {
        let (made, broken) = metrics.promises();
        let exact = metrics.measures.wait.is_exact();
        let (queue_mean, queue_max) = metrics.queue_length();
        RunDoc {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy,
            settings,
            trace,
            jobs: JobCountsDoc {
                read: counts.read,
                simulated: metrics.simulated(),
                measured: metrics.measured(),
                started_immediately: metrics.started_immediately(),
                skipped: skipped(counts, metrics),
                killed_at_estimate: metrics.killed_at_estimate(),
                out_of_order: counts.out_of_order,
                without_estimate: counts.without_estimate,
                extra_fields: counts.deviations.extra_fields,
                missing_fields: counts.deviations.missing_fields,
                decimals: counts.deviations.decimals,
                without_user: counts.without_user,
                without_group: counts.without_group,
                without_memory: counts.without_memory,
            },
            metrics: MetricsDoc::new(&mut metrics.measures),
            percentiles: PercentileDoc {
                method: if exact { "exact" } else { "sketch" }.to_owned(),
                relative_error: if exact { 0.0 } else { SKETCH_ERROR },
            },
            uncertainty: UncertaintyDoc::new(&metrics.batches),
            utilization: metrics.utilization(),
            utilization_to_last_submission: metrics.utilization_to_last_submission(),
            loss_of_capacity: metrics.loss_of_capacity(),
            kept_idle: metrics.kept_idle(),
            lost_work: metrics.lost_work(),
            suspensions: metrics.suspended.count,
            suspended: SuspensionDoc::new(metrics),
            makespan: metrics.makespan().map(miserly_core::Span::as_secs_f64),
            throughput_per_hour: metrics.throughput_per_hour(),
            throughput_deviation: metrics.throughput_deviation(),
            area_weighted_response: metrics.area_weighted_response(),
            area_weighted_slowdown: metrics.area_weighted_slowdown(),
            queue_length: QueueLengthDoc { mean: queue_mean, max: queue_max },
            promises: PromisesDoc { made, kept: made - broken, broken },
            planned_starts: metrics.planned_starts(),
            guarantees: GuaranteesDoc::new(&mut metrics.guarantees),
            record: None,
            opportunistic: None,
            gpus: None,
            slicing: None,
            batches: None,
            by: breakdowns(metrics),
            details: None,
            timing: TimingDoc { seconds, jobs_per_second: metrics.simulated() as f64 / seconds.max(1e-9) },
            batch_sums: metrics.batches.clone(),
        }
    }
}

impl JobCountsDoc {
    /// Returns the jobs that this schedule leaves out and another one of the same log may have: the refused ones,
    /// and those without a recorded wait.
    pub fn left_out(&self) -> u64 {
        self.skipped.iter().filter(|(reason, _)| is_of_schedule(reason)).map(|(_, jobs)| jobs).sum()
    }
}

/// The skip reason of a job that has no recorded wait.
pub const NO_RECORDED_WAIT: &str = "no_recorded_wait";

/// Returns whether the schedule, not the log, is the reason why a job is left out.
pub fn is_of_schedule(reason: &str) -> bool {
    reason.starts_with("refused_") || reason == NO_RECORDED_WAIT
}

/// Returns the counts of lines without a job and of rejected jobs.
fn skipped(counts: &LineCounts, metrics: &Metrics) -> BTreeMap<String, u64> {
    let refused = metrics.refused_jobs().iter().map(|(why, jobs)| (format!("refused_{}", why.name()), *jobs));
    let mut skipped: BTreeMap<String, u64> = counts.skipped.clone().into_iter().chain(refused).collect();
    if metrics.window.is_some() {
        let gone = metrics.simulated() + skipped.values().sum::<u64>();
        let unfinished = counts.read.saturating_sub(gone);
        skipped.extend((unfinished > 0).then(|| ("unfinished".into(), unfinished)));
    }
    skipped
}
