//! A text into tokens.

use crate::error::{FormulaError, Problem};
use crate::op::Binary;

/// A token and the byte where it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) at: usize,
    pub(crate) kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind<'a> {
    Number(f64),
    /// A name or a function.
    Word(&'a str),
    /// What stands between two values; a minus may stand before one.
    Infix(Binary),
    Not,
    Open,
    Close,
    Comma,
    End,
}

/// Every sign, the longer ones first where one begins another; those that other languages have, with what is written here.
const SIGNS: [(&str, Result<Kind<'static>, &str>); 21] = [
    ("<=", Ok(Kind::Infix(Binary::LessEqual))),
    (">=", Ok(Kind::Infix(Binary::GreaterEqual))),
    ("==", Ok(Kind::Infix(Binary::Equal))),
    ("!=", Ok(Kind::Infix(Binary::NotEqual))),
    ("**", Err("^")),
    ("&&", Err("and")),
    ("||", Err("or")),
    ("<", Ok(Kind::Infix(Binary::Less))),
    (">", Ok(Kind::Infix(Binary::Greater))),
    ("+", Ok(Kind::Infix(Binary::Add))),
    ("-", Ok(Kind::Infix(Binary::Subtract))),
    ("*", Ok(Kind::Infix(Binary::Multiply))),
    ("/", Ok(Kind::Infix(Binary::Divide))),
    ("^", Ok(Kind::Infix(Binary::Power))),
    ("(", Ok(Kind::Open)),
    (")", Ok(Kind::Close)),
    (",", Ok(Kind::Comma)),
    ("=", Err("==")),
    ("&", Err("and")),
    ("|", Err("or")),
    ("!", Err("not")),
];

/// Every token of the text, and an `End`.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, FormulaError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = text.len() - text[at..].trim_start().len();
        let (length, kind) = token(&text[at..]).map_err(|problem| FormulaError::new(text, at, problem))?;
        tokens.push(Token { at, kind });
        if kind == Kind::End {
            return Ok(tokens);
        }
        at += length;
    }
}

/// The token at the front of `rest`, and its length in bytes.
fn token(rest: &str) -> Result<(usize, Kind<'_>), Problem> {
    let Some(first) = rest.chars().next() else { return Ok((0, Kind::End)) };
    if first.is_ascii_digit() || first == '.' {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        return Ok(word(rest));
    }
    match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        Some((sign, Ok(kind))) => Ok((sign.len(), *kind)),
        Some((sign, Err(instead))) => {
            Err(Problem::UnknownSign { sign: (*sign).to_owned(), instead: Some(instead) })
        }
        None => Err(Problem::UnknownSign { sign: first.to_string(), instead: None }),
    }
}

/// Digits with a point among them or beside them, and an exponent.
fn number(rest: &str) -> Result<(usize, Kind<'_>), Problem> {
    let mantissa = length(rest, |c| c.is_ascii_digit() || c == b'.');
    let end = mantissa + exponent(&rest[mantissa..]);
    match rest[..end].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((end, Kind::Number(value))),
        _ => Err(Problem::Number(rest[..end].to_owned())),
    }
}

/// The length of an exponent at the front of `rest`, 0 if there is none.
fn exponent(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else { return 0 };
    let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
    match length(digits, |c| c.is_ascii_digit()) {
        0 => 0,
        many => rest.len() - digits.len() + many,
    }
}

/// Letters, digits, `_` and `.`.
fn word(rest: &str) -> (usize, Kind<'_>) {
    let end = length(rest, |c| c.is_ascii_alphanumeric() || c == b'_' || c == b'.');
    let kind = match &rest[..end] {
        "and" => Kind::Infix(Binary::And),
        "or" => Kind::Infix(Binary::Or),
        "not" => Kind::Not,
        name => Kind::Word(name),
    };
    (end, kind)
}

/// How many bytes at the front of `rest` are such.
fn length(rest: &str, such: impl Fn(u8) -> bool) -> usize {
    rest.bytes().take_while(|&c| such(c)).count()
}
