//! The free capacity beside reservations: for each width, the longest span free from now on.

use miserly_core::Span;

/// A limit on the width and the span of jobs that start now.
pub trait Admits {
    /// Returns whether a job of this width and span fits.
    ///
    /// For the least width and the least span of several jobs, `false` means that none of them
    /// fits.
    fn admits(&self, procs: u32, span: Span) -> bool;
}

impl<T: Admits> Admits for &T {
    fn admits(&self, procs: u32, span: Span) -> bool {
        (**self).admits(procs, span)
    }
}

/// Room for any job.
#[derive(Clone, Copy, Debug)]
pub struct Everything;

impl Admits for Everything {
    fn admits(&self, _procs: u32, _span: Span) -> bool {
        true
    }
}

/// A staircase of two steps, as one reservation makes it.
///
/// All free processors are available until the shadow time, and the extra nodes for ever. A job
/// fits if one step is both wide and long enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct Staircase {
    free: u32,
    until_shadow: Span,
    extra: u32,
}

impl Staircase {
    /// Returns a staircase of `free` processors for `until_shadow`, and `extra` of them for ever.
    pub fn of_shadow(free: u32, until_shadow: Span, extra: u32) -> Staircase {
        Staircase { free, until_shadow, extra }
    }

    /// Takes the processors of an admitted job, which starts now.
    pub fn take(&mut self, procs: u32, span: Span) {
        self.free -= procs;
        // The span is compared, because a sum of times could saturate.
        if span > self.until_shadow {
            self.extra -= procs;
        }
    }
}

impl Admits for Staircase {
    fn admits(&self, procs: u32, span: Span) -> bool {
        procs <= self.free && (span <= self.until_shadow || procs <= self.extra)
    }
}

/// A staircase of any number of steps, as a profile has it from now on ([`Profile::outlook`]).
///
/// [`Profile::outlook`]: super::Profile::outlook
#[derive(Clone, Debug, Default)]
pub struct ProfileStaircase {
    /// Processors with the span for which they are free: widths decrease, spans increase.
    pub(super) steps: Vec<(u32, Span)>,
}

impl Admits for ProfileStaircase {
    fn admits(&self, procs: u32, span: Span) -> bool {
        let wide = self.steps.iter().rev().find(|(free, _)| procs <= *free);
        wide.is_some_and(|(_, until)| span <= *until)
    }
}
