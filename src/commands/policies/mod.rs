//! `miserly policies`: the policies and the orders.

mod document;

use anyhow::anyhow;
use miserly_formula::presets::{PRESETS, Preset};
use miserly_policies::shared::Priority;
use miserly_policies::{Domain, Example, Needs, PolicyDescriptor, PolicySpec, Registry, Spelling};

use self::document::{Listing, OrderDoc, PolicyDoc};
use crate::args::PoliciesArgs;
use crate::output::{print, print_json};

pub(crate) fn run(args: &PoliciesArgs) -> anyhow::Result<()> {
    let Some(name) = &args.name else {
        return if args.json { print_json(&Listing::new()?) } else { print(&listing()) };
    };
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return if args.json { print_json(&OrderDoc::new(preset)) } else { print(&order_page(preset)) };
    }
    let policy = name.parse::<PolicySpec>().map_err(|error| anyhow!(error))?.descriptor();
    if args.json { print_json(&PolicyDoc::new(policy)?) } else { print(&page(policy)?) }
}

fn listing() -> String {
    let registry = Registry::built_in();
    let policies = registry.policies().map(|policy| format!("{:<19}{}\n", policy.name, policy.title));
    let exceptions = registry.policies().flat_map(|policy| {
        not_in(&policy.needs).into_iter().map(|reason| format!("{:<19}{reason}\n", policy.name))
    });
    let spellings = registry.policies().flat_map(|policy| {
        let spelling = |spelling: &Spelling| format!("{:<19}{}\n", spelling.name, written(policy, spelling));
        policy.spellings.iter().map(spelling)
    });
    let order = |preset: &Preset| format!("{:<19}{}\n", preset.name, rule(preset));
    let orders = PRESETS.iter().map(order);
    let names = Priority::NAMES.map(|(name, meaning)| format!("  {name:<18}{meaning}\n"));
    format!(
        "{}\nall run in simulations, in the daemon and on Slurm, but for\n{}\nother spellings\n{}\norders by formula, as in 'easy(order=lxf)'\n{}\n\
        names for a formula of your own, largest value first, as in \"easy(order='wait / estimate')\"\n{}\n\
        miserly policies NAME shows the parameters of a policy, or the source of an order.\n",
        policies.collect::<String>(),
        exceptions.collect::<String>(),
        spellings.collect::<String>(),
        orders.collect::<String>(),
        names.concat()
    )
}

/// Returns where a policy does not run, each with the reason.
fn not_in(needs: &Needs) -> Vec<String> {
    let daemon = needs.unmet_in_daemon().map(|reason| format!("not in the daemon: {reason}"));
    let slurm = needs.unmet_on_slurm().map(|need| format!("not on Slurm: it needs {need}"));
    daemon.into_iter().chain(slurm).collect()
}

/// Returns where a policy runs, and where it does not, with the reasons.
fn runs_in(needs: &Needs) -> String {
    let places = [("the daemon", needs.unmet_in_daemon()), ("Slurm", needs.unmet_on_slurm())];
    let runs = places.into_iter().filter(|(_, why)| why.is_none()).map(|(place, _)| format!(", {place}"));
    let not = not_in(needs).into_iter().map(|reason| format!("; {reason}"));
    format!("simulations{}", runs.chain(not).collect::<String>())
}

fn order_page(preset: &Preset) -> String {
    let Preset { name, title, source, .. } = preset;
    format!("{name}\n  {title}\n\nformula  {}\nsource   {source}\n", rule(preset))
}

/// Returns the formula, and the values that come first.
fn rule(preset: &Preset) -> String {
    format!("{}, {} first", preset.formula, preset.first.as_str())
}

/// Returns the written form that a spelling stands for.
fn written(policy: &PolicyDescriptor, spelling: &Spelling) -> String {
    match spelling.means {
        "" => policy.name.to_owned(),
        means => format!("{}({means})", policy.name),
    }
}

/// Returns the machines of a policy, and the facts that a launcher has to know, in words.
fn needs(needs: &Needs) -> [String; 2] {
    let varying = if needs.calendar { ", and pools that vary over time" } else { "" };
    let facts: Vec<String> = needs
        .facts()
        .into_iter()
        .skip_while(|(name, _)| *name != "named_processors")
        .filter(|(_, holds)| *holds)
        .map(|(name, _)| name.replace('_', " "))
        .collect();
    let facts = if facts.is_empty() { "nothing".to_owned() } else { facts.join(", ") };
    [format!("{}{varying}", needs.hosts()), facts]
}

fn page(policy: &'static PolicyDescriptor) -> anyhow::Result<String> {
    let [hosts, facts] = needs(&policy.needs);
    let mut text = format!(
        "{}\n  {}\n\npromises  {}\nruns on   {hosts}\nneeds     {facts}\npaper     {}\n",
        policy.name, policy.title, policy.promises, policy.paper
    );
    text.push_str(&format!("runs in   {}\n", runs_in(&policy.needs)));
    for spelling in policy.spellings {
        let means = written(policy, spelling);
        text.push_str(&format!("\n{}  (= {means})\n  {}\n", spelling.name, spelling.title));
    }
    if !policy.examples.is_empty() {
        text.push_str("\nin papers\n");
        text.extend(
            policy.examples.iter().map(|Example { policy, meaning }| format!("  {policy}\n    {meaning}\n")),
        );
    }
    for param in policy.params(&Registry::built_in())? {
        let values = param.domain.values();
        // A domain that can be listed in full is listed.
        let listed = matches!(param.domain, Domain::Order | Domain::Choice(_) | Domain::Flag);
        let takes = if listed { String::new() } else { format!("{}; ", param.domain) };
        text.push_str(&format!("\n{}  ({takes}default: {})\n  {}\n", param.name, param.default, param.doc));
        let longest = values.iter().map(|(value, _)| value.len()).max().unwrap_or(0);
        let width = (longest + 2).max(19);
        for (value, meaning) in values {
            text.push_str(&format!("    {value:<width$}{meaning}\n"));
        }
        if matches!(param.domain, Domain::Order) {
            text.push_str(
                "    'FORMULA'      largest value of a formula first; `miserly policies` lists its names\n",
            );
        }
    }
    Ok(text)
}
