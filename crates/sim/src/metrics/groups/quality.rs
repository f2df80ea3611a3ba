//! How good estimates were (Kettimuthu et al., "User Estimates").

use miserly_core::Span;

/// How good an estimate was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// At most twice the actual runtime.
    Well,
    /// More.
    Badly,
}

impl Quality {
    /// All there are.
    pub const ALL: [Quality; 2] = [Quality::Well, Quality::Badly];

    /// How good the estimate of a job was that ran so long.
    pub fn of(estimate: Span, run: Span) -> Quality {
        if estimate.ticks() <= run.ticks().saturating_mul(2) { Quality::Well } else { Quality::Badly }
    }

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Quality::Well => "well",
            Quality::Badly => "badly",
        }
    }
}
