//! Orders by the value of a formula.

use std::sync::Arc;

use miserly_core::{Entry, Kind, Span, Time, Usage};
use miserly_formula::presets::PRESETS;
use miserly_formula::{Direction, Formula, FormulaError, Fraction, Interval, Line};

use super::bypassed::Bypassed;
use super::criterion::SECOND;
use super::facts::interval;
use super::job_facts::JobFacts;
use super::used::Used;
use super::weight::Weight;

/// A formula over the known facts of a waiting job, and the direction of its values.
///
/// A value that is not a number comes last. The formula is parsed once. Its evaluation allocates
/// nothing.
///
/// # Ties
/// A formula of rational operations is computed exactly ([`Formula::eval_exactly`]): jobs with
/// equal values tie. Submission, then job number decide the tie. Formulas with roots or logarithms
/// are computed in double precision, and tie where the bits are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    formula: Arc<Formula>,
    first: Direction,
    counts_bypasses: bool,
    uses_usage: bool,
    is_linear: bool,
}

/// The index of the wait in [`Priority::NAMES`].
pub(super) const WAIT: usize = 0;

/// The index of the submission in [`Priority::NAMES`].
const SUBMIT: usize = 3;

/// The index of the bypass count in [`Priority::NAMES`].
const BYPASSED: usize = 7;

/// The index of the rank in the tree of shares in [`Priority::NAMES`].
const FAIR_TREE: usize = 12;

/// The number of the first names in [`Priority::NAMES`]. The others are of usage.
pub(super) const PLAIN: usize = 8;

impl Priority {
    /// The names that a formula may use, with the unit of each.
    pub const NAMES: [(&'static str, &'static str); 13] = [
        ("wait", "seconds since the submission"),
        ("estimate", "seconds, at least 1; the prediction if the policy predicts"),
        ("procs", "requested processors"),
        ("submit", "submission, in seconds of the log"),
        ("memory", "kB of all processors together; 0 if unknown"),
        ("user", "number of the user; -1 if unknown"),
        ("queue", "number of the queue; -1 if unknown"),
        ("bypassed", "jobs that sort behind it and started before it; 0 if the policy does not count them"),
        ("usage_share", "part of its user in the decayed usage of all users, from 0 to 1"),
        ("usage", "decayed usage of its user, in processor-hours"),
        ("group_usage_share", "part of its group in the decayed usage of all groups, from 0 to 1"),
        ("group_usage", "decayed usage of its group, in processor-hours"),
        (
            "fair_tree",
            "rank of its user or group in the tree of `shares`, from 1 for the first one; 0 if it is not there",
        ),
    ];

    /// Returns the order with the largest value of this formula first.
    ///
    /// # Errors
    /// If the text is no formula over [`Priority::NAMES`].
    pub fn largest(text: &str) -> Result<Priority, FormulaError> {
        Priority::parse(text, Direction::Largest)
    }

    /// Returns the order of that name in the literature, if there is one.
    pub fn preset(name: &str) -> Option<Priority> {
        let preset = PRESETS.iter().find(|preset| preset.name == name)?;
        // Each preset is a formula: a test checks all of them.
        Priority::parse(preset.formula, preset.first).ok()
    }

    fn parse(text: &str, first: Direction) -> Result<Priority, FormulaError> {
        let names = Priority::NAMES.map(|(name, _)| name);
        // Most formulas have no usage, and their values are fewer.
        let plain = Formula::parse(text, &names[..PLAIN]).ok();
        let uses_usage = plain.is_none();
        let formula = Arc::new(plain.map_or_else(|| Formula::parse(text, &names), Ok)?);
        let counts_bypasses = formula.uses(BYPASSED);
        let is_linear = !uses_usage && formula.is_linear_in(WAIT);
        Ok(Priority { formula, first, counts_bypasses, uses_usage, is_linear })
    }

    /// Returns the formula.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// Returns whether values change with time.
    pub(super) fn changes(&self) -> bool {
        self.formula.uses(WAIT) || self.counts_bypasses() || self.uses_usage()
    }

    /// Returns whether the formula uses the number of bypasses of a job.
    pub(super) fn counts_bypasses(&self) -> bool {
        self.counts_bypasses
    }

    /// Returns whether the formula uses the decayed usage of users.
    pub(super) fn uses_usage(&self) -> bool {
        self.uses_usage
    }

    /// Returns the facts of jobs that the formula uses, and that a log may lack.
    pub(super) fn uses(&self) -> JobFacts {
        let uses = |wanted: &[&str]| {
            let names = Priority::NAMES.iter().enumerate();
            names.into_iter().any(|(at, (name, _))| wanted.contains(name) && self.formula.uses(at))
        };
        JobFacts {
            user: uses(&["user", "usage_share", "usage", "fair_tree"]),
            group: uses(&["group_usage_share", "group_usage"]),
            memory: uses(&["memory"]),
            estimate: uses(&["estimate"]),
        }
    }

    /// Returns whether the formula uses the ranks of a tree of shares.
    pub(super) fn uses_shares(&self) -> bool {
        self.uses_usage && self.formula.uses(FAIR_TREE)
    }

    /// Returns whether values change in proportion to the wait.
    pub(super) fn is_linear(&self) -> bool {
        self.is_linear
    }

    /// Returns `value - weight * submit`, of which the largest comes first.
    ///
    /// The value is negated if its smallest comes first.
    pub(super) fn aged(&self, now: Time, entry: &Entry, used: Used, weight: Weight) -> f64 {
        let (plain, all);
        let facts: &[f64] = if self.uses_usage {
            all = self.facts(now, entry, used);
            &all
        } else {
            plain = self.plain_facts(now, entry);
            &plain
        };
        if weight == Weight::NONE
            && let Some(value) = self.formula.eval_integers(facts)
        {
            return if self.first == Direction::Largest { value } else { 0.0 - value };
        }
        self.aged_exactly(now, entry, used, weight).map_or_else(
            || {
                let value = self.formula.eval(facts);
                let value = if self.first == Direction::Largest { value } else { -value };
                weight.age(value, entry.request.submit)
            },
            Fraction::nearest,
        )
    }

    /// Returns whether the values of jobs of the same user and group follow from their waits, and none falls with the wait.
    ///
    /// Where a formula has the wait once, rounding keeps the order of the values.
    pub(super) fn ranks_owners(&self) -> bool {
        let others = 0..PLAIN;
        let of_owner = |name| name == WAIT || !self.formula.uses(name);
        self.uses_usage
            && others.into_iter().all(of_owner)
            && (!self.formula.uses(WAIT) || self.rises() && self.formula.count(WAIT) == 1)
    }

    /// Returns whether the value is linear in the wait, and rises with it whatever the other facts are.
    fn rises(&self) -> bool {
        let slope = self.formula.linear(WAIT, &[Interval::ANY; Priority::NAMES.len()]).slope();
        let slope = if self.first == Direction::Largest { slope } else { slope.negated() };
        slope.least() >= 0.0
    }

    /// Returns a value that [`aged`](Priority::aged) is not above, of a formula of usage.
    pub(super) fn most(&self, now: Time, entry: &Entry, used: Used, weight: Weight) -> f64 {
        let facts = self.facts(now, entry, used).map(interval);
        let bounds = self.aged_bounds(&facts, weight);
        if bounds.is_any() { f64::INFINITY } else { bounds.most() }
    }

    /// Returns bounds on [`aged`](Priority::aged), for intervals of the values of [`Priority::NAMES`].
    pub(super) fn aged_bounds(&self, facts: &[Interval], weight: Weight) -> Interval {
        let value = self.formula.bounds(facts);
        let value = if self.first == Direction::Largest { value } else { value.negated() };
        if weight == Weight::NONE { value } else { value.minus(weight.bounds().times(facts[SUBMIT])) }
    }

    /// Returns a line that [`aged`](Priority::aged) is never above, by the wait in seconds.
    pub(super) fn aged_line(&self, facts: &[Interval], weight: Weight) -> Line {
        let value = self.formula.linear(WAIT, facts);
        let value = if self.first == Direction::Largest { value } else { value.negated() };
        let value =
            if weight == Weight::NONE { value } else { value.minus(weight.bounds().times(facts[SUBMIT])) };
        value.most()
    }

    fn aged_exactly(&self, now: Time, entry: &Entry, used: Used, weight: Weight) -> Option<Fraction> {
        let plain = self.plain_fractions(now, entry);
        let value = if self.uses_usage {
            self.formula.eval_exactly(&[&plain[..], &usage_fractions(used)].concat())?
        } else {
            self.formula.eval_exactly(&plain)?
        };
        let value = if self.first == Direction::Largest { value } else { value.checked_neg()? };
        if weight == Weight::NONE {
            return Some(value);
        }
        let delay = weight.exact()?.checked_mul(seconds(entry.request.submit - Time::ZERO))?;
        value.checked_sub(delay)
    }

    /// Returns the number of bypasses of a job. Only formulas that use it pay for the search in the state.
    fn bypassed(&self, entry: &Entry) -> u32 {
        if self.counts_bypasses { entry.policy_state.get::<Bypassed>().0 } else { 0 }
    }

    /// Returns the values of [`Priority::NAMES`].
    fn facts(&self, now: Time, entry: &Entry, used: Used) -> [f64; Priority::NAMES.len()] {
        let part = |parts: u32| f64::from(parts) / f64::from(Usage::PARTS);
        let hours = |seconds: u64| seconds as f64 / f64::from(HOUR);
        let mut facts = [0.0; Priority::NAMES.len()];
        facts[..PLAIN].copy_from_slice(&self.plain_facts(now, entry));
        facts[PLAIN..].copy_from_slice(&[
            part(used.parts),
            hours(used.seconds),
            part(used.group_parts),
            hours(used.group_seconds),
            f64::from(used.rank) / f64::from(used.ranked.max(1)),
        ]);
        facts
    }

    /// Returns the values of [`Priority::NAMES`] without those of usage.
    fn plain_facts(&self, now: Time, entry: &Entry) -> [f64; PLAIN] {
        let mut facts = constant_facts(entry);
        facts[WAIT] = (now - entry.request.submit).as_secs_f64();
        facts[BYPASSED] = f64::from(self.bypassed(entry));
        facts
    }

    /// Returns the values of [`Priority::NAMES`] without those of usage, exactly.
    fn plain_fractions(&self, now: Time, entry: &Entry) -> [Fraction; PLAIN] {
        let request = &entry.request;
        let integer = |amount: u64| ratio(amount, 1);
        let known = |number: Option<u32>| Fraction::from(number.map_or(-1, i64::from));
        [
            seconds(now - request.submit),
            seconds(entry.likely_runtime().max(SECOND)),
            integer(request.procs().get()),
            seconds(request.submit - Time::ZERO),
            integer(request.demand.get(Kind::Memory)),
            known(request.user),
            known(request.queue),
            Fraction::from(i64::from(self.bypassed(entry))),
        ]
    }
}

/// Returns the values of the names of usage, exactly.
fn usage_fractions(used: Used) -> [Fraction; Priority::NAMES.len() - PLAIN] {
    [
        ratio(used.parts.into(), Usage::PARTS),
        ratio(used.seconds, HOUR),
        ratio(used.group_parts.into(), Usage::PARTS),
        ratio(used.group_seconds, HOUR),
        ratio(used.rank.into(), used.ranked.max(1)),
    ]
}

/// Returns the values of [`Priority::NAMES`] before those of usage that do not change while a job waits, and 0 for the others.
pub(super) fn constant_facts(entry: &Entry) -> [f64; PLAIN] {
    let request = &entry.request;
    let known = |number: Option<u32>| number.map_or(-1.0, f64::from);
    [
        0.0,
        entry.likely_runtime().max(SECOND).as_secs_f64(),
        request.procs().get() as f64,
        (request.submit - Time::ZERO).as_secs_f64(),
        request.demand.get(Kind::Memory) as f64,
        known(request.user),
        known(request.queue),
        0.0,
    ]
}

/// The seconds of an hour.
const HOUR: u32 = 3600;

fn ratio(amount: u64, of: u32) -> Fraction {
    Fraction::new(amount.into(), of.into()).unwrap_or(0.into())
}

fn seconds(span: Span) -> Fraction {
    let (ticks, second) = (span.ticks(), SECOND.ticks());
    if ticks % second == 0 {
        return Fraction::from(ticks / second);
    }
    Fraction::new(ticks.into(), second.into()).unwrap_or(0.into())
}

#[cfg(test)]
mod tests {
    use miserly_core::{Request, Resources};
    use miserly_formula::presets::NAMES;

    use super::*;

    #[test]
    fn every_preset_is_a_formula_of_the_same_names() {
        for preset in PRESETS {
            let priority = Priority::preset(preset.name).expect(preset.name);
            let theirs = Formula::parse(preset.formula, &NAMES).unwrap();
            assert_eq!(priority.formula().to_string(), theirs.to_string());
        }
        assert!(NAMES.iter().all(|theirs| Priority::NAMES.iter().any(|(ours, _)| ours == theirs)));
    }

    #[test]
    fn every_name_has_its_value() {
        let demand = Resources::cpus(4).with(Kind::Memory, 2048);
        let known = Request {
            user: Some(7),
            queue: Some(3),
            ..Request::new(1, Time::from_ticks(2_500_000), Span::from_ticks(90_000_000), demand)
        };
        let now = Time::from_ticks(12_750_000);
        let order = Priority::largest("wait + usage").unwrap();
        assert_eq!(
            order
                .facts(
                    now,
                    &Entry::waiting(known, 0),
                    Used {
                        parts: 250_000_000,
                        seconds: 1800,
                        group_parts: 500_000_000,
                        group_seconds: 5400,
                        rank: 3,
                        ranked: 4
                    }
                )
                .map(f64::to_bits),
            [10.25, 90.0, 4.0, 2.5, 2048.0, 7.0, 3.0, 0.0, 0.25, 0.5, 0.5, 1.5, 0.75].map(f64::to_bits)
        );
        let unknown = Request::new(1, now, Span::TICK, Resources::cpus(1));
        assert_eq!(
            order.facts(now, &Entry::waiting(unknown, 0), Used::default()).map(f64::to_bits),
            [0.0, 1.0, 1.0, 12.75, 0.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0].map(f64::to_bits)
        );
    }
}
