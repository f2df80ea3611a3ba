//! The floors below the command line, together: policies under the driver in virtual time.

mod against_oracle;
mod event_queue;
mod litmus;
mod rebuild;
mod support;
