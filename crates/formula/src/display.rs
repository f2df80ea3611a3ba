//! A formula as text: one space around each sign, no parenthesis that changes nothing.

use std::fmt;

use crate::formula::Formula;
use crate::op::{Infix, Level, Op, Unary};

/// A part of the text, and how tightly it holds together.
struct Part {
    text: String,
    level: Level,
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<Part> = Vec::new();
        for &op in self.steps() {
            let taken = parts.split_off(parts.len() - op.takes());
            parts.push(part(op, &taken, self.names()));
        }
        parts.iter().try_for_each(|part| f.write_str(&part.text))
    }
}

/// The operation with what it takes.
fn part(op: Op, taken: &[Part], names: &[String]) -> Part {
    match (op, taken) {
        (Op::Number(value), _) => atom(number(value)),
        (Op::Name(index), _) => atom(names[index].clone()),
        (Op::Unary(Unary::Negate), [of]) => prefix("-", Level::Negate, of),
        (Op::Unary(Unary::Not), [of]) => prefix("not ", Level::Not, of),
        (Op::Binary(binary), [left, right]) if let Some(infix) = binary.infix() => {
            between(infix, left, right)
        }
        _ => call(op.function().unwrap_or_default(), taken),
    }
}

fn atom(text: String) -> Part {
    Part { text, level: Level::Atom }
}

fn prefix(sign: &str, level: Level, of: &Part) -> Part {
    Part { text: format!("{sign}{}", at_least(level, of)), level }
}

fn between(infix: Infix, left: &Part, right: &Part) -> Part {
    let (left, right) = (at_least(infix.left, left), at_least(infix.right, right));
    Part { text: format!("{left} {} {right}", infix.sign), level: infix.level }
}

fn call(function: &str, taken: &[Part]) -> Part {
    let list: Vec<&str> = taken.iter().map(|part| part.text.as_str()).collect();
    atom(format!("{function}({})", list.join(", ")))
}

/// The part, in parentheses if it holds together less tightly than `level`.
fn at_least(level: Level, part: &Part) -> String {
    if part.level < level { format!("({})", part.text) } else { part.text.clone() }
}

/// The shortest text that reads as the same number.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-5..1e16).contains(&value) { value.to_string() } else { format!("{value:e}") }
}
