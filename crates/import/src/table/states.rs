//! The words of final states that a map does not know, and the line that says what they mean.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::map::States;
use crate::log::{UnknownState, UnknownStatesReport};

/// Number of unknown states that are told apart.
const MOST: usize = 1_000;

/// Number of unknown states in a report.
const SHOWN: usize = 10;

/// The lists of words, each with parts of words that are usual in it.
const LISTS: [(&str, Option<i64>, &[&str]); 4] = [
    ("completed", Some(1), &["complete", "succe", "pass", "done", "finish", "terminated", "ok"]),
    ("failed", Some(0), &["fail", "err", "timeout", "oom", "memory"]),
    ("cancelled", Some(5), &["cancel", "kill", "abort", "delete"]),
    ("unfinished", None, &["run", "pend", "wait", "queue"]),
];

/// The states without a meaning, with the number of their jobs.
#[derive(Debug, Default)]
pub(crate) struct UnknownStates {
    jobs: BTreeMap<String, u64>,
    /// Jobs in states beyond those that are told apart.
    others: u64,
}

/// The line of the final states in a map.
#[derive(Debug)]
pub(crate) struct StatusLine {
    pub(crate) column: String,
    pub(crate) states: Option<States>,
    /// The map and the line.
    pub(crate) place: String,
}

impl UnknownStates {
    /// Adds a job in this state.
    pub(crate) fn add(&mut self, state: &str) {
        if let Some(jobs) = self.jobs.get_mut(state) {
            *jobs += 1;
        } else if self.jobs.len() < MOST {
            self.jobs.insert(state.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    /// Returns the states with the most jobs, and the remedy, if a map has a line for them.
    pub(crate) fn report(&self, status: Option<&StatusLine>) -> UnknownStatesReport {
        let state = |(state, jobs): (&String, &u64)| UnknownState { state: state.clone(), jobs: *jobs };
        let mut most: Vec<UnknownState> = self.jobs.iter().map(state).collect();
        most.sort_by_key(|state| Reverse(state.jobs));
        let rest = most.split_off(most.len().min(SHOWN));
        let more = self.others + rest.iter().map(|state| state.jobs).sum::<u64>();
        UnknownStatesReport { remedy: status.and_then(|status| status.remedy(&most)), most, more }
    }
}

impl StatusLine {
    /// Returns what to write into the map so that it knows these states.
    fn remedy(&self, unknown: &[UnknownState]) -> Option<String> {
        let states: Vec<&str> = unknown.iter().map(|unknown| unknown.state.as_str()).collect();
        if states.is_empty() {
            return None;
        }
        let known = self.states.iter().flat_map(|states| &states.0);
        let mut words: Vec<(&str, Option<i64>)> =
            known.map(|(word, status)| (word.as_str(), *status)).collect();
        words.extend(states.iter().filter_map(|state| Some((*state, list_of(state)?.1))));
        let open: Vec<String> = states
            .iter()
            .filter(|state| list_of(state).is_none())
            .map(|state| format!("{state:?}"))
            .collect();
        let mut lists = lists(&words);
        let choice = match &open[..] {
            [] => String::new(),
            open if lists.is_empty() => {
                lists.push(format!("failed = [{}]", open.join(", ")));
                "; in place of failed, choose what is right: completed, timeout, cancelled or unfinished"
                    .into()
            }
            open => format!(
                ", and {} in the list that is right: completed, failed, timeout, cancelled or unfinished",
                open.join(", ")
            ),
        };
        Some(format!(
            "to read them, write in {}: status = {{ column = {:?}, {} }}{choice}",
            self.place,
            self.column,
            lists.join(", ")
        ))
    }
}

/// Returns the list that a word usually belongs to, with its status.
pub(super) fn list_of(state: &str) -> Option<(&'static str, Option<i64>)> {
    let state = state.to_lowercase();
    let found = LISTS.iter().find(|(.., parts)| parts.iter().any(|part| state.contains(part)));
    found.map(|(list, status, _)| (*list, *status))
}

/// Returns the lists of words as a map has them.
pub(super) fn lists(words: &[(&str, Option<i64>)]) -> Vec<String> {
    let list = |(name, status, _): &(&str, Option<i64>, &[&str])| {
        let of: Vec<String> =
            words.iter().filter(|(_, of)| of == status).map(|(word, _)| format!("{word:?}")).collect();
        (!of.is_empty()).then(|| format!("{name} = [{}]", of.join(", ")))
    };
    LISTS.iter().filter_map(list).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_states_are_named() {
        let mut states = UnknownStates::default();
        for state in 0..1_200 {
            (0..=state % 12).for_each(|_| states.add(&format!("s{state}")));
        }
        let UnknownStatesReport { most, more, remedy } = states.report(None);
        assert_eq!(most.len(), SHOWN);
        assert_eq!((most[0].state.as_str(), most[0].jobs), ("s107", 12));
        let all: u64 = (0..1_200).map(|state| state % 12 + 1).sum();
        assert_eq!(most.iter().map(|state| state.jobs).sum::<u64>() + more, all);
        assert_eq!(remedy, None);
        assert_eq!(states.jobs.len(), MOST);
    }

    #[test]
    fn the_line_to_write() {
        let unknown = |states: &[&str]| -> Vec<UnknownState> {
            states.iter().map(|state| UnknownState { state: (*state).to_owned(), jobs: 1 }).collect()
        };
        let states = Some(States(vec![("Succeeded".into(), Some(1)), ("Failed".into(), Some(0))]));
        let line = StatusLine { column: "pod phase".into(), states, place: "my.toml:9".into() };
        assert_eq!(
            line.remedy(&unknown(&["Running", "Pending"])).unwrap(),
            "to read them, write in my.toml:9: status = { column = \"pod phase\", completed = [\"Succeeded\"], failed = [\"Failed\"], unfinished = [\"Running\", \"Pending\"] }"
        );
        let line = StatusLine { states: None, ..line };
        assert_eq!(
            line.remedy(&unknown(&["X", "Y", "KILLED"])).unwrap(),
            "to read them, write in my.toml:9: status = { column = \"pod phase\", cancelled = [\"KILLED\"] }, and \"X\", \"Y\" in the list that is right: completed, failed, timeout, cancelled or unfinished"
        );
        let only = line.remedy(&unknown(&["X"])).unwrap();
        let expect = "status = { column = \"pod phase\", failed = [\"X\"] }; in place of failed, choose what is right: completed, timeout, cancelled or unfinished";
        assert!(only.ends_with(expect), "{only}");
        assert!(line.remedy(&[]).is_none());
    }
}
