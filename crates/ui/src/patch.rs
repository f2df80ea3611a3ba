//! The difference of two states.
//!
//! The patch of a value is `[new]`; that of an object or a list of the same length has the patches of its parts that changed, by key or
//! place. A part that went has the patch `[]`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Returns the patch that makes `old` to `new`, unless they are the same.
pub(crate) fn diff(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let parts = match (old, new) {
        (Value::Object(old), Value::Object(new)) => Some(of_objects(old, new)),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let parts: Map<String, Value> = (0..)
                .zip(old.iter().zip(new))
                .filter_map(|(place, (old, new)): (usize, _)| Some((place.to_string(), diff(old, new)?)))
                .collect();
            // Of numbers of which most change the list itself is shorter.
            (2 * parts.len() <= new.len() || new.iter().any(Value::is_object)).then_some(parts)
        }
        _ => None,
    };
    Some(parts.map_or_else(|| json!([new]), Value::Object))
}

fn of_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let part = |key: &String| match (old.get(key), new.get(key)) {
        (Some(old), Some(new)) => diff(old, new),
        (None, Some(new)) => Some(json!([new])),
        _ => Some(json!([])),
    };
    keys.into_iter().filter_map(|key| Some((key.clone(), part(key)?))).collect()
}

/// Returns the value after a patch, as `patched` of state.js; `None` if it went.
///
/// # Panics
/// The patch is not of such a value.
#[cfg(test)]
pub(crate) fn patched(old: Option<&Value>, patch: &Value) -> Option<Value> {
    let parts = match patch {
        Value::Array(new) => return new.first().cloned(),
        Value::Object(parts) => parts,
        _ => panic!("{patch}"),
    };
    let mut value = old.expect("only a known value has parts").clone();
    for (key, part) in parts {
        match &mut value {
            Value::Array(list) => {
                let place: usize = key.parse().unwrap();
                list[place] = patched(Some(&list[place]), part).unwrap();
            }
            Value::Object(object) => match patched(object.get(key), part) {
                Some(new) => drop(object.insert(key.clone(), new)),
                None => drop(object.remove(key)),
            },
            _ => panic!("{value} has no parts"),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), Just(json!("text"))];
        leaf.prop_recursive(4, 64, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|parts| Value::Object(parts.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_makes_the_new_value(old in value(), new in value()) {
            match diff(&old, &new) {
                None => prop_assert_eq!(old, new),
                Some(patch) => prop_assert_eq!(patched(Some(&old), &patch), Some(new)),
            }
        }
    }

    #[test]
    fn only_what_changed_is_in_a_patch() {
        let state = |held: u64, name: &str| json!({"pools": [{"name": name, "held": held}, {"name": "b"}], "now": null});
        assert_eq!(diff(&state(1, "a"), &state(2, "a")), Some(json!({"pools": {"0": {"held": [2]}}})));
        assert_eq!(diff(&state(1, "a"), &state(1, "a")), None);
        assert_eq!(diff(&json!({"a": 1, "b": null}), &json!({"b": null})), Some(json!({"a": []})));
        assert_eq!(diff(&json!([1, 2, 3]), &json!([4, 5, 6])), Some(json!([[4, 5, 6]])));
        assert_eq!(diff(&json!([1, 2, 3]), &json!([1, 2, 4])), Some(json!({"2": [4]})));
    }
}
