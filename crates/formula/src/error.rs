//! Why a text is no formula.

use crate::formula::Formula;

/// A text that is no formula: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("formula, {}: {problem}", place(*.character, .near))]
pub struct FormulaError {
    character: usize,
    near: String,
    problem: Problem,
}

/// What is wrong with a formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No value where one has to be.
    #[error("expected a value: a number, a name, a function or a parenthesis")]
    NoValue,
    /// A value is followed by something that cannot follow it.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A name that means nothing here.
    #[error("there is no {name:?}{}; there are {known}", suggestion(.nearest.as_deref()))]
    UnknownName {
        /// What was written.
        name: String,
        /// The known name that looks most like it.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// A function that there is not.
    #[error("there is no function {name:?}{}; there are {known}", suggestion(.nearest.as_deref()))]
    UnknownFunction {
        /// What was written.
        name: String,
        /// The function that looks most like it.
        nearest: Option<String>,
        /// Every function.
        known: String,
    },
    /// A function without its parenthesis.
    #[error("{0} is a function: write {0}(...)")]
    NoArguments(&'static str),
    /// A function with too few or too many values.
    #[error("{function} takes {takes}, and has {has}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// How many it takes.
        takes: usize,
        /// How many were written.
        has: usize,
    },
    /// A sign that means nothing.
    #[error("{sign:?} means nothing here{}", .instead.map_or_else(String::new, |sign| format!("; write {sign}")))]
    UnknownSign {
        /// What was written.
        sign: String,
        /// What was probably meant.
        instead: Option<&'static str>,
    },
    /// A number that is none, or larger than any that there is.
    #[error("{0:?} is not a number that can be held")]
    Number(String),
    /// A comparison of three values.
    #[error("a comparison has two sides: join two of them with `and`")]
    ChainedComparison,
    /// `not` where something binds tighter.
    #[error("`not` binds less tightly than what stands before it: put it in parentheses")]
    NotInside,
    /// Nested too deeply.
    #[error(
        "nested too deeply; at most {} levels, and {} values that wait for their operation",
        Formula::MOST_NESTED,
        Formula::MOST_WAITING
    )]
    TooDeep,
    /// Too many operations.
    #[error("too long; a formula has at most {} numbers, names and operations", Formula::MOST_STEPS)]
    TooLong,
}

impl FormulaError {
    /// An error at this byte of the text, which must be the first of a character or the end.
    pub(crate) fn new(text: &str, at: usize, problem: Problem) -> FormulaError {
        /// How much of the text is quoted.
        const QUOTED: usize = 20;
        let (before, after) = text.split_at(at);
        FormulaError {
            character: before.chars().count() + 1,
            near: after.chars().take(QUOTED).collect(),
            problem,
        }
    }

    /// Where it is: the first character of a text is 1, and its end one more than it has.
    pub fn character(&self) -> usize {
        self.character
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

fn place(character: usize, near: &str) -> String {
    if near.is_empty() { "at its end".to_owned() } else { format!("character {character}, at {near:?}") }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean {name:?}"))
}

/// The candidate that looks most like `wanted`, if one looks like it at all; of equals the first.
pub(crate) fn nearest<'a>(wanted: &str, among: impl Iterator<Item = &'a str>) -> Option<String> {
    const ALIKE: f64 = 0.7;
    let wanted = wanted.to_lowercase();
    let mut best = None;
    for name in among {
        let alike = strsim::jaro_winkler(&wanted, name);
        if alike >= best.map_or(ALIKE, |(most, _)| most) && best.is_none_or(|(most, _)| alike > most) {
            best = Some((alike, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}
