//! The axes in which the runs of an experiment differ.

use std::collections::BTreeMap;

/// The values of a run, by the name of the axis: `trace`, `policy`, `estimates`, `model`, `factor`, `machine`, `load`,
/// `seed` and `runs`, the block.
pub type Axes = BTreeMap<String, String>;

/// The names of the axes.
pub const AXES: [&str; 9] =
    ["runs", "trace", "policy", "estimates", "model", "factor", "machine", "load", "seed"];
