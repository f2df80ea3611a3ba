//! Bounds on formulas that rise or fall with one name in proportion.

use crate::formula::Formula;
use crate::interval::{self, Interval};
use crate::op::{Binary, Op, Unary};

/// A line that no value of a formula exceeds: `at_zero + slope * x`, for each x of 0 or more.
///
/// ```
/// use miserly_formula::{Formula, Interval};
///
/// let formula = Formula::parse("(wait + estimate) / estimate", &["wait", "estimate"])?;
/// assert!(formula.is_linear_in(0));
/// let line = formula.linear(0, &[Interval::ANY, Interval::from_rounded(30.0)]).most();
/// assert!(line.at(60.0) >= 3.0 && line.at(60.0) < 3.001);
/// # Ok::<(), miserly_formula::FormulaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The value at 0: finite, or infinity for a line without a limit.
    pub at_zero: f64,
    /// What each unit adds: finite.
    pub slope: f64,
}

impl Line {
    /// Returns a line that each value is below or at, infinity included.
    pub const UNLIMITED: Line = Line { at_zero: f64::INFINITY, slope: 0.0 };

    /// Returns the line with one value everywhere.
    pub const fn level(value: f64) -> Line {
        Line { at_zero: value, slope: 0.0 }
    }

    /// Returns the value here.
    #[inline]
    pub fn at(self, x: f64) -> f64 {
        self.at_zero + self.slope * x
    }

    /// Returns a line above this one, by more than errors of rounding in [`Line::at`].
    #[must_use]
    pub fn raised(self) -> Line {
        Line {
            at_zero: self.at_zero + MARGIN * self.at_zero.abs(),
            slope: self.slope + MARGIN * self.slope.abs(),
        }
    }
}

/// More than the relative error of [`Formula::MAX_STEPS`] operations.
const MARGIN: f64 = 1e-12;

/// Errors of smaller numbers are not in proportion to them.
const TINY: f64 = 1e-250;

/// A formula of which only one name has no value yet, and in which it is neither multiplied with itself nor passed to a
/// function.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    at_zero: Interval,
    slope: Interval,
    /// The sum of all magnitudes at 0, and what a unit adds to it. Errors of rounding are in proportion.
    size: (f64, f64),
}

impl Linear {
    /// Any formula.
    pub(crate) const ANY: Linear = Linear { at_zero: Interval::ANY, slope: Interval::ANY, size: (0.0, 0.0) };

    /// Returns what each unit adds.
    pub fn slope(self) -> Interval {
        self.slope
    }

    /// Returns the formula with the other sign.
    #[must_use]
    pub fn negated(self) -> Linear {
        Linear { at_zero: self.at_zero.negated(), slope: self.slope.negated(), ..self }
    }

    /// Returns the formula, less this value.
    #[must_use]
    pub fn minus(self, value: Interval) -> Linear {
        self.plus(Linear::constant(value).negated())
    }

    /// Returns a line that is not below any value, exact or not.
    pub fn most(self) -> Line {
        let at_zero = self.at_zero.most() + MARGIN * self.size.0;
        let slope = self.slope.most() + MARGIN * self.size.1;
        if at_zero.is_finite() && slope.is_finite() { Line { at_zero, slope } } else { Line::UNLIMITED }
    }

    fn constant(value: Interval) -> Linear {
        Linear { at_zero: value, slope: Interval::from_rounded(0.0), size: (value.magnitude(), 0.0) }
    }

    fn plus(self, other: Linear) -> Linear {
        Linear {
            at_zero: self.at_zero.plus(other.at_zero),
            slope: self.slope.plus(other.slope),
            size: (self.size.0 + other.size.0, self.size.1 + other.size.1),
        }
    }

    fn times(self, factor: Interval) -> Linear {
        let size = (self.size.0 * factor.magnitude(), self.size.1 * factor.magnitude());
        if size.1 < TINY {
            return Linear::ANY;
        }
        Linear { at_zero: self.at_zero.times(factor), slope: self.slope.times(factor), size }
    }
}

/// A value on the stack.
#[derive(Clone, Copy)]
enum Form {
    Constant(Interval),
    Linear(Linear),
}

impl Form {
    fn linear(self) -> Linear {
        match self {
            Form::Constant(value) => Linear::constant(value),
            Form::Linear(linear) => linear,
        }
    }
}

/// Returns whether these steps are linear in this name, whatever values the others have.
pub(crate) fn is_linear(steps: &[Op], name: usize) -> bool {
    run(steps, name, |_| Interval::from_rounded(1.0)).is_some()
}

/// Returns the form of these steps; `None` if it is not linear.
pub(crate) fn run(steps: &[Op], name: usize, value: impl Fn(usize) -> Interval) -> Option<Linear> {
    let mut stack = [Form::Constant(Interval::ANY); Formula::MAX_WAITING];
    let mut top = 0;
    for &op in steps {
        top -= op.arity();
        stack[top] = match op {
            Op::Name(index) if index == name => Form::Linear(Linear {
                at_zero: Interval::from_rounded(0.0),
                slope: Interval::from_rounded(1.0),
                size: (0.0, 1.0),
            }),
            Op::Name(index) => Form::Constant(value(index)),
            _ => combine(op, &stack[top..top + op.arity()])?,
        };
        top += 1;
    }
    Some(stack[0].linear())
}

fn combine(op: Op, operands: &[Form]) -> Option<Form> {
    let mut constants = [Interval::ANY; 3];
    let mut known = 0;
    for operand in operands {
        if let Form::Constant(value) = *operand {
            constants[known] = value;
            known += 1;
        }
    }
    if known == operands.len() {
        return Some(Form::Constant(interval::apply_to(op, constants)));
    }
    let linear = match (op, operands) {
        (Op::Unary(Unary::Negate), [x]) => x.linear().negated(),
        (Op::Binary(Binary::Add), [x, y]) => x.linear().plus(y.linear()),
        (Op::Binary(Binary::Subtract), [x, y]) => x.linear().plus(y.linear().negated()),
        (
            Op::Binary(Binary::Multiply),
            [Form::Linear(x), Form::Constant(factor)] | [Form::Constant(factor), Form::Linear(x)],
        ) => x.times(*factor),
        (Op::Binary(Binary::Divide), [Form::Linear(x), Form::Constant(divisor)]) => {
            x.times(Interval::from_rounded(1.0).over(*divisor))
        }
        _ => return None,
    };
    Some(Form::Linear(linear))
}
