//! The pool and the queues, checked: at every instant they fit the machine.

use std::collections::BTreeSet;

use miserly_core::{Kind, Resources};
use miserly_policies::{PolicyError, PolicySpec};
use toml::Spanned;

use crate::file::{PoolsFile, QueueFile};
use crate::problem::Problem;
use crate::rules::{PoolText, clock};
use crate::week::{Minute, Week};

/// The most GPUs of a machine.
const MOST_GPUS: u64 = 1024;

/// The share of a machine for batch jobs, and the queues that divide it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pools {
    /// The share for batch jobs.
    pub pool: Week,
    /// Its parts, in the order of the file. A file without queues gives one.
    pub queues: Vec<Queue>,
}

/// A queue with its part of the pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name; no other queue has it.
    pub name: String,
    /// Its resources.
    pub week: Week,
    /// Its policy; `None` for that of the run.
    pub policy: Option<PolicySpec>,
}

impl Pools {
    /// Returns the pools of a machine with these resources.
    ///
    /// # Errors
    /// The first mistake: a field without meaning, two rules for one time, or an instant at which the
    /// queues exceed the pool, or the pool the machine.
    pub fn new(file: &PoolsFile, machine: &Resources) -> Result<Pools, Problem> {
        let ahead = file.utc_offset.as_ref().map_or(Ok(0), offset)?;
        let (pool, at) = match &file.pool {
            None => (Week::constant(*machine), file.queues.first().map_or(0..0, Spanned::span)),
            Some(written) => {
                let pool = written.get_ref();
                if pool.cpus.is_none() {
                    return Err(Problem::new(written.span(), "missing field `cpus`"));
                }
                let (cpus, memory) = (pool.cpus.as_ref(), pool.memory.as_ref());
                let (owner, calendar) = ("pool".into(), &pool.calendar[..]);
                let text = PoolText { owner, cpus, memory, calendar, otherwise: Resources::NONE };
                (text.week(ahead)?.with_gpus(gpus(pool.gpus.as_ref(), 0)?), written.span())
            }
        };
        let machine = Week::constant(*machine);
        check_sum("the pool", &[&pool], "the machine", &machine)
            .map_err(|text| Problem::new(at.clone(), text))?;
        let queues = queues(file, &pool, ahead)?;
        let weeks: Vec<&Week> = queues.iter().map(|queue| &queue.week).collect();
        let last = file.queues.last().map_or(at, Spanned::span);
        check_sum("the queues together", &weeks, "the pool", &pool)
            .map_err(|text| Problem::new(last, text))?;
        Ok(Pools { pool, queues })
    }
}

/// Returns the number of GPUs, or another one if none is written.
fn gpus(written: Option<&Spanned<i64>>, otherwise: u64) -> Result<u64, Problem> {
    let Some(written) = written else { return Ok(otherwise) };
    let number = u64::try_from(*written.get_ref()).ok().filter(|number| *number <= MOST_GPUS);
    let wrong = || format!("gpus = {}: must be 0 to {MOST_GPUS}", written.get_ref());
    number.ok_or_else(|| Problem::new(written.span(), wrong()))
}

/// Returns the policy that is written for a queue.
fn policy(written: &Spanned<String>) -> Result<PolicySpec, Problem> {
    let policy = written.get_ref().parse();
    policy.map_err(|error: PolicyError| Problem::new(written.span(), format!("policy: {error}")))
}

fn queues(file: &PoolsFile, pool: &Week, ahead: i32) -> Result<Vec<Queue>, Problem> {
    if file.queues.is_empty() {
        let (name, week) = ("batch".into(), pool.clone());
        return Ok(vec![Queue { name, week, policy: None }]);
    }
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for written in &file.queues {
        let queue = queue(written.get_ref(), pool, file.queues.len() == 1, ahead)?;
        if !names.insert(queue.name.clone()) {
            let text = format!("a second queue {:?}; each has a name of its own", queue.name);
            return Err(Problem::new(written.get_ref().name.span(), text));
        }
        all.push(queue);
    }
    Ok(all)
}

fn queue(file: &QueueFile, pool: &Week, alone: bool, ahead: i32) -> Result<Queue, Problem> {
    let name = file.name.get_ref();
    let problem = |text: String| Problem::new(file.name.span(), text);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(problem(format!("name = {name:?}: letters, digits, - and _, at least one")));
    }
    let week = if alone { only(file, pool, ahead)? } else { one_of_several(file, pool, ahead)? };
    let all = if alone { pool.most().get(Kind::Gpus) } else { 0 };
    let week = week.with_gpus(gpus(file.gpus.as_ref(), all)?);
    if week.most().cpus_count().is_zero() {
        return Err(problem(format!("queue {name:?} never has a processor")));
    }
    let policy = file.policy.as_ref().map(policy).transpose()?;
    Ok(Queue { name: name.clone(), week, policy })
}

/// Returns the part of the only queue: all of the pool, except where the queue has its own settings.
fn only(file: &QueueFile, pool: &Week, ahead: i32) -> Result<Week, Problem> {
    if file.cpus.is_none() && file.memory.is_none() && file.calendar.is_empty() {
        return Ok(pool.clone());
    }
    text_of(file, pool.most()).week(ahead)
}

fn one_of_several(file: &QueueFile, pool: &Week, ahead: i32) -> Result<Week, Problem> {
    let lacks_memory = file.memory.is_none() && pool.most().get(Kind::Memory) > 0;
    let lacking = if file.cpus.is_none() { Some("cpus") } else { lacks_memory.then_some("memory") };
    if let Some(lacking) = lacking {
        let name = file.name.get_ref();
        let text =
            format!("queue {name:?} without {lacking}; of several queues each says what it has of the pool");
        return Err(Problem::new(file.name.span(), text));
    }
    text_of(file, Resources::NONE).week(ahead)
}

fn text_of(file: &QueueFile, otherwise: Resources) -> PoolText<'_> {
    PoolText {
        owner: format!("queue {:?}", file.name.get_ref()),
        cpus: file.cpus.as_ref(),
        memory: file.memory.as_ref(),
        calendar: &file.calendar,
        otherwise,
    }
}

/// Checks that `parts` never exceed `whole`. The error is the message.
fn check_sum(part: &str, parts: &[&Week], of: &str, whole: &Week) -> Result<(), String> {
    let minutes: BTreeSet<u32> = parts
        .iter()
        .copied()
        .chain([whole])
        .flat_map(|week| &week.steps)
        .map(|(minute, _)| *minute)
        .collect();
    for minute in minutes {
        let has = whole.at(minute);
        let sum = parts.iter().fold(Resources::NONE, |sum, week| sum.plus(&week.at(minute)));
        if !sum.fits_in(&has) {
            return Err(format!("on {}: {part} would have {sum}, and {of} has {has}", Minute(minute)));
        }
    }
    Ok(())
}

/// Returns the minutes of `+01:00`.
fn offset(written: &Spanned<String>) -> Result<i32, Problem> {
    let text = written.get_ref();
    let minutes = |text: &str| clock(text).and_then(|minutes| i32::try_from(minutes).ok());
    let signed = match text.split_at_checked(1) {
        Some(("+", time)) => minutes(time),
        Some(("-", time)) => minutes(time).map(|minutes| -minutes),
        _ => None,
    };
    signed.filter(|minutes| minutes.abs() <= 14 * 60).ok_or_else(|| {
        Problem::new(written.span(), format!("utc-offset = {text:?}: write it as +01:00, at most 14 hours"))
    })
}
