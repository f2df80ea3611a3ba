//! Whom to preempt, and where, so that an arriving job can have its quantum.

use std::cmp::Ordering;

use miserly_core::{HostId, JobId, Ledger, Procs, Resources, Span, State, Time};

/// A host where a job could have its quantum, and what that takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chance {
    pub(super) host: HostId,
    /// The jobs to preempt, smallest slowdown first.
    pub(super) victims: Vec<JobId>,
    /// The processors that would be idle then.
    idle: Procs,
}

/// A job that may be preempted.
#[derive(Clone, Copy, Debug)]
struct Victim {
    job: JobId,
    host: HostId,
    procs: Procs,
    /// Its time in the system and the time that it has run, in ticks: their ratio is its current slowdown.
    in_system: u128,
    run: u128,
    admitted: u64,
}

impl Victim {
    /// The smaller slowdown first; ties in the order of admission.
    fn compare(&self, other: &Victim) -> Ordering {
        let (mine, theirs) = (self.in_system * other.run, other.in_system * self.run);
        mine.cmp(&theirs).then(self.admitted.cmp(&other.admitted))
    }
}

/// The hosts where a job that needs so much could have a quantum at `now`: the one with the fewest idle processors afterwards
/// first, then in the order of the machine (Chiang and Vernon §2.4).
///
/// Only hosts with enough free memory count, and only jobs that have run without interruption for `after`, of which those with
/// the smallest slowdown go until there are processors enough. O(jobs that run, and hosts).
pub(super) fn chances(
    ledger: &Ledger,
    now: Time,
    need: &Resources,
    after: Span,
    preempt: bool,
) -> Vec<Chance> {
    let mut victims = if preempt { eligible(ledger, now, after) } else { vec![] };
    victims.sort_by(|one, other| one.host.cmp(&other.host).then(one.compare(other)));
    let mut chances: Vec<Chance> = (0..)
        .map(HostId)
        .zip(ledger.free_hosts().each())
        .filter(|(_, free)| need.without_cpus().fits_in(free))
        .filter_map(|(host, free)| chance(host, free.cpus_count(), need.cpus_count(), &victims))
        .collect();
    chances.sort_by_key(|chance| (chance.idle, chance.host));
    chances
}

fn chance(host: HostId, free: Procs, procs: Procs, victims: &[Victim]) -> Option<Chance> {
    let mut chance = Chance { host, victims: vec![], idle: free };
    let first = victims.partition_point(|victim| victim.host < host);
    let mut here = victims[first..].iter().take_while(|victim| victim.host == host);
    while chance.idle < procs {
        let victim = here.next()?;
        chance.victims.push(victim.job);
        chance.idle += victim.procs;
    }
    chance.idle -= procs;
    Some(chance)
}

/// The jobs that have run long enough, each on one host.
fn eligible(ledger: &Ledger, now: Time, after: Span) -> Vec<Victim> {
    let victim = |job: JobId| {
        let entry = ledger.entry(job);
        let State::Running { since, quantum: None, released: false, ref placement, .. } = entry.state else {
            return None;
        };
        let [share] = placement.shares() else { return None };
        let procs = share.amount.cpus_count();
        (now - since >= after).then(|| Victim {
            job,
            host: share.host,
            procs,
            in_system: u128::from((now - entry.request.submit).ticks().unsigned_abs()),
            run: (entry.done(now) / u128::from(procs.max(Procs::ONE))).max(1),
            admitted: entry.admitted,
        })
    };
    ledger.running().filter_map(victim).collect()
}

#[cfg(test)]
mod tests;
