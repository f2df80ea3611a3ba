//! The processors of a host by their use.

use super::{CpuUse, HostNow, HostPart};
use crate::{Job, State};

/// The most processors that are listed by number.
const NUMBERED_MOST: u64 = 4096;

/// The processors that a job has on a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share<'a> {
    pub(super) job: &'a Job,
    pub(super) cpus: u64,
    /// Whether the number follows from an even division.
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

    fn host_part(&self, cpu_use: CpuUse, cpus: u64, numbers: Vec<(u32, u32)>) -> HostPart {
        let (job, label) = (Some(self.job.number), Some(self.job.label.clone()));
        HostPart { cpu_use, cpus, numbers, job, label, estimated: self.estimated }
    }
}

/// Returns the processors of a host by their use. `first` is the number of the first one, if they are numbered.
///
/// Jobs that share processors may have more than there are.
pub(super) fn parts(host: &HostNow, shares: &[Share<'_>], first: Option<u32>) -> Vec<HostPart> {
    let (mut held, opportunistic): (Vec<Share<'_>>, Vec<Share<'_>>) =
        shares.iter().partition(|share| share.holds());
    let has_numbers = |share: &Share<'_>| !share.job.cpus.is_empty();
    if let Some(first) = first.filter(|_| host.cpus <= NUMBERED_MOST && held.iter().all(has_numbers)) {
        return by_number(host, first, &held, &opportunistic);
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

fn unnamed(cpu_use: CpuUse, cpus: u64, numbers: Vec<(u32, u32)>) -> HostPart {
    HostPart { cpu_use, cpus, numbers, job: None, label: None, estimated: false }
}

/// Returns the processors in the order of their numbers, from `first` on.
///
/// The policy decides at a start which idle processors it takes. The last ones are shown as offline, reserved and opportunistic.
fn by_number(host: &HostNow, first: u32, held: &[Share<'_>], opportunistic: &[Share<'_>]) -> Vec<HostPart> {
    let count = usize::try_from(host.cpus).unwrap_or(0);
    let mut uses: Vec<(CpuUse, Option<&Share<'_>>)> = vec![(CpuUse::Idle, None); count];
    for share in held {
        for &(low, high) in &share.job.cpus {
            let place =
                |number: u64| usize::try_from(number.saturating_sub(u64::from(first))).unwrap_or(usize::MAX);
            let last = place(u64::from(high) + 1).min(count);
            let range = place(u64::from(low)).min(last)..last;
            uses[range].fill((CpuUse::Held, Some(share)));
        }
    }
    let amount = |cpus: u64| usize::try_from(cpus).unwrap_or(usize::MAX);
    let unnamed = [(CpuUse::Offline, host.offline), (CpuUse::Reserved, host.reserved)];
    let mut wanted =
        unnamed.into_iter().flat_map(|(cpu_use, cpus)| std::iter::repeat_n((cpu_use, None), amount(cpus)));
    let mut opportunistic = opportunistic
        .iter()
        .flat_map(|share| std::iter::repeat_n((CpuUse::Opportunistic, Some(share)), amount(share.cpus)));
    for cpu_use in uses.iter_mut().rev().filter(|(cpu_use, _)| *cpu_use == CpuUse::Idle) {
        let Some(taken) = wanted.next().or_else(|| opportunistic.next()) else { break };
        *cpu_use = taken;
    }
    runs(first, &uses)
}

/// Returns the runs of processors with the same use and the same job.
fn runs(first: u32, uses: &[(CpuUse, Option<&Share<'_>>)]) -> Vec<HostPart> {
    let job = |share: Option<&Share<'_>>| share.map(|share| share.job.number);
    let mut parts: Vec<HostPart> = vec![];
    for (number, (cpu_use, share)) in (first..=u32::MAX).zip(uses) {
        match parts.last_mut() {
            Some(part) if part.cpu_use == *cpu_use && part.job == job(*share) => {
                part.cpus += 1;
                part.numbers[0].1 = number;
            }
            _ => {
                let numbers = vec![(number, number)];
                parts.push(match share {
                    Some(share) => share.host_part(*cpu_use, 1, numbers),
                    None => unnamed(*cpu_use, 1, numbers),
                });
            }
        }
    }
    parts
}
