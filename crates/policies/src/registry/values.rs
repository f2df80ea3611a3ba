//! The values of a policy's parameters, given or by default.

use miserly_core::Span;

use super::domain::Value;
use super::{DefaultValue, Param};
use crate::shared::{Draw, Order, Weight};

/// A value for each parameter of a policy.
///
/// Every value was checked against its domain when the policy was chosen, and the registry's test does that
/// for the defaults; so where one is asked for under the wrong name, or as the wrong kind, nothing better
/// than the kind's own default is left to say.
pub(super) struct Values {
    of: Vec<(&'static str, Value)>,
}

impl Values {
    /// What was `given`, else what the registry says, where `seed` is the run's.
    pub(super) fn new(
        params: &'static [Param],
        given: impl Fn(&Param) -> Option<Value>,
        seed: u64,
    ) -> Values {
        let mut of: Vec<(&'static str, Value)> = Vec::new();
        for param in params {
            let default = || match param.default {
                DefaultValue::Is(text) => param.domain.named(text).ok(),
                DefaultValue::SameAs(other) => {
                    of.iter().find(|(name, _)| *name == other).map(|(_, value)| value.clone())
                }
                DefaultValue::SeedOfRun => Some(Value::Integer(seed)),
            };
            if let Some(value) = given(param).or_else(default) {
                of.push((param.name, value));
            }
        }
        Values { of }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.of.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The order of that name, with the weight and the draws that go for all orders of the policy.
    pub(super) fn order(&self, name: &str) -> Order {
        let order =
            if let Some(Value::Order(order)) = self.get(name) { order.clone() } else { Order::default() };
        let draw = if self.word("draw") == "pass" { Draw::Pass } else { Draw::Once };
        let weight = Weight::per_second(self.number("weight")).unwrap_or_default();
        order.with_weight(weight).with_draws(draw, self.integer("seed"))
    }

    fn word(&self, name: &str) -> &'static str {
        if let Some(Value::Word(word)) = self.get(name) { word } else { "" }
    }

    fn number(&self, name: &str) -> f64 {
        if let Some(Value::Number(number)) = self.get(name) { *number } else { 0.0 }
    }

    pub(super) fn integer(&self, name: &str) -> u64 {
        if let Some(Value::Integer(number)) = self.get(name) { *number } else { 0 }
    }

    pub(super) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or(u32::MAX)
    }

    /// The length of time of that name; `none` is for ever.
    pub(super) fn span(&self, name: &str) -> Span {
        if let Some(Value::Duration(span)) = self.get(name) { *span } else { Span::ZERO }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }
}
