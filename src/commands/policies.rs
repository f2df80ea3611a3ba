//! `miserly policies`: what there is to choose from.

use anyhow::anyhow;
use miserly_policies::{Chosen, POLICIES, Registered, find};
use serde_json::{Value, json};

use crate::args::PoliciesArgs;
use crate::output::{print, print_json};

pub(crate) fn run(args: &PoliciesArgs) -> anyhow::Result<()> {
    let Some(name) = &args.name else {
        if args.json {
            return print_json(&POLICIES.iter().map(document).collect::<Vec<_>>());
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
    if args.json { print_json(&document(policy)) } else { print(&page(policy)) }
}

fn page(policy: &Registered) -> String {
    let mut text = format!(
        "{}\n  {}\n\npromises  {}\nsource    {}\n",
        policy.name, policy.summary, policy.promises, policy.source
    );
    for param in policy.params {
        text.push_str(&format!("\n{}  (default: {})\n  {}\n", param.name, param.default, param.doc));
        for (value, meaning) in param.domain.values() {
            text.push_str(&format!("    {value:<11}{meaning}\n"));
        }
    }
    text
}

fn document(policy: &Registered) -> Value {
    let params: Vec<Value> = policy
        .params
        .iter()
        .map(|param| {
            let values: Vec<Value> = param
                .domain
                .values()
                .iter()
                .map(|(value, doc)| json!({"value": value, "doc": doc}))
                .collect();
            json!({
                "name": param.name,
                "doc": param.doc,
                "default": param.default.to_string(),
                "values": values,
            })
        })
        .collect();
    json!({
        "name": policy.name,
        "summary": policy.summary,
        "promises": policy.promises,
        "source": policy.source,
        "params": params,
    })
}
