//! A queue of a configuration.

use miserly_core::{Host, Kind, Machine, Resources, Span};
use miserly_policies::Chosen;

use super::Weekly;
use super::error::Problem;
use super::file::{File, QueueFile};
use super::weekly::amount;
use super::{people, units};

/// The policy of a queue for which none is written.
const POLICY: &str = "miser";

/// A parameter with which a policy decides what no process can do, and why.
const KEEP_WORK: &str = "keep_work=true: a process that is taken off the machine loses what it has done";

/// Policies whose decisions are not those of processes on one machine, and why.
const NOT_LIVE: [(&str, &str); 2] = [
    ("eqspatial", "it resizes running jobs, which no process can follow"),
    ("lsf", "it places jobs on the hosts of one certain machine"),
];

/// A queue, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: Chosen,
    /// What its pool has, over time.
    pub pool: Weekly,
    /// For how long a job runs that does not say; none, where it has to.
    pub default_time: Option<Span>,
    /// For how long a job may run at most.
    pub most_time: Option<Span>,
    /// How much memory a job has that does not say, kilobytes.
    pub default_memory: u64,
    /// Who may use it, by number; everybody, where nobody is named.
    pub users: Vec<u32>,
}

impl Queue {
    /// The one queue of a configuration that names none.
    pub(super) fn only(pool: &Weekly) -> Result<Queue, Problem> {
        let policy = POLICY.parse().map_err(|error| (0..0, format!("{error}")))?;
        Ok(Queue {
            name: "batch".into(),
            policy,
            default_memory: share(&pool.most()),
            pool: pool.clone(),
            default_time: None,
            most_time: None,
            users: Vec::new(),
        })
    }

    /// A queue as it is written.
    pub(super) fn checked(
        file: &File,
        queue: &QueueFile,
        whole: &Weekly,
        utc_offset: i32,
    ) -> Result<Queue, Problem> {
        let pool = pool(file, queue, whole, utc_offset)?;
        let most = pool.most();
        let default_memory =
            amount(None, queue.default_memory.as_ref(), Resources::NONE.with(Kind::Memory, share(&most)));
        let checked = Queue {
            name: queue.name.get_ref().clone(),
            policy: policy(queue, &pool)?,
            default_time: units::time(queue.default_time.as_ref(), "default-time")?,
            most_time: units::time(queue.max_time.as_ref(), "max-time")?,
            default_memory: default_memory?.get(Kind::Memory),
            users: people::all(&queue.users, &queue.groups)?,
            pool,
        };
        checked.fits(queue)?;
        Ok(checked)
    }

    /// That what it gives a job that does not ask can be had.
    fn fits(&self, queue: &QueueFile) -> Result<(), Problem> {
        if let (Some(default), Some(most), Some(written)) =
            (self.default_time, self.most_time, &queue.default_time)
            && default > most
        {
            return Err((
                written.span(),
                format!("default-time: {default} s is more than max-time, {most} s"),
            ));
        }
        let memory = self.pool.most().get(Kind::Memory);
        match &queue.default_memory {
            Some(written) if memory > 0 && self.default_memory > memory => {
                Err((written.span(), "default-memory: it is more than the queue ever has".into()))
            }
            _ => Ok(()),
        }
    }
}

/// The memory of a job that does not ask for any: its share, if it asks for one processor.
fn share(pool: &Resources) -> u64 {
    pool.get(Kind::Memory) / pool.cpus_count().max(1)
}

/// A queue's pool. The only queue has the whole pool where nothing else is written.
fn pool(file: &File, queue: &QueueFile, whole: &Weekly, utc_offset: i32) -> Result<Weekly, Problem> {
    let says_nothing = queue.cpus.is_none() && queue.memory.is_none() && queue.calendar.is_empty();
    if file.queues.len() == 1 && says_nothing {
        return Ok(whole.clone());
    }
    let lacking = |field: &str| {
        let problem = format!(
            "queue {:?} without {field}; with several queues each says what it has",
            queue.name.get_ref()
        );
        (queue.name.span(), problem)
    };
    if file.queues.len() > 1 && queue.cpus.is_none() {
        return Err(lacking("cpus"));
    }
    if file.queues.len() > 1 && queue.memory.is_none() && whole.most().get(Kind::Memory) > 0 {
        return Err(lacking("memory"));
    }
    let base = amount(queue.cpus.as_ref(), queue.memory.as_ref(), whole.most())?;
    Weekly::checked(base, &queue.calendar, utc_offset)
}

/// The policy, if it runs on such a pool, and if a launcher can do what it decides.
fn policy(queue: &QueueFile, pool: &Weekly) -> Result<Chosen, Problem> {
    let (span, text) = queue
        .policy
        .as_ref()
        .map_or((queue.name.span(), POLICY), |written| (written.span(), written.get_ref()));
    let chosen = |text: &str| text.parse::<Chosen>().map_err(|error| error.to_string());
    let mut policy = chosen(text).map_err(|problem| (span.clone(), format!("policy: {problem}")))?;
    if let Some(written) = &queue.horizon {
        let problem = |problem: String| (written.span(), format!("horizon: {problem}"));
        let horizon = units::duration(written.get_ref()).map_err(problem)?;
        policy = chosen(&with(text, "horizon", &format!("{}s", horizon.secs()))).map_err(problem)?;
    }
    if let Some((name, why)) = NOT_LIVE.iter().find(|(name, _)| *name == policy.policy().name) {
        return Err((span, format!("policy {name}: {why}; it runs in simulations only")));
    }
    if policy.to_string().contains("keep_work=true") {
        return Err((
            span,
            format!("policy {}: {KEEP_WORK}; it runs in simulations only", policy.policy().name),
        ));
    }
    policy
        .build(&machine(queue.name.get_ref(), pool), 0)
        .map_err(|error| (span, format!("policy: {error}")))?;
    Ok(policy)
}

/// The pool as a policy sees it.
fn machine(name: &str, pool: &Weekly) -> Machine {
    let calendar = pool.calendar(0);
    if calendar.varies() {
        Machine::pool(name.to_owned(), calendar)
    } else {
        Machine::of(vec![Host { name: name.to_owned(), capacity: pool.most() }])
    }
}

/// A written policy with one more parameter.
fn with(text: &str, name: &str, value: &str) -> String {
    let text = text.trim();
    match text.strip_suffix(')') {
        Some(open) if open.trim_end().ends_with('(') => format!("{open}{name}={value})"),
        Some(open) => format!("{open}, {name}={value})"),
        None => format!("{text}({name}={value})"),
    }
}
