//! Generic resources, as Slurm writes them.

use std::collections::BTreeMap;

/// Returns the number of GPUs in a list such as `gpu:a100:4(S:0),nvme:1`, `gres:gpu:2` or `cpu=4,gres/gpu=2,gres/gpu:a100=2`.
///
/// In a list of trackable resources the whole number stands beside those of each type.
///
/// # Example
/// ```
/// assert_eq!(miserly_slurm::gpus("gpu:a100:4(S:0-1),gpu:t4:2"), 6);
/// assert_eq!(miserly_slurm::gpus("billing=8,gres/gpu:a100=2,gres/gpu=2"), 2);
/// ```
pub fn gpus(list: &str) -> u64 {
    let items = || list.split(',').filter_map(|item| gpus_of(item.trim()));
    let whole: Vec<u64> = items().filter(|(kind, _)| kind.is_empty()).map(|(_, count)| count).collect();
    if list.contains('=') && !whole.is_empty() {
        return whole.iter().sum();
    }
    items().map(|(_, count)| count).sum()
}

/// Returns the numbers of GPUs of each type in a list. Those without a type are left out.
///
/// # Example
/// ```
/// let types = miserly_slurm::gpu_types("gpu:a100:4(S:0-1),gpu:2,nvme:a100:1");
/// assert_eq!(types, [("a100".to_owned(), 4)].into());
/// ```
pub fn gpu_types(list: &str) -> BTreeMap<String, u64> {
    let mut types = BTreeMap::new();
    for (kind, count) in list.split(',').filter_map(|item| gpus_of(item.trim())) {
        if !kind.is_empty() {
            *types.entry(kind.to_owned()).or_insert(0) += count;
        }
    }
    types
}

/// Returns the type of GPUs in an item, and their number.
fn gpus_of(item: &str) -> Option<(&str, u64)> {
    let item = item.split('(').next().unwrap_or_default();
    let item = item.strip_prefix("gres:").or_else(|| item.strip_prefix("gres/")).unwrap_or(item);
    let rest = item.strip_prefix("gpu")?;
    if !rest.is_empty() && !rest.starts_with([':', '=']) {
        return None;
    }
    let (kind, count) = rest.rsplit_once([':', '=']).unwrap_or((rest, rest));
    match count.parse() {
        Ok(count) => Some((kind.trim_start_matches(':'), count)),
        // A type without a number is one.
        Err(_) => Some((count, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted() {
        for (list, count) in [
            ("gpu:a100:4(S:0-1),nvme:1", 4),
            ("gres:gpu:2", 2),
            ("gres/gpu=3", 3),
            ("gpu", 1),
            ("gpu:a100", 1),
            ("gpu:a100:2,gpu:t4:1", 3),
            ("cpu=4,mem=1G,gres/gpu=3,gres/gpu:a100=2,gres/gpu:t4=1", 3),
            ("gres/gpu:a100=2", 2),
            ("gpumem:7,nvme:7", 0),
            ("", 0),
        ] {
            assert_eq!(gpus(list), count, "{list}");
        }
    }
}
