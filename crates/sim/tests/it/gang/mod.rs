//! Gang time-slicing: against a naive version, by its rules, and in the small cases of its paper.

mod against_oracle;
mod by_the_rules;
mod matrix;
mod settings;
