//! The store against plain memory.

use jiff::Timestamp;
use miserly_engine::{Checkpoint, EndedFilter, JobRow, JournalBatch};
use miserly_store::Store;
use proptest::prelude::*;

use super::support::{Model, journal, row};

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    Commit(JournalBatch),
    Forget(Vec<i64>),
    ForgetSegment(Timestamp),
    Reopen,
}

fn walls() -> impl Strategy<Value = Timestamp> {
    (0..100_i64).prop_map(|micros| Timestamp::from_microsecond(micros).unwrap())
}

fn rows() -> impl Strategy<Value = JobRow> {
    (1..20_i64, any::<bool>(), 0..100_i64, prop_oneof![1..200_usize, 3000..9000_usize])
        .prop_map(|(number, ended, version, size)| row(number, ended, version, size))
}

fn batches() -> impl Strategy<Value = JournalBatch> {
    let lines = prop::collection::vec("[a-z\"{}é]{0,30}", 0..4);
    let meta = prop::collection::vec((prop_oneof!["clock", "other"], "[a-z]{0,10}"), 0..3);
    let checkpoint = prop::option::weighted(0.3, ("[a-z]{0,30}", walls()));
    let checkpoint = checkpoint.prop_map(|found| found.map(|(line, wall)| Checkpoint { line, wall }));
    (lines, prop::collection::vec(rows(), 0..5), meta, checkpoint)
        .prop_map(|(lines, rows, values, checkpoint)| JournalBatch { lines, checkpoint, rows, values })
}

fn forgotten() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(1..20_i64, 0..10)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![8 => batches().prop_map(Step::Commit), 1 => forgotten().prop_map(Step::Forget), 1 => walls().prop_map(Step::ForgetSegment), 1 => Just(Step::Reopen)],
        1..30,
    )
}

fn filters() -> impl Strategy<Value = EndedFilter> {
    let queue = prop::option::of(prop_oneof!["batch", "short"].prop_map(|name| name.clone()));
    (prop::option::of(1000..1002_u32), queue, prop::option::of(0..20_i64), prop::option::of(0..6_u32))
        .prop_map(|(uid, queue, array, limit)| EndedFilter { uid, queue, array, limit })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_store_is_what_was_committed(steps in steps(), filters in prop::collection::vec(filters(), 4), from in 0..40_i64) {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, mut model) = (Store::open(folder.path()).unwrap(), Model::default());
        let mut segments: Vec<(i64, Timestamp)> = vec![];
        for step in &steps {
            match step {
                Step::Commit(batch) => {
                    store.commit(batch).unwrap();
                    model.commit(batch);
                    // A first line that is a checkpoint seals nothing.
                    let sealed = model.last - 1;
                    segments.extend(batch.checkpoint.as_ref().filter(|_| sealed > 0).map(|of| (sealed, of.wall)));
                }
                Step::Forget(numbers) => {
                    store.forget(numbers).unwrap();
                    model.jobs.retain(|number, row| !row.ended || !numbers.contains(number));
                }
                Step::ForgetSegment(before) => {
                    let due = segments.iter().take_while(|(_, wall)| wall < before).count();
                    prop_assert_eq!(store.forget_segment(*before).unwrap(), due > 1);
                    if let Some((last, _)) = segments.first().copied().filter(|_| due > 0) {
                        model.lines.retain(|line| line.number > last);
                        segments.remove(0);
                    }
                }
                Step::Reopen => {
                    drop(store);
                    store = Store::open(folder.path()).unwrap();
                }
            }
        }
        prop_assert_eq!(&Model::of(&store), &model);
        prop_assert_eq!(store.live_jobs().unwrap(), model.live());
        let sealed: Vec<_> = store.segments().map(|segment| (segment.last, segment.sealed)).collect();
        prop_assert_eq!(sealed, segments);
        let tail: Vec<_> = model.lines.iter().filter(|line| line.number >= from).cloned().collect();
        prop_assert_eq!(journal(&store, from), tail);
        for filter in &filters {
            prop_assert_eq!(store.ended_jobs(filter).unwrap(), model.ended(filter));
        }
        let some: Vec<_> = model.ended(&EndedFilter::default()).into_iter().filter(|row| row.number >= from).take(3).collect();
        prop_assert_eq!(store.ended_from(from, 3).unwrap(), some);
        for number in 0..21 {
            prop_assert_eq!(store.job(number).unwrap(), model.jobs.get(&number).cloned());
        }
    }
}
