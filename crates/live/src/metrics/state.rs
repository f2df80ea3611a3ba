//! The metrics that are read from the state.

use miserly_api::model::{ForecastRecord, QueueStatus, Status};
use miserly_engine::StateMetrics;
use miserly_launch::ProgramKind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::server::ConnectionCounts;

/// A metric with labels, by name.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The metrics of one request.
pub(super) struct Sheet {
    pub(super) registry: Registry,
}

impl Sheet {
    pub(super) fn new() -> Sheet {
        Sheet { registry: Registry::with_prefix("miserly") }
    }

    /// Adds jobs, processors and memory by queue.
    pub(super) fn queues(&mut self, state: &StateMetrics) {
        let queues = &state.status.queues;
        let others = state.opportunistic.iter().zip(&state.held);
        let jobs = queues.iter().zip(others).flat_map(|(queue, (&opportunistic, &held))| {
            let waiting = queue.waiting.saturating_sub(opportunistic + held);
            let running = queue.running;
            [("waiting", waiting), ("held", held), ("running", running), ("opportunistic", opportunistic)]
                .map(|(state, count)| (vec![of(queue), ("state", state.to_owned())], count))
        });
        self.gauges("jobs", "Unfinished jobs by state", None, jobs.collect());
        let mut by_queue = |name: &str, help: &str, unit: Option<Unit>, value: fn(&QueueStatus) -> u64| {
            let values = queues.iter().map(|queue| (vec![of(queue)], value(queue))).collect();
            self.gauges(name, help, unit, values);
        };
        let memory = |queue: &QueueStatus| queue.memory.unwrap_or(0);
        by_queue("pool_cpus", "Processors of the pool", None, |queue| queue.cpus);
        by_queue("held_cpus", "Processors of jobs in their windows", None, |queue| queue.cpus_held);
        by_queue("free_cpus", "Processors of the pool that no job in its window has", None, |queue| {
            queue.cpus.saturating_sub(queue.cpus_held)
        });
        by_queue("pool_gpus", "GPUs of the pool", None, |queue| queue.gpus);
        by_queue("held_gpus", "GPUs of jobs in their windows", None, |queue| queue.gpus_held);
        by_queue("pool_memory", "Memory of the pool", Some(Unit::Bytes), memory);
        by_queue("held_memory", "Memory of jobs in their windows", Some(Unit::Bytes), |queue| {
            queue.memory_held
        });
        by_queue(
            "free_memory",
            "Memory of the pool that no job in its window has",
            Some(Unit::Bytes),
            |queue| queue.memory.unwrap_or(0).saturating_sub(queue.memory_held),
        );
    }

    /// Adds the counts of promises.
    pub(super) fn promises(&mut self, status: &Status, kept: u64) {
        let counts = [
            ("promises_given", "Promises to runs of jobs", status.promises),
            ("promises_kept", "Promises whose jobs started in time", kept),
            ("promises_late", "Promises whose jobs started later", status.late),
            ("promises_lost", "Promises whose jobs ended without a start", status.lost),
            ("promises_withdrawn", "Promises whose jobs their users took back", status.withdrawn),
            ("promises_earlier", "Promises that an earlier version did not judge", status.earlier),
        ];
        for (name, help, count) in counts {
            self.registry.register(name, format!("{help}, since the state was created"), counter(count));
        }
        let now = [
            ("promises_open", "Promises that are not judged yet", status.open),
            ("promises_at_risk", "Open promises whose plans are behind them", status.at_risk),
        ];
        for (name, help, count) in now {
            self.gauges(name, help, None, vec![(vec![], count)]);
        }
    }

    /// Adds the outcomes of forecasts.
    pub(super) fn forecasts(&mut self, record: ForecastRecord) {
        let help = "Forecasts with calibrated bounds whose job has started, since the state was created";
        self.registry.register("forecasts_audited", help, counter(record.audited));
        let kept: Family<Labels, Counter> = Family::default();
        for (level, count) in [("50", record.kept_50), ("80", record.kept_80), ("95", record.kept_95)] {
            kept.get_or_create(&vec![("level", level.to_owned())]).inc_by(count);
        }
        let help =
            "Forecasts whose job started by the bound of this level in percent, since the state was created";
        self.registry.register("forecasts_kept", help, kept);
    }

    /// Adds the numbers of programs of queues that failed, as [`ProgramKind::ALL`].
    pub(super) fn queue_programs(&mut self, failures: [u64; ProgramKind::ALL.len()]) {
        let failed: Family<Labels, Counter> = Family::default();
        for (program, count) in ProgramKind::ALL.into_iter().zip(failures) {
            failed.get_or_create(&vec![("program", program.name().to_owned())]).inc_by(count);
        }
        let help = "Programs of queues that failed, since the daemon began";
        self.registry.register("queue_program_failures", help, failed);
    }

    /// Adds the age and the connections of the daemon.
    pub(super) fn daemon(&mut self, status: &Status, connections: ConnectionCounts) {
        let age = status.now.as_second().saturating_sub(status.since.as_second());
        let uptime: Gauge = Gauge::default();
        uptime.set(age.max(0));
        self.registry.register_with_unit("uptime", "Time since the daemon began", Unit::Seconds, uptime);
        let ConnectionCounts { open, waiting, streams } = connections;
        let kinds = [("request", open), ("wait", waiting), ("stream", streams)];
        let values = kinds.map(|(kind, count)| (vec![("kind", kind.to_owned())], count as u64));
        let help =
            "Connections: of requests, of requests that wait for the end of a job, and streams of events";
        self.gauges("connections", help, None, values.into());
    }

    fn gauges(&mut self, name: &str, help: &str, unit: Option<Unit>, values: Vec<(Labels, u64)>) {
        let family: Family<Labels, Gauge> = Family::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        match unit {
            Some(unit) => self.registry.register_with_unit(name, help, unit, family),
            None => self.registry.register(name, help, family),
        }
    }
}

fn of(queue: &QueueStatus) -> (&'static str, String) {
    ("queue", queue.name.clone())
}

fn counter(count: u64) -> Counter {
    let counter: Counter = Counter::default();
    counter.inc_by(count);
    counter
}
