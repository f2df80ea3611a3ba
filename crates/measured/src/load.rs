//! Part 1: the run time of a kernel against burners of processor time, with and without Miserly (Figure 5).

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use miserly_api::model::Submission;
use miserly_kernels::Kernel;

use crate::bench::{Bench, Conditions, LONG, Placement};
use crate::daemon::Daemon;
use crate::error::MeasureError;
use crate::plan::Plan;
use crate::program::Record;
use crate::statistics::Sample;

/// The name of the variant on all processors.
pub(crate) const WIDE: &str = "all processors, nothing";

/// The time for burners to spread over the processors.
const SETTLE: Duration = Duration::from_millis(50);

miserly_core::listed_enum! {
    /// What protects a kernel from the burners.
    pub(crate) enum Protection {
        /// Nothing.
        None "nothing",
        /// A higher priority.
        Nice "nice -10",
        /// It is bound to its processors. Burners may run there.
        Affinity "affinity",
        /// The same, and burners are bound to the other processors.
        Partition "affinity, burners elsewhere",
        /// A job of Miserly in its window. Burners may run on its processors.
        Miserly "Miserly",
        /// The same, and burners are bound to the other processors.
        MiserlyAlone "Miserly, burners elsewhere",
    }
}

impl Protection {
    fn is_miserly(self) -> bool {
        matches!(self, Protection::Miserly | Protection::MiserlyAlone)
    }

    fn keeps_burners_off(self) -> bool {
        matches!(self, Protection::Partition | Protection::MiserlyAlone)
    }
}

/// The result of the part: run times, seconds.
#[derive(Debug, Default)]
pub(crate) struct LoadTimes {
    /// By kernel, burners and protection.
    pub(crate) times: BTreeMap<(Kernel, usize, Protection), Sample>,
    /// With a thread on each processor and no protection, by kernel and burners.
    pub(crate) wide: BTreeMap<(Kernel, usize), Sample>,
    pub(crate) loads: Vec<usize>,
    pub(crate) wide_loads: Vec<usize>,
    pub(crate) protections: Vec<Protection>,
}

/// Measures the part.
pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<LoadTimes, MeasureError> {
    let quick = bench.options.quick;
    let mut result = LoadTimes {
        loads: if quick { vec![0, 2] } else { vec![0, 1, 2, 4, 8] },
        wide_loads: if quick { vec![] } else { vec![0, 1, 2] },
        protections: protections(bench)?,
        ..LoadTimes::default()
    };
    let daemon = bench.daemon(bench.site.threads())?;
    let points: Vec<(Kernel, usize)> =
        Kernel::ALL.iter().flat_map(|kernel| result.loads.iter().map(|load| (*kernel, *load))).collect();
    let plan = Plan::new(bench.options.seed, bench.options.repeats(), &points, &result.protections);
    for (done, (repeat, (kernel, load), protection)) in plan.runs.iter().copied().enumerate() {
        bench.note(&format!("1-load: run {} of {}", done + 1, plan.runs.len()));
        let variant = protection.name();
        bench.next_run();
        let conditions = Conditions { part: "1-load", variant, kernel, load, repeat };
        let record = run(bench, &daemon, kernel, load, protection)?;
        bench.keep(&conditions, &record);
        result.times.entry((kernel, load, protection)).or_default().push(record.seconds);
    }
    daemon.stop()?;
    wide(bench, &mut result)?;
    Ok(result)
}

/// Returns the protections to compare. A higher priority needs a right.
fn protections(bench: &mut Bench<'_>) -> Result<Vec<Protection>, MeasureError> {
    if bench.options.quick {
        return Ok(vec![
            Protection::None,
            Protection::Partition,
            Protection::Miserly,
            Protection::MiserlyAlone,
        ]);
    }
    let trial = bench.start(Kernel::Bt, 1, Placement { cpus: &[], nice: Some(NICE) })?;
    let permitted = bench.finish(&trial).is_ok();
    Ok(Protection::ALL.into_iter().filter(|one| permitted || *one != Protection::Nice).collect())
}

/// The raised priority.
const NICE: i32 = -10;

fn run(
    bench: &mut Bench<'_>,
    daemon: &Daemon,
    kernel: Kernel,
    load: usize,
    protection: Protection,
) -> Result<Record, MeasureError> {
    let site = bench.site.clone();
    let _burners = bench.burners(load, if protection.keeps_burners_off() { &site.rest } else { &[] })?;
    thread::sleep(SETTLE);
    if protection.is_miserly() {
        let job = Submission { no_opportunistic: true, ..bench.job(daemon, kernel, LONG) };
        let job = daemon.submit(&job)?;
        return Ok(bench.finish_job(daemon, kernel, job, false)?.1);
    }
    let placement = match protection {
        Protection::Nice => Placement { cpus: &[], nice: Some(NICE) },
        Protection::Affinity | Protection::Partition => Placement { cpus: &site.pool, nice: None },
        _ => Placement::default(),
    };
    let running = bench.start(kernel, site.threads(), placement)?;
    bench.finish(&running)
}

/// Measures kernels with a thread on each processor: how much each needs all its threads to run at once.
fn wide(bench: &mut Bench<'_>, result: &mut LoadTimes) -> Result<(), MeasureError> {
    let points: Vec<(Kernel, usize)> =
        Kernel::ALL.iter().flat_map(|kernel| result.wide_loads.iter().map(|load| (*kernel, *load))).collect();
    let plan = Plan::new(bench.options.seed, bench.options.repeats(), &points, &[()]);
    for (done, (repeat, (kernel, load), ())) in plan.runs.iter().copied().enumerate() {
        bench.note(&format!("1-load, all processors: run {} of {}", done + 1, plan.runs.len()));
        bench.next_run();
        let conditions = Conditions { part: "1-load", variant: WIDE, kernel, load, repeat };
        let _burners = bench.burners(load, &[])?;
        thread::sleep(SETTLE);
        let running = bench.start(kernel, bench.site.all.len(), Placement::default())?;
        let record = bench.finish(&running)?;
        bench.keep(&conditions, &record);
        result.wide.entry((kernel, load)).or_default().push(record.seconds);
    }
    Ok(())
}
