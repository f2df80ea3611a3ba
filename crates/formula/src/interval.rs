//! Bounds on the value of a formula, where each name has any value between two bounds.

use crate::formula::Formula;
use crate::integers::EXACT;
use crate::op::{Binary, MULTIPLIED_OUT, Op, Unary};

/// All numbers between two bounds, both included.
///
/// From minus infinity to infinity, NaN is included too. The bounds of a result contain the exact value and the value
/// in double precision, for all values of the operands.
///
/// ```
/// use miserly_formula::{Formula, Interval};
///
/// let formula = Formula::parse("(wait + estimate) / estimate", &["wait", "estimate"])?;
/// let bounds = formula.bounds(&[Interval::between(0.0, 60.0), Interval::from_rounded(30.0)]);
/// assert!(bounds.least() <= 1.0 && bounds.least() > 0.999);
/// assert!(bounds.most() >= 3.0 && bounds.most() < 3.001);
/// # Ok::<(), miserly_formula::FormulaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    least: f64,
    most: f64,
}

/// More than the relative error of a function of libm.
const FUNCTION_ERROR: f64 = 4.0 * f64::EPSILON;

impl Interval {
    /// Any value, NaN included.
    pub const ANY: Interval = Interval { least: f64::NEG_INFINITY, most: f64::INFINITY };

    /// Returns the interval of a number that was rounded once.
    pub fn from_rounded(value: f64) -> Interval {
        if value.fract() == 0.0 && value.abs() <= EXACT {
            return Interval { least: value, most: value };
        }
        rounded(value, value)
    }

    /// Returns the interval between two numbers, each of which was rounded once.
    pub fn between(least: f64, most: f64) -> Interval {
        Interval::from_rounded(least).hull(Interval::from_rounded(most))
    }

    /// Returns the lower bound.
    pub fn least(self) -> f64 {
        self.least
    }

    /// Returns the upper bound.
    pub fn most(self) -> f64 {
        self.most
    }

    /// Returns whether any value is possible, NaN included.
    pub fn is_any(self) -> bool {
        self == Interval::ANY
    }

    /// Returns the greatest distance of a value from 0.
    pub(crate) fn magnitude(self) -> f64 {
        self.least.abs().max(self.most.abs())
    }

    /// Returns the smallest interval that contains both.
    #[must_use]
    pub fn hull(self, other: Interval) -> Interval {
        Interval { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Returns the bounds on the number with the other sign.
    #[must_use]
    pub fn negated(self) -> Interval {
        Interval { least: -self.most, most: -self.least }
    }

    /// Returns the bounds on the difference.
    #[must_use]
    pub fn minus(self, other: Interval) -> Interval {
        rounded(self.least - other.most, self.most - other.least)
    }

    /// Returns the bounds on the product.
    #[must_use]
    pub fn times(self, other: Interval) -> Interval {
        let (x, y) = (self, other);
        of_corners([x.least * y.least, x.least * y.most, x.most * y.least, x.most * y.most])
    }

    pub(crate) fn plus(self, other: Interval) -> Interval {
        rounded(self.least + other.least, self.most + other.most)
    }

    pub(crate) fn over(self, other: Interval) -> Interval {
        let (x, y) = (self, other);
        if y.least <= 0.0 && y.most >= 0.0 {
            return Interval::ANY;
        }
        of_corners([x.least / y.least, x.least / y.most, x.most / y.least, x.most / y.most])
    }

    fn to_the(self, exponent: Interval) -> Interval {
        let whole = exponent.least;
        if whole < exponent.most || whole.fract() != 0.0 || whole.abs() > f64::from(MULTIPLIED_OUT) {
            return Interval::ANY;
        }
        let one = Interval::from_rounded(1.0);
        let factors = (1..=MULTIPLIED_OUT).take_while(|factor| f64::from(*factor) <= whole.abs());
        let product = factors.fold(one, |product, _| product.times(self));
        if whole < 0.0 { one.over(product) } else { product }
    }

    /// Whether the value is true; `None` if it may be either.
    fn truth(self) -> Option<bool> {
        if self.least > 0.0 || self.most < 0.0 {
            Some(true)
        } else {
            (self.least == 0.0 && self.most == 0.0).then_some(false)
        }
    }

    /// Whether the value is less than the other one; `None` if it may be or not.
    fn is_less(self, other: Interval) -> Option<bool> {
        if self.is_any() || other.is_any() {
            return None;
        }
        if self.most < other.least { Some(true) } else { (self.least >= other.most).then_some(false) }
    }

    fn is_equal(self, other: Interval) -> Option<bool> {
        match (self.is_less(other), other.is_less(self)) {
            (Some(true), _) | (_, Some(true)) => Some(false),
            (Some(false), Some(false)) => Some(true),
            _ => None,
        }
    }

    /// Returns the bounds on a function that never falls.
    fn under(self, function: impl Fn(f64) -> f64) -> Interval {
        let bounds = [function(self.least), function(self.most)];
        if self.is_any() || bounds.iter().any(|bound| bound.is_nan()) {
            return Interval::ANY;
        }
        let [least, most] = bounds;
        rounded(least - FUNCTION_ERROR * least.abs(), most + FUNCTION_ERROR * most.abs())
    }
}

/// Returns the interval of two results that were rounded once.
fn rounded(least: f64, most: f64) -> Interval {
    if least.is_nan() || most.is_nan() {
        return Interval::ANY;
    }
    Interval { least: least.next_down(), most: most.next_up() }
}

fn of_corners(corners: [f64; 4]) -> Interval {
    if corners.iter().any(|corner| corner.is_nan()) {
        return Interval::ANY;
    }
    rounded(
        corners.into_iter().fold(f64::INFINITY, f64::min),
        corners.into_iter().fold(f64::NEG_INFINITY, f64::max),
    )
}

/// Returns the value of a condition.
fn truth(holds: Option<bool>) -> Interval {
    match holds {
        Some(holds) => Interval::from_rounded(f64::from(u8::from(holds))),
        None => Interval { least: 0.0, most: 1.0 },
    }
}

/// Returns the bounds on the value of these steps. The parser guarantees that operands exist and that the stack
/// suffices.
pub(crate) fn run(steps: &[Op], values: &[Interval]) -> Interval {
    let mut stack = [Interval::ANY; Formula::MAX_WAITING + 2];
    let mut top = 0;
    for &op in steps {
        top -= op.arity();
        stack[top] = match op {
            Op::Name(index) => values[index],
            _ => apply_to(op, [stack[top], stack[top + 1], stack[top + 2]]),
        };
        top += 1;
    }
    stack[0]
}

/// Returns the bounds on the value of an operation other than a name. Operands that it does not take are ignored.
pub(crate) fn apply_to(op: Op, [x, y, z]: [Interval; 3]) -> Interval {
    match op {
        Op::Number(value) => Interval::from_rounded(value),
        Op::Name(_) => Interval::ANY,
        Op::Unary(unary) => apply(unary, x),
        Op::Binary(binary) => combine(binary, x, y),
        Op::Choose => match x.truth() {
            Some(true) => y,
            Some(false) => z,
            None => y.hull(z),
        },
    }
}

fn apply(unary: Unary, x: Interval) -> Interval {
    match unary {
        Unary::Negate => x.negated(),
        Unary::Not => truth(x.truth().map(|holds| !holds)),
        Unary::Abs if x.least >= 0.0 => x,
        Unary::Abs if x.most <= 0.0 => x.negated(),
        Unary::Abs if x.is_any() => x,
        Unary::Abs => Interval { least: 0.0, most: x.most.max(-x.least) },
        Unary::Sqrt | Unary::Ln | Unary::Log2 | Unary::Log10 | Unary::Exp | Unary::Floor | Unary::Ceil => {
            x.under(|x| unary.apply(x))
        }
    }
}

fn combine(binary: Binary, x: Interval, y: Interval) -> Interval {
    let is_less = |x: Interval, y: Interval| truth(x.is_less(y));
    let is_at_most = |x: Interval, y: Interval| truth(y.is_less(x).map(|less| !less));
    match binary {
        Binary::Or => truth(match (x.truth(), y.truth()) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
        Binary::And => truth(match (x.truth(), y.truth()) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        Binary::Less => is_less(x, y),
        Binary::LessEqual => is_at_most(x, y),
        Binary::Greater => is_less(y, x),
        Binary::GreaterEqual => is_at_most(y, x),
        Binary::Equal => truth(x.is_equal(y)),
        Binary::NotEqual => truth(x.is_equal(y).map(|equal| !equal)),
        Binary::Add => x.plus(y),
        Binary::Subtract => x.minus(y),
        Binary::Multiply => x.times(y),
        Binary::Divide => x.over(y),
        Binary::Power => x.to_the(y),
        Binary::Min | Binary::Max if x.is_any() || y.is_any() => Interval::ANY,
        Binary::Min => Interval { least: x.least.min(y.least), most: x.most.min(y.most) },
        Binary::Max => Interval { least: x.least.max(y.least), most: x.most.max(y.most) },
    }
}
