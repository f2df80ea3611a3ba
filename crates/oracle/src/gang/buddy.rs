//! The buddy system: groups of processors that are powers of two, each with a controller.

use super::NaivePacking;
use super::packing::load;
use super::world::World;

/// The processors from `low` on, at most `size` of them, as far as they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Controller {
    low: usize,
    size: usize,
}

impl Controller {
    fn pes(self, world: &World<'_>) -> Vec<usize> {
        (self.low..self.low + self.size).filter(|pe| *pe < world.procs).collect()
    }

    fn children(self) -> Option<[Controller; 2]> {
        let size = self.size / 2;
        (size > 0).then(|| [self.low, self.low + size].map(|low| Controller { low, size }))
    }

    fn parent(self) -> Controller {
        let size = 2 * self.size;
        Controller { low: self.low / size * size, size }
    }

    /// Returns the number of jobs mapped to it.
    fn own(self, world: &World<'_>) -> usize {
        let mapped = world.residents().into_iter().filter(|running| {
            let lowest = running.pes.iter().position(|mine| *mine).expect("a processor");
            running.size().next_power_of_two() == self.size && lowest / self.size * self.size == self.low
        });
        mapped.count()
    }

    /// Returns the number of its own jobs plus the larger count of its children.
    fn up(self, world: &World<'_>) -> usize {
        let below = self.children().into_iter().flatten().map(|child| child.up(world)).max();
        self.own(world) + below.unwrap_or(0)
    }

    fn load(self, world: &World<'_>) -> usize {
        if world.rules.packing == NaivePacking::BuddyByMax {
            return self.pes(world).into_iter().map(|pe| load(world, pe)).max().unwrap_or(0);
        }
        let (mut above, mut sum) = (self, self.up(world));
        while above.size < world.procs {
            above = above.parent();
            sum += above.own(world);
        }
        sum
    }
}

/// Returns the least loaded free controller for a job of this size, with its load. Ties go to the
/// lowest.
pub(super) fn on_least(world: &World<'_>, open: &[bool], job: usize) -> Option<(usize, Controller)> {
    let size = job.next_power_of_two();
    let all = (0..world.procs).step_by(size).map(|low| Controller { low, size });
    let free = all.filter(|controller| {
        let pes = controller.pes(world);
        pes.len() >= job && pes.iter().all(|pe| open[*pe])
    });
    free.map(|controller| (controller.load(world), controller)).min_by_key(|(load, _)| *load)
}

/// Returns `count` processors of a controller: as many as possible of the less loaded child,
/// recursively.
pub(super) fn choose(world: &World<'_>, controller: Controller, count: usize) -> Vec<usize> {
    let pes = controller.pes(world);
    if count == pes.len() || count == 0 {
        return pes[..count].to_vec();
    }
    let [left, right] = controller.children().expect("one processor is all or none");
    let (first, second) = if right.load(world) < left.load(world) { (right, left) } else { (left, right) };
    let here = count.min(first.pes(world).len());
    let mut chosen = choose(world, first, here);
    chosen.extend(choose(world, second, count - here));
    chosen
}
