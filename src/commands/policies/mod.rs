//! `miserly policies`: what there is to choose from.

mod document;

use anyhow::anyhow;
use miserly_formula::presets::{PRESETS, Preset};
use miserly_policies::shared::Priority;
use miserly_policies::{Chosen, Domain, POLICIES, Registered, find};

use self::document::{Listing, OrderDoc, PolicyDoc};
use crate::args::PoliciesArgs;
use crate::output::{print, print_json};

pub(crate) fn run(args: &PoliciesArgs) -> anyhow::Result<()> {
    let Some(name) = &args.name else {
        return if args.json { print_json(&Listing::new()) } else { print(&listing()) };
    };
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return if args.json { print_json(&OrderDoc::of(preset)) } else { print(&order_page(preset)) };
    }
    let policy = match find(name) {
        Some(policy) => policy,
        // Parsing says what is wrong with the name; a whole written form shows its policy.
        None => name.parse::<Chosen>().map_err(|error| anyhow!(error))?.policy(),
    };
    if args.json { print_json(&PolicyDoc::of(policy)) } else { print(&page(policy)) }
}

fn listing() -> String {
    let policies = POLICIES.iter().map(|policy| format!("{:<19}{}\n", policy.name, policy.summary));
    let order = |preset: &Preset| format!("{:<19}{}\n", preset.name, rule(preset));
    let orders = PRESETS.iter().map(order);
    let names = Priority::NAMES.map(|(name, meaning)| format!("  {name:<12}{meaning}\n"));
    format!(
        "{}\norders by formula, as in 'easy(order=lxf)'\n{}\n\
        or one of your own, largest first, as in \"easy(order='wait / estimate')\", over\n{}\n\
        miserly policies NAME shows one with its parameters, or an order with its source.\n",
        policies.collect::<String>(),
        orders.collect::<String>(),
        names.concat()
    )
}

fn order_page(preset: &Preset) -> String {
    let Preset { name, title, source, .. } = preset;
    format!("{name}\n  {title}\n\nformula  {}\nsource   {source}\n", rule(preset))
}

/// The formula, and which of its values comes first.
fn rule(preset: &Preset) -> String {
    format!("{}, {} first", preset.formula, preset.first.as_str())
}

fn page(policy: &Registered) -> String {
    let mut text = format!(
        "{}\n  {}\n\npromises  {}\nsource    {}\n",
        policy.name, policy.summary, policy.promises, policy.source
    );
    for param in policy.params {
        let values = param.domain.values();
        // What can be listed in full is listed.
        let listed = matches!(param.domain, Domain::Order | Domain::Choice(_) | Domain::Flag);
        let takes = if listed { String::new() } else { format!("{}; ", param.domain) };
        text.push_str(&format!("\n{}  ({takes}default: {})\n  {}\n", param.name, param.default, param.doc));
        let longest = values.iter().map(|(value, _)| value.len()).max().unwrap_or(0);
        let width = (longest + 2).max(19);
        for (value, meaning) in values {
            text.push_str(&format!("    {value:<width$}{meaning}\n"));
        }
        if param.domain == Domain::Order {
            text.push_str(
                "    'FORMULA'      largest value of a formula first; `miserly policies` tells its names\n",
            );
        }
    }
    text
}
