//! Division of a text into tokens.

use crate::error::{FormulaError, FormulaProblem};
use crate::op::Binary;

/// A token and its first byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) at: usize,
    pub(crate) kind: TokenKind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TokenKind<'a> {
    Number(f64),
    /// A name or a function.
    Word(&'a str),
    /// An operator between two values. A minus may also precede one.
    Infix(Binary),
    Not,
    Open,
    Close,
    Comma,
    End,
}

/// All signs, longer ones first if one begins another.
///
/// Signs of other languages map to their equivalents here.
const SIGNS: [(&str, Result<TokenKind<'static>, &str>); 21] = [
    ("<=", Ok(TokenKind::Infix(Binary::LessEqual))),
    (">=", Ok(TokenKind::Infix(Binary::GreaterEqual))),
    ("==", Ok(TokenKind::Infix(Binary::Equal))),
    ("!=", Ok(TokenKind::Infix(Binary::NotEqual))),
    ("**", Err("^")),
    ("&&", Err("and")),
    ("||", Err("or")),
    ("<", Ok(TokenKind::Infix(Binary::Less))),
    (">", Ok(TokenKind::Infix(Binary::Greater))),
    ("+", Ok(TokenKind::Infix(Binary::Add))),
    ("-", Ok(TokenKind::Infix(Binary::Subtract))),
    ("*", Ok(TokenKind::Infix(Binary::Multiply))),
    ("/", Ok(TokenKind::Infix(Binary::Divide))),
    ("^", Ok(TokenKind::Infix(Binary::Power))),
    ("(", Ok(TokenKind::Open)),
    (")", Ok(TokenKind::Close)),
    (",", Ok(TokenKind::Comma)),
    ("=", Err("==")),
    ("&", Err("and")),
    ("|", Err("or")),
    ("!", Err("not")),
];

/// Returns all tokens of the text, followed by an `End`.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, FormulaError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = text.len() - text[at..].trim_start().len();
        let (length, kind) = token(&text[at..]).map_err(|problem| FormulaError::new(text, at, problem))?;
        tokens.push(Token { at, kind });
        if kind == TokenKind::End {
            return Ok(tokens);
        }
        at += length;
    }
}

/// Returns the token at the front of `rest` and its length in bytes.
fn token(rest: &str) -> Result<(usize, TokenKind<'_>), FormulaProblem> {
    let Some(first) = rest.chars().next() else { return Ok((0, TokenKind::End)) };
    if first.is_ascii_digit() || first == '.' {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        return Ok(word(rest));
    }
    match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        Some((sign, Ok(kind))) => Ok((sign.len(), *kind)),
        Some((sign, Err(instead))) => {
            Err(FormulaProblem::UnknownSign { sign: (*sign).to_owned(), instead: Some(instead) })
        }
        None => Err(FormulaProblem::UnknownSign { sign: first.to_string(), instead: None }),
    }
}

/// Parses digits with an optional point and exponent.
fn number(rest: &str) -> Result<(usize, TokenKind<'_>), FormulaProblem> {
    let mantissa = length(rest, |c| c.is_ascii_digit() || c == b'.');
    let end = mantissa + exponent(&rest[mantissa..]);
    match rest[..end].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((end, TokenKind::Number(value))),
        _ => Err(FormulaProblem::Number(rest[..end].to_owned())),
    }
}

/// Returns the length of an exponent at the front of `rest`, or 0.
fn exponent(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else { return 0 };
    let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
    match length(digits, |c| c.is_ascii_digit()) {
        0 => 0,
        many => rest.len() - digits.len() + many,
    }
}

/// Parses letters, digits, `_` and `.`.
fn word(rest: &str) -> (usize, TokenKind<'_>) {
    let end = length(rest, |c| c.is_ascii_alphanumeric() || c == b'_' || c == b'.');
    let kind = match &rest[..end] {
        "and" => TokenKind::Infix(Binary::And),
        "or" => TokenKind::Infix(Binary::Or),
        "not" => TokenKind::Not,
        name => TokenKind::Word(name),
    };
    (end, kind)
}

/// Returns the number of leading bytes of `rest` that meet a condition.
fn length(rest: &str, condition: impl Fn(u8) -> bool) -> usize {
    rest.bytes().take_while(|&c| condition(c)).count()
}
