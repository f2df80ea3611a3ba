//! `miserly policies`: what there is to choose from.

use anyhow::anyhow;
use miserly_policies::{Chosen, POLICIES, Param, Registered, find};
use serde::Serialize;

use crate::args::PoliciesArgs;
use crate::output::{print, print_json};

pub(crate) fn run(args: &PoliciesArgs) -> anyhow::Result<()> {
    let Some(name) = &args.name else {
        if args.json {
            return print_json(&POLICIES.iter().map(Document::of).collect::<Vec<_>>());
        }
        let lines: Vec<String> =
            POLICIES.iter().map(|policy| format!("{:<14}{}\n", policy.name, policy.summary)).collect();
        return print(&format!("{}\nmiserly policies NAME shows one with its parameters.\n", lines.concat()));
    };
    let policy = match find(name) {
        Some(policy) => policy,
        // Parsing says what is wrong with the name; a whole written form shows its policy.
        None => name.parse::<Chosen>().map_err(|error| anyhow!(error))?.policy(),
    };
    if args.json { print_json(&Document::of(policy)) } else { print(&page(policy)) }
}

fn page(policy: &Registered) -> String {
    let mut text = format!(
        "{}\n  {}\n\npromises  {}\nsource    {}\n",
        policy.name, policy.summary, policy.promises, policy.source
    );
    for param in policy.params {
        let values = param.domain.values();
        // What can be listed is listed.
        let takes = if values.is_empty() { format!("{}; ", param.domain) } else { String::new() };
        text.push_str(&format!("\n{}  ({takes}default: {})\n  {}\n", param.name, param.default, param.doc));
        for (value, meaning) in values {
            text.push_str(&format!("    {value:<15}{meaning}\n"));
        }
    }
    text
}

/// A policy for programs.
#[derive(Serialize)]
struct Document {
    name: &'static str,
    summary: &'static str,
    promises: &'static str,
    source: &'static str,
    params: Vec<ParamDoc>,
}

#[derive(Serialize)]
struct ParamDoc {
    name: &'static str,
    doc: &'static str,
    /// What a value has to be, in words.
    takes: String,
    default: String,
    /// Every value, where they can be listed.
    values: Vec<ValueDoc>,
}

#[derive(Serialize)]
struct ValueDoc {
    value: &'static str,
    doc: &'static str,
}

impl Document {
    fn of(policy: &Registered) -> Document {
        let Registered { name, summary, promises, source, .. } = *policy;
        Document { name, summary, promises, source, params: policy.params.iter().map(ParamDoc::of).collect() }
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
