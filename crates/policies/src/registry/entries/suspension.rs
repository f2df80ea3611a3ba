//! Selective suspension (Kettimuthu et al.).

use super::backfill::EASY;
use crate::preempt::{Criterion, Limits, Moving, Place, Selective, Slices, Suspension, Transfer};
use crate::registry::values::Values;
use crate::registry::{DefaultValue, Domain, Param, Promises, Registered, RunsOn};

const KETTIMUTHU: &str = "Kettimuthu, Subramani, Srinivasan, Gopalasamy, Panda, Sadayappan 2002";

const SF: Param = Param {
    name: "sf",
    domain: Domain::NumberOr(1.000_001, &[("inf", "nobody is suspended")]),
    default: DefaultValue::Is("2"),
    doc: "the suspension factor: a job may suspend one of up to twice its width whose xfactor, (time not running + estimate) / estimate, is so many times smaller",
};

const PERIOD: Param = Param {
    name: "period",
    domain: Domain::Duration { least: 1, none: true },
    default: DefaultValue::Is("60s"),
    doc: "besides at every event, jobs are suspended at the multiples of this",
};

const OVERHEAD: Param = Param {
    name: "overhead",
    domain: Domain::Choice(&[
        ("none", "suspended jobs keep their memory, and it takes no time"),
        ("write", "their memory is written to disk; their processors are held meanwhile"),
        ("write+read", "and read back when they run on"),
    ]),
    default: DefaultValue::Is("none"),
    doc: "what it costs to suspend a job",
};

const RATE: Param = Param {
    name: "rate",
    domain: Domain::Integer(1, u64::MAX),
    default: DefaultValue::Is("2000"),
    doc: "kB that are written or read in a second, with overhead; jobs whose memory is not known draw from 100 MB to 1 GB",
};

const MIGRATE: Param = Param {
    name: "migrate",
    domain: Domain::Flag,
    default: DefaultValue::Is("false"),
    doc: "suspended jobs may run on on other processors than theirs",
};

const PLACE: Param = Param {
    name: "place",
    domain: Domain::Choice(&[
        ("spare", "first those that nobody suspended has to come back to, then those of the least urgent"),
        ("lowest", "the lowest, whoever has to come back to them"),
    ]),
    default: DefaultValue::Is("spare"),
    doc: "the processors of a job that may be anywhere",
};

const SEED: Param = Param {
    name: "seed",
    domain: Domain::Integer(0, u64::MAX),
    default: DefaultValue::SeedOfRun,
    doc: "seed of the draws of memory",
};

const LIMIT: Param = Param {
    name: "limit",
    domain: Domain::Number,
    default: DefaultValue::Is("1.5"),
    doc: "a job whose xfactor is more than so many times the mean slowdown of its category is not suspended any more",
};

const MEANS: Param = Param {
    name: "means",
    domain: Domain::NumbersOr(16, &[("learned", "from the jobs that ended before")]),
    default: DefaultValue::Is("learned"),
    doc: "the mean slowdowns of the sixteen categories, by length and then by width",
};

/// Suspension by xfactor.
pub(in crate::registry) const SS: Registered = Registered {
    name: "ss",
    summary: "selective suspension: a job may suspend others whose xfactors are smaller by a factor",
    promises: "nothing",
    source: KETTIMUTHU,
    params: &[SF, PERIOD, OVERHEAD, RATE, MIGRATE, PLACE, SEED],
    runs_on: RunsOn::OneHost,
    heeds_terms: false,
    build: |values, _| Box::new(Selective::new("ss", by_xfactor(values, None))),
    within: None,
    promised: |_| Promises::Nothing,
};

/// Suspension by xfactor, with limits.
pub(in crate::registry) const TSS: Registered = Registered {
    name: "tss",
    summary: "tunable selective suspension: as ss, but jobs beyond the limit of their category are not suspended",
    params: &[SF, LIMIT, MEANS, PERIOD, OVERHEAD, RATE, MIGRATE, PLACE, SEED],
    build: |values, _| {
        let factor = values.millionths("limit").unwrap_or_default();
        let limits = Limits { factor, means: values.all_millionths("means") };
        Box::new(Selective::new("tss", by_xfactor(values, Some(limits))))
    },
    ..SS
};

/// Suspension by the time that is left.
pub(in crate::registry) const SRT: Registered = Registered {
    name: "srt",
    summary: "a job suspends others that have longer to run; long ones may starve",
    params: &[OVERHEAD, RATE, MIGRATE, PLACE, SEED],
    build: |values, _| {
        let rules = Suspension {
            criterion: Criterion::Remaining,
            half_width: false,
            period: None,
            ..by_xfactor(values, None)
        };
        Box::new(Selective::new("srt", rules))
    },
    ..SS
};

/// Slices at once.
pub(in crate::registry) const IS: Registered = Registered {
    name: "is",
    summary: "a slice at once for every job, by suspending others, which queue with the rest for EASY",
    params: &[
        Param {
            name: "slice",
            domain: Domain::Duration { least: 1, none: false },
            default: DefaultValue::Is("10m"),
            doc: "how long a job runs before it can be suspended",
        },
        OVERHEAD,
        RATE,
        MIGRATE,
        PLACE,
        SEED,
    ],
    build: |values, _| Box::new(Slices::new("is", values.span("slice"), moving(values))),
    ..SS
};

/// Without suspension.
pub(in crate::registry) const NS: Registered = Registered {
    name: "ns",
    summary: "no suspension, what the others are compared with: EASY",
    source: KETTIMUTHU,
    ..EASY
};

fn by_xfactor(values: &Values, limits: Option<Limits>) -> Suspension {
    let period = values.span("period");
    Suspension {
        criterion: Criterion::Xfactor { factor: values.millionths("sf") },
        half_width: true,
        limits,
        period: (period < miserly_core::Span::MAX).then_some(period),
        moving: moving(values),
    }
}

fn moving(values: &Values) -> Moving {
    let place = if values.word("place") == "lowest" { Place::Lowest } else { Place::Spare };
    Moving { transfer: transfer(values), migrates: values.flag("migrate"), place }
}

fn transfer(values: &Values) -> Transfer {
    let (rate, seed) = (values.integer("rate"), values.integer("seed"));
    match values.word("overhead") {
        "write" => Transfer::Disk { rate, read: false, seed },
        "write+read" => Transfer::Disk { rate, read: true, seed },
        _ => Transfer::None,
    }
}
