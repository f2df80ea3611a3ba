//! Rules that leave rows out: formulas over fields and columns, with tests of texts and of missing values.

use miserly_formula::Formula;

/// A test in a rule, which is 1 or 0 in its formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    /// Name of a field or of a column.
    pub(crate) name: String,
    /// The text that the value is; `None` if it is missing.
    pub(crate) text: Option<String>,
    pub(crate) is_negated: bool,
    /// The name in the formula.
    stand_in: String,
}

/// A rule before its names are bound to a table.
#[derive(Clone, Debug)]
pub(crate) struct RuleText {
    /// The text with a name of the same length in place of each test.
    text: String,
    tests: Vec<Test>,
}

impl RuleText {
    /// Finds the tests of a rule: `name is null`, `name is not null`, `name == "text"` and `name != "text"`.
    pub(crate) fn new(rule: &str) -> RuleText {
        let mut found = RuleText { text: String::new(), tests: vec![] };
        let mut rest = rule;
        while let Some(sign) = rest.chars().next() {
            let name = &rest[..name_length(rest)];
            let Some((length, wanted, is_negated)) = test(rest, name) else {
                let length = if name.is_empty() { sign.len_utf8() } else { name.len() };
                found.text.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            };
            let word = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '_' };
            let mut test = Test { name: name.to_owned(), text: wanted, is_negated, stand_in: String::new() };
            test.stand_in = rest[..length].bytes().map(word).collect();
            // Another test may differ in a sign only.
            let is_taken = |test: &Test| {
                found.tests.iter().any(|other| other.stand_in == test.stand_in && other != test)
            };
            let mut others = 'A'..='Z';
            while is_taken(&test) {
                let Some(other) = others.next() else { break };
                test.stand_in.pop();
                test.stand_in.push(other);
            }
            found.text.push_str(&test.stand_in);
            found.tests.push(test);
            rest = &rest[length..];
        }
        found
    }

    pub(crate) fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// Returns the formula over the names that it uses, and these names. Those of tests are behind the others, in their
    /// order.
    pub(crate) fn formula(&self, names: &[&str]) -> Result<(Formula, Vec<String>), String> {
        let stand_ins = self.tests.iter().map(|test| test.stand_in.as_str());
        let plain =
            names.iter().copied().filter(|name| self.tests.iter().all(|test| test.stand_in != **name));
        formula(&self.text, &plain.collect::<Vec<_>>(), &stand_ins.collect::<Vec<_>>())
    }
}

/// Returns a formula over the names that it uses, and over all of `always`, which are last.
pub(crate) fn formula(text: &str, names: &[&str], always: &[&str]) -> Result<(Formula, Vec<String>), String> {
    let all: Vec<&str> = names.iter().chain(always).copied().collect();
    let formula = Formula::parse(text, &all).map_err(|error| error.to_string())?;
    let used = names.iter().enumerate().filter(|(index, _)| formula.uses(*index)).map(|(_, name)| *name);
    let used: Vec<&str> = used.chain(always.iter().copied()).collect();
    let formula = Formula::parse(text, &used).map_err(|error| error.to_string())?;
    Ok((formula, used.into_iter().map(str::to_owned).collect()))
}

/// Returns whether a formula can refer to a name.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len() && !matches!(text, "and" | "or" | "not")
}

fn name_length(text: &str) -> usize {
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    if begins { text.bytes().take_while(is_part).count() } else { 0 }
}

/// Returns the length of a test that begins with a name, its text and whether it is negated.
fn test(rest: &str, name: &str) -> Option<(usize, Option<String>, bool)> {
    let behind = rest[name.len()..].trim_start();
    if name.is_empty() {
        return None;
    }
    let length = |left: &str| rest.len() - left.len();
    let sign = [("==", false), ("!=", true)].into_iter().find(|(sign, _)| behind.starts_with(sign));
    if let Some((sign, is_negated)) = sign {
        let quoted = behind[sign.len()..].trim_start();
        let quote = quoted.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (text, left) = quoted[1..].split_once(quote)?;
        return Some((length(left), Some(text.to_owned()), is_negated));
    }
    let word = |text: &'_ str, word: &str| {
        let left = text.strip_prefix(word)?;
        let ends = !left.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        ends.then(|| text.len() - left.len())
    };
    let behind_is = behind[word(behind, "is")?..].trim_start();
    let negation = word(behind_is, "not");
    let behind_not = behind_is[negation.unwrap_or(0)..].trim_start();
    let left = &behind_not[word(behind_not, "null")?..];
    Some((length(left), None, negation.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: &str, text: &str, tests: &[(&str, Option<&str>, bool)]) {
        let found = RuleText::new(rule);
        assert_eq!(found.text, text);
        let expect: Vec<_> = found
            .tests
            .iter()
            .map(|test| (test.name.as_str(), test.text.as_deref(), test.is_negated))
            .collect();
        assert_eq!(expect, tests);
    }

    #[test]
    fn tests_become_names_of_the_same_length() {
        check("start is null", "start_is_null", &[("start", None, false)]);
        check(
            "end < start or state == \"RUN\" and x is not null",
            "end < start or state_____RUN_ and x_is_not_null",
            &[("state", Some("RUN"), false), ("x", None, true)],
        );
        check("this == 3", "this == 3", &[]);
        check(
            "x == 'a-b' or x == 'a+b' or x == 'a-b'",
            "x_____a_b_ or x_____a_bA or x_____a_b_",
            &[("x", Some("a-b"), false), ("x", Some("a+b"), false), ("x", Some("a-b"), false)],
        );
        check("isnull > nullis", "isnull > nullis", &[]);
        check("state != 'a b' ", "state_____a_b_ ", &[("state", Some("a b"), true)]);
    }
}
