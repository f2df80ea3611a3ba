//! Selective suspension and its relatives: against naive versions, by their rules, and in small cases with known schedules.

mod against_oracle;
mod settings;
