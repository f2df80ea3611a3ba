//! What fits now beside the reservations: for each width, the longest span free from now on.

use miserly_core::Span;

/// A staircase of descending widths and ascending spans. A job fits under it if one step is both wide and
/// long enough.
///
/// EASY's is of two steps: everything free now, until the shadow time; the extra nodes, for ever.
#[derive(Clone, Debug, Default)]
pub struct Staircase {
    steps: Vec<(u32, Span)>,
}

impl Staircase {
    /// Makes this EASY's staircase: `free` processors for `until_shadow`, `extra` of them for ever.
    pub fn set_shadow(&mut self, free: u32, until_shadow: Span, extra: u32) {
        self.steps.clear();
        if extra < free {
            self.steps.push((free, until_shadow));
        }
        self.steps.push((extra.min(free), Span::MAX));
    }

    /// Whether a job of this width and span fits. Of several jobs, asked with the least width and the least
    /// span among them, `false` means that none fits.
    pub fn admits(&self, procs: u32, span: Span) -> bool {
        self.steps.iter().any(|&(width, longest)| procs <= width && span <= longest)
    }
}
