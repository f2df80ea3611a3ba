//! What there is to choose from, for programs.

use miserly_formula::presets::{PRESETS, Preset};
use miserly_policies::shared::Priority;
use miserly_policies::{POLICIES, Param, Registered};
use serde::Serialize;

/// Every policy, every order that is a formula with a name, and what a formula may name.
#[derive(Serialize)]
pub(super) struct Listing {
    policies: Vec<PolicyDoc>,
    orders: Vec<OrderDoc>,
    names: Vec<ValueDoc>,
}

#[derive(Serialize)]
pub(super) struct PolicyDoc {
    name: &'static str,
    summary: &'static str,
    promises: &'static str,
    source: &'static str,
    params: Vec<ParamDoc>,
}

#[derive(Serialize)]
pub(super) struct OrderDoc {
    name: &'static str,
    title: &'static str,
    formula: &'static str,
    /// Which value comes first.
    first: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct ParamDoc {
    name: &'static str,
    doc: &'static str,
    /// What a value has to be, in words.
    takes: String,
    default: String,
    /// Every value that has a name.
    values: Vec<ValueDoc>,
}

#[derive(Serialize)]
struct ValueDoc {
    value: &'static str,
    doc: &'static str,
}

impl Listing {
    pub(super) fn new() -> Listing {
        Listing {
            policies: POLICIES.iter().map(PolicyDoc::of).collect(),
            orders: PRESETS.iter().map(OrderDoc::of).collect(),
            names: Priority::NAMES.map(|(value, doc)| ValueDoc { value, doc }).into(),
        }
    }
}

impl PolicyDoc {
    pub(super) fn of(policy: &Registered) -> PolicyDoc {
        let Registered { name, summary, promises, source, .. } = *policy;
        PolicyDoc {
            name,
            summary,
            promises,
            source,
            params: policy.params.iter().map(ParamDoc::of).collect(),
        }
    }
}

impl OrderDoc {
    pub(super) fn of(preset: &Preset) -> OrderDoc {
        let Preset { name, title, formula, first, source } = *preset;
        OrderDoc { name, title, formula, first: first.as_str(), source }
    }
}

impl ParamDoc {
    fn of(param: &Param) -> ParamDoc {
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
