//! The free capacity beside reservations: for each width, the longest span free from now on.

use miserly_core::{Procs, Span, Time};

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

/// A staircase of any number of steps, as a plan has it from now on.
#[derive(Clone, Debug, Default)]
pub struct StepStaircase {
    /// Processors with the span for which they are free: widths decrease, spans increase.
    pub(super) steps: Vec<(u32, Span)>,
}

impl StepStaircase {
    /// Returns a staircase with this number of processors for ever.
    pub fn constant(procs: Procs) -> StepStaircase {
        StepStaircase { steps: vec![(width(procs), Span::MAX)] }
    }

    /// Returns the staircase of this number of free processors, and of the number from each later time on.
    pub(super) fn falling(
        now: Time,
        procs: Procs,
        later: impl Iterator<Item = (Time, Procs)>,
    ) -> StepStaircase {
        let mut steps = Vec::new();
        let mut least = width(procs);
        for (at, procs) in later {
            if least == 0 {
                break;
            }
            let procs = width(procs);
            if procs < least {
                steps.push((least, at - now));
                least = procs;
            }
        }
        if least > 0 {
            steps.push((least, Span::MAX));
        }
        StepStaircase { steps }
    }
}

/// Returns a number of processors as requests have it.
fn width(procs: Procs) -> u32 {
    u32::try_from(procs.get()).unwrap_or(u32::MAX)
}

impl Admits for StepStaircase {
    fn admits(&self, procs: u32, span: Span) -> bool {
        let wide = self.steps.partition_point(|(free, _)| procs <= *free);
        wide > 0 && span <= self.steps[wide - 1].1
    }
}
