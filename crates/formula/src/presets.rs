//! Orders of the queue from the literature, as formulas.
//!
//! Times are in seconds, as in the papers; F1 to F4 have constants that mean nothing in other units. An infinite value has its
//! place in the order; one that is not a number (0 / 0) comes last.

use crate::rank::Direction;

/// The names that the presets use: how long the job has waited, its estimate, both in seconds; its processors; and when it
/// was submitted, in seconds from the start of the log.
pub const NAMES: [&str; 4] = ["wait", "estimate", "procs", "submit"];

/// An order of the queue that has a name in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name, in lower case.
    pub name: &'static str,
    /// What it stands for.
    pub title: &'static str,
    /// The formula, over [`NAMES`].
    pub formula: &'static str,
    /// Which value comes first.
    pub first: Direction,
    /// Where it was proposed, or studied under this name.
    pub source: &'static str,
}

const BACKFILLING: &str = "Srinivasan, Kettimuthu, Subramani, Sadayappan: Characterization of backfilling strategies (ICPP Workshops 2002)";
const UTILITY: &str = "Tang, Lan, Desai, Buettner: Fault-aware, utility-based job scheduling on Blue Gene/P systems (CLUSTER 2009)";
const LEARNED: &str = "Carastan-Santos, de Camargo: Obtaining dynamic scheduling policies with simulation and machine learning (SC 2017)";
const SIMPLE: &str = "Carastan-Santos, de Camargo, Trystram, Zrigui: One can only gain by replacing EASY backfilling (CCGrid 2019)";

/// Every preset.
pub const PRESETS: [Preset; 10] = [
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
        "waited long for its estimate, the wider the sooner",
        "(wait / estimate)^3 * procs",
        Direction::Largest,
        UTILITY,
    ),
    // A job on one processor has the value infinity as soon as it has waited, and none before.
    Preset::new(
        "unicep",
        "waited long for its size, the narrower the sooner",
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
