//! Claims about results, decided by formulas over their figures.

use miserly_formula::Formula;
use miserly_report::page::{Claim, Verdict};

use crate::experiment::file::{ClaimFile, FigureFile, Take};
use crate::present::lines::{of_found, part, shown};
use crate::results::Results;

/// Whether the claim holds, with the figures that decide it.
pub(super) fn decide(claim: &ClaimFile, results: &Results) -> Result<Claim, String> {
    let names: Vec<&str> = claim.figures.keys().map(String::as_str).collect();
    let holds = parse(&claim.holds, &names)?;
    let shows = claim.show.iter().map(|show| Ok((show, parse(&show.formula, &names)?)));
    let shows = shows.collect::<Result<Vec<_>, String>>()?;
    let mut values = Vec::new();
    for (name, figure) in &claim.figures {
        match value(figure, results).map_err(|problem| format!("let {name}: {problem}"))? {
            Some(value) => values.push(value),
            None => return Ok(undecided(claim)),
        }
    }
    let verdict = if holds.eval(&values) == 0.0 { Verdict::DoesNotHold } else { Verdict::Holds };
    let plain = names.iter().zip(&values).map(|(name, value)| format!("{name} {}", short(*value)));
    let derived = shows
        .iter()
        .map(|(show, formula)| format!("{} {}", show.label, shown(formula.eval(&values), show.digits)));
    let figures: Vec<String> = if shows.is_empty() { plain.collect() } else { derived.collect() };
    Ok(Claim { text: claim.text.clone(), verdict, figures: figures.join("; ") })
}

fn parse(text: &str, names: &[&str]) -> Result<Formula, String> {
    Formula::parse(text, names).map_err(|error| error.to_string())
}

fn undecided(claim: &ClaimFile) -> Claim {
    Claim { text: claim.text.clone(), verdict: Verdict::Unknown, figures: "a log is missing".into() }
}

/// A number that says enough in a line of others.
fn short(value: f64) -> String {
    shown(value, if value.abs() < 1000.0 { 2 } else { 0 })
}

/// The figure; `None` where the log is missing.
fn value(figure: &FigureFile, results: &Results) -> Result<Option<f64>, String> {
    if figure.value.starts_with("log.") {
        let found = part(results, &figure.select, &figure.value)?;
        return found
            .map(|value| value.as_f64().ok_or_else(|| format!("{:?} is no number", figure.value)))
            .transpose();
    }
    match (figure.take, &figure.over) {
        (None, None) => {
            Ok(of_found(&results.find(&figure.select)?, &figure.value)?.map(|figure| figure.mean))
        }
        (Some(take), Some(over)) => taken(figure, take, over, results),
        _ => Err("take and over go together".into()),
    }
}

/// One of several runs' figures.
fn taken(figure: &FigureFile, take: Take, over: &str, results: &Results) -> Result<Option<f64>, String> {
    let mut points = Vec::new();
    for (x, found) in results.along(&figure.select, over)? {
        let Some(y) = of_found(&found, &figure.value)? else { return Ok(None) };
        points.push((x, y.mean));
    }
    let least = points.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = points.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let x =
        |point: &(String, f64)| point.0.parse().map_err(|_| format!("{over} = {:?} is no number", point.0));
    match take {
        Take::Min => Ok(least.map(|point| point.1)),
        Take::Max => Ok(most.map(|point| point.1)),
        Take::Argmin => least.map(x).transpose(),
        Take::Argmax => most.map(x).transpose(),
    }
}
