//! The page of the policies, from the registry.

use miserly_formula::presets::{PRESETS, Preset};
use miserly_policies::shared::{Criterion, Priority};
use miserly_policies::{DefaultValue, Domain, Param, PolicyDescriptor, Registry};

use super::markdown::{anchor, code, escaped, table};
use super::names::Names;

pub(super) fn page() -> anyhow::Result<String> {
    let registry = Registry::built_in();
    let sections: Result<Vec<String>, _> = registry.policies().map(section).collect();
    Ok(format!(
        "# Policies\n\n\
         A policy is written with its parameters, such as `easy(backfill=shortest)`.\n\
         `miserly policies NAME` prints one of these sections, and `--json` prints it for programs.\n\n\
         {}\n## Other spellings\n\n{}{}{}",
        table(["policy", "title", "promises"], registry.policies().map(summary)),
        table(["name", "written form", "title"], registry.policies().flat_map(spellings)),
        sections?.concat(),
        orders()
    ))
}

/// Returns each policy with its parameters, their values and their defaults, and the names of orders.
pub(super) fn names() -> anyhow::Result<Names> {
    let registry = Registry::built_in();
    let mut names = Names::default();
    for policy in registry.policies() {
        names.add(policy.name, policy.params(&registry)?.iter().map(name_of_param));
        let spellings = spellings(policy).into_iter();
        names.add("other spellings", spellings.map(|[name, written, _]| format!("{name} = {written}")));
    }
    let criteria = Criterion::ALL.iter().map(|(_, name, _)| (*name).to_owned());
    names.add("orders", criteria.chain(PRESETS.iter().map(|of| format!("{} = {}", of.name, of.formula))));
    names.add("names in formulas", Priority::NAMES.map(|(name, _)| name.to_owned()));
    Ok(names)
}

fn name_of_param(param: &Param) -> String {
    let named = param.domain.values().iter().map(|(name, _)| *name).collect::<Vec<_>>().join("|");
    let values = match param.domain {
        Domain::Order => "order".to_owned(),
        Domain::Choice(_) | Domain::Flag | Domain::Policy(_) => named,
        Domain::Number => "0..".to_owned(),
        Domain::NumberOr(least, _) => format!("{least}..|{named}"),
        Domain::NumbersOr(count, _) => format!("{count} numbers|{named}"),
        Domain::Integer(least, u64::MAX) => format!("integer {least}.."),
        Domain::Integer(least, most) => format!("integer {least}..{most}"),
        Domain::IntegerOr(least, most, _) => format!("integer {least}..{most}|{named}"),
        Domain::Duration { least, none: false } => format!("duration {least}s.."),
        Domain::Duration { least, none: true } => format!("duration {least}s..|{named}"),
        Domain::Shares => format!("shares|{named}"),
        Domain::RunningLimits => format!("limits|{named}"),
        Domain::Preemption => format!("preemption|{named}"),
        Domain::Billing => format!("weights|{named}"),
    };
    format!("{} {values} = {}", param.name, default(param))
}

fn summary(policy: &'static PolicyDescriptor) -> [String; 3] {
    let link = format!("[`{}`](#{})", policy.name, anchor(policy.name));
    [link, escaped(policy.title), escaped(policy.promises)]
}

fn spellings(policy: &'static PolicyDescriptor) -> Vec<[String; 3]> {
    let written = |means: &str| match means {
        "" => code(policy.name),
        means => format!("`{}({means})`", policy.name),
    };
    let spellings = policy.spellings.iter();
    spellings
        .map(|spelling| [code(spelling.name), written(spelling.means), escaped(spelling.title)])
        .collect()
}

fn section(policy: &'static PolicyDescriptor) -> anyhow::Result<String> {
    let needs = &policy.needs;
    // The facts about hosts and calendars have rows of their own.
    let facts = needs.facts().into_iter().skip_while(|(name, _)| *name != "named_processors");
    let facts: Vec<String> =
        facts.filter(|(_, holds)| *holds).map(|(name, _)| name.replace('_', " ")).collect();
    let facts = if facts.is_empty() { "nothing".to_owned() } else { facts.join(", ") };
    let calendar = if needs.calendar { "yes" } else { "no" };
    let other: Vec<String> = policy.spellings.iter().map(|spelling| code(spelling.name)).collect();
    let other = if other.is_empty() { "none".to_owned() } else { other.join(", ") };
    let rows = [
        ["promises".to_owned(), escaped(policy.promises)],
        ["runs on".to_owned(), needs.hosts().to_owned()],
        ["pools that vary over time".to_owned(), calendar.to_owned()],
        ["needs".to_owned(), facts],
        ["other spellings".to_owned(), other],
        ["paper".to_owned(), escaped(policy.paper)],
    ];
    let params = policy.params(&Registry::built_in())?;
    let params = match &params[..] {
        [] => "It has no parameters.\n".to_owned(),
        params => table(["parameter", "effect", "values", "default"], params.iter().map(row)),
    };
    let examples = match policy.examples {
        [] => String::new(),
        examples => {
            let rows = examples.iter().map(|example| [code(example.policy), escaped(example.meaning)]);
            format!("\n{}", table(["written form", "in papers"], rows))
        }
    };
    let (name, title) = (policy.name, escaped(policy.title));
    let properties = table(["property", "value"], rows);
    Ok(format!("\n## {name}\n\n{title}\n\n{properties}{examples}\n{params}"))
}

fn row(param: &Param) -> [String; 4] {
    [code(param.name), escaped(param.doc), values(&param.domain), default(param)]
}

fn default(param: &Param) -> String {
    match &param.default {
        DefaultValue::Is(value) => code(value),
        DefaultValue::SameAs(other) => format!("the same as `{other}`"),
        DefaultValue::SeedOfRun => "that of the run".to_owned(),
    }
}

/// Returns the values of a parameter: in words, or each with its meaning.
fn values(domain: &Domain) -> String {
    let words = domain.values();
    let listed = || words.iter().map(|(value, meaning)| format!("`{value}`: {}", escaped(meaning)));
    match domain {
        Domain::Order => "an [order](#orders)".to_owned(),
        Domain::Flag => "`true`, `false`".to_owned(),
        Domain::Policy(_) => words
            .iter()
            .map(|(name, _)| format!("[`{name}`](#{})", anchor(name)))
            .collect::<Vec<_>>()
            .join(", "),
        Domain::Choice(_) => listed().collect::<Vec<_>>().join("<br>"),
        Domain::NumberOr(..) | Domain::NumbersOr(..) | Domain::IntegerOr(..) => {
            let text = domain.to_string();
            let number = text.split(", or one of").next().unwrap_or(&text).to_owned();
            std::iter::once(number).chain(listed()).collect::<Vec<_>>().join("<br>")
        }
        Domain::Number
        | Domain::Integer(..)
        | Domain::Duration { .. }
        | Domain::Shares
        | Domain::RunningLimits
        | Domain::Preemption
        | Domain::Billing => domain.to_string(),
    }
}

fn orders() -> String {
    let criteria = Criterion::ALL.iter().map(|&(_, name, meaning)| [code(name), escaped(meaning)]);
    let preset = |preset: &Preset| {
        let Preset { name, title, formula, first, source } = *preset;
        [code(name), escaped(title), code(formula), format!("{} first", first.as_str()), escaped(source)]
    };
    let names = Priority::NAMES.map(|(name, meaning)| [code(name), escaped(meaning)]);
    format!(
        "\n## Orders\n\n\
         An order is a criterion, an order of the literature, or a formula in quotes\n\
         ([Orders of the queue](../orders.md)).\n\n\
         ### Criteria\n\n{}\n### Orders of the literature\n\n{}\n### Names in formulas\n\n{}",
        table(["order", "meaning"], criteria),
        table(["order", "meaning", "formula", "values", "source"], PRESETS.iter().map(preset)),
        table(["name", "meaning"], names)
    )
}
