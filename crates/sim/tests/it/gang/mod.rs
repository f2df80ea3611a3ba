//! Gang scheduling: against a reference implementation, by its rules, and in the small cases of its
//! paper.

use miserly_core::{EventOrder, Ledger, Machine, Time};
use miserly_policies::PolicySpec;
use miserly_sim::{Finished, Job, Simulation};

use crate::support::{SEED, Schedule, in_order};

mod against_oracle;
mod by_the_rules;
mod disturbed;
mod matrix;
mod refused;
mod settings;
mod slots;
mod watched;

/// Plays the jobs; `after` sees the ledger after each round.
fn play(
    machine: &Machine,
    jobs: &[Job],
    policy: &str,
    instants: EventOrder,
    mut after: impl FnMut(Time, &Ledger),
) -> Vec<Finished> {
    let policy = policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut simulation = Simulation::new(machine.clone(), policy, instants);
    let mut schedule = Schedule::default();
    let mut source = in_order(jobs).peekable();
    while let Some(now) = simulation.step(&mut source, &mut [&mut schedule]).unwrap() {
        after(now, simulation.system().queues()[0].ledger());
    }
    assert_eq!(schedule.0.len(), jobs.len(), "nobody waits for ever");
    schedule.0.sort_by_key(|job| job.request.number);
    schedule.0
}
