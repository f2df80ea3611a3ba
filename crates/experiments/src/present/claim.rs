//! Claims about results, decided by formulas over their figures.

use miserly_formula::Formula;
use miserly_report::decimals;
use miserly_report::page::{Claim, ClaimVerdict, ReadClaim};
use serde_json::Value;

use crate::experiment::file::{ClaimFile, FigureFile, OfDifference, Take};
use crate::experiment::{Experiment, Reading};
use crate::present::lines::{Lookup, OF_LOG, part};
use crate::results::{Found, Results, differences};
use crate::selector::Selector;

/// Returns the claim with its verdict and the figures that decide it, also under the other readings of the experiment.
pub(super) fn decide(experiment: &Experiment, claim: &ClaimFile, results: &Results) -> Result<Claim, String> {
    let (verdict, figures) = verdict(claim, results)?;
    let mut seen = vec![origins(claim, results)?];
    let mut readings = Vec::new();
    for reading in experiment.readings().iter().skip(1) {
        let read = under(claim, reading);
        let origins = origins(&read, results)?;
        // A reading may change nothing of a claim, or lack its log.
        if origins.iter().all(|origin| !origin.is_empty()) && !seen.contains(&origins) {
            let (verdict, figures) = self::verdict(&read, results)?;
            readings.push(ReadClaim { name: reading.name(), verdict, figures });
            seen.push(origins);
        }
    }
    let ClaimFile { text, section, why, .. } = claim.clone();
    let (section, why) = (section.unwrap_or_default(), why.unwrap_or_default());
    Ok(Claim { text, section, verdict, figures, why, readings })
}

/// Returns the claim on the runs of a reading.
fn under(claim: &ClaimFile, reading: &Reading<'_>) -> ClaimFile {
    let mut read = claim.clone();
    for figure in read.figures.values_mut() {
        let is_of_log = figure.value.starts_with(OF_LOG);
        figure.select =
            if is_of_log { reading.of_log(&figure.select) } else { reading.of_runs(&figure.select) };
        figure.less = figure.less.as_ref().map(|less| reading.of_runs(less));
    }
    read
}

/// Returns the runs or the log of each figure: their keys. Of a missing log there are none.
fn origins(claim: &ClaimFile, results: &Results) -> Result<Vec<Vec<String>>, String> {
    let of_figure = |figure: &FigureFile| {
        if figure.value.starts_with(OF_LOG) {
            let name = figure.select.get("trace").unwrap_or_default();
            return Ok(results.trace(name).map(|_| name.to_owned()).into_iter().collect());
        }
        let mut keys = match &figure.over {
            Some(over) => {
                results.along(&figure.select, over)?.iter().flat_map(|(_, found)| found.keys()).collect()
            }
            None => results.find(&figure.select)?.keys(),
        };
        keys.extend(
            figure.less.as_ref().map(|less| results.find(less)).transpose()?.iter().flat_map(Found::keys),
        );
        Ok(keys)
    };
    claim.figures.values().map(of_figure).collect()
}

/// Returns the verdict on a claim, and the figures that decide it.
fn verdict(claim: &ClaimFile, results: &Results) -> Result<(ClaimVerdict, String), String> {
    let names: Vec<&str> = claim.figures.keys().map(String::as_str).collect();
    let Some(holds) = &claim.holds else { return Ok((ClaimVerdict::Untestable, String::new())) };
    let holds = parse(holds, &names)?;
    let shows = claim.show.iter().map(|show| Ok((show, parse(&show.formula, &names)?)));
    let shows = shows.collect::<Result<Vec<_>, String>>()?;
    // All figures are looked up, so that a mistake in any of them is found without results.
    let (mut values, mut unknown) = (Vec::new(), None);
    for (name, figure) in &claim.figures {
        match value(figure, results).map_err(|problem| format!("let {name}: {problem}"))? {
            Ok(value) => values.push(value),
            Err(why) => {
                unknown.get_or_insert_with(|| format!("{name}: {why}"));
            }
        }
    }
    if let Some(why) = unknown {
        return Ok((ClaimVerdict::Unknown, why));
    }
    let verdict = match holds.eval(&values) {
        decided if !decided.is_finite() => ClaimVerdict::Unknown,
        0.0 => ClaimVerdict::DoesNotHold,
        _ => ClaimVerdict::Holds,
    };
    let plain = names.iter().zip(&values).map(|(name, value)| format!("{name} {}", short(*value)));
    let derived = shows
        .iter()
        .map(|(show, formula)| format!("{} {}", show.label, decimals(formula.eval(&values), show.digits)));
    let figures: Vec<String> = if shows.is_empty() { plain.collect() } else { derived.collect() };
    Ok((verdict, figures.join("; ")))
}

fn parse(text: &str, names: &[&str]) -> Result<Formula, String> {
    Formula::parse(text, names).map_err(|error| error.to_string())
}

/// Returns a number in short, for a line of several.
fn short(value: f64) -> String {
    decimals(value, if value.abs() < 1000.0 { 2 } else { 0 })
}

/// The reasons for which a claim cannot be decided.
const NO_LOG: &str = "log missing";
const NOTHING: &str = "no job was measured";
const NO_INTERVAL: &str = "a single run without interval: successive batch means correlate";

/// Returns the figure, or the reason for which there is none.
fn value(figure: &FigureFile, results: &Results) -> Result<Result<f64, &'static str>, String> {
    if figure.value.starts_with(OF_LOG) {
        return Ok(match part(results, &figure.select, &figure.value)? {
            None => Err(NO_LOG),
            Some(Value::Null) => Err(NOTHING),
            Some(value) => Ok(value.as_f64().ok_or_else(|| format!("{:?} is not a number", figure.value))?),
        });
    }
    if let Some(less) = &figure.less {
        return difference(figure, less, results);
    }
    match (figure.take, &figure.over) {
        (None, None) => Ok(plain(Lookup::new(&results.find(&figure.select)?, &figure.value)?)),
        (Some(take), Some(over)) => taken(figure, take, over, results),
        _ => Err("give take and over together".into()),
    }
}

fn plain(lookup: Lookup) -> Result<f64, &'static str> {
    match lookup {
        Lookup::Figure(figure) => Ok(figure.mean),
        Lookup::NoLog => Err(NO_LOG),
        Lookup::Nothing => Err(NOTHING),
    }
}

/// Returns a figure of the differences of runs from others, seed by seed or batch by batch.
fn difference(
    figure: &FigureFile,
    less: &Selector,
    results: &Results,
) -> Result<Result<f64, &'static str>, String> {
    if figure.take.is_some() || figure.over.is_some() {
        return Err("less cannot be combined with take and over".into());
    }
    let mine = results.find(&figure.select)?;
    let theirs = results.find(less).map_err(|error| format!("less: {error}"))?;
    let (Found::Runs(mine), Found::Runs(theirs)) = (mine, theirs) else { return Ok(Err(NO_LOG)) };
    let differences = differences(&mine, &theirs, &figure.value)?;
    let figure = match figure.of {
        OfDifference::Mean => Some(differences.mean).filter(|mean| mean.is_finite()),
        OfDifference::HalfWidth => differences.half_width,
    };
    Ok(figure.ok_or(NO_INTERVAL))
}

/// Returns one of the figures of several runs.
fn taken(
    figure: &FigureFile,
    take: Take,
    over: &str,
    results: &Results,
) -> Result<Result<f64, &'static str>, String> {
    let mut points = Vec::new();
    for (x, found) in results.along(&figure.select, over)? {
        match plain(Lookup::new(&found, &figure.value)?) {
            Ok(y) => points.push((x, y)),
            Err(why) => return Ok(Err(why)),
        }
    }
    let least = points.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = points.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let x = |point: &(String, f64)| {
        point.0.parse().map_err(|_| format!("{over} = {:?} is not a number", point.0))
    };
    let taken = match take {
        Take::Min => least.map(|point| point.1),
        Take::Max => most.map(|point| point.1),
        Take::Argmin => least.map(x).transpose()?,
        Take::Argmax => most.map(x).transpose()?,
    };
    Ok(taken.ok_or(NOTHING))
}
