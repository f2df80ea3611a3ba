//! Jobs of a log that fit on a machine of hosts with memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_core::{Host, Kind, Machine, Procs, Resources, Spread};
use miserly_workload::{JobOptions, Jobs, Trace};

/// Jobs by number, processors, requested and used memory in kB per processor; -1 for unknown.
const LOG: &str = "\
1 0 -1 10 2 -1 -1 2 10 50 1 1 -1 -1 1 -1 -1 -1
2 0 -1 10 2 -1 -1 2 10 51 1 1 -1 -1 1 -1 -1 -1
3 0 -1 10 3 -1 -1 3 10 1 1 1 -1 -1 1 -1 -1 -1
4 0 -1 10 5 -1 -1 5 10 1 1 1 -1 -1 1 -1 -1 -1
5 0 -1 10 1 -1 101 1 10 -1 1 1 -1 -1 1 -1 -1 -1
6 0 -1 10 1 -1 101 1 10 100 1 1 -1 -1 1 -1 -1 -1
7 0 -1 10 4 -1 -1 4 10 -1 1 1 -1 -1 1 -1 -1 -1
";

/// Returns the numbers of the jobs that run on a machine, and the counts of others by reason.
fn on(machine: Machine) -> (Vec<i64>, BTreeMap<String, u64>) {
    let trace = Trace::memory("made up", LOG.as_bytes().to_vec());
    let options =
        JobOptions { procs: Procs::new(4), machine: Some(Arc::new(machine)), ..JobOptions::default() };
    let mut jobs = Jobs::new(&trace, true, options).expect("a log that can be opened");
    let numbers = jobs.by_ref().map(|job| job.expect("a job that can be read").request.number).collect();
    (numbers, jobs.counts().skipped.clone())
}

fn skipped(reasons: [(&str, u64); 2]) -> BTreeMap<String, u64> {
    reasons.map(|(reason, count)| (reason.to_owned(), count)).into()
}

/// Two hosts of 2 processors and 100 kB.
///
/// A job with more processors than both together is too wide. A job that requests more of a host
/// than it has fits on none. A job's memory is its request, or its usage if the request is unknown.
#[test]
fn jobs_that_no_host_could_hold_are_skipped() {
    let dual = |name: &str| Host { name: name.into(), capacity: Resources::cpus(2).with(Kind::Memory, 100) };
    let machine = Machine::new(vec![dual("a"), dual("b")]);
    assert_eq!(on(machine.clone()), (vec![1, 6], skipped([("fits_no_host", 4), ("too_wide", 1)])));
    // Over both hosts, 51 kB a processor permit one processor on each, and 3 or 4 processors fit
    // together.
    let over_both = on(machine.with_spread(Spread::Any));
    assert_eq!(over_both, (vec![1, 2, 3, 6, 7], skipped([("fits_no_host", 1), ("too_wide", 1)])));
}
