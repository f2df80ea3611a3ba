//! The written form of a policy: `easy(order=shortest, backfill='wait / estimate')`.

/// A policy as it was written: a name, and named values. The registry checks whether they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenPolicy {
    /// The name of the policy.
    pub(super) name: String,
    /// Its parameters, in the order in which they were written.
    pub(super) args: Vec<Arg>,
}

/// A parameter as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arg {
    pub(super) name: String,
    pub(super) value: WrittenValue,
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenValue {
    /// A word: letters, digits and the signs of numbers.
    Word(String),
    /// Text between single quotes, which may contain anything but a single quote.
    Quoted(String),
}

/// A policy that is not written as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {text:?}: {problem}; write it like easy or easy(backfill=shortest)")]
pub struct SyntaxError {
    text: String,
    problem: String,
}

impl WrittenPolicy {
    /// Reads `name` or `name(parameter=value, ...)`, a value being a word or `'anything in
    /// quotes'`.
    ///
    /// # Errors
    /// If a name or value is missing, or brackets or quotes are not balanced.
    pub(super) fn parse(text: &str) -> Result<WrittenPolicy, SyntaxError> {
        spec(text.trim()).map_err(|problem| SyntaxError { text: text.to_owned(), problem })
    }
}

impl WrittenValue {
    /// Returns the text without quotes.
    pub(super) fn text(&self) -> &str {
        match self {
            WrittenValue::Word(text) | WrittenValue::Quoted(text) => text,
        }
    }
}

fn spec(whole: &str) -> Result<WrittenPolicy, String> {
    let Some((name, rest)) = whole.split_once('(') else {
        if whole.contains(')') {
            return Err("a closing bracket has no opening one".into());
        }
        return Ok(WrittenPolicy { name: word(whole)?, args: vec![] });
    };
    let args = arguments(inside(rest)?)?;
    Ok(WrittenPolicy { name: word(name)?, args })
}

/// Returns the text before the closing bracket, which must be the last character.
fn inside(rest: &str) -> Result<&str, String> {
    let Some(close) = bare(rest, ')').next() else {
        let open = if rest.matches('\'').count() % 2 == 1 { "quote" } else { "bracket" };
        return Err(format!("a {open} is not closed"));
    };
    let (inner, after) = (&rest[..close], rest[close + 1..].trim());
    if bare(inner, '(').next().is_some() {
        return Err("brackets within the brackets; a formula goes in quotes".into());
    }
    if after.contains(['(', ')']) {
        return Err("the brackets are not balanced".into());
    }
    if after.is_empty() { Ok(inner) } else { Err(format!("{after:?} after the closing bracket")) }
}

/// Returns the positions of this sign outside quotes.
fn bare(text: &str, sign: char) -> impl Iterator<Item = usize> {
    let mut quoted = false;
    text.char_indices().filter_map(move |(at, c)| {
        quoted ^= c == '\'';
        (c == sign && !quoted).then_some(at)
    })
}

fn arguments(inner: &str) -> Result<Vec<Arg>, String> {
    if inner.trim().is_empty() {
        return Ok(vec![]);
    }
    let mut args = Vec::new();
    let mut from = 0;
    for comma in bare(inner, ',') {
        args.push(argument(&inner[from..comma])?);
        from = comma + 1;
    }
    args.push(argument(&inner[from..])?);
    Ok(args)
}

fn argument(text: &str) -> Result<Arg, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("{:?} has no value", text.trim()));
    };
    Ok(Arg { name: word(name)?, value: written(value.trim())? })
}

/// Reads a value. Its quotes, if any, are balanced.
fn written(value: &str) -> Result<WrittenValue, String> {
    match value.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
        Some((text, "")) => Ok(WrittenValue::Quoted(text.to_owned())),
        Some((_, after)) => Err(format!("{after:?} after the closing quote")),
        None => word(value).map(WrittenValue::Word).map_err(|problem| match value {
            "" => problem,
            _ => format!("{problem}; a formula goes in quotes"),
        }),
    }
}

/// Reads a word: letters, digits and the signs of numbers.
fn word(text: &str) -> Result<String, String> {
    let word = text.trim();
    if word.is_empty() {
        return Err("a name or a value is missing".into());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '&' | '+' | ':' | '/');
    match word.chars().find(|&c| !plain(c)) {
        Some(c) => Err(format!("unexpected {c:?} in {word:?}")),
        None => Ok(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, and its parameters with their values, quoted as written.
    type Parts<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    fn shown(value: &WrittenValue) -> String {
        match value {
            WrittenValue::Word(text) => text.clone(),
            WrittenValue::Quoted(text) => format!("'{text}'"),
        }
    }

    #[track_caller]
    fn check(text: &str, expect: Result<Parts<'_>, &str>) {
        match (WrittenPolicy::parse(text), expect) {
            (Ok(spec), Ok((name, args))) => {
                let got: Vec<_> =
                    spec.args.iter().map(|arg| (arg.name.as_str(), shown(&arg.value))).collect();
                let args: Vec<_> = args.iter().map(|&(name, value)| (name, value.to_owned())).collect();
                assert_eq!((spec.name.as_str(), got), (name, args));
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, _) => panic!("{got:?}"),
        }
    }

    #[test]
    fn written_forms() {
        check("easy", Ok(("easy", &[])));
        check(" easy ( ) ", Ok(("easy", &[])));
        check("easy(order=shortest)", Ok(("easy", &[("order", "shortest")])));
        check("easy( order = a , backfill=b)", Ok(("easy", &[("order", "a"), ("backfill", "b")])));
    }

    #[test]
    fn anything_but_a_quote_stands_in_quotes() {
        check("easy(order='wait / estimate')", Ok(("easy", &[("order", "'wait / estimate'")])));
        check("easy( order = '' )", Ok(("easy", &[("order", "''")])));
        check(
            "easy(order='if(wait >= 1, max(a, b), \"é\")', hold_head=true)",
            Ok(("easy", &[("order", "'if(wait >= 1, max(a, b), \"é\")'"), ("hold_head", "true")])),
        );
    }

    #[test]
    fn mistakes_with_quotes() {
        check("easy(order='a)", Err("a quote is not closed"));
        check("easy(order=a')", Err("a quote is not closed"));
        check("easy(order='a' b)", Err("\" b\" after the closing quote"));
        check("easy(order='a''b')", Err("after the closing quote"));
        check("easy('order'=a)", Err("unexpected '\\''"));
        check(
            "easy(order=wait / estimate)",
            Err("unexpected ' ' in \"wait / estimate\"; a formula goes in quotes"),
        );
        check("easy(order=min(a, b))", Err("a formula goes in quotes"));
        check("'easy'", Err("unexpected"));
    }

    #[test]
    fn mistakes() {
        check("", Err("missing"));
        check("easy(", Err("not closed"));
        check("easy)", Err("no opening one"));
        check("easy(order=a", Err("not closed"));
        check("easy(order=a))", Err("not balanced"));
        check("easy((order=a)", Err("brackets within the brackets"));
        check("easy(order=a) x", Err("after the closing bracket"));
        check("easy(order)", Err("has no value"));
        check("easy(order=)", Err("missing"));
        check("easy(=a)", Err("missing"));
        check("easy(a=b=c)", Err("unexpected '='"));
        check("ea sy", Err("unexpected ' '"));
    }
}
