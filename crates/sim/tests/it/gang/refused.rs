//! Decisions about rows that the ledger refuses.

use miserly_core::{
    Context, Event, EventOrder, HostId, JobId, Ledger, Machine, PeSet, Placement, Policy, Resources, Rule,
    Slicing, SlotId, Span, StartReason, Time, Violation,
};
use miserly_policies::shared::Bypassed;
use miserly_sim::{RunError, Simulation};

use crate::support::{in_order, jobs};

/// Starts the first two jobs in two rows and then decides once more.
struct Then(fn(&mut Context<'_>) -> Result<(), Violation>);

impl Policy for Then {
    fn name(&self) -> &'static str {
        "then"
    }

    fn slices_time(&self) -> Option<Slicing> {
        Some(Slicing { most_slots: 2, ..Slicing::FREE })
    }

    fn rebuild(&mut self, _: Time, _: &Ledger) {}

    fn event(&mut self, _: Time, _: Event, _: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        context.start(JobId(0), on(0, 0, 2), StartReason::Immediate)?;
        context.start(JobId(1), on(1, 1, 2), StartReason::Immediate)?;
        (self.0)(context)
    }
}

/// Returns a placement on `count` processors of a slot.
fn on(slot: u32, low: u32, count: u32) -> Placement {
    let pes = PeSet::block(low, count);
    Placement::on_pes(HostId(0), Resources::cpus(u64::from(count)), pes).in_slot(SlotId(slot))
}

#[track_caller]
fn check(then: fn(&mut Context<'_>) -> Result<(), Violation>, rule: Rule) {
    let jobs = jobs(&[(0, 9, 2, 9), (0, 9, 2, 9), (0, 9, 2, 9)]);
    let mut simulation = Simulation::new(Machine::plain(4), Box::new(Then(then)), EventOrder::Batched);
    match simulation.run(&mut in_order(&jobs), &mut []) {
        Err(RunError::Violation(violation)) => assert_eq!(violation.rule, rule),
        other => panic!("{other:?}"),
    }
}

#[test]
fn places_that_are_not_open() {
    check(|context| context.start(JobId(2), on(0, 1, 2), StartReason::Immediate), Rule::WrongPes);
    check(|context| context.start(JobId(2), on(1, 3, 2), StartReason::Immediate), Rule::WrongPes);
    check(|context| context.start(JobId(2), on(2, 0, 2), StartReason::Immediate), Rule::NoSuchSlot);
    check(|context| context.start(JobId(2), on(0, 2, 1), StartReason::Immediate), Rule::WrongAmount);
    let unnamed = |context: &mut Context<'_>| {
        context.start(JobId(2), Placement::on_plain(Resources::cpus(2)), StartReason::Immediate)
    };
    check(unnamed, Rule::WrongPes);
}

#[test]
fn further_rows_that_are_not_idle() {
    check(|context| context.set_alternate_slots(JobId(0), &[SlotId(1)]), Rule::WrongPes);
    check(|context| context.set_alternate_slots(JobId(0), &[SlotId(0)]), Rule::NoSuchSlot);
    check(|context| context.set_alternate_slots(JobId(2), &[SlotId(0)]), Rule::NotRunning);
    // Two jobs that would conflict there, and one in an unused slot.
    let both = |context: &mut Context<'_>| {
        context.start(JobId(2), on(0, 2, 2), StartReason::Immediate)?;
        context.remap(&[(JobId(1), on(1, 2, 2))], Span::ZERO)?;
        context.set_alternate_slots(JobId(0), &[SlotId(1)])?;
        context.set_alternate_slots(JobId(2), &[SlotId(1)])
    };
    check(both, Rule::WrongPes);
    let unused = |context: &mut Context<'_>| {
        context.remap(&[(JobId(1), on(0, 2, 2))], Span::ZERO)?;
        context.set_alternate_slots(JobId(0), &[SlotId(1)])
    };
    check(unused, Rule::NoSuchSlot);
}

#[test]
fn moves_to_where_others_are() {
    check(|context| context.remap(&[(JobId(0), on(1, 0, 2))], Span::ZERO), Rule::WrongPes);
    check(|context| context.remap(&[(JobId(0), on(0, 0, 3))], Span::ZERO), Rule::WrongAmount);
    check(|context| context.remap(&[(JobId(2), on(0, 2, 2))], Span::ZERO), Rule::NotRunning);
    // All at once they may change places, and then the first is where the second was.
    let swap = |context: &mut Context<'_>| {
        context.remap(&[(JobId(0), on(1, 1, 2)), (JobId(1), on(0, 0, 2))], Span::ZERO)?;
        context.start(JobId(2), on(1, 2, 2), StartReason::Immediate)
    };
    check(swap, Rule::WrongPes);
    check(|context| context.set_slot_state(SlotId(2), &Bypassed(1)), Rule::NoSuchSlot);
}
