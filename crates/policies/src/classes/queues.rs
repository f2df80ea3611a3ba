//! The wait queues: one for each class, first come, first served.

use std::collections::BTreeMap;
use std::collections::btree_map::Values;
use std::iter;

use miserly_classes::lsf::{Class, Length, Size};
use miserly_core::{Entry, JobId, Kind, Machine, Request, Resources};

use crate::shared::Key;

/// A waiting job, with the facts that determine its hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) job: JobId,
    pub(super) class: Class,
    pub(super) demand: Resources,
    pub(super) user: Option<u32>,
    arrival: Key,
}

/// The queues, by [`Class::index`].
#[derive(Debug, Default)]
pub(super) struct Queues([BTreeMap<Key, Waiting>; Class::COUNT]);

/// Returns the class of a request, or `None` beyond the largest.
pub(super) fn class(request: &Request) -> Option<Class> {
    Class::for_request(request.procs(), request.demand.get(Kind::Memory), request.estimate)
}

impl Waiting {
    /// Returns the waiting job for this machine, or `None` if it has no class.
    pub(super) fn new(job: JobId, entry: &Entry, machine: &Machine) -> Option<Waiting> {
        let request = &entry.request;
        Some(Waiting {
            job,
            class: class(request)?,
            demand: machine.amount(request),
            user: request.user,
            arrival: Key::arrival(entry),
        })
    }
}

impl Queues {
    pub(super) fn insert(&mut self, job: Waiting) {
        self.0[job.class.index()].insert(job.arrival, job);
    }

    pub(super) fn remove(&mut self, job: &Waiting) {
        self.0[job.class.index()].remove(&job.arrival);
    }

    /// Returns the waiting jobs of a size, in the order in which every host takes them.
    ///
    /// The `vst` jobs come first, then those of all other lengths together, each in order of
    /// arrival. Lengths that are not `open` are left out.
    pub(super) fn jobs_of_size(
        &self,
        size: Size,
        open: impl Fn(Length) -> bool,
    ) -> impl Iterator<Item = &Waiting> {
        let queue = |length| {
            let queue = &self.0[Class { size, length }.index()];
            if open(length) { queue.values() } else { Values::default() }
        };
        let mut rest = [Length::Short, Length::Medium, Length::Long].map(|length| queue(length).peekable());
        let merged = iter::from_fn(move || {
            let firsts = rest.iter_mut().enumerate();
            let (_, earliest) = firsts.filter_map(|(at, queue)| Some((queue.peek()?.arrival, at))).min()?;
            rest[earliest].next()
        });
        queue(Length::VeryShort).chain(merged)
    }
}
