//! The event queue against a sorted list.

use miserly_core::{JobId, Time};
use miserly_sim::EventQueue;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push(u32, i64),
    Cancel(u32),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u32..20, 0i64..30).prop_map(|(job, at)| Step::Push(job, at)),
        1 => (0u32..20).prop_map(Step::Cancel),
        2 => Just(Step::Pop),
    ]
}

proptest! {
    #[test]
    fn as_a_sorted_list(steps in prop::collection::vec(step(), 1..200)) {
        let mut queue = EventQueue::new();
        let mut list: Vec<(Time, u64, JobId)> = Vec::new();
        for (rank, step) in (0u64..).zip(steps) {
            match step {
                Step::Push(job, at) => {
                    let entry = (Time::from_ticks(at), rank, JobId(job));
                    queue.push(entry.2, entry.0, rank);
                    list.retain(|(_, _, other)| *other != entry.2);
                    list.push(entry);
                }
                Step::Cancel(job) => {
                    let before = list.len();
                    list.retain(|(_, _, other)| *other != JobId(job));
                    prop_assert_eq!(queue.cancel(JobId(job)), list.len() < before);
                }
                Step::Pop => {
                    list.sort_unstable();
                    let first = (!list.is_empty()).then(|| list.remove(0));
                    prop_assert_eq!(queue.pop(), first);
                }
            }
            prop_assert_eq!(queue.next_time(), list.iter().map(|(at, ..)| *at).min());
            prop_assert_eq!(queue.len(), list.len());
        }
    }
}
