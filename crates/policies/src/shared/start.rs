//! Starts of jobs, as every policy makes them.

use miserly_core::{Context, JobId, Placement, StartReason, Violation};

/// Starts a job. Records a broken promise if the start is late.
///
/// ```
/// use miserly_core::*;
/// use miserly_policies::shared::{Order, QueueIndex, Waiting, head_start_reason, start_job};
///
/// /// Starts the head of the queue while it fits.
/// struct InTurn {
///     order: Order,
///     queue: QueueIndex,
/// }
///
/// impl Policy for InTurn {
///     fn name(&self) -> &str {
///         "in-turn"
///     }
///
///     fn rebuild(&mut self, now: Time, ledger: &Ledger) {
///         self.queue.clear();
///         for job in ledger.waiting() {
///             self.queue.insert(Waiting::new(&self.order, now, job, ledger));
///         }
///     }
///
///     fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
///         if let Event::Submitted(job) = event {
///             self.queue.insert(Waiting::new(&self.order, now, job, ledger));
///         }
///     }
///
///     fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
///         self.queue.sort_again(&self.order, context.now(), context.ledger());
///         while let Some(&head) = self.queue.first() {
///             let Some(placement) = context.ledger().fit_request(head.job) else { break };
///             let reason = head_start_reason(context, head.job);
///             start_job(context, head.job, placement, reason)?;
///             self.queue.remove(&head.key);
///         }
///         Ok(())
///     }
/// }
///
/// let policy = InTurn { order: Order::ARRIVAL, queue: QueueIndex::new() };
/// let ledger = Ledger::new(Machine::plain(4));
/// let mut driver = Driver::new(ledger, Box::new(policy), EventOrder::Batched);
/// let mut round = Round::default();
/// for job in [JobId(0), JobId(1)] {
///     let number = job.0.into();
///     let request = Request::new(number, Time::ZERO, Span::from_ticks(60), Resources::cpus(3));
///     round.submitted.push(Submission { job, request });
/// }
/// driver.round(Time::ZERO, &mut round, &mut Vec::new())?;
/// assert_eq!((driver.ledger().running_count(), driver.ledger().waiting_count()), (1, 1));
/// # Ok::<(), Violation>(())
/// ```
///
/// # Errors
/// A start that the ledger refuses, such as one in a place that is not free.
pub fn start_job(
    context: &mut Context<'_>,
    job: JobId,
    placement: Placement,
    reason: StartReason,
) -> Result<(), Violation> {
    let now = context.now();
    if context.ledger().entry(job).promise.is_some_and(|promise| promise.best < now) {
        context.break_promise(job, now)?;
    }
    context.start(job, placement, reason)
}

/// Returns the reason for which the head of the queue starts: immediate, if it has just arrived.
pub fn head_start_reason(context: &Context<'_>, job: JobId) -> StartReason {
    if context.ledger().request(job).submit == context.now() {
        StartReason::Immediate
    } else {
        StartReason::Reserved
    }
}
