//! Whole logs: how long it takes to read them, and to schedule them.
//!
//! The logs are generated in the size of two well-known ones; the real ones join where
//! `MISERLY_TRACES` names the folder that holds them. `cargo bench -p miserly-sim -- --quick` for a
//! first look.

mod input;

mod reading;

mod scheduling;

mod gang;

mod naive;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let logs = input::logs();
    reading::bench(&mut criterion, &logs);
    scheduling::bench(&mut criterion, &logs);
    gang::bench(&mut criterion);
    naive::bench(&mut criterion, &logs);
    criterion.final_summary();
}
