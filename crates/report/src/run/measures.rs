//! The names of the measures, in the order of `Measures::all`.

use miserly_sim::MEASURES;

use super::layout::Quantity;

/// Names of the measures in notes.
pub(super) const NAMES: [&str; MEASURES] =
    ["wait", "response", "slowdown", "bounded slowdown", "standard form", "per processor"];

/// Names of the measures in tables, and the kinds of their figures.
pub(super) const LABELS: [(&str, Quantity); MEASURES] = [
    ("wait", Quantity::Time),
    ("response", Quantity::Time),
    ("slowdown", Quantity::Number),
    ("bounded slowdown", Quantity::Number),
    ("  standard form", Quantity::Number),
    ("  per processor", Quantity::Number),
];
