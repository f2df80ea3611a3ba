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

/// The most parts that may differ in two lists that are compared part by part.
const EDITS_MOST: i64 = 300;

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
    let cuts = cuts(begin, before, after);
    let came: usize = cuts.iter().map(|cut| cut[2].as_array().map_or(0, Vec::len)).sum();
    (came < new.len()).then(|| Map::from_iter([(CUTS.to_owned(), cuts.into())]))
}

/// Returns the changes of a list, as few as possible.
fn cuts(begin: usize, old: &[Value], new: &[Value]) -> Vec<Value> {
    // Behind the last common part.
    let ends = [(old.len(), new.len())];
    let (mut from, mut first) = (0, 0);
    let mut found = vec![];
    for (one, other) in common(old, new).into_iter().chain(ends) {
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
        (from, first) = (one + 1, other + 1);
    }
    found
}

/// Returns the places of the parts that two lists have in common, ascending: as many as possible, or none if more than [`EDITS_MOST`] parts
/// differ. O((n + m) d) for d parts that differ (Myers 1986: An O(N D) difference algorithm).
fn common(old: &[Value], new: &[Value]) -> Vec<(usize, usize)> {
    let at = |diagonal: i64| usize::try_from(diagonal + EDITS_MOST + 1).unwrap_or(0);
    let place = |place: i64| usize::try_from(place).unwrap_or(0);
    let size = |list: &[Value]| i64::try_from(list.len()).unwrap_or(i64::MAX);
    let (ends, same) = ((size(old), size(new)), |one: i64, other: i64| old[place(one)] == new[place(other)]);
    // The place in `old` that so many edits reach on each diagonal, and the diagonal before.
    let mut reached = vec![0_i64; at(EDITS_MOST + 1) + 1];
    let step = |reached: &[i64], edits: i64, diagonal: i64| {
        let (before, after) = (reached[at(diagonal - 1)], reached[at(diagonal + 1)]);
        let comes = diagonal == -edits || (diagonal != edits && before < after);
        if comes { (after, diagonal + 1) } else { (before + 1, diagonal - 1) }
    };
    let mut steps = vec![];
    for edits in 0..=EDITS_MOST {
        steps.push(reached.clone());
        for diagonal in (-edits..=edits).step_by(2) {
            let (mut one, _) = step(&reached, edits, diagonal);
            while one < ends.0 && one - diagonal < ends.1 && one >= diagonal && same(one, one - diagonal) {
                one += 1;
            }
            reached[at(diagonal)] = one;
            if one >= ends.0 && one - diagonal >= ends.1 {
                return way_back(&steps, ends, step)
                    .into_iter()
                    .map(|(one, other)| (place(one), place(other)))
                    .collect();
            }
        }
    }
    vec![]
}

/// Returns the common parts on the way that the edits took, ascending.
fn way_back(
    steps: &[Vec<i64>],
    ends: (i64, i64),
    step: impl Fn(&[i64], i64, i64) -> (i64, i64),
) -> Vec<(i64, i64)> {
    let (mut one, mut other) = ends;
    let mut found = vec![];
    for (edits, reached) in steps.iter().enumerate().rev() {
        let edits = i64::try_from(edits).unwrap_or(0);
        let (from, diagonal) = step(reached, edits, one - other);
        while (edits == 0 && one > 0 && other > 0) || (edits > 0 && one > from) {
            (one, other) = (one - 1, other - 1);
            found.push((one, other));
        }
        if edits > 0 {
            // The edit itself: a part that went, or one that came.
            let before = if diagonal == one - other - 1 { one - 1 } else { one };
            (one, other) = (before, before - diagonal);
        }
    }
    found.reverse();
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

    proptest! {
        /// No patch of parts that came and went has fewer of them.
        #[test]
        fn a_list_has_few_changes(old in prop::collection::vec(0..4u8, 0..40), new in prop::collection::vec(0..4u8, 0..40)) {
            let [one, other] = [&old, &new].map(|list| list.iter().map(|part| json!(part)).collect::<Vec<_>>());
            let common = common(&one, &other);
            prop_assert!(common.iter().all(|(place, to)| one[*place] == other[*to]));
            prop_assert!(common.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            let mut longest = vec![vec![0; other.len() + 1]; one.len() + 1];
            for (at, part) in one.iter().enumerate() {
                for (to, came) in other.iter().enumerate() {
                    longest[at + 1][to + 1] =
                        if part == came { longest[at][to] + 1 } else { longest[at][to + 1].max(longest[at + 1][to]) };
                }
            }
            prop_assert_eq!(common.len(), longest[one.len()][other.len()]);
        }
    }

    #[test]
    fn a_long_list_that_moved_has_a_short_patch() {
        let parts =
            |first: u32| json!((first..first + 5000).map(|job| json!({"job": job})).collect::<Vec<_>>());
        let patch = diff(&parts(0), &parts(20)).unwrap();
        assert!(patch.to_string().len() < 300, "{patch}");
        assert_eq!(patched(Some(&parts(0)), &patch), Some(parts(20)));
        // All parts differ.
        let patch = diff(&parts(0), &parts(9000)).unwrap();
        assert_eq!(patched(Some(&parts(0)), &patch), Some(parts(9000)));
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
