//! Windows, promised to every job.

use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};
use crate::window;

/// Miser.
pub(in crate::registry) const MISER: Registered = Registered {
    name: "miser",
    summary: "first-fit windows: every job is promised a start and an end, or refused at once",
    promises: "every job, when it is submitted",
    source: "Roussos, Bitar, English: Deterministic Batch Scheduling without Static Partitioning, 1999",
    params: &[Param {
        name: "horizon",
        domain: Domain::Duration { least: 1, none: true },
        default: DefaultValue::Is("30d"),
        doc: "how far ahead a window may lie, with its end, when a job is submitted",
    }],
    runs_on: RunsOn::OnePool,
    heeds_terms: true,
    build: |values, machine| Box::new(window::first_fit(machine, values.span("horizon"))),
    within: None,
    promised: |_| Promises::EveryJob,
};
