//! The evaluated form of a formula, with constant parts folded.

use crate::formula::Formula;
use crate::op::{Op, choose};

/// Steps that compute a value on a stack of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct Program(Box<[Op]>);

impl Program {
    /// Folds the parts that depend on no name. Evaluation uses the same functions, so results are
    /// unchanged.
    pub(crate) fn new(written: &[Op]) -> Program {
        let mut steps: Vec<Op> = Vec::new();
        for &op in written {
            steps.push(op);
            fold(&mut steps);
        }
        Program(steps.into())
    }

    /// Evaluates the program for these values of the names.
    pub(crate) fn run(&self, values: &[f64]) -> f64 {
        let mut stack = [0.0; Formula::MAX_WAITING];
        run(&self.0, values, &mut stack)
    }
}

/// Replaces the last step and its operands by a number if all operands are numbers.
fn fold(steps: &mut Vec<Op>) {
    let Some(takes) = steps.last().map(|op| op.arity()).filter(|&takes| takes > 0) else { return };
    let start = steps.len() - 1 - takes;
    if steps[start..].iter().rev().skip(1).all(|op| matches!(op, Op::Number(_))) {
        let value = run(&steps[start..], &[], &mut [0.0; 3]);
        steps.truncate(start);
        steps.push(Op::Number(value));
    }
}

/// Runs the steps. The parser guarantees that operands exist and that the stack suffices.
#[inline]
fn run(steps: &[Op], values: &[f64], stack: &mut [f64]) -> f64 {
    let mut top = 0;
    for &op in steps {
        match op {
            Op::Number(value) => stack[top] = value,
            Op::Name(index) => stack[top] = values[index],
            Op::Unary(unary) => {
                top -= 1;
                stack[top] = unary.apply(stack[top]);
            }
            Op::Binary(binary) => {
                top -= 2;
                stack[top] = binary.apply(stack[top], stack[top + 1]);
            }
            Op::Choose => {
                top -= 3;
                stack[top] = choose(stack[top], stack[top + 1], stack[top + 2]);
            }
        }
        top += 1;
    }
    stack[0]
}
