//! Selectors: which runs, by the values of the axes in which runs differ.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// A choice of runs: axes, each with a value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, Scalar>")]
pub struct Selector(BTreeMap<String, String>);

impl Selector {
    /// Returns the selector of these axes and values.
    pub fn new<const N: usize>(values: [(&str, &str); N]) -> Selector {
        Selector(values.into_iter().map(|(axis, value)| (axis.to_owned(), value.to_owned())).collect())
    }

    /// Returns both selectors as one. The values of `other` win.
    #[must_use]
    pub fn and(&self, other: &Selector) -> Selector {
        let values = self.0.iter().chain(&other.0);
        Selector(values.map(|(axis, value)| (axis.clone(), value.clone())).collect())
    }

    /// Returns the value of an axis.
    pub fn get(&self, axis: &str) -> Option<&str> {
        self.0.get(axis).map(String::as_str)
    }

    /// Returns the axes that have a value.
    pub fn axes(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the values, in the order of the names of the axes.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// Returns whether a run with these values is one of the runs.
    pub fn matches(&self, run: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|(axis, value)| run.get(axis) == Some(value))
    }
}

impl From<BTreeMap<String, Scalar>> for Selector {
    fn from(values: BTreeMap<String, Scalar>) -> Selector {
        Selector(values.into_iter().map(|(axis, value)| (axis, value.text())).collect())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// A value of an axis or of a parameter, as a file writes it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Scalar {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A yes or no.
    Flag(bool),
}

impl Scalar {
    /// Returns the value as the axes of a run have it.
    pub fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Whole(number) => number.to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Flag(flag) => flag.to_string(),
        }
    }
}
