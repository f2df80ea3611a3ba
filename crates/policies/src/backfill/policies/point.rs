//! A named point of the backfill family, and the policy of it.

use miserly_core::{Machine, Policy};

use crate::backfill::{BackfillRules, Backfilling, ReservationDepth, backfill, backfill_on_hosts};
use crate::predict::Predictor;
use crate::registry::{Needs, Params, Promises};

/// A point of the backfill family: the rules of a backfill policy, and its name.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name of the policy.
    pub name: &'static str,
    /// Its rules.
    pub rules: BackfillRules,
}

impl Point {
    /// Makes the policy that runs within another one, or on hosts.
    pub fn inner(self, machine: &Machine) -> Box<dyn Backfilling> {
        backfill_on_hosts(self.name, machine, self.rules)
    }
}

impl Params for Point {
    /// Makes the policy: on counts, where the machine has nothing but processors.
    fn build(&self, machine: &Machine) -> Box<dyn Policy> {
        backfill(self.name, machine, self.rules.clone())
    }

    fn promises(&self) -> Promises {
        if self.rules.plans_by_predictions() {
            Promises::Nothing
        } else if self.rules.keep_reservations {
            Promises::EveryJob
        } else if self.rules.promises_head() && self.rules.depth != ReservationDepth::First(0) {
            Promises::Head
        } else {
            Promises::Nothing
        }
    }

    fn needs(&self, needs: Needs) -> Needs {
        let exact = self.rules.predictions.is_some_and(|rules| rules.predictor == Predictor::Exact);
        let constraints = needs.begin_and_deadline && !self.rules.plans_by_predictions();
        let predictions = self.rules.predictions.is_some();
        let beyond_limits = self.rules.predictions.is_some_and(|rules| rules.plans_beyond_limits());
        Needs { predictions, beyond_limits, known_runtimes: exact, begin_and_deadline: constraints, ..needs }
    }

    fn backfill(&self) -> Option<Point> {
        // Another policy runs around those only whose reservations are their promises.
        let rules = &self.rules;
        let is_plain = rules.guarantee.is_none() && rules.late_after.is_none() && rules.predictions.is_none();
        is_plain.then(|| self.clone())
    }
}
