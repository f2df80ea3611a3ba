//! From what a file says of pools to pools that fit the machine at every instant.

use std::collections::BTreeSet;

use miserly_core::{Kind, Resources};
use toml::Spanned;

use crate::rules::{Written, clock};
use crate::week::Minute;
use crate::{Pools, PoolsFile, Problem, QueueFile, QueueSpec, Week};

/// The pools that a file describes, of a machine that has so much.
///
/// # Errors
/// What is wrong, and where: a text that says nothing, two rules about one time, or an instant at which the queues would
/// have more than the pool, or the pool more than the machine.
pub fn check(file: &PoolsFile, machine: &Resources) -> Result<Pools, Problem> {
    let ahead = file.utc_offset.as_ref().map_or(Ok(0), offset)?;
    let (pool, at) = match &file.pool {
        None => (Week::constant(*machine), file.queues.first().map_or(0..0, Spanned::span)),
        Some(written) => {
            let pool = written.get_ref();
            let (cpus, memory, calendar) = (&pool.cpus, pool.memory.as_ref(), &pool.calendar[..]);
            let week = Written { whose: "pool".into(), cpus, memory, calendar }.week(ahead)?;
            (week, written.span())
        }
    };
    let machine = Week::constant(*machine);
    check_sum("the pool", &[&pool], "the machine", &machine)
        .map_err(|text| Problem::new(at.clone(), text))?;
    let queues = queues(file, &pool, ahead)?;
    let weeks: Vec<&Week> = queues.iter().map(|queue| &queue.week).collect();
    let last = file.queues.last().map_or(at, Spanned::span);
    check_sum("the queues together", &weeks, "the pool", &pool).map_err(|text| Problem::new(last, text))?;
    Ok(Pools { pool, queues })
}

fn queues(file: &PoolsFile, pool: &Week, ahead: i32) -> Result<Vec<QueueSpec>, Problem> {
    if file.queues.is_empty() {
        let (name, week) = ("batch".into(), pool.clone());
        return Ok(vec![QueueSpec { name, week, policy: None, users: vec![], groups: vec![] }]);
    }
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for written in &file.queues {
        let queue = queue(written.get_ref(), pool, ahead)?;
        if !names.insert(queue.name.clone()) {
            let text = format!("a second queue {:?}; each has a name of its own", queue.name);
            return Err(Problem::new(written.get_ref().name.span(), text));
        }
        all.push(queue);
    }
    Ok(all)
}

fn queue(file: &QueueFile, pool: &Week, ahead: i32) -> Result<QueueSpec, Problem> {
    let name = file.name.get_ref();
    let problem = |text: String| Problem::new(file.name.span(), text);
    if name.trim().is_empty() {
        return Err(problem("queue without a name; give it one".into()));
    }
    let whose = format!("queue {name:?}");
    let (cpus, memory, calendar) = (&file.cpus, file.memory.as_ref(), &file.calendar[..]);
    let week = Written { whose, cpus, memory, calendar }.week(ahead)?;
    if week.most().cpus_count() == 0 {
        return Err(problem(format!("queue {name:?} never has a processor")));
    }
    if memory.is_none() && pool.most().get(Kind::Memory) > 0 {
        return Err(problem(format!(
            "queue {name:?}: the pool has memory; say how much of it this queue has"
        )));
    }
    let policy = file.policy.as_ref().map(|policy| (policy.get_ref().clone(), policy.span()));
    let (users, groups) = (file.users.clone(), file.groups.clone());
    Ok(QueueSpec { name: name.clone(), week, policy, users, groups })
}

/// That at no time `parts` are more than `whole`; what to say, if they are.
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

/// The minutes of `+01:00`.
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
