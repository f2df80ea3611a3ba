//! The family on hosts, on one host of processors alone: there it is the policies that know nothing
//! else.

use miserly_core::{EventOrder, Machine};
use proptest::prelude::*;

use crate::support::{BOTH, Quad, jobs_for, machine, run, run_on, workload};

/// The policy on hosts, and the one that it has to be.
const PAIRS: [(&str, &str); 16] = [
    ("fcfs-backfill", "easy"),
    ("fcfs-backfill(depth=all)", "conservative(keep_reservations=false)"),
    ("fcfs-backfill(depth=kept)", "conservative"),
    ("easy(order=widest, backfill=shortest)", "easy(order=widest, backfill=shortest)"),
    ("easy(order=random, draw=pass)", "easy(order=random, draw=pass)"),
    ("conservative(order=widest)", "conservative(order=widest)"),
    ("selective-backfill", "selective-backfill"),
    ("selective-backfill(threshold=1.2, order=widest)", "selective-backfill(threshold=1.2, order=widest)"),
    ("selective-backfill(threshold=1)", "conservative(keep_reservations=false)"),
    ("fcfs-backfill(depth=0)", "selective-backfill(threshold=inf)"),
    ("sjf-backfill", "easy(order=shortest, hold_head=true)"),
    ("sjf-backfill(depth=kept)", "conservative(order=shortest)"),
    ("lxf-backfill", "easy(order='(wait + estimate) / estimate')"),
    (
        "lxf-backfill(depth=all)",
        "conservative(order='(wait + estimate) / estimate', keep_reservations=false)",
    ),
    ("lxf&w-bf", "easy(order='0.0167 * wait / 3600 + (wait + estimate) / estimate')"),
    (
        "priority-backfill(w_m=2, w_pe=0.5)",
        "easy(order='1 * (wait / 3600) + 5 * ((wait + estimate) / estimate) + 0.2 * (procs) + 2 * (memory / 1024 / 358.4) \
         + 0.5 * (max(procs, memory / 1024 / 358.4))')",
    ),
];

/// One host with ample memory, so that the policies for hosts run there without an effect of
/// memory.
fn one_host(procs: u64) -> Machine {
    machine(&[(procs, 1 << 40)])
}

fn agree(procs: u64, quads: &[Quad], instants: EventOrder) -> Result<(), TestCaseError> {
    for (family, plain) in PAIRS {
        let jobs = jobs_for(plain, quads);
        let ours = run_on(&one_host(procs), &jobs, family, instants).decisions();
        let theirs = run(procs, &jobs, plain, instants).decisions();
        prop_assert_eq!(ours, theirs, "{}, {}", family, instants);
    }
    Ok(())
}

proptest! {
    #[test]
    fn on_one_host_it_is_the_plain_policies((procs, quads) in workload(false)) {
        for instants in BOTH {
            agree(procs, &quads, instants)?;
        }
    }

    #[test]
    fn under_overruns_too((procs, quads) in workload(true)) {
        for instants in BOTH {
            agree(procs, &quads, instants)?;
        }
    }
}
