//! The settings of equipartitioning, and their consequences for a job.

use miserly_core::{Entry, JobId, Kind, Ledger, Resources, Span, State, Time};

use super::MissedWork;

/// The settings of [`Equipartition`](super::Equipartition).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The minimum time between two repartitionings of a host.
    pub min_interval: Span,
    /// The run time after which a job gets its requested processors; [`Span::MAX`] for never.
    pub long_job_after: Span,
    /// The quantum of a job that has to wait for memory; zero for none.
    pub quantum: Span,
    /// The memory of a job in its quantum, kB, or its request if that is less.
    pub quantum_memory: u64,
    /// Whether a job keeps the work of a quantum that was too short for it.
    pub keep_work: bool,
}

impl Rules {
    /// Returns whether a job has priority and gets its requested processors.
    pub(super) fn gives_all(&self, entry: &Entry, now: Time) -> bool {
        let by_time = match entry.state {
            State::Running { start, quantum, .. } => quantum.is_some() || now - start >= self.long_job_after,
            _ => false,
        };
        by_time || entry.policy_state.get::<MissedWork>().work > 0
    }

    /// Returns the resources that a job takes of a host, for a quantum or permanently.
    pub(super) fn need(&self, ledger: &Ledger, job: JobId, for_quantum: bool) -> Resources {
        let request = ledger.request(job);
        let need = ledger.machine().amount(request).with_cpus(request.sizes().most);
        let little = need.get(Kind::Memory).min(self.quantum_memory);
        if for_quantum { need.with(Kind::Memory, little) } else { need }
    }
}
