//! The day of experiment 3: simulated beside measured.

use miserly_kernels::Kernel;
use miserly_report::page::{Block, Section};

use super::{claim, seconds, table, words};
use crate::statistics::Sample;
use crate::throughput::{Batch, CopyDay, LIMIT, Throughput};

/// Returns the section.
pub(super) fn section(part: &Throughput) -> Section {
    let text = format!(
        "The copies of Figure 7 as a log for the simulator: the submissions as measured, a limit of {LIMIT} s, and one run time for \
         all copies of a kernel, the mean of its runs in promised windows. The policy is miser, with the same pool and the same time \
         of parking. The simulator has no cost of a launch, and in it opportunistic work has whole processors. \
         Measured times are means over the repetitions, in seconds since the first submission."
    );
    let header =
        words(&["", "promised", "simulated", "start", "simulated", "end", "simulated", "end off by"]);
    let mut blocks = vec![Block::Text(text)];
    let mut list = vec![];
    for batch in [Batch::Promised, Batch::Opportunistic] {
        let rows = Kernel::ALL.iter().flat_map(|kernel| rows(part, *kernel, batch)).collect();
        blocks.push(table(batch.name(), &header, rows));
        for kernel in Kernel::ALL {
            let worst = differences(part, kernel, batch).into_iter().map(f64::abs).reduce(f64::max);
            let span =
                part.simulated.get(&(kernel, batch)).and_then(|times| times.last()).map(|last| last.end);
            list.push(claim(
                format!(
                    "{}, {}: each end is within a tenth of the day of the simulated one",
                    kernel.as_str(),
                    batch.name()
                ),
                &[("largest difference, s", worst), ("day, s", span)],
                |figures| figures[0] <= 0.1 * figures[1],
            ));
        }
    }
    blocks.push(Block::Claims(list));
    Section { heading: "The same day simulated".into(), blocks }
}

fn rows(part: &Throughput, kernel: Kernel, batch: Batch) -> Vec<Vec<String>> {
    let key = (kernel, batch);
    let (Some(days), Some(simulated)) = (part.days.get(&key), part.simulated.get(&key)) else {
        return vec![];
    };
    let differences = differences(part, kernel, batch);
    let row = |(at, (day, times)): (usize, (&CopyDay, &crate::simulated::SimulatedTimes))| {
        vec![
            format!("{} {}", kernel.as_str(), at + 1),
            seconds(day.promised.mean()),
            seconds(Some(times.promised)),
            seconds(day.start.mean()),
            seconds(Some(times.start)),
            seconds(day.end.mean()),
            seconds(Some(times.end)),
            seconds(differences.get(at).copied()),
        ]
    };
    days.iter().zip(simulated).enumerate().map(row).collect()
}

/// Returns the measured end of each copy less the simulated one, seconds.
fn differences(part: &Throughput, kernel: Kernel, batch: Batch) -> Vec<f64> {
    let key = (kernel, batch);
    let ends = |day: &CopyDay| Sample::mean(&day.end);
    let (days, simulated) = (part.days.get(&key), part.simulated.get(&key));
    let pairs = days.into_iter().flatten().zip(simulated.into_iter().flatten());
    pairs.filter_map(|(day, times)| Some(ends(day)? - times.end)).collect()
}
