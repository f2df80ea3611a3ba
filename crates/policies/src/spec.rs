//! The written form of a policy: `easy(order=shortest, backfill=longest)`.

/// A policy as it was written: a name, and named values. Whether there are such is the registry's to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The policy's name.
    pub name: String,
    /// Its parameters, in the order in which they were written.
    pub args: Vec<(String, String)>,
}

/// A policy that is not written as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {text:?}: {problem}; write it like easy or easy(backfill=shortest)")]
pub struct SyntaxError {
    text: String,
    problem: String,
}

impl Spec {
    /// Reads `name` or `name(parameter=value, ...)`.
    ///
    /// # Errors
    /// If a name or value is missing, or the brackets are not balanced.
    pub fn parse(text: &str) -> Result<Spec, SyntaxError> {
        let wrong = |problem: String| SyntaxError { text: text.to_owned(), problem };
        let whole = text.trim();
        let Some((name, rest)) = whole.split_once('(') else {
            if whole.contains(')') {
                return Err(wrong("a bracket closes that was never opened".into()));
            }
            return Ok(Spec { name: word(whole).map_err(wrong)?, args: vec![] });
        };
        let inner = rest.strip_suffix(')').ok_or_else(|| {
            let problem = match rest.split_once(')') {
                Some((_, after)) => format!("{:?} after the closing bracket", after.trim()),
                None => "a bracket is not closed".into(),
            };
            wrong(problem)
        })?;
        if inner.contains(['(', ')']) {
            return Err(wrong("the brackets are not balanced".into()));
        }
        let args = arguments(inner).map_err(wrong)?;
        Ok(Spec { name: word(name).map_err(wrong)?, args })
    }
}

fn arguments(inner: &str) -> Result<Vec<(String, String)>, String> {
    if inner.trim().is_empty() {
        return Ok(vec![]);
    }
    inner.split(',').map(argument).collect()
}

fn argument(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("{:?} has no value", text.trim()));
    };
    Ok((word(name)?, word(value)?))
}

/// A name or a value: letters, digits and the signs of numbers.
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

    type Parts<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    #[track_caller]
    fn check(text: &str, expect: Result<Parts<'_>, &str>) {
        match (Spec::parse(text), expect) {
            (Ok(spec), Ok((name, args))) => {
                let got: Vec<_> = spec.args.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
                assert_eq!((spec.name.as_str(), &got[..]), (name, args));
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
    fn mistakes() {
        check("", Err("missing"));
        check("easy(", Err("not closed"));
        check("easy)", Err("never opened"));
        check("easy(order=a", Err("not closed"));
        check("easy(order=a))", Err("not balanced"));
        check("easy((order=a)", Err("not balanced"));
        check("easy(order=a) x", Err("after the closing bracket"));
        check("easy(order)", Err("has no value"));
        check("easy(order=)", Err("missing"));
        check("easy(=a)", Err("missing"));
        check("easy(a=b=c)", Err("unexpected '='"));
        check("ea sy", Err("unexpected ' '"));
    }
}
