//! Spatial equipartitioning.

use crate::equipartition::{Equipartition, Rules};
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};

/// Equal shares of the processors.
pub(in crate::registry) const EQSPATIAL: Registered = Registered {
    name: "eqspatial",
    summary: "spatial equipartitioning: the jobs of a host share its processors as equally as their requests allow",
    promises: "nothing",
    source: "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPDPS 2001",
    params: &[
        Param {
            name: "min_interval",
            domain: Domain::Duration { least: 0, none: false },
            default: DefaultValue::Is("0"),
            doc: "the least time between two repartitionings of a host",
        },
        Param {
            name: "long_job_after",
            domain: Domain::Duration { least: 1, none: true },
            default: DefaultValue::Is("none"),
            doc: "jobs that have run so long get what they asked for, if each other job of the host has a processor",
        },
        Param {
            name: "quantum",
            domain: Domain::Duration { least: 0, none: false },
            default: DefaultValue::Is("1m"),
            doc: "how long an arriving job runs at once that has to wait for memory; 0 for not at all",
        },
        Param {
            name: "quantum_memory",
            domain: Domain::Integer(0, u64::MAX),
            default: DefaultValue::Is("1048576"),
            doc: "the memory that it has then, kB; less, if it asked for less",
        },
        Param {
            name: "keep_work",
            domain: Domain::Flag,
            default: DefaultValue::Is("false"),
            doc: "whether it keeps what it did in a quantum that was too short for it",
        },
    ],
    runs_on: RunsOn::SharedHosts,
    heeds_terms: false,
    build: |values, _| {
        Box::new(Equipartition::new(Rules {
            min_interval: values.span("min_interval"),
            long_job_after: values.span("long_job_after"),
            quantum: values.span("quantum"),
            quantum_memory: values.integer("quantum_memory"),
            keep_work: values.flag("keep_work"),
        }))
    },
    within: None,
    promised: |_| Promises::Nothing,
};
