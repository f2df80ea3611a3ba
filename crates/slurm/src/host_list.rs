//! Lists of hosts in Slurm's short form: `node[1-3,7],gpu01`.

/// The most hosts of a list.
const MOST: usize = 1 << 20;

/// Why a list is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a list of hosts")]
pub struct HostListError(String);

/// Returns the hosts of a list, in its order. Leading zeros of a range are kept.
///
/// # Errors
/// If a bracket is not closed, a range is not one of numbers, or the list is longer than a million hosts.
///
/// # Example
/// ```
/// assert_eq!(miserly_slurm::hosts("node[08-10,2],gpu")?, ["node08", "node09", "node10", "node2", "gpu"]);
/// # Ok::<(), miserly_slurm::HostListError>(())
/// ```
pub fn hosts(list: &str) -> Result<Vec<String>, HostListError> {
    let wrong = || HostListError(list.chars().take(100).collect());
    let mut hosts = vec![];
    for item in items(list).ok_or_else(wrong)? {
        let expanded = expanded(item, MOST - hosts.len()).ok_or_else(wrong)?;
        hosts.extend(expanded);
    }
    Ok(hosts)
}

/// Returns the items between the commas that are in no brackets.
fn items(list: &str) -> Option<Vec<&str>> {
    let (mut items, mut from, mut inside) = (vec![], 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return None,
            ',' if !inside => {
                items.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[from..]);
    (!inside).then(|| items.into_iter().filter(|item| !item.is_empty()).collect())
}

/// Returns the hosts of an item, at most `most`. It may have several brackets.
fn expanded(item: &str, most: usize) -> Option<Vec<String>> {
    let Some((head, rest)) = item.split_once('[') else {
        return (most > 0).then(|| vec![item.to_owned()]);
    };
    let (ranges, tail) = rest.split_once(']')?;
    let tails = expanded(tail, most)?;
    let mut hosts = vec![];
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return None;
        }
        let width = if first.starts_with('0') { first.len() } else { 0 };
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let count = usize::try_from(last.checked_sub(first)?).ok()?.checked_add(1)?;
        if count.checked_mul(tails.len())? > most.checked_sub(hosts.len())? {
            return None;
        }
        for number in first..=last {
            hosts.extend(tails.iter().map(|tail| format!("{head}{number:0width$}{tail}")));
        }
    }
    Some(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded() {
        let all = |list: &str| hosts(list).unwrap().join(" ");
        assert_eq!(all(""), "");
        assert_eq!(all("one"), "one");
        assert_eq!(all("n[1-3],m[07,9-10],x"), "n1 n2 n3 m07 m9 m10 x");
        assert_eq!(all("r[1-2]n[1-2]"), "r1n1 r1n2 r2n1 r2n2");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in ["n[1-3", "n1]", "n[a]", "n[3-1]", "n[1-]", "n[[1]]", "n[1-99999999999]"] {
            assert!(hosts(list).is_err(), "{list}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fail(list in "[a-z0-9,\\[\\]-]{0,40}") {
            let _ = hosts(&list);
        }
    }
}
