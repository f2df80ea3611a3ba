//! A map of records that can be shared at little cost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Record;

/// The number of consecutive job numbers in a block.
const BLOCK: i64 = 256;

type Block = BTreeMap<i64, Arc<Record>>;

/// Records by job number. A clone shares them: a later change copies one record and its block.
///
/// A clone is O(n / 256) for n jobs with dense numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordMap {
    /// The records, in blocks of numbers. No block is empty.
    blocks: BTreeMap<i64, Arc<Block>>,
}

impl RecordMap {
    /// Returns the record of a job.
    pub(crate) fn get(&self, number: i64) -> Option<&Record> {
        self.blocks.get(&block_of(number))?.get(&number).map(Arc::as_ref)
    }

    /// Returns the record of a job, for changes.
    pub(crate) fn get_mut(&mut self, number: i64) -> Option<&mut Record> {
        let block = self.blocks.get_mut(&block_of(number))?;
        if !block.contains_key(&number) {
            return None;
        }
        Arc::make_mut(block).get_mut(&number).map(Arc::make_mut)
    }

    /// Returns the records, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.from(i64::MIN)
    }

    /// Returns the records of the jobs from a number on, by number.
    pub(crate) fn from(&self, number: i64) -> impl Iterator<Item = &Record> {
        let blocks = self.blocks.range(block_of(number)..);
        blocks.flat_map(move |(_, block)| block.range(number..)).map(|(_, record)| record.as_ref())
    }

    /// Returns the numbers of the records that differ from those of an earlier clone, by number: added, changed or removed ones.
    ///
    /// A record that was changed to what it was before may be among them. Blocks that both maps share are not searched.
    pub(crate) fn changed_since(&self, before: &RecordMap) -> Vec<i64> {
        let places: BTreeSet<i64> = self.blocks.keys().chain(before.blocks.keys()).copied().collect();
        let mut changed = vec![];
        for place in places {
            match (before.blocks.get(&place), self.blocks.get(&place)) {
                (Some(before), Some(now)) if Arc::ptr_eq(before, now) => {}
                (before, now) => add_changes(before.map(Arc::as_ref), now.map(Arc::as_ref), &mut changed),
            }
        }
        changed
    }

    /// Adds a record. Returns the one that it replaces.
    pub(crate) fn insert(&mut self, record: Record) -> Option<Arc<Record>> {
        let number = record.number;
        Arc::make_mut(self.blocks.entry(block_of(number)).or_default()).insert(number, Arc::new(record))
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, number: i64) -> Option<Record> {
        let place = block_of(number);
        let block = self.blocks.get_mut(&place)?;
        if !block.contains_key(&number) {
            return None;
        }
        let block = Arc::make_mut(block);
        let record = block.remove(&number);
        if block.is_empty() {
            self.blocks.remove(&place);
        }
        record.map(Arc::unwrap_or_clone)
    }
}

/// Adds the numbers of the records that are not the same in two blocks of one place.
fn add_changes(before: Option<&Block>, now: Option<&Block>, changed: &mut Vec<i64>) {
    let record = |block: Option<&Block>, number: i64| block.and_then(|block| block.get(&number)).cloned();
    let all = before.into_iter().chain(now).flat_map(BTreeMap::keys);
    let numbers: BTreeSet<i64> = all.copied().collect();
    let same = |number: i64| match (record(before, number), record(now, number)) {
        (Some(before), Some(now)) => Arc::ptr_eq(&before, &now),
        _ => false,
    };
    changed.extend(numbers.into_iter().filter(|number| !same(*number)));
}

const fn block_of(number: i64) -> i64 {
    number.div_euclid(BLOCK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::JobState;

    fn map(numbers: &[i64]) -> RecordMap {
        let mut map = RecordMap::default();
        for number in numbers {
            map.insert(Record::new(*number, JobState::Queued, Arc::default()));
        }
        map
    }

    fn numbers(records: impl Iterator<Item = impl std::ops::Deref<Target = Record>>) -> Vec<i64> {
        records.map(|record| record.number).collect()
    }

    #[test]
    fn records_are_in_order_across_blocks() {
        let mut map = map(&[700, 1, 255, 256, 257]);
        assert_eq!(numbers(map.iter()), [1, 255, 256, 257, 700]);
        assert_eq!(numbers(map.from(256)), [256, 257, 700]);
        assert_eq!(map.remove(256).map(|record| record.number), Some(256));
        assert!(map.remove(256).is_none() && map.remove(9000).is_none() && map.get(2).is_none());
        assert_eq!(map.remove(700).map(|record| record.number), Some(700));
        assert_eq!(map.blocks.len(), 2);
    }

    /// The content of a map: the user of each job.
    fn users(map: &RecordMap) -> BTreeMap<i64, u32> {
        map.iter().map(|record| (record.number, record.uid)).collect()
    }

    proptest! {
        #[test]
        fn changes_are_those_of_a_comparison_record_by_record(
            begin in proptest::collection::btree_set(0..1200_i64, 0..40),
            steps in proptest::collection::vec((0..1200_i64, 0..3), 0..40),
        ) {
            let before = map(&begin.into_iter().collect::<Vec<_>>());
            let mut now = before.clone();
            for (nth, (number, step)) in (1..).zip(steps) {
                match step {
                    0 => drop(now.insert(Record { uid: nth, ..Record::new(number, JobState::Queued, Arc::default()) })),
                    1 => drop(now.remove(number)),
                    _ => now.get_mut(number).into_iter().for_each(|record| record.uid = nth),
                }
            }
            let (old, new) = (users(&before), users(&now));
            let all: BTreeSet<i64> = old.keys().chain(new.keys()).copied().collect();
            let expected: Vec<i64> = all.into_iter().filter(|number| old.get(number) != new.get(number)).collect();
            let changed = now.changed_since(&before);
            // Each step sets another user, so no record returns to its content.
            prop_assert_eq!(changed, expected);
            prop_assert!(now.changed_since(&now.clone()).is_empty());
        }
    }

    #[test]
    fn a_clone_keeps_what_it_has() {
        let mut now = map(&[1, 2, 300]);
        let before = now.clone();
        now.get_mut(1).expect("a record").uid = 7;
        now.remove(2);
        now.insert(Record::new(3, JobState::Held, Arc::default()));
        assert_eq!(
            (numbers(before.iter()), before.get(1).map(|record| record.uid)),
            (vec![1, 2, 300], Some(0))
        );
        assert_eq!((numbers(now.iter()), now.get(1).map(|record| record.uid)), (vec![1, 3, 300], Some(7)));
        assert!(Arc::ptr_eq(&before.blocks[&1], &now.blocks[&1]), "an unchanged block is shared");
    }
}
