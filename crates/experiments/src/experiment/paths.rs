//! Paths into the document of a run, checked before there is one.

use std::sync::LazyLock;

use miserly_sim::Grouping;
use serde_json::Value;

/// The schema of the document of a run.
static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(miserly_run::RUN_SCHEMA).unwrap_or_default());

/// Checks that the document of a run may have a number at `path`.
pub(super) fn check_number(path: &str) -> Result<(), String> {
    check(path, |node| allows(node, &["number", "integer"]))
}

/// Checks that the document of a run may have a number or a text at `path`.
pub(super) fn check_scalar(path: &str) -> Result<(), String> {
    check(path, |node| !allows(node, &["object", "array"]))
}

/// Checks that the document of a run may have a list at `path`.
pub(super) fn check_list(path: &str) -> Result<(), String> {
    check(path, |node| allows(node, &["array"]))
}

fn check(path: &str, fits: fn(&Value) -> bool) -> Result<(), String> {
    let fields: Vec<&str> = path.split('.').collect();
    // The timing of a run is not stored.
    if fields.first() == Some(&"timing") || !has(&SCHEMA, &fields, &|_| true) {
        return Err(format!("the document of a run has no {path:?} (docs/simulate.schema.json)"));
    }
    if has(&SCHEMA, &fields, &fits) {
        return Ok(());
    }
    Err(format!("{path:?} has the wrong type in the document of a run (docs/simulate.schema.json)"))
}

/// Returns whether the schema has a field at this path that fits.
fn has(node: &Value, fields: &[&str], fits: &impl Fn(&Value) -> bool) -> bool {
    let definition = node["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    if definition.is_some_and(|name| has(&SCHEMA["$defs"][name], fields, fits)) {
        return true;
    }
    let one_of =
        |word: &str| node[word].as_array().is_some_and(|of| of.iter().any(|one| has(one, fields, fits)));
    if ["anyOf", "oneOf", "allOf"].into_iter().any(one_of) {
        return true;
    }
    let Some((first, rest)) = fields.split_first() else { return fits(node) };
    let below = |node: Option<&Value>| node.is_some_and(|node| node.is_object() && has(node, rest, fits));
    let index = first.parse::<usize>().ok();
    // The only names by a pattern are ranges of the user.
    let patterns =
        node["patternProperties"].as_object().filter(|_| matches!(first.parse(), Ok(Grouping::Own(_))));
    below(node["properties"].get(first))
        || patterns.is_some_and(|patterns| patterns.values().any(|node| below(Some(node))))
        || below(node.get("additionalProperties"))
        || index.is_some_and(|at| below(node["prefixItems"].get(at)) || below(node.get("items")))
}

/// Returns whether the values of a schema may have one of these types.
fn allows(node: &Value, types: &[&str]) -> bool {
    let known = |word: &Value| word.as_str().is_some_and(|word| types.contains(&word));
    known(&node["type"]) || node["type"].as_array().is_some_and(|of| of.iter().any(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_document() {
        for path in ["metrics.wait.mean", "by.category.0.metrics.wait.mean", "utilization"] {
            assert_eq!(check_number(path), Ok(()));
        }
        assert_eq!(check_list("by.procs:1,8+runtime:1h"), Ok(()));
        assert!(check_list("by.procs:8,1").unwrap_err().contains("has no"));
        assert_eq!(check_scalar("policy"), Ok(()));
        assert_eq!(check_scalar("jobs.started_immediately"), Ok(()));
        assert_eq!(check_list("details.series.waiting"), Ok(()));
        assert!(check_number("metrics.wiat.mean").unwrap_err().contains("has no"));
        assert!(check_number("timing.seconds").unwrap_err().contains("has no"));
        assert!(check_number("metrics").unwrap_err().contains("wrong type"));
        assert!(check_number("policy").unwrap_err().contains("wrong type"));
    }
}
