//! Selective suspension and its relatives: against naive versions, by their rules, and in small cases with known schedules.

mod against_oracle;
mod by_the_rules;
mod capacity;
mod duel;
mod settings;
