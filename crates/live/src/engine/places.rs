//! Whether jobs can stay where they are, and come back there, in the queues of another set-up.

use std::collections::BTreeMap;

use miserly_core::{Entry, State};
use miserly_policies::Registry;

use super::{Kept, Record, SavedEntry, Setup};

/// A set-up, and what the queues were like in which jobs came to where they are.
pub(super) struct Places<'s> {
    setup: &'s Setup,
    own: BTreeMap<String, Vec<u32>>,
    before: BTreeMap<String, Kept>,
}

impl<'s> Places<'s> {
    pub(super) fn of(setup: &'s Setup, before: BTreeMap<String, Kept>) -> Places<'s> {
        Places { setup, own: setup.own_cpus(), before }
    }

    /// What is wrong for a job with the set-up, as what comes behind its number in a sentence; `None` if nothing is.
    pub(super) fn wrong(&self, record: &Record) -> Option<String> {
        let entry = record.entry.as_ref().filter(|_| record.is_in()).map(SavedEntry::entry);
        entry
            .and_then(|entry| self.cannot_go_on(record, &entry).or_else(|| self.means_others(record, &entry)))
            .or_else(|| self.is_in_the_way(record))
    }

    /// Another policy does not know of jobs that one before it has suspended, and would never let them go on; nor of those that it had take turns.
    fn cannot_go_on(&self, record: &Record, entry: &Entry) -> Option<String> {
        let queue = record.queue.as_str();
        let before = self.before.get(queue)?.policy.as_deref()?;
        let now = self.setup.queues.iter().find(|of| of.name == queue)?.policy.descriptor();
        let sliced = now.needs.time_slices || slices_time(before);
        let does = match entry.state {
            State::Suspended { .. } => "is suspended by",
            State::Running { .. } if sliced => "runs under",
            _ => return None,
        };
        (before != now.name).then(|| {
            format!("{does} the policy {before} of queue {queue}, which would be another, {}", now.name)
        })
    }

    /// The numbers of a job's processors are counted from the first of its queue's own.
    fn means_others(&self, record: &Record, entry: &Entry) -> Option<String> {
        let queue = record.queue.as_str();
        let (before, own) = (self.before.get(queue), self.own.get(queue));
        let named = entry.placement().is_some_and(|placement| placement.pes().is_some());
        let known = before.filter(|before| named && before.policy.is_some());
        let has = record.run.as_ref().map(|run| run.cpus.as_slice()).unwrap_or_default();
        let outside = own.is_some_and(|own| has.iter().any(|cpu| !own.contains(cpu)));
        let changed = known.is_some_and(|before| before.own.as_ref() != own);
        (entry.placement().is_some() && (named != own.is_some() || outside || changed))
            .then(|| format!("is on processors of queue {queue}, which would have others"))
    }

    /// Another queue would give these processors to its jobs.
    fn is_in_the_way(&self, record: &Record) -> Option<String> {
        let run = record.run.as_ref()?;
        let others = self.own.iter().filter(|(queue, _)| **queue != record.queue);
        let (queue, cpu) = others
            .flat_map(|(queue, own)| own.iter().map(move |cpu| (queue, cpu)))
            .find(|(_, cpu)| run.cpus.contains(cpu))?;
        Some(format!("runs on processor {cpu}, which queue {queue} would have for itself"))
    }
}

/// Returns whether the policy of that name slices the time of processors. The attempts of its jobs differ from those of others.
fn slices_time(policy: &str) -> bool {
    Registry::built_in().find(policy).is_some_and(|descriptor| descriptor.needs.time_slices)
}
