//! EASY: a reservation for the head of the queue, made anew at every pass; the rest may pass it.

use miserly_core::{Broken, Desk, Event, JobId, Ledger, Policy, Reason, Time, Violation};

use super::running::Running;
use super::{free_now, in_turn, start, waiting};
use crate::shared::{Key, Order, QueueIndex, Staircase, Waiting};

/// EASY backfilling (Zotkin et al. §2, after Lifka 1995).
///
/// Starts head jobs while they fit. The running jobs, by expected end, then give the *shadow time*, the
/// earliest time at which the head fits, and the *extra nodes*, free then beyond the head's need. Candidates
/// behind the head, in their order, start if they fit now and either end by the shadow time or use only
/// extra nodes, which they consume.
///
/// Promises the head its shadow time, where nobody can come in before it: with the queue in arrival order.
///
/// With r running and w waiting jobs in chunks of c: O(c + r/c + w/c) per event and per start.
#[derive(Debug)]
pub struct Easy {
    order: Order,
    backfill: Order,
    /// All waiting jobs, in the order of the queue.
    queue: QueueIndex,
    /// All waiting jobs, in the order of the candidates, where that is another one.
    candidates: Option<QueueIndex>,
    running: Running,
    /// The head and its shadow time as they were told last.
    told: Option<(Key, Time)>,
}

impl Easy {
    /// EASY with the queue in `order` and the candidates behind its head in `backfill`.
    pub fn new(order: Order, backfill: Order) -> Easy {
        Easy {
            order,
            backfill,
            queue: QueueIndex::new(),
            candidates: (backfill != order).then(QueueIndex::new),
            running: Running::none(0),
            told: None,
        }
    }

    fn enqueue(&mut self, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        self.queue.insert(waiting(self.order, job, entry));
        if let Some(candidates) = &mut self.candidates {
            candidates.insert(waiting(self.backfill, job, entry));
        }
    }

    fn start(&mut self, desk: &mut Desk<'_>, next: Waiting, reason: Reason) -> Result<(), Violation> {
        let entry = desk.ledger().entry(next.job);
        self.queue.remove(&self.order.key(entry));
        if let Some(candidates) = &mut self.candidates {
            candidates.remove(&self.backfill.key(entry));
        }
        self.running.profile.take(desk.now(), desk.now() + next.span, next.procs);
        start(desk, next.job, reason)
    }

    fn start_heads(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        while let Some(&head) = self.queue.first().filter(|head| head.procs <= free_now(desk.ledger())) {
            let reason = in_turn(desk, head.job);
            self.start(desk, head, reason)?;
        }
        Ok(())
    }

    /// Reserves the head's place, and lets pass it whoever does not disturb that.
    fn backfill(&mut self, desk: &mut Desk<'_>, head: Waiting) -> Result<(), Violation> {
        let now = desk.now();
        let shadow = self.running.profile.earliest(now, head.span, head.procs);
        self.tell(desk, &head, shadow)?;
        let mut extra = self.running.profile.free_at(shadow).saturating_sub(head.procs);
        let mut last = None;
        loop {
            let stairs = Staircase::of_shadow(free_now(desk.ledger()), shadow - now, extra);
            // The head does not fit, so it is never among those that do.
            let candidates = self.candidates.as_ref().unwrap_or(&self.queue);
            let Some(next) = candidates.next_admitted(last.as_ref(), &stairs) else { return Ok(()) };
            if now + next.span > shadow {
                extra -= next.procs;
            }
            self.start(desk, next, Reason::Backfilled)?;
            last = Some(next.key);
        }
    }

    /// Tells the head's start, once for each value: a promise, where nobody can come in before the head.
    fn tell(&mut self, desk: &mut Desk<'_>, head: &Waiting, shadow: Time) -> Result<(), Violation> {
        if self.told == Some((head.key, shadow)) {
            return Ok(());
        }
        self.told = Some((head.key, shadow));
        let head = head.job;
        if self.order != Order::Arrival {
            desk.plan(head, shadow);
            return Ok(());
        }
        match desk.ledger().entry(head).promise {
            // Only an overdue job can be the cause; the ledger checks that there was one.
            Some(promise) if promise.best < shadow => desk.break_promise(head, shadow, Broken::Overdue),
            _ => desk.promise(head, shadow),
        }
    }
}

impl Policy for Easy {
    fn name(&self) -> &'static str {
        "easy"
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        self.candidates = (self.backfill != self.order).then(QueueIndex::new);
        self.running = Running::rebuild(now, ledger);
        self.told = None;
        for job in ledger.waiting() {
            self.enqueue(job, ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.enqueue(job, ledger),
            Event::Overdue(job) => self.running.overdue(job, ledger),
            Event::Ended(ended) => {
                self.running.ended(now, ended.job, ledger);
            }
            Event::Timer => {}
        }
    }

    fn pass(&mut self, desk: &mut Desk<'_>) -> Result<(), Violation> {
        let now = desk.now();
        self.running.profile.advance(now);
        self.start_heads(desk)?;
        let Some(&head) = self.queue.first() else { return Ok(()) };
        self.running.hold_overdue(now);
        let result = self.backfill(desk, head);
        self.running.drop_overdue(now);
        result
    }
}
