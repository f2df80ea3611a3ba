//! Figures of single runs that were measured in batches: how sure they are, and how far runs are apart, batch by batch.

use miserly_sim::interval;
use serde_json::Value;

use super::{Figure, at, figure};

/// Half the width of the interval of the figure at a path, by the batches of its run; `None` if it was not measured in such, or there is none.
pub(super) fn half_width(document: &Value, path: &str) -> Option<f64> {
    let batches = at(document, "run.batches")?;
    let half_width = match measure(path)? {
        name @ ("slots" | "rows" | "unifications") => at(batches, "half_width")?.get(name),
        name => at(document, "run.uncertainty.half_width")?.get(name),
    };
    half_width.and_then(Value::as_f64)
}

/// The measure whose mean over the batches stands at that path.
fn measure(path: &str) -> Option<&str> {
    match path.strip_prefix("run.")? {
        "slicing.slots.mean" => Some("slots"),
        "batches.rows" => Some("rows"),
        "batches.unifications" => Some("unifications"),
        path => path.strip_prefix("metrics.")?.strip_suffix(".mean"),
    }
}

/// Returns the mean difference of the figure at `value`, with its interval.
///
/// The differences are those of the runs of each seed if there are several, else those of the batches of the one run.
///
/// # Errors
/// If the runs have other seeds, or if it is no mean of a run in batches.
pub(crate) fn differences(mine: &[&Value], theirs: &[&Value], value: &str) -> Result<Figure, String> {
    let path = format!("run.{value}");
    match (mine, theirs) {
        ([mine], [theirs]) => of_batches(mine, theirs, &path),
        _ => of_seeds(mine, theirs, &path),
    }
}

fn of_seeds(mine: &[&Value], theirs: &[&Value], path: &str) -> Result<Figure, String> {
    let seed = |document: &&Value| at(document, "run.settings.seed").cloned();
    if !mine.iter().map(seed).eq(theirs.iter().map(seed)) {
        return Err("less: the runs have other seeds".into());
    }
    let mut differences = Vec::new();
    for (mine, theirs) in mine.iter().zip(theirs) {
        let [a, b] = [mine, theirs].map(|document| figure(&[document], path));
        differences.extend(a?.zip(b?).map(|(a, b)| a.mean - b.mean));
    }
    Ok(Figure::from_values(&differences))
}

fn of_batches(mine: &Value, theirs: &Value, path: &str) -> Result<Figure, String> {
    let name = measure(path).ok_or_else(|| no_batches(path))?;
    let [(a, jobs), (b, others)] = [mine, theirs].map(|document| means(document, name));
    let (a, b) = a.zip(b).ok_or_else(|| no_batches(path))?;
    if jobs != others || a.len() != b.len() {
        return Err("less: the runs have other batches".into());
    }
    let pairs = a.iter().zip(b).filter_map(|(mine, theirs)| Some(mine.as_f64()? - theirs.as_f64()?));
    let interval = interval(&pairs.collect::<Vec<_>>(), jobs.unwrap_or(0));
    Ok(Figure { mean: interval.mean.unwrap_or(f64::NAN), half_width: interval.half_width })
}

/// The mean of each batch, and how many terminations these have.
fn means<'a>(document: &'a Value, name: &str) -> (Option<&'a Vec<Value>>, Option<u64>) {
    let means = at(document, "run.batches.means").and_then(|means| means.get(name)?.as_array());
    (means, at(document, "run.settings.batches.jobs").and_then(Value::as_u64))
}

fn no_batches(path: &str) -> String {
    let value = path.strip_prefix("run.").unwrap_or(path);
    format!(
        "less: {value:?} is not a mean of a run in batches; these are metrics.NAME.mean, slicing.slots.mean, batches.rows and batches.unifications"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(slowdown: &[f64]) -> Value {
        json!({ "run": {
            "settings": { "batches": { "jobs": 1000, "count": slowdown.len(), "discard": 1 } },
            "uncertainty": { "half_width": { "slowdown": 0.5, "wait": null } },
            "batches": { "half_width": { "slots": 0.25 }, "means": { "slowdown": slowdown } },
        } })
    }

    #[test]
    fn widths_are_those_of_the_batches() {
        let run = document(&[1.0]);
        assert_eq!(half_width(&run, "run.metrics.slowdown.mean"), Some(0.5));
        assert_eq!(half_width(&run, "run.metrics.wait.mean"), None);
        assert_eq!(half_width(&run, "run.metrics.slowdown.max"), None);
        assert_eq!(half_width(&run, "run.slicing.slots.mean"), Some(0.25));
        let plain = json!({ "run": { "uncertainty": { "half_width": { "slowdown": 0.5 } } } });
        assert_eq!(half_width(&plain, "run.metrics.slowdown.mean"), None, "the run was not in batches");
    }

    #[test]
    fn what_hits_both_runs_alike_is_not_in_the_difference() {
        let waves = [9.0, 3.0, 8.0, 4.0, 9.0, 2.0, 8.0, 3.0, 9.0, 4.0];
        let a = document(&waves);
        let b = document(&waves.map(|mean| mean - 2.0));
        let found = differences(&[&a], &[&b], "metrics.slowdown.mean").unwrap();
        assert_eq!((found.mean, found.half_width), (2.0, Some(0.0)));
        let shorter = document(&waves[1..]);
        assert!(differences(&[&a], &[&shorter], "metrics.slowdown.mean").is_err());
        assert!(differences(&[&a], &[&b], "metrics.slowdown.max").is_err());
    }

    #[test]
    fn runs_of_several_seeds_are_compared_seed_by_seed() {
        let of = |seed: u64, wait: f64| json!({ "run": { "settings": { "seed": seed }, "wait": wait } });
        let [a, b, c, d] = [of(1, 10.0), of(2, 30.0), of(1, 8.0), of(2, 26.0)];
        let found = differences(&[&a, &b], &[&c, &d], "wait").unwrap();
        // 2 and 4: a deviation of sqrt(2), t 12.706 with a degree of freedom, over sqrt(2).
        assert_eq!(found.mean.to_bits(), 3.0_f64.to_bits());
        assert!((found.half_width.unwrap() - 12.706_204).abs() < 1e-4, "{found:?}");
        assert!(differences(&[&a, &b], &[&d, &c], "wait").is_err());
        assert!(differences(&[&a, &b], &[&c], "wait").is_err());
    }
}
