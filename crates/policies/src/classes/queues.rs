//! The wait queues: one for each class, first come, first served.

use std::collections::BTreeMap;
use std::collections::btree_map::Values;
use std::iter;

use miserly_core::{Entry, JobClass, JobClasses, JobId, Kind, Machine, Request, Resources};

use crate::shared::Key;

/// A waiting job, with the facts that determine its hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) job: JobId,
    pub(super) class: JobClass,
    pub(super) demand: Resources,
    pub(super) user: Option<u32>,
    arrival: Key,
}

/// The queues, by size and length.
#[derive(Debug)]
pub(super) struct Queues(Vec<Vec<BTreeMap<Key, Waiting>>>);

/// Returns the class of a request, or `None` beyond the largest.
pub(super) fn class(classes: &JobClasses, request: &Request) -> Option<JobClass> {
    classes.class(request.procs(), request.demand.get(Kind::Memory), request.estimate)
}

impl Waiting {
    /// Returns the waiting job for this machine, or `None` if it has none of these classes.
    pub(super) fn new(job: JobId, entry: &Entry, machine: &Machine, classes: &JobClasses) -> Option<Waiting> {
        let request = &entry.request;
        Some(Waiting {
            job,
            class: class(classes, request)?,
            demand: machine.amount(request),
            user: request.user,
            arrival: Key::arrival(entry),
        })
    }
}

impl Queues {
    /// Returns empty queues of these classes.
    pub(super) fn empty(classes: &JobClasses) -> Queues {
        Queues(vec![vec![BTreeMap::new(); classes.lengths.len()]; classes.sizes.len()])
    }

    pub(super) fn insert(&mut self, job: Waiting) {
        self.0[job.class.size][job.class.length].insert(job.arrival, job);
    }

    pub(super) fn remove(&mut self, job: &Waiting) {
        self.0[job.class.size][job.class.length].remove(&job.arrival);
    }

    /// Returns the waiting jobs of a size, in the order in which every host takes them.
    ///
    /// The jobs of the first lengths come first, then those of all other lengths together, each in order
    /// of arrival. Lengths that are not `open` are left out.
    pub(super) fn jobs_of_size(
        &self,
        size: usize,
        classes: &JobClasses,
        open: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = &Waiting> {
        let queue = |length: usize| {
            let queue = &self.0[size][length];
            if open(length) { queue.values() } else { Values::default() }
        };
        let lengths = |first| {
            let all = classes.lengths.iter().enumerate();
            all.filter_map(move |(at, length)| (length.first == first).then_some(at))
        };
        let first: Vec<_> = lengths(true).map(queue).collect();
        let mut rest: Vec<_> = lengths(false).map(|length| queue(length).peekable()).collect();
        let merged = iter::from_fn(move || {
            let firsts = rest.iter_mut().enumerate();
            let (_, earliest) = firsts.filter_map(|(at, queue)| Some((queue.peek()?.arrival, at))).min()?;
            rest[earliest].next()
        });
        first.into_iter().flatten().chain(merged)
    }
}
