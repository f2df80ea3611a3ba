//! A summary of a configuration, for users.

use std::path::PathBuf;

use miserly_core::{Kind, Span};
use miserly_engine::QueueUsers;
use serde::Serialize;

use super::{Configuration, Queue};
use crate::server::Access;

/// The summary of a configuration. Memory in bytes, durations in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The state folder.
    pub state: PathBuf,
    /// The socket.
    pub socket: PathBuf,
    /// The users that may connect.
    pub access: Access,
    /// The processors for jobs, by number.
    pub cpus: Vec<u32>,
    /// The queues, in order.
    pub queues: Vec<QueueSummary>,
}

/// The summary of a queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueSummary {
    /// The name.
    pub name: String,
    /// The policy, in its written form.
    pub policy: String,
    /// The jobs to which the policy promises a start.
    pub promises: &'static str,
    /// The fewest and the most processors of its pool over time.
    pub cpus: [u64; 2],
    /// The least and the most memory of its pool over time.
    pub memory: [u64; 2],
    /// The GPUs.
    pub gpus: u64,
    /// The time limit of a job without one.
    pub default_time: Option<f64>,
    /// The longest time limit of a job.
    pub max_time: Option<f64>,
    /// The memory of a job without a memory request.
    pub default_memory: u64,
    /// The slack of its promises.
    pub promise_slack: f64,
    /// The time after which a job is idle that uses almost no processor time; `None` if idle jobs are not looked for.
    pub idle_after: Option<f64>,
    /// What happens to an idle job: `warn` or `end`.
    pub idle_action: Option<&'static str>,
    /// The users that may use it; `None` for all.
    pub users: Option<QueueUsers>,
}

impl Configuration {
    /// Returns the summary.
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
        promises: queue.policy.promises().name(),
        cpus: [least.cpus_count().get(), most.cpus_count().get()],
        memory: [least, most].map(|amount| bytes(amount.get(Kind::Memory))),
        gpus: queue.pool.most().get(Kind::Gpus),
        default_time: secs(queue.terms.default_time),
        max_time: secs(queue.terms.most_time),
        default_memory: bytes(queue.terms.default_memory),
        promise_slack: queue.terms.promise_slack.as_secs_f64(),
        idle_after: secs(queue.terms.idle.map(|idle| idle.after)),
        idle_action: queue.terms.idle.map(|idle| if idle.ends { "end" } else { "warn" }),
        users: queue.terms.users.clone(),
    }
}
