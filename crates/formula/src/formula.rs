//! The formula: parsed once, evaluated often.

use crate::error::FormulaError;
use crate::exact::ExactProgram;
use crate::fraction::Fraction;
use crate::op::Op;
use crate::parser::parse;
use crate::program::Program;

/// A formula over named values: what it says is in the [crate's documentation](crate).
///
/// Two formulas are equal if they have the same steps over the same names; how they were spaced does not matter. What
/// is displayed parses to an equal formula.
#[derive(Clone, Debug)]
pub struct Formula {
    names: Vec<String>,
    /// As written, in postfix order.
    steps: Vec<Op>,
    program: Program,
    /// The same over fractions, if all operations allow that.
    exact: Option<ExactProgram>,
}

impl Formula {
    /// How many values may wait for their operation at once: `a + (b + (c + ...` has one more waiting at each step.
    pub const MOST_WAITING: usize = 32;

    /// How deep a text may nest: each parenthesis, call, prefix and right-hand side is a level, until it ends.
    pub const MOST_NESTED: usize = 200;

    /// How many numbers, names and operations a formula may have.
    pub const MOST_STEPS: usize = 1000;

    /// Parses a text over these names: `[A-Za-z_][A-Za-z0-9_.]*`, and not `and`, `or` or `not`; what else they are, the
    /// text cannot name. Upper and lower case differ.
    ///
    /// # Errors
    /// A [`FormulaError`] with the place and the problem; no text makes it panic.
    ///
    /// # Example
    /// ```
    /// use miserly_formula::Formula;
    /// let error = Formula::parse("wait / estmate", &["wait", "estimate"]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"formula, character 8, at "estmate": there is no "estmate", did you mean "estimate"; there are wait, estimate"#
    /// );
    /// ```
    pub fn parse(text: &str, names: &[&str]) -> Result<Formula, FormulaError> {
        let steps = parse(text, names)?;
        let program = Program::of(&steps);
        let exact = ExactProgram::new(&steps);
        Ok(Formula { names: names.iter().map(|&name| name.to_owned()).collect(), steps, program, exact })
    }

    /// The value, given those of the names in the order in which [`Formula::parse`] was given them. May be infinite or NaN.
    ///
    /// Allocates nothing; the same values give the same bits on every platform, but for which NaN it is.
    ///
    /// # Panics
    /// If there are not as many values as names.
    pub fn eval(&self, values: &[f64]) -> f64 {
        assert_eq!(values.len(), self.names.len(), "one value for each name");
        self.program.run(values)
    }

    /// Returns the float that is nearest to the exact value; `None` if there is no exact value at hand.
    ///
    /// That is so if an operation leaves the rational numbers, at a division by 0, and where a numerator or denominator
    /// passes 127 bits. Allocates nothing.
    ///
    /// ```
    /// use miserly_formula::{Formula, Fraction};
    ///
    /// let formula = Formula::parse("0.1 * a + 0.2 * b", &["a", "b"])?;
    /// let one = [1, 1].map(Fraction::from);
    /// let other = [3, 0].map(Fraction::from);
    /// assert_eq!(formula.eval_exactly(&one), formula.eval_exactly(&other));
    /// assert_ne!(formula.eval(&[1.0, 1.0]), 0.3);
    /// # Ok::<(), miserly_formula::FormulaError>(())
    /// ```
    ///
    /// # Panics
    /// If there are not as many values as names.
    pub fn eval_exactly(&self, values: &[Fraction]) -> Option<f64> {
        assert_eq!(values.len(), self.names.len(), "one value for each name");
        self.exact.as_ref()?.run(values).map(Fraction::nearest)
    }

    /// Whether the formula mentions the name with this index, so that its value can matter.
    pub fn uses(&self, name: usize) -> bool {
        self.steps.contains(&Op::Name(name))
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
