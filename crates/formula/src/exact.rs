//! The formula in exact arithmetic, where its operations allow that.

use crate::formula::Formula;
use crate::fraction::Fraction;
use crate::op::{Binary, Op, Unary};

/// A step of a formula in postfix order, over exact fractions.
#[derive(Clone, Copy, Debug)]
enum Step {
    Number(Fraction),
    Name(usize),
    Unary(Unary),
    Binary(Binary),
    Choose,
}

/// Steps that give an exact value, on a stack of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct ExactProgram(Box<[Step]>);

/// The largest whole exponent, up or down, that is multiplied out.
const MULTIPLIED_OUT: i128 = 16;

impl ExactProgram {
    /// Returns the steps over fractions; `None` if an operation leaves the rational numbers.
    pub(crate) fn new(steps: &[Op]) -> Option<ExactProgram> {
        steps.iter().map(|op| exact(*op)).collect::<Option<Box<[Step]>>>().map(ExactProgram)
    }

    /// Returns the value; `None` if there is none, or none that two 128-bit integers can hold.
    pub(crate) fn run(&self, values: &[Fraction]) -> Option<Fraction> {
        let mut stack = [Fraction::ZERO; Formula::MAX_WAITING];
        let mut top = 0;
        for step in &self.0 {
            match *step {
                Step::Number(value) => stack[top] = value,
                Step::Name(index) => stack[top] = values[index],
                Step::Unary(unary) => {
                    top -= 1;
                    stack[top] = apply(unary, stack[top])?;
                }
                Step::Binary(binary) => {
                    top -= 2;
                    stack[top] = combine(binary, stack[top], stack[top + 1])?;
                }
                Step::Choose => {
                    top -= 3;
                    stack[top] = if stack[top].sign() != 0 { stack[top + 1] } else { stack[top + 2] };
                }
            }
            top += 1;
        }
        Some(stack[0])
    }
}

fn exact(op: Op) -> Option<Step> {
    Some(match op {
        Op::Number(value) => Step::Number(Fraction::from_decimal(value)?),
        Op::Name(index) => Step::Name(index),
        Op::Unary(Unary::Sqrt | Unary::Ln | Unary::Log2 | Unary::Log10 | Unary::Exp) => return None,
        Op::Unary(unary) => Step::Unary(unary),
        Op::Binary(binary) => Step::Binary(binary),
        Op::Choose => Step::Choose,
    })
}

fn apply(unary: Unary, x: Fraction) -> Option<Fraction> {
    match unary {
        Unary::Negate => x.checked_neg(),
        Unary::Not => Some(truth(x.sign() == 0)),
        Unary::Abs => x.checked_mul(Fraction::new(if x.sign() < 0 { -1 } else { 1 }, 1)?),
        Unary::Floor => Some(x.floor()),
        Unary::Ceil => x.checked_neg()?.floor().checked_neg(),
        Unary::Sqrt | Unary::Ln | Unary::Log2 | Unary::Log10 | Unary::Exp => None,
    }
}

fn combine(binary: Binary, x: Fraction, y: Fraction) -> Option<Fraction> {
    let sign = || Some(x.checked_sub(y)?.sign());
    Some(match binary {
        Binary::Or => truth(x.sign() != 0 || y.sign() != 0),
        Binary::And => truth(x.sign() != 0 && y.sign() != 0),
        Binary::Less => truth(sign()? < 0),
        Binary::LessEqual => truth(sign()? <= 0),
        Binary::Greater => truth(sign()? > 0),
        Binary::GreaterEqual => truth(sign()? >= 0),
        Binary::Equal => truth(sign()? == 0),
        Binary::NotEqual => truth(sign()? != 0),
        Binary::Add => x.checked_add(y)?,
        Binary::Subtract => x.checked_sub(y)?,
        Binary::Multiply => x.checked_mul(y)?,
        Binary::Divide => x.checked_div(y)?,
        Binary::Power => power(x, y.integer().filter(|whole| whole.abs() <= MULTIPLIED_OUT)?)?,
        Binary::Min => {
            if sign()? > 0 {
                y
            } else {
                x
            }
        }
        Binary::Max => {
            if sign()? < 0 {
                y
            } else {
                x
            }
        }
    })
}

fn power(x: Fraction, exponent: i128) -> Option<Fraction> {
    let one = Fraction::from(1);
    let product = (0..exponent.abs()).try_fold(one, |product, _| product.checked_mul(x))?;
    if exponent < 0 { one.checked_div(product) } else { Some(product) }
}

fn truth(holds: bool) -> Fraction {
    Fraction::from(i64::from(holds))
}
