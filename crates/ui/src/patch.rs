//! The difference of two states.
//!
//! The patch of a value is `[new]`; that of an object or a list of the same length has the patches of its parts that changed, by key or
//! place. A part that went has the patch `[]`. The patch of a list of which parts came or went has [`CUTS`] as its only key: `[place, number
//! of the parts that went, parts that came]` for each change, by the places of the old list. Where as many parts came as went, patches of them
//! by place are in place of the parts.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The key of the changes of a list.
const CUTS: &str = "~";

/// The changed parts up to which a list is not searched for parts that moved.
const FEW: usize = 3;

/// The parts up to which a list is compared with its patch.
const SHORT: usize = 16;

/// The most comparisons of parts of two lists: some milliseconds.
const COMPARED_MOST: usize = 250_000;

/// Returns the patch that makes `old` to `new`, unless they are the same.
pub(crate) fn diff(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let parts = match (old, new) {
        (Value::Object(old), Value::Object(new)) => Some(of_objects(old, new)),
        (Value::Array(old), Value::Array(new)) => of_lists(old, new),
        _ => None,
    };
    Some(parts.map_or_else(|| json!([new]), Value::Object))
}

/// Returns the parts of the patch of a list; `None` if the list itself is shorter.
fn of_lists(old: &[Value], new: &[Value]) -> Option<Map<String, Value>> {
    let by_place = (old.len() == new.len()).then(|| by_place(old, new));
    let by_place = by_place.filter(|parts| 2 * parts.len() <= new.len() || new.iter().any(Value::is_object));
    if by_place.as_ref().is_some_and(|parts| parts.len() <= FEW) {
        return by_place;
    }
    let cut = with_cuts(old, new);
    // A list that has moved by a place differs at each of them. A short one is shorter than any patch.
    let length = |parts: &Map<String, Value>| json!(parts).to_string().len();
    let best = match (by_place, cut) {
        (Some(by_place), Some(cut)) => Some(if length(&by_place) <= length(&cut) { by_place } else { cut }),
        (by_place, cut) => by_place.or(cut),
    };
    best.filter(|parts| new.len() > SHORT || length(parts) < json!([new]).to_string().len())
}

fn by_place(old: &[Value], new: &[Value]) -> Map<String, Value> {
    let parts = (0..).zip(old.iter().zip(new));
    parts.filter_map(|(place, (old, new)): (usize, _)| Some((place.to_string(), diff(old, new)?))).collect()
}

fn with_cuts(old: &[Value], new: &[Value]) -> Option<Map<String, Value>> {
    let begin = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let left = old.len().min(new.len()) - begin;
    let end = old.iter().rev().zip(new.iter().rev()).take(left).take_while(|(old, new)| old == new).count();
    let (before, after) = (&old[begin..old.len() - end], &new[begin..new.len() - end]);
    let cuts = if before.len() * after.len() > COMPARED_MOST {
        vec![json!([begin, before.len(), after])]
    } else {
        cuts(begin, before, after)
    };
    let came: usize = cuts.iter().map(|cut| cut[2].as_array().map_or(0, Vec::len)).sum();
    (came < new.len()).then(|| Map::from_iter([(CUTS.to_owned(), cuts.into())]))
}

/// Returns the changes of a list with a longest common part. O(product of the lengths).
fn cuts(begin: usize, old: &[Value], new: &[Value]) -> Vec<Value> {
    let width = new.len() + 1;
    // The length of the longest common part from each pair of places on.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for one in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            common[one * width + other] = if old[one] == new[other] {
                1 + common[(one + 1) * width + other + 1]
            } else {
                common[(one + 1) * width + other].max(common[one * width + other + 1])
            };
        }
    }
    let (mut one, mut other) = (0, 0);
    let mut found = vec![];
    while one < old.len() || other < new.len() {
        let (from, first) = (one, other);
        while (one < old.len() || other < new.len()) && old.get(one) != new.get(other) {
            let goes = other == new.len()
                || (one < old.len() && common[(one + 1) * width + other] >= common[one * width + other + 1]);
            if goes { one += 1 } else { other += 1 }
        }
        if (from, first) != (one, other) {
            let (gone, came) = (&old[from..one], &new[first..other]);
            let parts =
                if gone.len() == came.len() && came.iter().any(|part| part.is_object() || part.is_array()) {
                    by_place(gone, came).into()
                } else {
                    json!(came)
                };
            found.push(json!([begin + from, gone.len(), parts]));
        }
        (one, other) = (one + 1, other + 1);
    }
    found
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
            Value::Array(list) if key == CUTS => {
                for cut in part.as_array().unwrap().iter().rev() {
                    let place = |part: usize| usize::try_from(cut[part].as_u64().unwrap()).unwrap();
                    let range = place(0)..place(0) + place(1);
                    let came = match &cut[2] {
                        Value::Array(came) => came.clone(),
                        parts => match patched(Some(&json!(list[range.clone()])), parts).unwrap() {
                            Value::Array(came) => came,
                            other => panic!("{other}"),
                        },
                    };
                    list.splice(range, came);
                }
            }
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
        let numbers: Vec<u32> = (0..30).collect();
        let new = [&numbers[1..3], &[70], &numbers[3..29], &[80], &numbers[29..]].concat();
        let cuts = json!({"~": [[0, 1, []], [3, 0, [70]], [29, 0, [80]]]});
        assert_eq!(diff(&json!(numbers), &json!(new)), Some(cuts));
        let (old, new) = (json!([1, 2, 3, 4]), json!([2, 3, 7, 4]));
        assert_eq!(diff(&old, &new), Some(json!([new])), "a short list is shorter");
        assert_eq!(diff(&json!([1]), &json!([2, 3])), Some(json!([[2, 3]])));
        let jobs =
            |numbers: &[i64]| json!(numbers.iter().map(|number| json!({"job": number})).collect::<Vec<_>>());
        let moved = json!({"~": [[0, 1, []], [6, 0, [{"job": 7}]]]});
        assert_eq!(diff(&jobs(&[1, 2, 3, 4, 5, 6]), &jobs(&[2, 3, 4, 5, 6, 7])), Some(moved));
        let bars = |gone: &[[i64; 2]]| json!(gone);
        let (old, new) =
            (bars(&[[0, 0], [1, 5], [2, 6], [3, 7]]), bars(&[[1, 4], [2, 5], [3, 7], [9, 9], [8, 8]]));
        let Some(patch) = diff(&old, &new) else { panic!("they differ") };
        assert_eq!(patched(Some(&old), &patch), Some(new));
    }
}
