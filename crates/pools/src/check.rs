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
            let (cpus, memory, calendar) = (Some(&pool.cpus), pool.memory.as_ref(), &pool.calendar[..]);
            let whose = "pool".into();
            let week = Written { whose, cpus, memory, calendar, otherwise: Resources::NONE }.week(ahead)?;
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
        return Ok(vec![QueueSpec { name, week, policy: None }]);
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

fn queue(file: &QueueFile, pool: &Week, alone: bool, ahead: i32) -> Result<QueueSpec, Problem> {
    let name = file.name.get_ref();
    let problem = |text: String| Problem::new(file.name.span(), text);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(problem(format!("name = {name:?}: letters, digits, - and _, at least one")));
    }
    let week = if alone { only(file, pool, ahead)? } else { one_of_several(file, pool, ahead)? };
    if week.most().cpus_count().is_zero() {
        return Err(problem(format!("queue {name:?} never has a processor")));
    }
    let policy = file.policy.as_ref().map(|policy| (policy.get_ref().clone(), policy.span()));
    Ok(QueueSpec { name: name.clone(), week, policy })
}

/// What the only queue has: the pool's, but for what it says itself.
fn only(file: &QueueFile, pool: &Week, ahead: i32) -> Result<Week, Problem> {
    if file.cpus.is_none() && file.memory.is_none() && file.calendar.is_empty() {
        return Ok(pool.clone());
    }
    written(file, pool.most()).week(ahead)
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
    written(file, Resources::NONE).week(ahead)
}

fn written(file: &QueueFile, otherwise: Resources) -> Written<'_> {
    Written {
        whose: format!("queue {:?}", file.name.get_ref()),
        cpus: file.cpus.as_ref(),
        memory: file.memory.as_ref(),
        calendar: &file.calendar,
        otherwise,
    }
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
