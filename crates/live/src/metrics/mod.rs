//! Metrics of the daemon, as `OpenMetrics` text.
//!
//! Gauges and counters are made from the latest snapshot on request. Histograms are filled while the daemon runs, and begin
//! empty with it. The waits name users. No metric names a job.

mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use miserly_api::model::{ForecastRecord, Problem, ProblemCode};
use miserly_engine::{JobStart, StateMetrics};
use miserly_launch::ProgramKind;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use self::state::{Labels, Sheet};
use crate::server::ConnectionCounts;

/// The upper bounds of times of jobs, in seconds: a second to a week.
const JOB_TIMES: [f64; 12] =
    [1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 7200.0, 14_400.0, 28_800.0, 86_400.0, 259_200.0, 604_800.0];

/// The upper bounds of the duration of a batch, in seconds.
const BATCH_TIMES: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// The metrics that are filled while the daemon runs, for any thread.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// By queue and user.
    waits: Family<Labels, Histogram, fn() -> Histogram>,
    slack: Histogram,
    batches: Histogram,
    /// The most kept promises so far. A start that did not take place takes one back, and a counter never decreases.
    kept: Arc<AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            waits: Family::new_with_constructor(|| Histogram::new(JOB_TIMES)),
            slack: Histogram::new(JOB_TIMES),
            batches: Histogram::new(BATCH_TIMES),
            kept: Arc::default(),
        }
    }
}

impl Metrics {
    /// Adds the start of a job of a user.
    pub(crate) fn start(&self, start: &JobStart, user: String) {
        if let Some(wait) = start.wait {
            let labels = vec![("queue", start.queue.to_string()), ("user", user)];
            self.waits.get_or_create(&labels).observe(wait.as_secs_f64());
        }
        if let Some(slack) = start.slack {
            self.slack.observe(slack.as_secs_f64());
        }
    }

    /// Adds the duration of a batch of the engine, with its commit.
    pub(crate) fn batch(&self, took: Duration) {
        self.batches.observe(took.as_secs_f64());
    }

    /// Returns all metrics as text.
    ///
    /// # Errors
    /// If the text cannot be made, which is a defect.
    pub(crate) fn text(
        &self,
        state: &StateMetrics,
        forecasts: Option<ForecastRecord>,
        program_failures: [u64; ProgramKind::ALL.len()],
        connections: ConnectionCounts,
    ) -> Result<String, Problem> {
        let mut sheet = Sheet::new();
        sheet.queues(state);
        let kept = self.kept.fetch_max(state.status.kept, Ordering::Relaxed).max(state.status.kept);
        sheet.promises(&state.status, kept);
        sheet.forecasts(forecasts.unwrap_or_default());
        sheet.queue_programs(program_failures);
        sheet.daemon(&state.status, connections);
        let mut registry = sheet.registry;
        self.histograms(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|error| {
            Problem::new(ProblemCode::Internal, format!("the metrics could not be made: {error}"))
        })?;
        Ok(text)
    }

    fn histograms(&self, registry: &mut Registry) {
        let help =
            "Time from the submission of a job to its first run, by queue and user, since the daemon began";
        registry.register_with_unit("job_wait", help, Unit::Seconds, self.waits.clone());
        let mut add = |name: &str, help: &str, histogram: &Histogram| {
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        };
        add(
            "start_slack",
            "Time from the start of a job to the latest start that was promised, 0 if late, since the daemon began",
            &self.slack,
        );
        add("batch_duration", "Time for a batch of inputs of the engine with its commit", &self.batches);
    }
}
