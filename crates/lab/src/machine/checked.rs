//! From a machine file to the machine that it describes.

use std::collections::BTreeSet;
use std::ops::Range;

use miserly_core::{Kind, Resources};
use miserly_policies::shared::Profile;
use miserly_pools::{PoolsFile, kilobytes, line_of, parse};
use toml::Spanned;

use super::file::{File, HostFile};
use super::pools::pools;
use super::{HOSTS_MOST, Hosts, MachineError, MachineSpec, SHARINGS, SPANS, file_name, value_of};

/// What is wrong, and where in the text.
pub(super) type Problem = (Range<usize>, String);

impl MachineSpec {
    /// The machine that `text` describes, the content of the file `path`.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn parse(path: &str, text: &str) -> Result<MachineSpec, MachineError> {
        let read = parse::<File>(text).map_err(|problem| (problem.at, problem.text));
        read.and_then(|file| checked(path, file)).map_err(|(at, problem)| {
            let line = line_of(text, &at);
            MachineError::File { file: path.into(), line, problem }
        })
    }
}

fn checked(path: &str, file: File) -> Result<MachineSpec, Problem> {
    let hosts = file.hosts.iter().map(|host| hosts(host.get_ref())).collect::<Result<Vec<_>, _>>()?;
    check_names(&file, &hosts)?;
    check_memory(&file)?;
    check_totals(&file, &hosts)?;
    let spec = MachineSpec {
        spread: word(file.span.as_ref(), "span", &SPANS)?,
        sharing: word(file.sharing.as_ref(), "sharing", &SHARINGS)?,
        ..MachineSpec::of(file_name(path).into(), hosts)
    };
    let written = PoolsFile { utc_offset: file.utc_offset, pool: file.pool, queues: file.queues };
    Ok(MachineSpec { pools: pools(&written, &spec)?, ..spec })
}

/// The value of a word; the default where nothing is written.
fn word<T: Copy + Default>(
    written: Option<&Spanned<String>>,
    field: &str,
    words: &[(&str, T)],
) -> Result<T, Problem> {
    let Some(written) = written else { return Ok(T::default()) };
    value_of(words, field, written.get_ref()).map_err(|problem| (written.span(), problem))
}

fn hosts(host: &HostFile) -> Result<Hosts, Problem> {
    let of_host = |problem: String| format!("host {:?}: {problem}", host.name);
    let number = |field: &str, written: &Spanned<i64>, least: u64, most: u64| {
        let number = u64::try_from(*written.get_ref()).ok();
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let problem = format!("{field} = {}: it is {least} to {most}", written.get_ref());
            (written.span(), of_host(problem))
        })
    };
    let cpus = number("cpus", &host.cpus, 1, Profile::MOST.into())?;
    let gpus = host.gpus.as_ref().map_or(Ok(0), |gpus| number("gpus", gpus, 0, Profile::MOST.into()))?;
    let count = host.count.as_ref().map(|count| number("count", count, 1, HOSTS_MOST)).transpose()?;
    let memory = host.memory.as_ref().map_or(Ok(0), |memory| {
        kilobytes(memory.get_ref()).map_err(|problem| (memory.span(), of_host(format!("memory: {problem}"))))
    })?;
    Ok(Hosts {
        name: host.name.clone(),
        // At most `HOSTS_MOST`.
        count: count.and_then(|count| u32::try_from(count).ok()),
        each: Resources::cpus(cpus).with(Kind::Memory, memory).with(Kind::Gpus, gpus),
    })
}

/// That every host has a name of its own.
fn check_names(file: &File, hosts: &[Hosts]) -> Result<(), Problem> {
    check_number(file, hosts)?;
    let mut names = BTreeSet::new();
    for (at, hosts) in file.hosts.iter().zip(hosts) {
        if hosts.name.trim().is_empty() {
            return Err((at.span(), "host without a name; give it one".into()));
        }
        for name in hosts.names() {
            if names.contains(&name) {
                return Err((at.span(), format!("a second host {name:?}; each has a name of its own")));
            }
            names.insert(name);
        }
    }
    Ok(())
}

/// That there are hosts, and no more than there may be.
fn check_number(file: &File, hosts: &[Hosts]) -> Result<(), Problem> {
    let number: u64 = hosts.iter().map(Hosts::number).sum();
    let last = file.hosts.last().map_or(0..0, Spanned::span);
    match number {
        0 => Err((last, "no host; a machine has one or more [[host]] with name and cpus".into())),
        1..=HOSTS_MOST => Ok(()),
        _ => Err((last, format!("{number} hosts in all; there are at most {HOSTS_MOST}"))),
    }
}

/// That the memory of all hosts is known, or of none: one without would hold no job that asks for some.
fn check_memory(file: &File) -> Result<(), Problem> {
    let with = file.hosts.iter().filter(|host| host.get_ref().memory.is_some()).count();
    match file.hosts.iter().find(|host| host.get_ref().memory.is_none()) {
        Some(without) if with > 0 => {
            let name = &without.get_ref().name;
            Err((
                without.span(),
                format!("host {name:?}: other hosts have memory; give it to all or to none"),
            ))
        }
        _ => Ok(()),
    }
}

/// That all hosts together can be counted.
fn check_totals(file: &File, hosts: &[Hosts]) -> Result<(), Problem> {
    let last = file.hosts.last().map_or(0..0, Spanned::span);
    // A million hosts of 2^30 processors are far below what a number holds.
    let procs: u64 = hosts.iter().map(|hosts| hosts.number() * hosts.each.cpus_count().get()).sum();
    if procs > u64::from(Profile::MOST) {
        return Err((last, format!("{procs} processors in all; there are at most {}", Profile::MOST)));
    }
    let memory = hosts.iter().try_fold(0_u64, |sum, hosts| {
        hosts.number().checked_mul(hosts.each.get(Kind::Memory))?.checked_add(sum)
    });
    memory
        .map(drop)
        .ok_or_else(|| (last, "the memory of all hosts is more than a number of kB can say".into()))
}
