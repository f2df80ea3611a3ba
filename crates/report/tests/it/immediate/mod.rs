//! Immediate service around EASY on hosts, by hand.
//!
//! Unless a test sets them, a quantum is three seconds and a victim must have run for two. A gap of
//! a job in the picture is the time in which it was preempted.

mod promises;
mod quantum;
mod victims;

use miserly_core::Machine;

use crate::chart::{Asks, chart_on_both, hosts};

/// The schedule with immediate service and these parameters.
#[track_caller]
fn immediate(machine: &Machine, jobs: &[Asks], params: &str) -> String {
    chart_on_both(machine, jobs, &format!("immediate(policy=fcfs-backfill, {params})"))
}

/// The usual quantum.
const USUAL: &str = "quantum=3, after=2";

/// One host of four processors.
fn host() -> Machine {
    hosts(&[(4, 100)])
}
