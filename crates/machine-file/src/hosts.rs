//! The hosts of a machine, checked.

use std::collections::BTreeSet;

use miserly_core::devices::DeviceGroup;
use miserly_core::{Host, Kind, Resources};
use miserly_policies::shared::Profile;
use toml::Spanned;

use crate::file::{HostFile, MachineFile};
use crate::gpu::device_groups;
use crate::problem::Problem;
use crate::quantity::kilobytes;

/// More hosts than any machine has.
pub const HOSTS_MOST: u64 = 1_000_000;

/// One host, or several that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The name; with a count, the beginning of all names.
    pub name: String,
    /// The number of hosts, named with 1, 2, ... behind `name`; `None` for one that is named just so.
    pub count: Option<u32>,
    /// The resources of each.
    pub each: Resources,
    /// The devices of each.
    pub devices: Vec<DeviceGroup>,
}

impl Hosts {
    pub(crate) fn number(&self) -> u64 {
        self.count.map_or(1, u64::from)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let alone = self.count.is_none().then(|| self.name.clone());
        alone.into_iter().chain((1..=self.count.unwrap_or(0)).map(|n| format!("{}{n}", self.name)))
    }

    /// Returns these hosts, each for itself.
    pub(crate) fn singles(&self) -> impl Iterator<Item = Hosts> {
        self.names().map(|name| Hosts { name, count: None, each: self.each, devices: self.devices.clone() })
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = Host> {
        self.names().map(|name| Host { name, capacity: self.each })
    }
}

/// Returns the hosts of a file.
///
/// # Errors
/// The first mistake.
pub(crate) fn checked(file: &MachineFile) -> Result<Vec<Hosts>, Problem> {
    let all = file.hosts.iter().map(|host| hosts(host.get_ref())).collect::<Result<Vec<_>, _>>()?;
    check_names(file, &all)?;
    check_memory(file)?;
    check_gpus(file)?;
    check_totals(file, &all)?;
    Ok(all)
}

fn hosts(host: &HostFile) -> Result<Hosts, Problem> {
    let of_host = |problem: String| format!("host {:?}: {problem}", host.name);
    let number = |field: &str, written: &Spanned<i64>, least: u64, most: u64| {
        let number = u64::try_from(*written.get_ref()).ok();
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let problem = format!("{field} = {}: must be {least} to {most}", written.get_ref());
            Problem::new(written.span(), of_host(problem))
        })
    };
    let cpus = number("cpus", &host.cpus, 1, Profile::MOST.into())?;
    let gpus = host.gpus.as_ref().map_or(Ok(0), |gpus| number("gpus", gpus, 0, Profile::MOST.into()))?;
    let count = host.count.as_ref().map(|count| number("count", count, 1, HOSTS_MOST)).transpose()?;
    let memory = host.memory.as_ref().map_or(Ok(0), |memory| {
        kilobytes(memory.get_ref())
            .map_err(|problem| Problem::new(memory.span(), of_host(format!("memory: {problem}"))))
    })?;
    Ok(Hosts {
        name: host.name.clone(),
        // At most `HOSTS_MOST`.
        count: count.and_then(|count| u32::try_from(count).ok()),
        each: Resources::cpus(cpus).with(Kind::Memory, memory).with(Kind::Gpus, gpus),
        devices: device_groups(&format!("host {:?}", host.name), &host.devices)?,
    })
}

/// Checks that every host has a name of its own.
fn check_names(file: &MachineFile, hosts: &[Hosts]) -> Result<(), Problem> {
    check_number(file, hosts)?;
    let mut names = BTreeSet::new();
    for (at, hosts) in file.hosts.iter().zip(hosts) {
        if hosts.name.trim().is_empty() {
            return Err(Problem::new(at.span(), "host without a name; give it one"));
        }
        for name in hosts.names() {
            if names.contains(&name) {
                return Err(Problem::new(
                    at.span(),
                    format!("a second host {name:?}; each has a name of its own"),
                ));
            }
            names.insert(name);
        }
    }
    Ok(())
}

/// Checks that there are hosts, and at most [`HOSTS_MOST`].
fn check_number(file: &MachineFile, hosts: &[Hosts]) -> Result<(), Problem> {
    let last = file.hosts.last().map_or(0..0, Spanned::span);
    if hosts.is_empty() {
        return Err(Problem::new(last, "no host; a machine has one or more [[host]] with name and cpus"));
    }
    number_in_bounds(hosts).map_err(|problem| Problem::new(last, problem))
}

/// Checks that there are at most [`HOSTS_MOST`] hosts.
pub(crate) fn number_in_bounds(hosts: &[Hosts]) -> Result<(), String> {
    match hosts.iter().map(Hosts::number).sum() {
        0..=HOSTS_MOST => Ok(()),
        number => Err(format!("{number} hosts in all; there are at most {HOSTS_MOST}")),
    }
}

/// Checks that the memory of all hosts is known, or of none.
///
/// A host without memory would hold no job that requests some.
fn check_memory(file: &MachineFile) -> Result<(), Problem> {
    let with = file.hosts.iter().filter(|host| host.get_ref().memory.is_some()).count();
    match file.hosts.iter().find(|host| host.get_ref().memory.is_none()) {
        Some(without) if with > 0 => {
            let name = &without.get_ref().name;
            Err(Problem::new(
                without.span(),
                format!("host {name:?}: other hosts have memory; give it to all or to none"),
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that GPUs have types on all hosts, or on none.
fn check_gpus(file: &MachineFile) -> Result<(), Problem> {
    let typed = file.hosts.iter().any(|host| !host.get_ref().devices.is_empty());
    let counted = |host: &&Spanned<HostFile>| host.get_ref().gpus.is_some();
    match file.hosts.iter().find(counted).and_then(|host| Some((host, host.get_ref().gpus.as_ref()?))) {
        Some((host, gpus)) if typed => {
            let problem =
                "gpus is a count without types, and there is a [[host.gpu]]; write [[host.gpu]] instead";
            Err(Problem::new(gpus.span(), format!("host {:?}: {problem}", host.get_ref().name)))
        }
        _ => Ok(()),
    }
}

/// Checks that all hosts together can be counted.
fn check_totals(file: &MachineFile, hosts: &[Hosts]) -> Result<(), Problem> {
    let last = file.hosts.last().map_or(0..0, Spanned::span);
    totals_in_bounds(hosts).map_err(|problem| Problem::new(last, problem))
}

/// Checks that the processors and the memory of at most [`HOSTS_MOST`] hosts can be counted.
pub(crate) fn totals_in_bounds(hosts: &[Hosts]) -> Result<(), String> {
    // A million hosts of 2^30 processors are far below what a number holds.
    let procs: u64 = hosts.iter().map(|hosts| hosts.number() * hosts.each.cpus_count().get()).sum();
    if procs > u64::from(Profile::MOST) {
        return Err(format!("{procs} processors in all; there are at most {}", Profile::MOST));
    }
    let memory = hosts.iter().try_fold(0_u64, |sum, hosts| {
        hosts.number().checked_mul(hosts.each.get(Kind::Memory))?.checked_add(sum)
    });
    memory.map(drop).ok_or_else(|| "the memory of all hosts is more than a number of kB can say".to_owned())
}
