//! A configuration as it is shown to whoever wrote it.

use std::path::PathBuf;

use miserly_core::{Kind, Span};
use serde::Serialize;

use super::{Configuration, Queue};
use crate::server::Access;

/// What a configuration comes to. Memory in bytes, lengths of time in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The folder of the state.
    pub state: PathBuf,
    /// The socket.
    pub socket: PathBuf,
    /// Who may talk to the daemon.
    pub access: Access,
    /// The processors for jobs, by number.
    pub cpus: Vec<u32>,
    /// The queues, in order.
    pub queues: Vec<QueueSummary>,
}

/// A queue, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueSummary {
    /// Its name.
    pub name: String,
    /// Its policy, in its written form.
    pub policy: String,
    /// To whom that promises a start.
    pub promises: &'static str,
    /// The fewest and the most processors that its pool ever has.
    pub cpus: [u64; 2],
    /// The least and the most memory.
    pub memory: [u64; 2],
    /// For how long a job runs that does not say.
    pub default_time: Option<f64>,
    /// For how long a job may run.
    pub max_time: Option<f64>,
    /// How much memory a job has that does not say.
    pub default_memory: u64,
    /// Who may use it, by number; everybody, where nobody is named.
    pub users: Vec<u32>,
}

impl Configuration {
    /// What it comes to.
    pub fn summary(&self) -> Summary {
        Summary {
            state: self.state.clone(),
            socket: self.socket.clone(),
            access: self.access,
            cpus: self.cpus.clone(),
            queues: self.queues.iter().map(queue).collect(),
        }
    }
}

fn queue(queue: &Queue) -> QueueSummary {
    let bytes = |kilobytes: u64| kilobytes.saturating_mul(1024);
    let secs = |span: Option<Span>| span.map(Span::as_secs_f64);
    let (least, most) = (queue.pool.least(), queue.pool.most());
    QueueSummary {
        name: queue.name.clone(),
        policy: queue.policy.to_string(),
        promises: queue.policy.promises().as_str(),
        cpus: [least.cpus_count().get(), most.cpus_count().get()],
        memory: [least, most].map(|amount| bytes(amount.get(Kind::Memory))),
        default_time: secs(queue.default_time),
        max_time: secs(queue.most_time),
        default_memory: bytes(queue.default_memory),
        users: queue.users.clone(),
    }
}
