//! Numbers that are told apart.

use std::collections::BTreeMap;

/// The numbers of a block.
const BLOCK: i64 = 64;

/// A set of numbers. Where they are dense, each takes a bit.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    blocks: BTreeMap<i64, u64>,
    /// The block of the last number: the next one is mostly in it too.
    last: Option<(i64, u64)>,
}

impl Distinct {
    /// Adds a number; `false` if it is there already.
    pub(crate) fn add(&mut self, number: i64) -> bool {
        let (block, bit) = (number.div_euclid(BLOCK), 1 << number.rem_euclid(BLOCK));
        if self.last.is_none_or(|(last, _)| last != block) {
            let bits = self.blocks.get(&block).copied().unwrap_or(0);
            self.blocks.extend(self.last.replace((block, bits)));
        }
        let Some((_, bits)) = &mut self.last else { return true };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_any_set(numbers in prop::collection::vec(-200_i64..400, 0..300)) {
            let (mut distinct, mut set) = (Distinct::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(distinct.add(number), set.insert(number));
            }
        }
    }
}
