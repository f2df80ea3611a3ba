//! The conversion of a configuration file to a configuration.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use miserly_api::model::is_plain_name;
use miserly_core::{Kind, Span};
use miserly_engine::WaitingShimLimits;
use miserly_executor::Rules;
use miserly_launch::CriticalPriority;
use miserly_machine_file::file::QueueFile;
use miserly_machine_file::{Pools, Queue as Part, Week, job_classes, kilobytes, parse, value_or_default};
use miserly_units::memory;
use rustix::process::getuid;
use toml::{Spanned, Value};

use super::error::{ConfigError, Problem, of_field};
use super::file::{File, Written};
use super::pools::pools;
use super::programs::ProgramLimits;
use super::user_limits::user_limits;
use super::values::{folder, time};
use super::{Configuration, GroupPlace, Machine, Queue, accounts, charge, cores, gpus, paths, slurm_tables};
use crate::server::Access;
use crate::store::BackupPlan;

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
    let cgroup = GroupPlace::checked(file)?;
    // The limits of the daemon's own group are not those of its jobs.
    let whole = matches!(cgroup, Some(GroupPlace::Systemd { .. })).then(|| machine.whole());
    let machine = whole.as_ref().unwrap_or(machine);
    let Pools { pool, queues: parts } = pools(file, machine)?;
    let gpus = gpus::checked(file, pool.most().get(Kind::Gpus), machine)?;
    if let Some(place) = &cgroup {
        place.fits(file, &pool, machine)?;
    }
    let memory_reserve = memory_reserve(file, &pool, machine)?;
    let time_or = |written: &Written<Value>, field: &str, instead: i64| {
        let instead = Span::from_secs(instead).unwrap_or(Span::ZERO);
        time(written.as_ref(), field).map(|span| span.unwrap_or(instead))
    };
    let cleanup_time = time_or(&file.cleanup_time, "cleanup-time", 5)?;
    let mut queues = queues(file, parts, ProgramLimits::new(cleanup_time, file.user.is_some()))?;
    gpus::assign(file, &gpus, &mut queues)?;
    let most = usize::try_from(pool.most().cpus_count().get()).unwrap_or(usize::MAX);
    let whole_cores = file.whole_cores.as_ref().is_some_and(|written| *written.get_ref());
    let cpus = if whole_cores {
        let wrong =
            |problem| Problem::new(file.whole_cores.as_ref().map(Spanned::span).unwrap_or_default(), problem);
        cores::check_queues(&queues).map_err(wrong)?;
        cores::last(machine, most).map_err(wrong)?
    } else {
        // The last processors: other work on the machine starts with the first ones.
        machine.cpus[machine.cpus.len().saturating_sub(most)..].to_vec()
    };
    let state = folder(file.state.as_ref(), "state")?;
    let user = file.user.as_ref().map(|user| user.get_ref().clone());
    let allow_root = file.allow_root.as_ref().filter(|written| *written.get_ref());
    if let Some(written) = allow_root.filter(|_| user.is_none()) {
        let problem = "allow-root: it has a meaning only with `user`".to_owned();
        return Err(Problem::new(written.span(), problem));
    }
    // A daemon with `user` starts as root.
    let of_root = user.is_some() || getuid().is_root();
    Ok(Configuration {
        state: state
            .map_or_else(|| paths::state(of_root), Ok)
            .map_err(|problem| Problem::new(0..0, problem))?,
        socket: folder(file.socket.as_ref(), "socket")?.unwrap_or_else(|| paths::socket(of_root)),
        cgroup,
        opportunistic_cpus: machine.cpus.clone(),
        access: value_or_default(file.access.as_ref(), "access", &Access::ALL)?,
        user,
        allow_root: allow_root.is_some(),
        rules: rules(file, &queues)?,
        cpus,
        topology: machine.topology.clone(),
        gpus,
        whole_cores,
        grace: time_or(&file.grace, "grace", 10)?,
        cleanup_time,
        orphan_resume_delay: time_or(&file.orphan_resume_delay, "orphan-resume-delay", 600)?,
        preempt_lead_time: time_or(&file.preempt_lead_time, "preempt-lead-time", 5)?,
        opportunistic: file.opportunistic.unwrap_or(true),
        waiting_shims: waiting_shims(file)?,
        keep_history: time(file.keep_history.as_ref(), "keep-history")?,
        backups: backups(file)?,
        operators: accounts::operators(&file.operators),
        slurm: slurm_tables::checked(&file.slurm, &queues)?,
        user_limits: user_limits(file)?,
        requests_per_minute: file.user_limits.requests_per_minute,
        memory_reserve,
        charge: charge::checked(file)?,
        pool,
        queues,
    })
}

miserly_core::named_enum! {
    /// A word for the priority of jobs in their windows.
    #[derive(Default)]
    enum PriorityWord {
        #[default]
        Auto "auto",
        None "none",
        RealTime "real-time",
    }
}

impl PriorityWord {
    fn checked(file: &File) -> Result<CriticalPriority, Problem> {
        let word =
            value_or_default(file.critical_priority.as_ref(), "critical-priority", &PriorityWord::ALL)?;
        Ok(match word {
            PriorityWord::Auto => CriticalPriority::Auto,
            PriorityWord::None => CriticalPriority::Off,
            PriorityWord::RealTime => CriticalPriority::RealTime,
        })
    }
}

/// Returns the rules for jobs of other users, and the programs of queues.
fn rules(file: &File, queues: &[Queue]) -> Result<Rules, Problem> {
    let of_queue = |queue: &Spanned<QueueFile>| queue.get_ref().no_new_privileges.as_ref().map(Spanned::span);
    let written = [
        ("private-folders", file.private_folders.as_ref().map(Spanned::span)),
        ("no-new-privileges", file.no_new_privileges.as_ref().map(Spanned::span)),
        ("pam", file.pam.as_ref().map(Spanned::span)),
        ("no-new-privileges", file.queues.iter().find_map(of_queue)),
    ];
    let mut written = written.into_iter().filter_map(|(field, span)| span.map(|span| (field, span)));
    if file.user.is_none()
        && let Some((field, span)) = written.next()
    {
        return Err(Problem::new(span, format!("{field}: it has a meaning only with `user`")));
    }
    let is_on = |written: &Written<bool>| written.as_ref().is_none_or(|on| *on.get_ref());
    if let Some(service) = file.pam.as_ref().filter(|service| !is_plain_name(service.get_ref())) {
        let problem = format!("{:?} is no name of a service: a file in /etc/pam.d", service.get_ref());
        return Err(of_field(service, "pam", &problem));
    }
    let no_new_privileges = is_on(&file.no_new_privileges);
    let others = queues.iter().filter(|queue| queue.no_new_privileges == Some(!no_new_privileges));
    let programs = queues.iter().filter(|queue| !queue.programs.is_empty());
    Ok(Rules {
        no_new_privileges,
        other_privileges: others.map(|queue| queue.name.clone()).collect(),
        private_folders: is_on(&file.private_folders),
        pam: file.pam.as_ref().map(|service| service.get_ref().clone()),
        critical_priority: PriorityWord::checked(file)?,
        programs: programs.map(|queue| (queue.name.clone(), queue.programs.clone())).collect(),
    })
}

/// Returns the memory that is not for jobs, kilobytes. Checks that the pool leaves it.
fn memory_reserve(file: &File, pool: &Week, machine: &Machine) -> Result<u64, Problem> {
    let written = file.memory_reserve.as_ref();
    let read = |written: &Spanned<Value>| {
        kilobytes(written.get_ref()).map_err(|problem| of_field(written, "memory-reserve", &problem))
    };
    let reserve = written.map(read).transpose()?.unwrap_or(machine.memory / 10);
    let most = pool.most().get(Kind::Memory);
    let Machine { memory: all, huge_pages, .. } = *machine;
    if most <= all.saturating_sub(reserve).saturating_sub(huge_pages) {
        return Ok(reserve);
    }
    let shown = |kilobytes: u64| memory(kilobytes.saturating_mul(1024));
    let huge =
        if huge_pages > 0 { format!(" and {} are huge pages", shown(huge_pages)) } else { String::new() };
    let problem = format!(
        "the pool has {} of memory, and the machine has {}, of which {} are reserved (memory-reserve){huge}: at most {} are \
         left for jobs",
        shown(most),
        shown(all),
        shown(reserve),
        shown(all.saturating_sub(reserve).saturating_sub(huge_pages))
    );
    let pool_at = file.pool.as_ref().and_then(|pool| pool.get_ref().memory.as_ref()).map(Spanned::span);
    let span = pool_at.or_else(|| written.map(Spanned::span)).unwrap_or_default();
    Err(Problem::new(span, problem))
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

/// Returns how many shims wait for windows.
fn waiting_shims(file: &File) -> Result<WaitingShimLimits, Problem> {
    let number = |written: &Written<i64>, field: &str, instead: usize| {
        let Some(written) = written else { return Ok(instead) };
        let problem = || Problem::new(written.span(), format!("{field}: it is at least 0"));
        usize::try_from(*written.get_ref()).map_err(|_| problem())
    };
    let WaitingShimLimits { most, per_cpu } = WaitingShimLimits::default();
    Ok(WaitingShimLimits {
        most: number(&file.waiting_shims, "waiting-shims", most)?,
        per_cpu: number(&file.waiting_shims_per_cpu, "waiting-shims-per-cpu", per_cpu)?,
    })
}

/// Returns the queues over their parts of the pool. A file without queues gives one.
fn queues(file: &File, parts: Vec<Part>, limits: ProgramLimits) -> Result<Vec<Queue>, Problem> {
    let names = parts.iter().map(|part| (part.name.clone(), vec![part.name.clone()])).collect();
    let classes = file.classes.as_ref().map(|classes| job_classes("the configuration", classes, &names));
    let classes = classes.transpose()?.map(Arc::new);
    let written = file.queues.iter().map(|queue| Some(queue.get_ref())).chain(iter::repeat(None));
    let queue = |(part, written)| Queue::checked(part, written, classes.as_ref(), limits);
    parts.into_iter().zip(written).map(queue).collect()
}
