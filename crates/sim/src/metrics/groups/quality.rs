//! The quality of estimates (Kettimuthu et al., "User Estimates").

use miserly_core::Span;

/// The quality of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Quality {
    /// At most twice the actual runtime.
    Well,
    /// More.
    Badly,
}

impl Quality {
    /// Every quality.
    pub const ALL: [Quality; 2] = [Quality::Well, Quality::Badly];

    /// Returns the quality of an estimate for a job with that runtime.
    pub fn new(estimate: Span, run: Span) -> Quality {
        if estimate.ticks() <= run.ticks().saturating_mul(2) { Quality::Well } else { Quality::Badly }
    }

    /// Returns the name of the quality.
    pub const fn as_str(self) -> &'static str {
        match self {
            Quality::Well => "well",
            Quality::Badly => "badly",
        }
    }
}
