//! Part 2: interactive copies on all processors with an idle Miserly, and on half of the processors (Figure 6).

use std::collections::BTreeMap;

use miserly_kernels::Kernel;

use crate::bench::{Bench, Conditions, Placement, seconds_between};
use crate::error::MeasureError;
use crate::plan::Plan;
use crate::program::Record;
use crate::statistics::Sample;

/// Copies that start together.
pub(crate) const COPIES: usize = 5;

miserly_core::listed_enum! {
    /// The machine of the copies.
    pub(crate) enum Machine {
        /// All processors, with a daemon that has the pool and no job.
        IdleMiserly "all processors, idle Miserly",
        /// All processors, without a daemon.
        All "all processors, no Miserly",
        /// The processors outside of the pool.
        Half "half of the processors",
    }
}

/// The times of copies that start together, seconds.
#[derive(Debug, Default)]
pub(crate) struct CopyTimes {
    /// From the start of all to the end of each, averaged.
    pub(crate) latency: Sample,
    /// From the start of all to the last end.
    pub(crate) total: Sample,
}

impl CopyTimes {
    pub(crate) fn push(&mut self, since: i64, records: &[Record]) {
        let ends: Sample = records.iter().map(|record| seconds_between(since, record.end)).collect();
        self.latency.extend(ends.mean());
        self.total.extend(ends.most());
    }
}

/// Measures the part.
pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<BTreeMap<(Kernel, Machine), CopyTimes>, MeasureError> {
    let mut result: BTreeMap<(Kernel, Machine), CopyTimes> = BTreeMap::new();
    let plan = Plan::new(bench.options.seed, bench.options.repeats(), &Kernel::ALL, &Machine::ALL);
    for (done, (repeat, kernel, machine)) in plan.runs.iter().copied().enumerate() {
        bench.note(&format!("2-interactive: run {} of {}", done + 1, plan.runs.len()));
        let threads = bench.site.threads();
        let daemon = if machine == Machine::IdleMiserly { Some(bench.daemon(threads)?) } else { None };
        bench.next_run();
        let variant = machine.name();
        let conditions = Conditions { part: "2-interactive", variant, kernel, load: 0, repeat };
        let rest = bench.site.rest.clone();
        let cpus: &[u32] = if machine == Machine::Half { &rest } else { &[] };
        let since = jiff::Timestamp::now().as_microsecond();
        let start = |_| bench.start(kernel, threads, Placement { cpus, nice: None });
        let running = (0..COPIES).map(start).collect::<Result<Vec<_>, _>>()?;
        let records = running.iter().map(|running| bench.finish(running)).collect::<Result<Vec<_>, _>>()?;
        for record in &records {
            bench.keep(&conditions, record);
        }
        result.entry((kernel, machine)).or_default().push(since, &records);
        daemon.map_or(Ok(()), crate::daemon::Daemon::stop)?;
    }
    Ok(result)
}
