//! Errors in the text of a formula.

use crate::formula::Formula;

/// An error in the text of a formula, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("formula, {}: {problem}", place(*.character, .near))]
pub struct FormulaError {
    character: usize,
    near: String,
    problem: FormulaProblem,
}

/// The kind of an error in a formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormulaProblem {
    /// A value is missing.
    #[error("expected a value: a number, a name, a function or a parenthesis")]
    NoValue,
    /// A value is followed by an invalid token.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A name is unknown.
    #[error("unknown name {name:?}{}; known: {known}", suggestion(.nearest.as_deref()))]
    UnknownName {
        /// The name.
        name: String,
        /// Most similar known name.
        nearest: Option<String>,
        /// All known names.
        known: String,
    },
    /// A function is unknown.
    #[error("unknown function {name:?}{}; known: {known}", suggestion(.nearest.as_deref()))]
    UnknownFunction {
        /// The name.
        name: String,
        /// Most similar function.
        nearest: Option<String>,
        /// All functions.
        known: String,
    },
    /// A function has no parentheses.
    #[error("{0} is a function: write {0}(...)")]
    NoArguments(&'static str),
    /// A function has the wrong number of arguments.
    #[error("{function} has {has} arguments and takes {takes}")]
    Arguments {
        /// Function.
        function: &'static str,
        /// Required number of arguments.
        takes: usize,
        /// Actual number of arguments.
        has: usize,
    },
    /// A sign is unknown.
    #[error("unknown sign {sign:?}{}", .instead.map_or_else(String::new, |sign| format!("; write {sign}")))]
    UnknownSign {
        /// The sign.
        sign: String,
        /// Equivalent sign of this language.
        instead: Option<&'static str>,
    },
    /// A number is malformed or too large.
    #[error("{0:?} is not a finite number")]
    Number(String),
    /// A comparison has three sides.
    #[error("a comparison has two sides: join two of them with `and`")]
    ChainedComparison,
    /// `not` follows an operator that binds tighter.
    #[error("`not` binds less tightly than the operator before it: put it in parentheses")]
    NotInside,
    /// The formula is nested too deeply.
    #[error(
        "nested too deeply; at most {} levels and {} waiting values",
        Formula::MAX_NESTING,
        Formula::MAX_WAITING
    )]
    TooDeep,
    /// The formula has too many operations.
    #[error("too long; a formula has at most {} numbers, names and operations", Formula::MAX_STEPS)]
    TooLong,
}

impl FormulaError {
    /// Creates an error at a byte of the text, which must be the start of a character or the end.
    pub(crate) fn new(text: &str, at: usize, problem: FormulaProblem) -> FormulaError {
        /// Characters of the quoted text.
        const QUOTED: usize = 20;
        let (before, after) = text.split_at(at);
        FormulaError {
            character: before.chars().count() + 1,
            near: after.chars().take(QUOTED).collect(),
            problem,
        }
    }

    /// Returns the position. The first character is 1, and the end is one beyond the last.
    pub fn character(&self) -> usize {
        self.character
    }

    /// Returns the kind of the error.
    pub fn problem(&self) -> &FormulaProblem {
        &self.problem
    }
}

fn place(character: usize, near: &str) -> String {
    if near.is_empty() { "at its end".to_owned() } else { format!("character {character}, at {near:?}") }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean {name:?}"))
}

/// Returns the most similar candidate, or `None` if none is similar. Ties prefer the first.
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
