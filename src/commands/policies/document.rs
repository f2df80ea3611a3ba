//! The policies and orders, for programs.

use std::collections::BTreeMap;

use miserly_formula::presets::{PRESETS, Preset};
use miserly_policies::shared::Priority;
use miserly_policies::{Example, Param, PolicyDescriptor, Registry, Spelling};
use serde::Serialize;

/// The policies, the named orders, and the names that a formula may use.
#[derive(Serialize)]
pub(super) struct Listing {
    policies: Vec<PolicyDoc>,
    orders: Vec<OrderDoc>,
    names: Vec<ValueDoc>,
}

#[derive(Serialize)]
pub(super) struct PolicyDoc {
    name: &'static str,
    title: &'static str,
    paper: &'static str,
    promises: &'static str,
    /// The facts of the needs, by name.
    needs: BTreeMap<&'static str, bool>,
    /// Why the daemon cannot run it with these parameters; `None` if it can.
    not_in_daemon: Option<&'static str>,
    /// What it needs and a driver of Slurm cannot do; `None` if that runs it.
    not_on_slurm: Option<&'static str>,
    spellings: Vec<SpellingDoc>,
    /// Written forms that papers have names for.
    examples: Vec<ExampleDoc>,
    params: Vec<ParamDoc>,
}

#[derive(Serialize)]
struct SpellingDoc {
    name: &'static str,
    means: &'static str,
    title: &'static str,
}

#[derive(Serialize)]
struct ExampleDoc {
    policy: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
pub(super) struct OrderDoc {
    name: &'static str,
    title: &'static str,
    formula: &'static str,
    /// The values that come first.
    first: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct ParamDoc {
    name: &'static str,
    doc: &'static str,
    /// The domain of the values, in words.
    takes: String,
    default: String,
    /// Every value with a name.
    values: Vec<ValueDoc>,
}

#[derive(Serialize)]
struct ValueDoc {
    value: &'static str,
    doc: &'static str,
}

impl Listing {
    pub(super) fn new() -> anyhow::Result<Listing> {
        let policies: Result<_, _> = Registry::built_in().policies().map(PolicyDoc::new).collect();
        Ok(Listing {
            policies: policies?,
            orders: PRESETS.iter().map(OrderDoc::new).collect(),
            names: Priority::NAMES.map(|(value, doc)| ValueDoc { value, doc }).into(),
        })
    }
}

impl PolicyDoc {
    pub(super) fn new(policy: &'static PolicyDescriptor) -> anyhow::Result<PolicyDoc> {
        let PolicyDescriptor { name, title, promises, paper, .. } = *policy;
        let spelling = |spelling: &Spelling| {
            let Spelling { name, means, title } = *spelling;
            SpellingDoc { name, means, title }
        };
        let example = |example: &Example| {
            let Example { policy, meaning } = *example;
            ExampleDoc { policy, meaning }
        };
        Ok(PolicyDoc {
            name,
            title,
            paper,
            promises,
            needs: policy.needs.facts().into_iter().collect(),
            not_in_daemon: policy.needs.unmet_in_daemon(),
            not_on_slurm: policy.needs.unmet_on_slurm(),
            spellings: policy.spellings.iter().map(spelling).collect(),
            examples: policy.examples.iter().map(example).collect(),
            params: policy.params(&Registry::built_in())?.iter().map(ParamDoc::new).collect(),
        })
    }
}

impl OrderDoc {
    pub(super) fn new(preset: &Preset) -> OrderDoc {
        let Preset { name, title, formula, first, source } = *preset;
        OrderDoc { name, title, formula, first: first.as_str(), source }
    }
}

impl ParamDoc {
    fn new(param: &Param) -> ParamDoc {
        let values = param.domain.values().into_iter();
        ParamDoc {
            name: param.name,
            doc: param.doc,
            takes: param.domain.to_string(),
            default: param.default.to_string(),
            values: values.map(|(value, doc)| ValueDoc { value, doc }).collect(),
        }
    }
}
