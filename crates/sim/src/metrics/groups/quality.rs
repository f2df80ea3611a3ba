//! The quality of estimates (Kettimuthu et al., "User Estimates").

use miserly_core::Span;

miserly_core::listed_enum! {
    /// The quality of an estimate.
    #[non_exhaustive]
    pub enum Quality {
        /// At most twice the actual runtime.
        Well "well",
        /// More.
        Badly "badly",
    }
}

impl Quality {
    /// Returns the quality of an estimate for a job with that runtime.
    pub fn new(estimate: Span, run: Span) -> Quality {
        if estimate.ticks() <= run.ticks().saturating_mul(2) { Quality::Well } else { Quality::Badly }
    }
}
