//! Compatibility of running and suspended jobs with another setup.

use std::collections::BTreeMap;

use miserly_core::{Entry, State};
use miserly_policies::Registry;

use crate::{QueueState, Record, Setup};

/// A setup, and the queues in which the jobs were placed.
pub(crate) struct Compatibility<'s> {
    setup: &'s Setup,
    own: BTreeMap<String, Vec<u32>>,
    before: BTreeMap<String, QueueState>,
}

impl<'s> Compatibility<'s> {
    pub(crate) fn new(setup: &'s Setup, before: BTreeMap<String, QueueState>) -> Compatibility<'s> {
        Compatibility { setup, own: setup.own_cpus(), before }
    }

    /// Returns the conflict between a job and the setup, as the rest of a sentence after the job number.
    pub(crate) fn conflict(&self, record: &Record) -> Option<String> {
        record
            .ledger_entry()
            .and_then(|entry| self.cannot_go_on(record, &entry).or_else(|| self.means_others(record, &entry)))
            .or_else(|| self.is_in_the_way(record))
            .or_else(|| self.would_lose(record))
    }

    /// Finds a job that may not begin anew, in a queue whose policy writes jobs out.
    fn would_lose(&self, record: &Record) -> Option<String> {
        let queue = self.setup.queue(&record.queue).filter(|queue| queue.policy.needs().swapping)?;
        let is_new = !record.submission.restartable && !record.is_finished();
        is_new.then(|| format!("is not restartable, and queue {} would write jobs out", queue.name))
    }

    /// Finds a change of policy. Another policy would never resume suspended jobs, nor continue time-sliced ones.
    fn cannot_go_on(&self, record: &Record, entry: &Entry) -> Option<String> {
        let queue = &*record.queue;
        let before = self.before.get(queue)?.policy.as_deref()?;
        let now = self.setup.queue(queue)?.policy.descriptor();
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

    /// Finds a change of the queue's own processors, from which the processors of a job are counted.
    fn means_others(&self, record: &Record, entry: &Entry) -> Option<String> {
        let queue = &*record.queue;
        let (before, own) = (self.before.get(queue), self.own.get(queue));
        let named = entry.placement().is_some_and(|placement| placement.pes().is_some());
        let known = before.filter(|before| named && before.policy.is_some());
        let has = record.run.as_ref().map(|run| run.cpus.as_slice()).unwrap_or_default();
        let outside = own.is_some_and(|own| has.iter().any(|cpu| !own.contains(cpu)));
        let changed = known.is_some_and(|before| before.own.as_ref() != own);
        (entry.placement().is_some() && (named != own.is_some() || outside || changed))
            .then(|| format!("is on processors of queue {queue}, which would have others"))
    }

    /// Finds another queue that would have a processor of the job for itself.
    fn is_in_the_way(&self, record: &Record) -> Option<String> {
        let run = record.run.as_ref()?;
        let others = self.own.iter().filter(|(queue, _)| ***queue != *record.queue);
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
