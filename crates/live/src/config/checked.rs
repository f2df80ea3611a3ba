//! From a configuration file to the configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;

use miserly_core::{Kind, Resources, Span};
use toml::Spanned;

use super::error::{ConfigError, Problem};
use super::file::{File, Written};
use super::weekly::amount;
use super::{Access, Configuration, Machine, Queue, Weekly, paths, units, weekly};

impl Configuration {
    /// What `text` says, the content of the file `path`, on this machine. No text is a file that says nothing.
    ///
    /// # Errors
    /// The first thing that is wrong: the line, the field, and what to do.
    pub fn parse(path: &str, text: &str, machine: &Machine) -> Result<Configuration, ConfigError> {
        let read = toml::from_str::<File>(text).map_err(|error| told(&error));
        read.and_then(|file| checked(&file, machine)).map_err(|problem| ConfigError::at(path, text, problem))
    }
}

/// What the parser says, in one line.
fn told(error: &toml::de::Error) -> Problem {
    let problem = error.message().lines().collect::<Vec<_>>().join("; ");
    (error.span().unwrap_or(0..0), problem)
}

fn checked(file: &File, machine: &Machine) -> Result<Configuration, Problem> {
    let utc_offset = weekly::utc_offset(file.utc_offset.as_ref())?;
    let pool = pool(file, machine, utc_offset)?;
    let queues = queues(file, &pool, utc_offset)?;
    check_sums(file, machine, &pool, &queues)?;
    let most = usize::try_from(pool.most().cpus_count()).unwrap_or(usize::MAX);
    // The last ones: what runs beside the jobs begins at the first.
    let cpus = machine.cpus[machine.cpus.len().saturating_sub(most)..].to_vec();
    let time = |written: &Written<toml::Value>, field: &str, instead: i64| {
        let instead = Span::from_secs(instead).unwrap_or(Span::ZERO);
        units::time(written.as_ref(), field).map(|span| span.unwrap_or(instead))
    };
    let state = folder(file.state.as_ref(), "state")?;
    Ok(Configuration {
        state: state.map_or_else(paths::state, Ok).map_err(|problem| (0..0, problem))?,
        socket: folder(file.socket.as_ref(), "socket")?.unwrap_or_else(paths::socket),
        access: access(file.access.as_ref())?,
        cpus,
        grace: time(&file.grace, "grace", 10)?,
        handover: time(&file.hand_over, "hand-over", 5)?,
        alone: time(&file.alone, "alone", 600)?,
        parking_lead: time(&file.parking_lead, "parking-lead", 5)?,
        opportunistic: file.opportunistic.unwrap_or(true),
        keep_history: units::time(file.keep_history.as_ref(), "keep-history")?,
        pool,
        queues,
    })
}

/// A path from the root on: what it is from elsewhere would depend on where the daemon was started.
fn folder(written: Option<&Spanned<String>>, field: &str) -> Result<Option<PathBuf>, Problem> {
    let Some(written) = written else { return Ok(None) };
    let path = PathBuf::from(written.get_ref());
    if path.is_absolute() {
        Ok(Some(path))
    } else {
        let problem = format!("{field} = {:?}: write the whole path, from / on", written.get_ref());
        Err((written.span(), problem))
    }
}

fn access(written: Option<&Spanned<String>>) -> Result<Access, Problem> {
    let Some(written) = written else { return Ok(Access::default()) };
    match written.get_ref().as_str() {
        "own" => Ok(Access::Own),
        "everybody" => Ok(Access::Everybody),
        other => Err((written.span(), format!("access = {other:?}: it is \"own\" or \"everybody\""))),
    }
}

/// Half of the machine, and what is written in place of that.
fn pool(file: &File, machine: &Machine, utc_offset: i32) -> Result<Weekly, Problem> {
    let half = Resources::cpus((machine.count() / 2).max(1)).with(Kind::Memory, machine.memory / 2);
    let Some(pool) = &file.pool else { return Ok(Weekly::constant(half)) };
    let written = pool.get_ref();
    let base = amount(written.cpus.as_ref(), written.memory.as_ref(), half)?;
    Weekly::checked(base, &written.calendar, utc_offset)
}

fn queues(file: &File, pool: &Weekly, utc_offset: i32) -> Result<Vec<Queue>, Problem> {
    if file.queues.is_empty() {
        return Ok(vec![Queue::only(pool)?]);
    }
    let mut names = BTreeSet::new();
    for queue in &file.queues {
        let name = &queue.get_ref().name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let problem = format!("name = {:?}: letters, digits, - and _, at least one", name.get_ref());
            return Err((name.span(), problem));
        } else if !names.insert(name.get_ref()) {
            return Err((
                name.span(),
                format!("a second queue {:?}; each has a name of its own", name.get_ref()),
            ));
        }
    }
    file.queues.iter().map(|queue| Queue::checked(file, queue.get_ref(), pool, utc_offset)).collect()
}

/// That at every instant the queues have no more than the pool, and the pool no more than the machine; that each has something at some time.
fn check_sums(file: &File, machine: &Machine, pool: &Weekly, queues: &[Queue]) -> Result<(), Problem> {
    let whole = Resources::cpus(machine.count()).with(Kind::Memory, machine.memory);
    let at_pool = file.pool.as_ref().map_or(0..0, Spanned::span);
    for minute in pool.changes() {
        fits(pool.at(minute), whole, "the pool has", "the machine", minute)
            .map_err(|problem| (at_pool.clone(), problem))?;
    }
    let instants =
        queues.iter().map(|queue| queue.pool.changes()).fold(pool.changes(), |all, more| &all | &more);
    let last = file.queues.last().map_or(at_pool, |queue| queue.get_ref().name.span());
    for minute in instants {
        let sum = queues.iter().map(|queue| queue.pool.at(minute)).fold(Resources::NONE, |sum, at| {
            let add = |kind| sum.get(kind).saturating_add(at.get(kind));
            Resources::cpus(add(Kind::Cpus)).with(Kind::Memory, add(Kind::Memory))
        });
        fits(sum, pool.at(minute), "the queues have", "the pool", minute)
            .map_err(|problem| (last.clone(), problem))?;
    }
    match queues.iter().position(|queue| queue.pool.most().cpus_count() == 0) {
        Some(empty) => {
            let span = file.queues.get(empty).map_or(0..0, |queue| queue.get_ref().name.span());
            Err((span, format!("cpus: queue {:?} never has any", queues[empty].name)))
        }
        None => Ok(()),
    }
}

fn fits(sum: Resources, most: Resources, who: &str, whose: &str, minute: u32) -> Result<(), String> {
    for (kind, unit) in [(Kind::Cpus, "cpus"), (Kind::Memory, "kB of memory")] {
        if sum.get(kind) > most.get(kind) {
            let (sum, most) = (sum.get(kind), most.get(kind));
            let when = Weekly::instant(minute);
            return Err(format!("from {when} on {who} {sum} {unit}, and {whose} has {most}"));
        }
    }
    Ok(())
}
