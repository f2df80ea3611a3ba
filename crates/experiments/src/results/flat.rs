//! A document as columns.

use serde_json::Value;

/// The scalar fields of a document, by path, in the order of their names; lists and details are left out.
pub(super) fn flatten(document: &Value) -> Vec<(String, Value)> {
    let mut columns = Vec::new();
    walk(document, String::new(), &mut columns);
    columns
}

fn walk(value: &Value, path: String, columns: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(field, below, columns);
            }
        }
        Value::Array(_) => {}
        _ if path.starts_with("details.") => {}
        _ => columns.push((path, value.clone())),
    }
}
