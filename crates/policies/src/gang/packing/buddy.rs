//! The buddy system (§2.4): processors in groups that are powers of two, each with a controller.

use std::ops::Range;

use miserly_core::{Matrix, PeSet, Procs};

use super::{Packing, Place};

/// Where a job counts in the tree of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Booking {
    /// At the controller that it is mapped to: the load of the paper, as its Figure 2 has it.
    Own,
    /// At each of its processors: the load on a controller is the most that there is on one of its processors. The paper found it inferior.
    Max,
}

/// A job of size n goes to the least loaded controller of the least power of two that is n or more whose processors are all free in a
/// row, in the first such row; of equally loaded ones to the lowest.
///
/// A controller's load is the number of jobs mapped to it, the larger of what its two children have below, and what its ancestors have
/// of their own. A job whose size is no power of two gets a part of its controller's processors: the less loaded child (the left one of
/// equals) as many as it has, the other one the rest, and so on downwards. Where the number of processors is no power of two, the tree
/// is over the next one, and a controller is free if those of its processors that there are are free, and enough.
///
/// O(log P) for a job that comes or goes. For the search in a row O(c), where c is the number of controllers of the size, or of those
/// above some job, times log P, if that is less: below a controller with no jobs the first free one is as good as any.
#[derive(Clone, Debug)]
pub struct Buddy {
    booking: Booking,
    procs: u32,
    /// The size of the root.
    span: u32,
    /// The jobs mapped to each controller; the root is 1, the children of c are 2 c and 2 c + 1.
    own: Vec<u32>,
    /// That, and the larger of what the two children have: the most on a path downwards.
    down: Vec<u32>,
}

/// A controller that a job could be mapped to.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    load: u32,
    node: usize,
}

/// What is looked for in a row.
struct Search<'a> {
    open: &'a PeSet,
    /// The size of the controllers.
    size: u32,
    /// The size of the job.
    job: Procs,
}

impl Buddy {
    /// The scheme, with jobs counted so, and nobody there.
    pub fn new(booking: Booking) -> Buddy {
        Buddy { booking, procs: 0, span: 1, own: vec![0; 2], down: vec![0; 2] }
    }

    /// The size of a controller.
    fn size(&self, node: usize) -> u32 {
        self.span >> node.ilog2()
    }

    /// Its processors, as far as there are such.
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

    /// The controller of that size over a processor.
    fn over(&self, pe: u32, size: u32) -> usize {
        ((self.span / size) + pe / size) as usize
    }

    /// The controllers at which a job counts that has these processors.
    fn booked(&self, pes: &PeSet) -> Vec<usize> {
        let Some(&(lowest, _)) = pes.ranges().first() else { return vec![] };
        match self.booking {
            Booking::Own => vec![self.over(lowest, controller(pes.count()))],
            Booking::Max => pes.ranges().iter().flat_map(|&(low, high)| self.covering(low, high)).collect(),
        }
    }

    /// The fewest controllers that have just these processors. O(log P).
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
                let below = self.down.get(2 * above).max(self.down.get(2 * above + 1)).copied();
                self.down[above] = self.own[above] + below.unwrap_or(0);
                above /= 2;
            }
        }
    }

    /// The least loaded controller that is free.
    fn least(&self, search: &Search<'_>) -> Option<Candidate> {
        let mut best = None;
        self.look(1, 0, search, &mut best);
        best
    }

    /// Looks below a controller whose ancestors have so many jobs of their own.
    fn look(&self, node: usize, above: u32, search: &Search<'_>, best: &mut Option<Candidate>) {
        let beaten = |load: u32| best.is_some_and(|best| best.load <= load);
        let own = self.own[node];
        if beaten(above + own) || Procs::from(u64::from(self.count(node))) < search.job {
            return;
        }
        if self.size(node) == search.size {
            let load = above + self.down[node];
            if !beaten(load) && is_free(search.open, &self.pes(node)) {
                *best = Some(Candidate { load, node });
            }
        } else if self.down[node] == 0 {
            // All below are loaded alike.
            let free = first_free(search, &self.pes(node));
            *best = free.map(|low| Candidate { load: above, node: self.over(low, search.size) }).or(*best);
        } else {
            self.look(2 * node, above + own, search, best);
            self.look(2 * node + 1, above + own, search, best);
        }
    }

    /// So many processors of a controller, in groups by the loads on the controllers below it.
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

    /// The processors of a job on the least loaded controller that is free, and that load.
    fn on_least(&self, open: &PeSet, job: Procs) -> Option<(u32, PeSet)> {
        let size = controller(job);
        let Candidate { load, node } = self.least(&Search { open, size, job })?;
        let mut ranges = vec![];
        self.choose(node, u32::try_from(job).ok()?, &mut ranges);
        Some((load, PeSet::from_ranges(&ranges)))
    }
}

impl Packing for Buddy {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<Place> {
        let places = super::with_room(matrix, size).filter_map(|(slot, row)| {
            let (load, pes) = self.on_least(row.open(), size)?;
            Some((load, slot, pes))
        });
        let (_, slot, pes) = places.min_by_key(|(load, slot, _)| (*load, *slot))?;
        Some(Place { slot, pes })
    }

    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        self.on_least(matrix.all(), size).map(|(_, pes)| pes)
    }

    fn reset(&mut self, procs: Procs, numbers: Procs) {
        self.procs = u32::try_from(procs).unwrap_or(u32::MAX);
        self.span = controller(numbers.max(Procs::ONE));
        let nodes = 2 * self.span as usize;
        (self.own, self.down) = (vec![0; nodes], vec![0; nodes]);
    }

    fn came(&mut self, pes: &PeSet) {
        self.book(pes, |own| own + 1);
    }

    fn left(&mut self, pes: &PeSet) {
        self.book(pes, |own| own.saturating_sub(1));
    }
}

/// The size of the controllers that a job of this size is mapped to: 2^ceil(lg size).
fn controller(size: Procs) -> u32 {
    u32::try_from(size.get().next_power_of_two()).unwrap_or(1 << 31)
}

/// Whether all of these are open.
fn is_free(open: &PeSet, pes: &Range<u32>) -> bool {
    let at = open.ranges().partition_point(|range| range.1 < pes.start);
    open.ranges().get(at).is_some_and(|(low, high)| *low <= pes.start && pes.end - 1 <= *high)
}

/// The lowest processor of the first free controller of the size, among these processors.
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

    /// The load on the controller of that size at that processor.
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

    /// Three terms, as in Figure 2: what is mapped to the controller, to its ancestors, and the more of what is on its two sides.
    #[test]
    fn figure_2() {
        // One on all eight; one on the lower four, and two on the pair 0-1; one on processor 2; one on the pair 6-7.
        let jobs =
            [(0, 8), (0, 4), (0, 2), (0, 2), (2, 1), (6, 2)].map(|(low, count)| PeSet::block(low, count));
        let mut buddy = with(Booking::Own, 8, &jobs);
        // All: its own, and the lower half with its own and the two on a pair.
        assert_eq!(load(&buddy, 0, 8), 1 + (1 + 2));
        assert_eq!([0, 4].map(|low| load(&buddy, low, 4)), [1 + 1 + 2, 1 + 1]);
        assert_eq!([0, 2, 4, 6].map(|low| load(&buddy, low, 2)), [4, 3, 1, 2]);
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|pe| load(&buddy, pe, 1)), [4, 4, 3, 2, 1, 1, 2, 2]);
        for pes in &jobs[1..] {
            buddy.left(pes);
        }
        assert!([1, 2, 4, 8].iter().all(|size| load(&buddy, 0, *size) == 1), "the first one is left");
    }

    /// A job on three processors is mapped to a controller of four: it loads the fourth too, but not its processor.
    #[test]
    fn the_loads_of_a_controller_and_of_its_processors() {
        let three = [PeSet::from_ranges(&[(0, 1), (3, 3)])];
        let (own, max) = (with(Booking::Own, 8, &three), with(Booking::Max, 8, &three));
        assert_eq!([0, 1, 2, 3, 4].map(|pe| load(&own, pe, 1)), [1, 1, 1, 1, 0]);
        assert_eq!([0, 1, 2, 3, 4].map(|pe| load(&max, pe, 1)), [1, 1, 0, 1, 0]);
        assert_eq!([0, 4].map(|low| load(&max, low, 4)), [1, 0]);
        // Two on the same processors, one beside them: the most on one processor is two.
        let others = [PeSet::block(0, 3), PeSet::block(1, 4), PeSet::block(6, 1)];
        assert_eq!(load(&with(Booking::Max, 8, &others), 0, 8), 2);
    }

    /// It is free if those of its processors that there are are free, whoever has the others.
    #[test]
    fn a_controller_over_a_lost_processor_is_that_of_the_others() {
        let mut buddy = Buddy::new(Booking::Own);
        buddy.reset(Procs::new(3), Procs::new(4));
        buddy.came(&PeSet::block(3, 1));
        let chosen =
            |count: u64| buddy.on_least(&PeSet::first(3), count.into()).map(|(_, pes)| pes.to_string());
        assert_eq!(
            [3, 4, 2, 1].map(chosen),
            [Some("0-2".into()), None, Some("0-1".into()), Some("0".into())]
        );
    }

    #[test]
    fn groups_are_taken_by_the_loads_below() {
        let chosen = |jobs: &[PeSet], procs: u64, count: u64| {
            let buddy = with(Booking::Own, procs, jobs);
            buddy.on_least(&PeSet::first(u32::try_from(procs).unwrap()), count.into()).unwrap().1.to_string()
        };
        assert_eq!(chosen(&[], 8, 5), "0-4");
        // The less loaded half as a whole; of the other one the less loaded processor of the less loaded pair.
        assert_eq!(chosen(&[PeSet::block(1, 1)], 8, 5), "2 4-7");
        assert_eq!(chosen(&[PeSet::block(0, 2), PeSet::block(2, 1), PeSet::block(0, 2)], 8, 5), "3-7");
        // Of thirteen processors the upper half has five.
        assert_eq!(chosen(&[], 13, 9), "0-8");
        assert_eq!(chosen(&[PeSet::block(0, 1)], 13, 12), "1-12");
        assert_eq!(chosen(&[PeSet::block(0, 8)], 13, 5), "8-12");
    }
}
