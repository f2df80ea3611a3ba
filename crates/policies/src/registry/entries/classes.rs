//! Job classes.

use crate::classes::{Limits, Lsf};
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};

const LIMIT: Domain = Domain::Integer(0, u32::MAX as u64);

/// NCSA-LSF*.
pub(in crate::registry) const LSF: Registered = Registered {
    name: "lsf",
    summary: "NCSA-LSF*: twelve job classes, and hosts with their own order and limits for them",
    promises: "nothing",
    source: "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPPS 2001, section 2.1",
    params: &[
        Param {
            name: "user_limit",
            domain: LIMIT,
            default: DefaultValue::Is("0"),
            doc: "how many jobs of a user may execute at a time; 0: any number",
        },
        Param {
            name: "mt_limit",
            domain: LIMIT,
            default: DefaultValue::Is("48"),
            doc: "how many jobs that ask for over 50 up to 200 hours may execute at a time; 0: any number",
        },
        Param {
            name: "lt_limit",
            domain: LIMIT,
            default: DefaultValue::Is("20"),
            doc: "how many jobs that ask for over 200 hours may execute at a time; 0: any number",
        },
        Param {
            name: "reserve",
            domain: Domain::Flag,
            default: DefaultValue::Is("true"),
            doc: "keeps a host idle for a job that has waited for too long",
        },
    ],
    runs_on: RunsOn::OneHostEach,
    heeds_terms: false,
    build: |values, machine| {
        let limit = |name| Some(values.count(name)).filter(|most| *most > 0);
        let (user, medium, long) = (limit("user_limit"), limit("mt_limit"), limit("lt_limit"));
        Box::new(Lsf::new(machine, Limits { user, medium, long }, values.flag("reserve")))
    },
    within: None,
    promised: |_| Promises::Nothing,
};
