//! The processors of a host by their use.

use super::by_number::{Numbers, by_number};
use super::{CpuUse, HostNow, HostPart};
use crate::{Job, State};

/// The processors that a job has on a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share<'a> {
    pub(super) job: &'a Job,
    pub(super) cpus: u64,
    /// Whether it is not known which processors these are, or how many of the host.
    pub(super) estimated: bool,
}

impl<'a> Share<'a> {
    /// Returns the share of a job that is on one host.
    pub(super) fn whole(job: &'a Job) -> Share<'a> {
        Share { job, cpus: job.procs, estimated: false }
    }

    /// Returns the share of a job on one of its hosts, if it is divided evenly.
    pub(super) fn part(job: &'a Job) -> Share<'a> {
        let hosts = u64::try_from(job.hosts.len()).unwrap_or(u64::MAX).max(1);
        Share { job, cpus: job.procs.div_ceil(hosts), estimated: hosts > 1 }
    }

    /// Returns the share of a job on the host with `cpus` processors from number `first` on.
    pub(super) fn numbered(job: &'a Job, first: u32, cpus: u64) -> Share<'a> {
        let (first, above) = (u64::from(first), u64::from(first).saturating_add(cpus));
        let within = |&(low, high): &(u32, u32)| {
            (u64::from(high) + 1).min(above).saturating_sub(u64::from(low).max(first))
        };
        Share { job, cpus: job.cpus.iter().map(within).sum(), estimated: false }
    }

    /// Returns its memory: each processor takes its part of that of the job.
    pub(super) fn memory(&self) -> u64 {
        let bytes = u128::from(self.job.memory) * u128::from(self.cpus) / u128::from(self.job.procs.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns whether the job is in its window.
    pub(super) fn holds(&self) -> bool {
        self.job.state != State::Opportunistic
    }

    pub(super) fn host_part(&self, cpu_use: CpuUse, cpus: u64, numbers: Vec<(u32, u32)>) -> HostPart {
        let (job, label) = (Some(self.job.number), Some(self.job.label.clone()));
        HostPart { cpu_use, cpus, numbers, job, label, estimated: self.estimated }
    }
}

/// Returns the processors of a host by their use, in the order of their numbers if these are known.
///
/// Jobs that share processors may have more than there are.
pub(super) fn parts(host: &HostNow, shares: &[Share<'_>], numbers: &Numbers) -> Vec<HostPart> {
    let (mut held, opportunistic): (Vec<Share<'_>>, Vec<Share<'_>>) =
        shares.iter().partition(|share| share.holds());
    if numbers.count() == host.cpus
        && let Some(parts) = by_number(host, numbers, &held, &opportunistic)
    {
        return parts;
    }
    // Jobs with known processors are first, in the order of these.
    let first = |share: &Share<'_>| share.job.cpus.first().map_or(u32::MAX, |(low, _)| *low);
    held.sort_by_key(|share| (first(share), share.job.number));
    let shown = |share: &Share<'_>| share.host_part(CpuUse::Held, share.cpus, share.job.cpus.clone());
    let mut parts: Vec<HostPart> = held.iter().map(shown).collect();
    let named: u64 = held.iter().map(|share| share.cpus).sum();
    parts.push(unnamed(CpuUse::Held, host.held.saturating_sub(named), vec![]));
    let mut idle = host.reserved.saturating_add(host.free);
    for share in &opportunistic {
        let cpus = share.cpus.min(idle);
        idle -= cpus;
        parts.push(share.host_part(CpuUse::Opportunistic, cpus, vec![]));
    }
    let reserved = host.reserved.min(idle);
    parts.push(unnamed(CpuUse::Idle, idle - reserved, vec![]));
    parts.push(unnamed(CpuUse::Reserved, reserved, vec![]));
    parts.push(unnamed(CpuUse::Offline, host.offline, vec![]));
    parts.retain(|part| part.cpus > 0);
    parts
}

pub(super) fn unnamed(cpu_use: CpuUse, cpus: u64, numbers: Vec<(u32, u32)>) -> HostPart {
    HostPart { cpu_use, cpus, numbers, job: None, label: None, estimated: false }
}
