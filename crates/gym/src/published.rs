//! The published tables V and VI.

/// A row of the published tables.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRow {
    /// The log.
    pub log: &'static str,
    /// Whether jobs are backfilled.
    pub backfills: bool,
    /// The mean bounded slowdown of FCFS, WFP3*, UNICEP*, SJF and F1.
    pub slowdown: [f64; 5],
    /// The mean bounded slowdown of the learned scheduler.
    pub learned: f64,
    /// The utilization of the five orders.
    pub utilization: [f64; 5],
}

/// The jobs with which the ten windows of each log begin, counted from 0.
pub const WINDOWS: [usize; 10] = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085];

/// The jobs of a window.
pub const WINDOW_JOBS: usize = 1024;

/// A log of the published tables.
#[derive(Clone, Copy, Debug)]
pub struct BenchmarkLog {
    /// Its name in the tables.
    pub name: &'static str,
    /// The name of its file, without `.gz`.
    pub file: &'static str,
}

/// The logs, in the order of the rows.
pub const LOGS: [BenchmarkLog; 4] = [
    BenchmarkLog { name: "Lublin-1", file: "lublin_256.swf" },
    BenchmarkLog { name: "SDSC-SP2", file: "SDSC-SP2-1998-4.2-cln.swf" },
    BenchmarkLog { name: "HPC2N", file: "HPC2N-2002-2.2-cln.swf" },
    BenchmarkLog { name: "Lublin-2", file: "lublin_256_new2.swf" },
];

const fn row(
    log: &'static str,
    backfills: bool,
    slowdown: [f64; 5],
    learned: f64,
    utilization: [f64; 5],
) -> PublishedRow {
    PublishedRow { log, backfills, slowdown, learned, utilization }
}

/// The published tables.
///
/// # Source
/// Zhang et al.: `RLScheduler`: An Automated HPC Batch Job Scheduler Using Reinforcement Learning, SC 2020, tables V and VI.
pub const PUBLISHED: [PublishedRow; 8] = [
    row(
        "Lublin-1",
        false,
        [7273.77, 19753.53, 22274.74, 277.35, 258.37],
        254.67,
        [0.657, 0.747, 0.691, 0.762, 0.816],
    ),
    row(
        "SDSC-SP2",
        false,
        [1727.54, 3000.88, 1848.45, 2680.55, 1232.06],
        466.44,
        [0.670, 0.658, 0.688, 0.645, 0.674],
    ),
    row(
        "HPC2N",
        false,
        [297.18, 426.99, 609.77, 157.71, 118.01],
        117.01,
        [0.638, 0.636, 0.636, 0.640, 0.637],
    ),
    row(
        "Lublin-2",
        false,
        [7842.47, 9523.18, 11265.31, 787.89, 698.34],
        724.51,
        [0.404, 0.543, 0.510, 0.562, 0.478],
    ),
    row("Lublin-1", true, [235.82, 133.87, 307.23, 73.31, 75.07], 58.64, [0.868, 0.864, 0.883, 0.778, 0.840]),
    row(
        "SDSC-SP2",
        true,
        [1595.12, 1083.12, 548.01, 2167.84, 1098.22],
        397.82,
        [0.682, 0.681, 0.706, 0.661, 0.677],
    ),
    row("HPC2N", true, [127.38, 97.39, 175.12, 122.04, 71.95], 86.14, [0.639, 0.637, 0.638, 0.641, 0.638]),
    row(
        "Lublin-2",
        true,
        [247.61, 318.35, 379.59, 91.99, 148.25],
        118.79,
        [0.587, 0.583, 0.587, 0.593, 0.552],
    ),
];
