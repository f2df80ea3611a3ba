//! Validation of the parameters.

use std::fmt::Display;

use super::Feitelson96;
use crate::generate::GenerateError;

/// The log and the table of sizes are generated in memory.
const JOBS_MAX: u64 = 100_000_000;
const PROCS_MAX: u32 = 10_000_000;

/// Means up to this bound keep every draw in the range of the format's reader.
const MEAN_MAX: f64 = 1e8;

impl Feitelson96 {
    pub(super) fn check_parameters(&self) -> Result<(), GenerateError> {
        self.check_counts()?;
        self.check_sizes()?;
        self.check_runtimes()?;
        self.check_arrays()
    }

    fn check_counts(&self) -> Result<(), GenerateError> {
        let counts = "1 or more";
        ensure((1..=JOBS_MAX).contains(&self.jobs), "jobs", self.jobs, "between 1 and 100000000")?;
        ensure((1..=PROCS_MAX).contains(&self.procs), "procs", self.procs, "between 1 and 10000000")?;
        ensure(self.load > 0.0 && self.load.is_finite(), "load", self.load, "above 0, and finite")?;
        ensure(self.run_max >= 1, "run_max", self.run_max, counts)?;
        ensure(self.run_max <= PROCS_MAX, "run_max", self.run_max, "at most 10000000")?;
        ensure(self.users >= 1, "users", self.users, counts)?;
        ensure(self.users <= PROCS_MAX, "users", self.users, "at most 10000000")
    }

    fn check_sizes(&self) -> Result<(), GenerateError> {
        let orders = [("size_order", self.size_order), ("run_order", self.run_order)];
        for (name, order) in orders {
            ensure((0.0..=10.0).contains(&order), name, order, "between 0 and 10")?;
        }
        let weights = [
            ("small_weight", self.small_weight),
            ("power_of_two_weight", self.power_of_two_weight),
            ("square_weight", self.square_weight),
            ("multiple_of_ten_weight", self.multiple_of_ten_weight),
            ("full_machine_weight", self.full_machine_weight),
            ("plus_one_weight", self.plus_one_weight),
        ];
        for (name, weight) in weights {
            ensure((1e-6..=1e6).contains(&weight), name, weight, "between 0.000001 and 1000000")?;
        }
        Ok(())
    }

    fn check_runtimes(&self) -> Result<(), GenerateError> {
        for (name, mean) in [("short_mean", self.short_mean), ("long_mean", self.long_mean)] {
            ensure(mean > 0.0 && mean <= MEAN_MAX, name, mean, "above 0, and at most 100000000 seconds")?;
        }
        let probable = |p: f64| (0.0..=1.0).contains(&p);
        ensure(probable(self.long_base), "long_base", self.long_base, "between 0 and 1")?;
        let largest = self.long_base + self.long_slope;
        ensure(probable(largest), "long_slope", self.long_slope, "between 0 and 1 once long_base is added")
    }
}

impl Feitelson96 {
    fn check_arrays(&self) -> Result<(), GenerateError> {
        let chance = self.array_chance;
        ensure((0.0..=1.0).contains(&chance), "array_chance", chance, "between 0 and 1")?;
        let alone = !self.repeat_after_end || chance <= 0.0;
        ensure(alone, "array_chance", chance, "0 with repeat_after_end")?;
        let longest = self.array_max;
        ensure((1..=PROCS_MAX).contains(&longest), "array_max", longest, "between 1 and 10000000")?;
        let ratio = self.estimate_max;
        ensure((1.0..=1000.0).contains(&ratio), "estimate_max", ratio, "between 1 and 1000")
    }
}

fn ensure(
    holds: bool,
    parameter: &'static str,
    value: impl Display,
    wanted: &'static str,
) -> Result<(), GenerateError> {
    let value = value.to_string();
    let error = GenerateError::Parameter { model: Feitelson96::NAME, parameter, value, wanted };
    if holds { Ok(()) } else { Err(error) }
}
