//! What may be set of equipartitioning, and what follows for a job.

use miserly_core::{Entry, JobId, Kind, Ledger, Resources, Span, State, Time};

use super::MissedWork;

/// What may be set of [`Equipartition`](super::Equipartition).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Between two repartitionings of a host lies at least so much time.
    pub min_interval: Span,
    /// A job that has run so long is given the processors that it asked for; [`Span::MAX`] for never.
    pub long_job_after: Span,
    /// How long a job runs at once that has to wait for memory; zero for not at all.
    pub quantum: Span,
    /// The memory that it has then, kB; less, if it asked for less.
    pub quantum_memory: u64,
    /// Whether it keeps what it did in a quantum that was too short for it.
    pub keep_work: bool,
}

impl Rules {
    /// Whether a job is to have all the processors that it asked for.
    pub(super) fn gives_all(&self, entry: &Entry, now: Time) -> bool {
        let by_time = match entry.state {
            State::Running { start, quantum, .. } => quantum.is_some() || now - start >= self.long_job_after,
            _ => false,
        };
        by_time || entry.policy_state.get::<MissedWork>().work > 0
    }

    /// What a job takes of a host, for a quantum only or for good.
    pub(super) fn need(&self, ledger: &Ledger, job: JobId, lend: bool) -> Resources {
        let need = ledger.machine().demand(ledger.request(job));
        let little = need.get(Kind::Memory).min(self.quantum_memory);
        if lend { need.with(Kind::Memory, little) } else { need }
    }
}
