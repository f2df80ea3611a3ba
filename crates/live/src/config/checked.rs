//! The conversion of a configuration file to a configuration.

use std::iter;
use std::path::PathBuf;
use std::time::Duration;

use miserly_core::Span;
use miserly_machine_file::{Pools, Queue as Part, duration, parse, value_or_default};
use toml::{Spanned, Value};

use super::error::{ConfigError, Problem, of_field};
use super::file::{File, Written};
use super::pools::pools;
use super::{Configuration, Machine, Queue, paths};
use crate::server::Access;
use crate::store::BackupPlan;

/// The words for the users that may connect.
const ACCESS: [(&str, Access); 2] = [("own", Access::Own), ("everybody", Access::Everybody)];

impl Configuration {
    /// Parses `text`, the content of the file `path`, for this machine. An empty text gives the
    /// defaults.
    ///
    /// # Errors
    /// The first problem: the line, the field, and the remedy.
    pub fn parse(path: &str, text: &str, machine: &Machine) -> Result<Configuration, ConfigError> {
        let checked = parse::<File>(text).and_then(|file| checked(&file, machine));
        checked.map_err(|problem| ConfigError::at(path, text, problem))
    }
}

fn checked(file: &File, machine: &Machine) -> Result<Configuration, Problem> {
    let Pools { pool, queues: parts } = pools(file, machine)?;
    let queues = queues(file, parts)?;
    let most = usize::try_from(pool.most().cpus_count().get()).unwrap_or(usize::MAX);
    // The last processors: other work on the machine starts with the first ones.
    let cpus = machine.cpus[machine.cpus.len().saturating_sub(most)..].to_vec();
    let time_or = |written: &Written<Value>, field: &str, instead: i64| {
        let instead = Span::from_secs(instead).unwrap_or(Span::ZERO);
        time(written.as_ref(), field).map(|span| span.unwrap_or(instead))
    };
    let state = folder(file.state.as_ref(), "state")?;
    Ok(Configuration {
        state: state.map_or_else(paths::state, Ok).map_err(|problem| Problem::new(0..0, problem))?,
        socket: folder(file.socket.as_ref(), "socket")?.unwrap_or_else(paths::socket),
        access: value_or_default(file.access.as_ref(), "access", &ACCESS)?,
        cpus,
        grace: time_or(&file.grace, "grace", 10)?,
        cleanup_time: time_or(&file.cleanup_time, "cleanup-time", 5)?,
        orphan_resume_delay: time_or(&file.orphan_resume_delay, "orphan-resume-delay", 600)?,
        preempt_lead_time: time_or(&file.preempt_lead_time, "preempt-lead-time", 5)?,
        opportunistic: file.opportunistic.unwrap_or(true),
        keep_history: time(file.keep_history.as_ref(), "keep-history")?,
        backups: backups(file)?,
        user_limits: file.user_limits.limits()?,
        requests_per_minute: file.user_limits.requests_per_minute,
        pool,
        queues,
    })
}

/// Returns the duration in a field, if it is there.
pub(super) fn time(written: Option<&Spanned<Value>>, field: &str) -> Result<Option<Span>, Problem> {
    let read = |written: &Spanned<Value>| {
        duration(written.get_ref()).map_err(|problem| of_field(written, field, &problem))
    };
    written.map(read).transpose()
}

/// Returns the interval of the backups and their number.
fn backups(file: &File) -> Result<BackupPlan, Problem> {
    let interval = time(file.backup_interval.as_ref(), "backup-interval")?;
    let interval = interval.map_or(3600, Span::secs);
    let keep = file.backup_keep.as_ref().map_or(3, |written| *written.get_ref());
    let least = |value: i64, written: Option<std::ops::Range<usize>>, field: &str, least: &str| {
        let problem = format!("{field}: it is at least {least}");
        let positive = u64::try_from(value).ok().filter(|value| *value > 0);
        positive.ok_or_else(|| Problem::new(written.unwrap_or_default(), problem))
    };
    let interval_at = file.backup_interval.as_ref().map(Spanned::span);
    let interval = least(interval, interval_at, "backup-interval", "a second")?;
    let keep = least(keep, file.backup_keep.as_ref().map(Spanned::span), "backup-keep", "1")?;
    Ok(BackupPlan {
        interval: Duration::from_secs(interval),
        keep: usize::try_from(keep).unwrap_or(usize::MAX),
    })
}

/// Returns an absolute path. A relative one would depend on the directory in which the daemon was
/// started.
fn folder(written: Option<&Spanned<String>>, field: &str) -> Result<Option<PathBuf>, Problem> {
    let Some(written) = written else { return Ok(None) };
    let path = PathBuf::from(written.get_ref());
    if path.is_absolute() {
        Ok(Some(path))
    } else {
        let problem = format!("{field} = {:?}: write the whole path, from / on", written.get_ref());
        Err(Problem::new(written.span(), problem))
    }
}

/// Returns the queues over their parts of the pool. A file without queues gives one.
fn queues(file: &File, parts: Vec<Part>) -> Result<Vec<Queue>, Problem> {
    let written = file.queues.iter().map(|queue| Some(queue.get_ref())).chain(iter::repeat(None));
    parts.into_iter().zip(written).map(|(part, written)| Queue::checked(part, written)).collect()
}
