//! The order of the runs: paired and interleaved, the same for the same seed.

use miserly_core::draw;

/// The order of the runs of one part.
///
/// Each repetition has every point once, in an order of its own. The variants of a point follow each other, in an order of their
/// own too. So a change of the load of other programs meets all variants alike.
#[derive(Debug)]
pub(crate) struct Plan<P, V> {
    /// Repetition from 0, point, variant.
    pub(crate) runs: Vec<(u32, P, V)>,
}

impl<P: Copy, V: Copy> Plan<P, V> {
    pub(crate) fn new(seed: u64, repeats: u32, points: &[P], variants: &[V]) -> Plan<P, V> {
        let mut order = Order { seed, number: 0 };
        let mut runs = Vec::new();
        for repeat in 0..repeats {
            for point in order.shuffled(points) {
                runs.extend(order.shuffled(variants).into_iter().map(|variant| (repeat, point, variant)));
            }
        }
        Plan { runs }
    }
}

/// A source of random orders.
struct Order {
    seed: u64,
    number: u64,
}

impl Order {
    /// Returns the items in a random order (Fisher and Yates).
    fn shuffled<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        for last in (1..items.len()).rev() {
            self.number += 1;
            let drawn = draw(self.seed, 0, self.number) % (last as u64 + 1);
            items.swap(last, usize::try_from(drawn).unwrap_or(last));
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [u32; 4] = [10, 20, 30, 40];
    const VARIANTS: [char; 3] = ['a', 'b', 'c'];

    #[test]
    fn each_repetition_has_each_point_once_in_each_variant() {
        let plan = Plan::new(1, 3, &POINTS, &VARIANTS);
        for repeat in 0..3 {
            let mut runs: Vec<_> = plan.runs.iter().filter(|run| run.0 == repeat).collect();
            assert_eq!(runs.len(), POINTS.len() * VARIANTS.len());
            runs.sort();
            runs.dedup();
            assert_eq!(runs.len(), POINTS.len() * VARIANTS.len());
        }
        assert!(plan.runs.is_sorted_by_key(|run| run.0));
    }

    #[test]
    fn the_variants_of_a_point_follow_each_other_in_changing_orders() {
        let plan = Plan::new(1, 6, &POINTS, &VARIANTS);
        let groups: Vec<_> = plan.runs.chunks(VARIANTS.len()).collect();
        assert!(groups.iter().all(|group| group.iter().all(|run| run.1 == group[0].1)));
        let orders = |of: fn(&[(u32, u32, char)]) -> String| {
            let mut orders: Vec<String> = groups.iter().map(|group| of(group)).collect();
            orders.sort();
            orders.dedup();
            orders.len()
        };
        assert_eq!(orders(|group| group.iter().map(|run| run.2).collect()), 6);
    }

    #[test]
    fn a_seed_gives_one_order() {
        let runs = |seed| Plan::new(seed, 2, &POINTS, &VARIANTS).runs;
        assert_eq!(runs(1), runs(1));
        assert_ne!(runs(1), runs(2));
    }
}
