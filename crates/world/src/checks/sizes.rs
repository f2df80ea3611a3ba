//! Jobs whose processors change: on how many processors they run, and how much they work.

use std::collections::BTreeSet;

use miserly_engine::{Attempt, Record};

use super::{EXTENDED, LONGEST_GRACE, Seen, TOLERANCE};
use crate::step::SECOND;
use crate::world::{Checked, World};

/// The time within which a policy obeys a request for fewer processors: more than the longest interval that is drawn.
const OBEYED: i64 = 10 * SECOND;
/// The time by which a window may be longer than the limit of its job: promises have slack.
const SLACK: i64 = 5 * SECOND;

/// The processors that the engine has for the attempt of a job, and the instant since which it is so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    nth: u32,
    cpus: Vec<u32>,
    wanted: Option<u64>,
    /// The processors that it has in its ledger.
    count: u64,
    /// The processors that its user asked for at last.
    asked: u64,
    since: i64,
    /// Whether its policy may resize it.
    pub(super) is_resized: bool,
}

impl World {
    /// A job in its window has as many processors as its ledger has for it, and as its user permits. It works no more than its
    /// limit.
    pub(super) fn check_sizes(&mut self) -> Checked {
        let (now, quiet_since) = (self.now, self.quiet_since());
        let has_lost_none = self.watch.has_lost_none();
        let setup = self.setup_now();
        let divided: BTreeSet<&str> = setup
            .queues
            .iter()
            .filter(|queue| queue.policy.needs().resizing)
            .map(|queue| queue.name.as_str())
            .collect();
        let windows = self.machine.windows().into_iter().filter(|window| !window.is_ending);
        let windows: BTreeSet<Attempt> = windows.map(|window| window.attempt).collect();
        for row in self.journal.rows().into_values().filter(|row| !row.ended) {
            let Ok(record) = serde_json::from_str::<Record>(&row.body) else { continue };
            let Some(seen) = self.watch.jobs.get_mut(&row.number) else { continue };
            let run = record.run.as_ref().filter(|run| run.in_window && !run.stopped && run.ending.is_none());
            let Some((run, entry)) = run.zip(record.entry.as_ref()) else { continue };
            let (entry, wrong) = (entry.entry(), |what| Err(format!("job {}: {what}", row.number)));
            let cpus: Vec<u32> = run.cpus.clone();
            let size = Size {
                nth: run.nth,
                cpus,
                wanted: record.wanted,
                count: entry.placement().map_or(0, |placement| {
                    placement.shares().iter().map(|share| share.amount.cpus_count().get()).sum()
                }),
                asked: record.submission.cpus,
                since: seen.size.since,
                is_resized: divided.contains(&*record.queue),
            };
            if size != seen.size {
                seen.size = Size { since: now, ..size };
            }
            let since = seen.size.since.max(quiet_since);
            let attempt = Attempt { job: row.number, nth: run.nth };
            let Some(sizes) = entry.request.sizes.filter(|_| seen.size.is_resized) else { continue };
            let count = seen.size.count;
            // The attempt of another job may still end on one of them.
            if count != run.cpus.len() as u64 && has_lost_none && since + EXTENDED < now {
                return wrong(format!("it has {count} processors in its ledger, and is on {:?}", run.cpus));
            }
            let submission = &record.submission;
            let least = submission.resizable.unwrap_or(submission.cpus);
            let is_obeyed = since + OBEYED >= now || count <= sizes.most.get();
            if !(least.min(submission.cpus)..=submission.cpus).contains(&count) || !is_obeyed {
                return wrong(format!("it has {count} processors, and may have {least} to {:?}", sizes.most));
            }
            let known = seen.limit.1.max(quiet_since) + EXTENDED < now;
            let most = (record.time.ticks() + SLACK).saturating_mul(submission.cpus.cast_signed());
            let worked = self.machine.worked(attempt, now);
            if known && windows.contains(&attempt) && worked > most {
                return wrong(format!("it has worked for {worked} processor-ticks, and its limit is {most}"));
            }
        }
        Ok(())
    }

    /// A resized job that is ended for its time has done the work of its limit, but for its grace.
    pub(super) fn check_work(&self, number: i64, seen: &Seen, end: i64) -> Checked {
        if !seen.size.is_resized || seen.limit.1.max(self.quiet_since()) + EXTENDED >= end {
            return Ok(());
        }
        let worked = self.machine.worked_at_last(number, end);
        let limit = crate::site::ticks(seen.limit.0);
        let least = (limit - LONGEST_GRACE - TOLERANCE).saturating_mul(seen.size.asked.cast_signed());
        if worked < least {
            return Err(format!(
                "it was ended for its time after {worked} processor-ticks, and had at least {least}"
            ));
        }
        Ok(())
    }
}
