//! Formulas whose value over integers is rounded once.

use crate::op::{Binary, Op, Unary};

/// Integers up to this are floats exactly.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// A bound on the value of a part of a formula: `factor * x^degree`, where no name exceeds `x` and `x` is at least 1.
#[derive(Clone, Copy)]
struct Bound {
    factor: f64,
    degree: i32,
}

/// Returns the magnitude up to which integer values of the names give integers in every step but the last.
///
/// Then floats hold every step exactly, and the last step is rounded once. Returns `None` if a step before the last
/// may leave the integers.
pub(crate) fn limit(steps: &[Op]) -> Option<f64> {
    let (last, before) = steps.split_last()?;
    let mut stack = Vec::new();
    let mut limit = EXACT;
    for op in before {
        let bound = integer_step(*op, &mut stack)?;
        if bound.degree > 0 {
            limit = limit.min((EXACT / bound.factor).powf(1.0 / f64::from(bound.degree)).floor());
        }
        stack.push(bound);
    }
    // One bit less than the float, because the root above is rounded.
    let is_rational = matches!(last, Op::Binary(Binary::Divide)) || integer_step(*last, &mut stack).is_some();
    (is_rational && limit >= 2.0).then_some(limit / 2.0)
}

/// Returns the bound on the result of a step that keeps integers integers, and takes its operands.
fn integer_step(op: Op, stack: &mut Vec<Bound>) -> Option<Bound> {
    let larger =
        |x: Bound, y: Bound| Bound { factor: x.factor.max(y.factor), degree: x.degree.max(y.degree) };
    Some(match op {
        Op::Number(value) => {
            (value.fract() == 0.0 && value < EXACT).then_some(Bound { factor: value.max(1.0), degree: 0 })?
        }
        Op::Name(_) => Bound { factor: 1.0, degree: 1 },
        Op::Unary(Unary::Negate | Unary::Abs | Unary::Floor | Unary::Ceil) => stack.pop()?,
        Op::Binary(binary) => {
            let (y, x) = (stack.pop()?, stack.pop()?);
            match binary {
                Binary::Add | Binary::Subtract => {
                    Bound { factor: x.factor + y.factor, degree: x.degree.max(y.degree) }
                }
                Binary::Multiply => Bound { factor: x.factor * y.factor, degree: x.degree + y.degree },
                Binary::Min | Binary::Max => larger(x, y),
                _ => return None,
            }
        }
        Op::Unary(_) | Op::Choose => return None,
    })
}
