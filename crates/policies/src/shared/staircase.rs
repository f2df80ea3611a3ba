//! What fits now beside a reservation: for each width, the longest span free from now on.

use miserly_core::Span;

/// A staircase of two steps, as one reservation makes it: all that is free now, until the shadow time; the
/// extra nodes, for ever. A job fits under it if one step is both wide and long enough.
///
/// Several reservations would make more steps; nothing else would change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Staircase {
    free: u32,
    until_shadow: Span,
    extra: u32,
}

impl Staircase {
    /// `free` processors for `until_shadow`, and `extra` of them for ever.
    pub fn of_shadow(free: u32, until_shadow: Span, extra: u32) -> Staircase {
        Staircase { free, until_shadow, extra }
    }

    /// Whether a job of this width and span fits. Of several jobs, asked with the least width and the least
    /// span among them, `false` means that none fits.
    pub fn admits(&self, procs: u32, span: Span) -> bool {
        procs <= self.free && (span <= self.until_shadow || procs <= self.extra)
    }
}
