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

/// Returns whether a list has parts of GPUs: shards, or shares of the Multi-Process Service. Slurm takes them from the GPUs of a node.
///
/// # Example
/// ```
/// assert!(miserly_slurm::has_gpu_parts("gres/shard:a100:2") && !miserly_slurm::has_gpu_parts("gpu:1g.5gb:7"));
/// ```
pub fn has_gpu_parts(list: &str) -> bool {
    list.split(',').any(|item| {
        let name = without_prefix(item.trim()).split([':', '=', '(']).next();
        matches!(name, Some("shard" | "mps"))
    })
}

fn without_prefix(item: &str) -> &str {
    item.strip_prefix("gres:").or_else(|| item.strip_prefix("gres/")).unwrap_or(item)
}

/// Returns the type of GPUs in an item, and their number.
fn gpus_of(item: &str) -> Option<(&str, u64)> {
    let item = item.split('(').next().unwrap_or_default();
    let rest = without_prefix(item).strip_prefix("gpu")?;
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
            // Instances of a divided GPU are a type of their own, and shards are parts of other items.
            ("gpu:a100:1(S:0),gpu:1g.5gb:7(S:1),shard:a100:4(S:0)", 8),
            ("cpu=8,gres/gpu:nvidia_a100_3g.20gb=2,gres/shard=4", 2),
            ("", 0),
        ] {
            assert_eq!(gpus(list), count, "{list}");
        }
    }

    #[test]
    fn parts_of_gpus_are_no_gpus() {
        for list in ["shard:2", "gres:shard:2", "gres/shard=2", "gpu:1,gres/mps:50", "gres/shard:a100:1"] {
            assert!(has_gpu_parts(list), "{list}");
        }
        for list in ["gpu:2", "gres/gpu:1g.5gb:7", "gres/shards:2", "cpu=4,gres/gpu:shard=1", ""] {
            assert!(!has_gpu_parts(list), "{list}");
        }
    }
}
