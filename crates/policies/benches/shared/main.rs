//! The shared structures by size, so that their growth can be looked at: a line of the documentation that says
//! O(log n) or O(n / c) should show here as times that hardly grow, or grow by much less than the size does.

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
