//! A host in words.

use std::collections::BTreeMap;

use miserly_units::memory;
use miserly_view::{CpuUse, HostNow, counted};

/// A job on a host.
#[derive(Debug)]
pub(super) struct OnHost<'a> {
    pub(super) job: i64,
    pub(super) label: &'a str,
    /// Its processors, by number as far as these are known.
    numbers: Vec<(u32, u32)>,
    cpus: u64,
    /// Whether it runs on idle processors.
    pub(super) opportunistic: bool,
}

impl OnHost<'_> {
    /// Returns its processors as text.
    pub(super) fn place(&self) -> String {
        let text =
            |&(low, high): &(u32, u32)| if low == high { low.to_string() } else { format!("{low}-{high}") };
        let numbers: Vec<String> = self.numbers.iter().map(text).collect();
        let place = if numbers.is_empty() { counted(self.cpus, "cpu") } else { numbers.join(",") };
        if self.opportunistic { format!("{place} (idle)") } else { place }
    }
}

/// Returns the jobs of a host, in the order of their first processors.
pub(super) fn on_host(host: &HostNow) -> Vec<OnHost<'_>> {
    let mut jobs: Vec<OnHost<'_>> = vec![];
    let mut places: BTreeMap<i64, usize> = BTreeMap::new();
    for part in &host.parts {
        let (Some(job), Some(label)) = (part.job, &part.label) else { continue };
        let place = *places.entry(job).or_insert(jobs.len());
        if place == jobs.len() {
            jobs.push(OnHost {
                job,
                label,
                numbers: vec![],
                cpus: 0,
                opportunistic: part.cpu_use == CpuUse::Opportunistic,
            });
        }
        if !part.estimated {
            jobs[place].numbers.extend(&part.numbers);
        }
        jobs[place].cpus += part.cpus;
    }
    jobs
}

/// Returns the processors of a host; more than it has if jobs share them.
pub(super) fn total(host: &HostNow) -> u64 {
    host.parts.iter().map(|part| part.cpus).sum()
}

/// Returns the amounts of processors in words.
pub(super) fn amounts(host: &HostNow) -> String {
    let part = |cpus: u64, word: &str| if cpus == 0 { String::new() } else { format!(", {cpus} {word}") };
    let (reserved, offline) = (part(host.reserved, "free until reserved"), part(host.offline, "offline"));
    format!("{} held{reserved}, {} free{offline} of {}", host.held, host.free, host.cpus)
}

/// Returns the held and the whole memory after a text; nothing if memory is not accounted.
pub(super) fn memory_text(host: &HostNow, before: &str) -> String {
    if host.memory == 0 {
        return String::new();
    }
    format!("{before}{}/{}", memory(host.memory_held), memory(host.memory))
}

/// Returns the number of the processor at a place of a host; `None` if its processors have no numbers.
pub(super) fn number_at(host: &HostNow, place: u64) -> Option<u32> {
    let mut before = 0u64;
    for part in &host.parts {
        let &[(low, _)] = &part.numbers[..] else { return None };
        if place < before + part.cpus {
            return low.checked_add(u32::try_from(place - before).ok()?);
        }
        before += part.cpus;
    }
    None
}
