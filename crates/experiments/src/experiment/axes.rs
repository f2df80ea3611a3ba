//! The axes in which the runs of an experiment differ.

use std::collections::BTreeMap;

/// The values of a run, by the name of the axis: `trace`, `policy`, `estimates`, `model`, `factor`, `machine`, `load`,
/// `seed`, `runs`, the block, and `reading`.
pub type Axes = BTreeMap<String, String>;

/// The names of the axes.
pub const AXES: [&str; 10] =
    ["runs", "trace", "policy", "estimates", "model", "factor", "machine", "load", "seed", READING];

/// The axis of the readings of conventions that a paper leaves open.
pub const READING: &str = "reading";

/// The value of [`READING`] without any of the experiment's readings. A selector that names no reading means this one.
pub const MAIN: &str = "main";
