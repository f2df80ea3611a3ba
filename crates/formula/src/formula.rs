//! A formula, parsed once and evaluated often.

use crate::error::FormulaError;
use crate::exact::ExactProgram;
use crate::fraction::Fraction;
use crate::integers;
use crate::interval::{self, Interval};
use crate::linear::{self, Linear};
use crate::op::Op;
use crate::parser::parse;
use crate::program::Program;

/// A formula over named values, in the language of the [crate's documentation](crate).
///
/// Two formulas are equal if they have the same steps over the same names; spacing is ignored. The
/// displayed text parses to an equal formula.
#[derive(Clone, Debug)]
pub struct Formula {
    names: Vec<String>,
    /// Steps as written, in postfix order.
    steps: Vec<Op>,
    program: Program,
    /// The same over fractions, if all operations allow that.
    exact: Option<ExactProgram>,
    /// The magnitude of integers up to which the value is rounded once.
    integer_limit: Option<f64>,
}

impl Formula {
    /// Maximum number of values that wait for their operation.
    ///
    /// Each step of `a + (b + (c + ...` adds one.
    pub const MAX_WAITING: usize = 32;

    /// Maximum nesting: each parenthesis, call, prefix and right-hand side is a level.
    pub const MAX_NESTING: usize = 200;

    /// Maximum number of numbers, names and operations.
    pub const MAX_STEPS: usize = 1000;

    /// Parses a text over these names, in which upper and lower case differ.
    ///
    /// A text can refer to names of the form `[A-Za-z_][A-Za-z0-9_.]*`, except `and`, `or` and
    /// `not`.
    ///
    /// # Errors
    /// A [`FormulaError`] with the position and the problem. No text causes a panic.
    ///
    /// # Example
    /// ```
    /// use miserly_formula::Formula;
    /// let error = Formula::parse("wait / estmate", &["wait", "estimate"]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"formula, character 8, at "estmate": unknown name "estmate", did you mean "estimate"; known: wait, estimate"#
    /// );
    /// ```
    pub fn parse(text: &str, names: &[&str]) -> Result<Formula, FormulaError> {
        let steps = parse(text, names)?;
        let program = Program::new(&steps);
        let exact = ExactProgram::new(&steps);
        let integer_limit = integers::limit(&steps);
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Ok(Formula { names, steps, program, exact, integer_limit })
    }

    /// Evaluates the formula with one value per name, in the order of [`Formula::parse`].
    ///
    /// The result may be infinite or NaN. Allocates nothing. The same values give the same bits on
    /// every platform, except for the kind of NaN.
    ///
    /// # Panics
    /// The number of values differs from the number of names.
    pub fn eval(&self, values: &[f64]) -> f64 {
        assert_eq!(values.len(), self.names.len(), "one value for each name");
        self.program.run(values)
    }

    /// Returns the exact value, or `None` if there is none.
    ///
    /// That is so if an operation leaves the rational numbers, after a division by 0, or if a
    /// numerator or denominator exceeds 127 bits. Allocates nothing.
    ///
    /// ```
    /// use miserly_formula::{Formula, Fraction};
    ///
    /// let formula = Formula::parse("0.1 * a + 0.2 * b", &["a", "b"])?;
    /// let one = [1, 1].map(Fraction::from);
    /// let other = [3, 0].map(Fraction::from);
    /// let nearest = |values| formula.eval_exactly(values).map(Fraction::nearest);
    /// assert_eq!(nearest(&one), nearest(&other));
    /// assert_ne!(formula.eval(&[1.0, 1.0]), 0.3);
    /// # Ok::<(), miserly_formula::FormulaError>(())
    /// ```
    ///
    /// # Panics
    /// The number of values differs from the number of names.
    pub fn eval_exactly(&self, values: &[Fraction]) -> Option<Fraction> {
        assert_eq!(values.len(), self.names.len(), "one value for each name");
        self.exact.as_ref()?.run(values)
    }

    /// Returns the float that is nearest to the exact value, if one rounding is enough: for integer values that are not
    /// too large, in a formula with no division before its last step.
    ///
    /// It is equal to `eval_exactly(..).nearest()`, and several times as fast. Allocates nothing.
    ///
    /// ```
    /// use miserly_formula::Formula;
    ///
    /// let formula = Formula::parse("(a + b) / b", &["a", "b"])?;
    /// assert_eq!(formula.eval_integers(&[2.0, 3.0]), Some(5.0 / 3.0));
    /// assert_eq!(formula.eval_integers(&[0.5, 3.0]), None);
    /// # Ok::<(), miserly_formula::FormulaError>(())
    /// ```
    ///
    /// # Panics
    /// The number of values differs from the number of names.
    pub fn eval_integers(&self, values: &[f64]) -> Option<f64> {
        let limit = self.integer_limit?;
        if values.iter().any(|value| value.fract() != 0.0 || value.abs() > limit) {
            return None;
        }
        // A sum with 0 has no negative zero.
        Some(self.eval(values) + 0.0).filter(|value| value.is_finite())
    }

    /// Returns bounds on the value, exact or not, where each name has any value in its interval. Allocates nothing.
    ///
    /// # Panics
    /// The number of intervals differs from the number of names.
    pub fn bounds(&self, values: &[Interval]) -> Interval {
        assert_eq!(values.len(), self.names.len(), "one interval for each name");
        interval::run(&self.steps, values)
    }

    /// Returns whether the formula is at most linear in this name: the name is neither multiplied with itself, nor an
    /// operand of a function, nor a divisor.
    pub fn is_linear_in(&self, name: usize) -> bool {
        linear::is_linear(&self.steps, name)
    }

    /// Returns the formula as a function of this name, if it [is linear](Formula::is_linear_in); else without a limit.
    /// The value of the name itself is ignored. Allocates nothing.
    ///
    /// # Panics
    /// The number of intervals differs from the number of names.
    pub fn linear(&self, name: usize, values: &[Interval]) -> Linear {
        assert_eq!(values.len(), self.names.len(), "one interval for each name");
        linear::run(&self.steps, name, |index| values[index]).unwrap_or(Linear::ANY)
    }

    /// Returns whether the formula mentions the name with this index.
    pub fn uses(&self, name: usize) -> bool {
        self.steps.contains(&Op::Name(name))
    }

    /// Returns how often the formula mentions the name with this index.
    pub fn count(&self, name: usize) -> usize {
        self.steps.iter().filter(|step| **step == Op::Name(name)).count()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn steps(&self) -> &[Op] {
        &self.steps
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Formula) -> bool {
        // The program follows from the steps.
        self.names == other.names && self.steps == other.steps
    }
}

/// No number in the text is NaN.
impl Eq for Formula {}
