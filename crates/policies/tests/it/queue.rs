//! The queue index against a sorted list.

use miserly_core::{Entry, JobId, Ledger, Machine, Request, Resources, Span, Time};
use miserly_policies::shared::{Criterion, Order, QueueIndex, Staircase, Waiting};
use proptest::prelude::*;

fn entry(number: u32, submit: i64, procs: u32, estimate: i64) -> Entry {
    let (submit, estimate) = (Time::from_ticks(submit), Span::from_ticks(estimate));
    let request = Request::new(i64::from(number), submit, estimate, Resources::cpus(u64::from(procs)));
    Entry::waiting(request, u64::from(number))
}

fn waiting(order: &Order, number: u32, entry: &Entry) -> Waiting {
    let (procs, span) = (u32::try_from(entry.request.procs()).unwrap(), entry.request.planned());
    Waiting {
        key: order.key(Time::ZERO, entry, &Ledger::new(Machine::plain(1))),
        job: JobId(number),
        procs,
        span,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert {
        submit: i64,
        procs: u32,
        estimate: i64,
    },
    Remove(usize),
    /// New keys: those of another order, or the same again.
    Rekey(usize),
    /// The first that fits beside a shadow: (free, until the shadow, extra), behind the n-th job.
    Search {
        free: u32,
        until: i64,
        extra: u32,
        behind: Option<usize>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let insert = (0i64..50, 1u32..40, 0i64..90).prop_map(|(submit, procs, estimate)| Step::Insert {
        submit,
        procs,
        estimate,
    });
    let search = (0u32..30, 1i64..60, 0u32..20, any::<Option<usize>>())
        .prop_map(|(free, until, extra, behind)| Step::Search { free, until, extra, behind });
    prop_oneof![5 => insert, 3 => any::<usize>().prop_map(Step::Remove), 1 => any::<usize>().prop_map(Step::Rekey), 2 => search]
}

proptest! {
    #[test]
    fn as_a_sorted_list(steps in prop::collection::vec(step(), 1..600), which in 0..Criterion::ALL.len()) {
        let mut order = Order::by(Criterion::ALL[which].0);
        let mut queue = QueueIndex::new();
        let mut list: Vec<Waiting> = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for step in steps {
            match step {
                Step::Insert { submit, procs, estimate } => {
                    let number = u32::try_from(entries.len()).unwrap();
                    let entry = entry(number, submit, procs, estimate);
                    let job = waiting(&order, number, &entry);
                    entries.push(entry);
                    queue.insert(job);
                    list.push(job);
                    list.sort_by_key(|job| job.key);
                }
                Step::Remove(which) if !list.is_empty() => {
                    let job = list.remove(which % list.len());
                    prop_assert!(queue.remove(&job.key));
                    prop_assert!(!queue.remove(&job.key));
                }
                Step::Remove(_) => {}
                Step::Rekey(which) => {
                    order = Order::by(Criterion::ALL[which % Criterion::ALL.len()].0);
                    let none = Ledger::new(Machine::plain(1));
                    let key = |job: &Waiting| order.key(Time::ZERO, &entries[job.job.index()], &none);
                    queue.rekey(key);
                    for job in &mut list {
                        job.key = key(job);
                    }
                    list.sort_by_key(|job| job.key);
                }
                Step::Search { free, until, extra, behind } => {
                    let until = Span::from_ticks(until);

                    let stairs = Staircase::of_shadow(free, until, extra);
                    let behind = behind.filter(|_| !list.is_empty()).map(|which| list[which % list.len()].key);
                    let fits = |job: &&Waiting| {
                        Some(job.key) > behind && job.procs <= free && (job.span <= until || job.procs <= extra)
                    };
                    let truth = list.iter().find(fits).copied();
                    prop_assert_eq!(queue.next_admitted(behind.as_ref(), &stairs), truth);
                }
            }
            prop_assert_eq!(queue.len(), list.len());
            prop_assert_eq!(queue.first(), list.first());
        }
        prop_assert!(queue.iter().eq(&list));
    }
}
