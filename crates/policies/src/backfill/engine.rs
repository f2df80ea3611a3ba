//! The backfilling engine: one type for every policy of the family, on counts and on hosts.

use miserly_core::{Context, Event, HostId, JobId, Ledger, Machine, Policy, Span, Time, Violation};

use super::availability::Availability;
use super::counts::CountPlan;
use super::kept::Kept;
use super::recomputed::Recomputed;
use super::rules::BackfillRules;
use crate::predict::Predictive;
use crate::shared::{HostPlan, WhatIf};

/// A policy of the backfill family: its rules over an availability.
///
/// ```
/// use miserly_core::{Machine, Policy};
/// use miserly_policies::backfill::{Backfill, BackfillRules, CountPlan, ReservationDepth};
/// use miserly_policies::Order;
///
/// let rules = BackfillRules::recomputed(Order::ARRIVAL, ReservationDepth::First(1));
/// let easy = Backfill::<CountPlan>::new("easy", &Machine::plain(100), rules);
/// assert_eq!(easy.name(), "easy");
/// ```
#[derive(Debug)]
pub struct Backfill<A: Availability> {
    name: &'static str,
    usage_half_life: Option<Span>,
    engine: Engine<A>,
}

#[derive(Debug)]
enum Engine<A: Availability> {
    Recomputed(Recomputed<A>),
    Kept(Kept<A>),
}

impl<A: Availability> Backfill<A> {
    /// Returns the policy with these rules on an idle machine.
    pub fn new(name: &'static str, machine: &Machine, rules: BackfillRules) -> Backfill<A> {
        let plan = A::idle(machine);
        let usage_half_life = rules.usage_half_life();
        let engine = if rules.keep_reservations {
            Engine::Kept(Kept::new(plan, rules))
        } else {
            Engine::Recomputed(Recomputed::new(plan, rules))
        };
        Backfill { name, usage_half_life, engine }
    }
}

/// Returns the policy for a dedicated machine: on counts, if the machine has only processors.
pub fn backfill(name: &'static str, machine: &Machine, rules: BackfillRules) -> Box<dyn Policy> {
    let predictions = rules.predictions;
    let planner: Box<dyn Policy> = if machine.is_plain() {
        Box::new(Backfill::<CountPlan>::new(name, machine, rules))
    } else {
        backfill_on_hosts(name, machine, rules)
    };
    match predictions {
        Some(rules) => Box::new(Predictive::new(planner, rules)),
        None => planner,
    }
}

/// Returns the policy on hosts, which another policy can run around.
pub fn backfill_on_hosts(
    name: &'static str,
    machine: &Machine,
    rules: BackfillRules,
) -> Box<dyn Backfilling> {
    Box::new(Backfill::<HostPlan>::new(name, machine, rules))
}

impl<A: Availability> Policy for Backfill<A> {
    fn name(&self) -> &str {
        self.name
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.usage_half_life
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        match &mut self.engine {
            Engine::Recomputed(engine) => engine.rebuild(now, ledger),
            Engine::Kept(engine) => engine.rebuild(now, ledger),
        }
    }

    fn withdraw(&mut self, _now: Time, job: JobId, _ledger: &Ledger) -> bool {
        match &mut self.engine {
            Engine::Recomputed(_) => false,
            Engine::Kept(engine) => engine.withdraw(job),
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match &mut self.engine {
            Engine::Recomputed(engine) => engine.event(now, event, ledger),
            Engine::Kept(engine) => engine.event(now, event, ledger),
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        match &mut self.engine {
            Engine::Recomputed(engine) => engine.pass(context),
            Engine::Kept(engine) => engine.pass(context),
        }
    }
}

/// A backfill policy that another policy can contain.
///
/// It follows the changes that the other policy makes to jobs ([`Event::Changed`]), and shows its
/// plan.
pub trait Backfilling: Policy {
    /// Returns the plan of one host for a trial: the running jobs, and the promised reservations if
    /// `promised`.
    fn trial(&self, host: HostId, promised: bool) -> WhatIf<'_>;
}

impl Backfilling for Backfill<HostPlan> {
    fn trial(&self, host: HostId, promised: bool) -> WhatIf<'_> {
        match &self.engine {
            Engine::Recomputed(engine) => {
                let mut trial = engine.plan.trial(host);
                // They are not in the plan between passes.
                for held in engine.promised.iter().filter(|_| promised) {
                    trial.take(held.at, held.job.span, &held.place);
                }
                trial
            }
            Engine::Kept(engine) => {
                let mut trial = engine.plan.availability.trial(host);
                for held in engine.plan.reservations.iter().filter(|_| !promised) {
                    trial.give(held.at, held.job.span, &held.place);
                }
                trial
            }
        }
    }
}
