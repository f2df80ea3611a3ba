//! First come, first served, in any order: no backfilling.

use miserly_core::{Context, Event, Ledger, Policy, Span, Time, Violation};

use crate::shared::{Order, QueueIndex, Waiting, head_start_reason, start_job};

/// Starts the head of the queue while it fits on some host, and stops at the first job that does
/// not.
///
/// O(log n) per event and per start.
#[derive(Debug)]
pub struct Fcfs {
    order: Order,
    queue: QueueIndex,
}

impl Fcfs {
    /// Returns a policy without backfilling, with the queue in this order.
    pub const fn new(order: Order) -> Fcfs {
        Fcfs { order, queue: QueueIndex::new() }
    }
}

impl Policy for Fcfs {
    fn name(&self) -> &'static str {
        "fcfs"
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.order.usage_half_life()
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.queue.clear();
        for job in ledger.waiting() {
            self.queue.insert(Waiting::new(&self.order, now, job, ledger));
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        if let Event::Submitted(job) = event {
            self.queue.insert(Waiting::new(&self.order, now, job, ledger));
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.queue.sort_again(&self.order, context.now(), context.ledger());
        while let Some(&head) = self.queue.first() {
            let Some(placement) = context.ledger().fit_request(head.job) else { break };
            let reason = head_start_reason(context, head.job);
            start_job(context, head.job, placement, reason)?;
            self.queue.remove(&head.key);
        }
        Ok(())
    }
}
