//! The choice of victims and hosts for the quantum of an arriving job.

use std::cmp::Ordering;

use miserly_core::{HostId, JobId, Ledger, Procs, Resources, Span, State, Time};

/// A host where a job could have its quantum, and the victims that it requires.
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
    /// The time in the system and the run time, in ticks. Their ratio is the current slowdown.
    in_system: u128,
    run: u128,
    admitted: u64,
}

impl Victim {
    /// Compares by slowdown, smallest first; ties in the order of admission.
    fn compare(&self, other: &Victim) -> Ordering {
        let (mine, theirs) = (self.in_system * other.run, other.in_system * self.run);
        mine.cmp(&theirs).then(self.admitted.cmp(&other.admitted))
    }
}

/// Returns the hosts where a job with this need could have a quantum at `now` (Chiang and Vernon
/// §2.4).
///
/// The host with the fewest idle processors afterwards comes first, then the order of the machine
/// decides.
///
/// Only hosts with enough free memory count. Only jobs that have run without interruption for
/// `after` are victims, those with the smallest slowdown first. O(jobs that run + hosts).
pub(super) fn chances(
    ledger: &Ledger,
    now: Time,
    need: &Resources,
    after: Span,
    preempt: bool,
) -> Vec<Chance> {
    let mut victims = if preempt { eligible(ledger, now, after) } else { vec![] };
    victims.sort_unstable_by(|one, other| one.host.cmp(&other.host).then(one.compare(other)));
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

/// Returns the jobs that have run long enough, each on one host.
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
    ledger.running_in_any_order().filter_map(victim).collect()
}

#[cfg(test)]
mod tests;
