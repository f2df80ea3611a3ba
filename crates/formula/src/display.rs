//! Formatting of a formula: one space around each sign and no redundant parentheses.

use std::fmt;

use crate::formula::Formula;
use crate::op::{Infix, Level, Op, Unary};

/// A part of the text with its precedence.
struct TextPart {
    text: String,
    level: Level,
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<TextPart> = Vec::new();
        for &op in self.steps() {
            let taken = parts.split_off(parts.len() - op.arity());
            parts.push(part(op, &taken, self.names()));
        }
        parts.iter().try_for_each(|part| f.write_str(&part.text))
    }
}

/// Formats an operation with its operands.
fn part(op: Op, taken: &[TextPart], names: &[String]) -> TextPart {
    match (op, taken) {
        (Op::Number(value), _) => atom(number(value)),
        (Op::Name(index), _) => atom(names[index].clone()),
        (Op::Unary(Unary::Negate), [operand]) => prefix("-", Level::Negate, operand),
        (Op::Unary(Unary::Not), [operand]) => prefix("not ", Level::Not, operand),
        (Op::Binary(binary), [left, right]) if let Some(infix) = binary.infix() => {
            between(infix, left, right)
        }
        _ => call(op.function().unwrap_or_default(), taken),
    }
}

fn atom(text: String) -> TextPart {
    TextPart { text, level: Level::Atom }
}

fn prefix(sign: &str, level: Level, operand: &TextPart) -> TextPart {
    TextPart { text: format!("{sign}{}", at_least(level, operand)), level }
}

fn between(infix: Infix, left: &TextPart, right: &TextPart) -> TextPart {
    let (left, right) = (at_least(infix.left, left), at_least(infix.right, right));
    TextPart { text: format!("{left} {} {right}", infix.sign), level: infix.level }
}

fn call(function: &str, taken: &[TextPart]) -> TextPart {
    let list: Vec<&str> = taken.iter().map(|part| part.text.as_str()).collect();
    atom(format!("{function}({})", list.join(", ")))
}

/// Returns the text of a part, in parentheses if its precedence is below `level`.
fn at_least(level: Level, part: &TextPart) -> String {
    if part.level < level { format!("({})", part.text) } else { part.text.clone() }
}

/// Returns the shortest text that parses to the same number.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-5..1e16).contains(&value) { value.to_string() } else { format!("{value:e}") }
}
