//! Part 1: the run time of a kernel against burners of processor time, with and without Miserly (Figure 5).

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use miserly_api::model::{CriticalPriority, Submission};
use miserly_kernels::Kernel;

use crate::bench::{Bench, Conditions, LONG, Placement};
use crate::daemon::{Daemon, Settings};
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
        /// The same as `Miserly` without control groups, where `Miserly` has some.
        MiserlyProcesses "Miserly, processes",
        /// Without a priority and without control groups.
        MiserlyPlain "Miserly, no priority",
        /// With a priority of real time, and without control groups.
        MiserlyRealTime "Miserly, real time",
    }
}

impl Protection {
    /// Returns the protection whose daemon runs the job; `None` without a daemon.
    fn mode(self) -> Option<Protection> {
        match self {
            Protection::MiserlyAlone => Some(Protection::Miserly),
            Protection::Miserly
            | Protection::MiserlyProcesses
            | Protection::MiserlyPlain
            | Protection::MiserlyRealTime => Some(self),
            Protection::None | Protection::Nice | Protection::Affinity | Protection::Partition => None,
        }
    }

    fn keeps_burners_off(self) -> bool {
        matches!(self, Protection::Partition | Protection::MiserlyAlone)
    }
}

/// A daemon of a mode, and what it says about the priority of its jobs.
pub(crate) struct Mode {
    protection: Protection,
    daemon: Daemon,
    priority: Option<CriticalPriority>,
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
    /// The shares of its processors that a job got, by kernel, burners and protection.
    pub(crate) received: BTreeMap<(Kernel, usize, Protection), Sample>,
    /// What the daemon of each mode says about the priority of its jobs.
    pub(crate) modes: Vec<(Protection, String)>,
    /// Why jobs have no control groups; `None` if they have some.
    pub(crate) no_groups: Option<String>,
}

/// Measures the part.
pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<LoadTimes, MeasureError> {
    let quick = bench.options.quick;
    let mut result = LoadTimes {
        loads: if quick { vec![0, 2] } else { vec![0, 1, 2, 4, 8] },
        wide_loads: if quick { vec![] } else { vec![0, 1, 2] },
        no_groups: bench.options.cgroup.is_none().then(no_groups),
        ..LoadTimes::default()
    };
    let modes = modes(bench)?;
    result.protections = protections(bench, &modes)?;
    let sentence = |mode: &Mode| mode.priority.as_ref().map(|priority| priority.sentence.clone());
    result.modes = modes.iter().map(|mode| (mode.protection, sentence(mode).unwrap_or_default())).collect();
    let points: Vec<(Kernel, usize)> =
        Kernel::ALL.iter().flat_map(|kernel| result.loads.iter().map(|load| (*kernel, *load))).collect();
    let plan = Plan::new(bench.options.seed, bench.options.repeats(), &points, &result.protections);
    for (done, (repeat, (kernel, load), protection)) in plan.runs.iter().copied().enumerate() {
        bench.note(&format!("1-load: run {} of {}", done + 1, plan.runs.len()));
        let variant = protection.name();
        bench.next_run();
        let conditions = Conditions { part: "1-load", variant, kernel, load, repeat };
        let record = run(bench, &modes, kernel, load, protection)?;
        bench.keep(&conditions, &record);
        let point = (kernel, load, protection);
        result.times.entry(point).or_default().push(record.seconds);
        result.received.entry(point).or_default().push(record.received(bench.site.threads()));
    }
    modes.into_iter().try_for_each(|mode| mode.daemon.stop())?;
    wide(bench, &mut result)?;
    Ok(result)
}

/// Starts a daemon for each mode that this machine allows. A short measurement has one.
fn modes(bench: &mut Bench<'_>) -> Result<Vec<Mode>, MeasureError> {
    let (quick, cpus, group) = (bench.options.quick, bench.site.threads(), bench.options.cgroup.clone());
    let all = [
        (Protection::Miserly, group.as_deref(), "auto", true),
        (Protection::MiserlyProcesses, None, "auto", group.is_some() && !quick),
        (Protection::MiserlyPlain, None, "none", !quick),
        (Protection::MiserlyRealTime, None, "real-time", !quick),
    ];
    let mut modes = vec![];
    for (protection, cgroup, priority, _) in all.into_iter().filter(|(.., measured)| *measured) {
        let daemon = bench.daemon_with(&Settings { cpus, cgroup, priority })?;
        let priority = daemon.status()?.critical_priority;
        let is_real_time = priority.as_ref().is_some_and(|priority| priority.means == "real-time");
        if protection == Protection::MiserlyRealTime && !is_real_time {
            daemon.stop()?;
        } else {
            modes.push(Mode { protection, daemon, priority });
        }
    }
    Ok(modes)
}

/// Returns why a measurement without a folder has no control groups.
fn no_groups() -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let Some(mount) = fields.find(|fields| fields.get(2) == Some(&"cgroup2")) else {
        return "no cgroup v2 is mounted here".to_owned();
    };
    let file = format!("{}/cgroup.controllers", mount[1]);
    let has_cpu =
        std::fs::read_to_string(file).is_ok_and(|all| all.split_whitespace().any(|one| one == "cpu"));
    let why = if has_cpu {
        "the measurement has no --cgroup"
    } else {
        "cgroup v2 has no cpu controller here, since version 1 has it"
    };
    why.to_owned()
}

/// Returns the protections to compare. A higher priority needs a right.
fn protections(bench: &mut Bench<'_>, modes: &[Mode]) -> Result<Vec<Protection>, MeasureError> {
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
    let has = |protection: &Protection| match protection.mode() {
        Some(mode) => modes.iter().any(|one| one.protection == mode),
        None => permitted || *protection != Protection::Nice,
    };
    Ok(Protection::ALL.into_iter().filter(has).collect())
}

/// The raised priority.
const NICE: i32 = -10;

fn run(
    bench: &mut Bench<'_>,
    modes: &[Mode],
    kernel: Kernel,
    load: usize,
    protection: Protection,
) -> Result<Record, MeasureError> {
    let site = bench.site.clone();
    let _burners = bench.burners(load, if protection.keeps_burners_off() { &site.rest } else { &[] })?;
    thread::sleep(SETTLE);
    let mode = modes.iter().find(|mode| Some(mode.protection) == protection.mode());
    if let Some(Mode { daemon, .. }) = mode {
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
