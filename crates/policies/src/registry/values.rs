//! The values of a policy's parameters, given or by default.

use miserly_core::Span;

use super::domain::Value;
use super::{Chosen, DefaultValue, Param};
use crate::shared::{Draw, Order, Weight};

/// A value for each parameter of a policy.
///
/// Every value was checked against its domain when the policy was chosen, and the registry's test does that
/// for the defaults; so where one is asked for under the wrong name, or as the wrong kind, nothing better
/// than the kind's own default is left to say.
pub(super) struct Values {
    of: Vec<(&'static str, Value)>,
    /// The seed of the run, for a policy within this one.
    pub(super) seed: u64,
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
        Values { of, seed }
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

    pub(super) fn word(&self, name: &str) -> &'static str {
        if let Some(Value::Word(word)) = self.get(name) { word } else { "" }
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        if let Some(Value::Number(number)) = self.get(name) { *number } else { 0.0 }
    }

    /// So many millionths as the number of that name says; `None` if it is a word instead.
    pub(super) fn millionths(&self, name: &str) -> Option<u64> {
        if let Some(Value::Number(number)) = self.get(name) { Some(millionths(*number)) } else { None }
    }

    /// The numbers of that name in millionths, if there are as many; `None` if there is a word instead.
    pub(super) fn all_millionths<const N: usize>(&self, name: &str) -> Option<[u64; N]> {
        let Some(Value::Numbers(numbers)) = self.get(name) else { return None };
        let all: Vec<u64> = numbers.iter().map(|number| millionths(*number)).collect();
        all.try_into().ok()
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

    /// The policy of that name.
    pub(super) fn policy(&self, name: &str) -> Option<&Chosen> {
        if let Some(Value::Policy(policy)) = self.get(name) { Some(policy) } else { None }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }
}

/// What is written with more than six decimals is rounded.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the domain admits no negative one, and a cast saturates"
)]
fn millionths(number: f64) -> u64 {
    (number * 1e6).round() as u64
}
