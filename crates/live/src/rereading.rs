//! A new reading of the configuration, while the daemon runs.

use std::sync::{Arc, Mutex, PoisonError};

use miserly_api::model::{ConfigurationReading, SharedCpus};
use miserly_engine::{Engine, RequestError};

use crate::claim::Claim;
use crate::clock::BootClock;
use crate::config::{Configuration, MemoryPlan};
use crate::daemon::{DaemonError, setup_of};
use crate::process::{Executor, JobGroups, Processes};
use crate::request_rate::RequestRate;
use crate::shadow::ShadowThread;
use crate::store::{BackupThread, Store};

/// Warns of users and groups that the system does not know.
pub(crate) fn log_warnings(configuration: &Configuration) {
    for warning in configuration.warnings() {
        tracing::warn!("{warning}");
    }
}

/// Warns of processors that another daemon has, too.
pub(crate) fn log_shared(claim: &Claim) {
    for SharedCpus { cpus, user, pid, .. } in claim.shared() {
        tracing::warn!(
            "the daemon of user {user} (process {pid}) has the cpus {cpus:?}, too: jobs of both share them; start one of the \
             daemons with `taskset` on other cpus"
        );
    }
}

/// The outcome of the last new reading of the configuration, and the number of all, for `status`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings(Arc<Mutex<ConfigurationReading>>);

impl Readings {
    /// Returns the outcome of the last one.
    pub(crate) fn last(&self) -> ConfigurationReading {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts one with its outcome.
    fn add(&self, problem: Option<String>) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = ConfigurationReading { count: last.count + 1, problem };
    }
}

/// The parts of a daemon that a new reading of the configuration changes.
pub(crate) struct Rereading<'a, F> {
    /// Reads the configuration.
    pub(crate) reread: F,
    /// The configuration at the start.
    pub(crate) first: &'a Configuration,
    pub(crate) backups: &'a BackupThread,
    pub(crate) shadowing: &'a ShadowThread,
    pub(crate) claim: &'a Claim,
    pub(crate) rate: &'a RequestRate,
    pub(crate) readings: &'a Readings,
    pub(crate) groups: &'a JobGroups,
    pub(crate) executor: &'a Executor,
}

impl<F: Fn() -> Result<Configuration, String>> Rereading<'_, F> {
    /// Reads the configuration and applies it, or logs the reason why not.
    pub(crate) fn reload(
        &self,
        engine: &mut Engine<Processes, Store>,
        clock: &BootClock,
    ) -> Result<(), DaemonError> {
        let problem = self.replaced(engine, clock)?;
        if let Some(problem) = &problem {
            tracing::error!("the configuration stays as it was: {problem}");
        } else {
            tracing::info!("the configuration was read again");
        }
        self.readings.add(problem);
        Ok(())
    }

    /// Reads the configuration and applies it. Returns the reason why it cannot be applied.
    fn replaced(
        &self,
        engine: &mut Engine<Processes, Store>,
        clock: &BootClock,
    ) -> Result<Option<String>, DaemonError> {
        // A running daemon cannot change these options.
        let fixed = |configuration: &Configuration| {
            let Configuration { state, socket, access, cgroup, user, allow_root, rules, .. } =
                configuration.clone();
            let gpus = configuration.hidden_gpus();
            let is_strict = configuration.queues.iter().any(|queue| queue.terms.strict);
            (state, socket, access, cgroup, user, allow_root, rules, gpus, is_strict)
        };
        let configuration = match (self.reread)() {
            Ok(configuration) => configuration,
            Err(problem) => return Ok(Some(problem)),
        };
        if fixed(&configuration) != fixed(self.first) {
            let problem = "with another state, socket, access, cgroup or user, other rules for jobs of users, another priority, other programs of queues, \
                           other device nodes of GPUs, or the first strict queue, the daemon has to be started again";
            return Ok(Some(problem.to_owned()));
        }
        match engine.reconfigure(clock.read(), setup_of(&configuration, clock)) {
            Ok(()) => {
                engine.set_names(configuration.operators.clone(), configuration.slurm.clone());
                self.apply(&configuration);
                Ok(None)
            }
            Err(RequestError::Refused(problem)) => Ok(Some(problem.to_string())),
            Err(RequestError::Fatal(error)) => Err(error.into()),
        }
    }

    /// Applies the parts that are not the engine's.
    fn apply(&self, configuration: &Configuration) {
        log_warnings(configuration);
        self.claim.change(&configuration.cpus);
        self.rate.change(configuration.requests_per_minute);
        self.backups.change(configuration.backups);
        self.shadowing.change(configuration.shadows());
        let MemoryPlan { pool, reserve } = configuration.memory_plan();
        self.groups.set_reserve(reserve);
        self.executor.keep_memory(pool);
    }
}
