//! Random configurations, not all of which the promises admit.

use crate::support::{Draws, cpus};

const POLICIES: [&str; 5] = ["miser", "conservative", "fcfs", "easy", "miser(horizon=1d)"];

/// Returns one queue with one or all processors, or two queues of two policies.
pub(super) fn any(draws: &mut Draws) -> String {
    let all = cpus().len();
    let shapes: &[&[usize]] = if all < 2 { &[&[1]] } else { &[&[all], &[all - 1, 1], &[all - 1, 1], &[1]] };
    let shape = draws.choice(shapes);
    let mut text = format!(
        "cleanup-time = 1\nbackup-interval = 5\nkeep-history = \"300d\"\n[pool]\ncpus = {}\nmemory = \"{}MB\"\n",
        shape.iter().sum::<usize>(),
        512 * shape.len()
    );
    for (name, cpus) in ["batch", "other"].iter().zip(shape) {
        let policy = draws.choice(&POLICIES);
        text.push_str(&format!(
            "[[queue]]\nname = \"{name}\"\npolicy = \"{policy}\"\ncpus = {cpus}\nmemory = \"512MB\"\ndefault-memory = \"64MB\"\n"
        ));
    }
    text
}
