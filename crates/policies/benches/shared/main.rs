//! The shared structures by size, to show their growth.
//!
//! An operation documented as O(log n) or O(n / c) should show times that hardly grow, or grow much
//! less than the size.

mod profile;

mod queue;

use std::time::Duration;

use criterion::Criterion;

fn main() {
    let short = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(700));
    let mut criterion = short.configure_from_args();
    profile::bench(&mut criterion);
    queue::bench(&mut criterion);
    criterion.final_summary();
}
