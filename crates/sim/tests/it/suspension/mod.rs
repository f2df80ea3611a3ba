//! Selective suspension and its relatives: against reference implementations, by their rules, and
//! in small cases with known schedules.

mod against_oracle;
mod by_the_rules;
mod capacity;
mod duel;
mod settings;
