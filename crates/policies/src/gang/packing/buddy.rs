//! The buddy system (§2.4): processors in groups that are powers of two, each with a controller.

use std::ops::Range;

use miserly_core::{Matrix, PeSet, Procs, SlotId};

use super::{Packing, SlotPlacement};

/// The nodes of the controller tree at which a job is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Booking {
    /// The controller that the job is mapped to: the load of the paper, as in its Figure 2.
    Own,
    /// Each of its processors: the load on a controller is the highest of its processors. The paper
    /// found it inferior. On our model its slowdown is no higher (`docs/reproduction`).
    Max,
}

/// The buddy system: a job goes to the least loaded free controller of its size.
///
/// The size of the controller is the least power of two that is at least the job's size. All its
/// processors must be free in a slot. Ties go to the first slot, then to the lowest controller.
///
/// A controller's load is the sum of three terms: the jobs mapped to it, the larger load of its two
/// children, and the jobs mapped to its ancestors. A job whose size is no power of two gets a part
/// of its controller's processors. The less loaded child (the left one of equals) gives as many as
/// it has, the other one the rest, and so on downwards. If the number of processors is no power of
/// two, the tree covers the next one. A controller is then free if its existing processors are free
/// and sufficient.
///
/// O(log P) for a job that arrives or leaves. The search in a slot is O(c), for c controllers of
/// the size. It is O(a log P) if that is less, for a controllers above some job. Below a controller
/// with no jobs the first free one is optimal.
#[derive(Clone, Debug)]
pub struct Buddy {
    booking: Booking,
    procs: u32,
    /// The size of the root.
    span: u32,
    /// The jobs mapped to each controller. The root is 1. The children of c are 2 c and 2 c + 1.
    own: Vec<u32>,
    /// The own jobs plus the larger load of the two children: the maximum of a path downwards.
    down: Vec<u32>,
    /// The minimum of a path downwards, a bound for all controllers below.
    least: Vec<u32>,
}

/// A controller that a job could be mapped to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    load: u32,
    node: usize,
}

/// The search for a controller in a slot.
struct Search<'a> {
    open: &'a PeSet,
    /// The size of the controllers.
    size: u32,
    /// The size of the job.
    job: Procs,
    /// The load that a controller must be below, if any.
    bound: Option<u32>,
}

impl Buddy {
    /// Returns the scheme without jobs, with this counting.
    pub fn new(booking: Booking) -> Buddy {
        Buddy { booking, procs: 0, span: 1, own: vec![0; 2], down: vec![0; 2], least: vec![0; 2] }
    }

    /// Returns the size of a controller.
    fn size(&self, node: usize) -> u32 {
        self.span >> node.ilog2()
    }

    /// Returns the existing processors of a controller.
    fn pes(&self, node: usize) -> Range<u32> {
        let size = self.size(node);
        // Nodes of one level are numbered from a power of two on.
        let place = node - (1 << node.ilog2());
        let low = u32::try_from(place).unwrap_or(u32::MAX).saturating_mul(size).min(self.procs);
        low..low.saturating_add(size).min(self.procs)
    }

    fn count(&self, node: usize) -> u32 {
        let pes = self.pes(node);
        pes.end - pes.start
    }

    /// Returns the controller of that size above a processor.
    fn over(&self, pe: u32, size: u32) -> usize {
        ((self.span / size) + pe / size) as usize
    }

    /// Returns the controllers at which a job with these processors is counted.
    fn booked(&self, pes: &PeSet) -> Vec<usize> {
        let Some(&(lowest, _)) = pes.ranges().first() else { return vec![] };
        match self.booking {
            Booking::Own => vec![self.over(lowest, controller(pes.count()))],
            Booking::Max => pes.ranges().iter().flat_map(|&(low, high)| self.covering(low, high)).collect(),
        }
    }

    /// Returns the fewest controllers that cover exactly these processors. O(log P).
    fn covering(&self, low: u32, high: u32) -> Vec<usize> {
        let (mut low, mut high) = ((self.span + low) as usize, (self.span + high) as usize);
        let mut nodes = vec![];
        while low < high {
            if low % 2 == 1 {
                nodes.push(low);
                low += 1;
            }
            if high.is_multiple_of(2) {
                nodes.push(high);
                high -= 1;
            }
            (low, high) = (low / 2, high / 2);
        }
        nodes.extend((low == high).then_some(low));
        nodes
    }

    fn book(&mut self, pes: &PeSet, change: fn(u32) -> u32) {
        for node in self.booked(pes) {
            self.own[node] = change(self.own[node]);
            let mut above = node;
            while above > 0 {
                let (left, right) = (2 * above, 2 * above + 1);
                let most = self.down.get(left).max(self.down.get(right)).copied();
                let least = self.least.get(left).min(self.least.get(right)).copied();
                self.down[above] = self.own[above] + most.unwrap_or(0);
                self.least[above] = self.own[above] + least.unwrap_or(0);
                above /= 2;
            }
        }
    }

    /// Returns the least loaded controller for a job of that size that is free among the open processors, if its load
    /// is below the bound.
    fn find(&self, open: &PeSet, job: Procs, bound: Option<u32>) -> Option<Candidate> {
        let mut best = None;
        self.look(1, 0, &Search { open, size: controller(job), job, bound }, &mut best);
        best
    }

    /// Searches below a controller whose ancestors have `above` jobs mapped to them.
    fn look(&self, node: usize, above: u32, search: &Search<'_>, best: &mut Option<Candidate>) {
        let bound = best.map(|best| best.load).or(search.bound);
        let beaten = |load: u32| bound.is_some_and(|bound| bound <= load);
        if beaten(above + self.least[node]) || Procs::from(u64::from(self.count(node))) < search.job {
            return;
        }
        if self.size(node) == search.size {
            let load = above + self.down[node];
            if !beaten(load) && is_free(search.open, &self.pes(node)) {
                *best = Some(Candidate { load, node });
            }
        } else if self.down[node] == 0 {
            // All controllers below are loaded alike.
            let free = first_free(search, &self.pes(node));
            *best = free.map(|low| Candidate { load: above, node: self.over(low, search.size) }).or(*best);
        } else {
            self.look(2 * node, above + self.own[node], search, best);
            self.look(2 * node + 1, above + self.own[node], search, best);
        }
    }

    /// Adds `count` processors of a controller to `ranges`, by the loads on the controllers below
    /// it.
    fn choose(&self, node: usize, count: u32, ranges: &mut Vec<(u32, u32)>) {
        let pes = self.pes(node);
        if count == 0 {
            return;
        }
        if count >= pes.end - pes.start {
            ranges.push((pes.start, pes.end - 1));
            return;
        }
        let (left, right) = (2 * node, 2 * node + 1);
        let (first, second) = if self.down[right] < self.down[left] { (right, left) } else { (left, right) };
        let here = count.min(self.count(first));
        self.choose(first, here, ranges);
        self.choose(second, count - here, ranges);
    }

    /// Returns the processors of a job on a controller.
    fn pes_on(&self, node: usize, job: Procs) -> Option<PeSet> {
        let mut ranges = vec![];
        self.choose(node, u32::try_from(job).ok()?, &mut ranges);
        Some(PeSet::from_ranges(&ranges))
    }
}

impl Packing for Buddy {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement> {
        let mut best: Option<(SlotId, Candidate)> = None;
        for (slot, row) in super::with_room(matrix, size) {
            let better = self.find(row.open(), size, best.map(|(_, best)| best.load));
            best = better.map(|better| (slot, better)).or(best);
        }
        let (slot, Candidate { node, .. }) = best?;
        Some(SlotPlacement { slot, pes: self.pes_on(node, size)? })
    }

    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        self.pes_on(self.find(matrix.all(), size, None)?.node, size)
    }

    fn reset(&mut self, procs: Procs, numbers: Procs) {
        self.procs = u32::try_from(procs).unwrap_or(u32::MAX);
        self.span = controller(numbers.max(Procs::ONE));
        let nodes = 2 * self.span as usize;
        (self.own, self.down, self.least) = (vec![0; nodes], vec![0; nodes], vec![0; nodes]);
    }

    fn came(&mut self, pes: &PeSet) {
        self.book(pes, |own| own + 1);
    }

    fn left(&mut self, pes: &PeSet) {
        self.book(pes, |own| own.saturating_sub(1));
    }
}

/// Returns the size of the controllers that a job of this size is mapped to: 2^ceil(lg size).
fn controller(size: Procs) -> u32 {
    u32::try_from(size.get().next_power_of_two()).unwrap_or(1 << 31)
}

/// Returns whether all of these processors are open.
fn is_free(open: &PeSet, pes: &Range<u32>) -> bool {
    let at = open.ranges().partition_point(|range| range.1 < pes.start);
    open.ranges().get(at).is_some_and(|(low, high)| *low <= pes.start && pes.end - 1 <= *high)
}

/// Returns the lowest processor of the first free controller of the size, among these processors.
fn first_free(search: &Search<'_>, pes: &Range<u32>) -> Option<u32> {
    let (ranges, size) = (search.open.ranges(), search.size);
    let from = ranges.partition_point(|range| range.1 < pes.start);
    let mut within = ranges[from..].iter().take_while(|(low, _)| *low < pes.end);
    let first = |&(low, high): &(u32, u32)| {
        let low = low.max(pes.start).checked_next_multiple_of(size)?;
        let end = low.saturating_add(size).min(pes.end);
        (low < end && end - 1 <= high && Procs::from(u64::from(end - low)) >= search.job).then_some(low)
    };
    within.find_map(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the load on the controller of that size at that processor.
    fn load(buddy: &Buddy, low: u32, size: u32) -> u32 {
        let node = buddy.over(low, size);
        let mut above = node / 2;
        let mut sum = buddy.down[node];
        while above > 0 {
            sum += buddy.own[above];
            above /= 2;
        }
        sum
    }

    fn with(booking: Booking, procs: impl Into<Procs>, jobs: &[PeSet]) -> Buddy {
        let mut buddy = Buddy::new(booking);
        let procs = procs.into();
        buddy.reset(procs, procs);
        for pes in jobs {
            buddy.came(pes);
        }
        buddy
    }

    /// Returns the processors of a job on the least loaded controller of a slot with these open ones.
    fn placed(buddy: &Buddy, open: &PeSet, job: Procs) -> Option<String> {
        Some(buddy.pes_on(buddy.find(open, job, None)?.node, job)?.to_string())
    }

    /// Checks the three terms of Figure 2: jobs mapped to the controller, to its ancestors, and the
    /// larger load of its two halves.
    #[test]
    fn figure_2() {
        // One on all eight; one on the lower four, and two on the pair 0-1; one on processor 2; one
        // on the pair 6-7.
        let jobs =
            [(0, 8), (0, 4), (0, 2), (0, 2), (2, 1), (6, 2)].map(|(low, count)| PeSet::block(low, count));
        let mut buddy = with(Booking::Own, 8, &jobs);
        // All: its own job, and the lower half with its own and the two on a pair.
        assert_eq!(load(&buddy, 0, 8), 1 + (1 + 2));
        assert_eq!([0, 4].map(|low| load(&buddy, low, 4)), [1 + 1 + 2, 1 + 1]);
        assert_eq!([0, 2, 4, 6].map(|low| load(&buddy, low, 2)), [4, 3, 1, 2]);
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|pe| load(&buddy, pe, 1)), [4, 4, 3, 2, 1, 1, 2, 2]);
        for pes in &jobs[1..] {
            buddy.left(pes);
        }
        assert!([1, 2, 4, 8].iter().all(|size| load(&buddy, 0, *size) == 1), "the first one is left");
    }

    /// A job on three processors is mapped to a controller of four: it loads the fourth controller,
    /// but not its processor.
    #[test]
    fn the_loads_of_a_controller_and_of_its_processors() {
        let three = [PeSet::from_ranges(&[(0, 1), (3, 3)])];
        let (own, max) = (with(Booking::Own, 8, &three), with(Booking::Max, 8, &three));
        assert_eq!([0, 1, 2, 3, 4].map(|pe| load(&own, pe, 1)), [1, 1, 1, 1, 0]);
        assert_eq!([0, 1, 2, 3, 4].map(|pe| load(&max, pe, 1)), [1, 1, 0, 1, 0]);
        assert_eq!([0, 4].map(|low| load(&max, low, 4)), [1, 0]);
        // Two jobs on the same processors, one beside them: the highest load of a processor is two.
        let others = [PeSet::block(0, 3), PeSet::block(1, 4), PeSet::block(6, 1)];
        assert_eq!(load(&with(Booking::Max, 8, &others), 0, 8), 2);
    }

    /// A controller is free if its existing processors are free, regardless of the lost ones.
    #[test]
    fn a_controller_over_a_lost_processor_is_that_of_the_others() {
        let mut buddy = Buddy::new(Booking::Own);
        buddy.reset(Procs::new(3), Procs::new(4));
        buddy.came(&PeSet::block(3, 1));
        let chosen = |count: u64| placed(&buddy, &PeSet::first(3), count.into());
        assert_eq!(
            [3, 4, 2, 1].map(chosen),
            [Some("0-2".into()), None, Some("0-1".into()), Some("0".into())]
        );
    }

    #[test]
    fn groups_are_taken_by_the_loads_below() {
        let chosen = |jobs: &[PeSet], procs: u64, count: u64| {
            let buddy = with(Booking::Own, procs, jobs);
            placed(&buddy, &PeSet::first(u32::try_from(procs).unwrap()), count.into()).unwrap()
        };
        assert_eq!(chosen(&[], 8, 5), "0-4");
        // All of the less loaded half; of the other one the less loaded processor of the less
        // loaded pair.
        assert_eq!(chosen(&[PeSet::block(1, 1)], 8, 5), "2 4-7");
        assert_eq!(chosen(&[PeSet::block(0, 2), PeSet::block(2, 1), PeSet::block(0, 2)], 8, 5), "3-7");
        // Of thirteen processors the upper half has five.
        assert_eq!(chosen(&[], 13, 9), "0-8");
        assert_eq!(chosen(&[PeSet::block(0, 1)], 13, 12), "1-12");
        assert_eq!(chosen(&[PeSet::block(0, 8)], 13, 5), "8-12");
    }
}
