//! Parameters by name, for the header and for assignment.

use std::fmt;

use super::Feitelson96;
use crate::generate::GenerateError;

/// A reference to a parameter's value.
pub(super) enum ParameterSlot<'a> {
    Jobs(&'a mut u64),
    Count(&'a mut u32),
    Number(&'a mut f64),
    Flag(&'a mut bool),
}

impl Feitelson96 {
    /// Returns all parameters in the order of the header.
    pub(super) fn slots(&mut self) -> [(&'static str, ParameterSlot<'_>); 24] {
        use ParameterSlot::{Count, Flag, Jobs, Number};
        [
            ("jobs", Jobs(&mut self.jobs)),
            ("procs", Count(&mut self.procs)),
            ("load", Number(&mut self.load)),
            ("seed", Jobs(&mut self.seed)),
            ("size_order", Number(&mut self.size_order)),
            ("small_max", Count(&mut self.small_max)),
            ("small_weight", Number(&mut self.small_weight)),
            ("interesting_from", Count(&mut self.interesting_from)),
            ("power_of_two_weight", Number(&mut self.power_of_two_weight)),
            ("square_weight", Number(&mut self.square_weight)),
            ("multiple_of_ten_weight", Number(&mut self.multiple_of_ten_weight)),
            ("full_machine_weight", Number(&mut self.full_machine_weight)),
            ("plus_one_weight", Number(&mut self.plus_one_weight)),
            ("short_mean", Number(&mut self.short_mean)),
            ("long_mean", Number(&mut self.long_mean)),
            ("long_base", Number(&mut self.long_base)),
            ("long_slope", Number(&mut self.long_slope)),
            ("run_order", Number(&mut self.run_order)),
            ("run_max", Count(&mut self.run_max)),
            ("users", Count(&mut self.users)),
            ("repeat_after_end", Flag(&mut self.repeat_after_end)),
            ("array_chance", Number(&mut self.array_chance)),
            ("array_max", Count(&mut self.array_max)),
            ("estimate_max", Number(&mut self.estimate_max)),
        ]
    }

    /// Sets a parameter by name from text. Consistency with other parameters is not checked.
    ///
    /// # Errors
    /// [`GenerateError::NoSuchParameter`], or [`GenerateError::Parameter`] for a value of another
    /// kind.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), GenerateError> {
        let slots = self.slots();
        let known = slots.each_ref().map(|(name, _)| *name);
        let slot = slots.into_iter().find(|(known, _)| *known == name);
        let (parameter, slot) = slot.ok_or_else(|| GenerateError::NoSuchParameter {
            model: Feitelson96::NAME,
            name: name.to_owned(),
            known: known.join(", "),
        })?;
        slot.set(parameter, value)
    }
}

impl ParameterSlot<'_> {
    fn set(self, parameter: &'static str, value: &str) -> Result<(), GenerateError> {
        let (read, wanted) = match self {
            ParameterSlot::Jobs(slot) => (read(slot, value), "a whole number, 0 or more"),
            ParameterSlot::Count(slot) => (read(slot, value), "a whole number between 0 and 4294967295"),
            ParameterSlot::Number(slot) => (read(slot, value), "a number"),
            ParameterSlot::Flag(slot) => (read(slot, value), "true or false"),
        };
        let (model, value) = (Feitelson96::NAME, format!("{value:?}"));
        read.ok_or(GenerateError::Parameter { model, parameter, value, wanted })
    }
}

fn read<T: std::str::FromStr>(slot: &mut T, value: &str) -> Option<()> {
    *slot = value.parse().ok()?;
    Some(())
}

impl fmt::Display for ParameterSlot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterSlot::Jobs(value) => value.fmt(f),
            ParameterSlot::Count(value) => value.fmt(f),
            ParameterSlot::Number(value) => value.fmt(f),
            ParameterSlot::Flag(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Model;

    #[test]
    fn what_the_header_tells_can_be_set() {
        let other = Feitelson96 {
            jobs: 77,
            size_order: 1.25,
            users: 3,
            seed: 9,
            array_chance: 0.5,
            array_max: 9,
            estimate_max: 3.5,
            ..Feitelson96::default()
        };
        let mut model = Feitelson96 { repeat_after_end: true, ..Feitelson96::default() };
        for (name, value) in other.parameters() {
            model.set(name, &value).unwrap();
        }
        assert_eq!(model, other);
    }

    #[test]
    fn what_cannot_be_set() {
        #[track_caller]
        fn check(name: &str, value: &str, expect: &str) {
            let mut model = Feitelson96::default();
            assert_eq!(model.set(name, value).unwrap_err().to_string(), expect);
            assert_eq!(model, Feitelson96::default());
        }
        check(
            "users",
            "many",
            "feitelson96: users is \"many\"; it must be a whole number between 0 and 4294967295",
        );
        check("load", "", "feitelson96: load is \"\"; it must be a number");
        check("repeat_after_end", "1", "feitelson96: repeat_after_end is \"1\"; it must be true or false");
        let error = Feitelson96::default().set("size-order", "1").unwrap_err().to_string();
        assert!(
            error.starts_with("feitelson96 has no parameter \"size-order\"; it has jobs, procs, "),
            "{error}"
        );
    }
}
