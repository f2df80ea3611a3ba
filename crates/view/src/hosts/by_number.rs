//! The processors of a host in the order of their numbers.

use super::parts::{Share, unnamed};
use super::{CpuUse, HostNow, HostPart};

/// The processors of a host by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// All of them, as rising ranges with both ends.
    pub(super) all: Vec<(u32, u32)>,
    /// Those that no job can use now.
    pub(super) offline: Vec<(u32, u32)>,
}

impl Numbers {
    /// Returns the numbers of `cpus` processors from `first` on.
    pub(super) fn from(first: u32, cpus: u64) -> Numbers {
        let last = cpus.checked_sub(1).and_then(|more| u32::try_from(u64::from(first) + more).ok());
        Numbers { all: last.map(|last| (first, last)).into_iter().collect(), offline: vec![] }
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> u64 {
        self.all.iter().map(|(low, high)| u64::from(high.saturating_sub(*low)) + 1).sum()
    }
}

/// A processor: its use, and the job that has it.
type Use<'a> = (CpuUse, Option<&'a Share<'a>>);

/// Returns the processors in the order of their numbers; `None` if jobs share some of them.
///
/// The policy decides at a start which idle processors it takes. The last ones are shown as reserved and opportunistic, and as
/// offline or as those of a job without numbers if it is not known which are.
pub(super) fn by_number(
    host: &HostNow,
    numbers: &Numbers,
    held: &[Share<'_>],
    opportunistic: &[Share<'_>],
) -> Option<Vec<HostPart>> {
    let all: Vec<u32> = numbers.all.iter().flat_map(|(low, high)| *low..=*high).collect();
    let places = |&(low, high): &(u32, u32)| {
        let first = all.partition_point(|number| *number < low);
        first..all.partition_point(|number| *number <= high).max(first)
    };
    let mut uses: Vec<Use<'_>> = vec![(CpuUse::Idle, None); all.len()];
    let (named, unknown): (Vec<&Share<'_>>, Vec<&Share<'_>>) =
        held.iter().partition(|share| !share.job.cpus.is_empty());
    for share in named {
        for range in &share.job.cpus {
            for place in &mut uses[places(range)] {
                if place.1.is_some_and(|other| other.job.number != share.job.number) {
                    return None;
                }
                *place = (CpuUse::Held, Some(share));
            }
        }
    }
    let mut offline = host.offline;
    for place in numbers.offline.iter().flat_map(places) {
        if uses[place].0 == CpuUse::Idle && offline > 0 {
            uses[place] = (CpuUse::Offline, None);
            offline -= 1;
        }
    }
    let unknown: Vec<Share<'_>> =
        unknown.into_iter().map(|share| Share { estimated: true, ..*share }).collect();
    // A processor on which an opportunistic job runs may be reserved as well.
    let others =
        unknown.iter().chain(opportunistic).map(|share| share.cpus).fold(offline, u64::saturating_add);
    let idle = uses.iter().filter(|(cpu_use, _)| *cpu_use == CpuUse::Idle).count() as u64;
    let reserved = host.reserved.min(idle.saturating_sub(others));
    let mut wanted = vec![(CpuUse::Offline, None, offline), (CpuUse::Reserved, None, reserved)];
    wanted.extend(unknown.iter().map(|share| (CpuUse::Held, Some(share), share.cpus)));
    wanted.extend(opportunistic.iter().map(|share| (CpuUse::Opportunistic, Some(share), share.cpus)));
    let wanted = wanted.into_iter().flat_map(|(cpu_use, share, cpus)| {
        std::iter::repeat_n((cpu_use, share), usize::try_from(cpus).unwrap_or(usize::MAX))
    });
    let idle = uses.iter_mut().rev().filter(|(cpu_use, _)| *cpu_use == CpuUse::Idle);
    for (place, taken) in idle.zip(wanted) {
        *place = taken;
    }
    Some(runs(&all, &uses))
}

/// Returns the runs of processors with the same use and the same job.
fn runs(numbers: &[u32], uses: &[Use<'_>]) -> Vec<HostPart> {
    let job = |share: Option<&Share<'_>>| share.map(|share| share.job.number);
    let mut parts: Vec<HostPart> = vec![];
    for (number, (cpu_use, share)) in numbers.iter().zip(uses) {
        match parts.last_mut() {
            Some(part)
                if part.cpu_use == *cpu_use
                    && part.job == job(*share)
                    && part.numbers[0].1.checked_add(1) == Some(*number) =>
            {
                part.cpus += 1;
                part.numbers[0].1 = *number;
            }
            _ => {
                let numbers = vec![(*number, *number)];
                parts.push(match share {
                    Some(share) => share.host_part(*cpu_use, 1, numbers),
                    None => unnamed(*cpu_use, 1, numbers),
                });
            }
        }
    }
    parts
}
