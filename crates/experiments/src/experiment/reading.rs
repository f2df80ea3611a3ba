//! Readings of what a paper leaves open, and their combinations.

use toml::Spanned;

use super::axes::{MAIN, READING};
use super::checked::Experiment;
use super::file::{Options, ReadingFile, RunsFile};
use crate::selector::Selector;

/// A combination of readings: at most one of each convention.
#[derive(Clone, Debug, Default)]
pub struct Reading<'a> {
    parts: Vec<&'a ReadingFile>,
}

impl Experiment {
    /// Returns the combinations of the experiment's readings. The first one has none.
    pub fn readings(&self) -> Vec<Reading<'_>> {
        let mut combined = vec![Reading::default()];
        let readings = || self.file.readings.iter().map(Spanned::get_ref);
        let mut conventions: Vec<&str> = Vec::new();
        for convention in readings().map(|reading| reading.convention.as_str()) {
            if conventions.contains(&convention) {
                continue;
            }
            conventions.push(convention);
            let before = combined.clone();
            for reading in readings().filter(|reading| reading.convention == convention) {
                combined.extend(before.iter().map(|other| other.with(reading)));
            }
        }
        combined
    }
}

impl<'a> Reading<'a> {
    fn with(&self, part: &'a ReadingFile) -> Reading<'a> {
        Reading { parts: self.parts.iter().copied().chain([part]).collect() }
    }

    /// Returns its value in the axis of the readings.
    pub fn name(&self) -> String {
        match &self.parts[..] {
            [] => MAIN.into(),
            parts => parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(" + "),
        }
    }

    /// Returns what it changes of a block of runs.
    pub(super) fn of(&self, block: &RunsFile) -> Reading<'a> {
        let of_block = |part: &&&ReadingFile| {
            part.runs.is_empty() || part.runs.iter().any(|name| name.get_ref() == &block.name)
        };
        Reading { parts: self.parts.iter().filter(of_block).copied().collect() }
    }

    /// Returns the log that it takes for `name`. Of several readings, each changes what the one before it took.
    pub(super) fn trace<'b>(&'b self, name: &'b str) -> &'b str {
        self.parts.iter().fold(name, |name, part| part.traces.get(name).map_or(name, |taken| taken.get_ref()))
    }

    /// Returns the selector of its runs in place of those that `select` chooses.
    pub fn of_runs(&self, select: &Selector) -> Selector {
        Selector::new([(READING, &self.name())]).and(select)
    }

    /// Returns the selector of the description of its log, in place of that of `select`.
    pub fn of_log(&self, select: &Selector) -> Selector {
        match select.get("trace") {
            Some(trace) => select.and(&Selector::new([("trace", self.trace(trace))])),
            None => select.clone(),
        }
    }

    /// Returns the policy that it takes for `label`.
    pub(super) fn policy<'b>(&'b self, label: &'b Spanned<String>) -> &'b Spanned<String> {
        self.parts.iter().fold(label, |label, part| part.policies.get(label.get_ref()).unwrap_or(label))
    }

    /// Returns the model of the estimates that it takes for `model`.
    pub(super) fn estimates<'b>(&'b self, model: &'b Spanned<String>) -> &'b Spanned<String> {
        self.parts.iter().fold(model, |model, part| part.estimates.get(model.get_ref()).unwrap_or(model))
    }

    /// Returns the options that win over those of the runs.
    pub(super) fn options(&self, of_runs: &Options) -> Options {
        self.parts.iter().fold(of_runs.clone(), |below, part| part.options.over(&below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_one_convention_exclude_each_other() {
        let reading = |name: &str, convention: &str| {
            format!("[[reading]]\nname = '{name}'\nconvention = '{convention}'\n")
        };
        let text =
            ["title = 'three'\n".into(), reading("a", "one"), reading("c", "two"), reading("b", "one")];
        let experiment = Experiment::parse("three.toml", text.concat()).unwrap();
        let names: Vec<String> = experiment.readings().iter().map(Reading::name).collect();
        assert_eq!(names, ["main", "a", "b", "c", "a + c", "b + c"]);
    }
}
