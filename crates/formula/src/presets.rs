//! Queue orders from the literature as formulas.
//!
//! Times are in seconds, as in the papers. The constants of F1 to F4 require that unit. Infinite
//! values are ordered; NaN (0 / 0) comes last.

use crate::rank::Direction;

/// Names used by the presets.
///
/// They are the wait and the estimate in seconds, the processors, the submission in seconds of the
/// log, and the part of the user in the decayed usage of all users.
pub const NAMES: [&str; 5] = ["wait", "estimate", "procs", "submit", "usage_share"];

/// A named queue order from the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name in lower case.
    pub name: &'static str,
    /// Long name.
    pub title: &'static str,
    /// Formula over [`NAMES`].
    pub formula: &'static str,
    /// Value that comes first.
    pub first: Direction,
    /// Source of the proposal, or of a study under this name.
    pub source: &'static str,
}

const BACKFILLING: &str = "Srinivasan, Kettimuthu, Subramani, Sadayappan: Characterization of backfilling strategies (ICPP Workshops 2002)";
const UTILITY: &str = "Tang, Lan, Desai, Buettner: Fault-aware, utility-based job scheduling on Blue Gene/P systems (CLUSTER 2009)";
const LEARNED: &str = "Carastan-Santos, de Camargo: Obtaining dynamic scheduling policies with simulation and machine learning (SC 2017)";
const FAIR: &str = "Kay, Lauder: A fair share scheduler (Communications of the ACM 31(1), 1988)";
const SIMPLE: &str = "Carastan-Santos, de Camargo, Trystram, Zrigui: One can only gain by replacing EASY backfilling (CCGrid 2019)";

/// All presets.
pub const PRESETS: [Preset; 11] = [
    Preset::new("sjf", "shortest job first", "estimate", Direction::Smallest, BACKFILLING),
    Preset::new("sqf", "smallest requested resources first", "procs", Direction::Smallest, SIMPLE),
    Preset::new("saf", "smallest estimated area first", "estimate * procs", Direction::Smallest, SIMPLE),
    Preset::new(
        "lxf",
        "largest expansion factor first",
        "(wait + estimate) / estimate",
        Direction::Largest,
        BACKFILLING,
    ),
    Preset::new(
        "wfp3",
        "long wait relative to the estimate; wide jobs first",
        "(wait / estimate)^3 * procs",
        Direction::Largest,
        UTILITY,
    ),
    // A job on one processor has an infinite value after any wait, and NaN before.
    Preset::new(
        "unicep",
        "long wait relative to the size; narrow jobs first",
        "wait / (log2(procs) * estimate)",
        Direction::Largest,
        UTILITY,
    ),
    Preset::new(
        "f1",
        "fitted to simulations, the best of four",
        "log10(estimate) * procs + 870 * log10(submit)",
        Direction::Smallest,
        LEARNED,
    ),
    Preset::new(
        "f2",
        "fitted to simulations, the second of four",
        "sqrt(estimate) * procs + 2.56e4 * log10(submit)",
        Direction::Smallest,
        LEARNED,
    ),
    Preset::new(
        "f3",
        "fitted to simulations, the third of four",
        "estimate * procs + 6.86e6 * log10(submit)",
        Direction::Smallest,
        LEARNED,
    ),
    Preset::new(
        "f4",
        "fitted to simulations, the fourth of four",
        "estimate * sqrt(procs) + 5.30e5 * log10(submit)",
        Direction::Smallest,
        LEARNED,
    ),
    Preset::new(
        "fair-share",
        "smallest share of its user in the decayed usage first; a week of waiting makes up for any share",
        "wait / 604800 - usage_share",
        Direction::Largest,
        FAIR,
    ),
];

impl Preset {
    const fn new(
        name: &'static str,
        title: &'static str,
        formula: &'static str,
        first: Direction,
        source: &'static str,
    ) -> Preset {
        Preset { name, title, formula, first, source }
    }
}
