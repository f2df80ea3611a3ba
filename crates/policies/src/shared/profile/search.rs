//! The search for a hole in the profile.

use std::ops::ControlFlow;

use miserly_core::Time;

use super::chunk::Chunk;

/// A search for a hole, from chunk to chunk.
pub(super) struct Search {
    /// The hole starts before this.
    pub(super) until: i64,
    /// The hole need not extend beyond this.
    pub(super) limit: i64,
    /// The length of the hole, unless it reaches the limit.
    pub(super) span: i64,
    pub(super) not_before: i64,
    /// The start of the present stretch that is wide enough, if there is one.
    pub(super) start: Option<i64>,
}

impl Search {
    /// Continues through a chunk from its breakpoint `first`, in which `wanted` of `free` is
    /// enough.
    ///
    /// Breaks with the result, or continues after the chunk.
    pub(super) fn chunk(&mut self, chunk: &Chunk, first: usize, wanted: i32) -> ControlFlow<Option<Time>> {
        if self.start.is_none() && chunk.most < wanted {
            return if chunk.first >= self.until {
                ControlFlow::Break(None)
            } else {
                ControlFlow::Continue(())
            };
        }
        if self.start.is_some() && chunk.least >= wanted {
            return ControlFlow::Continue(());
        }
        if chunk.last.saturating_sub(chunk.first) < self.span && chunk.last < self.limit {
            return self.short_chunk(chunk, first, wanted);
        }
        let free = &chunk.free[..];
        let mut at = first;
        loop {
            let start = if let Some(start) = self.start {
                start
            } else {
                let Some(ahead) = free[at..].iter().position(|&free| free >= wanted) else { break };
                at += ahead;
                let start = chunk.times[at].max(self.not_before);
                if start >= self.until {
                    return ControlFlow::Break(None);
                }
                self.start = Some(start);
                start
            };
            let Some(ahead) = free[at..].iter().position(|&free| free < wanted) else { break };
            at += ahead;
            let end = chunk.times[at];
            if end >= self.limit || end.saturating_sub(start) >= self.span {
                return ControlFlow::Break(Some(Time::from_ticks(start)));
            }
            if end >= self.until {
                return ControlFlow::Break(None);
            }
            self.start = None;
        }
        ControlFlow::Continue(())
    }

    /// Continues through a chunk that is shorter than the hole and ends before the limit.
    ///
    /// A hole may end in the chunk, or begin in it, but not both. So only the first stretch and the
    /// last one count.
    fn short_chunk(&mut self, chunk: &Chunk, first: usize, wanted: i32) -> ControlFlow<Option<Time>> {
        let free = &chunk.free[first..];
        if let Some(start) = self.start {
            let Some(ahead) = free.iter().position(|&free| free < wanted) else {
                return ControlFlow::Continue(());
            };
            if chunk.times[first + ahead].saturating_sub(start) >= self.span {
                return ControlFlow::Break(Some(Time::from_ticks(start)));
            }
            self.start = None;
        }
        // Without a last stretch, no hole begins before the last breakpoint.
        let mut begin = chunk.last;
        if chunk.last_free >= wanted {
            let ahead = free.iter().rposition(|&free| free < wanted).map_or(0, |below| below + 1);
            begin = chunk.times[first + ahead].max(self.not_before);
            self.start = Some(begin);
        }
        if begin >= self.until { ControlFlow::Break(None) } else { ControlFlow::Continue(()) }
    }
}
