//! The results of an experiment: the content of its folder, and the search for figures in it.

mod batches;

mod flat;

mod rows;

use std::collections::BTreeMap;

use miserly_sim::mean_with_half_width;
use serde_json::Value;

use crate::experiment::{ExperimentError, Index, IndexedRun, MAIN, READING, Store};
use crate::selector::Selector;

pub(crate) use batches::differences;
pub use rows::csv;
#[cfg(feature = "parquet")]
pub use rows::parquet;

/// The results of an experiment, read.
pub struct Results {
    /// The index of the folder.
    pub index: Index,
    documents: BTreeMap<String, Value>,
    traces: BTreeMap<String, Value>,
}

/// The runs that a selector finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    /// The documents of runs that differ in nothing but the seed.
    Runs(Vec<&'a Value>),
    /// The log is missing.
    NoLog,
}

impl Found<'_> {
    /// Returns the keys of the runs.
    pub fn keys(&self) -> Vec<String> {
        let key = |document: &&Value| document.get("key").and_then(Value::as_str).map(str::to_owned);
        match self {
            Found::NoLog => vec![],
            Found::Runs(documents) => documents.iter().filter_map(key).collect(),
        }
    }
}

/// A figure over the seeds of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The mean over the seeds.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval: over the seeds, or, of one run in batches, over these; `None` where there is none.
    pub half_width: Option<f64>,
}

impl Results {
    /// Reads a folder of results.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn read(store: &Store) -> Result<Results, ExperimentError> {
        let mut index: Index = store.read_json("index.json")?;
        // An older folder has no readings.
        for run in &mut index.runs {
            run.axes.entry(READING.into()).or_insert_with(|| MAIN.into());
        }
        let mut documents = BTreeMap::new();
        for run in index.runs.iter().filter(|run| !run.key.is_empty()) {
            if !documents.contains_key(&run.key) {
                documents.insert(run.key.clone(), store.read_json(Store::run(&run.key))?);
            }
        }
        let mut traces = BTreeMap::new();
        for trace in index.traces.iter().filter(|trace| trace.missing.is_none()) {
            traces.insert(trace.name.clone(), store.read_json(Store::trace(&trace.name))?);
        }
        Ok(Results { index, documents, traces })
    }

    /// Returns results that are in no folder: runs with their documents.
    pub(crate) fn in_memory(index: Index, documents: BTreeMap<String, Value>) -> Results {
        Results { index, documents, traces: BTreeMap::new() }
    }

    /// Returns the documents of the runs that `select` chooses, of the main reading if it names none.
    ///
    /// # Errors
    /// If there is no such run, or if they differ in more than the seed.
    pub fn find(&self, select: &Selector) -> Result<Found<'_>, String> {
        let runs = self.matching(&in_reading(select))?;
        if let Some(axis) = ambiguous(&runs, &["runs", "seed"]) {
            return Err(format!("{select}: the runs differ in {axis}; give {axis} = ..."));
        }
        self.documents_of(&runs)
    }

    /// Returns the runs that `select` chooses, by their values of `axis`, in numerical order where they are numbers.
    ///
    /// # Errors
    /// If there is no such run, or if those of one value differ in more than the seed.
    pub fn along(&self, select: &Selector, axis: &str) -> Result<Vec<(String, Found<'_>)>, String> {
        let runs = self.matching(&if axis == READING { select.clone() } else { in_reading(select) })?;
        // The written form of the estimates goes with the model and the factor.
        if let Some(other) = ambiguous(&runs, &["runs", "seed", "estimates", axis]) {
            return Err(format!("{select}: the runs also differ in {other}; give {other} = ..."));
        }
        let mut values: Vec<&String> = Vec::new();
        for value in runs.iter().filter_map(|run| run.axes.get(axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        // Names stay in the order of the file.
        if values.iter().all(|value| value.parse::<f64>().is_ok()) {
            values.sort_by(|a, b| numbers(a, b));
        }
        let of = |value: &String| {
            let runs: Vec<&IndexedRun> =
                runs.iter().copied().filter(|run| run.axes.get(axis) == Some(value)).collect();
            Ok((value.clone(), self.documents_of(&runs)?))
        };
        values.into_iter().map(of).collect()
    }

    /// Returns the description of a log; `None` if it is missing.
    pub fn trace(&self, name: &str) -> Option<&Value> {
        self.traces.get(name)
    }

    /// Returns the number of different runs.
    pub fn count(&self) -> usize {
        self.documents.len()
    }

    /// Returns whether some run has a figure or a text at this path; so has every one where there are no runs.
    pub fn has(&self, path: &str) -> bool {
        let scalar = |document: &Value| {
            at(&document["run"], path).is_some_and(|value| !value.is_object() && !value.is_array())
        };
        self.documents.is_empty() || self.documents.values().any(scalar)
    }

    /// Returns the seeds of the runs.
    pub fn seeds(&self) -> Vec<String> {
        let mut seeds: Vec<String> =
            self.index.runs.iter().filter_map(|run| run.axes.get("seed").cloned()).collect();
        seeds.sort_by(|a, b| numbers(a, b));
        seeds.dedup();
        seeds
    }

    fn matching(&self, select: &Selector) -> Result<Vec<&IndexedRun>, String> {
        let runs: Vec<&IndexedRun> = self.index.runs.iter().filter(|run| select.matches(&run.axes)).collect();
        if runs.is_empty() { Err(format!("no run has {select}")) } else { Ok(runs) }
    }

    /// The documents of runs that differ in nothing but the seed, in the order of the experiment, so that the same
    /// figures are summed in the same order.
    fn documents_of(&self, runs: &[&IndexedRun]) -> Result<Found<'_>, String> {
        let mut of_seed: BTreeMap<&str, &IndexedRun> = BTreeMap::new();
        let mut documents = Vec::new();
        for run in runs.iter().filter(|run| !run.key.is_empty()) {
            let before = *of_seed.entry(run.axis("seed")).or_insert(run);
            if before.key != run.key {
                let (a, b) = (before.axis("runs"), run.axis("runs"));
                return Err(format!(
                    "the blocks of runs {a:?} and {b:?} both have such runs, with different settings; give runs = ..."
                ));
            }
            if std::ptr::eq(before, *run) {
                documents.extend(self.documents.get(&run.key));
            }
        }
        Ok(if documents.is_empty() { Found::NoLog } else { Found::Runs(documents) })
    }
}

impl IndexedRun {
    fn axis(&self, name: &str) -> &str {
        self.axes.get(name).map_or("", String::as_str)
    }
}

/// Returns the selector with the main reading, if it names none.
fn in_reading(select: &Selector) -> Selector {
    Selector::new([(READING, MAIN)]).and(select)
}

/// Returns the first axis in which the runs differ, except for those named.
fn ambiguous(runs: &[&IndexedRun], but: &[&str]) -> Option<String> {
    let first = runs.first()?;
    let differs = |axis: &&String| runs.iter().any(|run| run.axes.get(*axis) != first.axes.get(*axis));
    first.axes.keys().filter(|axis| !but.contains(&axis.as_str())).find(differs).cloned()
}

/// Numbers by value, before texts.
fn numbers(a: &str, b: &str) -> std::cmp::Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}

/// Returns the value at a path of a document: names of fields, with points between them.
pub fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(document, |value, field| match value {
        Value::Array(items) => field.parse::<usize>().ok().and_then(|at| items.get(at)),
        _ => value.get(field),
    })
}

/// Returns the figure at a path, over the documents of several seeds.
///
/// # Errors
/// If there is no number there.
pub fn figure(documents: &[&Value], path: &str) -> Result<Option<Figure>, String> {
    let mut values = Vec::new();
    for document in documents {
        match at(document, path) {
            Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => values.extend(number.as_f64()),
            _ => {
                let path = path.strip_prefix("run.").unwrap_or(path);
                return Err(format!(
                    "{path:?} is not a number in the document of a run (docs/simulate.schema.json)"
                ));
            }
        }
    }
    match documents {
        [only] => {
            Ok(Some(Figure { half_width: batches::half_width(only, path), ..Figure::from_values(&values) }))
        }
        _ => Ok(Some(Figure::from_values(&values))),
    }
}

impl Figure {
    /// Returns the mean of values that were drawn alike, with its confidence interval.
    fn from_values(values: &[f64]) -> Figure {
        let (mean, half_width) = mean_with_half_width(values);
        Figure { mean, half_width }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Runs of a policy by block, factor and seed, each with a wait.
    fn results(runs: &[(&str, &str, &str, &str, f64)]) -> Results {
        let (mut indexed, mut documents) = (Vec::new(), BTreeMap::new());
        for (key, block, factor, seed, wait) in runs {
            let axes =
                [("runs", block), ("policy", &"easy"), ("factor", factor), ("seed", seed), (READING, &MAIN)];
            let axes = axes.into_iter().map(|(axis, value)| (axis.to_owned(), (*value).to_owned())).collect();
            indexed.push(IndexedRun { axes, key: (*key).to_owned() });
            documents.insert((*key).to_owned(), json!({ "key": key, "run": { "wait": wait, "none": null } }));
        }
        let text = |text: &str| text.to_owned();
        let index = Index {
            version: text("0"),
            sources: text("0"),
            command: text("test"),
            file: text("test.toml"),
            traces: vec![],
            runs: indexed,
        };
        Results::in_memory(index, documents)
    }

    fn select(axis: &str, value: &str) -> Selector {
        Selector::new([(axis, value)])
    }

    #[test]
    fn a_mean_over_seeds_and_its_interval() {
        let three = Figure::from_values(&[1.0, 2.0, 6.0]);
        assert!((three.mean - 3.0).abs() < 1e-12);
        // Deviation sqrt(7), t 4.302653 with 2 degrees of freedom, over sqrt(3).
        assert!((three.half_width.unwrap() - 4.302_653 * 7.0_f64.sqrt() / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Figure::from_values(&[5.0]), Figure { mean: 5.0, half_width: None });
    }

    #[test]
    fn seeds_are_found_together_and_blocks_are_not() {
        let seeds = results(&[("a", "one", "2", "1", 10.0), ("b", "one", "2", "2", 20.0)]);
        let Found::Runs(documents) = seeds.find(&select("policy", "easy")).unwrap() else {
            panic!("no runs")
        };
        let wait = figure(&documents, "run.wait");
        assert_eq!(wait.map(|wait| wait.map(|wait| wait.mean)), Ok(Some(15.0)));
        assert_eq!(figure(&documents, "run.none"), Ok(None));
        assert!(figure(&documents, "run.weight").unwrap_err().contains("\"weight\" is not a number"));
        // The same run in two blocks is one; two runs of one seed are not to be averaged.
        let same = results(&[("a", "one", "2", "1", 10.0), ("a", "two", "2", "1", 10.0)]);
        assert_eq!(same.find(&select("policy", "easy")).unwrap().keys(), ["a"]);
        let other = results(&[("a", "one", "2", "1", 10.0), ("b", "two", "2", "1", 20.0)]);
        let problem = other.find(&select("policy", "easy")).unwrap_err();
        assert!(problem.contains("\"one\" and \"two\" both have such runs"), "{problem}");
        assert_eq!(other.find(&select("runs", "two")).unwrap().keys(), ["b"]);
    }

    #[test]
    fn along_an_axis_in_the_order_of_numbers() {
        let runs = [("a", "one", "10", "1", 1.0), ("b", "one", "2", "1", 2.0), ("c", "one", "2", "2", 4.0)];
        let results = results(&runs);
        let found = results.along(&select("policy", "easy"), "factor").unwrap();
        let keys: Vec<_> = found.iter().map(|(value, found)| (value.as_str(), found.keys())).collect();
        assert_eq!(keys, [("2", vec!["b".to_owned(), "c".to_owned()]), ("10", vec!["a".to_owned()])]);
        assert!(results.find(&select("policy", "easy")).unwrap_err().contains("differ in factor"));
        assert!(results.find(&select("policy", "fcfs")).unwrap_err().contains("no run has policy = fcfs"));
    }
}
