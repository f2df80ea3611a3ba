//! A run of breakpoints of the profile.

/// The number of breakpoints at which a chunk is split.
pub(super) const CHUNK: usize = 64;

/// A run of breakpoints, each with the count from it to the next one.
///
/// The true counts are `free[i] + lift`. A change of a whole chunk changes only `lift`.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The first of `times`, stored for the search over chunks.
    pub(super) first: i64,
    /// The last of `times`.
    pub(super) last: i64,
    pub(super) lift: i32,
    /// The last of `free`.
    pub(super) last_free: i32,
    /// Bounds of `free`, without `lift`: nothing is below `least` or above `most`.
    ///
    /// Exact when measured, loose after a change of a part.
    pub(super) least: i32,
    pub(super) most: i32,
    /// The number of partial changes since the bounds were measured.
    loose: u32,
    pub(super) times: Vec<i64>,
    pub(super) free: Vec<i32>,
}

impl Chunk {
    pub(super) fn new(times: Vec<i64>, free: Vec<i32>) -> Chunk {
        let mut chunk =
            Chunk { first: 0, last: 0, lift: 0, last_free: 0, least: 0, most: 0, loose: 0, times, free };
        chunk.times.reserve(CHUNK);
        chunk.free.reserve(CHUNK);
        chunk.measure();
        chunk
    }

    /// Returns the number of breakpoints before `time`.
    pub(super) fn before(&self, time: i64) -> usize {
        self.times.partition_point(|&point| point < time)
    }

    /// Returns the number of breakpoints at `time` or before. `time` may be the end of time.
    pub(super) fn up_to(&self, time: i64) -> usize {
        self.times.partition_point(|&point| point <= time)
    }

    pub(super) fn measure(&mut self) {
        self.loose = 0;
        self.mark_ends();
        self.least = self.free.iter().copied().fold(i32::MAX, i32::min);
        self.most = self.free.iter().copied().fold(i32::MIN, i32::max);
    }

    /// Stores the first breakpoint and the last one after a change of either.
    pub(super) fn mark_ends(&mut self) {
        self.first = self.times[0];
        self.last = self.times[self.times.len() - 1];
        self.last_free = self.free[self.free.len() - 1];
    }

    pub(super) fn lift_within(&mut self, first: usize, last: usize, delta: i32) {
        if first >= last {
            return;
        }
        if first == 0 && last == self.free.len() {
            self.lift += delta;
            return;
        }
        for free in &mut self.free[first..last] {
            *free += delta;
        }
        self.mark_ends();
        self.least = self.least.min(self.least + delta);
        self.most = self.most.max(self.most + delta);
        self.loosen();
    }

    /// Counts a change that may have loosened the bounds.
    ///
    /// Measures them again after `OFTEN` changes, so the amortized cost is O(1).
    pub(super) fn loosen(&mut self) {
        const OFTEN: u32 = 16;
        self.loose += 1;
        if self.loose == OFTEN {
            self.measure();
        }
    }

    pub(super) fn split(&mut self) -> Chunk {
        let mut upper = Chunk::new(self.times.split_off(CHUNK / 2), self.free.split_off(CHUNK / 2));
        upper.lift = self.lift;
        self.measure();
        upper
    }

    pub(super) fn append(&mut self, next: &Chunk) {
        let shift = next.lift - self.lift;
        self.times.extend(&next.times);
        self.free.extend(next.free.iter().map(|free| free + shift));
        self.measure();
    }
}
