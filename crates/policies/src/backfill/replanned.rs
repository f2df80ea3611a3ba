//! Conservative backfilling without guarantees: every reservation made anew at every pass.

use miserly_core::{Desk, Event, JobId, Ledger, Policy, Reason, Time, Violation};

use super::running::Running;
use super::{in_turn, sort_again, start, waiting};
use crate::shared::{Admits, Key, Order, Outlook, Profile, QueueIndex, Waiting};

/// Conservative backfilling that keeps no reservation (Zotkin et al. §8, "no guarantee").
///
/// At each pass every waiting job, in the order of the queue, gets the earliest hole beside the running jobs and
/// the reservations before it; those whose hole begins now start. It promises nothing.
///
/// # What is not planned
/// Only what starts now matters, for all else is planned again. A job can start now only if it fits under the
/// outlook of the plan so far, and that only sinks as the plan grows. So the queue index finds the next job that
/// may start; the jobs before it, which cannot, are planned because their places might be in its way; and
/// once there is none, the rest of the queue is left alone. With n breakpoints and w waiting jobs, of which p are
/// planned, in chunks of c: O(p (c + n/c) + w/c) per pass, and mostly p = 0.
///
/// No wake-up is needed: the first place in a plan that is not now is where a running job is to end.
#[derive(Debug)]
pub struct Replanned {
    order: Order,
    queue: QueueIndex,
    running: Running,
    /// The head and its planned start as they were told last.
    told: Option<(Key, Time)>,
}

impl Replanned {
    /// Reservations made in this order.
    pub fn new(order: Order) -> Replanned {
        Replanned { order, queue: QueueIndex::new(), running: Running::none(0), told: None }
    }

    fn enqueue(&mut self, now: Time, job: JobId, ledger: &Ledger) {
        self.queue.insert(waiting(&self.order, now, job, ledger.entry(job)));
    }

    /// The jobs whose places begin now, each with whether it passes a job before it.
    fn due(&self, now: Time) -> Vec<(Waiting, bool)> {
        let mut due = Vec::new();
        let Some(mut next) = self.next_after(None, &self.running.profile.outlook(now)) else { return due };
        let mut plan = self.running.profile.clone();
        let mut passes = false;
        for job in self.queue.iter() {
            if job.key == next.key {
                plan.take(now, now + job.span, job.procs);
                due.push((*job, passes));
            } else {
                let at = plan.earliest(now, job.span, job.procs);
                plan.take(at, at + job.span, job.procs);
                passes = true;
                if fits(&plan, now, &next) {
                    continue;
                }
            }
            match self.next_after(Some(&job.key), &plan.outlook(now)) {
                Some(found) => next = found,
                None => break,
            }
        }
        due
    }

    fn next_after(&self, after: Option<&Key>, outlook: &Outlook) -> Option<Waiting> {
        self.queue.next_admitted(after, outlook)
    }

    fn start_due(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        for (job, passes) in self.due(now) {
            let reason = if passes { Reason::Backfilled } else { in_turn(desk, job.job) };
            self.queue.remove(&job.key);
            self.running.profile.take(now, now + job.span, job.procs);
            start(desk, job.job, reason)?;
        }
        Ok(())
    }

    /// Tells the start that is planned for the head, once for each value. Whoever passed it does not delay it.
    fn tell(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let Some(head) = self.queue.first() else { return Ok(()) };
        let at = self.running.profile.earliest(desk.now(), head.span, head.procs);
        match self.told.replace((head.key, at)) {
            told if told == Some((head.key, at)) => Ok(()),
            _ => desk.plan(head.job, at),
        }
    }
}

/// Whether the job fits where it would start now.
fn fits(plan: &Profile, now: Time, job: &Waiting) -> bool {
    plan.outlook(now).admits(job.procs, job.span)
}

impl Policy for Replanned {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        *self = Replanned::new(self.order.clone());
        self.running = Running::rebuild(now, ledger);
        for job in ledger.waiting() {
            self.enqueue(now, job, ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.enqueue(now, job, ledger),
            Event::Overdue(job) => self.running.overdue(job, ledger),
            Event::Ended(ended) => {
                self.running.ended(now, ended.job, ledger);
            }
            // Nothing is around it on a plain machine; and it plans anew at each pass.
            Event::Timer | Event::Changed(_) | Event::Disturbed => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.running.profile.advance(now);
        sort_again(&mut self.queue, &self.order, desk);
        self.running.hold_overdue(now);
        let result = self.start_due(desk).and_then(|()| self.tell(desk));
        self.running.drop_overdue(now);
        result
    }
}
