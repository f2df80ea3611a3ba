//! Figures of single runs that were measured in batches: how sure they are, and how far runs are apart, batch by batch.

use miserly_sim::{Interval, interval};
use serde_json::Value;

use super::at;

/// Half the width of the interval of the figure at a path, by the batches of its run; `None` if it was not measured in such, or there is none.
pub(super) fn half_width(document: &Value, path: &str) -> Option<f64> {
    let batches = at(document, "run.batches")?;
    let told = match measure(path)? {
        name @ ("slots" | "rows" | "unifications") => at(batches, "half_width")?.get(name),
        name => at(document, "run.uncertainty.half_width")?.get(name),
    };
    told.and_then(Value::as_f64)
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

/// What the differences of the figure at `value` tell, of pairs of batches: of the first run's and the second's, of all the pairs that
/// there are.
///
/// # Errors
/// If it is no mean of runs in batches.
pub(crate) fn differences(mine: &[&Value], theirs: &[&Value], value: &str) -> Result<Interval, String> {
    let path = format!("run.{value}");
    let name = measure(&path).ok_or_else(|| no_batches(value))?;
    let (mut differences, mut jobs) = (Vec::new(), u64::MAX);
    for (mine, theirs) in mine.iter().zip(theirs) {
        let [(a, size), (b, other)] = [mine, theirs].map(|document| means(document, name));
        let (a, b) = a.zip(b).ok_or_else(|| no_batches(value))?;
        if size != other || a.len() != b.len() {
            return Err("less: the runs have other batches".into());
        }
        let pairs = a.iter().zip(b).filter_map(|(mine, theirs)| Some(mine.as_f64()? - theirs.as_f64()?));
        differences.extend(pairs);
        jobs = jobs.min(size.unwrap_or(0));
    }
    Ok(interval(&differences, jobs))
}

/// The mean of each batch, and how many terminations these have.
fn means<'a>(document: &'a Value, name: &str) -> (Option<&'a Vec<Value>>, Option<u64>) {
    let means = at(document, "run.batches.means").and_then(|means| means.get(name)?.as_array());
    (means, at(document, "run.settings.batches.jobs").and_then(Value::as_u64))
}

fn no_batches(value: &str) -> String {
    format!(
        "less: {value:?} is no mean of runs in batches; such are metrics.NAME.mean, slicing.slots.mean, batches.rows and batches.unifications"
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
        let told = differences(&[&a], &[&b], "metrics.slowdown.mean").unwrap();
        assert_eq!((told.mean, told.half_width), (Some(2.0), Some(0.0)));
        let shorter = document(&waves[1..]);
        assert!(differences(&[&a], &[&shorter], "metrics.slowdown.mean").is_err());
        assert!(differences(&[&a], &[&b], "metrics.slowdown.max").is_err());
    }
}
