//! The marks that the played scripts have reached, by source file.

use std::collections::BTreeMap;
use std::fmt;

use miserly_marks::all;

/// The marks that scripts reach never, or only in many seeds, with the reasons.
const UNREACHED: &str = include_str!("../unreached");
/// The number of seeds that reach all marks but the listed ones.
pub(crate) const SEEDS: u64 = 2000;
/// The number of seeds that reach the rare ones, too.
const MANY: u64 = 50_000;

/// The counts of all marks of this process, by file and name.
#[derive(Debug)]
pub(crate) struct Reached(BTreeMap<&'static str, BTreeMap<&'static str, u64>>);

impl Reached {
    pub(crate) fn now() -> Reached {
        let mut files = BTreeMap::<_, BTreeMap<_, u64>>::new();
        for mark in all() {
            *files.entry(mark.file()).or_default().entry(mark.name()).or_default() += mark.count();
        }
        Reached(files)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.0).unwrap_or_default()
    }

    /// Returns what differs from the list, after this number of seeds.
    pub(crate) fn differences(&self, seeds: u64) -> Vec<String> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (file, marks) in &self.0 {
            counts.extend(marks.iter().map(|(name, count)| ((*file, *name), *count)));
        }
        let mut differences = vec![];
        for line in UNREACHED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let fields: Vec<&str> = line.split(" | ").collect();
            let [often, file, name, _reason] = fields[..] else {
                differences.push(format!("this line has not four fields: {line}"));
                continue;
            };
            match (often, counts.remove(&(file, name))) {
                ("never" | "rare", None) => differences.push(format!("{file} has no mark {name:?}")),
                ("never", Some(0)) => {}
                ("never", Some(_)) => {
                    differences.push(format!("{file}: {name:?} is reached, and listed as never"));
                }
                ("rare", Some(count)) if count > 0 || seeds < MANY => {}
                ("rare", Some(_)) => {
                    differences.push(format!("{file}: {name:?} is not reached in {seeds} seeds"));
                }
                _ => differences.push(format!("a mark is reached never or rare: {line}")),
            }
        }
        let left = counts.iter().filter(|(_, count)| **count == 0);
        differences.extend(left.map(|((file, name), _)| format!("{file}: {name:?} is never reached")));
        differences
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (file, marks) in &self.0 {
            let reached = marks.values().filter(|count| **count > 0).count();
            writeln!(f, "{file}: {reached} of {} marks", marks.len())?;
            for (name, count) in marks {
                writeln!(f, "{count:>14} {name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_not_reached_is_a_difference() {
        let none = Reached::now();
        let file = "crates/engine/src/engine.rs";
        let is_told = |reached: &Reached| {
            reached
                .differences(SEEDS)
                .iter()
                .any(|text| text.starts_with(file) && text.contains("\"an absence"))
        };
        assert!(is_told(&none));
        let reached =
            Reached(BTreeMap::from([(file, BTreeMap::from([("an absence without a restart", 3)]))]));
        assert!(!is_told(&reached));
    }

    #[test]
    fn the_list_has_marks_that_exist_and_reasons() {
        let differences = Reached::now().differences(SEEDS);
        let wrong = |text: &&String| !text.ends_with("is never reached");
        assert_eq!(differences.iter().find(wrong), None);
    }
}
